//! The shell around the daemon: clock, sockets, processes, threads and disk. It carries out the
//! effects of [`Daemon::step`] in their order and feeds the results back.

mod clients;
mod effects;
mod far;
mod gpus;
mod history;
mod orphans;
mod repeats;
mod reserve;
mod runners;
mod startup;
mod tunnels;
mod workspaces;

pub use far::{Opener, bring_code};
pub use startup::daemon_main;

use crate::daemon::{Daemon, Input, Now, Settings};
use std::collections::{HashMap, VecDeque};
use std::time::Instant;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use towline_engine::history::History;
use towline_wire::daemon::{Hello, Reply};
use towline_wire::layout::StateFolder;
use towline_wire::runner::ToRunner;

type Replies = UnboundedSender<Reply>;

/// Everything that reaches the shell from its tasks and threads.
enum Message {
    Asked {
        connection: u64,
        hello: Box<Hello>,
        replies: Replies,
    },
    HungUp {
        connection: u64,
    },
    RunnerReached {
        name: String,
        control: UnboundedSender<ToRunner>,
    },
    /// An input for the daemon, as it is.
    Input(Box<Input>),
    Tunnel {
        name: String,
        event: tunnels::TunnelEvent,
    },
    Tick,
    Leave,
}

impl Message {
    fn input(input: Input) -> Self {
        Self::Input(Box::new(input))
    }
}

/// The daemon and everything that it must not touch itself.
struct Shell {
    daemon: Daemon,
    state: StateFolder,
    settings: Settings,
    /// Seconds between two uploads of a run's output.
    collect_seconds: u64,
    began: Instant,
    history: History,
    inbox: UnboundedSender<Message>,
    /// Inputs that come before all others: answers to the daemon's calls.
    answers: VecDeque<Input>,
    connections: HashMap<u64, Replies>,
    runners: runners::Runners,
    far: far::FarClusters,
    tunnels: tunnels::Tunnels,
    workspaces: workspaces::Workspaces,
    reserve: reserve::Reserve,
    is_leaving: bool,
}

impl Shell {
    async fn run(&mut self, mut messages: UnboundedReceiver<Message>) {
        self.feed(Input::Ready);
        self.settle();
        while let Some(message) = messages.recv().await {
            self.take(message);
            while let Ok(message) = messages.try_recv() {
                self.take(message);
            }
            self.settle();
            if self.is_leaving {
                return self.tunnels.say_goodbye();
            }
        }
    }

    /// Lets the daemon write what it has decided, until nothing is left to do.
    fn settle(&mut self) {
        self.step(Input::Flush);
        while !self.answers.is_empty() {
            self.answer_calls();
            self.step(Input::Flush);
        }
    }

    fn step(&mut self, input: Input) {
        let now = self.now();
        for effect in self.daemon.step(input, now) {
            self.carry_out(effect);
        }
    }

    fn answer_calls(&mut self) {
        while let Some(answer) = self.answers.pop_front() {
            self.step(answer);
        }
    }

    /// Hands an input to the daemon, behind the answers to its calls.
    fn feed(&mut self, input: Input) {
        self.step(input);
        self.answer_calls();
    }

    fn now(&self) -> Now {
        Now {
            wall: towline_host::clock::now(),
            steady: self.began.elapsed(),
        }
    }

    fn take(&mut self, message: Message) {
        match message {
            Message::Asked {
                connection,
                hello,
                replies,
            } => {
                self.connections.insert(connection, replies);
                self.feed(Input::Asked {
                    connection,
                    limits_are_possible: clients::limits_are_possible(&hello.request),
                    hello,
                });
            }
            Message::HungUp { connection } => {
                self.connections.remove(&connection);
                self.tunnels.unlisten(connection);
                self.feed(Input::HungUp { connection });
            }
            Message::RunnerReached { name, control } => {
                self.runners.reached(&name, control);
                self.feed(Input::RunnerReached { name });
            }
            Message::Input(input) => self.feed(*input),
            Message::Tunnel { name, event } => self.tunnels.said(&name, event),
            Message::Tick => self.tick(),
            Message::Leave => self.is_leaving = true,
        }
    }

    fn tick(&mut self) {
        self.runners.reap();
        self.tunnels.tick();
        self.workspaces.look(&self.state);
        let is_needed = !self.tunnels.is_empty() || !self.workspaces.is_empty();
        self.feed(Input::Tick { is_needed });
    }

    /// Sends a reply to a client that may have hung up.
    fn reply(&mut self, connection: u64, mut reply: Reply, is_last: bool) {
        if let Reply::Status(status) = &mut reply {
            status.memory_bytes = towline_host::process::own_memory();
        }
        if let Some(replies) = self.connections.get(&connection) {
            let _ = replies.send(reply);
        }
        if is_last {
            self.connections.remove(&connection);
        }
    }
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
        let _ = writeln!(std::io::stderr(), "{} {line}", towline_host::clock::now());
    }
}
