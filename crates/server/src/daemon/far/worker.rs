//! The thread of one far cluster: one line to it, one question for all runs and interval, and
//! whatever else is asked of it in between. It writes nothing into the history; it tells.

use super::super::Message;
use super::logs;
use super::status::Status;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::UnboundedSender;
use towline_backends::far::FarCluster;
use towline_core::plan::Plan;
use towline_core::redact::SecretSet;
use towline_core::state::Native;
use towline_core::{Error, ErrorKind, Result, RunId};
use towline_host::crash;
use towline_wire::daemon::Reply;
use towline_wire::layout::StateFolder;
use towline_wire::site::{FarRun, RunReport};

/// How often the records of a run that somebody watches are looked at.
const WATCHED: Duration = Duration::from_millis(400);
/// And of runs that nobody watches: soon after something has changed, and later.
const UNWATCHED: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(5));
const LIVELY: Duration = Duration::from_secs(15);
/// How often the scheduler is asked at most, and at least.
const ASK: (Duration, Duration) = (Duration::from_secs(4), Duration::from_secs(20));
/// Unless the user waits for the answer, or something is to be settled: so much is between two questions at least.
const AT_ONCE: Duration = Duration::from_millis(300);
/// Pauses after a failure: from, and up to.
const PAUSE: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(30));
/// A line that nobody needs is let go after this time.
const IDLE: Duration = Duration::from_secs(60);

type Replies = UnboundedSender<Reply>;

/// What the daemon asks of a cluster's thread.
pub(in super::super) enum Order {
    /// Carries a submission over; repeated until the cluster says yes or no.
    Submit {
        plan: Arc<Plan>,
        secrets: SecretSet,
    },
    /// From now on these are looked after.
    Watch {
        runs: Vec<FarRun>,
    },
    Cancel {
        runs: Vec<FarRun>,
    },
    /// These have ended.
    Unwatch {
        runs: Vec<RunId>,
    },
    /// Its logs are kept up to date here while somebody follows it.
    Follow {
        run: FarRun,
        on: bool,
    },
    /// Brings what is new of a run's logs, then answers.
    Logs {
        run: FarRun,
        replies: Replies,
    },
    /// Looks now, whatever the time.
    Look {
        replies: Replies,
    },
    Explain {
        run: FarRun,
        replies: Replies,
    },
    Forget {
        runs: Vec<FarRun>,
    },
    Leave,
}

/// What a cluster's thread tells the daemon.
pub(in super::super) enum Word {
    /// The content is there; from here on the scheduler may have it.
    Staged {
        submission: RunId,
    },
    Submitted {
        submission: RunId,
        /// Its runs, with what the cluster calls them.
        result: Result<Vec<FarRun>>,
    },
    /// It never reached the cluster, and will not.
    Withdrawn {
        runs: Vec<RunId>,
    },
    Observed {
        reports: Vec<RunReport>,
    },
    /// What was asked for was looked at, and told before this.
    Looked {
        replies: Replies,
    },
}

pub(super) struct Worker {
    pub(super) cluster: String,
    pub(super) backend: Box<dyn FarCluster>,
    pub(super) state: StateFolder,
    pub(super) orders: Receiver<Order>,
    pub(super) inbox: UnboundedSender<Message>,
    pub(super) status: Status,
}

/// What is to be done, and when.
struct Agenda {
    submissions: VecDeque<(Arc<Plan>, SecretSet)>,
    cancels: Vec<FarRun>,
    watched: HashMap<RunId, FarRun>,
    followed: HashMap<RunId, FarRun>,
    looked: Instant,
    asked: Instant,
    ask_every: Duration,
    /// It is asked then at the latest: something is to be settled, or was asked for.
    ask_by: Option<Instant>,
    /// The scheduler answered when it was last asked.
    is_answered: bool,
    pause: Option<(Instant, Duration)>,
    used: Instant,
    changed: Instant,
    last: HashMap<RunId, RunReport>,
}

