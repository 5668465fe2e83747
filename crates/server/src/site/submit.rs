//! Submits to the scheduler, once. The intent is on disk before the scheduler is asked. If an
//! answer was lost, the next process looks for the job by its name, which is the run's id, before
//! it submits again.

use super::{Site, failed};
use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::time::{Duration, Instant};
use towline_core::cluster::RunRef;
use towline_core::time::Moment;
use towline_core::{Error, ErrorKind, Result, RunId};
use towline_host::crash;
use towline_runner::far::records::Records;
use towline_slurm::state;
use towline_wire::stage::{JobRecord, ORDER_VERSION, Sent};

/// How often a submission is sent that the scheduler accepted and forgot.
const MAX_SUBMITS: usize = 5;
/// Longer than the scheduler may take to answer: no living process holds a lock for so long.
const LOCK_TIMEOUT: Duration = Duration::from_secs(300);

/// The requests to the scheduler so far, and their outcomes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Jobs(pub(super) Vec<JobRecord>);

fn covers(tasks: &[u32], task: Option<u32>) -> bool {
    tasks.is_empty() || task.is_none_or(|task| tasks.contains(&task))
}

impl Jobs {
    /// The numbers of the requests for a task, or for all.
    fn asked(&self, task: Option<u32>) -> impl Iterator<Item = u32> {
        self.0.iter().filter_map(move |record| match record {
            JobRecord::Intent { number, tasks, .. } if covers(tasks, task) => Some(*number),
            _ => None,
        })
    }

    /// The accepted jobs for a task that may still run, newest first.
    pub(super) fn accepted(&self, task: Option<u32>) -> impl Iterator<Item = (u32, &str)> {
        let asked: Vec<u32> = self.asked(task).collect();
        let is_gone = move |wanted: u32| {
            self.0.iter().any(|record| matches!(record, JobRecord::Gone { number, tasks } if *number == wanted && covers(tasks, task)))
        };
        self.0.iter().rev().filter_map(move |record| match record {
            JobRecord::Accepted { number, job } if asked.contains(number) && !is_gone(*number) => {
                Some((*number, job.as_str()))
            }
            _ => None,
        })
    }

    /// The scheduler refused it, and has no job of it.
    pub(super) fn is_refused(&self) -> bool {
        matches!(self.0.last(), Some(JobRecord::Refused { .. }))
    }

    pub(super) fn times(&self, task: Option<u32>) -> usize {
        self.asked(task).count()
    }

    /// The request whose outcome was never recorded.
    pub(super) fn open_intent(&self) -> Option<(u32, Moment)> {
        match self.0.last() {
            Some(JobRecord::Intent { number, at, .. }) => Some((*number, *at)),
            _ => None,
        }
    }
}

