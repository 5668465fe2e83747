//! The work of a far cluster's thread, and when each part of it is due.

use super::orders::Replies;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};
use towline_core::RunId;
use towline_core::cluster::{Observed, RunRef, RunReport};
use towline_core::plan::Plan;
use towline_core::redact::SecretSet;
use towline_host::backoff::Backoff;

/// How often to read the records of runs that somebody watches.
const FOLLOWED_LOOK_INTERVAL: Duration = Duration::from_millis(400);
/// How often to read the records of runs that nobody watches: soon after a change, and later.
const LOOK_INTERVALS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(5));
const LIVELY_TIME: Duration = Duration::from_secs(15);
/// How often to query the scheduler: soon after a change, and later.
const ASK_INTERVALS: (Duration, Duration) = (Duration::from_secs(4), Duration::from_secs(20));
/// The shortest interval between two queries, even if the user waits or something must be settled.
const SHORTEST_ASK_INTERVAL: Duration = Duration::from_millis(300);
/// The first and the longest pause after a failure.
const FAILURE_PAUSES: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(30));
/// How long an unused connection stays open.
const IDLE_CONNECTION_TIMEOUT: Duration = Duration::from_secs(60);

/// A submission that has to reach the cluster.
pub(super) struct Submission {
    pub(super) plan: Arc<Plan>,
    pub(super) secrets: SecretSet,
    /// We or an earlier daemon tried it before, so the cluster may have it.
    pub(super) again: bool,
    /// Since when the cluster has shown no job of it.
    pub(super) absent: Option<Instant>,
}

/// The work of a cluster's thread.
pub(super) struct Agenda {
    /// The cluster reports changes by itself, so that polling is only a safety net.
    watches: bool,
    pub(super) submissions: VecDeque<Submission>,
    pub(super) cancels: Vec<RunRef>,
    pub(super) watched: HashMap<RunId, RunRef>,
    pub(super) followed: HashMap<RunId, RunRef>,
    /// Logs for which a client waits.
    pub(super) fetches: VecDeque<(RunRef, Replies)>,
    /// How long the last look took. The next one waits a few times as long.
    cost: Duration,
    /// A followed log has more bytes than the last look brought.
    is_behind: bool,
    looked: Instant,
    asked: Instant,
    ask_every: Duration,
    /// The scheduler is queried then at the latest, because something must be settled or the user
    /// waits.
    ask_by: Option<Instant>,
    /// Whether the scheduler answered the last query.
    pub(super) is_answered: bool,
    backoff: Backoff,
    /// The end of the pause after a failure.
    paused_until: Option<Instant>,
    used: Instant,
    changed: Instant,
    pub(super) last: HashMap<RunId, RunReport>,
}

impl Agenda {
    pub(super) fn new(watches: bool) -> Self {
        let now = Instant::now();
        Self {
            watches,
            submissions: VecDeque::new(),
            cancels: Vec::new(),
            watched: HashMap::new(),
            followed: HashMap::new(),
            fetches: VecDeque::new(),
            cost: Duration::ZERO,
            is_behind: false,
            looked: now,
            asked: now.checked_sub(ASK_INTERVALS.1).unwrap_or(now),
            ask_every: ASK_INTERVALS.0,
            ask_by: None,
            is_answered: false,
            backoff: Backoff::new(FAILURE_PAUSES.0, FAILURE_PAUSES.1),
            paused_until: None,
            used: now,
            changed: now,
            last: HashMap::new(),
        }
    }

    pub(super) fn look_every(&self) -> Duration {
        let usual = match (
            self.followed.is_empty(),
            self.changed.elapsed() < LIVELY_TIME,
        ) {
            (false, _) if self.is_behind => return Duration::ZERO,
            (false, _) => FOLLOWED_LOOK_INTERVAL,
            (true, _) if self.watches => ASK_INTERVALS.1,
            (true, true) => LOOK_INTERVALS.0,
            (true, false) => LOOK_INTERVALS.1,
        };
        usual.max(self.cost * 4)
    }

