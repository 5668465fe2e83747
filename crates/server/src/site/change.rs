//! Changes of jobs that wait: hold, release, another limit or another place.

use super::Site;
use towline_core::cluster::RunRef;
use towline_core::{Error, Result, RunId};
use towline_slurm::parse::queue::QueueRow;
use towline_slurm::parse::tasks;
use towline_slurm::state::{self, Native};
use towline_wire::daemon::Refusal;
use towline_wire::site::JobChange;

/// One job or several tasks of an array, and the runs that they are.
struct Waiting<'r> {
    job: u32,
    tasks: Vec<u32>,
    runs: Vec<&'r RunRef>,
}

impl Waiting<'_> {
    /// In Slurm's words. A task that runs already is never addressed: a command for the whole
    /// array would reach it too.
    fn address(&self) -> String {
        if self.tasks.is_empty() {
            return self.job.to_string();
        }
        format!("{}_[{}]", self.job, tasks::list(&self.tasks))
    }
}

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
        let mut all: Vec<Waiting<'_>> = Vec::new();
        for far in runs {
            let row = match waiting(&rows, far) {
                Ok(row) => row,
                Err(error) => {
                    refused.push((far.run.clone(), Refusal::from(&error)));
                    continue;
                }
            };
            // One command for all tasks of an array.
            let place = all.iter().position(|one| one.job == row.id.job);
            let place = place.unwrap_or_else(|| {
                all.push(Waiting {
                    job: row.id.job,
                    tasks: Vec::new(),
                    runs: Vec::new(),
                });
                all.len() - 1
            });
            all[place].tasks.extend(far.task);
            all[place].runs.push(far);
        }
        for one in &all {
            match self.slurm.change(&one.address(), change) {
                Err(error) if error.kind() == towline_core::ErrorKind::Unreachable => {
                    return Err(error);
                }
                Err(error) => refused.extend(
                    one.runs
                        .iter()
                        .map(|far| (far.run.clone(), Refusal::from(&error))),
                ),
                Ok(()) => {}
            }
        }
        if matches!(change, JobChange::Hold) {
            refused.extend(self.began_meanwhile(&all)?);
        }
        Ok(refused)
    }

    /// The runs that began before Slurm held them. A job that runs and is held would not begin
    /// again after a preemption, so it is released.
    fn began_meanwhile(&self, held: &[Waiting<'_>]) -> Result<Vec<(RunId, Refusal)>> {
        let runs = || held.iter().flat_map(|one| one.runs.iter().copied());
        if runs().next().is_none() {
            return Ok(Vec::new());
        }
        let rows = self.queue_of(runs().map(|far| &far.submission))?;
        let mut began = Vec::new();
        for far in runs() {
            let open = super::observe::rows_of(&rows, far);
            let mut open = open.filter(|row| !state::native(&row.state).is_ended());
            let Some(row) = open.find(|row| state::native(&row.state) == Native::Running) else {
                continue;
            };
            let job = far.task.map_or_else(
                || row.id.job.to_string(),
                |task| format!("{}_{task}", row.id.job),
            );
            self.slurm.change(&job, &JobChange::Release)?;
            began.push((far.run.clone(), Refusal::from(&runs_already(far))));
        }
        Ok(began)
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
        Native::Waiting => Ok(row),
        _ => Err(runs_already(far)),
    }
}

fn runs_already(far: &RunRef) -> Error {
    Error::conflict(format!("{} runs already", far.run))
}
