//! The daemon comes and goes; runs do not notice.

use super::home;
use rustix::process::Signal;
use std::fs;
use towline_host::process;
use towline_testkit::until;

#[test]
fn a_killed_daemon_harms_no_job_and_the_next_learns_the_true_end() {
    let home = home();
    let id = home
        .tow([
            "submit",
            "sh",
            "-c",
            "touch up; while [ ! -e go ]; do sleep 0.01; done; exit 5",
        ])
        .ok()
        .id();
    until("the job to run", || {
        home.project().join("up").exists().then_some(())
    });
    let first = home.daemon().unwrap();
    assert!(home.kill_daemon());
    home.write("go", "");
    home.wait_for_state(&id, "failed");
    assert_eq!(home.show(&id)["exit_code"], 5);
    until("the next daemon", || {
        home.daemon().filter(|next| *next != first)
    });
}

#[test]
fn an_adopted_run_can_still_be_aborted() {
    let home = home();
    let id = home
        .tow(["submit", "sh", "-c", "touch up; sleep 1000"])
        .ok()
        .id();
    until("the job to run", || {
        home.project().join("up").exists().then_some(())
    });
    assert!(home.kill_daemon() && !home.job_processes().is_empty());
    home.tow(["abort", &id, "--wait"]).ok();
    assert_eq!(home.state_of(&id), "cancelled");
    assert!(home.job_processes().is_empty());
}

#[test]
fn reading_works_without_a_daemon_and_tells_the_truth() {
    let home = home();
    let id = home
        .tow([
            "submit",
            "sh",
            "-c",
            "touch up; while [ ! -e go ]; do sleep 0.01; done; echo out",
        ])
        .ok()
        .id();
    until("the job to run", || {
        home.project().join("up").exists().then_some(())
    });
    // No daemon can come up: its socket's place is taken by a folder.
    assert!(home.kill_daemon());
    let socket = home.state().root().join("daemon.sock");
    let _ = fs::remove_file(&socket);
    fs::create_dir(&socket).unwrap();
    assert_eq!(home.state_of(&id), "running");
    home.write("go", "");
    until("the end to show", || {
        (home.state_of(&id) == "succeeded").then_some(())
    });
    assert_eq!(home.tow(["logs", &id]).ok().stdout, "out\n");
    assert!(home.tow(["ps"]).ok().stdout.contains("succeeded"));
    fs::remove_dir(&socket).unwrap();
    home.wait_for_state(&id, "succeeded");
}

#[test]
fn a_newer_tow_replaces_an_older_daemon_and_leaves_its_runs_alone() {
    let mut home = home();
    let id = home
        .tow([
            "submit",
            "sh",
            "-c",
            "touch up; while [ ! -e go ]; do sleep 0.01; done; echo survived",
        ])
        .ok()
        .id();
    until("the job to run", || {
        home.project().join("up").exists().then_some(())
    });
    let old = home.daemon().unwrap();
    let version = env!("CARGO_PKG_VERSION");
    let newer = "9".repeat(version.find('.').unwrap()) + &version[version.find('.').unwrap()..];
    let bytes = fs::read(home.binary()).unwrap();
    let mark = format!("towline-version:{version};").into_bytes();
    let at = bytes
        .windows(mark.len())
        .position(|window| window == mark)
        .expect("the version is marked");
    let mut patched = bytes;
    patched[at..at + mark.len()].copy_from_slice(format!("towline-version:{newer};").as_bytes());
    let binary = home.path("tow-newer");
    towline_testkit::program(&binary, patched);
    let older = home.binary().to_owned();
    home.use_binary(&binary);
    assert_eq!(home.tow(["--version"]).stdout, format!("tow {newer}\n"));
    home.tow(["run", "true"]).ok();
    let status = home.tow(["daemon", "status", "--json"]).json();
    assert_eq!(status["status"]["version"], newer.as_str());
    assert_ne!(home.daemon(), Some(old));
    assert_eq!(home.state_of(&id), "running");
    // The older program goes on with the newer daemon.
    home.use_binary(&older);
    home.tow(["run", "true"]).ok();
    home.write("go", "");
    home.tow(["wait", &id]).ok();
    assert_eq!(home.tow(["logs", &id]).stdout, "survived\n");
}

#[test]
fn there_is_one_daemon_however_many_ask_at_once() {
    let home = home();
    let children: Vec<_> = (0..12).map(|_| home.spawn(["submit", "true"])).collect();
    for child in children {
        assert!(child.wait_with_output().unwrap().status.success());
    }
    home.tow(["wait"]).ok();
    let state = home.state().root().display().to_string();
    let daemons = process::all().into_keys().filter(|pid| {
        fs::read_to_string(format!("/proc/{pid}/cmdline"))
            .is_ok_and(|words| words.contains("daemon") && words.contains(&state))
    });
    assert_eq!(daemons.count(), 1);
    assert_eq!(
        home.tow(["ps", "--json"]).json()["runs"]
            .as_array()
            .unwrap()
            .len(),
        12
    );
}

#[test]
fn it_leaves_when_idle_and_nothing_of_it_stays() {
    let home = home().with("TOW_DAEMON_IDLE_SECONDS", "1");
    home.tow(["run", "true"]).ok();
    let pid = home.daemon().unwrap();
    until("the daemon to leave", || {
        process::facts(pid)
            .is_none_or(|facts| facts.zombie)
            .then_some(())
    });
    until("its runners to leave", || {
        home.runner_processes().is_empty().then_some(())
    });
    assert!(!home.state().root().join("daemon.sock").exists());
}

#[test]
fn its_files_are_private() {
    use std::os::unix::fs::PermissionsExt;
    let home = home();
    home.tow(["run", "echo", "x"]).ok();
    let mut open = vec![home.state().root().to_owned()];
    while let Some(path) = open.pop() {
        let mode = fs::symlink_metadata(&path).unwrap().permissions().mode();
        if path.is_dir() {
            assert_eq!(mode & 0o077, 0, "{} is open to others", path.display());
            open.extend(
                fs::read_dir(&path)
                    .unwrap()
                    .flatten()
                    .map(|entry| entry.path()),
            );
        }
    }
}

#[test]
fn a_stopped_process_is_no_reason_to_wait_for_ever() {
    let home = home().with("TOW_GRACE_MILLIS", "200");
    let id = home
        .tow(["submit", "sh", "-c", "echo $$ > pid; sleep 1000"])
        .ok()
        .id();
    let pid: i32 = until("the job to run", || home.read("pid").trim().parse().ok());
    process::signal(pid, Signal::STOP);
    home.tow(["abort", &id, "--wait"]).ok();
    assert_eq!(home.state_of(&id), "cancelled");
}
