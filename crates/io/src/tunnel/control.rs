//! The supervisor's control thread: it waits for orders on a socket, for network changes and for
//! the end of sleep.

use super::network::{NetworkChanges, SleepWatch};
use super::report::Report;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};
use towline_wire::frame::FrameBuffer;
use towline_wire::layout::{StateFolder, TUNNEL_SOCKET};
use towline_wire::tunnel::ToTunnel;

/// How often to check whether the machine has slept and whether there is a daemon.
const POLL_TIMEOUT: Timespec = Timespec {
    tv_sec: 2,
    tv_nsec: 0,
};
/// Connections at once; any more are closed.
const MAX_CONNECTIONS: usize = 32;
/// A daemon is started when nobody has been connected for this long.
const DAEMON_START_DELAY: Duration = Duration::from_secs(2);

/// A reason to check the tunnel now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    /// A user asks for it.
    Nudge,
    /// A program connected to the port.
    Connected,
    /// A connection broke.
    Broken,
    /// The route is gone for certain.
    Lost,
    /// The network changed, or the machine woke up.
    NetworkChanged,
}

pub(super) struct Listeners {
    listener: UnixListener,
    connections: Vec<Connection>,
    report: Arc<Report>,
    events: Sender<Event>,
    state: StateFolder,
    /// Since when nobody is connected; `None` if somebody is, or the daemon left on purpose.
    alone_since: Option<Instant>,
}

/// A process that is sent the status and may send orders.
struct Connection {
    stream: UnixStream,
    buffer: FrameBuffer,
    /// It sent `Goodbye`: it leaves on purpose.
    is_leaving: bool,
}

impl Listeners {
    /// `first` is a connection to the process that started us.
    pub(super) fn open(
        state: &StateFolder,
        folder: &Path,
        first: Option<UnixStream>,
        report: Arc<Report>,
        events: Sender<Event>,
    ) -> io::Result<Self> {
        let listener = towline_host::socket::bind(folder, TUNNEL_SOCKET)?;
        listener.set_nonblocking(true)?;
        let mut listeners = Self {
            listener,
            connections: Vec::new(),
            report,
            events,
            state: state.clone(),
            alone_since: Some(Instant::now()),
        };
        if let Some(connection) = first {
            listeners.add_connection(connection);
        }
        Ok(listeners)
    }

    fn add_connection(&mut self, connection: UnixStream) {
        let copy = connection.try_clone();
        if let (Ok(copy), true) = (copy, self.connections.len() < MAX_CONNECTIONS) {
            self.alone_since = None;
            self.report.listen(copy);
            self.connections.push(Connection {
                stream: connection,
                buffer: FrameBuffer::default(),
                is_leaving: false,
            });
        }
    }

    /// Runs until a process orders the tunnel to close.
    pub(super) fn listen(mut self, close: impl Fn()) {
        let (changes, mut sleep) = (NetworkChanges::listen(), SleepWatch::watch());
        loop {
            let ready = self.wait(changes.as_ref());
            if sleep.has_slept() {
                let _ = self.events.send(Event::NetworkChanged);
            }
            if ready.network_changed {
                changes.iter().for_each(NetworkChanges::drain);
                let _ = self.events.send(Event::NetworkChanged);
            }
            if ready.has_new_connection
                && let Ok((connection, _)) = self.listener.accept()
            {
                let _ = connection.set_nonblocking(false);
                self.add_connection(connection);
            }
            for order in self.read_orders(&ready.connections) {
                match order {
                    ToTunnel::Nudge => drop(self.events.send(Event::Nudge)),
                    ToTunnel::Close => return close(),
                    ToTunnel::Goodbye => {}
                }
            }
            self.start_daemon_if_alone();
        }
    }

    fn wait(&self, changes: Option<&NetworkChanges>) -> Ready {
        let watch = |fd| PollFd::from_borrowed_fd(fd, PollFlags::IN);
        let mut all: Vec<PollFd<'_>> = vec![watch(self.listener.as_fd())];
        all.extend(
            self.connections
                .iter()
                .map(|connection| watch(connection.stream.as_fd())),
        );
        all.extend(changes.map(|changes| watch(changes.as_fd())));
        let _ = poll(&mut all, Some(&POLL_TIMEOUT));
        let is_ready = |at: usize| all.get(at).is_some_and(|fd| !fd.revents().is_empty());
        let connections = (0..self.connections.len())
            .filter(|at| is_ready(at + 1))
            .collect();
        Ready {
            has_new_connection: is_ready(0),
            connections,
            network_changed: changes.is_some() && is_ready(self.connections.len() + 1),
        }
    }

    /// Reads the orders that have arrived, and drops the connections that were closed.
    fn read_orders(&mut self, ready: &[usize]) -> Vec<ToTunnel> {
        let mut orders = Vec::new();
        let mut gone = Vec::new();
        for at in ready {
            let connection = &mut self.connections[*at];
            let mut piece = [0; 1024];
            match connection.stream.read(&mut piece) {
                Ok(count @ 1..) => connection.buffer.push(&piece[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                _ => gone.push(*at),
            }
            while let Ok(Some(order)) = connection.buffer.next_frame() {
                connection.is_leaving |= order == ToTunnel::Goodbye;
                orders.push(order);
            }
        }
        for at in gone.into_iter().rev() {
            let closed = self.connections.swap_remove(at);
            if self.connections.is_empty() && !closed.is_leaving {
                self.alone_since = Some(Instant::now());
            }
        }
        orders
    }

    /// Starts a daemon if there is none, because the daemon restarts us should we be killed.
    fn start_daemon_if_alone(&mut self) {
        if self
            .alone_since
            .is_none_or(|since| since.elapsed() < DAEMON_START_DELAY)
        {
            return;
        }
        self.alone_since = Some(Instant::now());
        if !matches!(
            towline_host::lock::is_held(&self.state.daemon_lock()),
            Ok(false)
        ) {
            return;
        }
        if let Ok(mut child) = towline_host::daemon::command(self.state.root()).spawn() {
            // If no thread can be made, the child is collected when we exit.
            let _ = std::thread::Builder::new().spawn(move || child.wait());
        }
    }
}

struct Ready {
    has_new_connection: bool,
    connections: Vec<usize>,
    network_changed: bool,
}
