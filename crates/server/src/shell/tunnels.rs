//! Tunnels that are to be open. Each has a supervisor process of its own, which outlives this
//! daemon. The daemon starts a dead supervisor again, and connects to one that an earlier daemon
//! started.

use super::{Message, Replies, Shell, log};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;
use tokio::sync::mpsc::UnboundedSender;
use towline_host::backoff::Backoff;
use towline_host::{lock, process};
use towline_wire::daemon::{Refusal, RefusalKind, Reply};
use towline_wire::frame::{self, FrameBuffer};
use towline_wire::layout::{StateFolder, TUNNEL_SOCKET};
use towline_wire::tunnel::{TUNNEL_VERB, ToTunnel, TunnelState, TunnelStatus, Wanted};

/// The first and the longest pause before a supervisor is started again.
const FIRST_RESTART_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_RESTART_PAUSE: Duration = Duration::from_secs(5);
/// A supervisor that lived for this long did not die of a bad start.
const STABLE_LIFETIME: Duration = Duration::from_secs(10);
/// How often to look for dead children that we inherited.
const STRAY_CHECK_INTERVAL: Duration = Duration::from_secs(20);

pub(super) enum TunnelEvent {
    Status(TunnelStatus),
    /// The connection to its supervisor has ended.
    Gone,
    /// The pause is over.
    Again,
}

pub(super) struct Tunnels {
    state: StateFolder,
    inbox: UnboundedSender<Message>,
    all: BTreeMap<String, Tunnel>,
    children: Vec<Child>,
    strays: Vec<i32>,
    looked: Instant,
}

struct Tunnel {
    /// Our connection to its supervisor.
    line: Option<StdStream>,
    status: Option<TunnelStatus>,
    listeners: Vec<(u64, Replies)>,
    begun: Option<Instant>,
    backoff: Backoff,
    is_pausing: bool,
}

impl Default for Tunnel {
    fn default() -> Self {
        Self {
            line: None,
            status: None,
            listeners: Vec::new(),
            begun: None,
            backoff: Backoff::new(FIRST_RESTART_PAUSE, LONGEST_RESTART_PAUSE),
            is_pausing: false,
        }
    }
}

