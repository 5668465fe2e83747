//! `tow daemon`: there when needed, and runs do not need it.

use super::{assert_matches, ended, gate, home};
use serde_json::json;
use std::path::PathBuf;
use towline_testkit::{Home, exposure, until};

fn stop(home: &Home) {
    home.tow(["daemon", "stop"]).ok();
    until("the daemon to leave", || {
        home.daemon().is_none().then_some(())
    });
}

#[test]
fn asking_does_not_start_one() {
    let home = home();
    let output = home.tow(["daemon", "status"]).ok();
    assert!(
        output.stdout.starts_with("no daemon is running"),
        "{}",
        output.stdout
    );
    assert_eq!(
        home.tow(["daemon", "status", "--json"]).ok().json(),
        json!({"running": false})
    );
    assert_eq!(
        home.tow(["daemon", "stop"]).ok().stdout,
        "no daemon is running\n"
    );
    assert_eq!(
        home.tow(["daemon", "stop", "--json"]).ok().json(),
        json!({"stopped": false})
    );
    assert!(!home.path("state/towline").exists());
}

#[test]
fn what_it_keeps() {
    let home = home();
    home.configure("clusters:\n  local: {kind: local, cpus: 1}\n");
    let id = home.tow(["submit", "sleep", "300"]).ok().id();
    home.wait_for_state(&id, "running");
    home.tow(["submit", "true"]).ok();
    let output = home.tow(["daemon", "status"]).ok();
    assert_matches(
        &output.stdout,
        r"\Arunning: version \S+, process \d+, for \S+\n1 queued, 1 running, ",
    );
    let json = home.tow(["daemon", "status", "--json"]).ok().json();
    assert_eq!(
        (
            &json["running"],
            &json["status"]["queued"],
            &json["status"]["running"]
        ),
        (&json!(true), &json!(1), &json!(1))
    );
}

#[test]
fn runs_go_on_without_it_and_their_end_is_known() {
    let home = home();
    let id = home
        .tow(["submit", &format!("{}; echo done; exit 3", gate("go"))])
        .ok()
        .id();
    home.wait_for_state(&id, "running");
    let pid = home.daemon().unwrap();
    home.tow(["daemon", "stop"]).ok();
    until("the daemon to leave", || {
        (!towline_host::process::all().contains_key(&pid)).then_some(())
    });
    home.write("go", "");
    home.wait_for_state(&id, "failed");
    assert_eq!(home.tow(["wait", &id]).code, 3);
    assert_eq!(home.tow(["logs", &id]).ok().stdout, "done\n");
    assert_ne!(home.daemon(), Some(pid));
}

#[test]
fn reading_what_is_over_does_not_need_it() {
    let home = home();
    let id = ended(&home, &["echo", "x"]);
    stop(&home);
    for words in [
        &["ps"][..],
        &["show", &id],
        &["logs", &id],
        &["logs", "-f", &id],
        &["why", &id],
        &["query", &id],
        &["history"],
        &["history", &id],
        &["diff", &id, &id],
        &["get", &id, "."],
        &["config", "show"],
    ] {
        home.tow(words).ok();
        assert_eq!(home.daemon(), None, "{words:?} started a daemon");
    }
}

#[test]
fn the_next_that_needs_it_starts_another() {
    let home = home();
    ended(&home, &["true"]);
    let first = home.daemon().unwrap();
    stop(&home);
    assert_eq!(home.tow(["run", "echo", "again"]).ok().stdout, "again\n");
    assert_ne!(home.daemon().unwrap(), first);
}

/// A web page, or another user, could talk to a port; a socket in a folder of ours they cannot
/// reach.
#[test]
fn only_the_user_reaches_its_sockets_and_it_listens_on_no_port() {
    let home = home();
    let id = home.tow_with_open_umask(["submit", &gate("go")]).ok().id();
    home.wait_for_state(&id, "running");
    let sockets = exposure::sockets(&home.path(""));
    let endings: Vec<bool> = sockets
        .iter()
        .map(|path| path.parent() == Some(home.state().root()))
        .collect();
    assert!(
        endings.contains(&true) && endings.contains(&false),
        "the daemon's and a runner's: {sockets:?}"
    );
    for socket in &sockets {
        let folder = socket.parent().unwrap();
        assert_eq!(exposure::mode(folder), Some(0o700), "{}", socket.display());
    }
    let processes: Vec<i32> = home
        .runner_processes()
        .into_iter()
        .map(|(pid, _)| pid)
        .chain(home.daemon())
        .collect();
    assert!(processes.len() > 1, "{processes:?}");
    for pid in processes {
        assert_eq!(
            exposure::listens_at(pid),
            Vec::<String>::new(),
            "{}",
            std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default()
        );
    }
    assert_eq!(exposure::sockets(&home.project()), Vec::<PathBuf>::new());
    home.write("go", "");
    home.tow(["wait", &id]).ok();
}