impl Site {
    pub(super) fn submit(&self, sent: Sent) -> Result<String> {
        let Sent { order, secrets } = sent;
        if order.version != ORDER_VERSION {
            return Err(Error::bug("the order is of another version of tow"));
        }
        let id = order.plan.id.clone();
        let folder = self.stage.submission(&id);
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&folder)
            .map_err(|error| failed(&folder, error))?;
        let _lock = self.lock(&id)?;
        let jobs = self.jobs(&id)?;
        if let Some((_, job)) = jobs.accepted(None).next() {
            return Ok(job.to_owned());
        }
        let keep = |path: std::path::PathBuf, bytes: &[u8]| {
            towline_host::once::replace(&path, bytes).map_err(|error| failed(&path, error))
        };
        if !secrets.0.is_empty() {
            keep(self.stage.secrets(&id), &secrets.0.to_private_bytes())?;
        }
        keep(self.stage.script(&id), order.plan.request.text.as_bytes())?;
        keep(
            self.stage.plan(&id),
            &serde_json::to_vec(&order)
                .map_err(|error| Error::bug("an order cannot be written").source_error(error))?,
        )?;
        crash::pass("site.order.kept");
        if let Some(snapshot) = order
            .plan
            .resolved
            .code
            .as_ref()
            .and_then(|code| code.snapshot.as_deref())
        {
            super::content::check_whole(&self.stage, snapshot)?;
        }
        self.keep_program()?;
        self.hand_over(&id, &jobs, &[])
    }

    /// Submits another job for runs that have none any more; `tasks` of its array. Returns those
    /// that were tried too often.
    pub(super) fn submit_again(
        &self,
        id: &RunId,
        tasks: &[Option<u32>],
    ) -> Result<Vec<Option<u32>>> {
        let _lock = self.lock(id)?;
        let jobs = self.jobs(id)?;
        // A request that led to an attempt does not count as failed.
        let begun = |task: Option<u32>| {
            let run = task.map_or_else(|| id.clone(), |task| id.numbered(task));
            Records::read(&self.stage.run(&run)).map_or(0, |records| {
                records
                    .attempts
                    .values()
                    .filter(|of| of.claim.is_some())
                    .count()
            })
        };
        let (worn, fresh): (Vec<_>, Vec<_>) = tasks
            .iter()
            .partition(|task| jobs.times(**task) >= MAX_SUBMITS + begun(**task));
        let numbers: Vec<u32> = fresh.iter().copied().flatten().collect();
        if !fresh.is_empty() {
            let gone: BTreeSet<u32> = fresh
                .iter()
                .flat_map(|task| {
                    jobs.accepted(*task)
                        .map(|(number, _)| number)
                        .collect::<Vec<_>>()
                })
                .collect();
            for number in gone {
                self.note(
                    id,
                    &JobRecord::Gone {
                        number,
                        tasks: numbers.clone(),
                    },
                )?;
            }
            self.hand_over(id, &self.jobs(id)?, &numbers)?;
        }
        Ok(worn)
    }

    fn hand_over(&self, id: &RunId, jobs: &Jobs, tasks: &[u32]) -> Result<String> {
        if let Some((number, at)) = jobs.open_intent()
            && let Some(job) = self.find_by_name(id, Some(at.seconds()))?
        {
            self.note(
                id,
                &JobRecord::Accepted {
                    number,
                    job: job.clone(),
                },
            )?;
            return Ok(job);
        }
        let path = self.stage.script(id);
        let script = fs::read_to_string(&path).map_err(|error| failed(&path, error))?;
        let number = u32::try_from(jobs.times(None)).unwrap_or(u32::MAX) + 1;
        let at = towline_host::clock::now();
        self.note(
            id,
            &JobRecord::Intent {
                number,
                at,
                tasks: tasks.to_vec(),
            },
        )?;
        crash::pass("site.submit.intent");
        let answer = self.slurm.submit(&script, tasks);
        crash::pass("site.submit.asked");
        let job = match answer {
            Ok(accepted) => accepted.job.to_string(),
            Err(error) if error.kind() == ErrorKind::Unreachable => {
                match self.find_by_name(id, Some(at.seconds()))? {
                    Some(job) => job,
                    None => return Err(error),
                }
            }
            Err(error) => {
                self.note(
                    id,
                    &JobRecord::Refused {
                        number,
                        why: error.to_string(),
                    },
                )?;
                if !jobs
                    .0
                    .iter()
                    .any(|record| matches!(record, JobRecord::Accepted { .. }))
                {
                    // No run of it will ever start.
                    let _ = fs::remove_file(self.stage.secrets(id));
                }
                return Err(error);
            }
        };
        // The job is accepted even if that cannot be recorded: a process that finds the intent
        // alone looks for the job by name.
        let _ = self.note(
            id,
            &JobRecord::Accepted {
                number,
                job: job.clone(),
            },
        );
        crash::pass("site.submit.noted");
        Ok(job)
    }

    /// The job of a submission, from the queue or the database.
    pub(super) fn find_by_name(&self, id: &RunId, since: Option<i64>) -> Result<Option<String>> {
        let rows = self.queue_of([id])?;
        if let Some(row) = rows
            .iter()
            .filter(|row| row.name == id.as_str())
            .max_by_key(|row| row.id.job)
        {
            return Ok(Some(row.id.job.to_string()));
        }
        if !self.settings()?.has_accounting {
            return Ok(None);
        }
        // The clocks of hosts differ.
        let since = since.map(|seconds| seconds - 3600);
        let rows = self
            .slurm
            .accounting(self.settings()?.version, Some(&self.user), &[], since)?;
        Ok(rows
            .iter()
            .filter(|row| row.name == id.as_str())
            .map(|row| row.id.job)
            .max()
            .map(|job| job.to_string()))
    }

    /// The lock that is held during a submission. On a file system without locks only the claims
    /// prevent a double start, and they suffice. The same holds if the holder of the lock hangs.
    fn lock(&self, id: &RunId) -> Result<Option<File>> {
        let path = self.stage.submission_lock(id);
        let file = OpenOptions::new()
            .create(true)
            .write(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(|error| failed(&path, error))?;
        let begun = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Some(file)),
                Err(TryLockError::WouldBlock) if begun.elapsed() < LOCK_TIMEOUT => {
                    std::thread::sleep(Duration::from_millis(20));
                }
                Err(TryLockError::WouldBlock | TryLockError::Error(_)) => return Ok(None),
            }
        }
    }

    pub(super) fn jobs(&self, id: &RunId) -> Result<Jobs> {
        let path = self.stage.jobs(id);
        match fs::read(&path) {
            Ok(bytes) => Ok(Jobs(
                bytes
                    .split(|byte| *byte == b'\n')
                    .filter_map(|line| serde_json::from_slice(line).ok())
                    .collect(),
            )),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Jobs::default()),
            Err(error) => Err(failed(&path, error)),
        }
    }

    fn note(&self, id: &RunId, record: &JobRecord) -> Result<()> {
        let path = self.stage.jobs(id);
        let mut line = vec![b'\n'];
        line.extend(
            serde_json::to_vec(record)
                .map_err(|error| Error::bug("a record cannot be written").source_error(error))?,
        );
        line.push(b'\n');
        let mut file = OpenOptions::new()
            .create(true)
            .append(true)
            .mode(0o600)
            .open(&path)
            .map_err(|error| failed(&path, error))?;
        file.write_all(&line)
            .and_then(|()| file.sync_data())
            .map_err(|error| failed(&path, error))
    }

    /// Writes the cancel into the run's folder before the scheduler is told: a job that starts too
    /// late finds it there.
    pub(super) fn cancel(&self, runs: &[RunRef]) -> Result<()> {
        for far in runs {
            let folder = self.stage.run(&far.run);
            let made = fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(folder.root());
            made.and_then(|()| towline_host::once::create(&folder.cancel(), b""))
                .map_err(|error| failed(folder.root(), error))?;
        }
        crash::pass("site.cancel.noted");
        self.withdraw(runs)
    }

    /// Cancels the jobs of these runs that the scheduler still has.
    pub(super) fn withdraw(&self, runs: &[RunRef]) -> Result<()> {
        let mut jobs: Vec<String> = Vec::new();
        // By name, not by the recorded ids, because a controller that forgot a job gives its id to
        // another.
        let rows = self.queue_of(runs.iter().map(|far| &far.submission))?;
        for far in runs {
            let open = super::observe::rows_of(&rows, far)
                .filter(|row| !state::native(&row.state).is_ended());
            jobs.extend(open.map(|row| {
                far.task.map_or_else(
                    || row.id.job.to_string(),
                    |task| format!("{}_{task}", row.id.job),
                )
            }));
        }
        jobs.sort_unstable();
        jobs.dedup();
        if jobs.is_empty() {
            Ok(())
        } else {
            self.slurm.cancel(&jobs)
        }
    }

    /// Deletes the files of ended runs, and of their submission with its last run.
    pub(super) fn forget(&self, runs: &[RunRef]) -> Result<()> {
        for far in runs {
            let folder = self.stage.run(&far.run);
            towline_host::filesystem::remove_tree(folder.root())
                .map_err(|error| failed(folder.root(), error))?;
            let others = towline_runner::far::records::order(&self.stage, &far.submission)
                .map(|order| order.plan.runs)
                .unwrap_or_default();
            if others
                .iter()
                .all(|run| !self.stage.run(&run.id).root().exists())
            {
                let folder = self.stage.submission(&far.submission);
                towline_host::filesystem::remove_tree(&folder)
                    .map_err(|error| failed(&folder, error))?;
            }
        }
        // Whatever cannot be removed now is removed another day.
        let _ = super::tidy::prune_snapshots(&self.stage);
        Ok(())
    }
}
