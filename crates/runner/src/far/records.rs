//! The records in a run's folder.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;
use towline_core::RunId;
use towline_core::cluster::{Claim, End, Held, Started};
use towline_core::job::RetryPolicy;
use towline_core::reason::{Cause, Ending};
use towline_core::retry::{Next, after};
use towline_wire::stage::{Order, Record, RunFolder, StageFolder, StopOrder};

/// The records of one attempt.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AttemptRecords {
    pub claim: Option<Claim>,
    pub started: Option<Started>,
    pub held: Option<Held>,
    pub end: Option<End>,
    pub stop: Option<StopOrder>,
}

/// All records of a run, by attempt. Attempt 0 is a run that ended before its first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Records {
    pub attempts: BTreeMap<u32, AttemptRecords>,
    pub cancelled: bool,
}

/// The next step for a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Due {
    /// It has ended.
    Nothing(Ending),
    /// This attempt has begun and has no end.
    Open(u32),
    /// This attempt comes next.
    Begin(u32),
}

impl Records {
    /// Reads them all. A run without a folder has none.
    pub fn read(folder: &RunFolder) -> io::Result<Self> {
        let mut records = Self::default();
        let entries = match fs::read_dir(folder.root()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(records),
            other => other?,
        };
        for entry in entries {
            let name = entry?.file_name();
            let Some(name) = name.to_str() else { continue };
            if name == "cancel" {
                records.cancelled = true;
            }
            let Some((number, word)) = name
                .strip_prefix("attempt-")
                .and_then(|rest| rest.split_once('.'))
            else {
                continue;
            };
            let Ok(attempt) = number.parse() else {
                continue;
            };
            let path = folder.root().join(name);
            let of = records.attempts.entry(attempt).or_default();
            match word {
                "claim" => of.claim = load(&path)?,
                "started" => of.started = load(&path)?,
                "held" => of.held = load(&path)?,
                "end" => of.end = load(&path)?,
                "stop" => of.stop = load(&path)?,
                _ => {}
            }
        }
        records
            .attempts
            .retain(|_, of| *of != AttemptRecords::default());
        Ok(records)
    }

    /// The next step, by the rule that all clusters share.
    pub fn due(&self, policy: Option<&RetryPolicy>) -> Due {
        let mut counted = 0;
        let mut last = 0;
        for (attempt, of) in &self.attempts {
            let Some(end) = &of.end else {
                if of.claim.is_some() {
                    return Due::Open(*attempt);
                }
                continue;
            };
            if *attempt == 0 {
                return Due::Nothing(end.ending.clone());
            }
            last = *attempt;
            counted += 1;
            match after(policy, &end.ending, counted, self.cancelled) {
                Next::End => return Due::Nothing(self.final_ending(&end.ending)),
                Next::Requeue { counted: true } => {}
                Next::Requeue { counted: false } => counted -= 1,
            }
        }
        if self.cancelled {
            Due::Nothing(Ending::cause(Cause::ByUser))
        } else {
            Due::Begin(last + 1)
        }
    }

    /// The ending of a cancelled run is the cancel, even if something else ended it first.
    fn final_ending(&self, ending: &Ending) -> Ending {
        if self.cancelled && ending.cause == Some(Cause::Preempted) {
            Ending::cause(Cause::ByUser)
        } else {
            ending.clone()
        }
    }
}

/// Removes the secrets of a submission once the last of its runs has ended.
pub fn drop_secrets(stage: &StageFolder, submission: &RunId) {
    let path = stage.secrets(submission);
    if !path.exists() {
        return;
    }
    let Ok(order) = order(stage, submission) else {
        return;
    };
    let policy = order.plan.resolved.retry.as_ref();
    let is_over = |run: &RunId| {
        Records::read(&stage.run(run)).is_ok_and(|found| {
            !found.attempts.is_empty() && matches!(found.due(policy), Due::Nothing(_))
        })
    };
    if order.plan.runs.iter().all(|run| is_over(&run.id)) {
        let _ = fs::remove_file(path);
    }
}

/// Reads a record. An incomplete file counts as missing.
fn load<T: DeserializeOwned>(path: &Path) -> io::Result<Option<T>> {
    match fs::read(path) {
        Ok(bytes) => Ok(serde_json::from_slice(&bytes).ok()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// How long to wait before writing a record again on a full disk.
const DISK_FULL_PAUSE: Duration = Duration::from_millis(500);

/// Makes a record, unless it exists.
pub fn make<T: Serialize>(
    folder: &RunFolder,
    attempt: u32,
    what: Record,
    record: &T,
) -> io::Result<bool> {
    create(&folder.record(attempt, what), record)
}

/// Makes a file of a run, unless it exists. On a full disk it waits for space, because an end that
/// is known must not be forgotten; our lease goes on meanwhile.
pub(super) fn create<T: Serialize>(path: &Path, record: &T) -> io::Result<bool> {
    let bytes = serde_json::to_vec(record).map_err(io::Error::other)?;
    loop {
        match towline_host::once::create(path, &bytes) {
            Err(error) if towline_host::filesystem::is_no_room(&error) => {
                std::thread::sleep(DISK_FULL_PAUSE);
            }
            other => return other,
        }
    }
}

/// The order of a submission.
pub fn order(stage: &StageFolder, submission: &RunId) -> io::Result<Order> {
    serde_json::from_slice(&fs::read(stage.plan(submission))?).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use towline_core::time::Moment;

    fn ended(cause: Option<Cause>) -> AttemptRecords {
        let ending = cause.map_or_else(Ending::success, Ending::cause);
        AttemptRecords {
            end: Some(End {
                at: Moment(1),
                ending,
            }),
            ..AttemptRecords::default()
        }
    }

    fn records(attempts: &[Option<Cause>]) -> Records {
        Records {
            attempts: (1..)
                .zip(attempts.iter().map(|cause| ended(*cause)))
                .collect(),
            cancelled: false,
        }
    }

    #[test]
    fn what_is_due_follows_from_the_records_alone() {
        let policy = RetryPolicy {
            when: vec![Cause::TimeLimit],
            max: Some(2),
        };
        assert_eq!(records(&[]).due(None), Due::Begin(1));
        assert_eq!(records(&[None]).due(None), Due::Nothing(Ending::success()));
        assert_eq!(
            records(&[Some(Cause::Preempted), Some(Cause::Preempted)]).due(None),
            Due::Begin(3)
        );
        assert_eq!(
            records(&[Some(Cause::TimeLimit)]).due(Some(&policy)),
            Due::Begin(2)
        );
        let limit = Some(Cause::TimeLimit);
        assert_eq!(
            records(&[limit, Some(Cause::Preempted), limit]).due(Some(&policy)),
            Due::Nothing(Ending::cause(Cause::TimeLimit)),
            "two starts count"
        );
        let mut cancelled = records(&[Some(Cause::Preempted)]);
        cancelled.cancelled = true;
        assert_eq!(
            cancelled.due(None),
            Due::Nothing(Ending::cause(Cause::ByUser))
        );
        assert_eq!(
            Records {
                cancelled: true,
                ..Records::default()
            }
            .due(None),
            Due::Nothing(Ending::cause(Cause::ByUser))
        );
    }
}
