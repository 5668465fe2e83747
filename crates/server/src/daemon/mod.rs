//! The daemon's one task: it owns all state and handles one message at a time.

mod adopt;
mod cancel;
mod clients;
mod dispatch;
mod ended;
mod explain;
mod far;
mod gpus;
mod queue;
mod repeats;
mod reserve;
mod runners;
mod startup;
mod submit;
mod tunnels;
mod watch;
mod workspaces;

pub use far::{Opener, bring_code};
pub use startup::daemon_main;

use crate::ledger::{Ledger, Write, Written};
use crate::machine::Machine;
use queue::{Queue, Run};
use runners::Runners;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;
use submit::FirstStart;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use towline_core::cluster::GpuFacts;
use towline_core::event::{Recorded, RunEvent};
use towline_core::plan::Plan;
use towline_core::state::{RunState, Step, reduce};
use towline_core::time::Moment;
use towline_core::{Result, RunId};
use towline_engine::history::RunKey;
use towline_wire::daemon::{Hello, Reply};
use towline_wire::journal::JournalRecord;
use towline_wire::layout::StateFolder;
use towline_wire::runner::FromRunner;
use watch::Watchers;

type Replies = UnboundedSender<Reply>;

/// Everything that the daemon reacts to.
enum Message {
    Asked {
        connection: u64,
        hello: Box<Hello>,
        replies: Replies,
    },
    HungUp {
        connection: u64,
    },
    Submitted {
        plan: Arc<Plan>,
        first: Option<Box<FirstStart>>,
        replies: Replies,
        result: Result<Vec<Written>>,
    },
    CancelWritten {
        cancelled: Cancelled,
        replies: Replies,
        result: Result<Vec<Written>>,
    },
    Forgotten {
        runs: Vec<RunId>,
        replies: Replies,
        result: Result<Vec<Written>>,
    },
    /// Events are in the history: watchers may be told.
    Recorded {
        events: Vec<Announced>,
        result: Result<Vec<Written>>,
        then: Then,
    },
    PlanRead {
        chosen: Chosen,
        plan: Result<Option<Arc<Plan>>>,
    },
    WatchStates {
        connection: u64,
        replies: Replies,
        logs: bool,
        states: Result<Vec<(RunId, Option<RunState>)>>,
    },
    Observed {
        replies: Replies,
        states: Result<Vec<Option<RunState>>>,
    },
    Runner {
        name: String,
        message: FromRunner,
    },
    RunnerGone {
        name: String,
    },
    RunnerAdopted {
        name: String,
        control: UnboundedSender<towline_wire::runner::ToRunner>,
    },
    /// The runner's journal is unlocked: what it says is final.
    Settled {
        name: String,
        records: Vec<JournalRecord>,
    },
    /// The processes that a dead runner left are dead too.
    OrphansEnded {
        key: RunKey,
        attempt: u32,
    },
    GpusSeen(Vec<GpuFacts>),
    JournalsRemoved,
    Far {
        cluster: String,
        word: far::Word,
    },
    Tunnel {
        name: String,
        word: tunnels::TunnelEvent,
    },
    Tick,
    Leave,
}

/// An event to be written into the history and then sent to watchers.
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
struct Chosen {
    key: RunKey,
    attempt: u32,
    runner: String,
}

/// What to do once events are in the history.
#[derive(Clone)]
enum Then {
    Nothing,
    Dispatch(Chosen),
    Preempt { key: RunKey },
    DropSecrets { submission: RunId },
}

/// A cancel request, sorted by what is to be done.
struct Cancelled {
    asked: Vec<RunId>,
    already_ended: Vec<RunId>,
    to_stop: Vec<RunKey>,
    /// The runs on far clusters, by cluster.
    far: std::collections::BTreeMap<String, Vec<towline_core::cluster::RunRef>>,
    events: Vec<Announced>,
}

struct Daemon {
    state: StateFolder,
    ledger: Ledger<Message>,
    inbox: UnboundedSender<Message>,
    machine: Machine,
    gpus: gpus::GpuWatch,
    queue: Queue,
    runners: Runners,
    plans: HashMap<RunId, Arc<Plan>>,
    far: far::FarClusters,
    tunnels: tunnels::Tunnels,
    workspaces: workspaces::Workspaces,
    /// Far runs that have ended and whose clusters have not been told yet.
    ended_far: Vec<(String, RunId)>,
    watchers: Watchers,
    connections: usize,
    begun: Moment,
    last_activity: Instant,
    grace_millis: u64,
    collect_seconds: u64,
    /// Parts of the machine reserved for submissions that are being written.
    reserved: Vec<crate::schedule::Holding>,
    /// Something changed that may let a run start.
    unsettled: bool,
    /// Disk space to release when the disk is full.
    reserve: reserve::Reserve,
    /// The history cannot be written, and the log says so.
    stalled: bool,
    /// Set when the last start failed.
    paused_starts: Option<dispatch::PausedStarts>,
    leaving: bool,
}

impl Daemon {
    async fn run(&mut self, mut messages: UnboundedReceiver<Message>) {
        self.schedule();
        self.write_down();
        self.runners.keep_one_waiting();
        while let Some(message) = messages.recv().await {
            self.take(message);
            while let Ok(message) = messages.try_recv() {
                self.take(message);
            }
            self.write_down();
            if self.leaving {
                return self.tunnels.say_goodbye();
            }
        }
    }

