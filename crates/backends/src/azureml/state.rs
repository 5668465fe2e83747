//! The service's names of a job's state, and their meaning for a run.

use serde_json::Value;
use towline_core::reason::{Cause, Ending};
use towline_core::time::Moment;

/// The meaning of such a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NativeState {
    /// Nothing runs yet, or the platform has paused it.
    Waiting,
    Running,
    /// Its processes have ended, and the service saves their results.
    Finalizing,
    /// It was cancelled and has not ended yet.
    Cancelling,
    Completed,
    Failed,
    Canceled,
    /// The service knows nothing of it, or uses a name that this version does not know.
    Unknown,
}

impl NativeState {
    pub(super) const fn is_final(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Canceled)
    }
    /// The name in our own vocabulary.
    pub(super) const fn word(self) -> Option<&'static str> {
        Some(match self {
            Self::Waiting => "queued",
            Self::Running | Self::Finalizing | Self::Cancelling => "running",
            Self::Completed => "succeeded",
            Self::Failed => "failed",
            Self::Canceled => "cancelled",
            Self::Unknown => return None,
        })
    }
}

/// All names that the service uses. For Kubernetes the truth is in a tag: a running job may be
/// called queued, and a killed one cancelled.
pub(super) fn native(word: &str, tags: &Value) -> NativeState {
    let tag = tags["amlk8s status"]
        .as_str()
        .unwrap_or_default()
        .to_ascii_lowercase();
    match word {
        "Queued" if tag == "running" => NativeState::Running,
        "Canceled" if matches!(tag.as_str(), "killing" | "failed") => NativeState::Failed,
        // A paused job is started again, so it has not ended.
        "NotStarted" | "Starting" | "Provisioning" | "Preparing" | "Queued" | "Paused" => {
            NativeState::Waiting
        }
        "Running" => NativeState::Running,
        "Finalizing" => NativeState::Finalizing,
        "CancelRequested" => NativeState::Cancelling,
        "Completed" => NativeState::Completed,
        "Failed" => NativeState::Failed,
        "Canceled" => NativeState::Canceled,
        _ => NativeState::Unknown,
    }
}

/// The cause of a failure in run history.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct RunError {
    pub code: String,
    pub message: String,
}

impl RunError {
    pub(super) fn read(error: &Value) -> Option<Self> {
        // The service sometimes nests one error in the other.
        let inner = error
            .get("error")
            .filter(|inner| inner.is_object())
            .unwrap_or(error);
        let message = inner["message"].as_str()?.trim().to_owned();
        Some(Self {
            code: inner["code"].as_str().unwrap_or_default().to_owned(),
            message,
        })
    }
}

/// The ending of a job that recorded none itself, from the service's state.
pub(super) fn ending(state: NativeState, error: Option<&RunError>, is_ours: bool) -> Ending {
    let said = error.map(|error| first_line(&error.message));
    let small = said.as_deref().unwrap_or_default().to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| small.contains(word));
    // Whole words only: `bloom` does not mean out of memory.
    let is_oom = small
        .split(|c: char| !c.is_ascii_alphanumeric())
        .any(|word| matches!(word, "oom" | "oomkilled"));
    let foreign_code = error
        .and_then(|error| exit_code(&error.message))
        .filter(|_| !is_ours && state == NativeState::Failed);
    let timed_out = has(&[
        "time limit",
        "timed out",
        "timeout",
        "maximum run duration",
        "max run duration",
    ]);
    let ending = match state {
        NativeState::Completed if is_ours => Ending::cause(Cause::NodeFailed)
            .detail("the service calls it completed, and its runner left no end record"),
        NativeState::Completed => Ending::success(),
        NativeState::Canceled if timed_out => Ending::cause(Cause::TimeLimit),
        NativeState::Canceled => Ending::cause(Cause::ByUser),
        // The message of another tool's job may contain anything. Its exit code proves that it
        // ended by itself.
        _ if foreign_code.is_some() => Ending {
            exit_code: foreign_code,
            ..Ending::cause(Cause::ExitCode)
        },
        _ if timed_out => Ending::cause(Cause::TimeLimit),
        _ if has(&["preempt", "evict"]) => Ending::cause(Cause::Preempted),
        _ if has(&[
            "pull image",
            "pulling image",
            "image pull",
            "imagepull",
            "docker image",
            "container image",
            "failed to pull",
        ]) =>
        {
            Ending::cause(Cause::ImagePull)
        }
        _ if is_oom || has(&["out of memory"]) => Ending::cause(Cause::OutOfMemory),
        _ if has(&[
            "unusable",
            "node failure",
            "lost the node",
            "unhealthy node",
            "heartbeat",
        ]) =>
        {
            Ending::cause(Cause::NodeFailed)
        }
        _ if is_ours => Ending::cause(Cause::NotStarted),
        _ => Ending::cause(Cause::ExitCode),
    };
    match (said, &ending.detail) {
        (Some(said), None) if ending.cause.is_some() && !said.is_empty() => ending.detail(said),
        _ => ending,
    }
}

