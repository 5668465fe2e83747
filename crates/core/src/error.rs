//! The one error type that crosses seams. Small enums stay inside their crates.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::error::Error as StdError;
use std::fmt;
use std::io;

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The class of an error, by what a user can do about it. Each has one exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
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
    /// Unsafe, or refused for a reason that has no kind of its own below.
    #[schemars(description = "Unsafe, unsupported, denied, or impossible.")]
    Refused,
    /// The user or the credential is not allowed to do it.
    #[serde(skip_deserializing)]
    #[schemars(skip)]
    Denied,
    /// This kind of cluster, store or program cannot do it.
    #[serde(skip_deserializing)]
    #[schemars(skip)]
    Unsupported,
    /// It is over a limit and can never fit there.
    #[serde(skip_deserializing)]
    #[schemars(skip)]
    TooLarge,
    /// Something else is there, or holds it.
    #[serde(skip_deserializing)]
    #[schemars(skip)]
    Conflict,
    /// A disk or a quota is full.
    #[serde(skip_deserializing)]
    #[schemars(skip)]
    NoRoom,
    /// The time the user allowed has passed.
    Timeout,
    /// The cluster, store or daemon cannot be reached: nothing is known.
    Unreachable,
    /// The run is lost.
    Lost,
    /// A defect of Towline, or a disk that failed.
    Bug,
}

/// A kind is stored and sent as its word. The finer kinds of refusal share the word `refused`,
/// which every version reads; [`ErrorKind::refusal`] goes into a field beside it.
impl Serialize for ErrorKind {
    fn serialize<S: serde::Serializer>(&self, target: S) -> Result<S::Ok, S::Error> {
        target.serialize_str(self.word())
    }
}

impl ErrorKind {
    /// The kinds of refusal that have a word of their own.
    const FINER_REFUSALS: [Self; 5] = [
        Self::Denied,
        Self::Unsupported,
        Self::TooLarge,
        Self::Conflict,
        Self::NoRoom,
    ];

    /// The documented exit code of `tow` for this class.
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Usage => 120,
            Self::Config => 121,
            Self::NotFound | Self::Ambiguous => 122,
            Self::Refused
            | Self::Denied
            | Self::Unsupported
            | Self::TooLarge
            | Self::Conflict
            | Self::NoRoom => 123,
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
            Self::Refused
            | Self::Denied
            | Self::Unsupported
            | Self::TooLarge
            | Self::Conflict
            | Self::NoRoom => "refused",
            Self::Timeout => "timeout",
            Self::Unreachable => "unreachable",
            Self::Lost => "lost",
            Self::Bug => "bug",
        }
    }

    /// The finer word of a refusal, for the field `refusal` beside [`ErrorKind::word`].
    pub const fn refusal(self) -> Option<&'static str> {
        match self {
            Self::Denied => Some("denied"),
            Self::Unsupported => Some("unsupported"),
            Self::TooLarge => Some("too_large"),
            Self::Conflict => Some("conflict"),
            Self::NoRoom => Some("no_room"),
            _ => None,
        }
    }

    /// The kind that was stored as `self` and a finer word. A word of a newer version changes
    /// nothing.
    #[must_use]
    pub fn with_refusal(self, word: Option<&str>) -> Self {
        let finer = Self::FINER_REFUSALS;
        finer
            .into_iter()
            .find(|kind| self == Self::Refused && word.is_some() && kind.refusal() == word)
            .unwrap_or(self)
    }

    /// Whether it is [`ErrorKind::Refused`] or one of its finer kinds.
    pub const fn is_refusal(self) -> bool {
        matches!(self, Self::Refused) || self.refusal().is_some()
    }

    /// The kind of a refusal because of an error of this kind: the same if it is a refusal.
    #[must_use]
    pub const fn as_refusal(self) -> Self {
        if self.is_refusal() {
            self
        } else {
            Self::Refused
        }
    }

    /// The kind of refusal that the status of an HTTP answer names.
    pub const fn refusal_of_status(status: u16) -> Self {
        match status {
            401 | 403 => Self::Denied,
            405 => Self::Unsupported,
            409 | 412 => Self::Conflict,
            413 => Self::TooLarge,
            507 => Self::NoRoom,
            _ => Self::Refused,
        }
    }

    /// The kind of refusal that an error of the operating system is.
    pub fn refusal_of_io(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::PermissionDenied => Self::Denied,
            io::ErrorKind::Unsupported => Self::Unsupported,
            io::ErrorKind::FileTooLarge => Self::TooLarge,
            io::ErrorKind::AddrInUse
            | io::ErrorKind::AlreadyExists
            | io::ErrorKind::DirectoryNotEmpty
            | io::ErrorKind::ExecutableFileBusy
            | io::ErrorKind::IsADirectory
            | io::ErrorKind::NotADirectory
            | io::ErrorKind::ResourceBusy => Self::Conflict,
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::NoRoom,
            _ => Self::Refused,
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
    blames_network: bool,
    about: Option<Box<About>>,
}