    pub(super) fn took(&mut self, cost: Duration, is_all: bool) {
        (self.cost, self.is_behind) = (cost, !is_all);
    }

    pub(super) fn is_due(&self) -> bool {
        self.looked.elapsed() >= self.look_every() || self.ask_in().is_zero()
    }

    /// How long until the next query to the scheduler.
    pub(super) fn ask_in(&self) -> Duration {
        let usual = self.ask_every.saturating_sub(self.asked.elapsed());
        self.ask_by.map_or(usual, |by| {
            usual.min(by.saturating_duration_since(Instant::now()))
        })
    }

    pub(super) fn is_used(&mut self) {
        self.used = Instant::now();
    }

    /// Notes a look: at the records alone, or also at the scheduler (`asked`).
    pub(super) fn has_looked(&mut self, asked: bool, observed: &Observed) {
        let now = Instant::now();
        let settled = observed
            .settles_in
            .map(|millis| now + Duration::from_millis(millis).max(SHORTEST_ASK_INTERVAL));
        self.looked = now;
        if asked {
            self.asked = now;
            self.ask_every = (self.ask_every * 3 / 2).min(ASK_INTERVALS.1);
            self.is_answered = observed.unasked.is_none();
            self.ask_by = settled;
        } else if settled.is_some() {
            // The records are not enough: only a query to the scheduler can settle it.
            self.ask_by = settled;
        }
    }

    /// Sets the pause, which doubles with each failure and ends with a success.
    pub(super) fn pause_after(&mut self, failed: bool) {
        if failed {
            self.paused_until = Some(Instant::now() + self.backoff.pause());
        } else {
            self.end_pause();
        }
    }

    /// The next failure is followed by a short pause again.
    pub(super) fn end_pause(&mut self) {
        self.paused_until = None;
        self.backoff.reset();
    }

    /// Queries the scheduler as soon as the shortest interval allows, because the user waits.
    pub(super) fn ask_now(&mut self) {
        self.ask_by = Some(Instant::now().max(self.asked + SHORTEST_ASK_INTERVAL));
    }

    /// Makes the next look due now.
    pub(super) fn look_now(&mut self) {
        self.looked = self
            .looked
            .checked_sub(ASK_INTERVALS.1)
            .unwrap_or(self.looked);
    }

    /// Makes the next look query the scheduler, however recent the last query is.
    pub(super) fn ask_in_any_case(&mut self) {
        self.asked = self.asked.checked_sub(self.ask_every).unwrap_or(self.asked);
    }

    pub(super) fn ask_soon(&mut self) {
        self.changed = Instant::now();
        self.ask_every = ASK_INTERVALS.0;
    }

    pub(super) fn is_paused(&self) -> bool {
        self.paused_until
            .is_some_and(|until| Instant::now() < until)
    }

    pub(super) fn is_idle(&self) -> bool {
        self.watched.is_empty()
            && self.submissions.is_empty()
            && self.cancels.is_empty()
            && self.used.elapsed() > IDLE_CONNECTION_TIMEOUT
    }

    pub(super) fn wait(&self) -> Duration {
        if !self.fetches.is_empty() {
            return Duration::ZERO;
        }
        if let Some(until) = self.paused_until {
            return until
                .saturating_duration_since(Instant::now())
                .max(Duration::from_millis(1));
        }
        if self.watched.is_empty() {
            return IDLE_CONNECTION_TIMEOUT;
        }
        let look = self.look_every().saturating_sub(self.looked.elapsed());
        look.min(self.ask_in()).max(Duration::from_millis(10))
    }

    /// Stops watching and following a run.
    pub(super) fn forget(&mut self, run: &RunId) {
        self.watched.remove(run);
        self.last.remove(run);
        self.followed.remove(run);
    }
}
