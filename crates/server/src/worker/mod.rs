//! The worker of a far cluster as a value. [`Worker::step`] takes one input and the time, and
//! returns effects, among them at most one call of the cluster. The answer to a call is the next
//! input but for orders. The worker sends one query per interval for all runs.

mod agenda;
mod change;
mod look;
mod submit;

use crate::daemon::{Order, Report};
use agenda::{Agenda, Submission};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use towline_core::change::Change;
use towline_core::cluster::{Depth, Explanation, Observed, RunRef};
use towline_core::plan::Plan;
use towline_core::{Error, ErrorKind, Result, RunId};
use towline_wire::daemon::{Refusal, Reply};

/// What the worker is told of its cluster when it begins.
#[derive(Debug, Clone, Copy)]
pub struct About {
    /// The cluster reports changes by itself, so that polling is only a safety net.
    pub watches: bool,
    /// How long after its submission a job may be missing from the cluster's lists.
    pub listing_delay: Duration,
}

#[derive(Debug)]
pub enum WorkerInput {
    Order(Order),
    /// The cluster has reported a change by itself.
    Changed,
    /// The answer to the last call.
    Answer(CallAnswer),
    /// Time has passed.
    Wake,
}

/// One question to the cluster. It blocks.
#[derive(Debug)]
pub enum Call {
    /// Uploads the code of a submission.
    Stage(Arc<Plan>),
    Submit(Arc<Plan>),
    /// Removes what a refused submission left.
    GiveUp(Arc<Plan>),
    Observe {
        runs: Vec<RunRef>,
        depth: Depth,
    },
    Cancel {
        runs: Vec<RunRef>,
    },
    /// Stores the new bytes of a run's logs on this machine.
    BringLogs(RunRef),
    Explain(RunRef),
    Forget {
        runs: Vec<RunRef>,
    },
    /// Changes runs that wait.
    Change {
        runs: Vec<RunRef>,
        change: Change,
    },
}

#[derive(Debug)]
pub enum CallAnswer {
    Staged(Result<()>),
    Submitted(Result<Vec<String>>),
    GaveUp(Result<()>),
    Observed {
        observed: Result<Observed>,
        /// The cluster's web pages, by the run's name there.
        pages: HashMap<String, String>,
    },
    Cancelled(Result<Vec<(RunId, Error)>>),
    /// Whether these were all bytes that there are.
    BroughtLogs(Result<bool>),
    Explained(Result<Explanation>),
    Forgot,
    /// The runs that the cluster refuses to change.
    Changed(Result<Vec<(RunId, Error)>>),
}

#[derive(Debug)]
pub enum WorkerEffect {
    Call(Call),
    Tell(Report),
    Status(StatusNote),
    /// Nothing was needed from the cluster for a while: its connection is closed if it is open.
    HangUp,
    /// A named place where a test kills the program.
    Pass(&'static str),
}

/// A note on whether the cluster answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StatusNote {
    /// A query is sent.
    Waits,
    /// Nothing is pending, and nothing is known about the cluster's health.
    WaitsNoMore,
    /// It has answered.
    Seen,
    Trouble {
        why: String,
        hints: Vec<String>,
    },
}

/// The call whose answer is awaited, with what follows.
#[derive(Debug, Default)]
enum Doing {
    #[default]
    Nothing,
    Explaining {
        connection: u64,
    },
    Forgetting,
    Fetching {
        run: RunRef,
        connection: u64,
    },
    Submitting(Box<submit::Sending>),
    Cancelling {
        runs: Vec<RunRef>,
    },
    Looking(Box<look::Look>),
    Changing(Box<change::Asked>),
}

/// Work that a client or the daemon ordered at once.
#[derive(Debug)]
enum Urgent {
    Look { connection: u64 },
    Explain { run: RunRef, connection: u64 },
    Forget { runs: Vec<RunRef> },
    Change(Box<change::Asked>),
}

/// The parts of a round of work, in their order. A failure of one does not stop the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Submit,
    Cancel,
    Look,
}

#[derive(Debug)]
struct Round {
    next: Option<Part>,
    has_heard: bool,
    /// The first failure.
    failure: Option<Error>,
}

#[derive(Debug)]
pub struct Worker {
    about: About,
    agenda: Agenda,
    urgent: VecDeque<Urgent>,
    doing: Doing,
    round: Option<Round>,
    effects: Vec<WorkerEffect>,
}

impl Worker {
    pub fn new(about: About, now: Duration) -> Self {
        Self {
            about,
            agenda: Agenda::new(about.watches, now),
            urgent: VecDeque::new(),
            doing: Doing::Nothing,
            round: None,
            effects: Vec::new(),
        }
    }

    /// How long there is nothing to do, if no order comes.
    pub fn wait(&self) -> Duration {
        self.agenda.wait()
    }

