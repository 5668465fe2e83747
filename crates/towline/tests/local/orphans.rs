//! No orphan survives a run, whatever it forked, however it ended.

use super::home;
use rustix::process::Signal;
use towline_host::process;
use towline_testkit::{Home, ability, until};

/// Leaves four kinds of orphans, each writing its pid: a background child, one that ignores
/// SIGTERM, one in a session of its own with a cleared environment, and a double fork.
const FORKER: &str = r#"
sleep 1000 & echo $! > pids
(trap '' TERM; echo $(sh -c 'echo $PPID') >> pids; while :; do sleep 1; done) &
env -i PATH="$PATH" setsid sh -c 'echo $$ >> pids; exec sleep 1000' &
python3 -c '
import os, time, signal
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        for name in list(os.environ): del os.environ[name]
        os.close(0); os.close(1); os.close(2)
        open("pids", "a").write(f"{os.getpid()}\n")
        time.sleep(1000)
    os._exit(0)
os.wait()
'
while [ $(wc -l < pids) -lt 4 ]; do sleep 0.01; done
"#;

fn pids(home: &Home) -> Vec<i32> {
    let pids: Vec<i32> = home
        .read("pids")
        .lines()
        .filter_map(|line| line.trim().parse().ok())
        .collect();
    assert_eq!(pids.len(), 4, "{pids:?}");
    pids
}

fn alive(pids: &[i32]) -> Vec<i32> {
    pids.iter()
        .copied()
        .filter(|pid| process::facts(*pid).is_some_and(|facts| !facts.zombie))
        .collect()
}

#[test]
fn none_survives_a_run_that_ends_well() {
    let home = home();
    home.write("forker.sh", FORKER);
    let id = home.tow(["submit", "bash", "forker.sh"]).ok().id();
    home.tow(["wait", &id]).ok();
    assert_eq!(
        alive(&pids(&home)),
        Vec::<i32>::new(),
        "when the end is told, nothing is left"
    );
}

#[test]
fn none_survives_an_abort() {
    let home = home();
    home.write("forker.sh", &format!("{FORKER}\ntouch ready; sleep 1000\n"));
    let id = home.tow(["submit", "bash", "forker.sh"]).ok().id();
    until("the job to fork", || {
        home.project().join("ready").exists().then_some(())
    });
    let pids = pids(&home);
    home.tow(["abort", &id, "--wait"]).ok();
    assert_eq!(alive(&pids), Vec::<i32>::new());
    assert_eq!(home.state_of(&id), "cancelled");
}

fn runner_of(home: &Home, id: &str, kind: &str) -> i32 {
    let shown = home.show(id);
    let runner = shown["events"]
        .as_array()
        .unwrap()
        .iter()
        .find_map(|event| event["runner"].as_str())
        .unwrap()
        .to_owned();
    home.runner_processes()
        .into_iter()
        .find(|(_, words)| words.contains(kind) && words.contains(&runner))
        .unwrap()
        .0
}

fn killed(kinds: &[&str]) {
    let home = home();
    home.write("forker.sh", &format!("{FORKER}\ntouch ready; sleep 1000\n"));
    let id = home.tow(["submit", "bash", "forker.sh"]).ok().id();
    until("the job to fork", || {
        home.project().join("ready").exists().then_some(())
    });
    let pids = pids(&home);
    let targets: Vec<i32> = kinds
        .iter()
        .map(|kind| runner_of(&home, &id, kind))
        .collect();
    for target in targets {
        process::signal(target, Signal::KILL);
    }
    home.wait_for_state(&id, "failed");
    assert_eq!(home.show(&id)["reason"], "node_failed");
    until("every orphan to be gone", || {
        alive(&pids).is_empty().then_some(())
    });
}

#[test]
fn none_survives_a_killed_runner() {
    killed(&["__runner"]);
}

#[test]
fn none_survives_a_killed_guard_and_runner() {
    killed(&["__guard", "__runner"]);
}

/// The worst case: the daemon that started them is gone, so nobody is left above.
#[test]
fn none_survives_when_daemon_guard_and_runner_are_killed() {
    let home = home();
    home.write("forker.sh", &format!("{FORKER}\ntouch ready; sleep 1000\n"));
    let id = home.tow(["submit", "bash", "forker.sh"]).ok().id();
    until("the job to fork", || {
        home.project().join("ready").exists().then_some(())
    });
    let pids = pids(&home);
    let targets = ["__guard", "__runner"].map(|kind| runner_of(&home, &id, kind));
    assert!(home.kill_daemon());
    for target in targets {
        process::signal(target, Signal::KILL);
    }
    home.wait_for_state(&id, "failed");
    if !ability::may_make_groups() {
        // What left its group and cleared its environment can only be found by a control group.
        ability::not_run("orphans of orphans, for control groups are not delegated to this user");
        for pid in pids {
            process::signal(pid, Signal::KILL);
        }
        return;
    }
    until("every orphan to be gone", || {
        alive(&pids).is_empty().then_some(())
    });
}

#[test]
fn a_killed_guard_harms_no_job() {
    let home = home();
    let id = home
        .tow([
            "submit",
            "sh",
            "-c",
            "touch ready; while [ ! -e go ]; do sleep 0.01; done; echo fine",
        ])
        .ok()
        .id();
    until("the job to run", || {
        home.project().join("ready").exists().then_some(())
    });
    process::signal(runner_of(&home, &id, "__guard"), Signal::KILL);
    home.write("go", "");
    home.tow(["wait", &id]).ok();
    assert_eq!(home.tow(["logs", &id]).stdout, "fine\n");
}
