//! Tunnels that are wanted: each has a supervisor of its own, which outlives this daemon. One that
//! dies is started again; one that a daemon before us started is called.

use super::{Daemon, Message, Replies, log};
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
use towline_host::{lock, process};
use towline_wire::daemon::{RefusalKind, Reply};
use towline_wire::frame::{self, FrameBuffer};
use towline_wire::layout::{StateFolder, TUNNEL_SOCKET};
use towline_wire::tunnel::{TUNNEL_VERB, ToTunnel, TunnelState, TunnelStatus, Wanted};

/// Until a supervisor that ended is started again: at first, and at most.
const FIRST_RESTART_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_RESTART_PAUSE: Duration = Duration::from_secs(5);
/// One that lived so long did not die of being started.
const STABLE_LIFETIME: Duration = Duration::from_secs(10);
/// How often what has fallen to us and ended is looked for.
const STRAY_CHECK_INTERVAL: Duration = Duration::from_secs(20);

pub(super) enum TunnelEvent {
    Status(TunnelStatus),
    /// Its line has ended.
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

#[derive(Default)]
struct Tunnel {
    /// Our line to its supervisor.
    line: Option<StdStream>,
    status: Option<TunnelStatus>,
    listeners: Vec<(u64, Replies)>,
    begun: Option<Instant>,
    tries: u32,
    is_pausing: bool,
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

    /// Sees to all that are wanted.
    pub(super) fn take_up_all(&mut self) {
        let found =
            towline_host::filesystem::entries(&self.state.tunnels()).unwrap_or_else(|error| {
                log(&format!("which tunnels are wanted cannot be read: {error}"));
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

    /// Has a line to the supervisor of a wanted tunnel, or is on the way to one; forgets one that
    /// is not wanted.
    fn see_to(&mut self, name: &str) -> bool {
        let Some(wanted) = self.wanted(name) else {
            self.all.remove(name);
            return false;
        };
        let tunnel = self.all.entry(name.to_owned()).or_default();
        if tunnel.line.is_some() || tunnel.is_pausing {
            return true;
        }
        // What was known is that of another supervisor.
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

    /// A line to the one that lives, or to a new one. `None`: one lives, and is not to be spoken to
    /// yet.
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
        // Those of whoever opened it, not those of whoever started us.
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
            tunnel.tries = 0;
        }
        let pause = FIRST_RESTART_PAUSE
            .saturating_mul(1 << tunnel.tries.min(10))
            .min(LONGEST_RESTART_PAUSE);
        tunnel.tries += 1;
        tunnel.is_pausing = true;
        let (name, inbox) = (name.to_owned(), self.inbox.clone());
        tokio::spawn(async move {
            tokio::time::sleep(pause).await;
            let _ = inbox.send(Message::Tunnel {
                name,
                word: TunnelEvent::Again,
            });
        });
    }

    pub(super) fn said(&mut self, name: &str, word: TunnelEvent) {
        match word {
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

    /// Supervisors go on; they need not start another daemon.
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

    /// Masters of ssh let go of whoever started them, and fall to us when they do. Those that have
    /// been dead since the last look are waited for by nobody.
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

impl Daemon {
    pub(super) fn tunnel(&mut self, connection: u64, name: &str, replies: Replies) {
        if let Some(tunnel) = self.tunnels.all.get_mut(name)
            && tunnel.line.is_none()
        {
            // Whoever asks does not want to wait for a pause; the one under way finds it done.
            (tunnel.is_pausing, tunnel.tries) = (false, 0);
        }
        if !self.tunnels.see_to(name) {
            return super::clients::refuse(
                &replies,
                RefusalKind::NotFound,
                format!("tunnel `{name}` is not wanted"),
            );
        }
        let Some(tunnel) = self.tunnels.all.get_mut(name) else {
            return;
        };
        // One that has not even said how it is tries already.
        if let (Some(line), true) = (&mut tunnel.line, tunnel.status.is_some()) {
            let _ = line.write_all(&frame::encode(&ToTunnel::Nudge));
        }
        let silent = || TunnelStatus {
            state: TunnelState::Connecting,
            since: super::now(),
            port: 0,
            pid: 0,
            reconnects: 0,
            trouble: None,
        };
        let _ = replies.send(Reply::Tunnel(tunnel.status.clone().unwrap_or_else(silent)));
        tunnel.listeners.push((connection, replies));
    }
}

/// Hears a supervisor until it is gone.
async fn listen(name: String, mut line: UnixStream, inbox: UnboundedSender<Message>) {
    let mut buffer = FrameBuffer::default();
    let mut piece = vec![0; 4 << 10];
    while let Ok(count @ 1..) = line.read(&mut piece).await {
        buffer.push(&piece[..count]);
        while let Ok(Some(status)) = buffer.next_frame() {
            let _ = inbox.send(Message::Tunnel {
                name: name.clone(),
                word: TunnelEvent::Status(status),
            });
        }
    }
    let _ = inbox.send(Message::Tunnel {
        name,
        word: TunnelEvent::Gone,
    });
}
