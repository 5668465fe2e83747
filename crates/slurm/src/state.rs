//! Slurm's states and exit codes in Towline's terms. An unknown state is never an ending.

use towline_core::obstacle::Obstacle;
use towline_core::reason::{Cause, Ending, signal_name};

/// The meaning of a Slurm state for a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Native {
    Waiting,
    /// It has its nodes; also while it is suspended or being cleaned up.
    Running,
    /// Without a cause it succeeded.
    Ended(Option<Cause>),
    /// Slurm's state: newer than this program, or one that says nothing about this cluster's job.
    Unknown(String),
}

impl Native {
    pub const fn is_ended(&self) -> bool {
        matches!(self, Self::Ended(_))
    }
    /// The name in our own vocabulary.
    pub const fn word(&self) -> Option<&'static str> {
        Some(match self {
            Self::Waiting => "queued",
            Self::Running => "running",
            Self::Ended(None) => "succeeded",
            Self::Ended(Some(Cause::ByUser)) => "cancelled",
            Self::Ended(Some(_)) => "failed",
            Self::Unknown(_) => return None,
        })
    }
}

/// The state, its short form, and its meaning.
///
/// `COMPLETING` hides how the job ended, and its processes may still be alive: it is not an end
/// yet. `CONFIGURING` means that nodes are still booting. `REQUEUED`, `SPECIAL_EXIT` and the holds
/// follow a start that ended; the job itself waits. A `REVOKED` job runs on a sibling cluster.
const WORDS: &[(&str, &str, Meaning)] = &[
    ("PENDING", "PD", Meaning::Waiting),
    ("CONFIGURING", "CF", Meaning::Waiting),
    ("REQUEUED", "RQ", Meaning::Waiting),
    ("REQUEUED_CRON", "", Meaning::Waiting),
    ("REQUEUE_FED", "RF", Meaning::Waiting),
    ("REQUEUE_HOLD", "RH", Meaning::Waiting),
    ("RESV_DEL_HOLD", "RD", Meaning::Waiting),
    ("SPECIAL_EXIT", "SE", Meaning::Waiting),
    ("POWER_UP_NODE", "", Meaning::Waiting),
    ("EXPEDITING", "", Meaning::Waiting),
    ("RUNNING", "R", Meaning::Running),
    ("COMPLETING", "CG", Meaning::Running),
    ("RESIZING", "RS", Meaning::Running),
    ("SIGNALING", "SI", Meaning::Running),
    ("STAGE_OUT", "SO", Meaning::Running),
    ("STOPPED", "ST", Meaning::Running),
    ("SUSPENDED", "S", Meaning::Running),
    ("COMPLETED", "CD", Meaning::Well),
    ("FAILED", "F", Meaning::Ended(Cause::ExitCode)),
    ("CANCELLED", "CA", Meaning::Ended(Cause::ByUser)),
    ("TIMEOUT", "TO", Meaning::Ended(Cause::TimeLimit)),
    ("DEADLINE", "DL", Meaning::Ended(Cause::TimeLimit)),
    ("NODE_FAIL", "NF", Meaning::Ended(Cause::NodeFailed)),
    ("BOOT_FAIL", "BF", Meaning::Ended(Cause::NodeFailed)),
    ("PREEMPTED", "PR", Meaning::Ended(Cause::Preempted)),
    ("OUT_OF_MEMORY", "OOM", Meaning::Ended(Cause::OutOfMemory)),
    ("REVOKED", "RV", Meaning::Nothing),
    // Flags that only the REST API shows, always beside another state.
    ("LAUNCH_FAILED", "", Meaning::Nothing),
    ("RECONFIG_FAIL", "", Meaning::Nothing),
    ("UPDATE_DB", "", Meaning::Nothing),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    Waiting,
    Running,
    Well,
    Ended(Cause),
    Nothing,
}

