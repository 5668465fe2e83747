//! The daemon as a value. [`Daemon::step`] takes one input and the time, and returns effects. It
//! touches no clock, socket, process or disk; the shell (`server/src/shell`) does.

mod adopt;
mod after;
mod cancel;
mod change;
mod clients;
mod dispatch;
mod effect;
mod ended;
mod explain;
mod far;
mod gpus;
mod input;
mod ledger;
mod machine;
mod orders;
mod queue;
mod runners;
mod settings;
mod submit;
mod watch;

pub use effect::{Assign, Effect, Orphans};
pub use input::{Found, FoundRun, FoundRunner, Input, Now};
pub use ledger::{Answer, EventWrite, Query, StoredRun, Submission, Write, Written};
pub use machine::Hardware;
pub use orders::{Order, Report};
pub use settings::Settings;

use ledger::{Ledger, Outcome, Progress, ReadThen, WriteThen};
use machine::Machine;
use queue::{Queue, Run};
use runners::Runners;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;
use submit::FirstStart;
use towline_core::cluster::RunRef;
use towline_core::event::{Recorded, RunEvent};
use towline_core::plan::Plan;
use towline_core::state::{RunState, Step, reduce};
use towline_core::time::Moment;
use towline_core::{Result, RunId};
use towline_engine::history::RunKey;
use towline_wire::daemon::{Limits, Reply};
use watch::Watchers;

/// An event to be written into the history and then sent to watchers.
#[derive(Debug)]
struct Announced {
    key: RunKey,
    run: RunId,
    event: RunEvent,
    state: RunState,
    at: Moment,
}

/// An attempt and the runner that was chosen for it. While this is written the runner may die, and
/// the attempt may go to another one.
#[derive(Debug, Clone)]
pub struct Chosen {
    pub key: RunKey,
    pub attempt: u32,
    pub runner: String,
}

/// What to do once events are in the history.
#[derive(Debug, Clone)]
enum Then {
    Nothing,
    Dispatch(Chosen),
    Preempt {
        key: RunKey,
    },
    DropSecrets {
        submission: RunId,
    },
    /// Sends submissions that were held back.
    Send {
        submissions: Vec<RunId>,
    },
}

/// A cancel request, sorted by what is to be done.
#[derive(Debug, Default)]
struct Cancelled {
    asked: Vec<RunId>,
    already_ended: Vec<RunId>,
    to_stop: Vec<RunKey>,
    /// The runs on far clusters, by cluster.
    far: BTreeMap<String, Vec<RunRef>>,
    events: Vec<Announced>,
}

/// The daemon's whole memory, and the effects of the present step.
#[derive(Debug)]
pub struct Daemon {
    settings: Settings,
    now: Now,
    effects: Vec<Effect>,
    ledger: Ledger,
    machine: Machine,
    gpus: gpus::GpuWatch,
    queue: Queue,
    runners: Runners,
    plans: HashMap<RunId, Arc<Plan>>,
    /// The submissions whose secrets are on disk.
    secrets: BTreeSet<RunId>,
    /// Far runs that have ended and whose clusters have not been told yet.
    ended_far: Vec<(String, RunId)>,
    /// The clusters that fetch logs for clients, by connection.
    fetching: HashMap<u64, String>,
    watchers: Watchers,
    /// Runs and submissions that are no longer open and that others wait for.
    to_judge: BTreeSet<RunId>,
    /// The same, to be read again at the next tick.
    judge_again: BTreeSet<RunId>,
    connections: usize,
    last_activity: Duration,
    /// Parts of the machine reserved for submissions that are being written.
    reserved: Vec<crate::schedule::Holding>,
    /// Something changed that may let a run start.
    unsettled: bool,
    /// Disk space is held, to be released when the disk is full.
    has_reserve: bool,
    /// The history cannot be written, and the log says so.
    is_stalled: bool,
    /// Set when the last start failed.
    paused_starts: Option<dispatch::PausedStarts>,
}

