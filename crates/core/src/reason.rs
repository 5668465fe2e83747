//! Why an attempt ended, kept apart from the state it ended in.

use crate::ErrorKind;
use crate::obstacle::{self, Obstacle};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The class of an ending: what `retry.when` names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// A rank exited with a code other than 0.
    ExitCode,
    /// A rank was ended by a signal.
    Signal,
    OutOfMemory,
    TimeLimit,
    Preempted,
    NodeFailed,
    ImagePull,
    SetUp,
    /// Its input could not be downloaded, or its output could not be collected.
    Data,
    /// The program could not be started.
    NotStarted,
    Rejected,
    ByUser,
    /// A run that it waited for did not end as it had to.
    Dependency,
}

impl Cause {
    pub const fn word(self) -> &'static str {
        match self {
            Self::ExitCode => "exit_code",
            Self::Signal => "signal",
            Self::OutOfMemory => "out_of_memory",
            Self::TimeLimit => "time_limit",
            Self::Preempted => "preempted",
            Self::NodeFailed => "node_failed",
            Self::ImagePull => "image_pull",
            Self::SetUp => "set_up",
            Self::Data => "data",
            Self::NotStarted => "not_started",
            Self::Rejected => "rejected",
            Self::ByUser => "by_user",
            Self::Dependency => "dependency",
        }
    }

    /// Whether the job itself failed, so that its nodes are worth keeping for inspection. The other
    /// causes come from the cluster, the time limit or the user.
    pub const fn is_own_failure(self) -> bool {
        matches!(
            self,
            Self::ExitCode
                | Self::Signal
                | Self::OutOfMemory
                | Self::SetUp
                | Self::NotStarted
                | Self::ImagePull
                | Self::Data
        )
    }
}

/// The first rank that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RankFailure {
    /// The rank.
    pub rank: u32,
    /// The node that had it.
    pub node: u32,
    /// The exit code of its program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
}

/// How an attempt ended. `cause` is absent when it ended well.
#[derive(Debug, Clone, PartialEq, Eq, Default, JsonSchema)]
pub struct Ending {
    /// Why it did not end well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// The exit code of `tow run`: the program's code, or 128+n for a signal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The rank that failed first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_failure: Option<RankFailure>,
    /// One line for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Why something that the run wrote has not reached its datastore, beside the cause. It stays
    /// in the run's folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uncollected: Option<String>,
    /// The error, where the cluster refused the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<Box<Refusal>>,
    /// What kept the program from starting, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub obstacle: Option<Obstacle>,
}

/// The error by which a cluster refused a run, beside its message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "StoredRefusal", into = "StoredRefusal")]
pub struct Refusal {
    pub kind: ErrorKind,
    pub hints: Vec<String>,
}

/// The error by which a cluster refused a run, beside its message.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename = "Refusal")]
struct StoredRefusal {
    /// The class of the error.
    kind: ErrorKind,
    /// Why it was refused, where that is known: `denied`, `unsupported`, `too_large`, `conflict` or
    /// `no_room`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    refusal: Option<String>,
    /// What the user can do about it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    hints: Vec<String>,
}

impl From<StoredRefusal> for Refusal {
    fn from(stored: StoredRefusal) -> Self {
        Self {
            kind: stored.kind.with_refusal(stored.refusal.as_deref()),
            hints: stored.hints,
        }
    }
}

impl From<Refusal> for StoredRefusal {
    fn from(refusal: Refusal) -> Self {
        Self {
            kind: refusal.kind,
            refusal: refusal.kind.refusal().map(str::to_owned),
            hints: refusal.hints,
        }
    }
}

/// An ending as it is stored: the detail carries the hints too, because earlier versions read them
/// there.
#[derive(Serialize, Deserialize)]
#[serde(rename = "Ending")]
struct StoredEnding {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cause: Option<Cause>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    first_failure: Option<RankFailure>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    uncollected: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    refusal: Option<Box<Refusal>>,
    #[serde(
        default,
        deserialize_with = "obstacle::read_word",
        skip_serializing_if = "Option::is_none"
    )]
    obstacle: Option<Obstacle>,
}

/// Stands before each hint in a stored detail.
const HINT_SEPARATOR: &str = "\nhint: ";

impl Serialize for Ending {
    fn serialize<S: serde::Serializer>(&self, target: S) -> Result<S::Ok, S::Error> {
        let join = |text: String, hint: &String| format!("{text}{HINT_SEPARATOR}{hint}");
        let detail = self.detail.clone();
        StoredEnding {
            cause: self.cause,
            exit_code: self.exit_code,
            first_failure: self.first_failure.clone(),
            detail: detail.map(|detail| self.hints().iter().fold(detail, join)),
            uncollected: self.uncollected.clone(),
            refusal: self.refusal.clone(),
            obstacle: self.obstacle,
        }
        .serialize(target)
    }
}

