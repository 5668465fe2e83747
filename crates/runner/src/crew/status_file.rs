//! The status document of a run: everything about its attempts, in one file that is rewritten as a
//! whole. A later start of the same job reads the file of the earlier one.
//!
//! On its mount a file can be torn, because there are no renames. So each version is written twice,
//! and the newest complete one counts.

use super::{CrewTask, complain};
use crate::gang::{AttemptRecords, Due, Records};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use towline_core::cluster::AttemptReport;
use towline_core::cluster::{Claim, End, Held, Started};
use towline_core::job::RetryPolicy;
use towline_core::reason::{Cause, Ending};
use towline_wire::crew::{CREW_VERSION, StatusDocument};

/// How long writing a file is retried, because the mount may fail for a while. The first is for a
/// file that is not essential, the second for one that is. If the service kills us meanwhile, the
/// result is the same as giving up.
pub(super) const OPTIONAL_WRITE_TIMEOUT: Duration = Duration::from_secs(4);
pub(super) const ESSENTIAL_WRITE_TIMEOUT: Duration = Duration::from_secs(600);
/// The first and the longest pause between two tries.
const WRITE_RETRY_PAUSES: (Duration, Duration) =
    (Duration::from_millis(100), Duration::from_secs(10));

#[derive(Debug)]
pub(super) struct StatusFile {
    place: PathBuf,
    /// Written before the file that others read.
    draft: PathBuf,
    last: PathBuf,
    cancel: PathBuf,
    status: StatusDocument,
}

impl StatusFile {
    /// The document of an earlier start of the job; empty if this is the first.
    pub(super) fn read(task: &CrewTask) -> io::Result<Self> {
        let place = task.status.join(format!("{}.json", task.run));
        let last = task.folder.join("news.json");
        let draft = task.folder.join("news.draft");
        let found = newest([load(&place), load(&draft), load(&last)])?;
        let fresh = || StatusDocument {
            version: CREW_VERSION,
            run: task.run.clone(),
            written: towline_host::clock::now(),
            attempts: Vec::new(),
        };
        Ok(Self {
            place,
            draft,
            last,
            cancel: task.folder.join("cancel"),
            status: found.unwrap_or_else(fresh),
        })
    }

    /// How often the service has started the job before, as far as a claim tells.
    pub(super) fn starts(&self) -> u32 {
        let restarts = self
            .status
            .attempts
            .iter()
            .filter_map(|report| Some(report.claim.as_ref()?.by.restarts));
        restarts.max().map_or(0, |last| last + 1)
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.status.attempts.is_empty()
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.cancel.exists()
    }

    /// The next step, by the rule that all clusters share.
    pub(super) fn due(&self, policy: Option<&RetryPolicy>) -> Due {
        let records = |of: &AttemptReport| AttemptRecords {
            claim: of.claim.clone(),
            started: of.started.clone(),
            held: of.held.clone(),
            end: of.end.clone(),
            stop: None,
        };
        let attempts = self
            .status
            .attempts
            .iter()
            .map(|report| (report.attempt, records(report)))
            .collect();
        Records {
            attempts,
            cancelled: self.is_cancelled(),
        }
        .due(policy)
    }

    /// Records a claim. Nothing of an attempt may run before this is written.
    pub(super) fn claim(&mut self, attempt: u32, claim: Claim) -> io::Result<()> {
        self.status.attempts.push(AttemptReport {
            attempt,
            claim: Some(claim),
            started: None,
            held: None,
            end: None,
        });
        self.write(ESSENTIAL_WRITE_TIMEOUT)
    }

    pub(super) fn started(&mut self, attempt: u32) {
        let at = towline_host::clock::now();
        self.change(attempt, |report| report.started = Some(Started { at }));
    }

    pub(super) fn held(&mut self, attempt: u32, held: Held) {
        self.change(attempt, |report| report.held = Some(held));
    }

    /// Records the end. The first record counts.
    pub(super) fn end(&mut self, attempt: u32, ending: Ending) -> io::Result<()> {
        let end = End {
            at: towline_host::clock::now(),
            ending,
        };
        match self
            .status
            .attempts
            .iter_mut()
            .find(|report| report.attempt == attempt)
        {
            Some(report) => _ = report.end.get_or_insert(end),
            None => self.status.attempts.push(AttemptReport {
                attempt,
                claim: None,
                started: None,
                held: None,
                end: Some(end),
            }),
        }
        self.write(ESSENTIAL_WRITE_TIMEOUT)
    }

