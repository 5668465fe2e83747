//! Start of the daemon: the lock, the history, the runs of the daemon before, the socket.

use super::far::{FarClusters, Opener};
use super::reserve::Reserve;
use super::runners::Runners;
use super::{Message, Shell, clients, log};
use crate::daemon::{Daemon, Found, FoundRun, FoundRunner, Hardware, Input, Now, Settings};
use std::collections::{HashMap, VecDeque};
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use towline_backends::local::{gpus, machine_size};
use towline_core::config::MAX_LOCAL_GPUS;
use towline_core::resolve::Resolved;
use towline_core::{Error, Result, RunId};
use towline_engine::history::{History, JournalMode};
use towline_host::surroundings;
use towline_wire::daemon::Limits;
use towline_wire::layout::{DAEMON_SOCKET, StateFolder};

const LOG_LIMIT: u64 = 4 << 20;
/// More bytes than any file of limits has.
const LIMITS_BYTES: u64 = 64 << 10;

/// How long an idle daemon stays. `TOW_DAEMON_IDLE_SECONDS` overrides it.
fn idle_time() -> Duration {
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
    let (inbox, messages) = unbounded_channel();
    let reserve = Reserve::new(state.reserve());
    let found = Found {
        runs: runs(&history)?,
        runners: runners(state)?,
        secrets: stored_secrets(state),
        reserve: reserve.is_held(),
    };
    let mut shell = shell(state, history, inbox.clone(), reserve, opener);
    shell.feed(Input::Begin(Box::new(found)));
    shell.tunnels.take_up_all();
    shell.workspaces.load(state);
    let listener = towline_host::socket::bind(state.root(), DAEMON_SOCKET)
        .map_err(|error| Error::from_io("the daemon's socket cannot be made", error))?;
    tokio::spawn(clients::accept(listener, inbox.clone()));
    tokio::spawn(tick(inbox));
    tell_ready();
    shell.run(messages).await;
    let _ = std::fs::remove_file(state.root().join(DAEMON_SOCKET));
    Ok(())
}

fn shell(
    state: &StateFolder,
    history: History,
    inbox: UnboundedSender<Message>,
    reserve: Reserve,
    opener: Opener,
) -> Shell {
    let wall = towline_host::clock::now();
    let settings = Settings {
        boot: towline_host::process::boot().to_owned(),
        pid: std::process::id(),
        host: surroundings::host_name(),
        begun: wall,
        grace_millis: number("TOW_GRACE_MILLIS").unwrap_or(10_000),
        idle_time: idle_time(),
    };
    let now = Now {
        wall,
        steady: Duration::ZERO,
    };
    let daemon = Daemon::new(settings.clone(), hardware(), known_limits(state), now);
    Shell {
        daemon,
        state: state.clone(),
        settings,
        collect_seconds: number("TOW_COLLECT_SECONDS").unwrap_or(60).max(1),
        began: Instant::now(),
        history,
        answers: VecDeque::new(),
        connections: HashMap::new(),
        runners: Runners::default(),
        far: FarClusters::new(opener),
        tunnels: super::tunnels::Tunnels::new(state.clone(), inbox.clone()),
        workspaces: super::workspaces::Workspaces::default(),
        reserve,
        inbox,
        is_leaving: false,
    }
}

fn hardware() -> Hardware {
    let size = machine_size(&Limits::default());
    Hardware {
        cpus: size.cpus,
        memory: size.memory,
        gpus: gpus::count_quickly(),
    }
}

/// The runs that have not ended.
fn runs(history: &History) -> Result<Vec<FoundRun>> {
    let mut last: Option<(RunId, Arc<Resolved>, Option<String>)> = None;
    let mut found = Vec::new();
    for run in history.active()? {
        if last.as_ref().is_none_or(|(id, ..)| *id != run.submission) {
            let Some(submission) = history.submission(&run.submission)? else {
                continue;
            };
            let far = (!submission.plan.is_here()).then_some(submission.plan.cluster);
            let resolved = Arc::new(submission.plan.resolved);
            last = Some((run.submission.clone(), resolved, far));
        }
        if let Some((_, resolved, far)) = &last {
            found.push(FoundRun {
                run,
                resolved: resolved.clone(),
                far: far.clone(),
            });
        }
    }
    Ok(found)
}

/// The runners that have a journal. A folder that cannot be listed is an error, because a run whose
/// journal is missing would be started again. So is a journal that cannot be read: it may belong to
/// a run that is alive.
fn runners(state: &StateFolder) -> Result<Vec<FoundRunner>> {
    let folder = state.runners();
    let failed = |error: io::Error| {
        Error::from_io(
            format!("the folder {} cannot be read", folder.display()),
            error,
        )
    };
    let mut found = Vec::new();
    for entry in std::fs::read_dir(&folder).map_err(failed)? {
        let file = entry.map_err(failed)?.file_name();
        let file = file.to_string_lossy();
        if let Some(name) = file.strip_suffix(".journal") {
            found.push(runner(state, name)?);
        }
    }
    Ok(found)
}

fn runner(state: &StateFolder, name: &str) -> Result<FoundRunner> {
    let path = state.runner_journal(name);
    let is_alive = towline_host::lock::is_held(&path).unwrap_or(true);
    let unread = |error| {
        let text = format!(
            "{} cannot be read; without it the daemon does not know which runs are alive",
            path.display()
        );
        Error::from_io(text, error)
    };
    Ok(FoundRunner {
        name: name.to_owned(),
        is_alive,
        records: towline_runner::journal::read(&path).map_err(unread)?,
    })
}

/// The submissions whose secrets are stored. A file that is none of ours is removed.
fn stored_secrets(state: &StateFolder) -> Vec<RunId> {
    let entries = std::fs::read_dir(state.secrets()).into_iter().flatten();
    let mut found = Vec::new();
    for entry in entries.flatten() {
        let name = entry.file_name().into_string().ok();
        match name.and_then(|name| RunId::try_from(name).ok()) {
            Some(id) => found.push(id),
            None => drop(std::fs::remove_file(entry.path())),
        }
    }
    found
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
