//! Lists in which a sweep is one entry. The work is in proportion to the entries, whatever the
//! number of runs: a sweep's runs are counted in an index and never read one by one.
//!
//! One transaction writes all runs of a submission. So a sweep's rows follow each other, with no
//! row of another submission between them, and differ only in name, values, command and state.

use super::History;
use super::read::{Filter, RUN_COLUMNS, in_phases, record};
use rusqlite::{ToSql, params_from_iter};
use towline_core::counts::PhaseCounts;
use towline_core::record::RunRecord;
use towline_core::state::Phase;
use towline_core::time::Moment;
use towline_core::{Result, RunId};

/// One entry of a list: a run, or several runs of one sweep.
#[derive(Debug, Clone)]
pub enum Entry {
    Run(Box<RunRecord>),
    Sweep(Box<SweepEntry>),
}

/// The runs of a sweep that fit a filter: at least two.
#[derive(Debug, Clone)]
pub struct SweepEntry {
    pub id: RunId,
    /// The first of them.
    pub first: RunRecord,
    pub counts: PhaseCounts,
    /// The earliest start of a latest attempt.
    pub started: Option<Moment>,
    /// The latest end of those that have ended.
    pub ended: Option<Moment>,
    /// Those that have a runner, whose journal may know more than the history. If none has one, one
    /// of those that wait; empty if all have ended.
    pub active: Vec<RunRecord>,
}

/// The rows of a sweep, first and last.
type Rows = (i64, i64);

impl History {
    /// Runs and sweeps, newest first, at most as many as the filter's limit. A sweep of which one
    /// run fits is that run.
    pub fn entries(&self, filter: &Filter) -> Result<Vec<Entry>> {
        // One transaction: a sweep is counted as it stands when its runs are found, and the file is
        // locked once.
        let whole = self.connection.unchecked_transaction();
        let _whole = whole.map_err(|error| self.failed(&error))?;
        let limit = filter.limit.unwrap_or(usize::MAX);
        let mut walks = Walk::all(filter);
        let mut entries = Vec::new();
        let mut below = i64::MAX;
        while entries.len() < limit {
            for walk in &mut walks {
                walk.go_below(self, below)?;
            }
            let newest = walks.iter_mut().max_by_key(|walk| walk.sequence());
            let Some(run) = newest.and_then(|walk| walk.head.take()) else {
                break;
            };
            below = run.sequence;
            let Some(sweep) = run.sweep.clone() else {
                entries.push(Entry::Run(Box::new(run)));
                continue;
            };
            let rows = self.rows_of(&sweep)?;
            below = rows.0;
            entries.push(self.sweep_entry(filter, sweep, rows, run)?);
        }
        Ok(entries)
    }

    fn rows_of(&self, sweep: &RunId) -> Result<Rows> {
        // Two questions, because SQLite seeks for one minimum and scans for two.
        self.query(|connection| {
            connection
                .prepare_cached(
                    "SELECT (SELECT min(sequence) FROM runs WHERE submission=?1), \
                        (SELECT max(sequence) FROM runs WHERE submission=?1)",
                )?
                .query_row([sweep.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))
        })
    }

    fn sweep_entry(
        &self,
        filter: &Filter,
        id: RunId,
        rows: Rows,
        newest: RunRecord,
    ) -> Result<Entry> {
        let counts = self.counts(filter, rows)?;
        if counts.total() <= 1 {
            return Ok(Entry::Run(Box::new(newest)));
        }
        let (started, ended) = self.times(filter, &id, rows)?;
        let first = self.first(filter, rows)?.unwrap_or(newest);
        let active = if counts.active() > 0 {
            self.active_of(filter, rows)?
        } else {
            Vec::new()
        };
        Ok(Entry::Sweep(Box::new(SweepEntry {
            id,
            first,
            counts,
            started,
            ended,
            active,
        })))
    }

    /// How many runs of a sweep are in which phase.
    fn counts(&self, filter: &Filter, rows: Rows) -> Result<PhaseCounts> {
        let phases = filter.shown_phases();
        let columns: Vec<String> = phases
            .iter()
            .map(|phase| {
                format!(
                    "(SELECT count(*) FROM runs WHERE phase='{}' AND sequence BETWEEN ?1 AND ?2)",
                    phase.word()
                )
            })
            .collect();
        self.query(|connection| {
            connection
                .prepare_cached(&format!("SELECT {}", columns.join(", ")))?
                .query_row(rows, |row| {
                    let mut counts = PhaseCounts::default();
                    for (column, phase) in phases.iter().enumerate() {
                        counts.add(*phase, row.get::<_, u32>(column)?.into());
                    }
                    Ok(counts)
                })
        })
    }