/// Reads a state of `squeue`, `sacct` or `scontrol`: `RUNNING`, `CG`, `CANCELLED by 1001`, the
/// truncated `OUT_OF_ME+`, or several together (`FAILED+LAUNCH_FAILED`), of which the one farthest
/// from an end counts.
pub fn native(state: &str) -> Native {
    let state = state.trim();
    let word = state
        .split_once(" by ")
        .map_or(state, |(word, _)| word)
        .trim();
    let meanings: Vec<Meaning> = match word.strip_suffix('+') {
        Some(cut) => truncated(cut).into_iter().collect(),
        None => word
            .split(['+', ','])
            .map(|part| meaning(part.trim()))
            .collect::<Option<_>>()
            .unwrap_or_default(),
    };
    let has = |wanted: Meaning| meanings.contains(&wanted);
    if has(Meaning::Waiting) {
        return Native::Waiting;
    }
    if has(Meaning::Running) {
        return Native::Running;
    }
    let end = meanings.iter().find_map(|meaning| match meaning {
        Meaning::Ended(cause) => Some(Native::Ended(Some(*cause))),
        Meaning::Well => Some(Native::Ended(None)),
        _ => None,
    });
    end.unwrap_or_else(|| Native::Unknown(state.to_owned()))
}

fn meaning(word: &str) -> Option<Meaning> {
    WORDS
        .iter()
        .find(|(long, short, _)| !word.is_empty() && (*long == word || *short == word))
        .map(|(_, _, meaning)| *meaning)
}

/// The meaning of a state that a narrow column cut, if only one state begins so.
fn truncated(cut: &str) -> Option<Meaning> {
    if let Some(whole) = meaning(cut) {
        return Some(whole);
    }
    let mut fitting = WORDS
        .iter()
        .filter(|(long, _, _)| cut.len() >= 4 && long.starts_with(cut))
        .map(|(_, _, meaning)| *meaning);
    let first = fitting.next()?;
    fitting.all(|other| other == first).then_some(first)
}

/// The user id in `CANCELLED by 1001`.
pub fn cancelled_by(state: &str) -> Option<u32> {
    state
        .split_once(" by ")
        .and_then(|(_, user)| user.trim().parse().ok())
}

/// Slurm's `code:signal`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ExitPair {
    pub code: i32,
    pub signal: i32,
}

impl ExitPair {
    pub fn read(text: &str) -> Option<Self> {
        let (code, signal) = text.trim().split_once(':')?;
        Some(Self {
            code: code.parse().ok()?,
            signal: signal.parse().ok()?,
        })
    }

    /// The code that a shell would show: the exit code, or 128+n. `0:125` and the like, which Slurm
    /// invents for memory, are not signals.
    pub fn passed_code(self) -> i32 {
        match self.signal {
            1..=64 => 128 + self.signal,
            _ => self.code,
        }
    }
}

