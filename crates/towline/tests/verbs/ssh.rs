//! `tow ssh`: in a run's place, with a rank's environment.

use super::{ended, gate, home, home_with_gpus};
use std::collections::BTreeMap;
use towline_testkit::{Home, until};

/// What PRODUCT.md promises every rank.
const OF_A_RANK: [&str; 18] = [
    "NODE_RANK",
    "MASTER_ADDR",
    "MASTER_PORT",
    "RANK",
    "LOCAL_RANK",
    "WORLD_SIZE",
    "LOCAL_WORLD_SIZE",
    "GROUP_RANK",
    "OMPI_COMM_WORLD_RANK",
    "OMPI_COMM_WORLD_SIZE",
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "OMPI_COMM_WORLD_LOCAL_SIZE",
    "AZ_BATCH_HOST_LIST",
    "AZ_BATCHAI_JOB_MASTER_NODE_IP",
    "CUDA_VISIBLE_DEVICES",
    "TOW_RUN_ID",
    "TOW_ATTEMPT",
    "FROM_THE_JOB",
];

fn variables(text: &str) -> BTreeMap<String, String> {
    text.lines()
        .filter_map(|line| line.split_once('='))
        .filter(|(name, _)| OF_A_RANK.contains(name))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

fn held(home: &Home) -> String {
    let id = home
        .tow([
            "submit",
            "--hold-on-failure",
            "1h",
            "sh",
            "-c",
            "echo left > trace; exit 4",
        ])
        .ok()
        .id();
    until("it to be held", || {
        home.show(&id)["held_until"].is_string().then_some(())
    });
    id
}

#[test]
fn a_held_run_can_be_looked_at() {
    let home = home();
    let id = held(&home);
    assert_eq!(
        home.tow(["ssh", &id, "--", "sh", "-c", "echo $TOW_RUN_ID"])
            .ok()
            .stdout,
        format!("{id}\n")
    );
    assert_eq!(
        home.tow(["ssh", &id[id.len() - 5..], "cat", "trace"])
            .ok()
            .stdout,
        "left\n"
    );
    assert!(
        home.tow(["ps"]).ok().stdout.contains("failed, held"),
        "looking changes nothing"
    );
}

#[test]
fn the_command_s_words_and_code_are_kept() {
    let home = home();
    let id = held(&home);
    assert_eq!(
        home.tow([
            "ssh",
            &id,
            "--",
            "sh",
            "-c",
            "echo \"$1\"; exit 7",
            "sh",
            "a  b"
        ])
        .code,
        7
    );
    assert_eq!(
        home.tow(["ssh", &id, "printf", "<%s>", "a  b", "", "--rank", "$HOME"])
            .ok()
            .stdout,
        "<a  b><><--rank><$HOME>"
    );
    let output = home
        .tow(["ssh", &id, "--", "sh", "-c", "echo out; echo err >&2"])
        .ok();
    assert_eq!(
        (output.stdout.as_str(), output.stderr.as_str()),
        ("out\n", "err\n")
    );
    let missing = home.tow(["ssh", &id, "--", "no-such-program"]);
    assert_eq!((missing.code, missing.stdout.as_str()), (123, ""));
}

#[test]
fn without_a_command_it_is_a_shell() {
    let home = home().with("SHELL", "/bin/sh");
    let id = held(&home);
    let mut child = home
        .command(["ssh", &id])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Write::write_all(
        &mut child.stdin.take().unwrap(),
        b"echo in $TOW_RUN_ID; exit 3\n",
    )
    .unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stdout).into_owned()
        ),
        (Some(3), format!("in {id}\n"))
    );
}

#[test]
fn the_environment_is_the_rank_s_own() {
    let home = home_with_gpus();
    let id = home
        .tow([
            "submit",
            "-n",
            "1",
            "--launch",
            "2",
            "--env",
            "FROM_THE_JOB=yes",
            "sh",
            "-c",
            &format!("env > rank-$RANK; touch ready-$RANK; {}", gate("go")),
        ])
        .ok()
        .id();
    for rank in ["0", "1"] {
        until("its variables", || {
            home.project()
                .join(format!("ready-{rank}"))
                .exists()
                .then_some(())
        });
        let own = variables(&home.read(&format!("rank-{rank}")));
        assert_eq!(own.len(), OF_A_RANK.len(), "{own:?}");
        let inside = variables(
            &home
                .tow(["ssh", &id, "--rank", rank, "--", "env"])
                .ok()
                .stdout,
        );
        assert_eq!(inside, own, "rank {rank}");
    }
    let none = home.tow(["ssh", &id, "--rank", "2", "--", "true"]);
    assert_eq!(none.code, 122);
    assert!(none.stderr.contains("ranks 0 to 1"), "{}", none.stderr);
    home.write("go", "");
    home.tow(["wait", &id]).ok();
}

#[test]
fn it_is_where_the_run_started() {
    let home = home();
    std::fs::create_dir(home.project().join("sub")).unwrap();
    home.write(
        "job.yaml",
        "code: {workdir: sub}\nhold_on_failure: 1h\ncommand: 'false'\n",
    );
    let id = home.tow(["submit", "-f", "job.yaml"]).ok().id();
    until("it to be held", || {
        home.show(&id)["held_until"].is_string().then_some(())
    });
    let folder = home.project().join("sub").canonicalize().unwrap();
    assert_eq!(
        home.tow(["ssh", &id, "pwd"]).ok().stdout.trim_end(),
        folder.display().to_string()
    );
}

#[test]
fn this_shell_s_variables_do_not_leak_in() {
    let mut home = home();
    let id = ended(&home, &["--hold-on-failure", "1s", "true"]);
    home.set("ONLY_HERE", "now");
    assert_eq!(
        home.tow(["ssh", &id, "--", "sh", "-c", "echo \"[$ONLY_HERE]\""])
            .stdout,
        "[]\n"
    );
}
