//! Takes over runners that an earlier daemon started, and settles runners that died. The lock on a
//! journal says whether its runner is alive; the journal says what happened.

use super::{Daemon, Message, Then, log, now, runners};
use rustix::process::Signal;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;
use towline_core::event::RunEvent;
use towline_core::reason::{Cause, Ending};
use towline_core::state::cancelled;
use towline_core::{Error, Result, RunId};
use towline_engine::history::RunKey;
use towline_host::backoff::Backoff;
use towline_host::{crash, lock, process};
use towline_runner::journal;
use towline_wire::journal::JournalRecord;
use towline_wire::layout::StateFolder;

/// How long to wait before reading a journal again after a failure.
const UNREAD_PAUSE: Duration = Duration::from_secs(1);

impl Daemon {
    /// Takes over all runners. Connects to live ones; the journal of a dead one is final. A journal
    /// that cannot be read may belong to a run that is alive. Then this daemon does not start,
    /// because it could start that run again.
    pub(super) fn adopt_all(&mut self) -> Result<()> {
        crash::pass("daemon.adopt.begun");
        let mut seen = BTreeSet::new();
        for name in self.journals()? {
            seen.insert(name.clone());
            let path = self.state.runner_journal(&name);
            let held = lock::is_held(&path).unwrap_or(true);
            let unread = |error| {
                Error::from_io(
                    format!(
                        "{} cannot be read; without it the daemon does not know which runs are alive",
                        path.display()
                    ),
                    error,
                )
            };
            let records = journal::read(&path).map_err(unread)?;
            self.replay_claims(&name, &records);
            if held {
                tokio::spawn(call(self.state.clone(), name, self.inbox.clone()));
            } else {
                // The lock was free before the journal was read, so nothing was appended since.
                self.settled(&name, &records);
            }
        }
        self.settle_runs_of_missing_runners(&seen);
        self.finish_cancelled();
        crash::pass("daemon.adopt.done");
        Ok(())
    }

