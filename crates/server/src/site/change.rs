//! Changes of jobs that wait: hold, release, another limit or another place.

use super::Site;
use towline_core::cluster::RunRef;
use towline_core::{Error, Result, RunId};
use towline_slurm::parse::ids::Part;
use towline_slurm::parse::queue::QueueRow;
use towline_slurm::state;
use towline_wire::daemon::Refusal;
use towline_wire::site::JobChange;

impl Site {
    /// Changes the jobs of these runs. Returns those that Slurm refuses to change.
    pub(super) fn change(
        &self,
        runs: &[RunRef],
        change: &JobChange,
    ) -> Result<Vec<(RunId, Refusal)>> {
        // By name, because a controller that forgot a job gives its id to another.
        let rows = self.queue_of(runs.iter().map(|far| &far.submission))?;
        let mut refused = Vec::new();
        let mut whole: Vec<u32> = Vec::new();
        for far in runs {
            let answer = match waiting(&rows, far) {
                Ok(row) if has_all(row, runs) => {
                    // One command for all tasks of an array that wait.
                    if whole.contains(&row.id.job) {
                        continue;
                    }
                    whole.push(row.id.job);
                    self.slurm.change(&row.id.job.to_string(), change)
                }
                Ok(row) => {
                    let job = far.task.map_or_else(
                        || row.id.job.to_string(),
                        |task| format!("{}_{task}", row.id.job),
                    );
                    self.slurm.change(&job, change)
                }
                Err(error) => Err(error),
            };
            match answer {
                Err(error) if error.kind() == towline_core::ErrorKind::Unreachable => {
                    return Err(error);
                }
                Err(error) => refused.push((far.run.clone(), Refusal::from(&error))),
                Ok(()) => {}
            }
        }
        Ok(refused)
    }
}

/// The job of a run that waits.
fn waiting<'r>(rows: &'r [QueueRow], far: &RunRef) -> Result<&'r QueueRow> {
    let mut open =
        super::observe::rows_of(rows, far).filter(|row| !state::native(&row.state).is_ended());
    let Some(row) = open.next() else {
        return Err(Error::conflict(format!(
            "{} has no job that waits",
            far.run
        )));
    };
    match state::native(&row.state) {
        state::Native::Waiting => Ok(row),
        _ => Err(Error::conflict(format!("{} runs already", far.run))),
    }
}

/// Whether a row of the queue is the rest of an array, all of which is to be changed.
fn has_all(row: &QueueRow, runs: &[RunRef]) -> bool {
    let Part::Tasks(tasks) = &row.id.part else {
        return false;
    };
    let asked = |task: u32| {
        runs.iter()
            .any(|far| far.task == Some(task) && far.submission.as_str() == row.name)
    };
    tasks.numbers().all(asked)
}
