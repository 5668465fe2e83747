//! The runner's main loop: waits for an assignment, runs it, waits for the next.

use crate::attempt::{Attempt, Change};
use crate::control::{Control, start_daemon_if_gone};
use crate::journal::Journal;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::HashSet;
use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::time::Duration;
use towline_core::RunId;
use towline_host::crash;
use towline_wire::journal::JournalRecord;
use towline_wire::runner::{Assignment, FromRunner, ToRunner};

/// A runner that has carried this many runs exits when idle, because its journal has grown long
/// enough.
const MAX_RUNS_PER_RUNNER: usize = 2_000;

/// Runs in the runners' folder, below its guard.
pub fn runner_main(name: &str) -> io::Result<()> {
    towline_host::process::become_subreaper()?;
    // Everything we start belongs to this cgroup. If we and our guard are killed, the next daemon
    // kills the cgroup.
    let group = towline_host::cgroup::enter(name);
    if let Some(group) = &group {
        fs::write(
            format!("{name}.cgroup"),
            group.as_os_str().as_encoded_bytes(),
        )?;
    }
    let control = Control::from_stdin()?;
    let journal = Journal::from_descriptor(rustix::stdio::stdout())?;
    // Ranks must not hold the control socket or the journal's lock.
    let null = fs::File::options()
        .read(true)
        .write(true)
        .open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    let listener = towline_host::socket::bind(".".as_ref(), &format!("{name}.sock"))?;
    listener.set_nonblocking(true)?;
    let runs = std::env::current_dir()?
        .parent()
        .map(|state| state.join("runs"))
        .unwrap_or_default();
    let mut runner = Runner {
        name: name.to_owned(),
        group,
        runs,
        control: Some(control),
        listener,
        journal,
        attempt: None,
        begun: HashSet::new(),
        retire: false,
    };
    runner.hello();
    let result = runner.serve();
    let _ = fs::remove_file(format!("{name}.sock"));
    result
}

#[derive(Debug)]
struct Runner {
    name: String,
    group: Option<PathBuf>,
    runs: PathBuf,
    control: Option<Control>,
    listener: UnixListener,
    journal: Journal,
    attempt: Option<Attempt>,
    /// Attempts that were begun here. None is begun again.
    begun: HashSet<(RunId, u32)>,
    retire: bool,
}

impl Runner {
    fn serve(&mut self) -> io::Result<()> {
        loop {
            self.messages()?;
            if self.attempt.is_none()
                && (self.retire
                    || self.control.is_none()
                    || self.begun.len() >= MAX_RUNS_PER_RUNNER)
            {
                return Ok(());
            }
            self.wait()?;
            if let Some(attempt) = &mut self.attempt {
                let change = attempt.wake();
                self.changed(change)?;
            }
        }
    }