    /// The names of all runners that have a journal. A folder that cannot be listed is an error,
    /// because a run whose journal is missing would be started again.
    fn journals(&self) -> Result<Vec<String>> {
        let folder = self.state.runners();
        let failed = |error: std::io::Error| {
            Error::from_io(
                format!("the folder {} cannot be read", folder.display()),
                error,
            )
        };
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&folder).map_err(failed)? {
            let file = entry
                .map_err(failed)?
                .file_name()
                .to_string_lossy()
                .into_owned();
            names.extend(file.strip_suffix(".journal").map(str::to_owned));
        }
        Ok(names)
    }

    /// Restores start intents from claims, because a power cut may have lost intents that were not
    /// synced.
    fn replay_claims(&mut self, name: &str, records: &[JournalRecord]) {
        for record in records {
            let JournalRecord::Claim {
                run,
                attempt,
                at,
                gpus,
            } = record
            else {
                continue;
            };
            let Some(key) = self.queue.key(run) else {
                continue;
            };
            let event = self.apply(
                key,
                RunEvent::AttemptIntent {
                    attempt: *attempt,
                    runner: name.to_owned(),
                    gpus: gpus.clone(),
                    durable: false,
                },
                *at,
            );
            self.queue.refile(key);
            self.record(event.into_iter().collect(), Then::Nothing);
            if journal::trace(records, run, *attempt).end.is_some() {
                self.settle_attempt(key, run, *attempt, records);
            }
        }
    }

    fn settle_runs_of_missing_runners(&mut self, seen: &BTreeSet<String>) {
        let lost: Vec<String> = self
            .queue
            .held_runs()
            .filter_map(|run| run.state.runner.clone())
            .filter(|runner| !seen.contains(runner))
            .collect();
        for name in lost {
            self.settled(&name, &[]);
        }
    }

    /// Ends queued runs whose cancel was recorded, but not their end.
    fn finish_cancelled(&mut self) {
        let wanted: Vec<(RunKey, u32)> = self
            .queue
            .all()
            .filter(|run| {
                run.far.is_none() && run.state.cancel_requested && run.state.runner.is_none()
            })
            .map(|run| (run.key, run.state.attempt))
            .collect();
        for (key, attempt) in wanted {
            if let Some(event) = self.apply(
                key,
                RunEvent::Ended {
                    attempt,
                    ending: cancelled(),
                },
                now(),
            ) {
                self.record_end(key, event);
            }
        }
    }

    /// Handles the hello of a runner: a new one, or one that an earlier daemon started.
    pub(super) fn runner_hello(&mut self, name: &str, carrying: Option<(RunId, u32)>) {
        let Some((key, attempt)) = self
            .queue
            .held_runs()
            .find(|run| run.state.runner.as_deref() == Some(name))
            .map(|run| (run.key, run.state.attempt))
        else {
            return;
        };
        match carrying {
            Some((run, carried)) if self.queue.key(&run) == Some(key) && carried == attempt => {
                self.runners.assign(name, key, attempt);
                match journal::read(&self.state.runner_journal(name)) {
                    Ok(records) => self.take_up(&records, key, attempt),
                    Err(error) => self.hear_again(name, Some((run, carried)), &error),
                }
            }
            // This daemon started it, and it has not read its assignment yet.
            None if self.runners.is_own(name) => {}
            // It never got its assignment and never will, because the old connection is gone. If
            // its journal cannot be read now, it is read after the runner has exited.
            _ => {
                let id = self.run_of(key).map(|run| run.id.clone());
                if let (Some(id), Ok(records)) =
                    (id, journal::read(&self.state.runner_journal(name)))
                {
                    self.settle_attempt(key, &id, attempt, &records);
                }
                self.runners.finished(name);
            }
        }
    }

    /// Handles the same hello again after a pause, because the journal cannot be read now.
    fn hear_again(&self, name: &str, carrying: Option<(RunId, u32)>, error: &std::io::Error) {
        log(&format!(
            "the journal of runner {name} cannot be read: {error}"
        ));
        let (inbox, name) = (self.inbox.clone(), name.to_owned());
        tokio::spawn(async move {
            tokio::time::sleep(UNREAD_PAUSE).await;
            let message = towline_wire::runner::FromRunner::Hello {
                runner: name.clone(),
                carrying,
            };
            let _ = inbox.send(Message::Runner { name, message });
        });
    }

    /// Takes over an attempt that an earlier daemon started: records what has happened since.
    fn take_up(&mut self, records: &[JournalRecord], key: RunKey, attempt: u32) {
        let Some(id) = self.run_of(key).map(|run| run.id.clone()) else {
            return;
        };
        let trace = journal::trace(records, &id, attempt);
        if let Some(at) = trace.started {
            self.attempt_started(key, attempt, at);
        }
        if let Some((until, ending)) = trace.held {
            let event = self.apply(
                key,
                RunEvent::AttemptHeld {
                    attempt,
                    until,
                    ending,
                },
                now(),
            );
            self.record(event.into_iter().collect(), Then::Nothing);
        }
        self.send_stop_if_wanted(key);
    }

    pub(super) fn runner_gone(&mut self, name: &str) {
        self.runners.gone(name);
        // Either the runner is dead, or only the connection to it is.
        tokio::spawn(call(
            self.state.clone(),
            name.to_owned(),
            self.inbox.clone(),
        ));
    }

    /// Handles the death of a runner. If it died before it took its run, starts pause for a moment,
    /// because the next runner might die for the same reason.
    pub(super) fn runner_settled(&mut self, name: &str, records: &[JournalRecord]) {
        let waiting = self.queue.waiting_count();
        self.settled(name, records);
        if self.queue.waiting_count() > waiting && records.is_empty() {
            self.pause_starts("a runner died before it took its run".to_owned());
        }
    }

    /// Settles the runs of a runner whose journal is unlocked: at most its ranks are still alive.
    pub(super) fn settled(&mut self, name: &str, records: &[JournalRecord]) {
        let mine: Vec<(RunKey, RunId, u32)> = self
            .queue
            .held_runs()
            .filter(|run| run.state.runner.as_deref() == Some(name))
            .map(|run| (run.key, run.id.clone(), run.state.attempt))
            .collect();
        for (key, id, attempt) in mine {
            self.settle_attempt(key, &id, attempt, records);
        }
        // Removes the cgroup if it is empty. If not, the thread that kills its processes removes
        // it.
        if let Ok(group) = std::fs::read_to_string(self.state.runner_group(name)) {
            towline_host::cgroup::remove(group.as_ref());
        }
        self.runners.forget_journal(name.to_owned());
    }

    fn settle_attempt(&mut self, key: RunKey, id: &RunId, attempt: u32, records: &[JournalRecord]) {
        let trace = journal::trace(records, id, attempt);
        match (trace.claimed, trace.end) {
            (_, Some((at, ending))) => {
                if let Some(started) = trace.started {
                    self.attempt_started(key, attempt, started);
                }
                self.attempt_over(key, attempt, ending, at);
            }
            // A power cut lost the claim, or there was none: nobody knows whether the attempt had
            // begun.
            (None, None) if self.may_have_begun(key) => self.orphans_ended(key, attempt),
            (None, None) => self.attempt_unclaimed(key, attempt),
            // Guard and runner were killed together: kill the ranks that they left before anything
            // else.
            (Some(_), None) => {
                let inbox = self.inbox.clone();
                let of_this_boot = self.runner_is_of_this_boot(key);
                let (id, group, processes) =
                    (id.clone(), self.group_of_runner(key), trace.processes);
                let end = move || {
                    end_orphans(&id, &processes, of_this_boot, group.as_deref());
                    let _ = inbox.send(Message::OrphansEnded { key, attempt });
                };
                // If no thread can be started, the daemon's own thread does it, and all clients
                // wait.
                if std::thread::Builder::new()
                    .name("orphans".into())
                    .spawn(end.clone())
                    .is_err()
                {
                    end();
                }
            }
        }
    }

    /// Returns a run to its place in the queue, because no runner took the attempt.
    pub(super) fn attempt_unclaimed(&mut self, key: RunKey, attempt: u32) {
        let event = self.apply(key, RunEvent::AttemptUnclaimed { attempt }, now());
        self.queue.refile(key);
        self.record(event.into_iter().collect(), Then::Nothing);
        self.unsettled = true;
        if self
            .run_of(key)
            .is_some_and(|run| run.state.cancel_requested)
        {
            self.finish_cancelled();
        }
    }

    fn may_have_begun(&self, key: RunKey) -> bool {
        self.run_of(key)
            .is_some_and(|run| run.state.claim_may_be_lost)
            && !self.runner_is_of_this_boot(key)
    }

    fn group_of_runner(&self, key: RunKey) -> Option<PathBuf> {
        let runner = self.run_of(key)?.state.runner.as_deref()?;
        std::fs::read_to_string(self.state.runner_group(runner))
            .ok()
            .map(PathBuf::from)
    }

    fn runner_is_of_this_boot(&self, key: RunKey) -> bool {
        let runner = self.run_of(key).and_then(|run| run.state.runner.as_deref());
        runner.is_some_and(|runner| runner.starts_with(process::boot()))
    }

    pub(super) fn orphans_ended(&mut self, key: RunKey, attempt: u32) {
        if let Some(run) = self.run_of(key) {
            // The processes behind its mounts were killed too.
            towline_host::mounts::release_below(&self.state.run(&run.id).join("io"));
        }
        let ending = Ending::cause(Cause::NodeFailed)
            .detail("the runner and its guard were killed, or the machine went down");
        self.attempt_over(key, attempt, ending, now());
    }
}