    /// Ends the attempt that has begun and not ended. If a rank had failed and only the nodes were
    /// held, that failure is the ending.
    pub(super) fn end_open_attempt(&mut self, ending: &Ending) -> io::Result<()> {
        let open = self
            .status
            .attempts
            .iter()
            .filter(|report| report.claim.is_some() && report.end.is_none());
        let open: Vec<(u32, Ending)> = open
            .map(|report| {
                (
                    report.attempt,
                    report
                        .held
                        .as_ref()
                        .map_or_else(|| ending.clone(), |held| held.ending.clone()),
                )
            })
            .collect();
        open.into_iter()
            .try_for_each(|(attempt, ending)| self.end(attempt, ending))
    }

    /// Called when this start of the job is not the first. Any attempt that an earlier start had
    /// open ended with it. If an attempt lost nodes, the cluster had taken them away, because it
    /// has now given it others: that is a preemption, unless the user has a retry rule for lost
    /// nodes.
    pub(super) fn restart(&mut self, policy: Option<&RetryPolicy>) -> io::Result<()> {
        self.end_open_attempt(&Ending::cause(Cause::Preempted).detail("the cluster restarted it"))?;
        if self.is_cancelled()
            || policy.is_some_and(|policy| policy.when.contains(&Cause::NodeFailed))
        {
            return Ok(());
        }
        let last = self
            .status
            .attempts
            .last_mut()
            .filter(|last| last.claim.is_some())
            .and_then(|last| last.end.as_mut());
        let Some(end) = last.filter(|end| end.ending.cause == Some(Cause::NodeFailed)) else {
            return Ok(());
        };
        let why = end.ending.detail.take().unwrap_or_default();
        end.ending =
            Ending::cause(Cause::Preempted).detail(format!("the cluster restarted it: {why}"));
        self.write(ESSENTIAL_WRITE_TIMEOUT)
    }

    /// Writes a copy beside the logs when the run is over.
    pub(super) fn conclude(&mut self) {
        if let Err(error) = self
            .encode()
            .and_then(|bytes| write_whole(&self.last, &bytes, ESSENTIAL_WRITE_TIMEOUT))
        {
            complain(&format!("the last status could not be written: {error}"));
        }
    }

    /// Writes a change that is useful but not essential.
    fn change(&mut self, attempt: u32, change: impl FnOnce(&mut AttemptReport)) {
        if let Some(report) = self
            .status
            .attempts
            .iter_mut()
            .find(|report| report.attempt == attempt)
        {
            change(report);
        }
        if let Err(error) = self.write(OPTIONAL_WRITE_TIMEOUT) {
            complain(&error.to_string());
        }
    }

    fn write(&mut self, timeout: Duration) -> io::Result<()> {
        self.status.written = towline_host::clock::now();
        let bytes = self.encode()?;
        write_whole(&self.draft, &bytes, timeout)
            .and_then(|()| write_whole(&self.place, &bytes, timeout))
            .map_err(|error| {
                io::Error::new(
                    error.kind(),
                    format!("the status could not be written: {error}"),
                )
            })
    }

    fn encode(&self) -> io::Result<Vec<u8>> {
        serde_json::to_vec(&self.status).map_err(io::Error::other)
    }
}

/// The newest document that can be read. It is an error if none can, because without one the run
/// would begin anew.
fn newest<const COUNT: usize>(
    found: [io::Result<Option<StatusDocument>>; COUNT],
) -> io::Result<Option<StatusDocument>> {
    let mut newest: Option<StatusDocument> = None;
    let mut problem = None;
    for one in found {
        match one {
            Ok(Some(status))
                if newest
                    .as_ref()
                    .is_none_or(|known| known.written < status.written) =>
            {
                newest = Some(status);
            }
            Ok(_) => {}
            Err(error) => problem = Some(error),
        }
    }
    match (newest, problem) {
        (None, Some(error)) => Err(error),
        (newest, _) => Ok(newest),
    }
}

/// A document that was cut off at its beginning counts as missing.
fn load(path: &Path) -> io::Result<Option<StatusDocument>> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    if bytes.is_empty() {
        return Ok(None);
    }
    let status: StatusDocument = serde_json::from_slice(&bytes)
        .map_err(|error| io::Error::other(format!("{} cannot be read: {error}", path.display())))?;
    if status.version > CREW_VERSION {
        return Err(io::Error::other(format!(
            "{} is of a newer version",
            path.display()
        )));
    }
    Ok(Some(status))
}

