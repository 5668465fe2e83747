//! The seam to a cluster, the same for every kind, this machine included. Every implementation
//! passes the contract suite of the test kit, which is chosen by [`Caps`].
//!
//! Calls block; a caller that must not wait uses a thread of its own. All calls may be repeated. No
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

use crate::change::Change;
use crate::plan::{Plan, Request};
use crate::redact::SecretSet;
use crate::transport::Transport;
use crate::{Error, Result, RunId};
use std::sync::Arc;
use std::time::Duration;

/// The blobs of a snapshot, read one by one.
pub type BlobBytes<'a> = dyn Iterator<Item = Result<(String, Vec<u8>)>> + 'a;

/// Called by a cluster that watches, from any thread, when [`Cluster::observe`] has something new.
pub type Wake = Arc<dyn Fn() + Send + Sync>;

/// How much is queried when runs are observed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// Only facts that are quick to get: the records that the runs themselves wrote.
    Records,
    /// The scheduler, or the service, is queried too.
    Scheduler,
}

/// One cluster.
pub trait Cluster: Send + Sync + std::fmt::Debug {
    /// The word in the configuration: `slurm`.
    fn kind(&self) -> &'static str;
    fn name(&self) -> &str;
    fn caps(&self) -> Caps;

    /// Connects, and signs in if needed; with `may_ask` the user may be asked on the terminal.
    fn connect(&self, _may_ask: bool) -> Result<()> {
        Ok(())
    }
    /// The error for which a query is being retried just now. Any thread may ask, while another
    /// waits.
    fn trouble(&self) -> Option<Error> {
        None
    }
    /// Whether a connection to it is open.
    fn is_open(&self) -> bool {
        false
    }
    /// Closes the connection; the next query opens another.
    fn hang_up(&self) {}
    /// The machine that runs its scheduler's commands, if there is one.
    fn transport(&self) -> Option<&dyn Transport> {
        None
    }

    /// Its facts if they are at most some minutes old; `None` if they must be queried.
    fn remembered_facts(&self) -> Option<Facts>;
    /// Queries the facts of the cluster, and remembers them.
    fn facts(&self) -> Result<Facts>;
    /// The page of `tow nodes`. It may query facts that only this page needs, and adds them to
    /// `facts`.
    fn page(&self, facts: &mut Facts) -> Page;
    /// The kinds of machines that a job can name there (`instance_type`), each with a few words
    /// about it, as the cluster last listed them. Nothing is queried.
    fn machine_types(&self) -> Vec<(String, String)> {
        Vec::new()
    }
    /// One line for `tow doctor`.
    fn summary(&self, facts: &Facts) -> String;
    /// Whether the store for code and results answers, which submissions need besides the
    /// scheduler.
    fn check_stage(&self) -> Result<()> {
        Ok(())
    }
    /// The error of a stage that does not answer, with its hints.
    fn stage_trouble(&self, error: Error) -> Error {
        error
    }

