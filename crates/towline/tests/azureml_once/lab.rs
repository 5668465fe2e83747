//! Two machines of a user, a workspace, and the ledger that jobs keep.

use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use towline_testkit::aml::Aml;
use towline_testkit::{Home, until};

pub(crate) const FLAVOURS: [&str; 3] = ["aml", "itp", "sing"];

/// Keeps a ledger: every start and end, and whether another attempt was alive. The lock goes with
/// the process that is the job, whatever kills it. Each rank has its lock, the first alone writes
/// its starts and ends.
const JOB: &str = r#"#!/bin/sh
exec 9>"LEDGER/$TOW_RUN_ID.$RANK.lock"
flock -n 9 || echo "double $TOW_RUN_ID $TOW_ATTEMPT" >> LEDGER/all
ledger=LEDGER/all
[ "$RANK" = 0 ] || ledger=/dev/null
echo "start $TOW_RUN_ID $TOW_ATTEMPT" >> $ledger
i=0; while [ $i -lt 200 ]; do echo "line $i of $TOW_RUN_ID"; i=$((i + 1)); done
case "$1" in
  quick) sleep 0.1 ;;
  secret) [ "$MY_SECRET" = known ] || exit 1 ;;
  long) exec sleep 300 ;;
  third) [ "$RANK" != 0 ] || [ "$TOW_ATTEMPT" -ge 3 ] || exit 1 ;;
  once) [ "$TOW_ATTEMPT" -ge 2 ] || exec sleep 300 ;;
esac
echo "end $TOW_RUN_ID $TOW_ATTEMPT" >> $ledger
"#;

/// The job files: what runs, and what follows an attempt that fails.
const JOBS: [(&str, &str); 5] = [
    ("quick.yaml", "command: [sh, job.sh, quick]\n"),
    (
        "secret.yaml",
        "command: [sh, job.sh, secret]\nenvironment: {secrets: [MY_SECRET]}\nidentity: \
            managed:tow\n",
    ),
    (
        "third.yaml",
        "command: [sh, job.sh, third]\nretry: {when: [exit_code], max: 9}\n",
    ),
    ("long.yaml", "command: [sh, job.sh, long]\n"),
    (
        "once.yaml",
        "command: [sh, job.sh, once]\nretry: {when: [preempted], max: 9}\n",
    ),
];

pub(crate) struct Lab {
    pub(crate) home: Home,
    /// Another machine of the same user.
    pub(crate) other: Home,
    pub(crate) aml: Aml,
}

impl Lab {
    pub(crate) fn new() -> Self {
        let aml = Aml::start();
        let machine = || {
            let mut home = aml.home_of("alice", env!("CARGO_BIN_EXE_tow"));
            home.set("MY_SECRET", "known");
            home
        };
        let lab = Self {
            home: machine(),
            other: machine(),
            aml,
        };
        fs::create_dir_all(lab.ledger_folder()).unwrap();
        lab.home.write(
            "job.sh",
            &JOB.replace("LEDGER", lab.ledger_folder().to_str().unwrap()),
        );
        for (name, text) in JOBS {
            lab.home.write(name, text);
        }
        lab
    }

    pub(crate) fn ledger_folder(&self) -> PathBuf {
        self.home.path("ledger")
    }
    pub(crate) fn ledger(&self) -> String {
        fs::read_to_string(self.ledger_folder().join("all")).unwrap_or_default()
    }

    /// The attempts of a run that wrote this word, each time they did.
    pub(crate) fn attempts(&self, word: &str, run: &str) -> Vec<u32> {
        let begin = format!("{word} {run} ");
        let attempt = |line: &str| line.strip_prefix(&begin)?.parse().ok();
        self.ledger().lines().filter_map(attempt).collect()
    }

    pub(crate) fn has_started(&self, run: &str) -> bool {
        !self.attempts("start", run).is_empty()
    }

    pub(crate) fn runs(&self) -> Vec<Value> {
        self.home.tow(["ps", "--all", "--json"]).ok().json()["runs"]
            .as_array()
            .unwrap()
            .clone()
    }

    #[track_caller]
    pub(crate) fn wait_for_all(&self, what: &str) {
        let begun = Instant::now();
        while self.home.tow(["wait", "--timeout", "10s"]).code == 124 {
            assert!(
                begun.elapsed() < Duration::from_secs(150),
                "{what}: not all came to an end\n{}\n{:?}",
                self.home.tow(["ps"]).stdout,
                self.aml.jobs()
            );
        }
    }

