//! The supervisor of one tunnel. It holds a port of loopback for as long as the tunnel is wanted
//! and keeps the route from that port to the far end. When a part of the route fails, it is made
//! again.
//!
//! A tunnel has one supervisor, which holds the lock in the tunnel's folder. It outlives the
//! daemon. Every program that it has started ends with it; the shared connections of ssh stay.

mod azure;
mod backoff;
mod command;
mod control;
mod gate;
mod network;
mod probe;
mod report;
mod route;

pub use command::{check as check_program, command_main};
pub use route::Opener;

use crate::machine::relay::{Relay, RelayObserver, RemoteEnd};
use backoff::TunnelBackoff;
use control::{Event, Listeners};
use gate::Gate;
use report::Report;
use route::Route;
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

/// Runs until it is ordered to close. Returns at once if another process supervises this tunnel, or
/// nobody wants it. `opener` makes the ssh connection; `first` is a connection to the process that
/// started us.
pub fn supervise(
    state: &StateFolder,
    name: &str,
    first: Option<UnixStream>,
    opener: impl FnOnce(&Wanted) -> Opener,
) -> io::Result<()> {
    // A session of our own, so that we outlive the daemon and its terminal.
    let _ = rustix::process::setsid();
    let folder = state.tunnel(name);
    let lock = File::options()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(folder.join("lock"))?;
    if !towline_host::lock::try_lock_with_retries(&lock)? {
        return Ok(());
    }
    let Some(wanted) = Wanted::read(&folder.join("wanted")) else {
        return Ok(());
    };
    let report = Arc::new(Report::new(&folder, wanted.definition.port));
    let (events, received) = channel();
    let listeners = Listeners::open(state, &folder, first, report.clone(), events.clone())?;
    let socket = folder.join(towline_wire::layout::TUNNEL_SOCKET);
    let closing_report = report.clone();
    std::thread::Builder::new()
        .name("control".into())
        .spawn(move || {
            listeners.listen(|| {
                closing_report.log("closed");
                towline_host::process::kill_all_descendants();
                let _ = std::fs::remove_file(&socket);
                #[expect(
                    clippy::exit,
                    reason = "the supervisor may wait for a host that does not answer; \
                nothing of it is left"
                )]
                std::process::exit(0);
            });
        })?;
    let log = report.clone();
    let route = Route::new(
        wanted.definition.clone(),
        opener(&wanted),
        Box::new(move |text| log.log(text)),
    );
    let mut supervisor = Supervisor {
        definition: wanted.definition,
        route: Arc::new(route),
        gate: Arc::default(),
        report,
        received,
        backoff: TunnelBackoff::default(),
    };
    let _relay = supervisor.hold_port(&events);
    supervisor.run();
    drop(lock);
    Ok(())
}

struct Supervisor {
    definition: Definition,
    route: Arc<Route>,
    gate: Arc<Gate>,
    report: Arc<Report>,
    received: Receiver<Event>,
    backoff: TunnelBackoff,
}

impl Supervisor {
    /// Binds the port, and tries again until it is free. It is held until the process ends.
    fn hold_port(&mut self, events: &Sender<Event>) -> Relay {
        let observer: Arc<dyn RelayObserver> = Arc::new(ConnectionEvents {
            gate: self.gate.clone(),
            events: events.clone(),
        });
        loop {
            let (gate, route, port, lost) = (
                self.gate.clone(),
                self.route.clone(),
                self.definition.port,
                events.clone(),
            );
            let dial = move || dial(&gate, &route, &lost);
            let held = TcpListener::bind((Ipv4Addr::LOCALHOST, port))
                .and_then(|listener| Relay::on(listener, Box::new(dial), observer.clone()));
            match held {
                Ok(relay) => return relay,
                Err(error) => {
                    self.report.failing(&port_taken(port, error));
                    self.pause(false);
                }
            }
        }
    }

