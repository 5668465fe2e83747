//! The supervisor of one tunnel: holds a port of loopback for as long as the tunnel is wanted, and
//! keeps the way from it to the far end. Any part of the way may go; it is found again.
//!
//! One supervisor for a tunnel: it holds the lock in the tunnel's folder. It outlives the daemon,
//! and whatever it has started ends with it, but for the shared connections of ssh.

mod azure;
mod backoff;
mod command;
mod control;
mod gate;
mod line;
mod network;
mod probe;
mod report;

pub use command::{check as check_program, command_main};
pub use line::Opener;

use crate::machine::relay::{Far, Notices, Relay};
use backoff::TunnelBackoff;
use control::{Event, Listeners};
use gate::Gate;
use line::Line;
use report::Report;
use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};
use towline_core::tunnel::Definition;
use towline_core::{Error, ErrorKind, Result};
use towline_wire::layout::StateFolder;
use towline_wire::tunnel::Wanted;

/// The far end is probed when it has sent nothing for this long.
const IDLE_PROBE_INTERVAL: Duration = Duration::from_secs(10);
/// Two probes are at least this far apart, whatever happens.
const MIN_PROBE_INTERVAL: Duration = Duration::from_secs(1);
/// A new connection or a network change leads to a probe if the far end has sent nothing for this
/// long.
const STALE_AFTER: Duration = Duration::from_secs(3);
/// How long a new connection waits for a tunnel that is down.
const DIAL_TIMEOUT: Duration = Duration::from_secs(10);

/// The longest pause before the next try once the network has changed.
const CHANGE_RETRY_PAUSE: Duration = Duration::from_millis(500);
/// The same after a failure that does not pass by itself.
const CHANGE_RETRY_PAUSE_LASTING: Duration = Duration::from_secs(5);

/// Runs until it is told to close. Returns at once where another supervises this tunnel, or nobody
/// wants it. `opener` makes the way by ssh; `first` is a line to whoever started us.
pub fn supervise(
    state: &StateFolder,
    name: &str,
    first: Option<UnixStream>,
    opener: impl FnOnce(&Wanted) -> Opener,
) -> io::Result<()> {
    // A session of its own: the daemon's end, or a closed terminal, is not ours.
    let _ = rustix::process::setsid();
    let folder = state.tunnel(name);
    let lock = File::options()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(folder.join("lock"))?;
    if !towline_host::lock::try_lock_patiently(&lock)? {
        return Ok(());
    }
    let Some(wanted) = Wanted::read(&folder.join("wanted")) else {
        return Ok(());
    };
    let report = Arc::new(Report::new(&folder, wanted.definition.port));
    let (events, happened) = channel();
    let listeners = Listeners::open(state, &folder, first, report.clone(), events.clone())?;
    let socket = folder.join(towline_wire::layout::TUNNEL_SOCKET);
    let teller = report.clone();
    std::thread::Builder::new()
        .name("ears".into())
        .spawn(move || {
            listeners.listen(|| {
                teller.log("closed");
                towline_host::process::kill_all_descendants();
                let _ = std::fs::remove_file(&socket);
                #[expect(
                    clippy::exit,
                    reason = "the keeper may wait for a host that does not answer; \
                nothing of it is left"
                )]
                std::process::exit(0);
            });
        })?;
    let said = report.clone();
    let line = Line::new(
        wanted.definition.clone(),
        opener(&wanted),
        Box::new(move |words| said.log(words)),
    );
    let mut keeper = Keeper {
        definition: wanted.definition,
        line: Arc::new(line),
        gate: Arc::default(),
        report,
        happened,
        backoff: TunnelBackoff::default(),
    };
    let _relay = keeper.hold_port(&events);
    keeper.keep();
    drop(lock);
    Ok(())
}

struct Keeper {
    definition: Definition,
    line: Arc<Line>,
    gate: Arc<Gate>,
    report: Arc<Report>,
    happened: Receiver<Event>,
    backoff: TunnelBackoff,
}

impl Keeper {
    /// The port is ours from here to the end.
    fn hold_port(&mut self, events: &Sender<Event>) -> Relay {
        let notices: Arc<dyn Notices> = Arc::new(Told {
            gate: self.gate.clone(),
            events: events.clone(),
        });
        loop {
            let (gate, line, port, lost) = (
                self.gate.clone(),
                self.line.clone(),
                self.definition.port,
                events.clone(),
            );
            let dial = move || dial(&gate, &line, &lost);
            let held = TcpListener::bind((Ipv4Addr::LOCALHOST, port))
                .and_then(|listener| Relay::on(listener, Box::new(dial), notices.clone()));
            match held {
                Ok(relay) => return relay,
                Err(error) => {
                    self.report.failing(&port_taken(port, error));
                    self.pause(false);
                }
            }
        }
    }

