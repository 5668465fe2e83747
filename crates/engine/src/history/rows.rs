//! Rows that cannot be read, because another program or a bad disk has damaged them. They are left
//! out and named; all other rows stay readable.

use super::History;
use super::read::{RUN_COLUMNS, active_run, record};
use rusqlite::Row;
use towline_core::Result;

/// A run whose row cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadableRow {
    pub sequence: i64,
    /// As the row has it.
    pub id: String,
    pub why: String,
}

impl History {
    /// The value of a row; `None` if the row cannot be read, which is reported. An error of the file
    /// itself is returned.
    pub(super) fn readable<T>(
        &self,
        row: &Row<'_>,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<Option<T>> {
        match read(row) {
            Ok(value) => Ok(Some(value)),
            Err(error) if is_of_the_row(&error) => {
                (self.notice)(&description(&unreadable(row, &error)));
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Every run whose row cannot be read.
    pub fn unreadable_rows(&self) -> Result<Vec<UnreadableRow>> {
        let collect = || {
            let mut found = Vec::new();
            let mut statement = self.connection.prepare(&format!(
                "SELECT {RUN_COLUMNS} FROM runs ORDER BY runs.sequence"
            ))?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                match record(row) {
                    Err(error) if is_of_the_row(&error) => found.push(unreadable(row, &error)),
                    Err(error) => return Err(error),
                    Ok(_) => {}
                }
            }
            Ok(found)
        };
        collect().map_err(|error: rusqlite::Error| self.failed(&error))
    }

    /// Active runs that can be read, each by [`active_run`].
    pub(super) fn readable_active(
        &self,
        row: &Row<'_>,
    ) -> rusqlite::Result<Option<super::ActiveRun>> {
        self.readable(row, active_run)
    }
}

pub(super) fn is_of_the_row(error: &rusqlite::Error) -> bool {
    matches!(
        error,
        rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
            | rusqlite::Error::Utf8Error(..)
    )
}

/// The first two columns are the row's number and the run's id.
fn unreadable(row: &Row<'_>, error: &rusqlite::Error) -> UnreadableRow {
    UnreadableRow {
        sequence: row.get(0).unwrap_or(0),
        id: row
            .get(1)
            .unwrap_or_else(|_| "without a readable id".to_owned()),
        why: error.to_string(),
    }
}

fn description(row: &UnreadableRow) -> String {
    format!(
        "row {} of the history ({}) cannot be read and is left out: {}; `tow doctor` says how to \
            remove it",
        row.sequence, row.id, row.why
    )
}
