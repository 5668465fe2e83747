//! A user here, a cluster there, and the ledger that jobs keep.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::{Duration, Instant};
use towline_testkit::real::Slurm;
use towline_testkit::real::slurm::Options;
use towline_testkit::{Home, until};

/// Keeps a ledger in the home that all hosts share: every start and end, and whether another
/// attempt was alive. The lock goes with the process that is the job, whatever kills it. Each rank
/// has its lock, the first alone writes its starts and ends.
const JOB: &str = r#"#!/bin/sh
exec 9>"$HOME/ledger.$TOW_RUN_ID.$RANK.lock"
flock -n 9 || echo "double $TOW_RUN_ID $TOW_ATTEMPT $(hostname)" >> "$HOME/ledger"
ledger="$HOME/ledger"
[ "$RANK" = 0 ] || ledger=/dev/null
echo "start $TOW_RUN_ID $TOW_ATTEMPT $(hostname)" >> "$ledger"
case "$1" in
  quick) sleep 0.2 ;;
  some) i=0; while [ $i -lt "$2" ]; do echo "line $i"; i=$((i + 1)); sleep 0.1; done ;;
  long) exec sleep 300 ;;
  third) [ "$TOW_ATTEMPT" -ge 3 ] || exit 1 ;;
  once) [ "$TOW_ATTEMPT" -ge 2 ] || exec sleep 300 ;;
esac
echo "end $TOW_RUN_ID $TOW_ATTEMPT $(hostname)" >> "$ledger"
"#;

/// The job files: what runs, and what follows an attempt that fails.
const JOBS: [(&str, &str); 8] = [
    ("quick.yaml", "command: [sh, job.sh, quick]\n"),
    (
        "sturdy.yaml",
        "command: [sh, job.sh, quick]\nretry: {when: [node_failed], max: 9}\n",
    ),
    (
        "third.yaml",
        "command: [sh, job.sh, third]\nretry: {when: [exit_code, node_failed], max: 9}\n",
    ),
    (
        "later.yaml",
        "command: [sh, job.sh, quick]\nresources: {native: [--begin=now+6]}\n",
    ),
    ("long.yaml", "command: [sh, job.sh, long]\n"),
    (
        "some.yaml",
        "command: [sh, job.sh, some, 50]\nretry: {when: [node_failed], max: 9}\n",
    ),
    (
        "once.yaml",
        "command: [sh, job.sh, once]\nretry: {when: [node_failed], max: 9}\n",
    ),
    (
        "limit.yaml",
        "command: [sh, job.sh, once]\nresources: {time: 1m}\nretry: \
            {when: [time_limit, node_failed], max: 9}\n",
    ),
];

/// A user here, and a cluster of their own.
pub(crate) struct Lab {
    pub(crate) home: Home,
    pub(crate) slurm: Slurm,
}

impl Lab {
    pub(crate) fn new(options: &Options) -> Self {
        let slurm = Slurm::start(options);
        let home = Home::new(env!("CARGO_BIN_EXE_tow")).freezing();
        home.configure(&format!(
            "default_cluster: lab\nclusters:\n  lab: {{kind: slurm, host: \
            login, ssh_config: {}}}\n",
            slurm.ssh_config().display()
        ));
        home.write("job.sh", JOB);
        for (name, text) in JOBS {
            home.write(name, text);
        }
        Self { home, slurm }
    }

    pub(crate) fn ledger(&self) -> String {
        fs::read_to_string(self.slurm.home("alice").join("ledger")).unwrap_or_default()
    }

    /// The attempts of a run that wrote this word, each time they did.
    pub(crate) fn attempts(&self, word: &str, run: &str) -> Vec<u32> {
        let begin = format!("{word} {run} ");
        let attempt = |line: &str| line.strip_prefix(&begin)?.split(' ').next()?.parse().ok();
        self.ledger().lines().filter_map(attempt).collect()
    }

    pub(crate) fn has_started(&self, run: &str) -> bool {
        !self.attempts("start", run).is_empty()
    }

    #[track_caller]
    pub(crate) fn until_started(&self, run: &str) {
        until(&format!("{run} to start"), || {
            self.has_started(run).then_some(())
        });
    }

    #[track_caller]
    pub(crate) fn submit(&self, words: &[&str]) -> String {
        self.home.tow([&["submit"], words].concat()).ok().id()
    }

    pub(crate) fn runs(&self) -> Vec<Value> {
        self.home.tow(["ps", "--all", "--json"]).ok().json()["runs"]
            .as_array()
            .unwrap()
            .clone()
    }

    /// Waits for all runs, through whatever it takes a lease to lapse.
    #[track_caller]
    pub(crate) fn wait_for_all(&self, what: &str) {
        let begun = Instant::now();
        while self.home.tow(["wait", "--timeout", "20s"]).code == 124 {
            assert!(
                begun.elapsed() < Duration::from_secs(150),
                "{what}: not all came to an end\n{}",
                self.home.tow(["ps"]).stdout
            );
        }
    }

