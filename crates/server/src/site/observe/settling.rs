//! Settles runs that their records do not settle: the scheduler is asked, and its answer must last
//! for a while.

use super::super::Site;
use super::super::failed;
use super::super::settle::Act;
use super::super::settle::SILENT;
use super::super::settle::Signs;
use super::super::settle::Truth;
use super::super::settle::settle;
use super::super::submit::Jobs;
use super::BELIEVED_AFTER;
use super::Left;
use super::Memory;
use super::Queue;
use std::path::PathBuf;
use std::time::Duration;
use std::time::Instant;
use towline_core::ErrorKind;
use towline_core::Result;
use towline_core::Retry;
use towline_core::RunId;
use towline_core::cluster::End;
use towline_core::cluster::RunRef;
use towline_core::obstacle::Obstacle;
use towline_core::reason::Cause;
use towline_core::reason::Ending;
use towline_runner::far::is_lapsed;
use towline_runner::far::records;
use towline_runner::far::records::Due;
use towline_runner::far::records::Records;
use towline_slurm::script::output_name;
use towline_wire::stage::Holder;
use towline_wire::stage::Record;
use towline_wire::stage::StopOrder;

/// The facts about a run that must stay the same for a while before they are believed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SeenFacts {
    /// A run with a record of its submission. `lapsed` says that no process of it can be alive.
    Recorded {
        due: Due,
        truth: Truth,
        lapsed: bool,
    },
    /// A run without one.
    Unrecorded { cancelled: bool },
}

impl Memory {
    /// Since when a run has been seen with these facts.
    fn seen_since(&mut self, run: &RunId, seen: SeenFacts, now: Instant) -> Instant {
        match self.since.get(run) {
            Some((known, since)) if *known == seen => *since,
            _ => {
                self.since.insert(run.clone(), (seen, now));
                now
            }
        }
    }
}

/// Adds the hosts of an attempt that died without an end record, because the user has to look at
/// one of them.
pub(super) fn on_hosts(ending: Ending, records: &Records, attempt: u32) -> Ending {
    let hosts = records
        .attempts
        .get(&attempt)
        .and_then(|of| of.claim.as_ref())
        .map(|claim| claim.hosts.join(", "))
        .unwrap_or_default();
    match ending.detail.as_deref() {
        Some(SILENT) if !hosts.is_empty() => ending.detail(format!("{SILENT} on {hosts}")),
        _ => ending,
    }
}

impl Site {
    pub(super) fn settle_one(&mut self, far: &RunRef, queue: &Queue) -> Result<Left> {
        let jobs = self.jobs(&far.submission)?;
        let folder = self.stage.run(&far.run);
        let records = Records::read(&folder).map_err(|error| failed(folder.root(), error))?;
        if jobs.times(far.task) == 0 {
            return self.settle_unrecorded(far, &records, queue);
        }
        let due = records.due(self.policy(far).as_ref());
        let truth = queue.truth(far);
        let lapsed = match &due {
            Due::Open(attempt) => self.is_dead(far, *attempt, &records)?,
            _ => true,
        };
        let seen = SeenFacts::Recorded {
            due: due.clone(),
            truth: truth.clone(),
            lapsed,
        };
        let rest = self.rest(&far.run, seen);
        let signs = Signs {
            lapsed,
            lasting: rest.is_zero(),
            unstarted: queue.row(far).is_some_and(|row| row.nodes.is_empty()),
        };
        match settle(&records, &due, &truth, signs) {
            Act::Nothing
                if settle(
                    &records,
                    &due,
                    &truth,
                    Signs {
                        lasting: true,
                        ..signs
                    },
                ) != Act::Nothing =>
            {
                Ok(Left::SettlesAfter(rest))
            }
            Act::Nothing => Ok(Left::Nothing),
            Act::SubmitAgain => {
                self.observed.since.remove(&far.run);
                Ok(Left::SubmitAgain)
            }
            Act::End { attempt, ending } => {
                let ending = on_hosts(self.with_last_words(far, &jobs, ending), &records, attempt);
                self.end(&far.run, attempt, &ending)?;
                if truth == Truth::Waiting && self.is_over(far)? {
                    // Slurm has requeued a job that nobody needs. If it starts all the same, it
                    // finds the end record and exits.
                    let _ = self.withdraw(std::slice::from_ref(far));
                }
                Ok(Left::Nothing)
            }
        }
    }

    /// How much longer the facts must stay the same before they are believed.
    pub(super) fn rest(&mut self, run: &RunId, seen: SeenFacts) -> Duration {
        let now = Instant::now();
        let since = self.observed.seen_since(run, seen, now);
        BELIEVED_AFTER.saturating_sub(now.saturating_duration_since(since))
    }

    /// Settles a run without any record of a submission. If it was submitted, somebody has removed
    /// the stage folder. Once no job of it is alive, it is cancelled if its user wished so, and
    /// lost if not.
    pub(super) fn settle_unrecorded(
        &mut self,
        far: &RunRef,
        records: &Records,
        queue: &Queue,
    ) -> Result<Left> {
        if far.native.is_none()
            || !records.attempts.is_empty()
            || !matches!(queue.truth(far), Truth::NeverHeard | Truth::Ended(_))
        {
            return Ok(Left::Nothing);
        }
        let seen = SeenFacts::Unrecorded {
            cancelled: records.cancelled,
        };
        let rest = self.rest(&far.run, seen);
        if !rest.is_zero() {
            return Ok(Left::SettlesAfter(rest));
        }
        if records.cancelled {
            self.end(&far.run, 0, &Ending::cause(Cause::ByUser))?;
        } else {
            self.observed.lost.insert(far.run.clone());
        }
        Ok(Left::Nothing)
    }

