//! The one error type that crosses seams. Small enums stay inside their crates.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::error::Error as StdError;
use std::fmt;

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The class of an error, by what a user can do about it. Each has one exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// The command line is not valid.
    Usage,
    /// The configuration or the job file is wrong.
    Config,
    /// The thing named does not exist.
    NotFound,
    /// Several things fit; nothing was changed.
    Ambiguous,
    /// Unsafe, unsupported, denied, or impossible.
    Refused,
    /// The time the user allowed has passed.
    Timeout,
    /// The cluster, store or daemon cannot be reached: nothing is known.
    Unreachable,
    /// The run is lost.
    Lost,
    /// A defect of Towline, or a disk that failed.
    Bug,
}

impl ErrorKind {
    /// The documented exit code of `tow` for this class.
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Usage => 120,
            Self::Config => 121,
            Self::NotFound | Self::Ambiguous => 122,
            Self::Refused => 123,
            Self::Timeout => 124,
            Self::Unreachable => 125,
            Self::Lost => 126,
            Self::Bug => 127,
        }
    }

    /// The word used in `--json`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Usage => "usage",
            Self::Config => "config",
            Self::NotFound => "not_found",
            Self::Ambiguous => "ambiguous",
            Self::Refused => "refused",
            Self::Timeout => "timeout",
            Self::Unreachable => "unreachable",
            Self::Lost => "lost",
            Self::Bug => "bug",
        }
    }
}

/// The hint for an error because no further thread or process can be made.
pub const THREADS_HINT: &str = "you have as many processes and threads as you may: `ulimit -u` \
    says how many; end some, or ask for more";

/// Whether doing the same again can help.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Retry {
    #[default]
    Never,
    Later,
    /// It was tried as often as is sensible.
    Exhausted,
}

/// An error at a seam: class, message, where it happened, and what to do next.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    retry: Retry,
    message: String,
    context: Vec<(&'static str, String)>,
    hints: Vec<String>,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl Error {
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        let retry = match kind {
            ErrorKind::Unreachable | ErrorKind::Timeout => Retry::Later,
            _ => Retry::Never,
        };
        Self {
            kind,
            retry,
            message: message.into(),
            context: Vec::new(),
            hints: Vec::new(),
            source: None,
        }
    }
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Usage, message)
    }
    pub fn config(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Config, message)
    }
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::NotFound, message)
    }
    pub fn refused(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Refused, message)
    }
    pub fn unreachable(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unreachable, message)
    }
    pub fn bug(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Bug, message)
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }
    #[must_use]
    pub fn maybe_hint(self, hint: Option<String>) -> Self {
        match hint {
            Some(hint) => self.hint(hint),
            None => self,
        }
    }
    #[must_use]
    pub fn with(mut self, key: &'static str, value: impl fmt::Display) -> Self {
        self.context.push((key, value.to_string()));
        self
    }
    #[must_use]
    pub fn source_error(mut self, source: impl StdError + Send + Sync + 'static) -> Self {
        self.source = Some(Box::new(source));
        self
    }
    #[must_use]
    pub fn retry(mut self, retry: Retry) -> Self {
        self.retry = retry;
        self
    }
    /// Puts the operation in front of the message: "cannot submit to `a100`: …".
    #[must_use]
    pub fn while_doing(mut self, operation: impl fmt::Display) -> Self {
        self.message = format!("{operation}: {}", self.message);
        self
    }

    /// Turns a refusal into "unknown": an earlier attempt may have succeeded although its reply was
    /// lost.
    #[must_use]
    pub fn as_unknown(&self) -> Self {
        self.hints
            .iter()
            .fold(Self::unreachable(self.to_string()), |error, hint| {
                error.hint(hint.clone())
            })
    }

    /// A copy for another caller: kind, message and hints. The message includes the source.
    #[must_use]
    pub fn again(&self) -> Self {
        self.hints
            .iter()
            .fold(Self::new(self.kind, self.to_string()), |error, hint| {
                error.hint(hint.clone())
            })
    }

    pub const fn kind(&self) -> ErrorKind {
        self.kind
    }
    pub const fn retry_advice(&self) -> Retry {
        self.retry
    }
    pub fn message(&self) -> &str {
        &self.message
    }
    pub fn context(&self) -> &[(&'static str, String)] {
        &self.context
    }
    pub fn hints(&self) -> &[String] {
        &self.hints
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        for (key, value) in &self.context {
            write!(f, " ({key}: {value})")?;
        }
        if let Some(source) = &self.source {
            write!(f, ": {source}")?;
        }
        Ok(())
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source
            .as_deref()
            .map(|source| source as &(dyn StdError + 'static))
    }
}