impl<'de> Deserialize<'de> for Ending {
    fn deserialize<D: serde::Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        let stored = StoredEnding::deserialize(source)?;
        let mut parts = stored
            .detail
            .iter()
            .flat_map(|text| text.split(HINT_SEPARATOR));
        let detail = parts.next().map(str::to_owned);
        let hints: Vec<String> = parts.map(str::to_owned).collect();
        let kinds = [ErrorKind::Config, ErrorKind::NotFound, ErrorKind::Refused];
        // An earlier version stored the kind as the exit code alone, and hints behind any detail.
        let by_code = kinds
            .into_iter()
            .find(|kind| stored.exit_code == Some(kind.exit_code().into()));
        let has_refusal = stored.cause == Some(Cause::Rejected) || !hints.is_empty();
        let by_detail = has_refusal.then(|| {
            Box::new(Refusal {
                kind: by_code.unwrap_or(ErrorKind::Refused),
                hints,
            })
        });
        Ok(Self {
            cause: stored.cause,
            exit_code: stored.exit_code,
            first_failure: stored.first_failure,
            detail,
            uncollected: stored.uncollected,
            refusal: stored.refusal.or(by_detail),
            obstacle: stored.obstacle,
        })
    }
}

impl Ending {
    pub fn success() -> Self {
        Self {
            exit_code: Some(0),
            ..Self::default()
        }
    }
    pub fn cause(cause: Cause) -> Self {
        let exit_code = matches!(cause, Cause::ByUser | Cause::Dependency).then_some(143);
        Self {
            cause: Some(cause),
            exit_code,
            ..Self::default()
        }
    }
    #[must_use]
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }
    /// A refusal, with the kind and the hints of its error.
    pub fn rejected(error: &crate::Error) -> Self {
        Self {
            exit_code: Some(error.kind().exit_code().into()),
            refusal: Some(Box::new(Refusal {
                kind: error.kind(),
                hints: error.hints().to_vec(),
            })),
            ..Self::cause(Cause::Rejected)
        }
        .detail(error.to_string())
    }
    /// The end of an attempt whose program never ran.
    pub fn not_started(why: impl Into<String>, obstacle: Option<Obstacle>) -> Self {
        Self {
            obstacle,
            ..Self::cause(Cause::NotStarted)
        }
        .detail(why)
    }
    /// What kept the program from starting. An ending without the field may come from a version
    /// that had none, so its detail is read.
    pub fn known_obstacle(&self) -> Option<Obstacle> {
        let detail = self.detail.as_deref();
        let is_old = self.obstacle.is_none() && self.cause == Some(Cause::NotStarted);
        self.obstacle
            .or_else(|| Obstacle::named_in(detail.filter(|_| is_old)?))
    }
    /// What the user can do about a refusal.
    pub fn hints(&self) -> &[String] {
        self.refusal.as_ref().map_or(&[], |refusal| &refusal.hints)
    }
    /// Adds that something the run wrote was not collected. The first cause remains; without one,
    /// this is the cause.
    #[must_use]
    pub fn with_uncollected(mut self, why: Option<&str>) -> Self {
        match (why, self.cause) {
            (None, _) => self,
            (Some(why), None) => Self::cause(Cause::Data).detail(why),
            (Some(why), Some(_)) => {
                self.uncollected.get_or_insert_with(|| why.to_owned());
                self
            }
        }
    }
    pub const fn outcome(&self) -> Outcome {
        match self.cause {
            None => Outcome::Succeeded,
            Some(Cause::ByUser | Cause::Dependency) => Outcome::Cancelled,
            Some(_) => Outcome::Failed,
        }
    }
    /// The exit code of `run` and `wait`.
    pub fn passed_code(&self) -> i32 {
        match (self.cause, self.exit_code) {
            (None, _) => 0,
            (Some(_), Some(code)) if code != 0 => code,
            (Some(_), _) => 1,
        }
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.cause, &self.first_failure) {
            (None, _) => f.write_str("ended well")?,
            (
                Some(Cause::ExitCode),
                Some(RankFailure {
                    rank,
                    exit_code: Some(code),
                    ..
                }),
            ) => write!(f, "rank {rank} left with code {code}")?,
            (
                Some(Cause::Signal),
                Some(RankFailure {
                    rank,
                    signal: Some(signal),
                    ..
                }),
            ) => {
                write!(f, "rank {rank} was ended by {}", signal_name(*signal))?;
            }
            (Some(cause), _) => f.write_str(match cause {
                Cause::ExitCode => "left with an error code",
                Cause::Signal => "ended by a signal",
                Cause::OutOfMemory => "out of memory",
                Cause::TimeLimit => "the time limit passed",
                Cause::Preempted => "preempted",
                Cause::NodeFailed => "the node or the runner failed",
                Cause::ImagePull => "the image could not be used",
                Cause::SetUp => "set-up failed",
                Cause::Data => "its data did not arrive",
                Cause::NotStarted => "could not be started",
                Cause::Rejected => "rejected by the cluster",
                Cause::ByUser => "cancelled by the user",
                Cause::Dependency => "never started: a run before it did not end as it had to",
            })?,
        }
        if let Some(detail) = &self.detail {
            write!(f, " ({detail})")?;
        }
        match &self.uncollected {
            Some(why) => write!(f, "; not all that it wrote was collected: {why}"),
            None => Ok(()),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Succeeded,
    Failed,
    Cancelled,
    Lost,
}

