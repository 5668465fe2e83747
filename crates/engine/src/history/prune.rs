//! The plan to remove old runs.

use super::{Batch, History, RunKey, read::id};
use rusqlite::{OptionalExtension, params};
use towline_core::time::Moment;
use towline_core::{Result, RunId};

/// A run that may be removed.
#[derive(Debug, Clone)]
pub struct PruneRow {
    pub key: RunKey,
    pub id: RunId,
    pub ended: Moment,
    pub submission: RunId,
}

impl History {
    /// Ended runs older than `before`, oldest first, except the newest `keep` of all runs.
    pub fn prunable(&self, before: Moment, keep: usize) -> Result<Vec<PruneRow>> {
        let collect = || {
            self.connection
                .prepare(
                    "SELECT sequence, id, ended, submission FROM runs WHERE phase IN ('succeeded', \
                        'failed', 'cancelled', 'lost') AND ended < ?1
                     AND sequence NOT IN (SELECT sequence FROM runs ORDER BY sequence DESC LIMIT \
                         ?2) ORDER BY sequence",
                )?
                .query_map(params![before.0, i64::try_from(keep).unwrap_or(i64::MAX)], |row| {
                    self.readable(row, |row| Ok(PruneRow { key: row.get(0)?, id: id(row, 1)?, ended: Moment(row.get(2)?), submission: id(row, 3)? }))
                })?
                .filter_map(Result::transpose)
                .collect::<rusqlite::Result<_>>()
        };
        collect().map_err(|error| self.failed(&error))
    }
}

impl Batch<'_> {
    /// Removes an ended run, and its submission with the last of its runs. A run that has not ended
    /// is kept.
    pub fn forget(&self, run: &RunId) -> Result<bool> {
        let remove = || -> rusqlite::Result<bool> {
            let connection = self.connection();
            let submission: Option<String> = connection
                .prepare_cached(
                    "DELETE FROM runs WHERE id=?1 AND phase IN ('succeeded', 'failed', \
                    'cancelled', 'lost') RETURNING submission",
                )?
                .query_row([run.as_str()], |row| row.get(0))
                .optional()?;
            let Some(submission) = submission else {
                return Ok(false);
            };
            connection
                .prepare_cached(
                    "DELETE FROM submissions WHERE id=?1 AND NOT EXISTS (SELECT 1 FROM \
                    runs WHERE submission = ?1)",
                )?
                .execute([submission])?;
            Ok(true)
        };
        remove().map_err(|error| self.error(&error))
    }

    /// Removes environments that no submission uses any more.
    pub fn forget_unused_environments(&self) -> Result<()> {
        let sql = "DELETE FROM environments WHERE id NOT IN (SELECT environment FROM submissions)";
        self.connection()
            .execute(sql, [])
            .map(|_| ())
            .map_err(|error| self.error(&error))
    }
}