impl Daemon {
    /// A daemon that knows nothing yet. Its first input is [`Input::Begin`].
    pub fn new(settings: Settings, hardware: Hardware, limits: Limits, now: Now) -> Self {
        Self {
            settings,
            now,
            effects: Vec::new(),
            ledger: Ledger::default(),
            machine: Machine::new(hardware, limits),
            gpus: gpus::GpuWatch::default(),
            queue: Queue::default(),
            runners: Runners::default(),
            plans: HashMap::new(),
            secrets: BTreeSet::new(),
            ended_far: Vec::new(),
            fetching: HashMap::new(),
            watchers: Watchers::default(),
            to_judge: BTreeSet::new(),
            judge_again: BTreeSet::new(),
            connections: 0,
            last_activity: now.steady,
            reserved: Vec::new(),
            unsettled: false,
            has_reserve: false,
            is_stalled: false,
            paused_starts: None,
        }
    }

    /// Takes one input. Returns what is to be done, in this order.
    pub fn step(&mut self, input: Input, now: Now) -> Vec<Effect> {
        self.now = now;
        self.take(input);
        std::mem::take(&mut self.effects)
    }

    fn take(&mut self, input: Input) {
        match input {
            Input::Begin(found) => self.begin(*found),
            Input::Ready => self.ready(),
            Input::Asked {
                connection,
                hello,
                limits_are_possible,
            } => self.asked(connection, *hello, limits_are_possible),
            Input::HungUp { connection } => self.hung_up(connection),
            Input::Committed(result) => {
                let progress = self.ledger.committed(result);
                self.go_on(progress);
            }
            Input::Answered(answer) => {
                let progress = self.ledger.answered(answer);
                self.go_on(progress);
            }
            Input::RunnerStarted { name } => self.runner_started(&name),
            Input::RunnerNotStarted { name, why } => self.runner_not_started(&name, &why),
            Input::RunnerReached { name } => self.runners.reached(&name),
            Input::Runner { name, message } => self.runner_said(&name, message),
            Input::RunnerGone { name } => self.runner_gone(&name),
            Input::JournalRead {
                name,
                carrying,
                records,
            } => self.journal_read(&name, carrying, records),
            Input::Settled { name, records } => self.runner_settled(&name, &records),
            Input::OrphansEnded { key, attempt } => self.orphans_ended(key, attempt),
            Input::NotAssigned { chosen, error } => self.not_assigned(&chosen, &error),
            Input::GpusSeen(found) => self.gpus_seen(found),
            Input::ReserveKept(is_held) => self.has_reserve = is_held,
            Input::Far { cluster, report } => self.far_said(&cluster, report),
            Input::ClusterRestarted { cluster } => self.take_up_far(&cluster),
            Input::Tick { is_needed } => self.tick(is_needed),
            Input::Flush => self.write_down(),
        }
    }

