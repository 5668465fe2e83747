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
    assert_eq!(home.tow(["snapshot", "prune", "--json"]).ok().json()["snapshots"].as_array().unwrap().len(), 0);
    // As if both had been taken long ago.
    let folder = home.state().snapshots().join("snapshots");
    for entry in fs::read_dir(folder).unwrap().flatten() {
        fs::File::open(entry.path()).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
    }
    let plan = home.tow(["snapshot", "prune", "--dry-run", "--json"]).ok().json();
    assert_eq!(plan["snapshots"], serde_json::json!([idle]));
    assert_eq!((&plan["kept"], &plan["done"]), (&1.into(), &false.into()));
    assert_eq!(home.tow(["snapshot", "ls", "--json"]).ok().json()["snapshots"].as_array().unwrap().len(), 2);
    home.tow(["snapshot", "prune", "--yes"]).ok();
    let left = home.tow(["snapshot", "ls", "--json"]).ok().json();
    assert_eq!(left["snapshots"][0]["id"], needed.as_str());
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
    assert!(refused.stderr.contains("--latest-code"), "{}", refused.stderr);
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
