//! What became of every key of a file: where it went, why it is not needed, or why it has no place.

use serde::Serialize;
use towline_core::suggest::did_you_mean;
use towline_core::yaml::{Position, Warning};

/// One key that was given, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Line {
    pub key: String,
    /// `LINE:COLUMN`, or the whole place where it was written in another file.
    pub at: String,
    /// The key it became, or the reason.
    pub says: String,
}

/// What a file gave.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Report {
    pub source: String,
    pub mapped: Vec<Line>,
    /// Nothing is lost: Towline does this by itself, or it never had an effect.
    pub not_needed: Vec<Line>,
    pub not_mapped: Vec<Line>,
    /// What the file does not say, and the other tool takes for granted. There is no place to name.
    pub assumed: Vec<Line>,
    /// What is to be looked at before it is used.
    pub warnings: Vec<String>,
    /// Commands to run once; none holds a secret.
    pub commands: Vec<String>,
    /// Keys that nobody knows and values without effect, for those who use the other tool's files
    /// in place.
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

    /// A value that nobody wrote: the key that would change it, and where it went.
    pub fn assumed(&mut self, key: impl Into<String>, to: impl std::fmt::Display) {
        let line = Line {
            key: key.into(),
            at: String::new(),
            says: format!("{to}; not in the file, the other tool's default"),
        };
        push(&mut self.assumed, line);
    }

    /// A key with nothing behind it.
    pub fn empty(&mut self, key: impl Into<String>, at: &Position) {
        self.not_needed(key, at, "nothing is said");
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

    /// What is told to those who use the other tool's file in place.
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

    /// How the command to store a credential begins.
    pub(super) fn store_words(name: &str) -> String {
        format!("secret-tool store --label={name} towline {name}    # ")
    }

    /// A credential whose value stays where it is: how to bring it to the keyring.
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

    /// For people.
    pub fn text(&self) -> String {
        let mut text = format!("{}\n", self.source);
        for (title, lines, arrow) in [
            ("mapped", &self.mapped, "→ "),
            ("assumed", &self.assumed, "→ "),
            ("not needed", &self.not_needed, ""),
            ("not mapped", &self.not_mapped, ""),
        ] {
            if lines.is_empty() {
                continue;
            }
            text += &format!("  {title}\n");
            let width = |of: fn(&Line) -> &String| {
                lines
                    .iter()
                    .map(|line| of(line).chars().count())
                    .max()
                    .unwrap_or(0)
            };
            let (keys, places) = (width(|line| &line.key), width(|line| &line.at));
            for Line { key, at, says } in lines {
                text += &format!("    {key:<keys$}  {at:<places$}  {arrow}{says}\n");
            }
        }
        for warning in &self.warnings {
            text += &format!("  warning: {warning}\n");
        }
        for command in &self.commands {
            text += &format!("  run once: {command}\n");
        }
        text
    }
}

/// The same key of the same place is said once, however many values need it.
fn push(lines: &mut Vec<Line>, line: Line) {
    if !lines.contains(&line) {
        lines.push(line);
    }
}