    fn take(&mut self, message: Message) {
        match message {
            Message::Asked {
                connection,
                hello,
                replies,
            } => self.asked(connection, *hello, replies),
            Message::HungUp { connection } => self.hung_up(connection),
            Message::Submitted {
                plan,
                first,
                replies,
                result,
            } => self.submitted(&plan, first, &replies, result),
            Message::CancelWritten {
                cancelled,
                replies,
                result,
            } => self.cancel_written(cancelled, &replies, result),
            Message::Forgotten {
                runs,
                replies,
                result,
            } => Self::forgotten(runs, &replies, result),
            Message::Recorded {
                events,
                result,
                then,
            } => self.recorded(events, result, then),
            Message::PlanRead { chosen, plan } => self.plan_read(&chosen, plan),
            Message::WatchStates {
                connection,
                replies,
                logs,
                states,
            } => self.watch_states(connection, replies, logs, states),
            Message::Observed { replies, states } => Self::observed(&replies, states),
            Message::Runner { name, message } => self.runner_said(&name, message),
            Message::RunnerGone { name } => self.runner_gone(&name),
            Message::RunnerAdopted { name, control } => self.runners.adopted(name, control),
            Message::Settled { name, records } => self.runner_settled(&name, &records),
            Message::OrphansEnded { key, attempt } => self.orphans_ended(key, attempt),
            Message::GpusSeen(found) => self.gpus_seen(found),
            Message::JournalsRemoved => {}
            Message::Far { cluster, word } => self.far_said(&cluster, word),
            Message::Tunnel { name, word } => self.tunnels.said(&name, word),
            Message::Tick => self.tick(),
            Message::Leave => self.leaving = true,
        }
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
                log(&format!("{}: {illegal}", run.id));
                None
            }
        }
    }

    /// Writes all pending changes into the history, then does what follows from them.
    fn write_down(&mut self) {
        loop {
            if self.unsettled {
                self.schedule();
            }
            if self.ledger.stalled().is_some() && self.reserve.give_up() {
                self.ledger.retry();
            }
            if !self.ledger.has_work() {
                return self.note_stall();
            }
            for message in self.ledger.flush() {
                self.take(message);
            }
        }
    }

    /// Logs, once each, that the history cannot be written, and that it can be again.
    fn note_stall(&mut self) {
        let stalled = self.ledger.stalled().map(ToString::to_string);
        match (&stalled, self.stalled) {
            (Some(why), false) => log(&format!(
                "the history is not written until this is fixed: {why}"
            )),
            (None, true) => log("the history can be written again"),
            _ => {}
        }
        self.stalled = stalled.is_some();
        if self.stalled {
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
        self.ledger
            .write(writes, false, move |result| Message::Recorded {
                events,
                result,
                then,
            });
    }

    fn recorded(&mut self, events: Vec<Announced>, result: Result<Vec<Written>>, then: Then) {
        match result {
            Ok(written) => self.announce(events, &written),
            Err(error) => log(&format!("the history could not be written: {error}")),
        }
        match then {
            Then::Nothing => {}
            Then::Dispatch(chosen) => self.dispatch_written(chosen),
            Then::Preempt { key } => self.preempt_written(key),
            Then::DropSecrets { submission } => self.drop_secrets(&submission),
        }
    }

    fn announce(&mut self, events: Vec<Announced>, written: &[Written]) {
        for (announced, written) in events.into_iter().zip(written) {
            let Written::Event(sequence) = written else {
                continue;
            };
            match announced.event {
                RunEvent::Ended { .. } => towline_host::crash::pass("daemon.ended.committed"),
                RunEvent::AttemptEnded { .. } => {
                    towline_host::crash::pass("daemon.requeue.committed");
                }
                _ => {}
            }
            let recorded = Recorded {
                sequence: *sequence,
                run: announced.run,
                at: announced.at,
                event: announced.event,
            };
            self.watchers
                .tell(announced.key, &recorded, &announced.state);
        }
    }

    fn tick(&mut self) {
        self.look_at_gpus_if_needed();
        self.runners.trim(self.queue.is_empty());
        self.continue_stopped_runners();
        self.ledger.retry();
        if !self.stalled {
            self.reserve.keep();
        }
        self.tunnels.tick();
        self.look_at_workspaces();
        self.runners.remove_journals(&mut self.ledger);
        // A daemon that exits now would lose what is not written yet.
        let idle = self.queue.is_empty()
            && self.ledger.is_empty()
            && self.connections == 0
            && self.workspaces.is_empty()
            && self.tunnels.is_empty();
        if !idle {
            self.last_activity = Instant::now();
        } else if self.last_activity.elapsed() > startup::idle_time() {
            self.leaving = true;
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
    Write::Event {
        key: event.key,
        event: event.event.clone(),
        state: event.state.clone(),
        at: event.at,
    }
}

fn now() -> Moment {
    towline_host::clock::now()
}

/// Writes a line to the daemon's log. Never contains a job's variables. A repeated line is written
/// more and more rarely.
fn log(text: &str) {
    use std::io::Write;
    static REPEATS: std::sync::Mutex<repeats::Repeats> =
        std::sync::Mutex::new(repeats::Repeats::new());
    let line = REPEATS.lock().map_or_else(
        |_| Some(text.to_owned()),
        |mut repeats| repeats.line(text, Instant::now()),
    );
    if let Some(line) = line {
        let _ = writeln!(std::io::stderr(), "{} {line}", now());
    }
}
