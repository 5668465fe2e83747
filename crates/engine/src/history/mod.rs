//! The history: every run, attempt and event, in SQLite.
//!
//! One writer (the daemon for local runs), any number of readers. WAL on a local disk; a rollback
//! journal on a network file system, where WAL's shared memory does not work. A database that is
//! newer than the program is only read. A damaged one is named and left unchanged.

mod agents;
mod changes;
mod entries;
mod pages;
mod prune;
mod read;
mod reference;
mod rows;
mod schema;
mod tags;
mod write;

#[cfg(test)]
mod tests;

pub use changes::Changes;
pub use entries::{Entry, SweepEntry};
pub use pages::{Page, PageFilter, PageKey, PageRow, PageSweep, WordColumn};
pub use prune::PruneRow;
pub use read::{ActiveRun, Filter, Submission};
pub use reference::Target;
pub use rows::UnreadableRow;
pub use schema::SCHEMA_VERSION;
pub use write::{Batch, RunKey};

use rusqlite::{Connection, OpenFlags};
use std::path::{Path, PathBuf};
use std::time::Duration;
use towline_core::{Error, ErrorKind, Result};

/// How long a reader or writer waits for another that holds the file.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub struct History {
    connection: Connection,
    path: PathBuf,
    /// Gets the messages about rows that cannot be read.
    notice: fn(&str),
}

/// The size at which the write-ahead log is moved into the database. The log takes this much of the
/// disk beside the database. The daemon keeps as much in reserve, so that the log can be moved on a
/// full disk too.
pub const WRITE_AHEAD_LOG_BYTES: u32 = 1 << 20;
/// SQLite's default.
const PAGE_BYTES: u32 = 4096;

/// How the database keeps a commit whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JournalMode {
    WriteAhead,
    Rollback,
}

impl JournalMode {
    /// WAL, unless the folder is on a network file system. `TOW_HISTORY_JOURNAL=rollback` forces
    /// the other.
    pub fn for_folder(folder: &Path) -> Self {
        let forced = towline_host::surroundings::variable("TOW_HISTORY_JOURNAL")
            .is_some_and(|mode| mode == "rollback");
        if forced || towline_host::filesystem::network_kind(folder).is_some() {
            Self::Rollback
        } else {
            Self::WriteAhead
        }
    }
}