    fn effect(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    fn log(&mut self, text: String) {
        self.effect(Effect::Log(text));
    }

    fn pass(&mut self, point: &'static str) {
        self.effect(Effect::Pass(point));
    }

    /// Sends the only reply, or the last one.
    fn reply(&mut self, connection: u64, reply: Reply) {
        self.effect(Effect::Reply {
            connection,
            reply: Box::new(reply),
            is_last: true,
        });
    }

    /// Sends a reply that others follow.
    fn tell(&mut self, connection: u64, reply: Reply) {
        self.effect(Effect::Reply {
            connection,
            reply: Box::new(reply),
            is_last: false,
        });
    }

    /// Applies an event by the one transition function. `None` if there is nothing to write.
    fn apply(&mut self, key: RunKey, event: RunEvent, at: Moment) -> Option<Announced> {
        let run = self.queue.get_mut(key)?;
        match reduce(&run.state, &event) {
            Ok(Step::Changed(state)) => {
                let state = *state;
                run.state = state.clone();
                Some(Announced {
                    key,
                    run: run.id.clone(),
                    event,
                    state,
                    at,
                })
            }
            Ok(Step::Ignored) => None,
            Err(illegal) => {
                let text = format!("{}: {illegal}", run.id);
                self.log(text);
                None
            }
        }
    }

    /// The same, with the present time.
    fn apply_now(&mut self, key: RunKey, event: RunEvent) -> Option<Announced> {
        self.apply(key, event, self.now.wall)
    }

    /// Writes all pending changes into the history. What follows from them comes with the answer.
    fn write_down(&mut self) {
        if self.ledger.is_flushing() {
            return;
        }
        if self.unsettled {
            self.schedule();
        }
        if self.ledger.stalled().is_some() && std::mem::take(&mut self.has_reserve) {
            self.effect(Effect::ReleaseReserve);
            self.ledger.retry();
        }
        if !self.ledger.has_work() {
            return self.note_stall();
        }
        let progress = self.ledger.begin();
        self.go_on(progress);
    }

    /// Goes on with a flush: the next commit or read, or what follows from all of them.
    fn go_on(&mut self, progress: Progress) {
        match progress {
            Progress::Call(call) => self.effect(call),
            Progress::Done(outcomes) => {
                for outcome in outcomes {
                    match outcome {
                        Outcome::Wrote(then, result) => self.wrote(then, result),
                        Outcome::Read(then, answer) => self.read(then, answer),
                    }
                }
                self.write_down();
            }
        }
    }

    fn wrote(&mut self, then: WriteThen, result: Result<Vec<Written>>) {
        match then {
            WriteThen::Submitted {
                plan,
                first,
                connection,
            } => self.submitted(&plan, first, connection, result),
            WriteThen::Cancelled {
                cancelled,
                connection,
            } => self.cancel_written(*cancelled, connection, result),
            WriteThen::Forgotten { runs, connection } => self.forgotten(runs, connection, result),
            WriteThen::Changed {
                changes,
                connection,
            } => self.changed(changes, connection, result),
            WriteThen::Tagged {
                runs,
                at,
                connection,
            } => self.tagged(runs, at, connection, result),
            WriteThen::Recorded { events, then } => self.recorded(events, result, then),
            WriteThen::RemoveJournals { runners } => {
                if result.is_ok() {
                    self.effect(Effect::RemoveJournals { runners });
                }
            }
        }
    }

    fn read(&mut self, then: ReadThen, answer: Answer) {
        match (then, answer) {
            (
                ReadThen::Watch {
                    connection,
                    runs,
                    logs,
                },
                Answer::States(states),
            ) => self.watch_states(connection, runs, logs, states),
            (ReadThen::Observe { connection }, Answer::States(states)) => {
                self.observed(connection, states);
            }
            (ReadThen::Dispatch(chosen), Answer::Plan(plan)) => self.plan_read(&chosen, plan),
            (
                ReadThen::SubmitFar {
                    cluster,
                    submission,
                    again,
                },
                Answer::Plan(plan),
            ) => self.far_plan_read(&cluster, &submission, again, plan),
            (
                ReadThen::AskFar {
                    connection,
                    run,
                    request,
                },
                Answer::Run(stored),
            ) => self.ask_stored(connection, &run, request, stored),
            (ReadThen::ForgetFar, Answer::FarRuns(runs)) => self.forget_far(runs),
            (ReadThen::Judge { ended }, Answer::Phases(counts)) => self.judged(ended, counts),
            (ReadThen::CancelFar { cluster, runs }, _) => {
                self.order(cluster, Order::Cancel { runs });
            }
            (ReadThen::Refreshed { connection }, _) => self.reply(connection, Reply::Refreshed),
            (then, answer) => self.log(format!("{answer:?} is no answer to {then:?}")),
        }
    }

    /// Logs, once each, that the history cannot be written, and that it can be again.
    fn note_stall(&mut self) {
        let stalled = self.ledger.stalled().map(ToString::to_string);
        match (&stalled, self.is_stalled) {
            (Some(why), false) => self.log(format!(
                "the history is not written until this is fixed: {why}"
            )),
            (None, true) => self.log("the history can be written again".to_owned()),
            _ => {}
        }
        self.is_stalled = stalled.is_some();
        if self.is_stalled {
            self.stop_unwritten();
        }
    }

    /// Writes events, then sends them to watchers, then does `then`.
    fn record(&mut self, events: Vec<Announced>, then: Then) {
        if !events.is_empty() {
            self.write_events(events, then);
        }
    }

    /// Does `then` once everything ordered so far is in the history.
    fn once_written(&mut self, then: Then) {
        self.write_events(Vec::new(), then);
    }

    fn write_events(&mut self, events: Vec<Announced>, then: Then) {
        let writes = events.iter().map(write_of).collect();
        // A power cut that loses the end of a run must not find its secrets gone: the run would
        // start again without them. Nor must a run begin before the end that it waited for is on
        // disk.
        let durable = matches!(then, Then::DropSecrets { .. } | Then::Send { .. });
        self.ledger
            .write(writes, durable, WriteThen::Recorded { events, then });
    }

    /// What follows the end of a submission's last run.
    fn after_last(&self, submission: Option<RunId>) -> Then {
        let with_secrets = submission.filter(|submission| self.secrets.contains(submission));
        with_secrets.map_or(Then::Nothing, |submission| Then::DropSecrets { submission })
    }

    /// Removes the secrets of a submission, if there are any.
    fn drop_secrets(&mut self, submission: RunId) {
        if self.secrets.remove(&submission) {
            self.effect(Effect::DropSecrets { submission });
        }
    }

    fn recorded(&mut self, events: Vec<Announced>, result: Result<Vec<Written>>, then: Then) {
        match result {
            Ok(written) => self.announce(events, &written),
            Err(error) => self.log(format!("the history could not be written: {error}")),
        }
        match then {
            Then::Nothing => {}
            Then::Dispatch(chosen) => self.dispatch_written(chosen),
            Then::Preempt { key } => self.preempt_written(key),
            Then::DropSecrets { submission } => self.drop_secrets(submission),
            Then::Send { submissions } => self.send_released(submissions),
        }
    }

    fn announce(&mut self, events: Vec<Announced>, written: &[Written]) {
        for (announced, written) in events.into_iter().zip(written) {
            let Written::Event(sequence) = written else {
                continue;
            };
            match announced.event {
                RunEvent::Ended { .. } => self.pass("daemon.ended.committed"),
                RunEvent::AttemptEnded { .. } => self.pass("daemon.requeue.committed"),
                _ => {}
            }
            let recorded = Recorded {
                sequence: *sequence,
                run: announced.run,
                at: announced.at,
                event: announced.event,
            };
            self.tell_watchers(announced.key, &recorded, &announced.state);
        }
    }

    fn tick(&mut self, is_needed: bool) {
        self.look_at_gpus_if_needed();
        self.trim_runners();
        self.continue_stopped_runners();
        self.ledger.retry();
        self.to_judge.append(&mut self.judge_again);
        self.judge_dependents();
        if !self.is_stalled && !self.has_reserve {
            self.effect(Effect::KeepReserve);
        }
        self.remove_journals();
        // A daemon that exits now would lose what is not written yet.
        let is_idle =
            self.queue.is_empty() && self.ledger.is_empty() && self.connections == 0 && !is_needed;
        if !is_idle {
            self.last_activity = self.now.steady;
        } else if self.now.steady.saturating_sub(self.last_activity) > self.settings.idle_time {
            self.effect(Effect::Leave);
        }
        if !self.queue.is_empty() {
            self.unsettled = true;
        }
    }

    fn run_of(&self, key: RunKey) -> Option<&Run> {
        self.queue.get(key)
    }
}

fn write_of(event: &Announced) -> Write {
    Write::Event(Box::new(EventWrite {
        key: event.key,
        event: event.event.clone(),
        state: event.state.clone(),
        at: event.at,
    }))
}
