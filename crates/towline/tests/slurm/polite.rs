//! One session, one authentication, one question an interval, however many runs are watched.

use crate::lab::Lab;
use std::fs;
use std::time::{Duration, Instant};
use towline_testkit::real::slurm::Options;
use towline_testkit::until;

/// Has every `squeue` of the login host counted in alice's home.
const COUNTED: &str = r#"mv /usr/bin/squeue /usr/bin/squeue.real
printf '#!/bin/sh\necho >> /home/alice/asked\nexec /usr/bin/squeue.real "$@"\n' > /usr/bin/squeue
chmod 755 /usr/bin/squeue"#;

#[test]
fn five_hundred_runs_are_watched_by_one_session_and_one_question() {
    let lab = Lab::own(&Options::default());
    lab.slurm().root("login", ["sh", "-c", COUNTED]).ok();
    lab.home.write(
        "held.yaml",
        "name: held\nresources: {native: [--hold]}\nsweep: {x: 1-500}\ncommand: [echo, '${{x}}']\n",
    );
    let sweep = lab.tow(["submit", "-f", "held.yaml"]).ok().id();
    let mut watcher = lab.home.spawn(["wait", &sweep]);
    let asked = || {
        fs::read_to_string(lab.slurm().home("alice").join("asked"))
            .map_or(0, |text| text.lines().count())
    };
    // From one question on, for some intervals.
    let first = until("the scheduler to be asked", || {
        Some(asked()).filter(|count| *count > 1)
    });
    let begun = Instant::now();
    until("more questions", || (asked() >= first + 3).then_some(()));
    let took = begun.elapsed();
    assert!(
        took > Duration::from_secs(8),
        "three questions in {took:?} are more than one every four seconds"
    );
    let sessions = lab
        .slurm()
        .root("login", ["pgrep", "-c", "-x", "-f", "sshd: alice@notty"])
        .stdout;
    assert!(sessions.trim().parse::<u32>().unwrap() <= 1, "{sessions}");
    let sites = lab
        .slurm()
        .root(
            "login",
            ["sh", "-c", "pgrep -c -f '^[.]towline/bin/tow-.* __sit[e]'"],
        )
        .stdout;
    assert_eq!(sites.trim(), "1", "one session carries it all");
    let accepted = lab
        .slurm()
        .root(
            "login",
            [
                "grep",
                "-c",
                "Accepted publickey",
                "/var/log/slurm/sshd.log",
            ],
        )
        .stdout;
    assert_eq!(accepted.trim(), "1", "one authentication");
    lab.tow(["abort", &sweep]).ok();
    until("the watcher to leave", || watcher.try_wait().unwrap());
    let left = lab
        .slurm()
        .exec("login", "alice", ["squeue.real", "-h", "-u", "alice"])
        .ok()
        .stdout;
    assert_eq!(left, "", "nothing is left in the queue");
}
