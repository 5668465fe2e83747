//! What users are told on a full disk, and what still works there.

use crate::{check_once, home_on, ledger};
use rustix::process::Signal;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use towline_host::process;
use towline_testkit::ability::not_run;
use towline_testkit::disk::Disk;
use towline_testkit::{Home, until};

/// A run fills the disk and ends; its daemon dies; the next one is asked for something, has nothing
/// to do and could leave. The end is in the runner's journal all the while.
#[test]
fn an_end_that_cannot_be_written_is_not_forgotten() {
    let Some((home, disk)) = home_on(1 << 10) else {
        return;
    };
    let run = home.tow(["submit", "sh", "job.sh", "fill"]).ok().id();
    until("the run to end", || {
        ledger(&home)
            .contains(&format!("end {run} 1\n"))
            .then_some(())
    });
    assert!(home.kill_daemon());
    disk.leave(0);
    let refused = home.tow(["submit", "true"]);
    assert!(
        refused.code == 123 && refused.stderr.contains("full"),
        "{refused:?}"
    );
    let told = home.show(&run);
    assert_eq!(told["state"], "succeeded", "the journal tells: {told}");
    // Longer than an idle daemon stays. One that has not written all it knows is not idle.
    let begun = std::time::Instant::now();
    until("three idle times to pass", || {
        disk.leave(0);
        assert_eq!(home.show(&run)["state"], "succeeded");
        (begun.elapsed().as_secs() >= 3).then_some(())
    });
    // More room, as an administrator would give it.
    let grown = std::process::Command::new("mount")
        .args(["-o", "remount,size=8m"])
        .arg(disk.path())
        .status()
        .unwrap();
    assert!(grown.success());
    disk.relieve();
    until("the end to be in the history", || {
        let _ = home.tow(["daemon", "stop"]);
        (home.tow(["wait", &run, "--timeout", "5s"]).code == 0).then_some(())
    });
    assert_eq!(home.show(&run)["state"], "succeeded");
    check_once(&home, "after room came back");
}

#[test]
fn doctor_sees_a_disk_without_room_and_one_without_files() {
    let Some((home, disk)) = home_on(4 << 10) else {
        return;
    };
    home.tow(["run", "true"]).ok();
    assert_eq!(home.tow(["doctor"]).code, 0);
    disk.leave(0);
    let told = home.tow(["doctor"]);
    assert!(
        told.code == 123 && told.stdout.contains("is full") && told.stdout.contains("tow prune"),
        "{told:?}"
    );
    disk.relieve();
    assert_eq!(home.tow(["doctor"]).code, 0);
    disk.leave_files(0);
    let told = home.tow(["doctor"]);
    assert!(
        told.code == 123
            && told.stdout.contains("is full")
            && told.stdout.contains("more files fit"),
        "{told:?}"
    );
}

#[test]
fn prune_makes_room_on_a_full_disk() {
    let Some((home, disk)) = home_on(4 << 10) else {
        return;
    };
    home.write("log.sh", "head -c 500000 /dev/zero | tr '\\0' x");
    let old = home.tow(["submit", "sh", "log.sh"]).ok().id();
    home.tow(["wait", &old]).ok();
    disk.leave(0);
    until("it to be old enough", || {
        home.tow(["prune", "--older-than", "1s"])
            .stdout
            .contains("would remove 1 run")
            .then_some(())
    });
    let pruned = home.tow(["prune", "--older-than", "1s", "--yes"]).ok();
    assert!(pruned.stdout.contains("removed 1 run"), "{pruned:?}");
    assert_eq!(home.tow(["show", &old]).code, 122);
    assert!(!home.state().run(&old.clone().try_into().unwrap()).exists());
}

#[test]
fn who_waits_is_told_for_what_and_when_it_is_over() {
    let Some((home, disk)) = home_on(4 << 10) else {
        return;
    };
    let run = home.tow(["submit", "sh", "job.sh", "long"]).ok().id();
    until("it to start", || {
        ledger(&home).contains("start").then_some(())
    });
    let mut waiting = [home.spawn(["wait", &run]), home.spawn(["logs", "-f", &run])];
    disk.leave(0);
    // An abort is carried out although it cannot be written down: this run may be what fills the
    // disk.
    let mut abort = home.spawn(["abort", &run]);
    until("its processes to be gone", || {
        disk.leave(0);
        home.job_processes().is_empty().then_some(())
    });
    let told = waiting.each_mut().map(|child| {
        let errors = child.stderr.take().unwrap();
        std::thread::spawn(move || BufReader::new(errors).lines().next().unwrap().unwrap())
    });
    until("whoever waits to be told", || {
        // What is kept for this moment is used up, too.
        disk.leave(0);
        told.iter()
            .all(std::thread::JoinHandle::is_finished)
            .then_some(())
    });
    for told in told.map(|told| told.join().unwrap()) {
        assert!(
            told.contains("waiting") && told.contains("is full"),
            "{told}"
        );
    }
    disk.relieve();
    // `wait` leaves with the run's code; `logs` has shown them.
    assert_eq!(
        waiting.map(|mut child| child.wait().unwrap().code()),
        [Some(143), Some(0)]
    );
    abort.wait().unwrap();
    assert_eq!(home.state_of(&run), "cancelled");
}

