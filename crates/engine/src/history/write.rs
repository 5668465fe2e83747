//! Writing: everything goes through a batch, which is one transaction.

use super::History;
use super::schema::{NEXT_EVENT, NEXT_RUN};
use rusqlite::{Connection, OptionalExtension, params};
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use towline_core::change::Edit;
use towline_core::event::RunEvent;
use towline_core::job::Tier;
use towline_core::plan::{Plan, PlannedRun};
use towline_core::resolve::Shape;
use towline_core::state::RunState;
use towline_core::time::Moment;
use towline_core::{Result, RunId, template};

/// The key of a run inside the history: its row.
pub type RunKey = i64;

/// One transaction. Dropped without [`Batch::commit`], it has no effect.
#[derive(Debug)]
pub struct Batch<'h> {
    history: &'h History,
    done: bool,
}

impl History {
    /// Begins a transaction; with `durable`, its commit returns only when it is on disk.
    pub fn batch(&self, durable: bool) -> Result<Batch<'_>> {
        let level = if durable { "FULL" } else { "NORMAL" };
        self.connection
            .execute_batch(&format!("PRAGMA synchronous={level}; BEGIN IMMEDIATE"))
            .map_err(|error| self.failed(&error))?;
        Ok(Batch {
            history: self,
            done: false,
        })
    }
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        if !self.done {
            let _ = self.history.connection.execute_batch("ROLLBACK");
        }
    }
}

