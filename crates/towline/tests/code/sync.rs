//! `tow sync`, and folders that are data.

use super::home;
use std::fs;
use towline_testkit::Home;

fn with_store() -> Home {
    let home = home();
    fs::create_dir(home.path("nas")).unwrap();
    home.configure(&format!(
        "datastores:\n  nas: {{kind: folder, path: {}}}\nfolders:\n  data: {{datastore: nas, path: \
            sets}}\nsync: {{datastore: nas, path: mirror/code, ignore: [notes]}}\n",
        home.path("nas").display()
    ));
    home
}

#[test]
fn the_code_is_mirrored_by_the_rules_and_nothing_is_sent_twice() {
    let home = with_store();
    home.write("a.py", "a");
    home.write("lib/b.py", "b");
    home.write("notes/n", "left out");
    home.write(".venv/x", "left out");
    home.write("__pycache__/x", "left out");
    let first = home.tow(["sync", "--json"]).ok().json();
    assert_eq!(first["transfers"][0]["sent"], 2, "{first}");
    let there = |name: &str| fs::read_to_string(home.path("nas/mirror/code").join(name)).ok();
    assert_eq!(
        (
            there("a.py").as_deref(),
            there("lib/b.py").as_deref(),
            there("notes/n"),
            there(".venv/x")
        ),
        (Some("a"), Some("b"), None, None)
    );
    assert_eq!(
        home.tow(["sync", "--json"]).ok().json()["transfers"][0]["sent"],
        0
    );
    fs::remove_file(home.project().join("lib/b.py")).unwrap();
    home.tow(["sync"]).ok();
    assert!(
        there("lib/b.py").is_some(),
        "nothing goes unless it is asked for"
    );
    home.tow(["sync", "--delete", "--yes"]).ok();
    assert_eq!(there("lib/b.py"), None);
    home.tow(["sync", "nas:elsewhere"]).ok();
    assert!(home.path("nas/elsewhere/a.py").exists());
    assert_eq!(home.tow(["sync", "nas:"]).code, 123);
    assert_eq!(home.tow(["sync", "nasse:x"]).code, 122);
}

#[test]
fn a_data_folder_is_there_in_every_run() {
    let home = with_store();
    fs::create_dir_all(home.path("nas/sets")).unwrap();
    fs::write(home.path("nas/sets/from-store"), "").unwrap();
    assert_eq!(home.tow(["run", "ls", "data"]).ok().stdout, "from-store\n");
    // One that is here wins.
    home.write("data/mine", "");
    assert_eq!(home.tow(["run", "ls", "data"]).ok().stdout, "mine\n");
}

#[test]
fn many_folders_need_few_descriptors() {
    let home = home();
    for number in 0..600 {
        fs::create_dir_all(home.project().join(format!("d{number}/e"))).unwrap();
    }
    let mut command = std::process::Command::new("sh");
    let tow = home.command(["init", "--json"]);
    command
        .args(["-c", "ulimit -n 64; exec \"$0\" init --json"])
        .arg(home.binary())
        .current_dir(home.project());
    command.env_clear().envs(
        tow.get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn what_was_left_out_here_is_not_removed_there() {
    let home = with_store();
    home.write("data/coco/a", "only copy");
    home.write("data/voc/b", "b");
    home.tow(["up", "data"]).ok();
    // The usual way to free a disk: the folder moves, a link stays.
    fs::rename(home.project().join("data/coco"), home.path("moved")).unwrap();
    std::os::unix::fs::symlink(home.path("moved"), home.project().join("data/coco")).unwrap();
    fs::remove_file(home.project().join("data/voc/b")).unwrap();
    let said = home.tow(["up", "data", "--delete", "--yes"]).ok();
    assert!(said.stderr.contains("stay there"), "{}", said.stderr);
    assert_eq!(
        fs::read_to_string(home.path("nas/sets/coco/a")).unwrap(),
        "only copy"
    );
    assert!(!home.path("nas/sets/voc/b").exists());
    home.write("lib/c", "c");
    home.write("main.py", "m");
    home.tow(["sync"]).ok();
    fs::rename(home.project().join("lib"), home.path("lib")).unwrap();
    std::os::unix::fs::symlink(home.path("lib"), home.project().join("lib")).unwrap();
    home.tow(["sync", "--delete", "--yes"]).ok();
    assert!(home.path("nas/mirror/code/lib/c").exists());
}

#[test]
fn a_resubmission_keeps_the_stores_of_its_run() {
    let home = with_store();
    fs::create_dir_all(home.path("nas/in")).unwrap();
    fs::write(home.path("nas/in/x"), "right").unwrap();
    fs::create_dir_all(home.path("other/in")).unwrap();
    fs::write(home.path("other/in/x"), "wrong").unwrap();
    home.write(
        "job.yaml",
        "io:\n  in: {datastore: nas, path: in, mode: read}\nscript: |\n  cat ${{in}}/x\n",
    );
    let run = home.tow(["submit", "-f", "job.yaml"]).ok().id();
    home.tow(["wait", &run]).ok();
    // Another project, where the same name means another place.
    let project = home.path("project-b");
    fs::create_dir(&project).unwrap();
    fs::write(
        project.join("towline.yaml"),
        format!(
            "datastores:\n  nas: {{kind: folder, path: {}}}\n",
            home.path("other").display()
        ),
    )
    .unwrap();
    assert!(
        home.command(["trust", "--yes"])
            .current_dir(&project)
            .status()
            .unwrap()
            .success()
    );
    let again = home
        .command(["resubmit", &run])
        .current_dir(&project)
        .output()
        .unwrap();
    assert!(again.status.success(), "{again:?}");
    let again = String::from_utf8_lossy(&again.stdout).trim().to_owned();
    home.tow(["wait", &again]).ok();
    assert_eq!(home.tow(["logs", &again]).ok().stdout, "right");
}
