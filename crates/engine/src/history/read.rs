//! Reading: lists, records, attempts, events.

use super::{History, RunKey};
use rusqlite::{OptionalExtension, Row, params};
use towline_core::counts::PhaseCounts;
use towline_core::event::{Recorded, RunEvent};
use towline_core::plan::Plan;
use towline_core::record::{AttemptRecord, Freshness, RunRecord};
use towline_core::state::{Phase, RunState};
use towline_core::time::Moment;
use towline_core::{Error, Result, RunId};

/// A run that is no part of a sweep has the id of its submission, so the submission, whose row is
/// large, need not be read.
pub(super) const RUN_COLUMNS: &str = "runs.sequence, runs.id, name, experiment, cluster, tier, tags, parameters, command, gpus, \
        nodes, world, state, runs.created, started, ended, resubmits, runs.id <> submission, \
        submission";

/// Which runs to list. Empty fields mean all.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    pub phases: Vec<Phase>,
    pub cluster: Option<String>,
    pub experiment: Option<String>,
    pub tag: Option<String>,
    pub submission: Option<RunId>,
    pub run: Option<RunId>,
    pub limit: Option<usize>,
}

/// A submission as stored.
#[derive(Debug, Clone)]
pub struct Submission {
    pub plan: Plan,
    pub is_sweep: bool,
    pub created: Moment,
}

/// The part of a run's record that the daemon needs to continue it.
#[derive(Debug, Clone)]
pub struct ActiveRun {
    pub key: RunKey,
    pub id: RunId,
    pub submission: RunId,
    pub parameters: towline_core::sweep::Parameters,
    pub state: RunState,
    pub created: Moment,
    pub started: Option<Moment>,
}

impl History {
    /// Whether the history has a run of that id.
    pub fn knows(&self, run: &RunId) -> Result<bool> {
        let found = self
            .connection
            .prepare_cached("SELECT 1 FROM runs WHERE id=?1")
            .and_then(|mut query| query.exists([run.as_str()]));
        found.map_err(|error| self.failed(&error))
    }

    /// How many runs of a run or a sweep are in which phase.
    pub fn phases_of(&self, id: &RunId) -> Result<PhaseCounts> {
        let words: Vec<(String, i64)> = self.query(|connection| {
            connection
                .prepare_cached(
                    "SELECT phase, count(*) FROM runs WHERE submission=?1 OR id=?1 GROUP BY phase",
                )?
                .query_map([id.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))?
                .collect()
        })?;
        let mut counts = PhaseCounts::default();
        for (word, runs) in words {
            if let Some(phase) = Phase::from_word(&word) {
                counts.add(phase, runs.unsigned_abs());
            }
        }
        Ok(counts)
    }

    /// How many runs each snapshot has, by its id.
    pub fn runs_by_snapshot(&self) -> Result<std::collections::HashMap<String, usize>> {
        let collect = || {
            self.connection
                .prepare(
                    "SELECT json_extract(submissions.plan, '$.resolved.code.snapshot') AS \
                        snapshot, count(*) FROM runs
                     JOIN submissions ON submissions.id = runs.submission WHERE snapshot IS NOT \
                         NULL GROUP BY snapshot",
                )?
                .query_map([], |row| {
                    Ok((
                        row.get(0)?,
                        usize::try_from(row.get::<_, i64>(1)?).unwrap_or(0),
                    ))
                })?
                .collect::<rusqlite::Result<_>>()
        };
        collect().map_err(|error| self.failed(&error))
    }

    pub(super) fn query<T>(
        &self,
        run: impl FnOnce(&rusqlite::Connection) -> rusqlite::Result<T>,
    ) -> Result<T> {
        run(&self.connection).map_err(|error| self.failed(&error))
    }

    /// Runs, newest first.
    pub fn list(&self, filter: &Filter) -> Result<Vec<RunRecord>> {
        let (clause, values) = filter.clause();
        let limit = filter
            .limit
            .map_or(-1, |limit| i64::try_from(limit).unwrap_or(i64::MAX));
        let sql = format!(
            "SELECT {RUN_COLUMNS} FROM runs {clause} ORDER BY runs.sequence DESC LIMIT {limit}"
        );
        self.query(|connection| {
            let mut statement = connection.prepare(&sql)?;
            let rows = statement.query_map(rusqlite::params_from_iter(values), |row| {
                self.readable(row, record)
            })?;
            rows.filter_map(Result::transpose).collect()
        })
    }

    /// The number of runs that fit `filter`, without its limit.
    pub fn count(&self, filter: &Filter) -> Result<u64> {
        let (clause, values) = filter.clause();
        let count: i64 = self.query(|connection| {
            connection.query_row(
                &format!("SELECT count(*) FROM runs {clause}"),
                rusqlite::params_from_iter(values),
                |row| row.get(0),
            )
        })?;
        Ok(u64::try_from(count).unwrap_or(0))
    }

