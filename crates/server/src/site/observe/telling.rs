//! Answers about the scheduler and the stage folder beyond the observed runs.

use super::super::Site;
use super::super::failed;
use super::Queue;
use super::rows_of;
use std::collections::HashSet;
use towline_core::Result;
use towline_core::RunId;
use towline_core::cluster::Explanation;
use towline_core::cluster::KnownJob;
use towline_core::cluster::RunRef;
use towline_runner::far::records;
use towline_slurm::parse::ids::Part;
use towline_slurm::parse::queue::QueueRow;
use towline_slurm::parse::queue::Which;
use towline_slurm::reasons::Outlook;
use towline_slurm::reasons::explain_with;
use towline_slurm::reasons::is_turn;
use towline_slurm::state;
impl Site {
    /// Why a run waits.
    pub(in super::super) fn explain(&self, far: &RunRef) -> Result<Explanation> {
        let queue = Queue {
            rows: self.rows_of_one(far)?,
            accounted: Vec::new(),
        };
        let plain = |text: &str| {
            Ok(Explanation {
                native: queue.native(far),
                text: text.into(),
                next: None,
                forever: false,
            })
        };
        let Some(row) = queue.row(far) else {
            return plain("Slurm has no job of it now");
        };
        match state::native(&row.state) {
            state::Native::Running => {
                return plain("Slurm has given it nodes, and it has not told of itself yet");
            }
            state::Native::Ended(_) => {
                return plain("its job has ended there, and what follows is not settled yet");
            }
            state::Native::Waiting | state::Native::Unknown(_) => {}
        }
        let native = queue.native(far);
        let reason = row.reason.clone().unwrap_or_default();
        // This query lists all waiting jobs, so it is sent only if it helps.
        let waiting = is_turn(&reason)
            .then(|| self.slurm.priorities(&row.partition).ok())
            .flatten();
        let count = |rows: usize| u32::try_from(rows).unwrap_or(u32::MAX);
        let outlook = Outlook {
            now: towline_host::clock::now(),
            job: native.as_ref().map(|native| native.id.as_str()),
            start: row.start,
            ahead: waiting.as_ref().map(|waiting| {
                count(
                    waiting
                        .iter()
                        .filter(|other| **other > row.priority)
                        .count(),
                )
            }),
            waiting: waiting.as_ref().map(|waiting| count(waiting.len())),
        };
        let found = explain_with(&reason, &outlook);
        Ok(Explanation {
            text: found.text,
            next: found.next,
            forever: found.forever,
            native,
        })
    }

    /// Everything in the scheduler's queue, and every run in this stage folder.
    pub(in super::super) fn known(&self) -> Result<Vec<KnownJob>> {
        let rows = self.slurm.queue(&Which::default())?;
        let mut known = Vec::new();
        for row in &rows {
            let submission = RunId::try_from(row.name.clone())
                .ok()
                .filter(|id| row.user == self.user && self.stage.plan(id).exists());
            let run = submission.map(|id| match row.id.part {
                Part::Task(task) => id.numbered(task),
                _ => id,
            });
            known.push(KnownJob {
                ended: state::native(&row.state).is_ended(),
                run,
                job: Some(row.id.to_string()),
                name: row.name.clone(),
                user: row.user.clone(),
                state: state::native(&row.state).word().map(ToOwned::to_owned),
                word: Some(row.state.clone()),
                reason: row.reason.clone(),
                nodes: row.node_count,
                created: None,
            });
        }
        let listed: HashSet<&str> = rows.iter().map(|row| row.name.as_str()).collect();
        let folder = self.stage.submissions();
        for entry in std::fs::read_dir(&folder)
            .map_err(|error| failed(&folder, error))?
            .flatten()
        {
            let Some(submission) = entry
                .file_name()
                .into_string()
                .ok()
                .and_then(|name| RunId::try_from(name).ok())
            else {
                continue;
            };
            if listed.contains(submission.as_str()) {
                continue;
            }
            let Ok(order) = records::order(&self.stage, &submission) else {
                continue;
            };
            let jobs = self.jobs(&submission)?;
            for run in &order.plan.runs {
                let far = RunRef::of(&run.id);
                known.push(KnownJob {
                    ended: jobs.is_refused() || self.is_over(&far)?,
                    job: jobs
                        .accepted(far.task)
                        .next()
                        .map(|(_, job)| job.to_owned()),
                    run: Some(run.id.clone()),
                    name: run.name.clone(),
                    user: self.user.clone(),
                    state: None,
                    word: None,
                    reason: None,
                    nodes: order.plan.resolved.shape.nodes,
                    created: run.id.made(),
                });
            }
        }
        Ok(known)
    }

    /// The rows of one run: by the number of its job, if that is still the one that waits.
    pub(super) fn rows_of_one(&self, far: &RunRef) -> Result<Vec<QueueRow>> {
        let jobs = self.jobs(&far.submission)?;
        let number = jobs.accepted(far.task).next().map(|(_, job)| job);
        let asked = number
            .and_then(|_| {
                self.slurm
                    .queue(&Which {
                        job: number,
                        ..Which::default()
                    })
                    .ok()
            })
            .unwrap_or_default();
        let is_it = |row: &QueueRow| {
            row.user == self.user && state::native(&row.state) == state::Native::Waiting
        };
        if rows_of(&asked, far).any(is_it) {
            Ok(asked)
        } else {
            self.queue_of([&far.submission])
        }
    }
}
