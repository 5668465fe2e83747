//! What has changed since a place in the history: new runs, events, removed runs. Numbers only grow
//! and are never given twice, so a place outlives every process that reads.

use super::History;
use super::read::{RUN_COLUMNS, event, id, record};
use rusqlite::{OptionalExtension, params};
use towline_core::event::Recorded;
use towline_core::record::RunRecord;
use towline_core::{Result, RunId};
use towline_wire::api::stream::Place;

/// What happened after a place.
#[derive(Debug, Clone, Default)]
pub struct Changes {
    /// The place behind all of it.
    pub place: Place,
    pub events: Vec<Recorded>,
    /// New runs, and the runs of the events, as they are now.
    pub runs: Vec<RunRecord>,
    pub removed: Vec<RunId>,
    /// There are more changes than were asked for.
    pub has_more: bool,
}

impl Changes {
    pub fn is_empty(&self) -> bool {
        self.events.is_empty() && self.runs.is_empty() && self.removed.is_empty()
    }
}

/// The id of a history that was written before histories had one.
const NAMELESS: &str = "0";

impl History {
    /// The place behind everything that has happened so far.
    pub fn place(&self) -> Result<Place> {
        if self.version()? < 2 {
            return self.nameless_place();
        }
        self.query(|connection| {
            connection
                .prepare_cached(
                    "SELECT (SELECT id FROM histories),
                        max(events, ifnull((SELECT max(sequence) FROM events), 0)),
                        max(runs, ifnull((SELECT max(sequence) FROM runs), 0)),
                        ifnull((SELECT max(sequence) FROM removals), 0)
                     FROM floors",
                )?
                .query_row([], |row| {
                    Ok(Place {
                        history: row.get(0)?,
                        event: row.get(1)?,
                        run: row.get(2)?,
                        removal: row.get(3)?,
                    })
                })
        })
    }

    fn nameless_place(&self) -> Result<Place> {
        self.query(|connection| {
            connection.query_row(
                "SELECT ifnull((SELECT max(sequence) FROM events), 0),
                    ifnull((SELECT max(sequence) FROM runs), 0)",
                [],
                |row| {
                    Ok(Place {
                        history: NAMELESS.to_owned(),
                        event: row.get(0)?,
                        run: row.get(1)?,
                        removal: 0,
                    })
                },
            )
        })
    }

    /// What happened after `since`, at most `most` of each kind. `None` if that place is not one of
    /// this history, or removals since then are not known any more.
    pub fn changes(&self, since: &Place, most: usize) -> Result<Option<Changes>> {
        // One transaction: what is read belongs together.
        let whole = self.connection.unchecked_transaction();
        let _whole = whole.map_err(|error| self.failed(&error))?;
        let now = self.place()?;
        let is_of_this_history = since.history == now.history
            && since.event <= now.event
            && since.run <= now.run
            && since.removal <= now.removal;
        if !is_of_this_history {
            return Ok(None);
        }
        if *since == now {
            return Ok(Some(Changes {
                place: now,
                ..Changes::default()
            }));
        }
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let (removed, removal) = self.removals(since.removal, now.removal, most)?;
        let Some(removed) = removed else {
            return Ok(None);
        };
        let (events, event) = self.events_after(since.event, now.event, most)?;
        let (runs, run) = self.changed_runs(since, (event, now.run), most)?;
        let place = Place {
            history: now.history.clone(),
            event,
            run,
            removal,
        };
        Ok(Some(Changes {
            has_more: place != now,
            place,
            events,
            runs,
            removed,
        }))
    }

    /// The runs that were removed after that number, `None` if some of them are forgotten; and the
    /// number of the last.
    fn removals(&self, after: i64, now: i64, most: i64) -> Result<(Option<Vec<RunId>>, i64)> {
        if after == now {
            return Ok((Some(Vec::new()), now));
        }
        let rows: Vec<(i64, RunId)> = self.query(|connection| {
            connection
                .prepare_cached(
                    "SELECT sequence, run FROM removals WHERE sequence > ?1 ORDER BY sequence \
                        LIMIT ?2",
                )?
                .query_map([after, most], |row| Ok((row.get(0)?, id(row, 1)?)))?
                .collect()
        })?;
        let is_complete = rows.first().is_none_or(|(first, _)| *first == after + 1);
        let last = rows.last().map_or(now, |(last, _)| *last);
        let removed = rows.into_iter().map(|(_, run)| run).collect();
        Ok((is_complete.then_some(removed), last))
    }

    /// The events after that number, and the number up to which they are all there are. Events of
    /// removed runs are gone.
    fn events_after(&self, after: i64, now: i64, most: i64) -> Result<(Vec<Recorded>, i64)> {
        if after == now {
            return Ok((Vec::new(), now));
        }
        let mut last = now;
        let mut count = 0;
        let events = self.query(|connection| {
            let mut statement = connection.prepare_cached(
                "SELECT events.sequence, runs.id, at, body FROM events JOIN runs ON \
                    runs.sequence = events.run WHERE events.sequence > ?1 \
                    ORDER BY events.sequence LIMIT ?2",
            )?;
            let mut rows = statement.query([after, most])?;
            let mut events = Vec::new();
            while let Some(row) = rows.next()? {
                count += 1;
                if count == most {
                    last = row.get(0)?;
                }
                events.extend(self.readable(row, |row| event(row, id(row, 1)?))?.flatten());
            }
            Ok(events)
        })?;
        Ok((events, last))
    }

    /// New runs, and those of the events up to `event`, as they are now; and the number of the last
    /// new run.
    fn changed_runs(
        &self,
        since: &Place,
        (event, run_now): (i64, i64),
        most: i64,
    ) -> Result<(Vec<RunRecord>, i64)> {
        let last_run: i64 = self.query(|connection| {
            let full: Option<i64> = connection
                .prepare_cached(
                    "SELECT sequence FROM runs WHERE sequence > ?1 ORDER BY sequence LIMIT 1 \
                        OFFSET ?2",
                )?
                .query_row([since.run, most - 1], |row| row.get(0))
                .optional()?;
            Ok(full.unwrap_or(run_now))
        })?;
        let sql = format!(
            "SELECT {RUN_COLUMNS} FROM runs WHERE runs.sequence IN (SELECT run FROM events WHERE \
                sequence > ?1 AND sequence <= ?2 UNION SELECT sequence FROM runs WHERE \
                sequence > ?3 AND sequence <= ?4) ORDER BY runs.sequence"
        );
        let runs = self.query(|connection| {
            let mut statement = connection.prepare_cached(&sql)?;
            let rows = statement
                .query_map(params![since.event, event, since.run, last_run], |row| {
                    self.readable(row, record)
                })?;
            rows.filter_map(rusqlite::Result::transpose).collect()
        })?;
        Ok((runs, last_run))
    }
}