impl History {
    /// Opens for writing, making or migrating the database as needed.
    pub fn open_writer(path: &Path, mode: JournalMode) -> Result<Self> {
        let made = !path.exists();
        let connection = Connection::open(path).map_err(|error| damaged(path, &error))?;
        if made {
            use std::os::unix::fs::PermissionsExt;
            let _ = std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600));
        }
        let history = Self {
            connection,
            path: path.to_owned(),
            notice: |_| {},
        };
        history
            .connection
            .busy_timeout(BUSY_TIMEOUT)
            .map_err(|error| history.failed(&error))?;
        let word = match mode {
            JournalMode::WriteAhead => "wal",
            JournalMode::Rollback => "delete",
        };
        history
            .connection
            .query_row(&format!("PRAGMA journal_mode={word}"), [], |_| Ok(()))
            .and_then(|()| {
                history
                    .connection
                    .execute_batch("PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON;")
            })
            .and_then(|()| {
                history.connection.pragma_update(
                    None,
                    "wal_autocheckpoint",
                    WRITE_AHEAD_LOG_BYTES / PAGE_BYTES,
                )
            })
            .map_err(|error| history.failed(&error))?;
        history.migrate()?;
        history.index();
        history.connection.set_prepared_statement_cache_capacity(64);
        Ok(history)
    }

    /// Moves the write-ahead log into the database, and frees its space on the disk. `false` if
    /// that was not possible (a reader is active, or there is no space), or the log was empty.
    /// Never waits.
    pub fn shrink_log(&self) -> bool {
        let shrink = || {
            self.connection.busy_timeout(Duration::ZERO)?;
            self.connection
                .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| {
                    Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?))
                })
        };
        let was_empty = std::fs::metadata(log_of(&self.path)).map_or(true, |log| log.len() == 0);
        let shrunk = shrink();
        let _ = self.connection.busy_timeout(BUSY_TIMEOUT);
        !was_empty && matches!(shrunk, Ok((0, _)))
    }

    /// Opens for reading. `None` when there is no history yet.
    pub fn open_reader(path: &Path) -> Result<Option<Self>> {
        let unseen = |error| {
            Error::from_io(
                format!("the history {} cannot be read", path.display()),
                error,
            )
            .hint(
                "whether there are runs is not known; check who owns that folder, or set \
                    XDG_STATE_HOME to a folder of yours",
            )
        };
        if let Some(folder) = path.parent() {
            towline_host::filesystem::check_own(folder).map_err(unseen)?;
        }
        if towline_host::filesystem::metadata_if_there(path)
            .map_err(unseen)?
            .is_none()
        {
            return Ok(None);
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection =
            Connection::open_with_flags(path, flags).map_err(|error| damaged(path, &error))?;
        let history = Self {
            connection,
            path: path.to_owned(),
            notice: |_| {},
        };
        history
            .connection
            .busy_timeout(BUSY_TIMEOUT)
            .map_err(|error| history.failed(&error))?;
        // A history that the daemon has just created has no tables yet.
        if history.version()? == 0 {
            Ok(None)
        } else {
            Ok(Some(history))
        }
    }

    /// Rows that cannot be read are left out and reported to `notice`.
    #[must_use]
    pub fn with_notice(mut self, notice: fn(&str)) -> Self {
        self.notice = notice;
        self
    }

    #[cfg(test)]
    fn in_memory() -> Self {
        let connection = Connection::open_in_memory().expect("SQLite opens in memory");
        let history = Self {
            connection,
            path: ":memory:".into(),
            notice: |_| {},
        };
        history.migrate().expect("the schema is valid");
        history.index();
        history
    }

    fn failed(&self, error: &rusqlite::Error) -> Error {
        damaged(&self.path, error)
    }
}

/// The write-ahead log of a database.
fn log_of(database: &Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push("-wal");
    name.into()
}

fn is_full(path: &Path) -> bool {
    path.parent().is_some_and(|folder| {
        towline_host::filesystem::room(folder).is_ok_and(|room| room.is_full())
    })
}

fn full(path: &Path) -> Error {
    Error::no_room(format!(
        "the disk that holds {} is full; nothing was changed",
        path.display()
    ))
    .hint(
        "make room, then do it again; `tow prune --yes` removes runs that ended more than 30 \
            days ago",
    )
}

/// An error of SQLite as a message. A damaged file is named and never replaced.
fn damaged(path: &Path, error: &rusqlite::Error) -> Error {
    use rusqlite::ErrorCode;
    let shown = path.display();
    match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
            Error::bug(format!("the history {shown} is damaged: {error}")).hint(
                "it is left as it is; try `sqlite3 FILE .recover`, or move it away to begin a \
                new history",
            )
        }
        Some(ErrorCode::DiskFull) => full(path),
        // Shared memory and journals beside the file need space too; SQLite calls that an I/O
        // error.
        Some(ErrorCode::SystemIoFailure | ErrorCode::CannotOpen) if is_full(path) => full(path),
        Some(ErrorCode::SystemIoFailure) => Error::refused(format!(
            "the disk that holds {shown} \
            cannot be read or written: {error}"
        ))
        .hint("check the disk with `dmesg`, or ask the administrators of the file server"),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            Error::unreachable(format!("the history {shown} is held by another process"))
        }
        Some(
            code @ (ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied),
        ) => {
            // SQLite cannot open a file for other reasons too, such as too few descriptors.
            let kind = match code {
                ErrorCode::CannotOpen => ErrorKind::Refused,
                _ => ErrorKind::Denied,
            };
            let message = format!("the history {shown} cannot be opened: {error}");
            Error::new(kind, message)
                .hint("check who owns it, or set XDG_STATE_HOME to a folder of yours")
        }
        _ if rows::is_of_the_row(error) => Error::bug(format!(
            "a row of the history {shown} cannot be read: \
                {error}"
        ))
        .hint("`tow doctor` says how to remove it"),
        _ => Error::bug(format!("the history {shown} failed: {error}")),
    }
}