/// The part of a job file that an error is about.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct About {
    /// The keys that lead to it, joined by dots: `resources.time`.
    pub key: Option<String>,
    /// Line and column, both from 1.
    pub place: Option<(usize, usize)>,
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
            blames_network: false,
            about: None,
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
    pub fn denied(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Denied, message)
    }
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unsupported, message)
    }
    pub fn too_large(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::TooLarge, message)
    }
    pub fn conflict(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Conflict, message)
    }
    pub fn no_room(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::NoRoom, message)
    }
    /// A refusal by the operating system. Its error is the source and gives the kind.
    pub fn from_io(message: impl Into<String>, error: io::Error) -> Self {
        Self::new(ErrorKind::refusal_of_io(&error), message).source_error(error)
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
    /// Names the key of the job file that it is about, if none is named yet.
    #[must_use]
    pub fn about(mut self, key: impl Into<String>) -> Self {
        let about = self.about.get_or_insert_default();
        about.key.get_or_insert_with(|| key.into());
        self
    }
    /// Names the line and the column of the job file.
    #[must_use]
    pub fn at_place(mut self, line: usize, column: usize) -> Self {
        self.about.get_or_insert_default().place = Some((line, column));
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
    /// Says whether the hints name the network between here and there as a possible reason: a VPN
    /// that is off, a firewall, a rule about addresses.
    #[must_use]
    pub fn blame_network(mut self, blames: bool) -> Self {
        self.blames_network = blames;
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
        self.with_hints_on(Self::unreachable(self.to_string()))
    }

    /// A copy for another caller: kind, message and hints. The message includes the source.
    #[must_use]
    pub fn again(&self) -> Self {
        self.with_hints_on(Self::new(self.kind, self.to_string()))
    }

    /// Another error with the hints of this one.
    fn with_hints_on(&self, mut other: Self) -> Self {
        other.hints.clone_from(&self.hints);
        other.about.clone_from(&self.about);
        other.blame_network(self.blames_network)
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
    /// The part of the job file that it is about.
    pub fn subject(&self) -> Option<&About> {
        self.about.as_deref()
    }
    /// Whether a hint already names the network as a possible reason.
    pub const fn blames_network(&self) -> bool {
        self.blames_network
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finer_refusal_is_stored_beside_the_word_that_every_version_reads() {
        for (kind, finer) in [
            (ErrorKind::Refused, None),
            (ErrorKind::Denied, Some("denied")),
            (ErrorKind::Unsupported, Some("unsupported")),
            (ErrorKind::TooLarge, Some("too_large")),
            (ErrorKind::Conflict, Some("conflict")),
            (ErrorKind::NoRoom, Some("no_room")),
        ] {
            let stored = serde_json::to_value(kind).expect("it encodes");
            assert_eq!(
                (stored.as_str(), kind.word(), kind.exit_code()),
                (Some("refused"), "refused", 123)
            );
            assert_eq!(kind.refusal(), finer);
            let read: ErrorKind = serde_json::from_value(stored).expect("it is read");
            assert_eq!(read, ErrorKind::Refused);
            assert_eq!(read.with_refusal(finer), kind);
            assert!(kind.is_refusal() && kind.as_refusal() == kind);
        }
    }

    #[test]
    fn other_kinds_have_no_finer_word_and_words_of_newer_versions_are_passed_over() {
        let other = ErrorKind::NotFound;
        assert!(other.refusal().is_none() && !other.is_refusal());
        assert_eq!(other.as_refusal(), ErrorKind::Refused);
        assert_eq!(other.with_refusal(Some("denied")), other);
        let newer = ErrorKind::Refused.with_refusal(Some("tired"));
        assert_eq!(newer, ErrorKind::Refused);
        assert!(serde_json::from_str::<ErrorKind>(r#""denied""#).is_err());
    }

    #[test]
    fn a_copy_has_the_hints_and_what_they_blame() {
        let error = Error::refused("no").hint("is the VPN on?");
        assert!(!error.again().blames_network());
        let error = error.blame_network(true);
        for copy in [error.again(), error.as_unknown()] {
            assert!(copy.blames_network());
            assert_eq!(copy.hints(), error.hints());
        }
    }

    #[test]
    fn an_error_of_the_system_gives_the_kind() {
        for (of_system, kind) in [
            (io::ErrorKind::PermissionDenied, ErrorKind::Denied),
            (io::ErrorKind::StorageFull, ErrorKind::NoRoom),
            (io::ErrorKind::QuotaExceeded, ErrorKind::NoRoom),
            (io::ErrorKind::AlreadyExists, ErrorKind::Conflict),
            (io::ErrorKind::NotFound, ErrorKind::Refused),
        ] {
            let error = Error::from_io("x cannot be written", of_system.into());
            assert_eq!(error.kind(), kind);
            assert!(
                error.to_string().starts_with("x cannot be written: "),
                "{error}"
            );
        }
    }

    #[test]
    fn advice_and_context_are_told_as_they_were_given() {
        let error = Error::unreachable("no answer");
        assert_eq!(error.retry_advice(), error.retry);
        let named = Error::refused("no").with("cluster", "a100");
        assert_eq!(named.context(), [("cluster", "a100".to_owned())]);
        assert!(error.context().is_empty());
    }
}
