//! Lists of any length, a window at a time. First the keys of all rows are found, which is quick
//! and small; then the rows of a window are read by their keys.

use super::History;
use super::read::{RUN_COLUMNS, in_phases, record};
use rusqlite::{Row, params_from_iter};
use std::collections::HashMap;
use towline_core::counts::PhaseCounts;
use towline_core::record::RunRecord;
use towline_core::state::Phase;
use towline_core::time::Moment;
use towline_core::{Result, RunId};
use towline_wire::api::runs::{Sort, SortKey};

/// Which runs to list. What is empty fits all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PageFilter {
    pub phases: Vec<Phase>,
    pub clusters: Vec<String>,
    pub experiments: Vec<String>,
    /// All of these.
    pub tags: Vec<String>,
    /// Each of them is somewhere in the id, name, command, experiment or tags.
    pub words: Vec<String>,
    pub sweep: Option<RunId>,
}

/// The keys of a list.
#[derive(Debug, Clone, Default)]
pub struct Page {
    pub keys: Vec<PageKey>,
    /// How many runs fit, by phase.
    pub counts: PhaseCounts,
}

/// The key of one row of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PageKey {
    /// The number of a run.
    Run(i64),
    /// Several runs of this sweep fit.
    Sweep(RunId),
}

/// One row of a list.
#[derive(Debug, Clone)]
pub enum PageRow {
    Run(Box<RunRecord>),
    Sweep(Box<PageSweep>),
}

/// The runs of a sweep that fit.
#[derive(Debug, Clone)]
pub struct PageSweep {
    pub id: RunId,
    pub counts: PhaseCounts,
    /// The earliest start of a latest attempt.
    pub started: Option<Moment>,
    /// The latest end.
    pub ended: Option<Moment>,
    pub first: RunRecord,
}

impl History {
    /// The keys of all rows that fit, in order. With `fold`, a sweep is one row, at the place of the
    /// first of its runs in that order. `now` tells how long running runs take.
    pub fn page(&self, filter: &PageFilter, sort: Sort, fold: bool, now: Moment) -> Result<Page> {
        let (clause, values) = filter.clause();
        let sql = format!(
            "SELECT sequence, CASE WHEN id <> submission THEN submission END, phase FROM runs \
                {clause} ORDER BY {}, sequence DESC",
            order(sort, now)
        );
        let mut found = Found::default();
        self.query(|connection| {
            let mut statement = connection.prepare(&sql)?;
            let mut rows = statement.query(params_from_iter(&values))?;
            while let Some(row) = rows.next()? {
                found.add(row, fold)?;
            }
            Ok(())
        })?;
        Ok(found.page())
    }

    /// The rows of those keys. A run that is not there any more, or cannot be read, is left out.
    pub fn page_rows(&self, filter: &PageFilter, keys: &[PageKey]) -> Result<Vec<PageRow>> {
        let whole = self.connection.unchecked_transaction();
        let _whole = whole.map_err(|error| self.failed(&error))?;
        let mut rows = Vec::with_capacity(keys.len());
        for key in keys {
            match key {
                PageKey::Run(sequence) => {
                    let run = self.run_at(*sequence)?;
                    rows.extend(run.map(|run| PageRow::Run(Box::new(run))));
                }
                PageKey::Sweep(sweep) => {
                    let sweep = self.page_sweep(filter, sweep)?;
                    rows.extend(sweep.map(|sweep| PageRow::Sweep(Box::new(sweep))));
                }
            }
        }
        Ok(rows)
    }

    fn run_at(&self, sequence: i64) -> Result<Option<RunRecord>> {
        let sql = format!("SELECT {RUN_COLUMNS} FROM runs WHERE runs.sequence=?1");
        self.query(|connection| {
            let mut statement = connection.prepare_cached(&sql)?;
            let mut rows = statement.query([sequence])?;
            match rows.next()? {
                Some(row) => self.readable(row, record),
                None => Ok(None),
            }
        })
    }

    fn page_sweep(&self, filter: &PageFilter, sweep: &RunId) -> Result<Option<PageSweep>> {
        let filter = PageFilter {
            sweep: Some(sweep.clone()),
            ..filter.clone()
        };
        let (clause, values) = filter.clause();
        let sql = format!(
            "SELECT phase, count(*), min(started), max(ended), min(sequence) FROM runs {clause} \
                GROUP BY phase"
        );
        let mut counts = PhaseCounts::default();
        let (mut started, mut ended, mut first) = (None, None, None);
        self.query(|connection| {
            let mut statement = connection.prepare_cached(&sql)?;
            let mut rows = statement.query(params_from_iter(&values))?;
            while let Some(row) = rows.next()? {
                if let Some(phase) = Phase::from_word(&row.get::<_, String>(0)?) {
                    counts.add(phase, row.get::<_, u32>(1)?.into());
                }
                let begun: Option<i64> = row.get(2)?;
                started = [started, begun].into_iter().flatten().min();
                ended = ended.max(row.get::<_, Option<i64>>(3)?);
                let number: i64 = row.get(4)?;
                first = Some(first.map_or(number, |first: i64| first.min(number)));
            }
            Ok(())
        })?;
        let Some(first) = first.map(|first| self.run_at(first)).transpose()?.flatten() else {
            return Ok(None);
        };
        Ok(Some(PageSweep {
            id: sweep.clone(),
            counts,
            started: started.map(Moment),
            ended: ended.map(Moment),
            first,
        }))
    }

