//! The report of an import: for every key of a file, the key that it became, or the reason why
//! none.

use serde::Serialize;
use towline_core::suggest::did_you_mean;
use towline_core::yaml::{Position, Warning};

/// One key of the file, and its outcome.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Line {
    pub key: String,
    /// `LINE:COLUMN`, or the whole position if it was written in another file.
    pub at: String,
    /// The key it became, or the reason.
    pub says: String,
}

/// The report of one file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Report {
    pub source: String,
    pub mapped: Vec<Line>,
    /// Nothing is lost: Towline does this by itself, or the key never had an effect.
    pub not_needed: Vec<Line>,
    pub not_mapped: Vec<Line>,
    /// Defaults of the other tool that the file leaves out. They have no position.
    pub assumed: Vec<Line>,
    /// Points to check before use.
    pub warnings: Vec<String>,
    /// Commands to run once; none holds a secret.
    pub commands: Vec<String>,
    /// Warnings about unknown keys and values without effect, for files of another tool that are
    /// used in place.
    #[serde(skip)]
    pub warnings_in_place: Vec<Warning>,
}

impl Report {
    pub fn new(source: impl Into<String>) -> Self {
        Self {
            source: source.into(),
            ..Self::default()
        }
    }

    pub fn mapped(&mut self, key: impl Into<String>, at: &Position, to: impl Into<String>) {
        let line = self.line(key, at, to);
        push(&mut self.mapped, line);
    }

    pub fn not_needed(&mut self, key: impl Into<String>, at: &Position, why: impl Into<String>) {
        let line = self.line(key, at, why);
        push(&mut self.not_needed, line);
    }

    pub fn not_mapped(&mut self, key: impl Into<String>, at: &Position, why: impl Into<String>) {
        let line = self.line(key, at, why);
        push(&mut self.not_mapped, line);
    }

    /// A default that the file leaves out: the key that would change it, and where it went.
    pub fn assumed(&mut self, key: impl Into<String>, to: impl std::fmt::Display) {
        let line = Line {
            key: key.into(),
            at: String::new(),
            says: format!("{to}; not in the file, the other tool's default"),
        };
        push(&mut self.assumed, line);
    }

    /// A key without a value.
    pub fn empty(&mut self, key: impl Into<String>, at: &Position) {
        self.not_needed(key, at, "it has no value");
    }

    /// A key that is not among the known ones.
    pub fn unknown_key<'k>(
        &mut self,
        key: &str,
        at: &Position,
        why: &str,
        known: impl IntoIterator<Item = &'k str>,
    ) {
        let name = key.rsplit('.').next().unwrap_or(key);
        let guess = did_you_mean(name, known);
        self.not_mapped(
            key,
            at,
            guess
                .as_ref()
                .map_or_else(|| why.to_owned(), |guess| format!("{why}: {guess}")),
        );
        let message = format!(
            "unknown key `{key}`: {}",
            guess.unwrap_or_else(|| why.to_owned())
        );
        self.warn_in_place(at, message);
    }

    /// Adds a warning for a file of another tool that is used in place.
    pub fn warn_in_place(&mut self, at: &Position, message: String) {
        self.warnings_in_place.push(Warning {
            at: at.clone(),
            message,
        });
    }

    pub fn warn(&mut self, words: impl Into<String>) {
        let words = words.into();
        if !self.warnings.contains(&words) {
            self.warnings.push(words);
        }
    }

    /// The beginning of the command that stores a credential.
    pub(super) fn store_words(name: &str) -> String {
        format!("secret-tool store --label={name} towline {name}    # ")
    }

    /// Adds the command that stores a credential in the keyring. Its value is not copied.
    pub fn store(&mut self, name: &str, from: &str) {
        let command = format!("{}asks for it; paste {from}", Self::store_words(name));
        if !self.commands.contains(&command) {
            self.commands.push(command);
        }
    }

    fn line(&self, key: impl Into<String>, at: &Position, says: impl Into<String>) -> Line {
        let at = if *at.source == *self.source {
            format!("{}:{}", at.line, at.column)
        } else {
            at.to_string()
        };
        Line {
            key: key.into(),
            at,
            says: says.into(),
        }
    }
}

/// The same key at the same position is reported once, however many values need it.
fn push(lines: &mut Vec<Line>, line: Line) {
    if !lines.contains(&line) {
        lines.push(line);
    }
}