/// Connects to a live runner. If the runner dies meanwhile, its journal settles the run. A lock
/// that cannot be tested counts as held.
async fn call(
    state: StateFolder,
    name: String,
    inbox: tokio::sync::mpsc::UnboundedSender<Message>,
) {
    let journal = state.runner_journal(&name);
    while lock::is_held(&journal).unwrap_or(true) {
        if let Ok(stream) = towline_host::socket::connect(&state.runners(), &format!("{name}.sock"))
        {
            match runners::serve(&name, stream, inbox.clone()) {
                Ok(control) => {
                    let _ = inbox.send(Message::RunnerAdopted { name, control });
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
async fn wait_for_lock(
    state: StateFolder,
    name: String,
    inbox: tokio::sync::mpsc::UnboundedSender<Message>,
) {
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
    let _ = inbox.send(Message::Settled { name, records });
}

/// Kills every process of a run: those in the runner's journal if pid and start time still match,
/// their descendants, every process with the run's id in its environment, and everything in the
/// runner's cgroup.
fn end_orphans(run: &RunId, processes: &[(i32, u64)], of_this_boot: bool, group: Option<&Path>) {
    let mark = format!("TOW_RUN_ID={run}");
    for _ in 0..500 {
        let mut alive: BTreeSet<i32> = BTreeSet::new();
        for (pid, facts) in process::all() {
            // A pid alone proves nothing, because pids are reused. Its start time must match the
            // journal, and a process group must be led by a rank or have no living leader.
            let is_rank = processes.contains(&(pid, facts.started));
            let of_rank = || {
                let leader = process::facts(facts.group).map(|leader| leader.started);
                processes.iter().any(|(known, started)| {
                    *known == facts.group
                        && facts.started >= *started
                        && leader.is_none_or(|leader| leader == *started)
                })
            };
            let written_down = of_this_boot && (is_rank || of_rank());
            let marked = || {
                std::fs::read(format!("/proc/{pid}/environ")).is_ok_and(|bytes| {
                    bytes
                        .split(|byte| *byte == 0)
                        .any(|entry| entry == mark.as_bytes())
                })
            };
            if !facts.zombie && (written_down || marked()) {
                alive.insert(pid);
            }
        }
        let below: Vec<i32> = alive
            .iter()
            .flat_map(|pid| process::descendants(*pid))
            .collect();
        alive.extend(below);
        if let Some(group) = group {
            towline_host::cgroup::kill(group);
        }
        if alive.is_empty() && group.is_none_or(towline_host::cgroup::is_empty) {
            group.into_iter().for_each(towline_host::cgroup::remove);
            return;
        }
        for pid in &alive {
            process::signal(*pid, Signal::KILL);
        }
        std::thread::sleep(Duration::from_millis(10));
        // As the subreaper, we may have become their parent.
        for pid in &alive {
            process::collect(*pid);
        }
    }
    log(&format!("{run}: some of its processes cannot be ended"));
}
