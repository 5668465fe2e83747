//! The tables. Migrations are only added; each raises the version by one.

use super::History;
use towline_core::{Error, Result};

const MIGRATIONS: &[&str] = &[
    "
    CREATE TABLE environments (
        id   INTEGER PRIMARY KEY,
        hash INTEGER NOT NULL,
        body TEXT NOT NULL
    );
    CREATE INDEX environments_hash ON environments (hash);

    CREATE TABLE submissions (
        id          TEXT PRIMARY KEY,
        reversed    TEXT NOT NULL,
        is_sweep    INTEGER NOT NULL,
        created     INTEGER NOT NULL,
        plan        TEXT NOT NULL,
        environment INTEGER NOT NULL REFERENCES environments (id)
    ) WITHOUT ROWID;
    CREATE INDEX submissions_reversed ON submissions (reversed) WHERE is_sweep;

    CREATE TABLE runs (
        sequence   INTEGER PRIMARY KEY,
        id         TEXT NOT NULL UNIQUE,
        reversed   TEXT NOT NULL,
        submission TEXT NOT NULL REFERENCES submissions (id),
        name       TEXT NOT NULL,
        experiment TEXT,
        cluster    TEXT NOT NULL,
        tier       TEXT NOT NULL,
        tags       TEXT NOT NULL,
        parameters TEXT NOT NULL,
        command    TEXT NOT NULL,
        gpus       INTEGER NOT NULL,
        nodes      INTEGER NOT NULL,
        world      INTEGER NOT NULL,
        phase      TEXT NOT NULL,
        state      TEXT NOT NULL,
        created    INTEGER NOT NULL,
        started    INTEGER,
        ended      INTEGER,
        resubmits  TEXT
    );
    CREATE INDEX runs_reversed ON runs (reversed);
    CREATE INDEX runs_submission ON runs (submission);
    CREATE INDEX runs_phase ON runs (phase, sequence);

    CREATE TABLE attempts (
        run     INTEGER NOT NULL REFERENCES runs (sequence) ON DELETE CASCADE,
        attempt INTEGER NOT NULL,
        runner  TEXT,
        started INTEGER,
        ended   INTEGER,
        ending  TEXT,
        PRIMARY KEY (run, attempt)
    ) WITHOUT ROWID;

    CREATE TABLE events (
        sequence INTEGER PRIMARY KEY,
        run      INTEGER NOT NULL REFERENCES runs (sequence) ON DELETE CASCADE,
        at       INTEGER NOT NULL,
        body     TEXT NOT NULL
    );
    CREATE INDEX events_run ON events (run);
",
    "
    CREATE TABLE histories (id TEXT NOT NULL);
    INSERT INTO histories VALUES (lower(hex(randomblob(8))));

    CREATE TABLE floors (runs INTEGER NOT NULL, events INTEGER NOT NULL);
    INSERT INTO floors VALUES (0, 0);

    CREATE TABLE removals (sequence INTEGER PRIMARY KEY, run TEXT NOT NULL);

    CREATE TRIGGER runs_removed BEFORE DELETE ON runs BEGIN
        UPDATE floors SET
            runs = max(runs, (SELECT max(sequence) FROM runs)),
            events = max(events, ifnull((SELECT max(sequence) FROM events), 0));
        INSERT INTO removals (run) VALUES (OLD.id);
        DELETE FROM removals WHERE sequence <= (SELECT max(sequence) FROM removals) - 10000;
    END;
",
];

/// The number of the next run: a number that a removed run had is never given again, because
/// readers of [`super::changes`] go on behind the last number that they have seen.
pub(super) const NEXT_RUN: &str = "(SELECT 1 + max(ifnull((SELECT max(sequence) FROM runs), 0), \
    (SELECT runs FROM floors)))";

/// The number of the next event, by the same rule.
pub(super) const NEXT_EVENT: &str = "(SELECT 1 + max(ifnull((SELECT max(sequence) FROM events), \
    0), (SELECT events FROM floors)))";

/// Indexes that make reading faster and change no answer. They have no version, because SQLite
/// keeps them right for a program that does not know them. A run of a sweep is one whose id differs
/// from its submission's: other runs do not pay for these indexes.
const SWEEP_INDEXES: &str = "
    CREATE INDEX IF NOT EXISTS runs_sweep_started ON runs (submission, started)
        WHERE id <> submission;
    CREATE INDEX IF NOT EXISTS runs_sweep_ended ON runs (submission, ended)
        WHERE id <> submission;
";

/// The schema version that this program writes.
#[expect(clippy::cast_possible_truncation, reason = "a handful of migrations")]
pub const SCHEMA_VERSION: u32 = MIGRATIONS.len() as u32;

impl History {
    pub(super) fn version(&self) -> Result<u32> {
        let version: u32 = self
            .connection
            .query_row("PRAGMA user_version", [], |row| row.get(0))
            .map_err(|error| self.failed(&error))?;
        Ok(version)
    }

    /// Whether a newer program wrote this database. Then it is only read.
    pub fn is_newer(&self) -> Result<bool> {
        Ok(self.version()? > SCHEMA_VERSION)
    }

    pub(super) fn migrate(&self) -> Result<()> {
        let version = self.version()?;
        if version > SCHEMA_VERSION {
            return Err(Error::unsupported(format!(
                "the history {} was written by a newer tow (format {version}, this one knows \
                    {SCHEMA_VERSION})",
                self.path.display()
            ))
            .hint("use that tow to change something; reading works with this one"));
        }
        let missing = &MIGRATIONS[version as usize..];
        if missing.is_empty() {
            return Ok(());
        }
        // All at once: readers never see a half of it.
        let script = format!(
            "BEGIN IMMEDIATE; {} PRAGMA user_version={SCHEMA_VERSION}; COMMIT;",
            missing.concat()
        );
        self.connection
            .execute_batch(&script)
            .map_err(|error| self.failed(&error))
    }

    /// Makes the indexes that are missing. A failure is ignored: on a full disk reading is slower
    /// and nothing else differs.
    pub(super) fn index(&self) {
        let _ = self.connection.execute_batch(SWEEP_INDEXES);
    }
}
