//! A cache of facts about runs, so that a fact that cannot change is asked once. It may be dropped
//! at any time.

use super::state::RunError;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::{Duration, Instant};
use towline_core::RunId;
use towline_core::cluster::LogSource;
use towline_wire::crew::{SecretPlace, StatusDocument};

/// All status documents of a job have arrived this long after its final state.
pub(super) const SETTLE_TIME: Duration = Duration::from_secs(4);
/// A job that existed and is not found counts as lost after this time.
pub(super) const LOST_AFTER: Duration = Duration::from_secs(90);

/// The place of a run's own objects, if it has any.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ObjectPlace {
    /// Below this path of the workspace's datastore.
    Stage(String),
    /// Another tool submitted it: only the service stores files of it.
    Foreign,
}

/// Lengths, by what they are logs of.
pub(super) type Ends = BTreeMap<(u32, LogSource), u64>;

/// What remains to be done after a run has recorded its own end.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Remains {
    /// The service uploads results after its own end of the job.
    pub uploads: bool,
    /// The vault holds secrets until then.
    pub secrets: bool,
}

#[derive(Debug, Default)]
pub(super) struct Memory {
    pub object_place: HashMap<RunId, ObjectPlace>,
    /// The last status document, with the version of the object it was read from.
    pub status_document: HashMap<RunId, (String, StatusDocument)>,
    /// Since when a job is in its final state.
    pub finals: HashMap<RunId, Instant>,
    /// Since when a job is not found.
    pub missing: HashMap<RunId, Instant>,
    pub seen: HashSet<RunId>,
    pub errors: HashMap<RunId, Option<RunError>>,
    /// The lengths of other tools' logs at the last look.
    pub ends: HashMap<RunId, Ends>,
    /// URLs of files in run history, and when the service signed them.
    pub addresses: HashMap<(RunId, String), (Instant, String)>,
    /// What can be cleaned up only after the service reports the job as finished.
    pub remains: HashMap<RunId, Remains>,
    /// Runs with a cancel that the service has not accepted, and since when.
    pub unacknowledged: HashMap<RunId, Instant>,
    /// When the cancel of a run was last sent.
    pub told: HashMap<RunId, Instant>,
    /// Since when the service is ending a job, or a run waits for the service.
    pub slow: HashMap<RunId, Instant>,
    /// Since when the service reports a conflict about a job's name.
    pub conflicts: HashMap<RunId, Instant>,
    /// Where the secrets of submissions in progress are.
    pub kept: HashMap<RunId, SecretPlace>,
    /// Submissions whose secrets are gone from the vault.
    pub cleared: HashSet<RunId>,
    /// Environments and datastores that are registered.
    pub registered: HashSet<String>,
    /// When immutable objects of the stage were last seen there.
    pub staged: HashMap<String, Instant>,
    /// When a datastore was last registered with a signature, by its name and the credential behind
    /// the signature.
    pub signed: HashMap<String, Instant>,
    /// Client ids of identities outside the workspace.
    pub clients: HashMap<String, String>,
    /// The URL of the vault.
    pub vault: Option<String>,
}

/// How long a cancel is not sent again.
const CANCEL_REPEAT_INTERVAL: Duration = Duration::from_secs(60);

/// How long an object that was seen in the stage is assumed to be there, because only its owner
/// removes anything.
const STAGED_TRUST_TIME: Duration = Duration::from_secs(600);

impl Memory {
    pub(super) fn is_staged(&self, key: &str) -> bool {
        self.staged
            .get(key)
            .is_some_and(|seen| seen.elapsed() < STAGED_TRUST_TIME)
    }

    /// The service has accepted the cancel.
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
    /// Whether the cancel was sent a moment ago. A later request sends it again.
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
