//! What the runs of agents take.

use super::History;
use rusqlite::{OptionalExtension, Row};
use std::collections::BTreeMap;
use towline_core::agents::{GpuTime, reserved};
use towline_core::plan::{Plan, PlannedRun};
use towline_core::sweep::Parameters;
use towline_core::time::Moment;
use towline_core::{Result, RunId};

/// A run of an agent, as it counts.
struct Counted {
    gpus: u64,
    has_ended: bool,
    /// The time of its attempts that are over.
    seconds: u64,
}

impl History {
    /// The agent that submitted a run; `None` if the user did.
    pub fn agent_of(&self, run: &RunId) -> Result<Option<String>> {
        let agent: Option<Option<String>> = self.query(|connection| {
            connection
                .prepare(
                    "SELECT json_extract(plan, '$.agent') FROM submissions JOIN runs ON \
                        submissions.id = submission WHERE runs.id=?1",
                )?
                .query_row([run.as_str()], |row| row.get(0))
                .optional()
        })?;
        Ok(agent.flatten())
    }

    /// What the runs that agents submitted since then took, and what those that have not ended
    /// could still take.
    pub fn taken_by_agents(&self, since: Moment) -> Result<GpuTime> {
        let plans: BTreeMap<String, String> = self.query(|connection| {
            connection
                .prepare(
                    "SELECT id, plan FROM submissions WHERE json_extract(plan, '$.agent') IS NOT \
                        NULL AND (created >= ?1 OR EXISTS (SELECT 1 FROM runs WHERE submission = \
                        submissions.id AND (ended IS NULL OR ended >= ?1)))",
                )?
                .query_map([since.0], |row| Ok((row.get(0)?, row.get(1)?)))?
                .collect()
        })?;
        let mut taken = GpuTime::default();
        for (submission, plan) in plans {
            let plan = with_one_run(&plan);
            // A plan that cannot be read has all there is.
            let reserved = plan.as_ref().and_then(|plan| reserved(plan).ok());
            let reserved = reserved.unwrap_or(GpuTime(u64::MAX));
            let gpus = plan.map_or(0, |plan| plan.gpus_taken());
            for run in self.counted(&submission)? {
                taken = taken.plus(GpuTime::of(run.gpus.max(gpus), run.seconds));
                if !run.has_ended {
                    taken = taken.plus(reserved);
                }
            }
        }
        Ok(taken)
    }

    fn counted(&self, submission: &str) -> Result<Vec<Counted>> {
        let read = |row: &Row<'_>| {
            let ended: Option<i64> = row.get(1)?;
            let milliseconds: i64 = row.get(2)?;
            Ok(Counted {
                gpus: row.get::<_, u32>(0)?.into(),
                has_ended: ended.is_some(),
                seconds: u64::try_from(milliseconds).unwrap_or(0).div_ceil(1000),
            })
        };
        self.query(|connection| {
            connection
                .prepare_cached(
                    "SELECT gpus, ended, (SELECT ifnull(sum(max(attempts.ended - \
                        attempts.started, 0)), 0) FROM attempts WHERE run = runs.sequence) FROM \
                        runs WHERE submission=?1",
                )?
                .query_map([submission], read)?
                .collect()
        })
    }
}

/// A stored plan, which has no runs, because each has a row of its own, as the plan of one.
fn with_one_run(text: &str) -> Option<Plan> {
    let mut plan: Plan = serde_json::from_str(text).ok()?;
    plan.runs = vec![PlannedRun {
        id: plan.id.clone(),
        name: String::new(),
        parameters: Parameters::default(),
    }];
    Some(plan)
}