    /// Sleeps until a process ends, the daemon sends a message, a new daemon connects, or a timer
    /// runs out.
    fn wait(&mut self) -> io::Result<()> {
        let mut descriptors = vec![PollFd::new(&self.listener, PollFlags::IN)];
        if let Some(control) = &self.control {
            descriptors.push(PollFd::from_borrowed_fd(control.as_fd(), PollFlags::IN));
        }
        let timeout = self.attempt.as_ref().map(Attempt::timeout);
        if let Some(attempt) = &self.attempt {
            descriptors.extend(
                attempt
                    .watches()
                    .map(|watch| PollFd::from_borrowed_fd(watch, PollFlags::IN)),
            );
        }
        let timeout = timeout.map(timespec);
        match poll(&mut descriptors, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let called = !descriptors[0].revents().is_empty();
        let spoken = self.control.is_some() && !descriptors[1].revents().is_empty();
        drop(descriptors);
        if spoken
            && !self
                .control
                .as_mut()
                .is_some_and(|control| control.fill().unwrap_or(false))
        {
            self.control = None;
        }
        if called && let Ok((stream, _)) = self.listener.accept() {
            self.control = Control::new(stream).ok();
            self.hello();
        }
        Ok(())
    }

    fn hello(&mut self) {
        let carrying = self
            .attempt
            .as_ref()
            .map(|attempt| (attempt.assignment.run.clone(), attempt.assignment.attempt));
        self.send(&FromRunner::Hello {
            runner: self.name.clone(),
            carrying,
        });
    }

    /// Sends a message. A daemon that does not get it reads the journal later.
    fn send(&mut self, message: &FromRunner) {
        if let Some(control) = &mut self.control
            && control.send(message).is_err()
        {
            self.control = None;
        }
    }

    fn messages(&mut self) -> io::Result<()> {
        loop {
            let Some(control) = &mut self.control else {
                return Ok(());
            };
            match control.waiting() {
                Ok(Some(ToRunner::Start(assignment))) if self.may_begin(&assignment) => {
                    self.start(*assignment)?;
                }
                Ok(Some(ToRunner::Stop { run, attempt, why })) => {
                    crash::pass("runner.cancel.received");
                    if let Some(current) = &mut self.attempt
                        && current.assignment.run == run
                        && current.assignment.attempt == attempt
                    {
                        current.stop(why);
                        let change = current.wake();
                        self.changed(change)?;
                    }
                }
                Ok(Some(ToRunner::Retire)) => self.retire = true,
                Ok(None) => return Ok(()),
                // A second assignment or a broken frame: this daemon is not to be trusted any more.
                Ok(Some(ToRunner::Start(_))) | Err(_) => self.control = None,
            }
        }
    }

    fn may_begin(&self, assignment: &Assignment) -> bool {
        self.attempt.is_none()
            && !self
                .begun
                .contains(&(assignment.run.clone(), assignment.attempt))
    }

    /// Claims an attempt and begins it. If the claim fails, the daemon gets the attempt back:
    /// nothing of it has begun.
    fn start(&mut self, assignment: Assignment) -> io::Result<()> {
        crash::pass("runner.assigned");
        let folder = match self.claim(&assignment) {
            Ok(folder) => folder,
            Err(error) => {
                let why = format!("the folder of its run cannot be written: {error}");
                self.send(&FromRunner::Unclaimed {
                    run: assignment.run,
                    attempt: assignment.attempt,
                    why,
                });
                return Ok(());
            }
        };
        crash::pass("runner.claimed");
        self.begun
            .insert((assignment.run.clone(), assignment.attempt));
        let mut current = Attempt::new(assignment, &folder, &self.name);
        let change = current.begin();
        self.attempt = Some(current);
        crash::pass("runner.spawned");
        self.changed(change)
    }

    /// Writes the claim before anything of the attempt runs: to disk, unless the intent is there
    /// already. A killed process loses neither; a power cut loses at most one of the two.
    fn claim(&mut self, assignment: &Assignment) -> io::Result<PathBuf> {
        let folder = self.folder(&assignment.run)?;
        self.journal.reserve()?;
        let (run, attempt, gpus) = (
            assignment.run.clone(),
            assignment.attempt,
            assignment.gpus.concat(),
        );
        let claim = JournalRecord::Claim {
            run,
            attempt,
            at: towline_host::clock::now(),
            gpus,
        };
        self.journal.append(&claim, !assignment.intent_is_durable)?;
        Ok(folder)
    }

    fn folder(&self, run: &RunId) -> io::Result<PathBuf> {
        let folder = self.runs.join(run.as_str());
        match fs::DirBuilder::new().mode(0o700).create(&folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => Ok(folder),
        }
    }

    fn changed(&mut self, change: Change) -> io::Result<()> {
        match change {
            Change::Nothing => {}
            Change::SetUpStarted | Change::RanksStarted => self.ranks_started(),
            Change::Held { until } => self.held(until),
            Change::Done => self.end()?,
        }
        Ok(())
    }

    fn ranks_started(&mut self) {
        let Some(current) = &self.attempt else { return };
        let (run, attempt) = (current.assignment.run.clone(), current.assignment.attempt);
        let at = towline_host::clock::now();
        let processes = current.processes.iter().map(|process| {
            (
                process.pid,
                towline_host::process::facts(process.pid).map_or(0, |facts| facts.started),
            )
        });
        let record = JournalRecord::Started {
            run: run.clone(),
            attempt,
            at,
            processes: processes.collect(),
        };
        // Not synced, because it helps to find orphans after a kill, not after a power cut.
        let _ = self.journal.append(&record, false);
        self.send(&FromRunner::Started { run, attempt, at });
        crash::pass("runner.started");
    }

    fn held(&mut self, until: towline_core::time::Moment) {
        let Some(current) = &self.attempt else { return };
        let (run, attempt, ending) = (
            current.assignment.run.clone(),
            current.assignment.attempt,
            current.ending(),
        );
        // It tells only our guard what the ending was, in case we are killed while the nodes are
        // held.
        let _ = self.journal.append(
            &JournalRecord::Held {
                run: run.clone(),
                attempt,
                until,
                ending: ending.clone(),
            },
            true,
        );
        self.send(&FromRunner::Held {
            run,
            attempt,
            until,
            ending,
        });
    }

    /// Writes the end record to disk, then tells the daemon.
    fn end(&mut self) -> io::Result<()> {
        let Some(current) = self.attempt.take() else {
            return Ok(());
        };
        let (run, attempt, ending) = (
            current.assignment.run.clone(),
            current.assignment.attempt,
            current.ending(),
        );
        let at = towline_host::clock::now();
        crash::pass("runner.end.before");
        self.journal.append_end(&JournalRecord::End {
            run: run.clone(),
            attempt,
            at,
            ending: ending.clone(),
        })?;
        crash::pass("runner.end.written");
        self.send(&FromRunner::Ended {
            run,
            attempt,
            at,
            ending,
        });
        crash::pass("runner.end.sent");
        if self.control.is_none() {
            // Leave our cgroup before starting the daemon, so that killing the cgroup does not kill
            // it.
            self.group
                .iter()
                .for_each(|group| towline_host::cgroup::leave(group));
            start_daemon_if_gone();
        }
        Ok(())
    }
}

pub(crate) fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(duration.subsec_nanos()),
    }
}
