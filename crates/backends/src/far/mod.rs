//! What the daemon and the verbs ask of a cluster that is not this machine, whatever its kind.
//! Calls block; whoever must not wait calls from a thread of their own. All may be repeated.

pub mod events;
pub(crate) mod seam;

use std::time::Duration;
use towline_core::backend::Backend;
use towline_core::cluster::LogSource;
use towline_core::cluster::{Explanation, FileEntry, KnownJob, LogLength, Observed, RunRef};
use towline_core::plan::Plan;
use towline_core::redact::SecretSet;
use towline_core::{Error, Result, RunId};

/// The content of one blob of a snapshot, when it is its turn.
pub type BlobBytes<'a> = dyn Iterator<Item = Result<(String, Vec<u8>)>> + 'a;

/// An error of kind `Unreachable` means that nothing is known of what was asked: it may have been
/// done.
pub trait FarCluster: Backend + std::fmt::Debug {
    /// Makes sure that it can be reached, signing in where that is needed; with `may_ask` the user
    /// may be asked on the terminal.
    fn connect(&self, may_ask: bool) -> Result<()>;
    /// What keeps it from answering a question that is being asked again and again just now. Told
    /// to any thread, while another waits.
    fn trouble(&self) -> Option<Error> {
        None
    }
    /// Whether a line to it is held.
    fn is_open(&self) -> bool;
    /// Lets the line go; the next question opens another.
    fn hang_up(&self);

    /// Which of these blobs of snapshots are not there.
    fn missing(&self, blobs: Vec<String>) -> Result<Vec<String>>;
    /// Keeps blobs of a snapshot, in this order.
    fn keep(&self, blobs: &mut BlobBytes<'_>) -> Result<()>;

    /// Submits every run of a plan; the cluster's name for each, in their order.
    fn submit_plan(&self, plan: &Plan, secrets: &SecretSet) -> Result<Vec<String>>;
    /// With `ask`, the scheduler is asked too; else only what is quick to know.
    fn observe_runs(&self, runs: &[RunRef], ask: bool) -> Result<Observed>;
    /// Those that the cluster will not end, and why. Of an error nothing is known: they may be
    /// ending.
    fn cancel_runs(&self, runs: &[RunRef]) -> Result<Vec<(RunId, Error)>>;
    /// How long something that was taken may not be seen yet.
    fn unseen(&self) -> Duration {
        Duration::ZERO
    }
    /// Nothing of this plan is there, nor will be: what was kept for it goes.
    fn give_up(&self, _plan: &Plan) -> Result<()> {
        Ok(())
    }
    /// A page in the web about what the cluster calls so.
    fn page(&self, _native: &str) -> Option<String> {
        None
    }
    /// Why it waits, or how the cluster saw it.
    fn explain(&self, run: &RunRef) -> Result<Explanation>;
    /// Drops what the cluster keeps of ended runs.
    fn forget_runs(&self, runs: &[RunRef]) -> Result<()>;

    /// Every log of a run, with its length.
    fn log_lengths(&self, run: &RunRef) -> Result<Vec<LogLength>>;
    /// Bytes of a log, and the length of the whole where it is known.
    fn log_bytes(
        &self,
        run: &RunRef,
        attempt: u32,
        source: LogSource,
        offset: u64,
        most: u64,
    ) -> Result<(Vec<u8>, Option<u64>)>;
    /// What lies at a path of a run's folder.
    fn list_files(&self, run: &RunRef, path: &str) -> Result<Vec<FileEntry>>;
    /// Bytes of a file of a run's folder.
    fn file_bytes(&self, run: &RunRef, path: &str, offset: u64, most: u64) -> Result<Vec<u8>>;

    /// The end of what the platform itself wrote of a job, for one whose own program never spoke.
    fn last_words(&self, _run: &RunRef) -> Result<Vec<String>> {
        Ok(Vec::new())
    }

    /// What the cluster itself knows, whoever submitted it from wherever.
    fn known_jobs(&self) -> Result<Vec<KnownJob>>;
    /// The plan of a submission, or of a job that another tool submitted, by the cluster's own name
    /// for it.
    fn plan_of(&self, submission: &RunId, native: Option<&str>) -> Result<Option<Plan>>;
}