    /// The earliest start and the latest end.
    fn times(
        &self,
        filter: &Filter,
        sweep: &RunId,
        rows: Rows,
    ) -> Result<(Option<Moment>, Option<Moment>)> {
        let read = |row: &rusqlite::Row<'_>| {
            let (started, ended): (Option<i64>, Option<i64>) = (row.get(0)?, row.get(1)?);
            Ok((started.map(Moment), ended.map(Moment)))
        };
        self.query(|connection| {
            if filter.phases.is_empty() {
                return connection
                    .prepare_cached(
                        "SELECT (SELECT min(started) FROM runs WHERE submission=?1 AND \
                            id <> submission), (SELECT max(ended) FROM runs WHERE submission=?1 \
                            AND id <> submission)",
                    )?
                    .query_row([sweep.as_str()], read);
            }
            let sql = format!(
                "SELECT min(started), max(ended) FROM runs WHERE {} AND sequence BETWEEN ?1 AND ?2",
                in_phases(&filter.phases)
            );
            connection.prepare_cached(&sql)?.query_row(rows, read)
        })
    }

    /// The first run of a sweep that fits.
    fn first(&self, filter: &Filter, rows: Rows) -> Result<Option<RunRecord>> {
        let mut found = Vec::new();
        for walk in Walk::all(filter) {
            found.extend(walk.find(self, rows, Order::OldestFirst)?);
        }
        Ok(found.into_iter().min_by_key(|run| run.sequence))
    }

    /// See [`SweepEntry::active`].
    fn active_of(&self, filter: &Filter, rows: Rows) -> Result<Vec<RunRecord>> {
        let mut phases = filter.shown_phases();
        phases.retain(|phase| !phase.is_ended());
        // An attempt is written down with its runner. Most runs of a long queue have none yet, so
        // `+` keeps SQLite from beginning with the index of phases.
        let sql = format!(
            "SELECT {RUN_COLUMNS} FROM runs WHERE runs.sequence IN (SELECT run FROM attempts WHERE \
                run BETWEEN ?1 AND ?2 AND attempts.ended IS NULL) AND +{} ORDER BY runs.sequence",
            in_phases(&phases)
        );
        let with_runner: Vec<RunRecord> = self.query(|connection| {
            let mut statement = connection.prepare_cached(&sql)?;
            let found = statement.query_map(rows, |row| self.readable(row, record))?;
            found.filter_map(rusqlite::Result::transpose).collect()
        })?;
        if !with_runner.is_empty() {
            return Ok(with_runner);
        }
        let filter = Filter {
            phases,
            ..filter.clone()
        };
        Ok(self.first(&filter, rows)?.into_iter().collect())
    }
}

impl Filter {
    fn shown_phases(&self) -> Vec<Phase> {
        Phase::ALL
            .into_iter()
            .filter(|phase| self.phases.is_empty() || self.phases.contains(phase))
            .collect()
    }
}

/// A walk over the runs that fit. With phases there is a walk for each, because the index has the
/// rows of one phase in their order.
struct Walk {
    conditions: Vec<String>,
    values: Vec<String>,
    /// The run that was found and not yet taken.
    head: Option<RunRecord>,
    is_over: bool,
}

impl Walk {
    fn all(filter: &Filter) -> Vec<Self> {
        let of = |phases: Vec<Phase>| {
            let (conditions, values) = Filter {
                phases,
                ..filter.clone()
            }
            .terms();
            Self {
                conditions,
                values,
                head: None,
                is_over: false,
            }
        };
        if filter.phases.is_empty() {
            return vec![of(Vec::new())];
        }
        let phases = filter.shown_phases().into_iter();
        phases.map(|phase| of(vec![phase])).collect()
    }

    fn sequence(&self) -> Option<i64> {
        self.head.as_ref().map(|run| run.sequence)
    }

    /// Finds the newest run below that row, unless the last one found is.
    fn go_below(&mut self, history: &History, below: i64) -> Result<()> {
        if self.is_over || self.sequence().is_some_and(|at| at < below) {
            return Ok(());
        }
        self.head = self.find(history, (i64::MIN, below - 1), Order::NewestFirst)?;
        self.is_over = self.head.is_none();
        Ok(())
    }

    /// The first readable run within those rows.
    fn find(&self, history: &History, rows: Rows, order: Order) -> Result<Option<RunRecord>> {
        let from = self.values.len() + 1;
        let mut conditions = self.conditions.clone();
        conditions.push(format!("runs.sequence BETWEEN ?{from} AND ?{}", from + 1));
        let sql = format!(
            "SELECT {RUN_COLUMNS} FROM runs WHERE {} ORDER BY runs.sequence {}",
            conditions.join(" AND "),
            order.word()
        );
        let values = self.values.iter().map(|value| value as &dyn ToSql);
        let values = values.chain([&rows.0 as &dyn ToSql, &rows.1]);
        history.query(|connection| {
            let mut statement = connection.prepare_cached(&sql)?;
            let mut found = statement.query(params_from_iter(values))?;
            // Rows are read as they are asked for: usually one.
            while let Some(row) = found.next()? {
                if let Some(run) = history.readable(row, record)? {
                    return Ok(Some(run));
                }
            }
            Ok(None)
        })
    }
}

#[derive(Debug, Clone, Copy)]
enum Order {
    NewestFirst,
    OldestFirst,
}

impl Order {
    const fn word(self) -> &'static str {
        match self {
            Self::NewestFirst => "DESC",
            Self::OldestFirst => "ASC",
        }
    }
}
