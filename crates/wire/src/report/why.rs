//! The answers of `tow why`.

use crate::daemon::Explanation;
use schemars::JsonSchema;
use serde::Serialize;
use towline_core::RunId;
use towline_core::counts::PhaseCounts;
use towline_core::why::LogError;

/// Why a run waits, or why it failed, and what to do next.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Why {
    /// The run.
    pub id: RunId,
    /// Its state in one word; `failed, held` if it failed and its nodes are kept.
    pub state: &'static str,
    /// The answer in one sentence.
    pub summary: String,
    /// Why it did not end well: `exit_code`, `signal`, `time_limit`, …
    pub reason: Option<&'static str>,
    /// What kept its program from starting: `no_room`, `code_layout` or `stage_not_shared`. Absent
    /// if it is not known, or the program started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub obstacle: Option<&'static str>,
    /// The rank that failed first.
    pub first_failing_rank: Option<u32>,
    /// The rank whose log shows the cause or the error, or whose log is quoted; null for set-up.
    pub rank: Option<u32>,
    /// What the log shows: `missing_module`, `gpu_out_of_memory`, …; null if no rule knows it.
    pub cause: Option<&'static str>,
    /// The line of the log that shows the cause; if the cause is not known, the error.
    pub evidence: Option<String>,
    /// The error in the log's own words, whether or not its cause is known; null if the log shows
    /// none, or only a line that `evidence` holds.
    pub error: Option<LogError>,
    /// The end of the log, if it shows no error, or one after which the program went on. Absent
    /// otherwise.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub last_lines: Vec<String>,
    /// Whether trying again unchanged can help; null if that is not known.
    pub transient: Option<bool>,
    /// What to do next: a sentence or a command.
    pub next_step: Option<String>,
    /// What a run waits for that has not begun.
    pub waiting: Option<Explanation>,
}

/// Why runs of a sweep failed.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct WhySweep {
    /// The sweep.
    pub id: RunId,
    /// How many runs are in which state, in one sentence.
    pub summary: String,
    /// How many runs are in which state.
    pub states: PhaseCounts,
    /// Its failures, those with the same end together, the largest group first.
    pub failures: Vec<FailureGroup>,
    /// What to do next: a sentence or a command.
    pub next_step: Option<String>,
}

/// Runs of a sweep that failed in the same way.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct FailureGroup {
    /// Why they failed: `exit_code`, `signal`, `time_limit`, …
    pub reason: Option<&'static str>,
    /// The reason in one line.
    pub detail: String,
    /// The runs.
    pub runs: Vec<RunId>,
}
