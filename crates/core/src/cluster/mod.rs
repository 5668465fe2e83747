//! The seam to a cluster, the same for every kind, this machine included. Every implementation
//! passes the contract suite of the test kit, which is chosen by [`Caps`].
//!
//! Calls block; whoever must not wait calls from a thread of their own. All may be repeated. No
//! runtime is named: a kind that needs one is given its handle when it is made.

mod caps;
pub mod events;
mod facts;
mod fit;
mod logs;
mod page;
mod reach;
mod records;
mod report;

pub use caps::Caps;
pub use facts::{Facts, GpuFacts, GpuMake, GpuQuota, NodeFacts};
pub use fit::{Asked, Draft, Fit};
pub use logs::{Cursor, LogBytes, LogLength, LogSource};
pub use page::{Cell, Page, Section, Tone};
pub use reach::{Purpose, Reach, ReachRequest, SshAddress};
pub use records::{Claim, End, Held, JobStart, Started};
pub use report::{AttemptReport, Explanation, FileEntry, KnownJob, Observed, RunRef, RunReport};

use crate::plan::{Plan, Request};
use crate::redact::SecretSet;
use crate::transport::Transport;
use crate::{Error, Result, RunId};
use std::sync::Arc;
use std::time::Duration;

/// The content of blobs of a snapshot, each when it is its turn.
pub type BlobBytes<'a> = dyn Iterator<Item = Result<(String, Vec<u8>)>> + 'a;

/// Called by a cluster that watches, from any thread, when [`Cluster::observe`] has something new.
pub type Wake = Arc<dyn Fn() + Send + Sync>;

/// How much is asked when runs are observed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// Only what is quick to know: what the runs themselves wrote down.
    Records,
    /// The scheduler, or the service, is asked too.
    Scheduler,
}

/// One cluster.
pub trait Cluster: Send + Sync + std::fmt::Debug {
    /// The word of the configuration: `slurm`.
    fn kind(&self) -> &'static str;
    fn name(&self) -> &str;
    fn caps(&self) -> Caps;

    /// Makes sure that it can be reached, signing in where that is needed; with `may_ask` the user
    /// may be asked on the terminal.
    fn connect(&self, _may_ask: bool) -> Result<()> {
        Ok(())
    }
    /// What keeps it from answering a question that is being asked again and again just now. Told
    /// to any thread, while another waits.
    fn trouble(&self) -> Option<Error> {
        None
    }
    /// Whether a connection to it is held.
    fn is_open(&self) -> bool {
        false
    }
    /// Lets the connection go; the next question opens another.
    fn hang_up(&self) {}
    /// The machine that its scheduler's commands run on, where there is one.
    fn transport(&self) -> Option<&dyn Transport> {
        None
    }

    /// What it has, as it was learnt some minutes ago at most; `None` where it has to be asked.
    fn remembered_facts(&self) -> Option<Facts>;
    /// Asks the cluster what it has, and remembers it.
    fn facts(&self) -> Result<Facts>;
    /// What `tow nodes` shows. What only this page needs may be asked, and is added to the facts.
    fn page(&self, facts: &mut Facts) -> Page;
    /// One line for `tow doctor`.
    fn summary(&self, facts: &Facts) -> String;
    /// Whether what submissions need beside the scheduler answers: a store for code and results.
    fn check_stage(&self) -> Result<()> {
        Ok(())
    }
    /// What is told of a stage that does not answer.
    fn stage_trouble(&self, error: Error) -> Error {
        error
    }

