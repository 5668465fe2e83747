//! A laptop with nothing but `tow` and ssh, and a real cluster behind a bastion.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use towline_testkit::real::Slurm;
use towline_testkit::real::slurm::Options;
use towline_testkit::{Home, Output, until};

/// A home whose default cluster is a Slurm cluster.
pub(crate) struct Lab {
    pub(crate) home: Home,
    cluster: Cluster,
}

enum Cluster {
    Shared(&'static Slurm),
    Own(Box<Slurm>),
}

impl Lab {
    /// On the cluster that all tests of this program share. Its queue is not ours alone.
    pub(crate) fn shared() -> Self {
        Self::with(Cluster::Shared(Slurm::shared()))
    }

    /// On a cluster of its own, which may be broken.
    pub(crate) fn own(options: &Options) -> Self {
        Self::with(Cluster::Own(Box::new(Slurm::start(options))))
    }

    fn with(cluster: Cluster) -> Self {
        let home = Home::new(env!("CARGO_BIN_EXE_tow")).freezing();
        let lab = Self { home, cluster };
        lab.configure("");
        lab
    }

    /// The usual configuration, with more keys for the cluster.
    pub(crate) fn configure(&self, more: &str) {
        self.configure_host("login", &self.slurm().ssh_config(), more);
    }

    /// Another way to the cluster.
    pub(crate) fn configure_host(&self, host: &str, ssh_config: &Path, more: &str) {
        self.home.configure(&format!(
            "default_cluster: lab\nclusters:\n  lab: {{kind: slurm, host: \
            {host}, ssh_config: {}{more}}}\n",
            ssh_config.display()
        ));
    }

    pub(crate) fn slurm(&self) -> &Slurm {
        match &self.cluster {
            Cluster::Shared(slurm) => slurm,
            Cluster::Own(slurm) => slurm,
        }
    }

    pub(crate) fn tow<S: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = S>) -> Output {
        self.home.tow(words)
    }

    /// The folder of a run over there, as this machine sees it.
    pub(crate) fn far(&self, run: &str) -> PathBuf {
        self.slurm().home("alice").join(".towline/runs").join(run)
    }

    /// The stage folder, as this machine sees it.
    pub(crate) fn stage(&self) -> PathBuf {
        self.slurm().home("alice").join(".towline")
    }

    /// Waits until `tow show` says so of a run.
    #[track_caller]
    pub(crate) fn until_state(&self, run: &str, wanted: &str) {
        until_within(180, &format!("{run} to be {wanted}"), || {
            (self.home.state_of(run) == wanted).then_some(())
        });
    }

    /// Waits for a run's end; its record then.
    #[track_caller]
    pub(crate) fn ended(&self, run: &str) -> serde_json::Value {
        let waited = self.tow(["wait", run, "--timeout", "3m"]);
        assert_ne!(
            waited.code,
            124,
            "{run} does not end: {waited:?}\n{}",
            self.queue()
        );
        self.home.show(run)
    }

    #[track_caller]
    pub(crate) fn until_exists(path: &Path) {
        until(&format!("{} to be there", path.display()), || {
            path.exists().then_some(())
        });
    }

    /// Waits for a file with something in it.
    #[track_caller]
    pub(crate) fn until_text(path: &Path) -> String {
        until_within(120, &format!("something in {}", path.display()), || {
            fs::read_to_string(path)
                .ok()
                .filter(|text| !text.is_empty())
        })
    }

    /// What Slurm has in its queue, ended ones too as long as it remembers.
    #[track_caller]
    pub(crate) fn queue(&self) -> String {
        self.slurm()
            .root(
                "login",
                ["squeue", "-h", "-t", "all", "-o", "%i|%F|%j|%T|%r|%u"],
            )
            .ok()
            .stdout
    }

    /// The lines of the queue that are of a submission, as fields: id, array's id, name, state,
    /// reason, user.
    #[track_caller]
    pub(crate) fn jobs_of(&self, submission: &str) -> Vec<Vec<String>> {
        let rows = self.queue();
        rows.lines()
            .map(|line| line.split('|').map(str::to_owned).collect::<Vec<_>>())
            .filter(|row| row[2] == submission)
            .collect()
    }

    /// The id of a run's job.
    #[track_caller]
    pub(crate) fn job_of(&self, run: &str) -> String {
        until(&format!("a job of {run}"), || {
            self.jobs_of(run).first().map(|row| row[0].clone())
        })
    }

    /// Nothing of alice is in the queue but what has ended.
    #[track_caller]
    pub(crate) fn assert_no_jobs(&self) {
        let alive = self
            .slurm()
            .root("login", ["squeue", "-h", "-u", "alice"])
            .ok()
            .stdout;
        assert_eq!(alive, "");
    }

    /// A job of somebody else, submitted by `sbatch` with these options; its id.
    #[track_caller]
    pub(crate) fn occupant(&self, user: &str, options: &[&str]) -> String {
        let words = ["sbatch", "--parsable", "-o", "/dev/null"]
            .into_iter()
            .chain(options.iter().copied())
            .chain(["--wrap", "sleep 600"]);
        self.slurm()
            .exec("login", user, words)
            .ok()
            .stdout
            .trim()
            .to_owned()
    }

    #[track_caller]
    pub(crate) fn cancel(&self, job: &str) {
        self.slurm().root("ctl", ["scancel", job]).ok();
    }

    #[track_caller]
    pub(crate) fn scontrol(&self, line: &str) {
        self.slurm()
            .root(
                "ctl",
                ["scontrol"].into_iter().chain(line.split_whitespace()),
            )
            .ok();
    }
}

/// Runs tests side by side, beyond what the test program does: they wait for Slurm most of their
/// time.
pub(crate) fn together(tests: &[fn()]) {
    std::thread::scope(|scope| {
        let threads: Vec<_> = tests.iter().map(|test| scope.spawn(test)).collect();
        let failed: Vec<_> = threads
            .into_iter()
            .filter_map(|thread| thread.join().err())
            .collect();
        if let Some(first) = failed.into_iter().next() {
            std::panic::resume_unwind(first);
        }
    });
}

pub(crate) use towline_testkit::until_within;

/// Files below a folder in which some bytes are.
pub(crate) fn holding(folder: &Path, needle: &[u8]) -> Vec<PathBuf> {
    assert!(folder.is_dir(), "{} is no folder", folder.display());
    below(folder, needle)
}

fn below(folder: &Path, needle: &[u8]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let Ok(kind) = entry.file_type() else {
            continue;
        };
        if kind.is_dir() {
            found.extend(below(&path, needle));
        } else if kind.is_file()
            && fs::read(&path)
                .is_ok_and(|bytes| bytes.windows(needle.len()).any(|window| window == needle))
        {
            found.push(path);
        }
    }
    found
}

impl Drop for Lab {
    /// Nothing of a test is left in the shared queue.
    fn drop(&mut self) {
        if matches!(self.cluster, Cluster::Own(_)) {
            return;
        }
        let active = self.tow(["ps", "--state", "active", "--json"]);
        let ids: Vec<String> = serde_json::from_str::<serde_json::Value>(&active.stdout)
            .ok()
            .and_then(|value| {
                value["runs"].as_array().map(|runs| {
                    runs.iter()
                        .filter_map(|run| run["id"].as_str().map(str::to_owned))
                        .collect()
                })
            })
            .unwrap_or_default();
        if !ids.is_empty() {
            let _ = self.tow(["abort"].into_iter().chain(ids.iter().map(String::as_str)));
        }
    }
}
