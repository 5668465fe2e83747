//! One node's part of an attempt: its set-up and ranks, and the upload of its logs and results.

use super::periodic::Periodic;
use super::{complain, outputs, tee, upload_logs};
use crate::attempt::{Attempt, Change};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use towline_core::cluster::LogSource;
use towline_core::rank::Place;
use towline_core::reason::Ending;
use towline_wire::log_name::LogName;
use towline_wire::runner::{Assignment, Stop};

/// How long writing the rest of a log to our stdout may take.
const TEE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the upload of the last logs may take when the job is being ended from outside.
const HURRIED_UPLOAD_TIMEOUT: Duration = Duration::from_secs(3);

/// The state of the part.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    Nothing,
    Started,
    /// No process of it is alive, and its logs are uploaded.
    Ended(Ending),
}

#[derive(Debug)]
pub(super) struct LocalPart {
    number: u32,
    attempt: Option<Attempt>,
    /// The change that its beginning made.
    first: Option<Change>,
    logs: Option<Periodic>,
    tee: Option<Periodic>,
    /// The folder where the run starts, and the place of its results; only on node 0.
    results: Option<(PathBuf, PathBuf)>,
    outputs: Option<Periodic>,
    /// Set while the logs are being uploaded, with the time it was set.
    ending: Option<(Ending, Instant)>,
    in_a_hurry: bool,
}

/// Uploads that went on when their attempt was over.
static UNSENT_LOGS: Mutex<Vec<Periodic>> = Mutex::new(Vec::new());
/// How long these may take before we exit. The service may end that earlier.
const UNSENT_LOGS_TIMEOUT: Duration = Duration::from_secs(60);

impl Drop for LocalPart {
    fn drop(&mut self) {
        let unsent = [self.logs.take(), self.outputs.take()]
            .into_iter()
            .flatten()
            .filter(|periodic| self.ending.is_some() && !periodic.is_over());
        UNSENT_LOGS
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend(unsent);
    }
}

/// Waits for uploads of logs and results that are in progress.
pub(super) fn send_the_rest() {
    let begun = Instant::now();
    for periodic in std::mem::take(&mut *UNSENT_LOGS.lock().unwrap_or_else(PoisonError::into_inner))
    {
        while !periodic.is_over() && begun.elapsed() < UNSENT_LOGS_TIMEOUT {
            let left = UNSENT_LOGS_TIMEOUT.saturating_sub(begun.elapsed());
            let timeout = Timespec {
                tv_sec: left.as_secs().cast_signed(),
                tv_nsec: left.subsec_nanos().into(),
            };
            let _ = poll(
                &mut [PollFd::from_borrowed_fd(periodic.watch(), PollFlags::IN)],
                Some(&timeout),
            );
            // The worker signals its descriptor just before it exits; yield so that it can.
            std::thread::yield_now();
        }
    }
}

impl LocalPart {
    pub(super) fn begin(assignment: Assignment, local: &Path, folder: PathBuf) -> io::Result<Self> {
        let number = assignment.attempt;
        let node = assignment.gang.as_ref().map_or(0, |place| place.node);
        let results = (node == 0).then(|| (PathBuf::from(&assignment.workdir), folder.clone()));
        let logs = upload_logs::upload_logs(number, local.to_owned(), folder)?;
        let tee = if assignment.shape.ranks_on(node) > 0 {
            let first = Place {
                node,
                local_rank: 0,
            }
            .rank(&assignment.shape);
            Some(tee::tee(
                local.join(LogName::new(number, LogSource::Rank(first)).file()),
            )?)
        } else {
            None
        };
        let mut attempt = Attempt::new(assignment, local, "crew");
        let first = attempt.begin();
        Ok(Self {
            number,
            attempt: Some(attempt),
            first: Some(first),
            logs: Some(logs),
            tee,
            results,
            outputs: None,
            ending: None,
            in_a_hurry: false,
        })
    }

    /// A part that never began.
    pub(super) fn failed(number: u32, ending: Ending) -> Self {
        let ending = Some((ending, Instant::now()));
        Self {
            number,
            attempt: None,
            first: None,
            logs: None,
            tee: None,
            results: None,
            outputs: None,
            ending,
            in_a_hurry: false,
        }
    }

    pub(super) const fn number(&self) -> u32 {
        self.number
    }

    pub(super) const fn attempt(&self) -> Option<&Attempt> {
        self.attempt.as_ref()
    }

    /// Whether no process of it is alive; its logs may still be uploading.
    pub(super) const fn has_ended(&self) -> bool {
        self.ending.is_some()
    }

    /// Whether there is work to do without an event.
    pub(super) const fn is_due(&self) -> bool {
        self.first.is_some() || (self.ending.is_some() && self.logs.is_none())
    }

    /// The descriptor that becomes readable once the uploads are over.
    pub(super) fn watch(&self) -> Option<BorrowedFd<'_>> {
        let open = [&self.logs, &self.tee, &self.outputs]
            .into_iter()
            .flatten()
            .find(|periodic| !periodic.is_over());
        open.filter(|_| self.ending.is_some()).map(Periodic::watch)
    }

    /// Stops it, with its grace.
    pub(super) fn stop(&mut self, why: Stop) {
        if let Some(attempt) = &mut self.attempt {
            attempt.stop(why);
        }
    }

    /// Shortens the time for the remaining work.
    pub(super) const fn hurry(&mut self) {
        self.in_a_hurry = true;
    }

    /// Stops it because the job is being ended from outside, which leaves little time.
    pub(super) fn stop_soon(&mut self, why: Stop, grace: Duration) {
        self.hurry();
        if let Some(attempt) = &mut self.attempt {
            attempt.assignment.grace_millis = u64::try_from(grace.as_millis()).unwrap_or(u64::MAX);
            attempt.stop(why);
        }
    }

    pub(super) fn wake(&mut self) -> Step {
        let Some(attempt) = &mut self.attempt else {
            return self.wake_ended();
        };
        let change = self.first.take().unwrap_or_else(|| attempt.wake());
        match change {
            Change::SetUpStarted | Change::RanksStarted => Step::Started,
            Change::Nothing | Change::Held { .. } => Step::Nothing,
            Change::Done => {
                self.ending = Some((attempt.ending(), Instant::now()));
                self.attempt = None;
                [&self.logs, &self.tee]
                    .into_iter()
                    .flatten()
                    .for_each(Periodic::finish);
                let carried = self
                    .results
                    .take()
                    .map(|(workdir, folder)| outputs::carry(&workdir, &folder));
                self.outputs = carried.and_then(|carried| {
                    carried
                        .map_err(|error| complain(&format!("outputs: {error}")))
                        .ok()
                });
                self.wake_ended()
            }
        }
    }

    fn wake_ended(&mut self) -> Step {
        let Some((ending, since)) = &self.ending else {
            return Step::Nothing;
        };
        let sent = [&self.logs, &self.outputs]
            .into_iter()
            .flatten()
            .all(Periodic::is_over);
        let echoed =
            self.tee.as_ref().is_none_or(Periodic::is_over) || since.elapsed() >= TEE_TIMEOUT;
        let is_late = self.in_a_hurry && since.elapsed() >= HURRIED_UPLOAD_TIMEOUT;
        if (sent && echoed) || is_late {
            Step::Ended(ending.clone())
        } else {
            Step::Nothing
        }
    }
}