impl Tunnels {
    pub(super) fn new(state: StateFolder, inbox: UnboundedSender<Message>) -> Self {
        Self {
            state,
            inbox,
            all: BTreeMap::new(),
            children: Vec::new(),
            strays: Vec::new(),
            looked: Instant::now(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Takes care of all wanted tunnels.
    pub(super) fn take_up_all(&mut self) {
        let found =
            towline_host::filesystem::entries(&self.state.tunnels()).unwrap_or_else(|error| {
                log(&format!("the folder of tunnels cannot be read: {error}"));
                Vec::new()
            });
        for name in found
            .into_iter()
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect::<Vec<_>>()
        {
            self.see_to(&name);
        }
    }

    fn wanted(&self, name: &str) -> Option<Wanted> {
        Wanted::read(&self.state.tunnel(name).join("wanted"))
    }

    /// Makes sure that a wanted tunnel has a connection to its supervisor, or soon will; forgets a
    /// tunnel that is not wanted.
    fn see_to(&mut self, name: &str) -> bool {
        let Some(wanted) = self.wanted(name) else {
            self.all.remove(name);
            return false;
        };
        let tunnel = self.all.entry(name.to_owned()).or_default();
        if tunnel.line.is_some() || tunnel.is_pausing {
            return true;
        }
        // The last status came from another supervisor.
        tunnel.status = None;
        match self.reach(name, &wanted) {
            Ok(Some(line)) => {
                let tunnel = self.all.entry(name.to_owned()).or_default();
                tunnel.begun = Some(Instant::now());
                tunnel.line = Some(line);
            }
            Ok(None) => self.pause(name),
            Err(error) => {
                log(&format!("tunnel {name}: {error}"));
                self.pause(name);
            }
        }
        true
    }

    /// Connects to the living supervisor, or starts one. `None` if one is alive and cannot be
    /// reached yet.
    fn reach(&mut self, name: &str, wanted: &Wanted) -> io::Result<Option<StdStream>> {
        let folder = self.state.tunnel(name);
        let line = if lock::is_held(&folder.join("lock")).unwrap_or(false) {
            let Ok(line) = towline_host::socket::connect(&folder, TUNNEL_SOCKET) else {
                return Ok(None);
            };
            line
        } else {
            self.start(name, wanted)?
        };
        line.set_nonblocking(true)?;
        let copy = UnixStream::from_std(line.try_clone()?)?;
        tokio::spawn(listen(name.to_owned(), copy, self.inbox.clone()));
        Ok(Some(line))
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the daemon starts this program again, as a tunnel"
    )]
    fn start(&mut self, name: &str, wanted: &Wanted) -> io::Result<StdStream> {
        let (ours, theirs) = StdStream::pair()?;
        let mut command = Command::new("/proc/self/exe");
        command
            .arg0("tow")
            .arg(TUNNEL_VERB)
            .arg(self.state.root())
            .arg(name);
        // The variables come from the user's shell that opened the tunnel, not from the one that
        // started the daemon.
        for variable in Wanted::VARIABLES
            .into_iter()
            .filter(|variable| *variable != "PATH")
        {
            command.env_remove(variable);
        }
        command.envs(&wanted.environment);
        command
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null());
        self.children.push(command.spawn()?);
        Ok(ours)
    }

    fn pause(&mut self, name: &str) {
        let tunnel = self.all.entry(name.to_owned()).or_default();
        if tunnel
            .begun
            .take()
            .is_some_and(|begun| begun.elapsed() > STABLE_LIFETIME)
        {
            tunnel.backoff.reset();
        }
        let pause = tunnel.backoff.pause();
        tunnel.is_pausing = true;
        let (name, inbox) = (name.to_owned(), self.inbox.clone());
        tokio::spawn(async move {
            tokio::time::sleep(pause).await;
            let _ = inbox.send(Message::Tunnel {
                name,
                event: TunnelEvent::Again,
            });
        });
    }

    pub(super) fn said(&mut self, name: &str, event: TunnelEvent) {
        match event {
            TunnelEvent::Status(status) => {
                let Some(tunnel) = self.all.get_mut(name) else {
                    return;
                };
                tunnel
                    .listeners
                    .retain(|(_, replies)| replies.send(Reply::Tunnel(status.clone())).is_ok());
                tunnel.status = Some(status);
            }
            TunnelEvent::Gone => {
                if let Some(tunnel) = self.all.get_mut(name) {
                    tunnel.line = None;
                    self.pause(name);
                }
            }
            TunnelEvent::Again => {
                if let Some(tunnel) = self.all.get_mut(name) {
                    tunnel.is_pausing = false;
                    self.see_to(name);
                }
            }
        }
    }

    pub(super) fn unlisten(&mut self, connection: u64) {
        for tunnel in self.all.values_mut() {
            tunnel
                .listeners
                .retain(|(listener, _)| *listener != connection);
        }
    }

    /// Tells the supervisors that the daemon exits. They go on, and need not start another daemon.
    pub(super) fn say_goodbye(&mut self) {
        for line in self
            .all
            .values_mut()
            .filter_map(|tunnel| tunnel.line.as_mut())
        {
            let _ = line.write_all(&frame::encode(&ToTunnel::Goodbye));
        }
    }

    pub(super) fn tick(&mut self) {
        self.children
            .retain_mut(|child| matches!(child.try_wait(), Ok(None)));
        if self.looked.elapsed() > STRAY_CHECK_INTERVAL && !self.is_empty() {
            self.looked = Instant::now();
            self.collect_strays();
        }
    }

    /// Reaps dead ssh masters. A master detaches from its parent, so it becomes our child. Only
    /// those that were dead at the last look too are reaped: nobody else waits for them.
    fn collect_strays(&mut self) {
        let own = rustix::process::getpid().as_raw_nonzero().get();
        let is_ssh = |pid: &i32| {
            std::fs::read_to_string(format!("/proc/{pid}/comm"))
                .is_ok_and(|name| name.trim() == "ssh")
        };
        let dead: Vec<i32> = process::all()
            .into_iter()
            .filter(|(pid, facts)| facts.zombie && facts.parent == own && is_ssh(pid))
            .map(|(pid, _)| pid)
            .collect();
        for pid in dead.iter().filter(|pid| self.strays.contains(pid)) {
            process::collect(*pid);
        }
        self.strays = dead;
    }
}

impl Shell {
    /// Sends a client the status of a tunnel, now and at every change.
    pub(super) fn tunnel(&mut self, connection: u64, name: &str) {
        if let Some(tunnel) = self.tunnels.all.get_mut(name)
            && tunnel.line.is_none()
        {
            // A client does not wait for the pause. The pause that is under way finds its work
            // done.
            tunnel.is_pausing = false;
            tunnel.backoff.reset();
        }
        if !self.tunnels.see_to(name) {
            let refusal = Refusal {
                kind: RefusalKind::NotFound,
                refusal: None,
                message: format!("tunnel `{name}` is not open"),
                hints: Vec::new(),
            };
            return self.reply(connection, Reply::Refused(refusal), true);
        }
        let Some(replies) = self.connections.get(&connection).cloned() else {
            return;
        };
        let Some(tunnel) = self.tunnels.all.get_mut(name) else {
            return;
        };
        // A supervisor without a status is connecting already.
        if let (Some(line), true) = (&mut tunnel.line, tunnel.status.is_some()) {
            let _ = line.write_all(&frame::encode(&ToTunnel::Nudge));
        }
        let silent = || TunnelStatus {
            state: TunnelState::Connecting,
            since: towline_host::clock::now(),
            port: 0,
            pid: 0,
            reconnects: 0,
            trouble: None,
        };
        let _ = replies.send(Reply::Tunnel(tunnel.status.clone().unwrap_or_else(silent)));
        tunnel.listeners.push((connection, replies));
    }
}

/// Reads messages of a supervisor until its connection ends.
async fn listen(name: String, mut line: UnixStream, inbox: UnboundedSender<Message>) {
    let mut buffer = FrameBuffer::default();
    let mut piece = vec![0; 4 << 10];
    while let Ok(count @ 1..) = line.read(&mut piece).await {
        buffer.push(&piece[..count]);
        while let Ok(Some(status)) = buffer.next_frame() {
            let _ = inbox.send(Message::Tunnel {
                name: name.clone(),
                event: TunnelEvent::Status(status),
            });
        }
    }
    let _ = inbox.send(Message::Tunnel {
        name,
        event: TunnelEvent::Gone,
    });
}