impl Batch<'_> {
    pub fn commit(mut self) -> Result<()> {
        self.done = true;
        self.history
            .connection
            .execute_batch("COMMIT")
            .map_err(|error| {
                let _ = self.history.connection.execute_batch("ROLLBACK");
                self.history.failed(&error)
            })
    }

    pub(super) fn connection(&self) -> &Connection {
        &self.history.connection
    }

    pub(super) fn error(&self, error: &rusqlite::Error) -> towline_core::Error {
        self.history.failed(error)
    }

    /// Writes a submission and its runs in `state`. `None` when it exists already: submitting twice
    /// has the effect of once.
    pub fn submit(&self, plan: &Plan, state: &RunState, at: Moment) -> Result<Option<Vec<RunKey>>> {
        self.try_submit(plan, state, at)
            .map_err(|error| self.error(&error))
    }

    fn try_submit(
        &self,
        plan: &Plan,
        state: &RunState,
        at: Moment,
    ) -> rusqlite::Result<Option<Vec<RunKey>>> {
        let known = self
            .connection()
            .prepare_cached("SELECT 1 FROM submissions WHERE id=?1")?
            .exists([plan.id.as_str()])?;
        if known {
            return Ok(None);
        }
        let environment = self.environment(
            &serde_json::to_string(&plan.resolved.inherited).expect("variables serialise"),
        )?;
        let is_sweep = plan.runs.len() != 1 || plan.runs[0].id != plan.id;
        self.connection()
            .prepare_cached(
                "INSERT INTO submissions (id, reversed, is_sweep, created, plan, \
                environment) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            )?
            .execute(params![
                plan.id.as_str(),
                reversed(&plan.id),
                is_sweep,
                at.0,
                serde_json::to_string(&plan.lean()).expect("a plan serialises"),
                environment
            ])?;
        // A run from elsewhere keeps its date; it is still the latest one here.
        let made = plan
            .adopted
            .as_ref()
            .and_then(|_| plan.made.or_else(|| plan.id.made()))
            .map_or(at, |made| made.min(at));
        plan.runs
            .iter()
            .map(|run| self.insert_run(plan, run, state, made))
            .collect::<rusqlite::Result<_>>()
            .map(Some)
    }

    /// The key of a submitter's environment. Equal environments are stored once.
    fn environment(&self, body: &str) -> rusqlite::Result<i64> {
        let mut hasher = DefaultHasher::new();
        body.hash(&mut hasher);
        let hash = hasher.finish().cast_signed();
        let known = self
            .connection()
            .prepare_cached("SELECT id FROM environments WHERE hash=?1 AND body=?2")?
            .query_row(params![hash, body], |row| row.get(0))
            .optional()?;
        if let Some(id) = known {
            return Ok(id);
        }
        self.connection()
            .prepare_cached("INSERT INTO environments (hash, body) VALUES (?1, ?2)")?
            .execute(params![hash, body])?;
        Ok(self.connection().last_insert_rowid())
    }

    fn insert_run(
        &self,
        plan: &Plan,
        run: &PlannedRun,
        state: &RunState,
        at: Moment,
    ) -> rusqlite::Result<RunKey> {
        let shape = &plan.resolved.shape;
        let value_of = |wanted: &str| {
            run.parameters
                .iter()
                .find(|(name, _)| name == wanted)
                .map(|(_, value)| value.as_str())
        };
        let command = template::fill(&plan.resolved.program.display(), value_of, &[])
            .unwrap_or_else(|_| plan.resolved.program.display());
        self.connection()
            .prepare_cached(&format!(
                "INSERT INTO runs (sequence, id, reversed, submission, name, experiment, cluster, \
                    tier, tags, parameters, command, gpus, nodes, world, phase, state, created, \
                    resubmits)
                 VALUES ({NEXT_RUN}, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, \
                     ?15, ?16, ?17)"
            ))?
            .execute(params![
                run.id.as_str(),
                reversed(&run.id),
                plan.id.as_str(),
                run.name,
                plan.job.experiment,
                plan.cluster,
                plan.resolved.tier.word(),
                serde_json::to_string(&plan.job.tags).expect("tags serialise"),
                serde_json::to_string(&run.parameters).expect("parameters serialise"),
                command,
                shape.total_gpus(),
                shape.nodes,
                shape.world(),
                state.phase.word(),
                serde_json::to_string(state).expect("a state serialises"),
                at.0,
                plan.resubmits.as_ref().map(RunId::as_str)
            ])?;
        Ok(self.connection().last_insert_rowid())
    }

    /// Writes an event and the state it led to; returns the event's place in the stream.
    pub fn event(
        &self,
        run: RunKey,
        event: &RunEvent,
        state: &RunState,
        at: Moment,
    ) -> Result<i64> {
        self.try_event(run, event, state, at)
            .map_err(|error| self.error(&error))
    }

    fn try_event(
        &self,
        run: RunKey,
        event: &RunEvent,
        state: &RunState,
        at: Moment,
    ) -> rusqlite::Result<i64> {
        let ended = state.phase.is_ended().then_some(at.0);
        let started = matches!(event, RunEvent::AttemptStarted { .. }).then_some(at.0);
        self.connection()
            .prepare_cached(
                "UPDATE runs SET phase=?2, state=?3, started=coalesce(?4, \
            started), ended=?5 WHERE sequence=?1",
            )?
            .execute(params![
                run,
                state.phase.word(),
                serde_json::to_string(state).expect("a state serialises"),
                started,
                ended
            ])?;
        self.write_attempt(run, event, at)?;
        if let RunEvent::Edited { edit } = event {
            self.write_edit(run, edit)?;
        }
        self.insert_event(run, event, at)
    }

    /// Adds an event; returns its place in the stream.
    pub(super) fn insert_event(
        &self,
        run: RunKey,
        event: &RunEvent,
        at: Moment,
    ) -> rusqlite::Result<i64> {
        let sql = format!(
            "INSERT INTO events (sequence, run, at, body) VALUES ({NEXT_EVENT}, ?1, ?2, ?3)"
        );
        let body = serde_json::to_string(event).expect("an event serialises");
        self.connection()
            .prepare_cached(&sql)?
            .execute(params![run, at.0, body])?;
        Ok(self.connection().last_insert_rowid())
    }

    /// Writes what an edit changes of the columns that lists show.
    fn write_edit(&self, run: RunKey, edit: &Edit) -> rusqlite::Result<()> {
        let shape = edit.shape.as_ref();
        self.connection()
            .prepare_cached(
                "UPDATE runs SET tier=coalesce(?2, tier), gpus=coalesce(?3, gpus), \
                    nodes=coalesce(?4, nodes), world=coalesce(?5, world) WHERE sequence=?1",
            )?
            .execute(params![
                run,
                edit.tier.map(Tier::word),
                shape.map(Shape::total_gpus),
                shape.map(|shape| shape.nodes),
                shape.map(Shape::world)
            ])?;
        Ok(())
    }

    fn write_attempt(&self, run: RunKey, event: &RunEvent, at: Moment) -> rusqlite::Result<()> {
        match event {
            RunEvent::AttemptIntent {
                attempt, runner, ..
            } => {
                let sql =
                    "INSERT OR REPLACE INTO attempts (run, attempt, runner) VALUES (?1, ?2, ?3)";
                self.connection()
                    .prepare_cached(sql)?
                    .execute(params![run, attempt, runner])?;
            }
            RunEvent::AttemptUnclaimed { attempt } => {
                self.connection()
                    .prepare_cached("DELETE FROM attempts WHERE run=?1 AND attempt=?2")?
                    .execute(params![run, attempt])?;
            }
            RunEvent::AttemptStarted { attempt } => {
                let sql = "UPDATE attempts SET started=?3 WHERE run=?1 AND attempt=?2";
                self.connection()
                    .prepare_cached(sql)?
                    .execute(params![run, attempt, at.0])?;
            }
            RunEvent::AttemptEnded {
                attempt, ending, ..
            }
            | RunEvent::Ended { attempt, ending }
                if *attempt > 0 =>
            {
                let sql = "UPDATE attempts SET ended=?3, ending=?4 WHERE run=?1 AND attempt=?2";
                let ending = serde_json::to_string(ending).expect("an ending serialises");
                self.connection()
                    .prepare_cached(sql)?
                    .execute(params![run, attempt, at.0, ending])?;
            }
            _ => {}
        }
        Ok(())
    }
}

/// Ids are searched by suffix, so an index holds them reversed.
pub(super) fn reversed(id: &RunId) -> String {
    id.as_str().chars().rev().collect()
}
