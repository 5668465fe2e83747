//! The answers of the scheduler about jobs: its queue, and its accounting for jobs that left the queue.

use super::super::settle::{Truth, believed};
use towline_core::cluster::RunRef;
use towline_core::state::Native;
use towline_slurm::parse::accounting::AccountingRow;
use towline_slurm::parse::hosts::expand;
use towline_slurm::parse::ids::{JobId, Part};
use towline_slurm::parse::queue::QueueRow;
use towline_slurm::state::{self, ExitPair};

/// The scheduler's answers, as far as it was asked.
pub(super) struct Queue {
    pub(super) rows: Vec<QueueRow>,
    pub(super) accounted: Vec<AccountingRow>,
}

/// The rows of a run: by the job's name, which is the submission's id.
pub(in crate::site) fn rows_of<'q, 'f>(
    rows: &'q [QueueRow],
    far: &'f RunRef,
) -> impl Iterator<Item = &'q QueueRow> + use<'q, 'f> {
    let task = |row: &QueueRow, task: u32| {
        row.id.covers(&JobId {
            job: row.id.job,
            part: Part::Task(task),
            step: None,
        })
    };
    rows.iter().filter(move |row| {
        row.name == far.submission.as_str() && far.task.is_none_or(|number| task(row, number))
    })
}

impl Queue {
    pub(super) fn row(&self, far: &RunRef) -> Option<&QueueRow> {
        // If a lost answer led to several jobs, the living one counts; else the last.
        let rank = |row: &&QueueRow| {
            let life = match state::native(&row.state) {
                state::Native::Running => 3,
                state::Native::Waiting => 2,
                state::Native::Unknown(_) => 1,
                state::Native::Ended(_) => 0,
            };
            (life, row.id.job)
        };
        let own = rows_of(&self.rows, far).max_by_key(rank);
        own.or_else(|| self.ended_array(far).max_by_key(rank))
    }

    /// An array that was cancelled while all its tasks, or the rest of them, waited: Slurm 22.05
    /// shows it as one ended job without tasks.
    fn ended_array<'q>(&'q self, far: &RunRef) -> impl Iterator<Item = &'q QueueRow> + use<'q> {
        let name = far.task.map(|_| far.submission.to_string());
        self.rows.iter().filter(move |row| {
            name.as_ref() == Some(&row.name)
                && row.id.part == Part::Whole
                && row.nodes.is_empty()
                && state::native(&row.state).is_ended()
        })
    }

    pub(super) fn native(&self, far: &RunRef) -> Option<Native> {
        let row = self.row(far)?;
        Some(Native {
            id: far.task.map_or_else(
                || row.id.job.to_string(),
                |task| format!("{}_{task}", row.id.job),
            ),
            word: row.state.clone(),
            reason: row.reason.clone().unwrap_or_default(),
            hosts: expand(&row.nodes).unwrap_or_default(),
            start: row
                .start
                .filter(|_| state::native(&row.state) == state::Native::Waiting),
            url: None,
        })
    }

    pub(super) fn truth(&self, far: &RunRef) -> Truth {
        let controller = self
            .row(far)
            .map(|row| read(&row.state, ExitPair::default(), row.reason.as_deref()));
        let mut mine: Vec<&AccountingRow> = self
            .accounted
            .iter()
            .filter(|row| row.name == far.submission.as_str() && row.id.step.is_none())
            .filter(|row| far.task.is_none_or(|task| row.id.part == Part::Task(task)))
            .collect();
        mine.sort_by_key(|row| (row.id.job, row.start, row.submitted));
        believed(
            controller,
            mine.last()
                .map(|row| read(&row.state, row.exit, row.reason.as_deref())),
        )
    }
}

fn read(word: &str, exit: ExitPair, reason: Option<&str>) -> Truth {
    match state::native(word) {
        state::Native::Waiting => Truth::Waiting,
        state::Native::Running => Truth::Running,
        state::Native::Unknown(_) => Truth::Unknown,
        state::Native::Ended(_) => {
            Truth::Ended(state::ending(word, exit, reason).unwrap_or_default())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use towline_core::RunId;
    use towline_core::reason::Cause;

    fn row(part: Part, word: &str, nodes: &str) -> QueueRow {
        QueueRow {
            job: 5,
            id: JobId {
                job: 5,
                part,
                step: None,
            },
            state: word.to_owned(),
            reason: None,
            start: None,
            time_limit: None,
            time_left: None,
            time_used: None,
            node_count: 1,
            nodes: nodes.to_owned(),
            partition: "dev".to_owned(),
            qos: None,
            account: None,
            user: "ann".to_owned(),
            priority: 1,
            comment: None,
            name: "train-1795035427-c5245ebe".to_owned(),
        }
    }

    fn truth(rows: Vec<QueueRow>, run: &str) -> Truth {
        let queue = Queue {
            rows,
            accounted: Vec::new(),
        };
        queue.truth(&RunRef::of(
            &RunId::try_from(run.to_owned()).expect("an id"),
        ))
    }

    #[test]
    fn a_cancelled_array_without_tasks_is_the_end_of_those_that_waited() {
        let sweep = "train-1795035427-c5245ebe";
        let task = |number: u32| format!("{sweep}-{number}");
        let gone = || row(Part::Whole, "CANCELLED", "");
        let by_user = |truth: &Truth| matches!(truth, Truth::Ended(ending) if ending.cause == Some(Cause::ByUser));
        let all = truth(vec![gone()], &task(2));
        assert!(by_user(&all), "{all:?}");
        // A task that began has a row of its own.
        let running = row(Part::Task(2), "RUNNING", "c1");
        assert_eq!(truth(vec![gone(), running], &task(2)), Truth::Running);
        let failed = row(Part::Task(2), "FAILED", "c1");
        let ended = truth(vec![failed, gone()], &task(2));
        assert!(!by_user(&ended), "{ended:?}");
        // Other jobs say nothing of it.
        for other in [
            row(Part::Whole, "RUNNING", "c1"),
            row(Part::Whole, "CANCELLED", "c1"),
            row(Part::Task(3), "CANCELLED", ""),
        ] {
            assert_eq!(truth(vec![other], &task(2)), Truth::NeverHeard);
        }
        assert!(by_user(&truth(vec![gone()], sweep)));
    }
}