    /// Takes one input. Returns what is to be done, in this order.
    pub fn step(&mut self, input: WorkerInput, now: Duration) -> Vec<WorkerEffect> {
        self.agenda.now = now;
        match input {
            WorkerInput::Order(order) => {
                self.agenda.is_used();
                self.take(order);
            }
            WorkerInput::Changed => {
                self.agenda.is_used();
                self.agenda.look_now();
            }
            WorkerInput::Answer(answer) => {
                let doing = std::mem::take(&mut self.doing);
                self.answered(doing, answer);
                self.go_on();
            }
            WorkerInput::Wake => {
                if self.is_at_rest() {
                    self.begin_round();
                    self.go_on();
                }
            }
        }
        std::mem::take(&mut self.effects)
    }

    fn is_at_rest(&self) -> bool {
        matches!(self.doing, Doing::Nothing) && self.round.is_none()
    }

    fn effect(&mut self, effect: WorkerEffect) {
        self.effects.push(effect);
    }
    fn tell(&mut self, report: Report) {
        self.effect(WorkerEffect::Tell(report));
    }
    fn status(&mut self, note: StatusNote) {
        self.effect(WorkerEffect::Status(note));
    }
    fn pass(&mut self, point: &'static str) {
        self.effect(WorkerEffect::Pass(point));
    }
    fn call(&mut self, call: Call, doing: Doing) {
        self.doing = doing;
        self.effect(WorkerEffect::Call(call));
    }

    /// Answers a client that waits.
    fn answer(&mut self, connection: u64, answer: Result<Reply>) {
        let reply = answer.unwrap_or_else(|error| Reply::Refused(Refusal::from(&error)));
        self.tell(Report::Answered {
            connection,
            reply: Box::new(reply),
        });
    }

    fn take(&mut self, order: Order) {
        match order {
            Order::Submit { plan, again } => {
                // A user who submits is present and may have signed in by now, so the pause ends.
                self.agenda.end_pause();
                self.agenda.submissions.push_back(Submission {
                    plan,
                    again,
                    absent: None,
                });
            }
            Order::Watch { runs } => self
                .agenda
                .watched
                .extend(runs.into_iter().map(|far| (far.run.clone(), far))),
            Order::Unwatch { runs } => runs.iter().for_each(|run| self.agenda.forget(run)),
            Order::Cancel { runs } => {
                self.agenda.end_pause();
                self.withdraw(runs);
            }
            Order::Follow { run, on: true } => {
                self.agenda.end_pause();
                self.agenda.followed.insert(run.run.clone(), run);
            }
            Order::Follow { run, on: false } => {
                self.agenda.followed.remove(&run.run);
            }
            Order::Logs { run, connection } => self.agenda.fetches.push_back((run, connection)),
            Order::Abandon { connection } => {
                let fetches = &mut self.agenda.fetches;
                fetches.retain(|(_, waiting)| *waiting != connection);
            }
            Order::Look { connection } => self.urgent.push_back(Urgent::Look { connection }),
            Order::Explain { run, connection } => {
                self.urgent.push_back(Urgent::Explain { run, connection });
            }
            Order::Forget { runs } => self.urgent.push_back(Urgent::Forget { runs }),
            Order::Change {
                runs,
                change,
                refused,
                connection,
            } => {
                let asked = change::Asked {
                    runs,
                    change,
                    refused,
                    connection,
                };
                self.urgent.push_back(Urgent::Change(Box::new(asked)));
            }
        }
    }

    /// Begins a round: some of the logs for which a client waits, then everything that is due.
    fn begin_round(&mut self) {
        self.round = Some(Round {
            next: Some(Part::Submit),
            has_heard: false,
            failure: None,
        });
        if self.urgent.is_empty()
            && let Some((run, connection)) = self.agenda.fetches.pop_front()
        {
            self.status(StatusNote::Waits);
            self.call(
                Call::BringLogs(run.clone()),
                Doing::Fetching { run, connection },
            );
        }
    }

    /// Goes on with the round until a call has to be answered.
    fn go_on(&mut self) {
        while matches!(self.doing, Doing::Nothing) {
            if let Some(urgent) = self.urgent.pop_front() {
                self.do_urgent(urgent);
                continue;
            }
            let Some(round) = &mut self.round else {
                return;
            };
            let part = match round.next {
                // Nothing is sent while the pause after a failure lasts.
                Some(Part::Submit) if self.agenda.is_paused() => return self.round = None,
                Some(part) => part,
                None => return self.end_round(),
            };
            round.next = match part {
                Part::Submit => Some(Part::Cancel),
                Part::Cancel => Some(Part::Look),
                Part::Look => None,
            };
            match part {
                Part::Submit => {
                    self.status(StatusNote::Waits);
                    self.submit_next();
                }
                Part::Cancel => self.cancel_all(),
                Part::Look => self.look_if_due(),
            }
        }
    }

