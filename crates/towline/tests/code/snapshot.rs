//! `tow snapshot`.

use super::home;
use std::fs;

#[test]
fn prune_is_a_plan_first_and_keeps_what_runs_need() {
    let home = home();
    home.write("a", "needed by a run");
    let run = home.tow(["submit", "true"]).ok().id();
    home.tow(["wait", &run]).ok();
    let needed = home.show(&run)["snapshot"].as_str().unwrap().to_owned();
    home.write("a", "needed by nobody");
    let idle = home.tow(["init"]).ok().stdout.trim().to_owned();
    assert_ne!(idle, needed);
    assert_eq!(
        home.tow(["snapshot", "prune", "--json"]).ok().json()["snapshots"]
            .as_array()
            .unwrap()
            .len(),
        0
    );
    // As if both had been taken long ago.
    let folder = home.state().snapshots().join("snapshots");
    for entry in fs::read_dir(folder).unwrap().flatten() {
        fs::File::open(entry.path())
            .unwrap()
            .set_modified(std::time::UNIX_EPOCH)
            .unwrap();
    }
    let plan = home
        .tow(["snapshot", "prune", "--dry-run", "--json"])
        .ok()
        .json();
    assert_eq!(plan["snapshots"], serde_json::json!([idle]));
    assert_eq!((&plan["kept"], &plan["done"]), (&1.into(), &false.into()));
    assert_eq!(
        home.tow(["snapshot", "ls", "--json"]).ok().json()["snapshots"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    home.tow(["snapshot", "prune", "--yes"]).ok();
    let left = home.tow(["snapshot", "ls", "--json"]).ok().json();
    assert_eq!(
        (
            left["snapshots"].as_array().unwrap().len(),
            &left["snapshots"][0]["id"]
        ),
        (1, &needed.as_str().into())
    );
    home.tow(["snapshot", "check"]).ok();
    let again = home.tow(["resubmit", &run]).ok().id();
    home.tow(["wait", &again]).ok();
    // What was dropped comes back when it is needed again, although its tree did not change.
    assert_eq!(home.tow(["init"]).ok().stdout.trim(), idle);
    home.tow(["snapshot", "get", &idle[..8], "out"]).ok();
    assert_eq!(home.read("out/a"), "needed by nobody");
}

#[test]
fn pruned_code_cannot_be_resubmitted_and_nothing_is_changed() {
    let home = home();
    home.write("a", "x");
    let run = home.tow(["submit", "sleep", "100"]).ok().id();
    home.wait_for_state(&run, "running");
    fs::remove_dir_all(home.state().snapshots().join("snapshots")).unwrap();
    let refused = home.tow(["resubmit", &run]);
    assert_eq!(refused.code, 123);
    assert!(
        refused.stderr.contains("--latest-code"),
        "{}",
        refused.stderr
    );
    assert_eq!(home.state_of(&run), "running");
    home.tow(["abort", &run]).ok();
}

#[test]
fn get_lays_it_out_and_refuses_what_is_there() {
    let home = home();
    home.write("d/a", "x");
    let id = home.tow(["init"]).ok().stdout.trim().to_owned();
    home.tow(["snapshot", "get", &id, "out"]).ok();
    assert_eq!(home.read("out/d/a"), "x");
    assert_eq!(home.tow(["snapshot", "get", &id, "out"]).code, 123);
    assert_eq!(home.tow(["snapshot", "get", "ffffffff", "other"]).code, 122);
    assert_eq!(home.tow(["snapshot", "get", "../x", "other"]).code, 122);
}

#[test]
fn pruning_a_run_removes_its_tree_even_where_it_is_locked() {
    let home = home();
    home.write("locked/a", "x");
    let run = home.tow(["submit", "chmod", "555", "locked"]).ok().id();
    home.tow(["wait", &run]).ok();
    let folder = home.show(&run)["folder"].as_str().unwrap().to_owned();
    assert!(fs::metadata(&folder).is_ok());
    home.tow(["wait", &run]).ok();
    towline_testkit::until("it to be old enough", || {
        home.tow(["prune", "--older-than", "1s", "--yes"]).ok();
        fs::metadata(&folder).is_err().then_some(())
    });
}

#[test]
fn what_is_mounted_in_a_runs_folder_survives_its_pruning() {
    let mut home = home();
    let precious = home.path("precious");
    fs::create_dir(&precious).unwrap();
    fs::write(precious.join("file"), "somebody else's").unwrap();
    home.set("PRECIOUS", &precious.display().to_string());
    let run = home
        .tow(["submit", "sh", "-c", "mkdir m && mount --bind $PRECIOUS m"])
        .ok()
        .id();
    if home.tow(["wait", &run]).code != 0 {
        return towline_testkit::ability::not_run(
            "pruning around a mount: nothing can be mounted here",
        );
    }
    towline_testkit::until("the run to be pruned", || {
        home.tow(["prune", "--older-than", "1s", "--yes"]).ok();
        home.tow(["ps", "--json"]).ok().json()["runs"]
            .as_array()
            .unwrap()
            .is_empty()
            .then_some(())
    });
    assert_eq!(
        fs::read_to_string(precious.join("file")).unwrap(),
        "somebody else's"
    );
    assert!(!home.state().runs().join(&run).exists());
}

#[test]
fn damaged_content_is_dropped_and_stored_anew() {
    let home = home();
    home.write("a.sh", "echo good");
    home.tow(["init"]).ok();
    let packs = home.state().snapshots().join("packs");
    let pack = fs::read_dir(&packs)
        .unwrap()
        .flatten()
        .flat_map(|folder| fs::read_dir(folder.path()).unwrap().flatten())
        .next()
        .unwrap()
        .path();
    fs::remove_file(&pack).unwrap();
    fs::write(&pack, "rubbish").unwrap();
    assert_eq!(home.tow(["snapshot", "check"]).code, 123);
    assert_eq!(home.tow(["run", "sh", "a.sh"]).code, 1);
    home.tow(["snapshot", "check", "--repair"]).ok();
    assert_eq!(home.tow(["run", "sh", "a.sh"]).ok().stdout, "good\n");
    home.tow(["snapshot", "check"]).ok();
}

#[test]
fn files_that_come_and_go_are_no_reason_to_refuse() {
    use std::sync::atomic::{AtomicBool, Ordering};
    let home = home();
    for number in 0..300 {
        home.write(&format!("d/f{number}"), "x");
    }
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for name in ["a", "b"] {
            let (home, over) = (&home, &over);
            scope.spawn(move || {
                let path = home.project().join(format!("d/.{name}.swp"));
                while !over.load(Ordering::Relaxed) {
                    fs::write(&path, "swap").unwrap();
                    let _ = fs::remove_file(&path);
                }
            });
        }
        let outcomes: Vec<_> = (0..40).map(|_| home.tow(["init"])).collect();
        over.store(true, Ordering::Relaxed);
        for outcome in outcomes {
            outcome.ok();
        }
    });
}
