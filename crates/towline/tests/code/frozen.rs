//! Each run gets the tree it was submitted with.

use super::home;
use std::fs;
use towline_testkit::until;

const WAIT: &str = "while [ ! -e \"$GO\" ]; do sleep 0.01; done";

#[test]
fn each_run_prints_the_tree_it_was_submitted_with() {
    let mut home = home();
    home.configure("clusters:\n  local: {kind: local, cpus: 1}\n");
    let go = home.path("go").display().to_string();
    home.set("GO", &go);
    let holder = home
        .tow(["submit", "--cpus", "1", "sh", "-c", WAIT])
        .ok()
        .id();
    home.wait_for_state(&holder, "running");
    home.write("train.py", "print('first')\n");
    home.write("lib/part.py", "x = 1\n");
    let command = ["submit", "--cpus", "1", "sh", "-c", "cat train.py lib/*.py"];
    let first = home.tow(command).ok().id();
    // The same length at once: neither size nor a coarse clock would tell.
    home.write("train.py", "print('other')\n");
    home.write("lib/more.py", "y = 2\n");
    let second = home.tow(command).ok().id();
    home.write("train.py", "print('today')\n");
    fs::remove_file(home.project().join("lib/part.py")).unwrap();
    home.tow(["init"]).ok();
    // Still queued behind the holder: the same again replaces it.
    let again = home.tow(["resubmit", &first]).ok().id();
    let latest = home.tow(["resubmit", &second, "--latest-code"]).ok().id();
    let second_again = home.tow(["submit", "--from", &again]).ok().id();
    fs::write(&go, "").unwrap();
    for run in [&again, &latest, &second_again] {
        home.tow(["wait", run]).ok();
    }
    assert_eq!(
        home.tow(["logs", &again]).ok().stdout,
        "print('first')\nx = 1\n"
    );
    assert_eq!(
        home.tow(["logs", &latest]).ok().stdout,
        "print('today')\ny = 2\n"
    );
    assert_eq!(
        home.tow(["logs", &second_again]).ok().stdout,
        "print('today')\ny = 2\n"
    );
    assert_eq!(home.state_of(&first), "cancelled");
}

#[test]
fn a_queued_run_is_not_touched_by_what_happens_to_its_folder() {
    let mut home = home();
    home.configure("clusters:\n  local: {kind: local, cpus: 1}\n");
    let go = home.path("go").display().to_string();
    home.set("GO", &go);
    home.write("deep/er/code.sh", "echo frozen");
    let holder = home
        .tow(["submit", "--cpus", "1", "sh", "-c", WAIT])
        .ok()
        .id();
    let queued = home
        .tow(["submit", "--cpus", "1", "sh", "deep/er/code.sh"])
        .ok()
        .id();
    fs::remove_dir_all(home.project()).unwrap();
    fs::create_dir(home.project()).unwrap();
    fs::write(&go, "").unwrap();
    home.tow(["wait", &holder, &queued]).ok();
    assert_eq!(home.tow(["logs", &queued]).ok().stdout, "frozen\n");
    // And again, from nothing but the snapshot.
    let again = home.tow(["resubmit", &queued]).ok().id();
    home.tow(["wait", &again]).ok();
    assert_eq!(home.tow(["logs", &again]).ok().stdout, "frozen\n");
}

#[test]
fn runs_do_not_write_into_each_other_or_into_the_folder() {
    let home = home();
    home.write("shared.txt", "as it was\n");
    let runs: Vec<String> = (0..6)
        .map(|number| {
            home.tow([
                "submit",
                "sh",
                "-c",
                &format!("echo {number} > shared.txt; echo {number} > own-{number}; ls | wc -l"),
            ])
            .ok()
            .id()
        })
        .collect();
    for (number, run) in runs.iter().enumerate() {
        home.tow(["wait", run]).ok();
        assert_eq!(home.tow(["logs", run]).ok().stdout.trim(), "2");
        home.tow(["get", run, "shared.txt", "--to", "got"]).ok();
        assert_eq!(home.read("got/shared.txt"), format!("{number}\n"));
    }
    assert_eq!(home.read("shared.txt"), "as it was\n");
    assert!(!home.project().join("own-0").exists());
}

#[test]
fn a_sweep_shares_one_snapshot_and_each_run_has_its_own_tree() {
    let home = home();
    home.write("a.sh", "echo $1 > out; cat out");
    let id = home
        .tow(["submit", "--sweep", "v=1-5", "sh", "a.sh", "${{v}}"])
        .ok()
        .id();
    home.tow(["wait", &id]).ok();
    for number in 1..=5 {
        assert_eq!(
            home.tow(["logs", &format!("{id}-{number}")])
                .ok()
                .stdout
                .trim(),
            number.to_string()
        );
    }
    let listed = home.tow(["snapshot", "ls", "--json"]).ok().json();
    assert_eq!(listed["snapshots"].as_array().unwrap().len(), 1);
    assert_eq!(listed["snapshots"][0]["runs"], 5);
}

