//! The runners: some carry a run, one or more wait for the next.

use super::{Message, log};
use crate::ledger::Ledger;
use std::collections::HashMap;
use std::io;
use std::os::unix::net::UnixStream as StdStream;
use std::process::Child;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use towline_engine::history::RunKey;
use towline_wire::frame::{self, FrameBuffer};
use towline_wire::layout::StateFolder;
use towline_wire::runner::{FromRunner, ToRunner};

/// How many idle runners stay while there is work, and while there is none.
const IDLE_IN_WORK: usize = 8;
const IDLE_AT_REST: usize = 1;

#[derive(Debug)]
struct Runner {
    control: UnboundedSender<ToRunner>,
    carrying: Option<(RunKey, u32)>,
    /// An earlier daemon started it: it exits after its run.
    adopted: bool,
}

pub(super) struct Runners {
    /// Guards that we started, to be reaped when they exit.
    guards: Vec<Child>,
    state: StateFolder,
    inbox: UnboundedSender<Message>,
    runners: HashMap<String, Runner>,
    idle: Vec<String>,
    /// Dead runners whose journal can be removed once the history is on disk.
    forgotten_journals: Vec<String>,
    next_name: u32,
    /// Why the last start of a runner failed.
    trouble: Option<String>,
}

impl Runners {
    pub(super) fn new(state: StateFolder, inbox: UnboundedSender<Message>) -> Self {
        Self {
            guards: Vec::new(),
            state,
            inbox,
            runners: HashMap::new(),
            idle: Vec::new(),
            forgotten_journals: Vec::new(),
            next_name: 0,
            trouble: None,
        }
    }

    pub(super) fn count(&self) -> usize {
        self.runners.len()
    }

    /// A waiting runner, if there is one.
    pub(super) fn take_if_idle(&mut self) -> Option<String> {
        self.idle.pop()
    }

    /// A waiting runner, or a new one.
    pub(super) fn take_idle(&mut self) -> io::Result<String> {
        match self.idle.pop() {
            Some(name) => Ok(name),
            None => self.start(),
        }
    }

    fn start(&mut self) -> io::Result<String> {
        let started = self.start_one();
        self.trouble = started.as_ref().err().map(ToString::to_string);
        started
    }

    /// Why no run can be started now.
    pub(super) fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    fn start_one(&mut self) -> io::Result<String> {
        self.next_name += 1;
        // Unique for ever: the name contains the machine's boot, the time and the daemon's pid.
        let name = format!(
            "{}-{}-{}-{}",
            towline_host::process::boot(),
            super::now().0,
            std::process::id(),
            self.next_name
        );
        let (stream, guard) = towline_runner::spawn::spawn_runner(&self.state, &name)?;
        self.guards.push(guard);
        let control = serve(&name, stream, self.inbox.clone())?;
        self.runners.insert(
            name.clone(),
            Runner {
                control,
                carrying: None,
                adopted: false,
            },
        );
        Ok(name)
    }

    /// Keeps one runner waiting, so that the next submission starts at once.
    pub(super) fn keep_one_waiting(&mut self) {
        if self.idle.is_empty() {
            match self.start() {
                Ok(name) => self.idle.push(name),
                Err(error) => log(&format!("no runner can be started: {error}")),
            }
        }
    }

    pub(super) fn put_back(&mut self, name: &str) {
        if let Some(runner) = self.runners.get_mut(name) {
            runner.carrying = None;
            self.idle.push(name.to_owned());
        }
    }

    pub(super) fn assign(&mut self, name: &str, key: RunKey, attempt: u32) {
        if let Some(runner) = self.runners.get_mut(name) {
            runner.carrying = Some((key, attempt));
        }
    }

    pub(super) fn adopted(&mut self, name: String, control: UnboundedSender<ToRunner>) {
        self.runners.insert(
            name,
            Runner {
                control,
                carrying: None,
                adopted: true,
            },
        );
    }

