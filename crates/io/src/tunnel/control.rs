//! The supervisor's ears: its socket, the network, sleep, and signals. One thread for all of them.

use super::network::{Changes, Sleep};
use super::report::Report;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Command, Stdio};
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

/// Something that makes it worth looking at the tunnel now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    Nudge,
    /// Somebody came to the port.
    Came,
    /// A connection broke.
    Broke,
    /// The way is gone for certain.
    Lost,
    /// The network changed, or the machine woke up.
    Changed,
}

pub(super) struct Listeners {
    listener: UnixListener,
    lines: Vec<Line>,
    report: Arc<Report>,
    events: Sender<Event>,
    state: StateFolder,
    /// Since when nobody is on the line, unless the daemon left on purpose.
    alone: Option<Instant>,
}

/// Somebody who listens and may say something.
struct Line {
    stream: UnixStream,
    buffer: FrameBuffer,
    /// It leaves on purpose.
    has_left: bool,
}

impl Listeners {
    /// `first` is the line to whoever started us.
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
            lines: Vec::new(),
            report,
            events,
            state: state.clone(),
            alone: Some(Instant::now()),
        };
        if let Some(line) = first {
            listeners.take(line);
        }
        Ok(listeners)
    }

    fn take(&mut self, line: UnixStream) {
        let copy = line.try_clone();
        if let (Ok(copy), true) = (copy, self.lines.len() < MAX_CONNECTIONS) {
            self.alone = None;
            self.report.listen(copy);
            self.lines.push(Line {
                stream: line,
                buffer: FrameBuffer::default(),
                has_left: false,
            });
        }
    }

    /// Until it is asked to close, by whoever may.
    pub(super) fn listen(mut self, close: impl Fn()) {
        let (changes, mut sleep) = (Changes::listen(), Sleep::watch());
        loop {
            let ready = self.wait(changes.as_ref());
            if sleep.was() {
                let _ = self.events.send(Event::Changed);
            }
            if ready.changed {
                changes.iter().for_each(Changes::take);
                let _ = self.events.send(Event::Changed);
            }
            if ready.came
                && let Ok((line, _)) = self.listener.accept()
            {
                let _ = line.set_nonblocking(false);
                self.take(line);
            }
            for order in self.hear(&ready.lines) {
                match order {
                    ToTunnel::Nudge => drop(self.events.send(Event::Nudge)),
                    ToTunnel::Close => return close(),
                    ToTunnel::Goodbye => {}
                }
            }
            self.start_daemon_if_alone();
        }
    }

    fn wait(&self, changes: Option<&Changes>) -> Ready {
        let watch = |fd| PollFd::from_borrowed_fd(fd, PollFlags::IN);
        let mut all: Vec<PollFd<'_>> = vec![watch(self.listener.as_fd())];
        all.extend(self.lines.iter().map(|line| watch(line.stream.as_fd())));
        all.extend(changes.map(|changes| watch(changes.as_fd())));
        let _ = poll(&mut all, Some(&POLL_TIMEOUT));
        let is_ready = |at: usize| all.get(at).is_some_and(|fd| !fd.revents().is_empty());
        let lines = (0..self.lines.len())
            .filter(|at| is_ready(at + 1))
            .collect();
        Ready {
            came: is_ready(0),
            lines,
            changed: changes.is_some() && is_ready(self.lines.len() + 1),
        }
    }

    /// What was said; who has hung up is left out from now on.
    fn hear(&mut self, ready: &[usize]) -> Vec<ToTunnel> {
        let mut orders = Vec::new();
        let mut gone = Vec::new();
        for at in ready {
            let line = &mut self.lines[*at];
            let mut piece = [0; 1024];
            match line.stream.read(&mut piece) {
                Ok(count @ 1..) => line.buffer.push(&piece[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                _ => gone.push(*at),
            }
            while let Ok(Some(order)) = line.buffer.next_frame() {
                line.has_left |= order == ToTunnel::Goodbye;
                orders.push(order);
            }
        }
        for at in gone.into_iter().rev() {
            let left = self.lines.swap_remove(at);
            if self.lines.is_empty() && !left.has_left {
                self.alone = Some(Instant::now());
            }
        }
        orders
    }

    /// A daemon that was killed has nobody to start the next; we need one in case we are.
    fn start_daemon_if_alone(&mut self) {
        if self
            .alone
            .is_none_or(|since| since.elapsed() < DAEMON_START_DELAY)
        {
            return;
        }
        self.alone = Some(Instant::now());
        if !matches!(
            towline_host::lock::is_held(&self.state.daemon_lock()),
            Ok(false)
        ) {
            return;
        }
        let mut command = Command::new("/proc/self/exe");
        command
            .args(["daemon", "run", "--state"])
            .arg(self.state.root())
            .current_dir("/");
        if let Ok(mut child) = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
        {
            // Not collected where no thread can be made: it is collected when we leave.
            let _ = std::thread::Builder::new().spawn(move || child.wait());
        }
    }
}

struct Ready {
    came: bool,
    lines: Vec<usize>,
    changed: bool,
}