    pub fn run(&self, id: &RunId) -> Result<Option<RunRecord>> {
        let sql = format!("SELECT {RUN_COLUMNS} FROM runs WHERE runs.id=?1");
        self.query(|connection| connection.query_row(&sql, [id.as_str()], record).optional())
    }

    /// The runs of a submission in their order.
    pub fn runs_of(&self, submission: &RunId) -> Result<Vec<RunRecord>> {
        let sql =
            format!("SELECT {RUN_COLUMNS} FROM runs WHERE submission=?1 ORDER BY runs.sequence");
        self.query(|connection| {
            let mut statement = connection.prepare(&sql)?;
            let rows =
                statement.query_map([submission.as_str()], |row| self.readable(row, record))?;
            rows.filter_map(Result::transpose).collect()
        })
    }

    pub fn attempts(&self, key: RunKey) -> Result<Vec<AttemptRecord>> {
        self.query(|connection| {
            connection
                .prepare(
                    "SELECT attempt, runner, started, ended, ending FROM attempts WHERE \
                    run=?1 ORDER BY attempt",
                )?
                .query_map([key], |row| {
                    Ok(AttemptRecord {
                        attempt: row.get(0)?,
                        runner: row.get(1)?,
                        started: row.get::<_, Option<i64>>(2)?.map(Moment),
                        ended: row.get::<_, Option<i64>>(3)?.map(Moment),
                        ending: json(row, 4)?,
                    })
                })?
                .collect()
        })
    }

    /// The submission with its whole plan, the environment put back.
    pub fn submission(&self, id: &RunId) -> Result<Option<Submission>> {
        let found = self.query(|connection| {
            connection
                .query_row(
                    "SELECT plan, is_sweep, created, body FROM submissions JOIN environments ON \
                        environments.id = environment WHERE submissions.id=?1",
                    [id.as_str()],
                    |row| {
                        Ok((
                            row.get::<_, String>(0)?,
                            row.get(1)?,
                            row.get(2)?,
                            row.get::<_, String>(3)?,
                        ))
                    },
                )
                .optional()
        })?;
        let Some((plan, is_sweep, created, environment)) = found else {
            return Ok(None);
        };
        let unreadable =
            |error| Error::bug(format!("the plan of {id} cannot be read")).source_error(error);
        let mut plan: Plan = serde_json::from_str(&plan).map_err(unreadable)?;
        plan.resolved.inherited = serde_json::from_str(&environment).map_err(unreadable)?;
        Ok(Some(Submission {
            plan,
            is_sweep,
            created: Moment(created),
        }))
    }

    /// The submission that a run belongs to.
    pub fn submission_of(&self, run: &RunId) -> Result<Option<Submission>> {
        match self.submission_id_of(run)? {
            Some(id) => self.submission(&id),
            None => Ok(None),
        }
    }

    /// The submission's id alone. Many runs of a sweep share it, so its plan need be read only
    /// once.
    pub fn submission_id_of(&self, run: &RunId) -> Result<Option<RunId>> {
        let id: Option<String> = self.query(|connection| {
            connection
                .prepare_cached("SELECT submission FROM runs WHERE id=?1")?
                .query_row([run.as_str()], |row| row.get(0))
                .optional()
        })?;
        Ok(id.and_then(|id| RunId::try_from(id).ok()))
    }

    /// Whether a run has not ended.
    pub fn has_active(&self) -> Result<bool> {
        let active: Vec<Phase> = Phase::ALL
            .into_iter()
            .filter(|phase| !phase.is_ended())
            .collect();
        let sql = format!(
            "SELECT EXISTS (SELECT 1 FROM runs WHERE {})",
            in_phases(&active)
        );
        self.query(|connection| {
            connection
                .prepare_cached(&sql)?
                .query_row([], |row| row.get(0))
        })
    }

    /// All runs that have not ended, oldest first.
    pub fn active(&self) -> Result<Vec<ActiveRun>> {
        self.query(|connection| {
            connection
                .prepare(
                    "SELECT sequence, id, submission, parameters, state, created, started FROM runs
                     WHERE phase IN ('drafted', 'staging', 'submitting', 'queued', 'running') \
                         ORDER BY sequence",
                )?
                .query_map([], |row| self.readable_active(row))?
                .filter_map(Result::transpose)
                .collect()
        })
    }

    /// Events of one run in their order.
    pub fn events(&self, run: &RunId) -> Result<Vec<Recorded>> {
        self.query(|connection| {
            connection
                .prepare_cached(
                    "SELECT events.sequence, runs.id, at, body FROM events JOIN runs ON \
                        runs.sequence = events.run WHERE runs.id=?1 ORDER BY events.sequence",
                )?
                .query_map([run.as_str()], |row| event(row, run.clone()))?
                .filter_map(Result::transpose)
                .collect()
        })
    }