    /// No attempt started twice, none while another was alive.
    #[track_caller]
    pub(crate) fn nothing_was_doubled(&self, what: &str) {
        let mut starts: BTreeMap<(&str, &str), u32> = BTreeMap::new();
        let ledger = self.ledger();
        for line in ledger.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            assert_ne!(
                words[0], "double",
                "{what}: two attempts alive at once: {line}\n{ledger}"
            );
            if words[0] == "start" {
                *starts.entry((words[1], words[2])).or_default() += 1;
            }
        }
        let twice: Vec<_> = starts.iter().filter(|(_, count)| **count != 1).collect();
        assert!(
            twice.is_empty(),
            "{what}: started more than once: {twice:?}"
        );
    }

    /// No job of the service goes on, and no process of one is there.
    #[track_caller]
    pub(crate) fn nothing_is_left(&self, what: &str) {
        let open = || {
            self.aml
                .jobs()
                .into_iter()
                .filter(|(_, state)| !["Completed", "Failed", "Canceled"].contains(&state.as_str()))
                .collect::<Vec<_>>()
        };
        until(&format!("{what}: no job to be left"), || {
            open().is_empty().then_some(())
        });
        let folder = format!("{}/", self.ledger_folder().display());
        let holds = |pid: &i32| {
            let files = fs::read_dir(format!("/proc/{pid}/fd"))
                .into_iter()
                .flatten()
                .flatten();
            files
                .filter_map(|file| fs::read_link(file.path()).ok())
                .any(|file| file.to_string_lossy().starts_with(&folder))
        };
        let left = || {
            towline_host::process::all()
                .into_keys()
                .filter(holds)
                .collect::<Vec<_>>()
        };
        until(
            &format!("{what}: no process of a job to be left, not {:?}", left()),
            || left().is_empty().then_some(()),
        );
    }

    pub(crate) fn stop_daemon(home: &Home) {
        home.tow(["daemon", "stop"]);
        let lock = home.state().daemon_lock();
        until("the daemon to leave", || {
            (!towline_host::lock::is_held(&lock).unwrap_or(false)).then_some(())
        });
    }

    /// Another program, by one byte, which is not in the workspace yet.
    pub(crate) fn use_new_program(&mut self, number: usize) {
        let path = self.home.path(&format!("tow-{number}"));
        let mut bytes = fs::read(self.home.binary()).unwrap();
        bytes.push(0);
        towline_testkit::program(&path, bytes);
        self.home.use_binary(&path);
    }

    /// What was learnt of the workspace is forgotten, so that all of it is asked for again.
    pub(crate) fn forget_facts(&self, flavour: &str) {
        fs::remove_file(self.home.state().cluster(flavour, "facts")).unwrap();
    }

    /// Whether a rank of that attempt lives.
    pub(crate) fn has_rank(run: &str, attempt: u32) -> bool {
        let marks = [
            format!("TOW_RUN_ID={run}"),
            format!("TOW_ATTEMPT={attempt}"),
        ];
        let is_one = |pid: i32| {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            let words: Vec<&[u8]> = environment.split(|byte| *byte == 0).collect();
            marks.iter().all(|mark| words.contains(&mark.as_bytes()))
        };
        towline_host::process::all().into_keys().any(is_one)
    }

    /// Guards and runners of jobs: their run, and their process id.
    pub(crate) fn crew(&self) -> Vec<(String, i32)> {
        let mut runs = BTreeMap::new();
        for (run, _) in self.aml.jobs() {
            runs.extend(
                self.aml
                    .process_groups(&run)
                    .into_iter()
                    .map(|group| (group, run.clone())),
            );
        }
        let group = |pid: i32| {
            rustix::process::getpgid(rustix::process::Pid::from_raw(pid))
                .map_or(0, |group| group.as_raw_nonzero().get())
        };
        let is_crew = |pid: &i32| {
            fs::read(format!("/proc/{pid}/cmdline"))
                .is_ok_and(|words| words.split(|byte| *byte == 0).any(|word| word == b"__crew"))
        };
        towline_host::process::all()
            .into_keys()
            .filter(is_crew)
            .filter_map(|pid| runs.get(&group(pid)).map(|run| (run.clone(), pid)))
            .collect()
    }
}