    pub(super) fn send(&self, name: &str, message: ToRunner) {
        if let Some(runner) = self.runners.get(name) {
            let _ = runner.control.send(message);
        }
    }

    pub(super) fn is_there(&self, name: &str) -> bool {
        self.runners.contains_key(name)
    }

    /// Whether this daemon started the runner.
    pub(super) fn is_own(&self, name: &str) -> bool {
        self.runners.get(name).is_some_and(|runner| !runner.adopted)
    }

    /// Notes the end of a runner's run: it waits for the next, or exits if an earlier daemon
    /// started it.
    pub(super) fn finished(&mut self, name: &str) {
        let Some(runner) = self.runners.get_mut(name) else {
            return;
        };
        runner.carrying = None;
        if runner.adopted {
            let _ = runner.control.send(ToRunner::Retire);
        } else if !self.idle.iter().any(|idle| idle == name) {
            self.idle.push(name.to_owned());
        }
    }

    /// Removes a runner from the list. Returns the attempt that it carried.
    pub(super) fn gone(&mut self, name: &str) -> Option<(RunKey, u32)> {
        self.idle.retain(|idle| idle != name);
        self.runners.remove(name)?.carrying
    }

    /// Ends surplus idle runners and reaps those that exited.
    pub(super) fn trim(&mut self, at_rest: bool) {
        self.guards
            .retain_mut(|guard| matches!(guard.try_wait(), Ok(None)));
        let keep = if at_rest { IDLE_AT_REST } else { IDLE_IN_WORK };
        while self.idle.len() > keep {
            let name = self.idle.remove(0);
            self.send(&name, ToRunner::Retire);
        }
    }

    pub(super) fn forget_journal(&mut self, name: String) {
        self.forgotten_journals.push(name);
    }

    /// Removes journals, each only after everything it says is in the history on disk.
    pub(super) fn remove_journals(&mut self, ledger: &mut Ledger<Message>) {
        if self.forgotten_journals.is_empty() {
            return;
        }
        let paths: Vec<_> = self
            .forgotten_journals
            .drain(..)
            .map(|name| self.state.runner_journal(&name))
            .collect();
        ledger.write(
            vec![crate::ledger::Write::ForgetUnused],
            true,
            move |result| {
                if result.is_ok() {
                    for path in &paths {
                        let _ = std::fs::remove_file(path);
                        let _ = std::fs::remove_file(path.with_extension("sock"));
                        let _ = std::fs::remove_file(path.with_extension("cgroup"));
                    }
                }
                Message::JournalsRemoved
            },
        );
    }
}

/// Moves messages between a runner's socket and the daemon's inbox.
pub(super) fn serve(
    name: &str,
    stream: StdStream,
    inbox: UnboundedSender<Message>,
) -> io::Result<UnboundedSender<ToRunner>> {
    stream.set_nonblocking(true)?;
    let stream = UnixStream::from_std(stream)?;
    let (control, orders) = unbounded_channel();
    tokio::spawn(converse(name.to_owned(), stream, orders, inbox));
    Ok(control)
}

async fn converse(
    name: String,
    mut stream: UnixStream,
    mut orders: UnboundedReceiver<ToRunner>,
    inbox: UnboundedSender<Message>,
) {
    let mut buffer = FrameBuffer::default();
    let mut chunk = vec![0; 8 << 10];
    loop {
        tokio::select! {
            order = orders.recv() => match order {
                Some(order) => if stream.write_all(&frame::encode(&order)).await.is_err() { break },
                None => break,
            },
            read = stream.read(&mut chunk) => match read {
                Ok(count) if count > 0 => {
                    buffer.push(&chunk[..count]);
                    while let Ok(Some(message)) = buffer.next_frame::<FromRunner>() {
                        let _ = inbox.send(Message::Runner { name: name.clone(), message });
                    }
                }
                _ => break,
            },
        }
    }
    let _ = inbox.send(Message::RunnerGone { name });
}