    /// What the job needs there and gets there, or why it can never run. It may ask the cluster
    /// about what this job alone names.
    fn fit(&self, draft: Draft<'_>) -> Result<Fit>;
    /// The exact thing that will be sent, or why this job can never run here. Pure: equal arguments
    /// give equal requests, and nothing is asked.
    fn render(&self, asked: &Asked<'_>, facts: &Facts) -> Result<Request>;
    /// What whoever submits should know of this plan. Pure.
    fn notes(&self, _plan: &Plan, _facts: &Facts) -> Vec<String> {
        Vec::new()
    }

    /// Which of these blobs of snapshots are not there.
    fn missing(&self, blobs: Vec<String>) -> Result<Vec<String>>;
    /// Stores blobs of a snapshot, in this order. What is there already stays.
    fn put(&self, blobs: &mut BlobBytes<'_>) -> Result<()>;

    /// Submits every run of a plan as one call; the cluster's name for each, in their order.
    /// Idempotent on the run ids: a second call finds the first one's work. After an error of kind
    /// `Unreachable` something may have been created; after any other nothing was.
    fn submit(&self, plan: &Plan, secrets: &SecretSet) -> Result<Vec<String>>;
    /// One question whatever the number of runs; a report for each, in their order. An error means
    /// that nothing is known of any; a run that the cluster never heard of is reported as such.
    fn observe(&self, runs: &[RunRef], depth: Depth) -> Result<Observed>;
    /// Asks for the end of runs; fine if they have ended or are gone. Gives those that the cluster
    /// will not end, and why. After an error nothing is known: they may be ending.
    fn cancel(&self, runs: &[RunRef]) -> Result<Vec<(RunId, Error)>>;
    /// Has `wake` called whenever something changed, where [`Caps::watches`]; polling is the
    /// default.
    fn on_change(&self, _wake: Wake) {}
    /// For how long a submission that was accepted may not be listed yet.
    fn listing_delay(&self) -> Duration {
        Duration::ZERO
    }
    /// Nothing of this plan is there, nor will be: drops what was kept for it.
    fn give_up(&self, _plan: &Plan) -> Result<()> {
        Ok(())
    }
    /// Why a run waits, or how the cluster saw it.
    fn explain(&self, run: &RunRef) -> Result<Explanation>;
    /// Drops what the cluster keeps of ended runs. Fine if it is gone.
    fn forget(&self, runs: &[RunRef]) -> Result<()>;

    /// Every log of a run, with its length.
    fn logs(&self, run: &RunRef) -> Result<Vec<LogLength>>;
    /// At most `most` bytes of a log from a place on. A log that is not there is empty.
    fn log_bytes(&self, run: &RunRef, from: &Cursor, most: u64) -> Result<LogBytes>;
    /// The end of what the platform itself wrote of a job, for one whose own program never spoke.
    fn platform_log(&self, _run: &RunRef) -> Result<Vec<String>> {
        Ok(Vec::new())
    }
    /// What lies at a path of a run's folder: the entry itself, and all below it.
    fn files(&self, run: &RunRef, path: &str) -> Result<Vec<FileEntry>>;
    /// At most `most` bytes of a file of a run's folder. A file that is not there is empty.
    fn file_bytes(&self, run: &RunRef, path: &str, offset: u64, most: u64) -> Result<Vec<u8>>;
    /// Which files of a run outlive it, where these are not all.
    fn kept_files(&self) -> Option<&'static str> {
        None
    }
    /// Where a run's folder lies, and its code where that is kept, in words that the cluster's
    /// other tools know. Nothing is asked.
    fn run_folder(&self, _run: &RunId) -> Option<(String, Option<String>)> {
        None
    }
    /// A page in the web about what the cluster calls so.
    fn web_page(&self, _native: &str) -> Option<String> {
        None
    }

    /// What the cluster itself knows, whoever submitted it from wherever.
    fn known_jobs(&self) -> Result<Vec<KnownJob>>;
    /// The plan of a submission, or of a job that another tool submitted, by the cluster's own name
    /// for it.
    fn plan_of(&self, submission: &RunId, native: Option<&str>) -> Result<Option<Plan>>;
    /// The way into a run that is running.
    fn reach(&self, request: &ReachRequest<'_>) -> Result<Reach>;
}
