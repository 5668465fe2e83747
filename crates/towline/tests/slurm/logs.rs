//! No lost log byte: what ranks wrote is what `tow logs` gives, however they ended.

use crate::lab::{Lab, until_within};
use std::fs;
use std::path::PathBuf;
use towline_testkit::real::slurm::Options;

/// Writes awkward bytes, and a copy of its own for comparison: binary, `\r`, no newline at the end.
/// Then waits where it is told to.
const WRITER: &str = r#"
import os, sys, random, time
rank, size = int(os.environ["RANK"]), int(sys.argv[1])
name = f"{sys.argv[2]}-{os.environ['TOW_ATTEMPT']}-{rank}"
random.seed(name)
kept = open(os.path.expanduser(f"~/kept-{name}"), "wb", buffering=0)
left = size
while left > 0:
    block = random.randbytes(random.choice([1, 7, 100, 4096, 65536]))
    kind = random.random()
    if kind < 0.3: block = b"step %d\r" % left
    elif kind < 0.6: block = block.hex().encode() + b"\n"
    block = block[:left]
    at = 0
    while at < len(block): at += os.write(1 if random.random() < 0.8 else 2, block[at:])
    kept.write(block)
    left -= len(block)
os.fsync(1)
os.fsync(kept.fileno())
open(os.path.expanduser(f"~/wrote-{name}"), "w").close()
while sys.argv[3] == "stay" and os.environ["TOW_ATTEMPT"] == "1": time.sleep(0.1)
"#;

const SIZE: usize = 5 << 20;

struct Written<'l> {
    lab: &'l Lab,
    id: String,
    name: String,
    ranks: usize,
}

impl<'l> Written<'l> {
    fn submit(lab: &'l Lab, name: &str, ranks: usize, stays: bool, more: &[&str]) -> Self {
        lab.home.write("writer.py", WRITER);
        let size = SIZE.to_string();
        let nodes = ranks.to_string();
        let words = ["submit", "--name", name, "--nodes", &nodes]
            .into_iter()
            .chain(more.iter().copied());
        let command = [
            "python3",
            "writer.py",
            &size,
            name,
            if stays { "stay" } else { "go" },
        ];
        let id = lab.tow(words.chain(command)).ok().id();
        Self {
            lab,
            id,
            name: name.to_owned(),
            ranks,
        }
    }

    fn kept(&self, what: &str, attempt: u32, rank: usize) -> PathBuf {
        self.lab
            .slurm()
            .home("alice")
            .join(format!("{what}-{}-{attempt}-{rank}", self.name))
    }

    /// All ranks of an attempt have written everything.
    #[track_caller]
    fn until_written(&self, attempt: u32) {
        until_within(90, "all ranks to have written", || {
            (0..self.ranks)
                .all(|rank| self.kept("wrote", attempt, rank).exists())
                .then_some(())
        });
    }

    #[track_caller]
    fn assert_all(&self, attempts: u32) {
        self.lab.tow(["query", &self.id]).ok();
        for rank in 0..self.ranks {
            let mut whole = Vec::new();
            for attempt in 1..=attempts {
                let kept = fs::read(self.kept("kept", attempt, rank)).unwrap();
                assert_eq!(kept.len(), SIZE);
                let fetched = fs::read(self.lab.home.project().join(format!(
                    "assets/{}/attempt-{attempt}.rank-{rank}.log",
                    self.id
                )))
                .unwrap();
                assert!(
                    fetched == kept,
                    "query: rank {rank} of attempt {attempt} differs: {} bytes of {}",
                    fetched.len(),
                    kept.len()
                );
                whole.extend(kept);
            }
            let logged = self
                .lab
                .tow(["logs", &self.id, "--rank", &rank.to_string()])
                .ok()
                .raw;
            assert!(
                logged == whole,
                "logs: rank {rank} differs: {} bytes of {}",
                logged.len(),
                whole.len()
            );
        }
    }
}

#[test]
fn every_byte_is_there_after_the_end_and_after_an_abort() {
    let lab = Lab::shared();
    let aborted = Written::submit(&lab, "aborted", 2, true, &[]);
    let ended = Written::submit(&lab, "ended", 3, false, &[]);
    aborted.until_written(1);
    lab.tow(["abort", &aborted.id]).ok();
    assert_eq!(lab.ended(&ended.id)["state"], "succeeded");
    ended.assert_all(1);
    assert_eq!(lab.ended(&aborted.id)["state"], "cancelled");
    aborted.assert_all(1);
}

