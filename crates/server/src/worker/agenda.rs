//! The work for a far cluster, and when each part of it is due. Times are by the steady clock.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use towline_core::RunId;
use towline_core::cluster::{Observed, RunRef, RunReport};
use towline_core::plan::Plan;
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
#[derive(Debug)]
pub(super) struct Submission {
    pub(super) plan: Arc<Plan>,
    /// We or an earlier daemon tried it before, so the cluster may have it.
    pub(super) again: bool,
    /// Since when the cluster has shown no job of it.
    pub(super) absent: Option<Duration>,
}

/// The work for a cluster.
#[derive(Debug)]
pub(super) struct Agenda {
    /// The time of the present step.
    pub(super) now: Duration,
    /// The cluster reports changes by itself, so that polling is only a safety net.
    watches: bool,
    pub(super) submissions: VecDeque<Submission>,
    pub(super) cancels: Vec<RunRef>,
    pub(super) watched: BTreeMap<RunId, RunRef>,
    pub(super) followed: BTreeMap<RunId, RunRef>,
    /// Logs for which a client waits, by its connection.
    pub(super) fetches: VecDeque<(RunRef, u64)>,
    /// How long the last look took. The next one waits a few times as long.
    cost: Duration,
    /// A followed log has more bytes than the last look brought.
    is_behind: bool,
    /// None if a look is due.
    looked: Option<Duration>,
    /// None if a query is due.
    asked: Option<Duration>,
    ask_every: Duration,
    /// The scheduler is queried then at the latest, because something must be settled or the user
    /// waits.
    ask_by: Option<Duration>,
    /// Whether the scheduler answered the last query.
    pub(super) is_answered: bool,
    backoff: Backoff,
    /// The end of the pause after a failure.
    paused_until: Option<Duration>,
    used: Duration,
    changed: Duration,
    pub(super) last: HashMap<RunId, RunReport>,
}

impl Agenda {
    pub(super) fn new(watches: bool, now: Duration) -> Self {
        Self {
            now,
            watches,
            submissions: VecDeque::new(),
            cancels: Vec::new(),
            watched: BTreeMap::new(),
            followed: BTreeMap::new(),
            fetches: VecDeque::new(),
            cost: Duration::ZERO,
            is_behind: false,
            looked: Some(now),
            asked: None,
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

    fn since(&self, then: Duration) -> Duration {
        self.now.saturating_sub(then)
    }

    fn look_every(&self) -> Duration {
        let usual = match (
            self.followed.is_empty(),
            self.since(self.changed) < LIVELY_TIME,
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
        self.look_in().is_zero() || self.ask_in().is_zero()
    }

    /// How long until the next look.
    fn look_in(&self) -> Duration {
        self.looked.map_or(Duration::ZERO, |looked| {
            self.look_every().saturating_sub(self.since(looked))
        })
    }

    /// How long until the next query to the scheduler.
    pub(super) fn ask_in(&self) -> Duration {
        let usual = self.asked.map_or(Duration::ZERO, |asked| {
            self.ask_every.saturating_sub(self.since(asked))
        });
        self.ask_by
            .map_or(usual, |by| usual.min(by.saturating_sub(self.now)))
    }

    pub(super) const fn is_used(&mut self) {
        self.used = self.now;
    }

    /// Notes a look: at the records alone, or also at the scheduler (`asked`).
    pub(super) fn has_looked(&mut self, asked: bool, observed: &Observed) {
        let now = self.now;
        let settled = observed
            .settles_in
            .map(|millis| now + Duration::from_millis(millis).max(SHORTEST_ASK_INTERVAL));
        self.looked = Some(now);
        if asked {
            self.asked = Some(now);
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
            self.paused_until = Some(self.now + self.backoff.pause());
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
        let earliest = self.asked.map(|asked| asked + SHORTEST_ASK_INTERVAL);
        self.ask_by = Some(self.now.max(earliest.unwrap_or_default()));
    }

    /// Makes the next look due now.
    pub(super) const fn look_now(&mut self) {
        self.looked = None;
    }

    /// Makes the next look query the scheduler, however recent the last query is.
    pub(super) const fn ask_in_any_case(&mut self) {
        self.asked = None;
    }

    pub(super) fn ask_soon(&mut self) {
        self.changed = self.now;
        self.ask_every = ASK_INTERVALS.0;
    }

    pub(super) fn is_paused(&self) -> bool {
        self.paused_until.is_some_and(|until| self.now < until)
    }

    pub(super) fn is_idle(&self) -> bool {
        self.watched.is_empty()
            && self.submissions.is_empty()
            && self.cancels.is_empty()
            && self.since(self.used) > IDLE_CONNECTION_TIMEOUT
    }

    /// How long there is nothing to do, if no order comes.
    pub(super) fn wait(&self) -> Duration {
        if !self.fetches.is_empty() {
            return Duration::ZERO;
        }
        if let Some(until) = self.paused_until {
            return until.saturating_sub(self.now).max(Duration::from_millis(1));
        }
        if self.watched.is_empty() {
            return IDLE_CONNECTION_TIMEOUT;
        }
        self.look_in()
            .min(self.ask_in())
            .max(Duration::from_millis(10))
    }

    /// Stops watching and following a run.
    pub(super) fn forget(&mut self, run: &RunId) {
        self.watched.remove(run);
        self.last.remove(run);
        self.followed.remove(run);
    }
}