/// Without files left no folder can be made for a run: it waits, says for what, and starts when it
/// can.
#[test]
fn a_run_that_finds_no_room_waits_and_says_so() {
    let home = Home::new(env!("CARGO_BIN_EXE_tow"));
    let Some(disk) = Disk::mount_with_files(&home.path("state"), 8 << 10, 200) else {
        return not_run("a disk without files: nothing may be mounted here");
    };
    home.configure("clusters:\n  local: {kind: local, cpus: 1}\n");
    let held = home
        .tow(["submit", "sh", "-c", "read -r line < wake"])
        .ok()
        .id();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        home.project().join("wake"),
        rustix::fs::FileType::Fifo,
        0o600.into(),
        0,
    )
    .unwrap();
    let second = home.tow(["submit", "true"]).ok().id();
    disk.leave_files(0);
    home.tow(["abort", &held, "--wait"]).ok();
    until("it to say what it waits for", || {
        home.tow(["why", &second])
            .stdout
            .contains("No space left")
            .then_some(())
    });
    disk.relieve();
    home.tow(["wait", &second]).ok();
    assert_eq!(home.state_of(&second), "succeeded");
}

/// While the start of a run cannot be written down, its runner dies, and so does every other that
/// is chosen for it. Once there is room it starts, and only once.
#[test]
fn a_run_whose_runner_dies_before_its_start_is_written_starts_once() {
    let Some((home, disk)) = home_on(4 << 10) else {
        return;
    };
    home.tow(["run", "true"]).ok();
    // It is taken, and no folder can be made for it: it waits.
    disk.leave_files(0);
    let run = home.tow(["submit", "sh", "job.sh", "long"]).ok().id();
    disk.leave_nothing_for_long();
    until("the daemon to have no room for its start", || {
        let status = home.tow(["daemon", "status", "--json"]).json();
        (!status["status"]["trouble"].is_null()).then_some(())
    });
    home.runner_processes()
        .into_iter()
        .for_each(|(pid, _)| process::signal(pid, Signal::KILL));
    // Files can be made again; one that starts now still finds no room for what it writes.
    disk.give_files_back();
    let journals = || -> BTreeSet<_> {
        let files = std::fs::read_dir(home.state().runners())
            .unwrap()
            .flatten()
            .map(|entry| entry.path());
        files
            .filter(|file| file.extension().is_some_and(|end| end == "journal"))
            .collect()
    };
    let before = journals();
    until("more runners to die", || {
        (journals().difference(&before).count() >= 3).then_some(())
    });
    disk.relieve();
    until("the run to start", || {
        ledger(&home)
            .contains(&format!("start {run} 1\n"))
            .then_some(())
    });
    // Its runner had one assignment, and still listens.
    home.tow(["abort", &run]).ok();
    until("the run to end", || {
        (home.state_of(&run) == "cancelled").then_some(())
    });
    check_once(&home, "runners died while nothing could be written");
}

/// Code that does not fit beside its snapshot: the advice is about room, not about damage.
#[test]
fn code_that_does_not_fit_is_explained_by_the_room_that_is_missing() {
    let home = Home::new(env!("CARGO_BIN_EXE_tow")).freezing();
    let Some(_disk) = Disk::mount(&home.path("state"), 6 << 10) else {
        return not_run("code on a small disk: nothing may be mounted here");
    };
    // Bytes that cannot be made smaller.
    std::fs::write(
        home.project().join("weights"),
        towline_testkit::campaign::noise(3 << 20, 9),
    )
    .unwrap();
    let run = home.tow(["run", "true"]);
    assert_ne!(run.code, 0, "{run:?}");
    let why = home.tow(["why", "@"]).ok().stdout;
    assert!(
        why.contains("are free at")
            && why.contains("next: make room")
            && !why.contains("snapshot check"),
        "{why}"
    );
}