    /// The values of a column of all runs, those of the latest runs first.
    pub fn words_of(&self, column: WordColumn) -> Result<Vec<String>> {
        let sql = match column {
            WordColumn::Cluster => {
                "SELECT cluster FROM runs GROUP BY cluster ORDER BY max(sequence) DESC LIMIT 200"
            }
            WordColumn::Experiment => {
                "SELECT experiment FROM runs WHERE experiment IS NOT NULL GROUP BY experiment \
                    ORDER BY max(sequence) DESC LIMIT 200"
            }
            WordColumn::Tag => {
                "SELECT value FROM runs, json_each(tags) WHERE tags <> '[]' GROUP BY value \
                    ORDER BY max(sequence) DESC LIMIT 200"
            }
        };
        self.query(|connection| {
            let mut statement = connection.prepare_cached(sql)?;
            let words = statement.query_map([], |row| row.get(0))?;
            words.collect()
        })
    }
}

/// A column whose values a list can be filtered by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WordColumn {
    Cluster,
    Experiment,
    Tag,
}

/// Keys as they are found.
#[derive(Default)]
struct Found {
    keys: Vec<i64>,
    counts: PhaseCounts,
    /// For each sweep, the place of its first run among the keys and the number of its runs.
    sweeps: HashMap<String, (usize, u32)>,
}

impl Found {
    fn add(&mut self, row: &Row<'_>, fold: bool) -> rusqlite::Result<()> {
        let phase = row.get_ref(2)?.as_str().ok().and_then(Phase::from_word);
        if let Some(phase) = phase {
            self.counts.add(phase, 1);
        }
        if let (true, Some(sweep)) = (fold, row.get_ref(1)?.as_str_or_null()?) {
            if let Some((_, runs)) = self.sweeps.get_mut(sweep) {
                *runs += 1;
                return Ok(());
            }
            self.sweeps.insert(sweep.to_owned(), (self.keys.len(), 1));
        }
        self.keys.push(row.get(0)?);
        Ok(())
    }

    /// A sweep of which one run fits is that run.
    fn page(self) -> Page {
        let mut keys: Vec<PageKey> = self.keys.into_iter().map(PageKey::Run).collect();
        for (sweep, (place, runs)) in self.sweeps {
            if let (true, Ok(sweep)) = (runs > 1, RunId::try_from(sweep)) {
                keys[place] = PageKey::Sweep(sweep);
            }
        }
        Page {
            keys,
            counts: self.counts,
        }
    }
}

impl PageFilter {
    /// The condition, and the values of its parameters in their order.
    fn clause(&self) -> (String, Vec<String>) {
        let mut terms = Vec::new();
        let mut values: Vec<String> = Vec::new();
        if !self.phases.is_empty() {
            terms.push(in_phases(&self.phases));
        }
        for (column, wanted) in [
            ("cluster", &self.clusters),
            ("experiment", &self.experiments),
        ] {
            if !wanted.is_empty() {
                let places = vec!["?"; wanted.len()].join(", ");
                terms.push(format!("{column} IN ({places})"));
                values.extend(wanted.iter().cloned());
            }
        }
        for tag in &self.tags {
            terms.push("EXISTS (SELECT 1 FROM json_each(tags) WHERE value = ?)".to_owned());
            values.push(tag.clone());
        }
        for word in &self.words {
            terms.push(
                "instr(lower(id || ' ' || name || ' ' || command || ' ' || \
                    ifnull(experiment, '') || ' ' || tags), ?) > 0"
                    .to_owned(),
            );
            values.push(word.to_ascii_lowercase());
        }
        if let Some(sweep) = &self.sweep {
            terms.push("submission = ?".to_owned());
            values.push(sweep.to_string());
        }
        if terms.is_empty() {
            (String::new(), values)
        } else {
            (format!("WHERE {}", terms.join(" AND ")), values)
        }
    }
}

/// The order, as SQL. Runs without the value come last.
fn order(sort: Sort, now: Moment) -> String {
    let took;
    let key = match sort.by {
        SortKey::Created => "sequence",
        SortKey::Started => "started",
        SortKey::Ended => "ended",
        SortKey::Took => {
            took = format!("ifnull(ended, {}) - started", now.0);
            &took
        }
        SortKey::Name => "lower(name)",
        SortKey::State => "phase",
        SortKey::Cluster => "cluster",
        SortKey::Experiment => "experiment",
        SortKey::Gpus => "gpus",
    };
    let direction = if sort.ascending { "ASC" } else { "DESC" };
    format!("{key} {direction} NULLS LAST")
}
