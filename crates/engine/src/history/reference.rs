//! From the text that the user typed to a run or sweep.

use super::{History, read::id};
use rusqlite::params;
use towline_core::id::{MIN_SUFFIX_CHARACTERS_TO_CHANGE, Reference};
use towline_core::record::RunRecord;
use towline_core::{Error, ErrorKind, Result, RunId};

/// The run or sweep that a reference names.
#[derive(Debug, Clone)]
pub enum Target {
    Run(Box<RunRecord>),
    /// A sweep with its runs, in their order.
    Sweep(RunId, Vec<RunRecord>),
}

impl Target {
    pub fn runs(&self) -> &[RunRecord] {
        match self {
            Self::Run(run) => std::slice::from_ref(run),
            Self::Sweep(_, runs) => runs,
        }
    }
    pub fn id(&self) -> &RunId {
        match self {
            Self::Run(run) => &run.id,
            Self::Sweep(id, _) => id,
        }
    }
}

/// The number of candidates that are shown when several fit, at most.
const MAX_CANDIDATES_SHOWN: usize = 10;
/// A text longer than this is taken for a whole name, not for the end of an id.
const MAX_SUFFIX_CHARACTERS: usize = 8;

impl History {
    /// For verbs that only read: any unique part of an id, suffix first.
    pub fn find_to_read(&self, text: &str) -> Result<Target> {
        let reference = parse(text)?;
        self.find(&reference, text, true)
    }

    /// For verbs that change something: the whole id, `@`, or a suffix of at least four characters.
    pub fn find_to_change(&self, text: &str) -> Result<Target> {
        let reference = parse(text)?;
        if !reference.may_change() {
            return Err(
                Error::usage(format!("`{text}` is too short to change a run by")).hint(format!(
                    "type at least {MIN_SUFFIX_CHARACTERS_TO_CHANGE} characters of the id's end; `tow \
                    ps` shows them"
                )),
            );
        }
        self.find(&reference, text, false)
    }

    fn find(&self, reference: &Reference, text: &str, loosely: bool) -> Result<Target> {
        let part = match reference {
            Reference::Latest { back } => {
                let latest = self.submissions(back.saturating_add(1))?;
                let Some((id, _)) = latest.get(*back) else {
                    return Err(match latest.len() {
                        0 => Error::not_found("there is no run yet")
                            .hint("begin with `tow run echo hello`"),
                        count => Error::not_found(format!(
                            "`{text}`: only {count} submission(s) are in the history"
                        ))
                        .hint("`tow history` lists them"),
                    });
                };
                return self.target(id, text);
            }
            Reference::Part(part) => part,
        };
        let mut found = self.by_suffix(part)?;
        if found.iter().any(|id| id.as_str() == part) {
            found.retain(|id| id.as_str() == part);
        }
        if found.is_empty() {
            found = self.by_name_there(text.trim())?;
        }
        if found.is_empty() && loosely {
            found = self.by_part(part)?;
        }
        match found.as_slice() {
            [] => {
                // A whole name that is not found may be the cluster's name for a job of another
                // tool or another machine.
                let elsewhere = (part.len() > MAX_SUFFIX_CHARACTERS).then_some(
                    "a run of another machine or tool: `tow ps --remote` lists what a \
                        cluster knows, `tow adopt ID` takes it in",
                );
                Err(Error::not_found(format!("no run is called `{text}`"))
                    .hint("`tow ps` lists the runs")
                    .maybe_hint(elsewhere.map(str::to_owned)))
            }
            [id] => self.target(&id.clone(), text),
            several => {
                let mut listed: Vec<_> = several
                    .iter()
                    .take(MAX_CANDIDATES_SHOWN)
                    .map(ToString::to_string)
                    .collect();
                if several.len() > MAX_CANDIDATES_SHOWN {
                    listed.push("…".into());
                }
                Err(Error::new(
                    ErrorKind::Ambiguous,
                    format!("`{text}` fits several runs: {}", listed.join(", ")),
                )
                .hint("type more of the id's end"))
            }
        }
    }

    fn target(&self, id: &RunId, text: &str) -> Result<Target> {
        if let Some(run) = self.run(id)? {
            return Ok(Target::Run(Box::new(run)));
        }
        match self.runs_of(id)? {
            runs if runs.is_empty() => Err(Error::not_found(format!("no run is called `{text}`"))),
            runs => Ok(Target::Sweep(id.clone(), runs)),
        }
    }

    fn by_suffix(&self, part: &str) -> Result<Vec<RunId>> {
        let from: String = part.chars().rev().collect();
        // Ids hold `-`, digits and lower-case letters: all below `~`.
        let to = format!("{from}~");
        self.ids(
            "SELECT id FROM runs WHERE reversed >= ?1 AND reversed < ?2 UNION SELECT id FROM \
                submissions WHERE is_sweep AND reversed >= ?1 AND reversed < ?2 LIMIT 12",
            params![from, to],
        )
    }

    /// Runs whose cluster's own name is `name`.
    fn by_name_there(&self, name: &str) -> Result<Vec<RunId>> {
        self.ids(
            "SELECT id FROM submissions WHERE instr(plan, '\"adopted\"') > 0 AND \
            json_extract(plan, '$.adopted') = ?1 LIMIT 12",
            params![name],
        )
    }

    fn by_part(&self, part: &str) -> Result<Vec<RunId>> {
        // A sweep stands for its runs, so that its name alone is not ambiguous.
        let sweeps = self.ids(
            "SELECT id FROM submissions WHERE is_sweep AND instr(id, ?1) > 0 LIMIT 12",
            params![part],
        )?;
        let mut found = self.ids(
            "SELECT id FROM runs WHERE instr(id, ?1) > 0 AND NOT EXISTS (SELECT 1 FROM submissions \
                WHERE submissions.id = submission AND is_sweep AND instr(submissions.id, ?1) > 0) \
                    LIMIT 12",
            params![part],
        )?;
        found.extend(sweeps);
        Ok(found)
    }

    fn ids(&self, sql: &str, parameters: &[&dyn rusqlite::ToSql]) -> Result<Vec<RunId>> {
        let collect = || {
            self.connection
                .prepare_cached(sql)?
                .query_map(parameters, |row| id(row, 0))?
                .collect::<rusqlite::Result<_>>()
        };
        collect().map_err(|error| self.failed(&error))
    }
}

fn parse(text: &str) -> Result<Reference> {
    Reference::parse(text).map_err(|error| {
        Error::usage(error.to_string()).hint(
            "a run is named by its id, the end \
            of it, `@` for the latest, or `@-1` for the one before it",
        )
    })
}