#[test]
fn a_follower_sees_every_byte_while_it_is_written() {
    let lab = Lab::shared();
    lab.home.write("writer.py", WRITER);
    let size = SIZE.to_string();
    let ran = lab.tow([
        "run",
        "--name",
        "followed",
        "python3",
        "writer.py",
        &size,
        "followed",
        "go",
    ]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let kept = fs::read(lab.slurm().home("alice").join("kept-followed-1-0")).unwrap();
    assert!(ran.raw == kept, "{} bytes of {}", ran.raw.len(), kept.len());
}

#[test]
fn every_byte_of_both_attempts_is_there_after_a_requeue() {
    let lab = Lab::shared();
    let written = Written::submit(&lab, "requeued", 2, true, &[]);
    written.until_written(1);
    lab.scontrol(&format!("requeue {}", lab.job_of(&written.id)));
    let ended = lab.ended(&written.id);
    assert_eq!(
        (ended["state"].as_str(), ended["attempt"].as_u64()),
        (Some("succeeded"), Some(2)),
        "{ended}"
    );
    written.assert_all(2);
    let events = ended["attempts"].to_string();
    assert!(
        events.contains("preempted"),
        "the cluster put it back, which is no failure of it: {events}"
    );
}

pub(crate) fn every_byte_is_there_that_was_written_before_a_power_cut() {
    let lab = Lab::own(&Options {
        nodes: 2,
        slurmd_timeout: 5,
        ..Options::default()
    });
    let again = Written::submit(&lab, "again", 1, true, &["--cpus", "8"]);
    again.until_written(1);
    let alone = Written::submit(&lab, "alone", 1, true, &["--cpus", "8"]);
    alone.until_written(1);
    let host = |run: &Written<'_>| {
        lab.home.show(&run.id)["native"]["hosts"][0]
            .as_str()
            .map(str::to_owned)
    };
    let hosts = [&again, &alone].map(|run| until_within(30, "its host", || host(run)));
    assert_ne!(hosts[0], hosts[1]);
    // Slurm may have told the host before the records told the start.
    lab.until_state(&alone.id, "running");
    for host in &hosts {
        lab.slurm().kill_host(host);
    }
    // Ignorance is never an ending: as long as Slurm waits for the nodes, it runs.
    assert_eq!(lab.home.state_of(&alone.id), "running");
    for written in [&again, &alone] {
        let ended = lab.ended(&written.id);
        assert_eq!(
            (ended["state"].as_str(), ended["reason"].as_str()),
            (Some("failed"), Some("node_failed")),
            "{ended}"
        );
        written.assert_all(1);
    }
    let why = lab.tow(["why", &alone.id]).ok().stdout;
    assert!(why.contains("retry: {when: [node_failed]}"), "{why}");
    let left = lab
        .slurm()
        .root(
            "login",
            ["squeue", "-h", "-t", "pending,running", "-u", "alice"],
        )
        .ok()
        .stdout;
    assert_eq!(left, "", "nothing of it starts again");
}

#[test]
fn a_run_goes_on_and_ends_while_the_laptop_is_away() {
    let lab = Lab::shared();
    let written = Written::submit(&lab, "away", 2, false, &[]);
    lab.home.kill_daemon();
    let stopped = Written::submit(&lab, "stopped", 1, false, &[]);
    lab.tow(["daemon", "stop"]).ok();
    // Nobody asks, and they end all the same.
    for run in [&written, &stopped] {
        run.until_written(1);
        Lab::until_exists(&lab.far(&run.id).join("attempt-1.end"));
    }
    assert_eq!(lab.home.daemon(), None, "nobody looked after them");
    written.assert_all(1);
    stopped.assert_all(1);
    for run in [&written, &stopped] {
        assert_eq!(lab.ended(&run.id)["state"], "succeeded");
    }
}

#[test]
fn a_daemon_that_is_killed_right_after_the_submission_loses_nothing() {
    let lab = Lab::shared();
    let id = lab
        .tow([
            "submit",
            "--name",
            "once",
            "sh",
            "-c",
            "echo x >> ~/away-once; printf 'no newline'",
        ])
        .ok()
        .id();
    for _ in 0..5 {
        lab.home.kill_daemon();
        let _ = lab.tow(["ps"]);
    }
    assert_eq!(lab.ended(&id)["state"], "succeeded");
    assert_eq!(lab.tow(["logs", &id]).ok().stdout, "no newline");
    assert_eq!(
        fs::read_to_string(lab.slurm().home("alice").join("away-once")).unwrap(),
        "x\n"
    );
    assert_eq!(lab.jobs_of(&id).len(), 1);
}