    fn run(&mut self) {
        loop {
            match self.route.establish().and_then(|()| self.route.probe()) {
                Ok(()) => {
                    self.report.open();
                    self.gate.set(true);
                    self.backoff.reset();
                    let error = self.watch();
                    self.gate.set(false);
                    // The next try follows at once.
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

    /// Watches an open tunnel. Returns the error that ended it.
    fn watch(&self) -> Error {
        let mut last_success = Instant::now();
        loop {
            self.wait_for_doubt(last_success);
            // Several broken connections are one reason to probe.
            std::iter::from_fn(|| self.received.try_recv().ok()).for_each(drop);
            if let Err(error) = self.route.probe() {
                return error;
            }
            last_success = Instant::now();
            // A connection that found the route gone may have been wrong.
            self.gate.set(true);
        }
    }

    /// Waits for a reason to probe.
    fn wait_for_doubt(&self, last_success: Instant) {
        loop {
            let last_sign = self
                .gate
                .last_data()
                .map_or(last_success, |last_data| last_data.max(last_success));
            match self.received.recv_timeout(
                (last_sign + IDLE_PROBE_INTERVAL).saturating_duration_since(Instant::now()),
            ) {
                // On some machines the network changes all the time.
                Ok(Event::Connected | Event::NetworkChanged)
                    if last_sign.elapsed() < STALE_AFTER => {}
                Ok(Event::Lost) => return,
                Ok(_) => {
                    std::thread::sleep(
                        (last_success + MIN_PROBE_INTERVAL)
                            .saturating_duration_since(Instant::now()),
                    );
                    return;
                }
                Err(RecvTimeoutError::Disconnected) => std::thread::sleep(IDLE_PROBE_INTERVAL),
                Err(RecvTimeoutError::Timeout) => {
                    if self
                        .gate
                        .last_data()
                        .is_none_or(|last_data| last_data.elapsed() >= IDLE_PROBE_INTERVAL)
                    {
                        return;
                    }
                }
            }
        }
    }

    /// Waits for the next try. A user can make it come at once, a network change sooner.
    fn pause(&mut self, is_lasting: bool) {
        let begun = Instant::now();
        let mut until = begun + self.backoff.pause(is_lasting);
        loop {
            match self
                .received
                .recv_timeout(until.saturating_duration_since(Instant::now()))
            {
                Ok(Event::Nudge) => {
                    self.report.trying();
                    return self.backoff.reset();
                }
                Ok(Event::NetworkChanged) => {
                    until = until.min(
                        begun
                            + if is_lasting {
                                CHANGE_RETRY_PAUSE_LASTING
                            } else {
                                CHANGE_RETRY_PAUSE
                            },
                    );
                }
                Ok(Event::Connected | Event::Broken | Event::Lost) => {}
                Err(RecvTimeoutError::Timeout) => return,
                Err(RecvTimeoutError::Disconnected) => {
                    std::thread::sleep(until.saturating_duration_since(Instant::now()));
                }
            }
        }
    }
}

/// A connection to the far end. While the tunnel is down it waits, up to [`DIAL_TIMEOUT`].
fn dial(gate: &Gate, route: &Route, lost: &Sender<Event>) -> Result<RemoteEnd> {
    let begun = Instant::now();
    while gate.wait(DIAL_TIMEOUT.saturating_sub(begun.elapsed())) {
        if route.is_up() {
            return route.dial();
        }
        gate.set(false);
        let _ = lost.send(Event::Lost);
    }
    Err(Error::unreachable("the tunnel is not open"))
}

/// Turns what happens on the port's connections into events.
struct ConnectionEvents {
    gate: Arc<Gate>,
    events: Sender<Event>,
}

impl RelayObserver for ConnectionEvents {
    fn connected(&self) {
        let _ = self.events.send(Event::Connected);
    }
    fn received(&self) {
        self.gate.note_data();
    }
    fn broken(&self) {
        let _ = self.events.send(Event::Broken);
    }
}

/// The error for a port that another process has, with its name where the system tells it.
pub fn port_taken(port: u16, error: io::Error) -> Error {
    if error.kind() != io::ErrorKind::AddrInUse {
        return Error::from_io(format!("port {port} of this machine cannot be used"), error);
    }
    let who = towline_host::ports::owner(port)
        .map(|(pid, name)| format!(" by `{name}` (process {pid})"))
        .unwrap_or_default();
    Error::conflict(format!("port {port} of this machine is in use{who}"))
        .hint("end that, or give the tunnel another port: --port")
}

/// An error if the port is in use. The port is not opened for this question, because a program that
/// is about to open it must not find it in use.
pub fn try_port(port: u16) -> Result<()> {
    if towline_host::ports::is_taken(port) {
        Err(port_taken(port, io::ErrorKind::AddrInUse.into()))
    } else {
        Ok(())
    }
}