    /// Submissions, newest first.
    pub fn submissions(&self, limit: usize) -> Result<Vec<(RunId, Moment)>> {
        self.query(|connection| {
            connection
                .prepare(
                    "SELECT id, created FROM submissions ORDER BY created DESC, id DESC LIMIT ?1",
                )?
                .query_map(params![i64::try_from(limit).unwrap_or(i64::MAX)], |row| {
                    Ok((id(row, 0)?, Moment(row.get(1)?)))
                })?
                .collect()
        })
    }
}

impl Filter {
    fn clause(&self) -> (String, Vec<String>) {
        let (terms, values) = self.terms();
        let clause = if terms.is_empty() {
            String::new()
        } else {
            format!("WHERE {}", terms.join(" AND "))
        };
        (clause, values)
    }

    /// The conditions of a query, and the values of its parameters, which are numbered from 1.
    pub(super) fn terms(&self) -> (Vec<String>, Vec<String>) {
        let mut terms = Vec::new();
        let mut values = Vec::new();
        if !self.phases.is_empty() {
            terms.push(in_phases(&self.phases));
        }
        let mut equals = |term: &str, value: &Option<String>| {
            if let Some(value) = value {
                values.push(value.clone());
                terms.push(term.replace('?', &format!("?{}", values.len())));
            }
        };
        equals("cluster = ?", &self.cluster);
        equals("experiment = ?", &self.experiment);
        equals(
            "EXISTS (SELECT 1 FROM json_each(tags) WHERE value = ?)",
            &self.tag,
        );
        equals("runs.id = ?", &self.run.as_ref().map(ToString::to_string));
        equals(
            "submission = ?",
            &self.submission.as_ref().map(ToString::to_string),
        );
        (terms, values)
    }
}

/// The condition that a run is in one of these phases.
pub(super) fn in_phases(phases: &[Phase]) -> String {
    let words: Vec<_> = phases
        .iter()
        .map(|phase| format!("'{}'", phase.word()))
        .collect();
    format!("phase IN ({})", words.join(", "))
}

/// An event from its number, a column that is not looked at, its moment and its body.
pub(super) fn event(row: &Row<'_>, run: RunId) -> rusqlite::Result<Option<Recorded>> {
    let event: Option<RunEvent> = json(row, 3)?;
    Ok(event.map(|event| Recorded {
        sequence: row.get(0).unwrap_or(0),
        run,
        at: Moment(row.get(2).unwrap_or(0)),
        event,
    }))
}

pub(super) fn id(row: &Row<'_>, column: usize) -> rusqlite::Result<RunId> {
    let text: String = row.get(column)?;
    RunId::try_from(text).map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(
            column,
            rusqlite::types::Type::Text,
            Box::new(error),
        )
    })
}

fn json<T: serde::de::DeserializeOwned>(
    row: &Row<'_>,
    column: usize,
) -> rusqlite::Result<Option<T>> {
    let text: Option<String> = row.get(column)?;
    text.map(|text| {
        serde_json::from_str(&text).map_err(|error| {
            rusqlite::Error::FromSqlConversionFailure(
                column,
                rusqlite::types::Type::Text,
                Box::new(error),
            )
        })
    })
    .transpose()
}

pub(super) fn active_run(row: &Row<'_>) -> rusqlite::Result<ActiveRun> {
    Ok(ActiveRun {
        key: row.get(0)?,
        id: id(row, 1)?,
        submission: id(row, 2)?,
        parameters: json(row, 3)?.unwrap_or_default(),
        state: json(row, 4)?.unwrap_or_default(),
        created: Moment(row.get(5)?),
        started: row.get::<_, Option<i64>>(6)?.map(Moment),
    })
}

pub(super) fn record(row: &Row<'_>) -> rusqlite::Result<RunRecord> {
    let is_sweep: bool = row.get(17)?;
    Ok(RunRecord {
        sequence: row.get(0)?,
        id: id(row, 1)?,
        name: row.get(2)?,
        experiment: row.get(3)?,
        cluster: row.get(4)?,
        tier: row.get(5)?,
        tags: json(row, 6)?.unwrap_or_default(),
        parameters: json(row, 7)?.unwrap_or_default(),
        command: row.get(8)?,
        gpus: row.get(9)?,
        nodes: row.get(10)?,
        world: row.get(11)?,
        state: json(row, 12)?.unwrap_or_default(),
        created: Moment(row.get(13)?),
        started: row.get::<_, Option<i64>>(14)?.map(Moment),
        ended: row.get::<_, Option<i64>>(15)?.map(Moment),
        resubmits: row
            .get::<_, Option<String>>(16)?
            .and_then(|text| RunId::try_from(text).ok()),
        sweep: if is_sweep { Some(id(row, 18)?) } else { None },
        freshness: Freshness::Fresh,
    })
}
