//! Connections to runners, and the guards of those that this daemon started.

use super::{Message, log};
use crate::daemon::Input;
use std::collections::HashMap;
use std::io;
use std::os::unix::net::UnixStream as StdStream;
use std::process::Child;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use towline_host::backoff::Backoff;
use towline_host::lock;
use towline_runner::journal;
use towline_wire::frame::{self, FrameBuffer};
use towline_wire::layout::StateFolder;
use towline_wire::runner::{FromRunner, ToRunner};

#[derive(Default)]
pub(super) struct Runners {
    /// Guards that we started, to be reaped when they exit.
    guards: Vec<Child>,
    controls: HashMap<String, UnboundedSender<ToRunner>>,
}

impl Runners {
    pub(super) fn start(
        &mut self,
        state: &StateFolder,
        name: &str,
        inbox: &UnboundedSender<Message>,
    ) -> io::Result<()> {
        let (stream, guard) = towline_runner::spawn::spawn_runner(state, name)?;
        self.guards.push(guard);
        let control = serve(name, stream, inbox.clone())?;
        self.controls.insert(name.to_owned(), control);
        Ok(())
    }

    pub(super) fn reached(&mut self, name: &str, control: UnboundedSender<ToRunner>) {
        self.controls.insert(name.to_owned(), control);
    }

    pub(super) fn gone(&mut self, name: &str) {
        self.controls.remove(name);
    }

    /// Sends a message. The connection's end says if it could not be sent.
    pub(super) fn send(&self, name: &str, message: ToRunner) {
        if let Some(control) = self.controls.get(name) {
            let _ = control.send(message);
        }
    }

    /// Reaps guards that exited.
    pub(super) fn reap(&mut self) {
        self.guards
            .retain_mut(|guard| matches!(guard.try_wait(), Ok(None)));
    }
}

/// Moves messages between a runner's socket and the daemon's inbox.
fn serve(
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
                        let input = Input::Runner { name: name.clone(), message };
                        let _ = inbox.send(Message::input(input));
                    }
                }
                _ => break,
            },
        }
    }
    let _ = inbox.send(Message::input(Input::RunnerGone { name }));
}

/// Connects to a live runner. If the runner dies meanwhile, its journal settles the run. A lock
/// that cannot be tested counts as held.
pub(super) async fn call(state: StateFolder, name: String, inbox: UnboundedSender<Message>) {
    let journal = state.runner_journal(&name);
    while lock::is_held(&journal).unwrap_or(true) {
        if let Ok(stream) = towline_host::socket::connect(&state.runners(), &format!("{name}.sock"))
        {
            match serve(&name, stream, inbox.clone()) {
                Ok(control) => {
                    let _ = inbox.send(Message::RunnerReached { name, control });
                    return;
                }
                Err(error) => log(&format!("cannot connect to runner {name}: {error}")),
            }
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    wait_for_lock(state, name, inbox).await;
}

/// Waits until the guard has cleaned up and exited, then reads the journal.
async fn wait_for_lock(state: StateFolder, name: String, inbox: UnboundedSender<Message>) {
    let journal = state.runner_journal(&name);
    let mut backoff = Backoff::new(Duration::from_millis(1), Duration::from_millis(50));
    let records = loop {
        if !lock::is_held(&journal).unwrap_or(true)
            && let Ok(records) = journal::read(&journal)
        {
            break records;
        }
        tokio::time::sleep(backoff.pause()).await;
    };
    let _ = inbox.send(Message::input(Input::Settled { name, records }));
}
