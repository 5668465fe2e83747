//! `tow nodes`: machines and GPUs, and who has them.

use super::{assert_matches, home, home_with_gpus};

#[test]
fn this_machine() {
    let home = home();
    home.configure("clusters:\n  local: {kind: local, cpus: 3, gpus: 0}\n");
    let output = home.tow(["nodes"]).ok();
    assert_matches(
        &output.stdout,
        r"\A\S+: 0 of 3 CPUs, \S+ of \S+ memory, 0 GPU\(s\)\n\z",
    );
    let node = &home.tow(["nodes", "--json"]).ok().json()["nodes"][0];
    assert_eq!(
        (
            node["cpus"].as_u64(),
            node["cpus_used"].as_u64(),
            node["gpus"].as_array().map(Vec::len)
        ),
        (Some(3), Some(0), Some(0))
    );
    assert!(node["memory"].as_u64().unwrap() > 1 << 20);
}

#[test]
fn who_has_which_gpu() {
    let home = home_with_gpus();
    let id = home.tow(["submit", "-n", "1", "sleep", "300"]).ok().id();
    home.wait_for_state(&id, "running");
    let output = home.tow(["nodes"]).ok();
    assert_eq!(
        output
            .stdout
            .lines()
            .filter(|line| line.contains(&id))
            .count(),
        1,
        "{}",
        output.stdout
    );
    assert_eq!(
        output
            .stdout
            .lines()
            .filter(|line| line.trim_end().ends_with("free"))
            .count(),
        1,
        "{}",
        output.stdout
    );
    let gpus = home.tow(["nodes", "--json"]).ok().json()["nodes"][0]["gpus"]
        .as_array()
        .unwrap()
        .clone();
    assert_eq!(
        gpus.iter().filter(|gpu| gpu["run"] == id.as_str()).count(),
        1,
        "{gpus:?}"
    );
    home.tow(["abort", "--wait", &id]).ok();
    assert!(
        !home.tow(["nodes"]).ok().stdout.contains(&id),
        "it is given back"
    );
}

#[test]
fn of_a_cluster_that_is_not_there() {
    let home = home();
    let output = home.tow(["nodes", "-c", "loacl"]);
    assert_eq!((output.code, output.stdout.as_str()), (122, ""));
    assert!(
        output.stderr.contains("did you mean `local`"),
        "{}",
        output.stderr
    );
    assert_eq!(home.tow(["-c", "local", "nodes"]).code, 0);
}