fn first_line(text: &str) -> String {
    text.lines()
        .find(|line| !line.trim().is_empty())
        .unwrap_or_default()
        .trim()
        .chars()
        .take(400)
        .collect()
}

/// `… exited with status code 7.`
fn exit_code(message: &str) -> Option<i32> {
    let (_, rest) = ["status code ", "exit code ", "exitcode: "]
        .iter()
        .find_map(|words| {
            message
                .to_ascii_lowercase()
                .find(words)
                .map(|at| message.split_at(at + words.len()))
        })?;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

/// `2026-11-15T06:48:00.1234567Z`, `2026-11-15T06:48:00+00:00`, `2026-11-15 06:48:00`.
pub(super) fn moment(text: &str) -> Option<Moment> {
    use time::format_description::well_known::Rfc3339;
    let text = text.trim().replacen(' ', "T", 1);
    let has_zone =
        text.ends_with(['Z', 'z']) || text.get(19..).is_some_and(|rest| rest.contains(['+', '-']));
    let whole = if has_zone { text } else { format!("{text}Z") };
    let parsed = time::OffsetDateTime::parse(&whole, &Rfc3339).ok()?;
    i64::try_from(parsed.unix_timestamp_nanos() / 1_000_000)
        .ok()
        .map(Moment)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn all_words_of_the_service_have_a_meaning() {
        let none = json!({});
        for word in [
            "NotStarted",
            "Queued",
            "Preparing",
            "Provisioning",
            "Starting",
            "Running",
            "CancelRequested",
            "Finalizing",
            "Completed",
            "Failed",
            "Canceled",
            "Paused",
        ] {
            assert_ne!(native(word, &none), NativeState::Unknown, "{word}");
        }
        for word in ["NotResponding", "Unknown", "SomethingNew", ""] {
            let state = native(word, &none);
            assert!(
                state == NativeState::Unknown && !state.is_final(),
                "ignorance is never an ending: {word}"
            );
        }
        assert!(!native("Paused", &none).is_final(), "a paused job goes on");
    }

    #[test]
    fn kubernetes_says_more_in_its_tags() {
        assert_eq!(
            native("Queued", &json!({"amlk8s status": "running"})),
            NativeState::Running
        );
        assert_eq!(
            native("Canceled", &json!({"amlk8s status": "killing"})),
            NativeState::Failed
        );
        assert_eq!(
            native("Canceled", &json!({"amlk8s status": "Failed"})),
            NativeState::Failed
        );
        assert_eq!(
            native("Canceled", &json!({"amlk8s status": "succeeded"})),
            NativeState::Canceled
        );
    }

    #[test]
    fn an_ending_is_read_from_what_the_service_says() {
        let error = |text: &str| RunError {
            code: "UserError".into(),
            message: text.into(),
        };
        let of = |state, text: &str, ours| ending(state, Some(&error(text)), ours);
        let failed = of(
            NativeState::Failed,
            "Execution failed. User process 'bash' exited with status code 7. Please check log \
                file.",
            false,
        );
        assert_eq!(
            (failed.cause, failed.exit_code),
            (Some(Cause::ExitCode), Some(7))
        );
        let odd = of(
            NativeState::Failed,
            "User process 'bloom --timeout 3' exited with status code 2.",
            false,
        );
        assert_eq!(
            (odd.cause, odd.exit_code),
            (Some(Cause::ExitCode), Some(2)),
            "what it says of itself is no reason of the service"
        );
        assert_eq!(
            of(NativeState::Failed, "Container was OOMKilled", true).cause,
            Some(Cause::OutOfMemory)
        );
        assert_ne!(
            of(NativeState::Failed, "the room is full", true).cause,
            Some(Cause::OutOfMemory)
        );
        assert_eq!(
            of(
                NativeState::Failed,
                "Failed to pull Docker image x/y:z",
                true
            )
            .cause,
            Some(Cause::ImagePull)
        );
        assert_eq!(
            of(
                NativeState::Canceled,
                "The job reached its time limit and was canceled.",
                true
            )
            .cause,
            Some(Cause::TimeLimit)
        );
        assert_eq!(
            ending(NativeState::Canceled, None, true).cause,
            Some(Cause::ByUser)
        );
        assert_eq!(
            ending(NativeState::Completed, None, false),
            Ending::success()
        );
        assert_eq!(
            ending(NativeState::Completed, None, true).cause,
            Some(Cause::NodeFailed)
        );
    }

    #[test]
    fn moments_are_read_in_every_form() {
        for text in [
            "2025-11-15T06:48:00.123Z",
            "2025-11-15T06:48:00.1230000Z",
            "2025-11-15 06:48:00.123",
            "2025-11-15T07:48:00.123+01:00",
        ] {
            assert_eq!(moment(text), Some(Moment(1_763_189_280_123)), "{text}");
        }
        assert_eq!(moment("yesterday"), None);
    }
}