    /// What the job needs there and gets there, or why it can never run. It may query facts about
    /// things that this job names.
    fn fit(&self, draft: Draft<'_>) -> Result<Fit>;
    /// The exact request that will be sent, or why this job can never run here. Pure: equal
    /// arguments give equal requests, and nothing is queried.
    fn render(&self, asked: &Asked<'_>, facts: &Facts) -> Result<Request>;
    /// Notes for the submitter about this plan. Pure.
    fn notes(&self, _plan: &Plan, _facts: &Facts) -> Vec<String> {
        Vec::new()
    }

    /// The blobs of a snapshot that the cluster does not have.
    fn missing(&self, blobs: Vec<String>) -> Result<Vec<String>>;
    /// Stores blobs of a snapshot, in this order. A present blob is left unchanged.
    fn put(&self, blobs: &mut BlobBytes<'_>) -> Result<()>;

    /// Submits every run of a plan as one call; the cluster's name for each, in their order.
    /// Idempotent on the run ids: a second call finds the first one's work. After an error of kind
    /// `Unreachable` something may have been created; after any other nothing was.
    fn submit(&self, plan: &Plan, secrets: &SecretSet) -> Result<Vec<String>>;
    /// Observes runs with one query, whatever their number; a report for each, in their order. An
    /// error means that nothing is known of any; a run that the cluster has never had is reported
    /// as such.
    fn observe(&self, runs: &[RunRef], depth: Depth) -> Result<Observed>;
    /// Cancels runs. It is no error if they have ended or are gone. Returns those that the cluster
    /// refuses to end, and why. After an error nothing is known: they may be ending.
    fn cancel(&self, runs: &[RunRef]) -> Result<Vec<(RunId, Error)>>;
    /// Changes runs that wait, if its capabilities say so. Returns those that the cluster refuses
    /// to change, and why.
    fn change(&self, _runs: &[RunRef], change: &Change) -> Result<Vec<(RunId, Error)>> {
        Err(Error::unsupported(format!(
            "a cluster of kind `{}` cannot {} a run",
            self.kind(),
            change.verb()
        )))
    }
    /// Calls `wake` after every change, if [`Caps::watches`]; polling is the default.
    fn on_change(&self, _wake: Wake) {}
    /// How long an accepted submission may be missing in lists.
    fn listing_delay(&self) -> Duration {
        Duration::ZERO
    }
    /// Nothing of this plan is there, nor will be: removes what was stored for it.
    fn give_up(&self, _plan: &Plan) -> Result<()> {
        Ok(())
    }
    /// Why a run waits, or how the cluster saw its end.
    fn explain(&self, run: &RunRef) -> Result<Explanation>;
    /// Removes what the cluster stores of ended runs. It is no error if that is gone.
    fn forget(&self, runs: &[RunRef]) -> Result<()>;

    /// Every log of a run, with its length.
    fn logs(&self, run: &RunRef) -> Result<Vec<LogLength>>;
    /// At most `most` bytes of a log from a position on. A missing log is empty.
    fn log_bytes(&self, run: &RunRef, from: &Cursor, most: u64) -> Result<LogBytes>;
    /// The end of the platform's own log of a job, for one whose program never wrote anything.
    fn platform_log(&self, _run: &RunRef) -> Result<Vec<String>> {
        Ok(Vec::new())
    }
    /// The entry at a path of a run's folder, and all entries below it.
    fn files(&self, run: &RunRef, path: &str) -> Result<Vec<FileEntry>>;
    /// At most `most` bytes of a file of a run's folder. A missing file is empty.
    fn file_bytes(&self, run: &RunRef, path: &str, offset: u64, most: u64) -> Result<Vec<u8>>;
    /// Whether files of an ended run may still be on their way to the place that `files` lists.
    fn is_storing_files(&self, _run: &RunRef) -> Result<bool> {
        Ok(false)
    }
    /// The files of a run that outlive it, if not all do.
    fn kept_files(&self) -> Option<&'static str> {
        None
    }
    /// The place of a run's folder, and of its code if that is kept, in the terms of the cluster's
    /// other tools. Nothing is queried.
    fn run_folder(&self, _run: &RunId) -> Option<(String, Option<String>)> {
        None
    }
    /// The web page about the cluster's own id.
    fn web_page(&self, _native: &str) -> Option<String> {
        None
    }

    /// All jobs that the cluster itself knows, submitted by any tool on any machine.
    fn known_jobs(&self) -> Result<Vec<KnownJob>>;
    /// The plan of a submission, or of a job that another tool submitted, by the cluster's own name
    /// for it.
    fn plan_of(&self, submission: &RunId, native: Option<&str>) -> Result<Option<Plan>>;
    /// How to reach a running run.
    fn reach(&self, request: &ReachRequest<'_>) -> Result<Reach>;
}