    pub(super) fn end(&self, run: &RunId, attempt: u32, ending: &Ending) -> Result<()> {
        let folder = self.stage.run(run);
        // A host that was asleep and wakes up finds the stop order before anything else.
        let stop = || match attempt {
            0 => Ok(false),
            _ => records::make(
                &folder,
                attempt,
                Record::Stop,
                &StopOrder {
                    ending: ending.clone(),
                    at_once: true,
                    by_scheduler: false,
                },
            ),
        };
        let made = std::fs::create_dir_all(folder.root())
            .and_then(|()| stop())
            .and_then(|_| {
                records::make(
                    &folder,
                    attempt,
                    Record::End,
                    &End {
                        at: towline_host::clock::now(),
                        ending: ending.clone(),
                    },
                )
            });
        made.map(|_| ())
            .map_err(|error| failed(folder.root(), error))
    }

    pub(super) fn is_dead(&self, far: &RunRef, attempt: u32, records: &Records) -> Result<bool> {
        let folder = self.stage.run(&far.run);
        let nodes = records
            .attempts
            .get(&attempt)
            .and_then(|of| of.claim.as_ref())
            .map_or(1, |claim| claim.hosts.len());
        let holders = (0..u32::try_from(nodes).unwrap_or(u32::MAX))
            .map(Holder::Node)
            .chain([Holder::Head]);
        let leases: Vec<PathBuf> = holders
            .map(|holder| folder.lease(attempt, holder))
            .collect();
        is_lapsed(&leases, &folder.record(attempt, Record::Claim))
            .map_err(|error| failed(folder.root(), error))
    }

    /// Adds the end of the job's own output, if it never wrote a record.
    pub(super) fn with_last_words(&self, far: &RunRef, jobs: &Jobs, ending: Ending) -> Ending {
        if ending.cause != Some(Cause::NotStarted) {
            return ending;
        }
        let Some((_, job)) = jobs.accepted(far.task).next() else {
            return ending;
        };
        let name = output_name(job, far.task);
        let path = self.stage.submission(&far.submission).join(name);
        let said = match std::fs::read(&path) {
            Ok(said) => said,
            // Slurm creates this file on the node before anything else happens.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let stage = self.stage.root().display();
                return Ending {
                    obstacle: Some(Obstacle::StageNotShared),
                    ..ending
                }
                .detail(format!(
                    "its job ended before anything of it began, and its output is not in {stage}, \
                        the `stage` of the cluster: its node does not share that folder"
                ));
            }
            Err(_) => return ending,
        };
        let said = String::from_utf8_lossy(&said[said.len().saturating_sub(4096)..]).into_owned();
        match said.lines().rev().find(|line| !line.trim().is_empty()) {
            Some(line) => Ending {
                obstacle: Obstacle::named_in(line),
                ..ending
            }
            .detail(format!(
                "its job ended before anything of it began: {}",
                line.trim()
            )),
            None => ending,
        }
    }

    /// Submits another job for these runs; runs that the scheduler will not take have ended.
    pub(super) fn carry_on(&self, submission: &RunId, tasks: &[Option<u32>]) -> Result<()> {
        let (over, why) = match self.submit_again(submission, tasks) {
            Ok(worn) => (
                worn,
                "the scheduler took it several times and lost it each time".to_owned(),
            ),
            Err(error)
                if error.kind() == ErrorKind::Unreachable
                    || error.retry_advice() == Retry::Later =>
            {
                return Err(error);
            }
            Err(error) => (
                tasks.to_vec(),
                format!("it was to go on in another job: {error}"),
            ),
        };
        for task in over {
            let run = task.map_or_else(|| submission.clone(), |task| submission.numbered(task));
            self.end(&run, 0, &Ending::cause(Cause::Rejected).detail(why.clone()))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_that_change_are_waited_for_anew() {
        let run = RunId::new("x", 1_763_189_280, 7);
        let recorded = |truth: Truth, lapsed| SeenFacts::Recorded {
            due: Due::Begin(1),
            truth,
            lapsed,
        };
        let ended = |cause| Truth::Ended(Ending::cause(cause));
        let mut memory = Memory::default();
        let start = Instant::now();
        let mut now = start;
        for seen in [
            recorded(ended(Cause::ExitCode), true),
            recorded(ended(Cause::Signal), true),
            recorded(ended(Cause::Signal), false),
            SeenFacts::Unrecorded { cancelled: false },
            SeenFacts::Unrecorded { cancelled: true },
        ] {
            now += Duration::from_secs(1);
            assert_eq!(memory.seen_since(&run, seen.clone(), now), now, "{seen:?}");
            let later = now + Duration::from_millis(500);
            assert_eq!(memory.seen_since(&run, seen, later), now);
        }
    }
}
