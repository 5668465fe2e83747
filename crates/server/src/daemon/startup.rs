//! Start of the daemon: the lock, the history, the runs of the daemon before, the socket.

use super::far::{FarClusters, Opener};
use super::{
    Daemon, Message, clients, gpus::GpuWatch, log, queue::Queue, runners::Runners, watch::Watchers,
};
use crate::ledger::Ledger;
use crate::machine::Machine;
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::unbounded_channel;
use towline_core::config::MAX_LOCAL_GPUS;
use towline_core::{Error, Result};
use towline_engine::history::{History, JournalMode};
use towline_host::surroundings;
use towline_wire::daemon::Limits;
use towline_wire::layout::{DAEMON_SOCKET, StateFolder};

const LOG_LIMIT: u64 = 4 << 20;
/// More bytes than any file of limits has.
const LIMITS_BYTES: u64 = 64 << 10;

/// How long an idle daemon stays. `TOW_DAEMON_IDLE_SECONDS` overrides it.
pub(super) fn idle_time() -> Duration {
    Duration::from_secs(number("TOW_DAEMON_IDLE_SECONDS").unwrap_or(300))
}

fn number(name: &str) -> Option<u64> {
    surroundings::variable(name)?.parse().ok()
}

/// Runs the daemon until it is idle or told to stop. Returns at once if another daemon holds the
/// lock.
pub fn daemon_main(state: &StateFolder, opener: Opener) -> Result<()> {
    come_up(state, opener).inspect_err(|error| {
        log(&error.to_string());
        tell_refusal(error);
    })
}

fn come_up(state: &StateFolder, opener: Opener) -> Result<()> {
    let failed = |what: &str| {
        let what = what.to_owned();
        move |error: io::Error| Error::from_io(what, error)
    };
    for folder in [
        state.root().to_owned(),
        state.runners(),
        state.runs(),
        state.secrets(),
    ] {
        towline_host::filesystem::private_folder(&folder)
            .map_err(failed(&format!("{} cannot be used", folder.display())))?;
    }
    let lock = File::options()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(state.daemon_lock())
        .map_err(failed("the daemon's lock cannot be opened"))?;
    if !towline_host::lock::try_lock_with_retries(&lock)
        .map_err(failed("the daemon's lock cannot be taken"))?
    {
        return Ok(());
    }
    let _ = rustix::process::setsid();
    // All runs inherit our limits. Those of the shell that started the daemon are meant for that
    // shell alone.
    towline_host::limits::widen_own();
    // Runners inherit this working folder.
    std::env::set_current_dir(state.runners())
        .map_err(failed("the runners' folder cannot be used"))?;
    take_log(state).map_err(failed("the daemon's log cannot be opened"))?;
    // If a guard and its runner are killed together, their processes become our children.
    towline_host::process::become_subreaper().map_err(failed("cannot become a subreaper"))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(failed("no runtime"))?;
    runtime.block_on(serve(state, opener))?;
    drop(lock);
    Ok(())
}

/// Makes the log our stderr. A log that has grown large is started again.
fn take_log(state: &StateFolder) -> io::Result<()> {
    let path = state.daemon_log();
    let large = std::fs::metadata(&path).is_ok_and(|metadata| metadata.len() > LOG_LIMIT);
    if large {
        std::fs::rename(&path, path.with_extension("log.old"))?;
    }
    let file = OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(path)?;
    Ok(rustix::stdio::dup2_stderr(&file)?)
}

async fn serve(state: &StateFolder, opener: Opener) -> Result<()> {
    let history = History::open_writer(&state.history(), JournalMode::for_folder(state.root()))?
        .with_notice(log);
    let active = history.active()?;
    let ledger = Ledger::new(history);
    let (inbox, messages) = unbounded_channel();
    let mut daemon = Daemon {
        state: state.clone(),
        machine: Machine::new(known_limits(state)),
        gpus: GpuWatch::default(),
        queue: Queue::default(),
        runners: Runners::new(state.clone(), inbox.clone()),
        plans: HashMap::new(),
        far: FarClusters::new(opener),
        tunnels: super::tunnels::Tunnels::new(state.clone(), inbox.clone()),
        workspaces: super::workspaces::Workspaces::default(),
        ended_far: Vec::new(),
        watchers: Watchers::default(),
        connections: 0,
        begun: super::now(),
        last_activity: Instant::now(),
        grace_millis: number("TOW_GRACE_MILLIS").unwrap_or(10_000),
        collect_seconds: number("TOW_COLLECT_SECONDS").unwrap_or(60).max(1),
        reserved: Vec::new(),
        unsettled: false,
        reserve: super::reserve::Reserve::new(state.reserve()),
        stalled: false,
        paused_starts: None,
        leaving: false,
        ledger,
        inbox: inbox.clone(),
    };
    daemon.load(active)?;
    daemon.adopt_all()?;
    daemon.take_up_all_far();
    daemon.tunnels.take_up_all();
    daemon.workspaces.load(state);
    let listener = towline_host::socket::bind(state.root(), DAEMON_SOCKET)
        .map_err(|error| Error::from_io("the daemon's socket cannot be made", error))?;
    tokio::spawn(clients::accept(listener, inbox.clone()));
    tokio::spawn(tick(inbox));
    tell_ready();
    daemon.run(messages).await;
    let _ = std::fs::remove_file(state.root().join(DAEMON_SOCKET));
    Ok(())
}

/// The machine's limits that the earlier daemon had. The next submission brings them again, so a
/// file that cannot be read is only logged.
fn known_limits(state: &StateFolder) -> Limits {
    let path = state.limits();
    let read = File::open(&path).and_then(|file| {
        let mut bytes = Vec::new();
        file.take(LIMITS_BYTES).read_to_end(&mut bytes)?;
        Ok(serde_json::from_slice::<Limits>(&bytes)?)
    });
    match read {
        Ok(limits) if limits.gpus.is_some_and(|gpus| gpus > MAX_LOCAL_GPUS) => {
            log(&format!(
                "{} says {} GPUs, which is impossible; the file is ignored",
                path.display(),
                limits.gpus.unwrap_or_default()
            ));
            Limits::default()
        }
        Ok(limits) => limits,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Limits::default(),
        Err(error) => {
            log(&format!(
                "{} cannot be read and is ignored: {error}",
                path.display()
            ));
            Limits::default()
        }
    }
}

/// Closes our stdout: the process that started us waits for that.
fn tell_ready() {
    if let Ok(null) = File::options().write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stdout(&null);
    }
}

/// Tells the process that started us why we cannot start.
fn tell_refusal(error: &Error) {
    let refusal = towline_wire::daemon::Refusal::from(error);
    let _ = rustix::io::write(
        rustix::stdio::stdout(),
        &serde_json::to_vec(&refusal).unwrap_or_default(),
    );
}

async fn tick(inbox: tokio::sync::mpsc::UnboundedSender<Message>) {
    let mut interval = tokio::time::interval(Duration::from_secs(1));
    interval.tick().await;
    loop {
        interval.tick().await;
        if inbox.send(Message::Tick).is_err() {
            return;
        }
    }
}