    fn do_urgent(&mut self, urgent: Urgent) {
        match urgent {
            Urgent::Look { connection } => {
                self.agenda.ask_in_any_case();
                self.status(StatusNote::Waits);
                self.look_for(connection);
            }
            Urgent::Explain { run, connection } => {
                self.status(StatusNote::Waits);
                self.call(Call::Explain(run), Doing::Explaining { connection });
            }
            Urgent::Forget { runs } => self.call(Call::Forget { runs }, Doing::Forgetting),
            Urgent::Change(asked) => self.change(*asked),
        }
    }

    fn answered(&mut self, doing: Doing, answer: CallAnswer) {
        match (doing, answer) {
            (Doing::Explaining { connection }, CallAnswer::Explained(explained)) => {
                self.note(explained.as_ref().err());
                self.answer(connection, explained.map(Reply::FarExplained));
            }
            (Doing::Fetching { run, connection }, CallAnswer::BroughtLogs(brought)) => {
                self.note(brought.as_ref().err());
                match brought {
                    Ok(false) => self.agenda.fetches.push_back((run, connection)),
                    brought => self.answer(connection, brought.map(|_| Reply::LogsBrought)),
                }
            }
            (Doing::Submitting(sending), answer) => self.sending_answered(*sending, answer),
            (Doing::Cancelling { runs }, CallAnswer::Cancelled(refused)) => {
                self.cancelled(runs, refused);
            }
            (Doing::Looking(look), answer) => self.look_answered(*look, answer),
            (Doing::Changing(asked), CallAnswer::Changed(answer)) => self.changed(*asked, answer),
            _ => {}
        }
    }

    /// Notes the outcome of a part of the round.
    fn part_done(&mut self, outcome: Result<()>, has_heard: bool) {
        if let Some(round) = &mut self.round {
            round.has_heard |= has_heard;
            round.failure = round.failure.take().or(outcome.err());
        }
    }

    fn end_round(&mut self) {
        let Some(round) = self.round.take() else {
            return;
        };
        self.note_change(round.failure.as_ref(), round.has_heard);
        self.agenda.pause_after(round.failure.is_some());
        if self.agenda.is_idle() {
            self.effect(WorkerEffect::HangUp);
        }
    }

    fn note_change(&mut self, failure: Option<&Error>, has_heard: bool) {
        self.status(match failure {
            Some(error) => trouble(error),
            None if has_heard => StatusNote::Seen,
            // Nothing was due, so nothing is known about the cluster's health.
            None => StatusNote::WaitsNoMore,
        });
    }

    /// Notes the outcome of a log fetch: a cluster that cannot be reached is trouble. Any other
    /// answer says nothing about the runs.
    fn note(&mut self, error: Option<&Error>) {
        self.status(match error {
            Some(error) if error.kind() == ErrorKind::Unreachable => trouble(error),
            _ => StatusNote::WaitsNoMore,
        });
    }

    /// Drops submissions that have not been sent yet; orders a cancel of the others from the
    /// cluster.
    fn withdraw(&mut self, runs: Vec<RunRef>) {
        for far in runs {
            let agenda = &mut self.agenda;
            let held = agenda.submissions.iter().position(|held| {
                held.plan.id == far.submission
                    && held.plan.runs.len() == 1
                    && !agenda.watched.contains_key(&far.run)
            });
            match held {
                Some(place) => {
                    agenda.submissions.remove(place);
                    self.tell(Report::Withdrawn {
                        runs: vec![far.run],
                    });
                }
                None => agenda.cancels.push(far),
            }
        }
    }

    fn cancel_all(&mut self) {
        if !self.agenda.cancels.is_empty() {
            let runs = std::mem::take(&mut self.agenda.cancels);
            let call = Call::Cancel { runs: runs.clone() };
            self.call(call, Doing::Cancelling { runs });
        }
    }

    fn cancelled(&mut self, runs: Vec<RunRef>, refused: Result<Vec<(RunId, Error)>>) {
        let refused = match refused {
            Ok(refused) => refused,
            Err(error) => {
                self.agenda.cancels.splice(0..0, runs);
                return self.part_done(Err(error), false);
            }
        };
        self.pass("daemon.far.cancelled");
        if !refused.is_empty() {
            let told = |error: &Error| {
                error
                    .hints()
                    .iter()
                    .fold(error.to_string(), |text, hint| format!("{text}; {hint}"))
            };
            let runs = refused
                .iter()
                .map(|(run, error)| (run.clone(), told(error)))
                .collect();
            self.tell(Report::NotCancelled { runs });
        }
        self.agenda.ask_soon();
        // The user who cancelled waits for the answer.
        self.agenda.ask_now();
        self.part_done(Ok(()), true);
    }
}

fn trouble(error: &Error) -> StatusNote {
    StatusNote::Trouble {
        why: error.to_string(),
        hints: error.hints().to_vec(),
    }
}