    /// What the scheduler has of the user and has not ended. One that does not answer has not said
    /// that there is nothing.
    #[track_caller]
    pub(crate) fn queued(&self) -> String {
        let ask = || {
            self.slurm.exec(
                "login",
                "alice",
                [
                    "squeue",
                    "-h",
                    "-u",
                    "alice",
                    "-t",
                    "PD,CF,R,CG,S",
                    "-o",
                    "%i %j %T %r",
                ],
            )
        };
        until("the scheduler to answer", || {
            Some(ask()).filter(|said| said.code == 0)
        })
        .stdout
    }

    /// The jobs that the scheduler took for each submission, by its name, as its database has them.
    #[track_caller]
    pub(crate) fn jobs_taken(&self) -> BTreeMap<String, BTreeSet<String>> {
        let rows = self
            .slurm
            .root(
                "ctl",
                [
                    "sacct",
                    "-n",
                    "-P",
                    "-X",
                    "-a",
                    "-D",
                    "-S",
                    "now-1days",
                    "-o",
                    "JobID,JobName",
                ],
            )
            .ok()
            .stdout;
        let mut jobs: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (job, name) in rows.lines().filter_map(|line| line.split_once('|')) {
            // The tasks of an array are one job.
            jobs.entry(name.to_owned())
                .or_default()
                .insert(job.split('_').next().unwrap_or_default().to_owned());
        }
        jobs
    }

    #[track_caller]
    pub(crate) fn nothing_is_left(&self, what: &str) {
        until(
            &format!("{what}: an empty queue, not\n{}", self.queued()),
            || self.queued().is_empty().then_some(()),
        );
        for host in ["c1", "c2", "c3"] {
            let told = "command -v pgrep ps >/dev/null || echo nobody can look; for p in $(pgrep \
                -u alice); do ps -o pid=,ppid=,lstart=,args= $p; tr '\\0' '\\n' < /proc/$p/environ \
                    | grep -E '^TOW_(RUN_ID|ATTEMPT)|^SLURM_JOB_ID|^RANK='; done";
            let alive = self.slurm.root(host, ["sh", "-c", told]).stdout;
            assert!(
                alive.is_empty(),
                "{what}: left alive on {host}: {alive}\n{}",
                self.ledger()
            );
        }
    }

    /// No attempt started twice, none while another was alive.
    #[track_caller]
    pub(crate) fn nothing_was_doubled(&self, what: &str) {
        let mut starts: BTreeMap<(String, String), u32> = BTreeMap::new();
        for line in self.ledger().lines() {
            let words: Vec<&str> = line.split(' ').collect();
            assert_ne!(
                words[0],
                "double",
                "{what}: two attempts alive at once: {line}\n{}",
                self.ledger()
            );
            if words[0] == "start" {
                *starts
                    .entry((words[1].to_owned(), words[2].to_owned()))
                    .or_default() += 1;
            }
        }
        let twice: Vec<_> = starts.iter().filter(|(_, count)| **count != 1).collect();
        assert!(
            twice.is_empty(),
            "{what}: started more than once: {twice:?}"
        );
    }

    /// The run started once, by its first attempt, and ended well.
    #[track_caller]
    pub(crate) fn ran_exactly_once(&self, run: &str) {
        let shown = self.home.show(run);
        assert_eq!(
            (shown["state"].as_str(), shown["attempt"].as_u64()),
            (Some("succeeded"), Some(1)),
            "{shown}"
        );
        assert_eq!(
            (self.attempts("start", run), self.attempts("end", run)),
            (vec![1], vec![1]),
            "{}",
            self.ledger()
        );
    }

    /// Processes of ours on a host: their ids there, and their words.
    pub(crate) fn over_there(&self, host: &str, verb: &str) -> Vec<(String, String)> {
        let found = self.slurm.root(
            host,
            [
                "pgrep",
                "-u",
                "alice",
                "-a",
                "-f",
                &format!("/tow-[0-9a-f]* {verb} "),
            ],
        );
        // Nobody, or somebody: everything else is no answer.
        assert!(matches!(found.code, 0 | 1), "{found:?}");
        found
            .stdout
            .lines()
            .filter_map(|line| line.split_once(' '))
            .map(|(pid, words)| (pid.to_owned(), words.to_owned()))
            .collect()
    }

    pub(crate) fn shoot(&self, host: &str, pid: &str) {
        self.slurm.root(host, ["kill", "-KILL", pid]);
    }

    pub(crate) fn stop_daemon(&self) {
        self.home.tow(["daemon", "stop"]);
        let lock = self.home.state().daemon_lock();
        until("the daemon to leave", || {
            (!towline_host::lock::is_held(&lock).unwrap_or(false)).then_some(())
        });
    }
}