    fn keep(&mut self) {
        loop {
            match self.line.establish().and_then(|()| self.line.probe()) {
                Ok(()) => {
                    self.report.open();
                    self.gate.set(true);
                    self.backoff.reset();
                    let error = self.watch();
                    self.gate.set(false);
                    // The first try follows at once.
                    self.report.connecting(&error);
                }
                Err(error) => {
                    self.report.failing(&error);
                    self.pause(!matches!(
                        error.kind(),
                        ErrorKind::Unreachable | ErrorKind::Timeout
                    ));
                }
            }
        }
    }

    /// While it is open. Gives what ended that.
    fn watch(&self) -> Error {
        let mut good = Instant::now();
        loop {
            self.until_doubt(good);
            // What broke several connections is one reason.
            std::iter::from_fn(|| self.happened.try_recv().ok()).for_each(drop);
            if let Err(error) = self.line.probe() {
                return error;
            }
            good = Instant::now();
            // Who found the way gone may have been wrong.
            self.gate.set(true);
        }
    }

    /// Waits for a reason to ask.
    fn until_doubt(&self, good: Instant) {
        loop {
            let known = self.gate.heard().map_or(good, |heard| heard.max(good));
            match self.happened.recv_timeout(
                (known + IDLE_PROBE_INTERVAL).saturating_duration_since(Instant::now()),
            ) {
                // Networks change all the time on some machines.
                Ok(Event::Came | Event::Changed) if known.elapsed() < STALE_AFTER => {}
                Ok(Event::Lost) => return,
                Ok(_) => {
                    std::thread::sleep(
                        (good + MIN_PROBE_INTERVAL).saturating_duration_since(Instant::now()),
                    );
                    return;
                }
                Err(RecvTimeoutError::Disconnected) => std::thread::sleep(IDLE_PROBE_INTERVAL),
                Err(RecvTimeoutError::Timeout) => {
                    if self
                        .gate
                        .heard()
                        .is_none_or(|heard| heard.elapsed() >= IDLE_PROBE_INTERVAL)
                    {
                        return;
                    }
                }
            }
        }
    }

    /// Until the next try. A change of the network, or a user, makes it come at once.
    fn pause(&mut self, is_lasting: bool) {
        let begun = Instant::now();
        let mut until = begun + self.backoff.pause(is_lasting);
        loop {
            match self
                .happened
                .recv_timeout(until.saturating_duration_since(Instant::now()))
            {
                Ok(Event::Nudge) => {
                    self.report.trying();
                    return self.backoff.reset();
                }
                Ok(Event::Changed) => {
                    until = until.min(
                        begun
                            + if is_lasting {
                                CHANGE_RETRY_PAUSE_LASTING
                            } else {
                                CHANGE_RETRY_PAUSE
                            },
                    );
                }
                Ok(Event::Came | Event::Broke | Event::Lost) => {}
                Err(RecvTimeoutError::Timeout) => return,
                Err(RecvTimeoutError::Disconnected) => {
                    std::thread::sleep(until.saturating_duration_since(Instant::now()));
                }
            }
        }
    }
}

/// A connection to the far end, at the latest when the way is found again and who came has waited
/// enough.
fn dial(gate: &Gate, line: &Line, lost: &Sender<Event>) -> Result<Far> {
    let begun = Instant::now();
    while gate.wait(DIAL_TIMEOUT.saturating_sub(begun.elapsed())) {
        if line.is_there() {
            return line.dial();
        }
        gate.set(false);
        let _ = lost.send(Event::Lost);
    }
    Err(Error::unreachable("the tunnel is not open"))
}

/// What happens on the port's connections.
struct Told {
    gate: Arc<Gate>,
    events: Sender<Event>,
}

impl Notices for Told {
    fn came(&self) {
        let _ = self.events.send(Event::Came);
    }
    fn heard(&self) {
        self.gate.hear();
    }
    fn broke(&self) {
        let _ = self.events.send(Event::Broke);
    }
}

/// The error for a port that somebody else has, with their name where the machine tells it.
pub fn port_taken(port: u16, error: io::Error) -> Error {
    if error.kind() != io::ErrorKind::AddrInUse {
        return Error::refused(format!("port {port} of this machine cannot be used"))
            .source_error(error);
    }
    let who = towline_host::ports::owner(port)
        .map(|(pid, name)| format!(" by `{name}` (process {pid})"))
        .unwrap_or_default();
    Error::refused(format!("port {port} of this machine is in use{who}"))
        .hint("end that, or give the tunnel another port: --port")
}

/// Whether the port can be had now. It is not taken for that: whoever is about to have it must not
/// find it gone.
pub fn try_port(port: u16) -> Result<()> {
    if towline_host::ports::is_taken(port) {
        Err(port_taken(port, io::ErrorKind::AddrInUse.into()))
    } else {
        Ok(())
    }
}