/// Writes a whole file in place, because the mount has no renames.
pub(super) fn write_whole(path: &Path, bytes: &[u8], timeout: Duration) -> io::Result<()> {
    let begun = Instant::now();
    let mut pause = WRITE_RETRY_PAUSES.0;
    loop {
        match write_once(path, bytes) {
            Err(error) if begun.elapsed() + pause > timeout => {
                return Err(io::Error::new(
                    error.kind(),
                    format!("{}: {error}", path.display()),
                ));
            }
            Err(_) => std::thread::park_timeout(pause),
            Ok(()) => return Ok(()),
        }
        pause = (pause * 3).min(WRITE_RETRY_PAUSES.1);
    }
}

fn write_once(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    sync(&file)
}

/// Syncs a file, because errors on close are not reported. Some mounts do not support it.
pub(super) fn sync(file: &File) -> io::Result<()> {
    match file.sync_all() {
        Err(error) if !matches!(error.raw_os_error(), Some(code) if can_do_without(code)) => {
            Err(error)
        }
        _ => Ok(()),
    }
}

fn can_do_without(code: i32) -> bool {
    use rustix::io::Errno;
    [Errno::INVAL, Errno::NOSYS, Errno::NOTSUP]
        .iter()
        .any(|errno| errno.raw_os_error() == code)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crew::Pace;
    use towline_core::RunId;
    use towline_core::cluster::JobStart;

    fn task(folder: &Path) -> CrewTask {
        let run = RunId::new("x", 1, 2);
        let (stage, status) = (folder.join("stage"), folder.join("news"));
        CrewTask {
            order: PathBuf::new(),
            run,
            folder: stage,
            status,
            store: None,
            at: Vec::new(),
            local: folder.to_owned(),
            pace: Pace::default(),
        }
    }

    fn claim(restarts: u32) -> Claim {
        Claim {
            by: JobStart {
                job: "j".into(),
                restarts,
            },
            at: towline_host::clock::now(),
            hosts: vec!["a".into()],
            port: 1,
        }
    }

    #[test]
    fn news_that_are_torn_anywhere_lose_no_attempt() {
        let folder = tempfile::tempdir().expect("a folder");
        let task = task(folder.path());
        let mut status_file = StatusFile::read(&task).expect("none yet");
        status_file.claim(1, claim(0)).expect("written");
        for path in [&status_file.place, &status_file.draft] {
            let whole = fs::read(path).expect("there");
            for length in [0, 1, whole.len() - 1] {
                fs::write(path, &whole[..length]).expect("torn");
                let read = StatusFile::read(&task).expect("the other is whole");
                assert_eq!(
                    (read.due(None), read.starts()),
                    (Due::Open(1), 1),
                    "{} torn at {length}",
                    path.display()
                );
            }
            fs::write(path, whole).expect("whole again");
        }
        fs::write(&status_file.place, b"{").expect("torn");
        fs::write(&status_file.draft, b"{").expect("torn");
        assert!(
            StatusFile::read(&task).is_err(),
            "nobody knows what was begun"
        );
    }

    #[test]
    fn nodes_that_were_lost_were_taken_away_if_the_cluster_starts_it_anew() {
        let folder = tempfile::tempdir().expect("a folder");
        let task = task(folder.path());
        let mut status_file = StatusFile::read(&task).expect("none yet");
        status_file.claim(1, claim(0)).expect("written");
        status_file
            .end(
                1,
                Ending::cause(Cause::NodeFailed).detail("node 1 was lost"),
            )
            .expect("written");
        assert!(matches!(status_file.due(None), Due::Nothing(_)));
        let mut later = StatusFile::read(&task).expect("there");
        later.restart(None).expect("written");
        assert_eq!(later.due(None), Due::Begin(2));
        // An attempt that failed by itself is not repeated.
        later.claim(2, claim(1)).expect("written");
        later
            .end(2, Ending::cause(Cause::ExitCode))
            .expect("written");
        later.restart(None).expect("nothing to write");
        assert_eq!(
            later.due(None),
            Due::Nothing(Ending::cause(Cause::ExitCode))
        );
    }

    #[test]
    fn a_failure_that_was_only_held_stays_the_ending() {
        let folder = tempfile::tempdir().expect("a folder");
        let task = task(folder.path());
        let mut status_file = StatusFile::read(&task).expect("none yet");
        status_file.claim(1, claim(0)).expect("written");
        let failed = Ending::cause(Cause::ExitCode);
        status_file.held(
            1,
            Held {
                at: towline_host::clock::now(),
                until: towline_host::clock::now(),
                ending: failed.clone(),
            },
        );
        let mut later = StatusFile::read(&task).expect("there");
        later
            .end_open_attempt(&Ending::cause(Cause::Preempted))
            .expect("written");
        assert_eq!(later.due(None), Due::Nothing(failed));
    }
}
