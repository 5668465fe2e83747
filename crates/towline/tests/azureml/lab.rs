//! A laptop with nothing but `tow`, signed in to a workspace.

use serde_json::Value;
use std::ffi::OsStr;
use towline_testkit::aml::Aml;
use towline_testkit::{Home, Output, until_within};

const TOW: &str = env!("CARGO_BIN_EXE_tow");

pub(crate) const FLAVOURS: [&str; 3] = ["aml", "itp", "sing"];

/// What `seq 1 COUNT` prints, each line with words before it.
pub(crate) fn lines(count: u32, before: &str) -> String {
    (1..=count)
        .map(|line| format!("{before}{line}\n"))
        .collect::<Vec<_>>()
        .concat()
}

/// A home with one cluster of each flavour, `aml` the default.
pub(crate) struct Lab {
    pub(crate) home: Home,
    pub(crate) aml: Aml,
}

impl Lab {
    pub(crate) fn new() -> Self {
        let aml = Aml::start();
        Self {
            home: aml.home_of("alice", TOW),
            aml,
        }
    }

    /// The usual configuration, with more lines.
    pub(crate) fn configure(&self, more: &str) {
        self.home.configure(&(self.aml.configuration() + more));
    }

    /// Another machine: alice's own, or a colleague's.
    pub(crate) fn beside(&self, user: &str) -> Home {
        self.aml.home_of(user, TOW)
    }

    pub(crate) fn tow<S: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = S>) -> Output {
        self.home.tow(words)
    }

    /// Waits for a run's end; its record then.
    #[track_caller]
    pub(crate) fn ended(&self, run: &str) -> Value {
        let waited = self.tow(["wait", run, "--timeout", "2m"]);
        assert_ne!(
            waited.code,
            124,
            "{run} does not end: {waited:?}\n{:?} {:?}",
            self.aml.last_words(run),
            self.tow(["show", run])
        );
        self.home.show(run)
    }

    /// Waits until a line of rank 0 is known here.
    #[track_caller]
    pub(crate) fn until_logged(&self, run: &str, line: &str) {
        until_within(60, &format!("{run} to print {line}"), || {
            self.tow(["logs", run])
                .stdout
                .lines()
                .any(|known| known == line)
                .then_some(())
        });
    }

    /// Waits until the service's word for a run's job is known here.
    #[track_caller]
    pub(crate) fn until_word(&self, run: &str, word: &str) {
        until_within(60, &format!("{run} to be called {word}"), || {
            (self.home.show(run)["native"]["word"] == word).then_some(())
        });
    }

    /// All of a log.
    #[track_caller]
    pub(crate) fn log(&self, run: &str, attempt: u32, rank: u32) -> String {
        self.tow([
            "logs",
            run,
            "--attempt",
            &attempt.to_string(),
            "--rank",
            &rank.to_string(),
        ])
        .ok()
        .stdout
    }

    /// Waits until nothing of a job runs.
    #[track_caller]
    pub(crate) fn until_gone(&self, run: &str) {
        assert!(
            self.aml.status(run).is_some(),
            "the service knows no job {run}"
        );
        until_within(60, &format!("the processes of {run} to be gone"), || {
            self.aml.process_groups(run).is_empty().then_some(())
        });
    }

    /// What was put for a run: the properties of its job.
    #[track_caller]
    pub(crate) fn put(&self, run: &str) -> Value {
        let end = format!("/jobs/{run}?");
        let pair = self
            .aml
            .recorded()
            .into_iter()
            .find(|pair| pair.method == "PUT" && pair.target.contains(&end));
        pair.unwrap_or_else(|| panic!("no job was put for {run}"))
            .json["liveRequest"]["body"]["properties"]
            .clone()
    }

    /// Waits until `tow show` says so of a run.
    #[track_caller]
    pub(crate) fn until_state(&self, run: &str, wanted: &str) {
        until_within(60, &format!("{run} to be {wanted}"), || {
            (self.home.state_of(run) == wanted).then_some(())
        });
    }
}
