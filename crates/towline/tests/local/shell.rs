//! What a run has of the shell that submitted it: priority and limits; and of the shell that
//! started the daemon: nothing.

use super::home;
use rustix::process::Signal;
use std::fs;
use std::process::Command;
use towline_host::process;
use towline_testkit::{Home, Output, ability, until};

/// Prints what a process has inherited: open files, stack, nice value, CPUs.
const INHERITED: &str = "ulimit -S -n; ulimit -S -s; nice; taskset -p $$ | sed 's/.*: //'";

/// `tow` behind words of a shell that narrow it.
fn behind(home: &Home, shell: &str, words: &[&str]) -> Output {
    let tow = home.command(words.iter().copied());
    let mut command = Command::new("sh");
    command
        .arg("-c")
        .arg(format!("{shell} \"$@\""))
        .arg("sh")
        .arg(tow.get_program())
        .args(tow.get_args())
        .current_dir(home.project())
        .env_clear();
    command.envs(
        tow.get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    command.output().unwrap().into()
}

fn inherited_here() -> String {
    String::from_utf8(
        Command::new("sh")
            .args(["-c", INHERITED])
            .output()
            .unwrap()
            .stdout,
    )
    .unwrap()
}

#[test]
fn a_run_has_nothing_of_the_shell_that_started_the_daemon() {
    let home = home();
    let narrow =
        "trap '' INT HUP QUIT; ulimit -S -n 100; ulimit -S -s 1024; exec taskset -c 0 nice -n 15";
    assert_eq!(behind(&home, narrow, &["run", "true"]).code, 0);
    let daemon = home.daemon().unwrap();
    assert_eq!(
        home.tow(["run", "sh", "-c", INHERITED]).ok().stdout,
        inherited_here()
    );
    assert_eq!(
        home.tow(["run", "kill -INT $$"]).code,
        130,
        "a signal that the other shell ignored"
    );
    assert_eq!(
        home.daemon(),
        Some(daemon),
        "what can be undone is no reason to start another"
    );
    let cpus = home.tow(["nodes", "--json"]).ok().json()["nodes"][0]["cpus"]
        .as_u64()
        .unwrap();
    assert_eq!(
        cpus,
        std::thread::available_parallelism().unwrap().get() as u64,
        "the machine is no smaller"
    );
}

/// Whoever lowered a hard limit or raised the nice value cannot undo it; neither can the daemon.
#[test]
fn a_daemon_that_cannot_give_what_a_shell_has_makes_room_for_one_that_can() {
    let home = home();
    let narrow = "ulimit -n 100; exec setpriv --bounding-set -sys_resource,-sys_nice nice -n 15";
    let begun = behind(
        &home,
        narrow,
        &["submit", "sh", "-c", "until [ -e go ]; do sleep 0.01; done"],
    );
    if begun.code != 0 {
        return ability::not_run(&format!("a daemon without privileges: {}", begun.stderr));
    }
    let daemon = home.daemon().unwrap();
    home.wait_for_state(&begun.id(), "running");
    assert_eq!(
        home.tow(["run", "sh", "-c", INHERITED]).ok().stdout,
        inherited_here()
    );
    assert_ne!(home.daemon(), Some(daemon));
    home.write("go", "");
    assert_eq!(home.tow(["wait", &begun.id()]).code, 0, "what ran goes on");
}

#[test]
fn a_run_has_the_limits_and_the_priority_of_its_submitter() {
    let home = home();
    home.tow(["run", "true"]).ok();
    let narrow = "ulimit -S -n 77; ulimit -S -s 2048; ulimit -S -v 9000000; ulimit -S -t 500; exec \
        nice -n 7";
    let shown = behind(
        &home,
        narrow,
        &[
            "run",
            "sh",
            "-c",
            // The last two are set on the process once it runs: a moment later.
            "ulimit -S -n; ulimit -S -s; nice; n=0; while [ $(ulimit -S -t) = unlimited ] && [ $n \
                -lt 500 ]; do sleep 0.01; n=$((n + 1)); done; sh -c 'ulimit -S -v; ulimit -S -t'",
        ],
    )
    .ok();
    assert_eq!(shown.stdout, "77\n2048\n7\n9000000\n500\n");
    assert_eq!(
        home.tow(["run", "sh", "-c", INHERITED]).ok().stdout,
        inherited_here(),
        "the next has its own"
    );
    home.configure("datastores: {d: {kind: folder, path: /tmp}}\n");
    home.write(
        "job.yaml",
        "io: {o: {datastore: d, path: towline-test-nothing, mode: \
        write}}\ncommand: [sh, -c, 'ulimit -S -n']\n",
    );
    let with_data = behind(&home, "ulimit -S -n 78; exec", &["run", "-f", "job.yaml"]);
    assert_eq!(
        (with_data.code, with_data.stdout.as_str()),
        (0, "78\n"),
        "{with_data:?}"
    );
}

/// A limit on processes is common on login nodes. Every number of them is tried, from none up.
#[test]
fn where_no_thread_can_be_made_that_is_said_and_nothing_panics() {
    const USER: u32 = 54_321;
    let home = home().freezing();
    home.write("a.txt", "x");
    let repository = Command::new("git")
        .args(["init", "-q"])
        .current_dir(home.project())
        .status();
    assert!(repository.is_ok_and(|status| status.success()));
    let top = home.path("");
    let owned = Command::new("chown")
        .arg("-R")
        .arg(format!("{USER}:{USER}"))
        .arg(&top)
        .status();
    let reachable = top.ancestors().skip(1).all(|folder| {
        fs::metadata(folder)
            .is_ok_and(|meta| std::os::unix::fs::PermissionsExt::mode(&meta.permissions()) & 1 == 1)
    });
    if !owned.is_ok_and(|status| status.success()) || !reachable {
        return ability::not_run("a limit on processes, because this user cannot be another");
    }
    // The program itself must be readable for that user.
    let program = home.copy_binary("tow-copy");
    let mut codes = Vec::new();
    for most in 1..=10 {
        let shell = format!(
            "exec setpriv --reuid {USER} --regid {USER} --clear-groups bash -c 'ulimit -u {most}; \
                shift; exec \"$0\" \"$@\"' {}",
            program.display()
        );
        let output = behind(&home, &shell, &["submit", "true"]);
        assert!(
            !output.stderr.contains("panicked") && matches!(output.code, 0 | 123 | 125),
            "with {most}: {output:?}"
        );
        if output.code == 123 {
            assert!(
                output.stderr.contains("ulimit -u") || output.stderr.contains("daemon"),
                "{output:?}"
            );
        }
        codes.push(output.code);
        until("nothing of that user to be left", || {
            let of_user = |pid: &i32| {
                fs::read_to_string(format!("/proc/{pid}/status"))
                    .is_ok_and(|text| text.contains(&format!("Uid:\t{USER}\t")))
            };
            let alive: Vec<i32> = process::all()
                .into_iter()
                .filter(|(pid, facts)| !facts.zombie && of_user(pid))
                .map(|(pid, _)| pid)
                .collect();
            for pid in &alive {
                process::signal(*pid, Signal::KILL);
            }
            alive.is_empty().then_some(())
        });
    }
    assert!(
        codes.iter().any(|code| *code != 0),
        "the limit was felt: {codes:?}"
    );
}

#[test]
fn a_program_behind_a_shell_has_one_sigterm() {
    let home = home();
    home.write(
        "slow.py",
        "import signal, time\n\ndef leave(number, frame):\n    open('terms', \
            'a').write('term\\n')\n    time.sleep(0.4)\n    open('left', 'w').write('')\n    raise \
                SystemExit(0)\n\nsignal.signal(signal.SIGTERM, leave)\nopen('ready', \
                    'w').write('')\nwhile True:\n    time.sleep(0.01)\n",
    );
    home.write(
        "job.yaml",
        "script: |\n  #!/bin/sh\n  python3 slow.py\n  echo over\n",
    );
    let id = home.tow(["submit", "-f", "job.yaml"]).ok().id();
    until("the program to run", || {
        home.project().join("ready").exists().then_some(())
    });
    home.tow(["abort", &id, "--wait"]).ok();
    assert_eq!(home.read("terms"), "term\n");
    assert!(home.project().join("left").exists(), "and its grace");
}

#[test]
fn a_stopped_rank_hears_its_sigterm() {
    let home = home().with("TOW_GRACE_MILLIS", "60000");
    let id = home
        .tow([
            "submit",
            "sh",
            "-c",
            "trap 'echo warned; exit 0' TERM; echo $$ > pid; while :; do sleep 0.05; done",
        ])
        .ok()
        .id();
    let pid = until("the job to run", || {
        home.read("pid").trim().parse::<i32>().ok()
    });
    process::signal(pid, Signal::STOP);
    until("it to be stopped", || {
        process::facts(pid)?.stopped.then_some(())
    });
    home.tow(["abort", &id, "--wait"]).ok();
    // The shell may say before that that its `sleep` was terminated.
    assert!(home.tow(["logs", &id]).ok().stdout.ends_with("warned\n"));
}

#[test]
fn a_stopped_runner_is_told_to_go_on_when_its_run_is_to_end() {
    let home = home();
    let id = home.tow(["submit", "sleep", "1000"]).ok().id();
    home.wait_for_state(&id, "running");
    let rank = home.job_processes()[0];
    let runner = process::facts(rank).unwrap().parent;
    process::signal(runner, Signal::STOP);
    until("the runner to be stopped", || {
        process::facts(runner)?.stopped.then_some(())
    });
    home.tow(["abort", &id, "--wait"]).ok();
    assert_eq!(home.state_of(&id), "cancelled");
}