impl Worker {
    pub(super) fn serve(self) {
        let now = Instant::now();
        let mut agenda = Agenda {
            submissions: VecDeque::new(),
            cancels: Vec::new(),
            watched: HashMap::new(),
            followed: HashMap::new(),
            looked: now,
            asked: now.checked_sub(ASK.1).unwrap_or(now),
            ask_every: ASK.0,
            ask_by: None,
            is_answered: false,
            pause: None,
            used: now,
            changed: now,
            last: HashMap::new(),
        };
        loop {
            match self.orders.recv_timeout(agenda.wait()) {
                Ok(Order::Leave) | Err(RecvTimeoutError::Disconnected) => return,
                Ok(order) => {
                    self.take(order, &mut agenda);
                    while let Ok(order) = self.orders.try_recv() {
                        self.take(order, &mut agenda);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            if !agenda.is_paused() {
                self.work(&mut agenda);
            }
        }
    }

    fn tell(&self, word: Word) {
        let _ = self.inbox.send(Message::Far { cluster: self.cluster.clone(), word });
    }

    fn take(&self, order: Order, agenda: &mut Agenda) {
        agenda.used = Instant::now();
        match order {
            Order::Submit { plan, secrets } => {
                // Whoever submits is there and may have signed in by now.
                agenda.pause = None;
                agenda.submissions.push_back((plan, secrets));
            }
            Order::Watch { runs } => agenda.watched.extend(runs.into_iter().map(|far| (far.run.clone(), far))),
            Order::Unwatch { runs } => runs.iter().for_each(|run| agenda.forget(run)),
            Order::Cancel { runs } => {
                agenda.pause = None;
                self.withdraw(runs, agenda);
            }
            Order::Follow { run, on: true } => {
                agenda.pause = None;
                agenda.followed.insert(run.run.clone(), run);
            }
            Order::Follow { run, on: false } => {
                agenda.followed.remove(&run.run);
            }
            Order::Logs { run, replies } => {
                self.status.waits();
                let brought = logs::bring(self.backend.as_ref(), &self.state, &run);
                self.note(brought.as_ref().err());
                let _ = replies.send(match brought {
                    Ok(()) => Reply::LogsBrought,
                    Err(error) => Reply::Refused(towline_wire::daemon::Refusal::from(&error)),
                });
            }
            Order::Look { replies } => {
                agenda.asked = agenda.asked.checked_sub(agenda.ask_every).unwrap_or(agenda.asked);
                self.status.waits();
                let mut heard = false;
                let looked = self.look(agenda, &mut heard);
                self.note_news(&looked, heard);
                match looked {
                    Ok(()) => self.tell(Word::Looked { replies }),
                    Err(error) => drop(replies.send(Reply::Refused(towline_wire::daemon::Refusal::from(&error)))),
                }
            }
            Order::Explain { run, replies } => {
                self.status.waits();
                let answer = self.backend.explain(&run);
                self.note(answer.as_ref().err());
                let _ = replies.send(match answer {
                    Ok(explained) => Reply::FarExplained(explained),
                    Err(error) => Reply::Refused(towline_wire::daemon::Refusal::from(&error)),
                });
            }
            Order::Forget { runs } => {
                let _ = self.backend.forget_runs(&runs);
            }
            Order::Leave => {}
        }
    }

    /// What has not been carried over yet never will be; the rest is asked for over there.
    fn withdraw(&self, runs: Vec<FarRun>, agenda: &mut Agenda) {
        for far in runs {
            let held =
                agenda.submissions.iter().position(|(plan, _)| plan.id == far.submission && plan.runs.len() == 1 && !agenda.watched.contains_key(&far.run));
            match held {
                Some(place) => {
                    agenda.submissions.remove(place);
                    self.tell(Word::Withdrawn { runs: vec![far.run] });
                }
                None => agenda.cancels.push(far),
            }
        }
    }

    /// Everything that is due, until something fails.
    fn work(&self, agenda: &mut Agenda) {
        self.status.waits();
        let mut heard = false;
        let done = self.submit_all(agenda, &mut heard).and_then(|()| self.cancel_all(agenda, &mut heard)).and_then(|()| self.look(agenda, &mut heard));
        self.note_news(&done, heard);
        agenda.pause = done.is_err().then(|| {
            let pause = agenda.pause.map_or(PAUSE.0, |(_, pause)| (pause * 2).min(PAUSE.1));
            (Instant::now() + pause, pause)
        });
        if agenda.is_idle() && self.backend.is_open() {
            self.backend.hang_up();
        }
    }

    fn note_news(&self, done: &Result<()>, heard: bool) {
        match done {
            Err(error) => self.status.trouble(&error.to_string(), error.hints()),
            Ok(()) if heard => self.status.seen(),
            // Nothing was due: no news is neither good nor bad.
            Ok(()) => self.status.waits_no_more(),
        }
    }

    /// An answer to another question is no news of the runs; none at all is trouble.
    fn note(&self, error: Option<&Error>) {
        match error {
            Some(error) if error.kind() == ErrorKind::Unreachable => self.status.trouble(&error.to_string(), error.hints()),
            _ => self.status.waits_no_more(),
        }
    }

    fn submit_all(&self, agenda: &mut Agenda, heard: &mut bool) -> Result<()> {
        while let Some((plan, secrets)) = agenda.submissions.front() {
            let submission = plan.id.clone();
            // From here on it may be there, whatever becomes of us.
            let mut runs: Vec<FarRun> = plan.runs.iter().map(|run| FarRun { native: plan.native_of(&run.id), ..FarRun::of(&run.id) }).collect();
            agenda.watched.extend(runs.iter().map(|far| (far.run.clone(), far.clone())));
            let result = super::stage::stage(self.backend.as_ref(), &self.state, plan).and_then(|()| {
                self.tell(Word::Staged { submission: submission.clone() });
                crash::pass("daemon.far.staged");
                self.backend.submit_plan(plan, secrets)
            });
            crash::pass("daemon.far.answered");
            match result {
                Err(error) if error.kind() == ErrorKind::Unreachable => return Err(error),
                result => {
                    let result = result.map(|natives| {
                        runs.iter_mut().zip(natives).for_each(|(far, native)| far.native = Some(native));
                        agenda.watched.extend(runs.iter().map(|far| (far.run.clone(), far.clone())));
                        runs
                    });
                    agenda.submissions.pop_front();
                    agenda.ask_soon();
                    *heard = true;
                    // Whoever hears of it may ask at once how fresh that is.
                    self.status.seen();
                    self.status.waits();
                    self.tell(Word::Submitted { submission, result });
                }
            }
        }
        Ok(())
    }

    fn cancel_all(&self, agenda: &mut Agenda, heard: &mut bool) -> Result<()> {
        if agenda.cancels.is_empty() {
            return Ok(());
        }
        self.backend.cancel_runs(&agenda.cancels)?;
        crash::pass("daemon.far.cancelled");
        agenda.cancels.clear();
        agenda.ask_soon();
        // Whoever cancelled waits for the answer.
        agenda.ask_by = Some(Instant::now().max(agenda.asked + AT_ONCE));
        *heard = true;
        Ok(())
    }

    /// The records, and at its time the scheduler.
    fn look(&self, agenda: &mut Agenda, heard: &mut bool) -> Result<()> {
        if agenda.watched.is_empty() || !agenda.is_due() {
            return Ok(());
        }
        let ask = agenda.ask_in().is_zero();
        let runs: Vec<FarRun> = agenda.watched.values().cloned().collect();
        let observed = self.backend.observe_runs(&runs, ask)?;
        agenda.looked = Instant::now();
        if ask {
            agenda.asked = Instant::now();
            agenda.ask_every = (agenda.ask_every * 3 / 2).min(ASK.1);
            agenda.is_answered = observed.unasked.is_none();
            agenda.ask_by = observed.settles_in.map(|millis| agenda.asked + Duration::from_millis(millis).max(AT_ONCE));
        } else if let Some(millis) = observed.settles_in {
            // Only the scheduler can say more.
            agenda.ask_by = Some(Instant::now() + Duration::from_millis(millis).max(AT_ONCE));
        }
        // While the scheduler keeps silent, records alone are not all there is to know.
        *heard |= agenda.is_answered;
        let mut changed = Vec::new();
        for mut report in observed.runs {
            if !ask {
                report.native = placed(&report, agenda.last.get(&report.run));
            }
            if agenda.last.get(&report.run) != Some(&report) {
                changed.push(report);
            }
        }
        if !changed.is_empty() {
            agenda.ask_soon();
        }
        // Whoever follows has all of the logs before hearing of the end. What was not told for want of them is told at the next look.
        for run in agenda.followed.values() {
            logs::bring(self.backend.as_ref(), &self.state, run)?;
        }
        agenda.last.extend(changed.iter().map(|report| (report.run.clone(), report.clone())));
        if !changed.is_empty() {
            self.tell(Word::Observed { reports: changed });
        }
        match observed.unasked {
            Some(why) => Err(Error::unreachable(why)),
            None => Ok(()),
        }
    }
}

/// The cluster's words of before, with the hosts that the records tell.
fn placed(report: &RunReport, last: Option<&RunReport>) -> Option<Native> {
    let claim = report.attempts.last().filter(|of| of.end.is_none()).and_then(|of| of.claim.as_ref());
    let known = last.and_then(|last| last.native.clone());
    match (known, claim) {
        (Some(native), Some(claim)) => Some(Native { hosts: claim.hosts.clone(), ..native }),
        (None, Some(claim)) => Some(Native { id: claim.by.job.clone(), hosts: claim.hosts.clone(), ..Native::default() }),
        (known, None) => known,
    }
}

impl Agenda {
    fn look_every(&self) -> Duration {
        match (self.followed.is_empty(), self.changed.elapsed() < LIVELY) {
            (false, _) => WATCHED,
            (true, true) => UNWATCHED.0,
            (true, false) => UNWATCHED.1,
        }
    }

    fn is_due(&self) -> bool {
        self.looked.elapsed() >= self.look_every() || self.ask_in().is_zero()
    }

    /// When the scheduler is to be asked again.
    fn ask_in(&self) -> Duration {
        let usual = self.ask_every.saturating_sub(self.asked.elapsed());
        self.ask_by.map_or(usual, |by| usual.min(by.saturating_duration_since(Instant::now())))
    }

    fn ask_soon(&mut self) {
        self.changed = Instant::now();
        self.ask_every = ASK.0;
    }

    fn is_paused(&self) -> bool {
        self.pause.is_some_and(|(until, _)| Instant::now() < until)
    }

    fn is_idle(&self) -> bool {
        self.watched.is_empty() && self.submissions.is_empty() && self.cancels.is_empty() && self.used.elapsed() > IDLE
    }

    fn wait(&self) -> Duration {
        if let Some((until, _)) = self.pause {
            return until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        }
        if self.watched.is_empty() {
            return IDLE;
        }
        let look = self.look_every().saturating_sub(self.looked.elapsed());
        look.min(self.ask_in()).max(Duration::from_millis(10))
    }

    /// No more is to be heard of these.
    fn forget(&mut self, run: &RunId) {
        self.watched.remove(run);
        self.last.remove(run);
        self.followed.remove(run);
    }
}