/// How a job ended, from its state, exit pair and reason; none while it has not.
///
/// Two failures are not the job's own. Slurm stores a job that `sbatch` was refused as `FAILED`
/// with `BadConstraints`; its pair, `0:1` or `1:0`, means nothing. It sets `0:53` if the output
/// file could not be opened. [`cancelled_by`] recognises a job that somebody else cancelled
/// (`CANCELLED by 0`).
pub fn ending(state: &str, exit: ExitPair, reason: Option<&str>) -> Option<Ending> {
    let Native::Ended(cause) = native(state) else {
        return None;
    };
    let failed = |cause, exit_code| Ending {
        cause: Some(cause),
        exit_code,
        ..Ending::default()
    };
    Some(match (cause, exit.signal, reason) {
        (None, ..) => Ending::success(),
        (Some(Cause::ExitCode), _, Some("BadConstraints")) => {
            failed(Cause::Rejected, None).detail("no node has what it asks for")
        }
        // The controller reports the same without a pair: `RaisedSignal:53(Real-time_signal_19)`.
        (Some(Cause::ExitCode), 53, _)
        | (
            Some(Cause::ExitCode),
            0,
            Some("RaisedSignal:53(Real-time_signal_19)" | "RaisedSignal:53"),
        ) => Ending::not_started(
            "its output file could not be opened on the \
                node: is `stage` a folder that all hosts share?",
            Some(Obstacle::StageNotShared),
        ),
        (Some(Cause::ExitCode), signal @ 1..=64, _) => {
            failed(Cause::Signal, Some(exit.passed_code())).detail(signal_name(signal))
        }
        (Some(Cause::ExitCode), ..) if exit.code != 0 => failed(Cause::ExitCode, Some(exit.code)),
        (Some(Cause::ExitCode), _, Some(reason)) if reason.contains("JobLaunchFailure") => {
            failed(Cause::NotStarted, None)
        }
        (Some(cause), ..) => Ending::cause(cause),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_of_slurm_has_a_meaning() {
        for (word, expected) in [
            ("PENDING", Native::Waiting),
            ("CF", Native::Waiting),
            ("SPECIAL_EXIT", Native::Waiting),
            ("R", Native::Running),
            ("RUNNING+", Native::Running),
            ("COMPLETING", Native::Running),
            ("COMPLETED", Native::Ended(None)),
            ("CANCELLED by 1001", Native::Ended(Some(Cause::ByUser))),
            ("CANCELLED+", Native::Ended(Some(Cause::ByUser))),
            ("COMPLETING by 1001", Native::Running),
            ("OUT_OF_ME+", Native::Ended(Some(Cause::OutOfMemory))),
            ("DEADLINE", Native::Ended(Some(Cause::TimeLimit))),
            ("BOOT_FAIL", Native::Ended(Some(Cause::NodeFailed))),
            ("PREEMPTED", Native::Ended(Some(Cause::Preempted))),
            ("FAILED+LAUNCH_FAILED", Native::Ended(Some(Cause::ExitCode))),
            ("PENDING,LAUNCH_FAILED", Native::Waiting),
            ("FAILED,COMPLETING", Native::Running),
            ("REQUEUE_+", Native::Waiting),
        ] {
            assert_eq!(native(word), expected, "{word}");
        }
    }

    #[test]
    fn an_unknown_word_is_no_ending() {
        for word in [
            "",
            "?",
            "COMPLET+",
            "DONE",
            "FAILED_NEWLY",
            "COMPLETED,SOMETHING",
            "REVOKED",
            "LAUNCH_FAILED",
            "C+",
            "completed",
            "+",
            ",",
            " by 3",
        ] {
            assert_eq!(native(word), Native::Unknown(word.trim().into()), "{word}");
        }
    }

    #[test]
    fn exit_pairs_become_codes_and_signals() {
        let with = |state: &str, pair: &str, reason| {
            ending(state, ExitPair::read(pair).expect(pair), reason)
                .map(|ending| (ending.cause, ending.exit_code))
        };
        let of = |state: &str, pair: &str| with(state, pair, None);
        assert_eq!(of("COMPLETED", "0:0"), Some((None, Some(0))));
        assert_eq!(of("FAILED", "3:0"), Some((Some(Cause::ExitCode), Some(3))));
        assert_eq!(of("FAILED", "0:9"), Some((Some(Cause::Signal), Some(137))));
        assert_eq!(
            of("CANCELLED by 20001", "0:15"),
            Some((Some(Cause::ByUser), Some(143)))
        );
        assert_eq!(
            of("OUT_OF_MEMORY", "0:125"),
            Some((Some(Cause::OutOfMemory), None))
        );
        assert_eq!(of("RUNNING", "0:0"), None);
        assert_eq!(
            with("FAILED", "0:9", Some("JobLaunchFailure")),
            Some((Some(Cause::Signal), Some(137))),
            "its shell was killed"
        );
        assert_eq!(
            with("FAILED", "0:53", Some("JobLaunchFailure")),
            Some((Some(Cause::NotStarted), None))
        );
        let unopened = ExitPair::read("0:53").and_then(|pair| ending("FAILED", pair, None));
        assert_eq!(
            unopened.and_then(|ending| ending.obstacle),
            Some(Obstacle::StageNotShared)
        );
        assert_eq!(
            with("FAILED", "0:1", Some("BadConstraints")),
            Some((Some(Cause::Rejected), None))
        );
        assert_eq!(cancelled_by("CANCELLED by 20001"), Some(20_001));
        assert_eq!(ExitPair::read("0:125").map(ExitPair::passed_code), Some(0));
        for text in ["", "1", ":", "a:b", "99999999999:0"] {
            assert_eq!(ExitPair::read(text), None, "{text}");
        }
    }
}