#[test]
fn the_record_says_which_code_it_was() {
    let home = home();
    home.write("a", "1");
    let git = |words: &[&str]| {
        let mut command = std::process::Command::new("git");
        command
            .args(words)
            .current_dir(home.project())
            .env("HOME", home.path("home"));
        command
            .env("GIT_AUTHOR_NAME", "a")
            .env("GIT_AUTHOR_EMAIL", "a@b")
            .env("GIT_COMMITTER_NAME", "a")
            .env("GIT_COMMITTER_EMAIL", "a@b");
        assert!(command.output().unwrap().status.success(), "{words:?}");
    };
    git(&["init", "-q", "-b", "main"]);
    git(&["add", "."]);
    git(&["commit", "-q", "-m", "x"]);
    let clean = home.tow(["submit", "true"]).ok().id();
    home.write("a", "2");
    let dirty = home.tow(["submit", "true"]).ok().id();
    let (one, other) = (home.show(&clean), home.show(&dirty));
    assert_eq!(
        (&one["dirty"], &other["dirty"]),
        (&false.into(), &true.into())
    );
    assert_eq!(one["commit"], other["commit"]);
    assert_ne!(one["snapshot"], other["snapshot"]);
    assert!(other["code"].as_str().unwrap().ends_with("/code"));
    let differences = home.tow(["diff", &clean, &dirty, "--json"]).ok().json();
    let what: Vec<&str> = differences["differences"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["what"].as_str().unwrap())
        .collect();
    assert!(what.contains(&"code a"), "{what:?}");
    assert!(what.contains(&"commit"), "{what:?}");
    let text = home.tow(["diff", &clean, &dirty]).ok().stdout;
    assert!(
        text.contains("--- one/a") && text.contains("-1") && text.contains("+2"),
        "{text}"
    );
    home.tow(["wait", &clean, &dirty]).ok();
}

#[test]
fn whoever_is_killed_around_the_code_leaves_nothing_wrong() {
    for point in [
        "client.snapshot.taken",
        "runner.layout.before",
        "runner.layout.done",
    ] {
        let mut home = home();
        for number in 0..200 {
            home.write(
                &format!("d{}/f{number}", number % 9),
                &"x".repeat(number * 50),
            );
        }
        home.write(
            "retry.yaml",
            "command: 'find . -type f | wc -l'\nretry: {when: [node_failed], max: 3}\n",
        );
        let token = home.path("token");
        fs::write(&token, "").unwrap();
        home.set("TOW_CRASH_AT", point);
        home.set("TOW_CRASH_ONCE", &token.display().to_string());
        let submitted = home.tow(["submit", "-f", "retry.yaml"]);
        if point.starts_with("client") {
            assert_eq!(submitted.code, 137);
            assert!(
                home.tow(["ps", "--json"]).ok().json()["runs"]
                    .as_array()
                    .unwrap()
                    .is_empty()
            );
            home.tow(["run", "-f", "retry.yaml"]).ok();
            continue;
        }
        let run = submitted.ok().id();
        home.tow(["wait", &run]).ok();
        assert_eq!(home.show(&run)["attempt"], 2, "{point}");
        assert_eq!(
            home.tow(["logs", &run, "--attempt", "2"])
                .ok()
                .stdout
                .trim(),
            "201",
            "{point}"
        );
        home.tow(["snapshot", "check"]).ok();
    }
}

#[test]
fn damage_is_found_before_anything_runs() {
    let home = home();
    home.write("a.sh", "echo ran");
    let run = home.tow(["submit", "sh", "a.sh"]).ok().id();
    home.tow(["wait", &run]).ok();
    let packs = home.state().snapshots().join("packs");
    let pack = fs::read_dir(&packs)
        .unwrap()
        .flatten()
        .flat_map(|folder| fs::read_dir(folder.path()).unwrap().flatten())
        .next()
        .unwrap()
        .path();
    let mut bytes = fs::read(&pack).unwrap();
    bytes[3] ^= 0x10;
    fs::remove_file(&pack).unwrap();
    fs::write(&pack, bytes).unwrap();
    let again = home.tow(["resubmit", &run]).ok().id();
    let waited = home.tow(["wait", &again]);
    assert_eq!(waited.code, 1, "{waited:?}");
    let shown = home.show(&again);
    assert_eq!(shown["reason"], "not_started");
    assert!(
        shown["detail"].as_str().unwrap().contains("damaged"),
        "{shown}"
    );
    assert_eq!(home.tow(["logs", &again]).stdout, "");
    let checked = home.tow(["snapshot", "check", "--json"]);
    assert_eq!(checked.code, 123);
    assert_eq!(
        checked.json()["damage"][0]["touches"][0]["files"][0],
        "a.sh"
    );
    until("it to be over", || {
        (home.state_of(&again) == "failed").then_some(())
    });
}