impl Outcome {
    pub const fn word(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Lost => "lost",
        }
    }
}

/// `SIGKILL` for 9, `signal 64` for one without a common name.
pub fn signal_name(signal: i32) -> String {
    let name = match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        24 => "SIGXCPU",
        25 => "SIGXFSZ",
        31 => "SIGSYS",
        _ => return format!("signal {signal}"),
    };
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;

    #[test]
    fn an_obstacle_is_stored_and_an_old_ending_is_known_by_its_text() {
        let ending = Ending::not_started("`stage` is full", Some(Obstacle::NoRoom));
        let stored = serde_json::to_value(&ending).expect("it encodes");
        assert_eq!(stored["obstacle"], "no_room");
        let read = |json: serde_json::Value| -> Ending {
            serde_json::from_value(json).expect("it is read")
        };
        let mut other = stored.clone();
        assert_eq!(read(stored), ending);
        assert_eq!(ending.known_obstacle(), Some(Obstacle::NoRoom));
        other["obstacle"] = "flood".into();
        assert_eq!(read(other).obstacle, None);
        let old = serde_json::json!({"cause": "not_started", "detail": "is `stage` shared?"});
        let old = read(old);
        assert_eq!(old.obstacle, None);
        assert_eq!(old.known_obstacle(), Some(Obstacle::StageNotShared));
        let other = Ending::cause(Cause::ExitCode).detail("No space left");
        assert_eq!(other.known_obstacle(), None);
    }

    #[test]
    fn a_finer_refusal_is_read_back_and_an_older_version_reads_a_plain_one() {
        let error = Error::too_large("9 nodes are too many").hint("ask for fewer");
        let stored = serde_json::to_value(Ending::rejected(&error)).expect("it encodes");
        assert_eq!(
            stored["refusal"],
            serde_json::json!({"kind": "refused", "refusal": "too_large", "hints": ["ask for fewer"]})
        );
        let kind = |json: serde_json::Value| {
            let read: Ending = serde_json::from_value(json).expect("it is read");
            read.refusal.map(|refusal| refusal.kind)
        };
        let mut older = stored.clone();
        assert_eq!(kind(stored), Some(ErrorKind::TooLarge));
        older["refusal"] = serde_json::json!({"kind": "refused"});
        assert_eq!(kind(older), Some(ErrorKind::Refused));
        let oldest = serde_json::json!({"cause": "rejected", "exit_code": 123, "detail": "no"});
        assert_eq!(kind(oldest), Some(ErrorKind::Refused));
    }

    #[test]
    fn only_what_the_job_did_is_its_own_failure() {
        let own = [
            Cause::ExitCode,
            Cause::Signal,
            Cause::OutOfMemory,
            Cause::SetUp,
            Cause::NotStarted,
            Cause::ImagePull,
            Cause::Data,
        ];
        assert!(own.into_iter().all(Cause::is_own_failure));
        let foreign = [
            Cause::TimeLimit,
            Cause::Preempted,
            Cause::NodeFailed,
            Cause::Rejected,
            Cause::ByUser,
        ];
        assert!(!foreign.into_iter().any(Cause::is_own_failure));
    }

    #[test]
    fn a_failure_never_passes_on_a_zero() {
        let failed = |exit_code| Ending {
            exit_code,
            ..Ending::cause(Cause::ExitCode)
        };
        assert_eq!(Ending::success().passed_code(), 0);
        assert_eq!(failed(Some(7)).passed_code(), 7);
        assert_eq!(failed(Some(0)).passed_code(), 1);
        assert_eq!(failed(None).passed_code(), 1);
    }

    #[test]
    fn signals_have_their_usual_names() {
        let names = "1 HUP 2 INT 3 QUIT 4 ILL 6 ABRT 7 BUS 8 FPE 9 KILL 11 SEGV 13 PIPE 14 ALRM \
            15 TERM 24 XCPU 25 XFSZ 31 SYS";
        let words: Vec<&str> = names.split_whitespace().collect();
        for pair in words.chunks(2) {
            let number = pair[0].parse().expect("a number");
            assert_eq!(signal_name(number), format!("SIG{}", pair[1]));
        }
        assert_eq!(signal_name(64), "signal 64");
    }
}
