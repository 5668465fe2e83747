//! What the tools take. The descriptions are read by agents.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Takes nothing.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Nothing {}

/// Which runs to list.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct List {
    /// Only these states: queued, running, succeeded, failed, cancelled, lost, active, ended.
    pub states: Vec<String>,
    /// Only runs with all of these words in their id, name, command, experiment or tags.
    pub text: String,
    /// At most this many, newest first [default: 20; at most 200].
    pub limit: Option<u32>,
}

/// A run.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OneRun {
    /// The id of a run or of a sweep, or the end of one.
    pub run: String,
}

/// A run to wait for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Wait {
    /// The id of a run or of a sweep, or the end of one.
    pub run: String,
    /// Give up after so many seconds [default: 60; at most 600]. The run goes on.
    #[serde(default)]
    pub seconds: Option<u32>,
}

/// Which lines of a log.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Logs {
    /// The id of a run, or the end of one.
    pub run: String,
    /// The rank [default: 0].
    #[serde(default)]
    pub rank: Option<u32>,
    /// The attempt [default: the latest].
    #[serde(default)]
    pub attempt: Option<u32>,
    /// The number of the first line, from 0 [default: so that the last line is the end of the log].
    #[serde(default)]
    pub from: Option<u64>,
    /// At most this many lines [default: 100; at most 1,000].
    #[serde(default)]
    pub lines: Option<u32>,
    /// Instead of the lines: the numbers of those that contain this text.
    #[serde(default)]
    pub search: Option<String>,
}

/// A job.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// The program and its arguments, each a text of its own; no shell. For a shell, `sh`, `-c` and
    /// the line. `${{name}}` stands for a value of the sweep.
    pub command: Vec<String>,
    /// The cluster.
    pub cluster: String,
    /// The time limit, such as 30m or 2h. GPUs × time is reserved from the budget.
    pub time: String,
    /// GPUs in all [default: what the cluster's configuration says, else none].
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default)]
    pub gpus: Option<u32>,
    /// The number of nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default)]
    pub nodes: Option<u32>,
    /// CPUs per node.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default)]
    pub cpus: Option<u32>,
    /// Memory per node, such as 16G.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default)]
    pub memory: Option<String>,
    /// The kind of machine, in the cluster's own word.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default)]
    pub instance_type: Option<String>,
    /// premium, standard or basic.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default)]
    pub tier: Option<String>,
    /// The name of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default)]
    pub name: Option<String>,
    /// The experiment that it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default)]
    pub experiment: Option<String>,
    /// Tags, without commas or blanks.
    #[serde(rename = "tag", skip_serializing_if = "Vec::is_empty")]
    #[serde(default, alias = "tags")]
    pub tags: Vec<String>,
    /// Variables for the job, each NAME=VALUE.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[serde(default)]
    pub env: Vec<String>,
    /// Values to try, one run each: "lr=0.1,0.01". Each run is reserved.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[serde(default)]
    pub sweep: Vec<String>,
    /// Begin only when these runs have succeeded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[serde(default)]
    pub after: Vec<String>,
}
