//! What was learnt of runs so far: what does not change is asked once. All of it may be forgotten.

use super::state::RunError;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::{Duration, Instant};
use towline_core::RunId;
use towline_core::cluster::LogSource;
use towline_wire::crew::{SecretPlace, StatusDocument};

/// A job in its final state has sent all its news after this time.
pub(super) const SETTLE_TIME: Duration = Duration::from_secs(4);
/// A job that was there and is not found counts as lost after this time.
pub(super) const LOST_AFTER: Duration = Duration::from_secs(90);

/// Where a run's own objects are, if it has any.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ObjectPlace {
    /// Below this path of the workspace's datastore.
    Stage(String),
    /// Another tool's: only what the service keeps.
    Foreign,
}

/// Lengths, by what they are logs of.
pub(super) type Ends = BTreeMap<(u32, LogSource), u64>;

/// What is left to do when a run of a submission has ended by its own account.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Remains {
    /// Results come with the service's end.
    pub uploads: bool,
    /// Secrets lie in the vault until then.
    pub secrets: bool,
}

#[derive(Debug, Default)]
pub(super) struct Memory {
    pub object_place: HashMap<RunId, ObjectPlace>,
    /// News with the version of the object they were read from.
    pub status_document: HashMap<RunId, (String, StatusDocument)>,
    /// Since when a job is in its final state.
    pub finals: HashMap<RunId, Instant>,
    /// Since when a job is not found.
    pub missing: HashMap<RunId, Instant>,
    pub seen: HashSet<RunId>,
    pub errors: HashMap<RunId, Option<RunError>>,
    /// Where logs of other tools' jobs ended when they were last looked at.
    pub ends: HashMap<RunId, Ends>,
    /// Addresses of files that run history keeps, and when they were given.
    pub addresses: HashMap<(RunId, String), (Instant, String)>,
    /// What of a submission is over only with the service's end.
    pub remains: HashMap<RunId, Remains>,
    /// Runs that are to end, and since when the service does not know them, or will not hear of it.
    pub unacknowledged: HashMap<RunId, Instant>,
    /// When the service was told to end a run.
    pub told: HashMap<RunId, Instant>,
    /// Since when a job is being ended by the service, or a run waits for it.
    pub slow: HashMap<RunId, Instant>,
    /// Since when a name is in conflict.
    pub conflicts: HashMap<RunId, Instant>,
    /// Where the secrets of submissions are that are on their way.
    pub kept: HashMap<RunId, SecretPlace>,
    /// Submissions whose secrets are gone from the vault.
    pub cleared: HashSet<RunId>,
    /// Environments and datastores that are registered.
    pub registered: HashSet<String>,
    /// When objects of the stage that never change were last seen there.
    pub staged: HashMap<String, Instant>,
    /// When a datastore was last put with a signature, by its name and what the signature was made
    /// of.
    pub signed: HashMap<String, Instant>,
    /// Client ids of identities that are not the workspace's own.
    pub clients: HashMap<String, String>,
    /// Where the vault answers.
    pub vault: Option<String>,
}

/// What the service was told to end is not told again for so long.
const CANCEL_REPEAT_INTERVAL: Duration = Duration::from_secs(60);

/// What was seen in the stage is taken to be there for so long: nobody but its owner removes
/// anything.
const STAGED_TRUST_TIME: Duration = Duration::from_secs(600);

impl Memory {
    pub(super) fn is_staged(&self, key: &str) -> bool {
        self.staged
            .get(key)
            .is_some_and(|seen| seen.elapsed() < STAGED_TRUST_TIME)
    }

    /// The service has heard that it is to end.
    pub(super) fn heard(&mut self, run: &RunId) {
        self.unacknowledged.remove(run);
        self.told.insert(run.clone(), Instant::now());
    }
    pub(super) fn not_heard(&mut self, run: &RunId) {
        self.unacknowledged
            .entry(run.clone())
            .or_insert_with(Instant::now);
        self.told.insert(run.clone(), Instant::now());
    }
    /// Told a moment ago. Whoever asks for it again later means it.
    pub(super) fn was_told(&self, run: &RunId) -> bool {
        self.told
            .get(run)
            .is_some_and(|told| told.elapsed() < CANCEL_REPEAT_INTERVAL)
    }

    pub(super) fn forget(&mut self, run: &RunId) {
        self.object_place.remove(run);
        self.status_document.remove(run);
        self.finals.remove(run);
        self.missing.remove(run);
        self.seen.remove(run);
        self.errors.remove(run);
        self.ends.remove(run);
        self.addresses.retain(|(of, _), _| of != run);
        self.unacknowledged.remove(run);
        self.told.remove(run);
        self.slow.remove(run);
        self.conflicts.remove(run);
    }
}
