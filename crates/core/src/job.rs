//! The job file: what the user asks for. Decoded from YAML, stored as JSON, described by a JSON
//! Schema.

mod image;
mod launch;
mod one_or_many;

pub use image::Image;
pub use launch::Launch;
pub use one_or_many::OneOrMany;

use crate::quantity::{Memory, Span};
use crate::sweep::Sweep;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A job: a command or script, with what it needs.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Job {
    /// Shown in lists and part of the run's id. Default: the program's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Groups runs that belong together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub experiment: Option<String>,
    /// The cluster: one name, or several, of which the first that can start it is taken.
    #[serde(skip_serializing_if = "OneOrMany::is_empty")]
    pub cluster: OneOrMany,
    #[serde(skip_serializing_if = "is_default")]
    pub resources: Resources,
    /// How many ranks per node: `per_node` (one), `per_gpu`, `once` (one in all) or a number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub launch: Option<Launch>,
    /// Data of the run, by name; `${{name}}` in the script is its place on the node.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub io: BTreeMap<String, Io>,
    #[serde(skip_serializing_if = "is_default")]
    pub environment: Environment,
    /// `managed:<name or id>`, `user` or `none`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identity: Option<String>,
    #[serde(skip_serializing_if = "is_default")]
    pub code: Code,
    /// Data brought to node-local disk before the start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub copy: Option<Copy>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<RetryPolicy>,
    /// Keep the nodes this long for `tow ssh` when a rank fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hold_on_failure: Option<Span>,
    /// Values to try: one run per combination.
    #[serde(skip_serializing_if = "Sweep::is_empty")]
    pub sweep: Sweep,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// A list of words run as they are, or one line run by `sh -c` when it needs a shell.
    #[serde(skip_serializing_if = "OneOrMany::is_empty")]
    pub command: OneOrMany,
    /// Lines run by `bash -e`, or by their own `#!` line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub script: Option<String>,
}

impl Job {
    /// The command of a job that only keeps its nodes, for `tow ssh`.
    pub fn only_for_ssh() -> OneOrMany {
        OneOrMany::Many(vec!["sleep".into(), "infinity".into()])
    }

    pub fn holds_for_ssh(&self) -> bool {
        self.command == Self::only_for_ssh()
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// The resources of a run, mostly per node.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Resources {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpus_per_node: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus_per_node: Option<u32>,
    /// Per node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<Memory>,
    /// The cluster's own word, passed through.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tier: Option<Tier>,
    #[serde(skip_serializing_if = "OneOrMany::is_empty")]
    pub location: OneOrMany,
    /// The longest an attempt may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<Span>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// Extra options for the cluster, as they are.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub native: Vec<String>,
}

/// `premium` is never evicted, `basic` uses what is left and is evicted, `standard` is between.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Default,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    Basic,
    #[default]
    Standard,
    Premium,
}

impl Tier {
    pub const ALL: [Self; 3] = [Self::Basic, Self::Standard, Self::Premium];

    pub const fn word(self) -> &'static str {
        match self {
            Self::Basic => "basic",
            Self::Standard => "standard",
            Self::Premium => "premium",
        }
    }
}

/// One datastore path given to the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Io {
    pub datastore: String,
    #[serde(default)]
    pub path: String,
    #[serde(default)]
    pub mode: IoMode,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum IoMode {
    Read,
    Write,
    #[default]
    Mount,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Environment {
    /// A container image, or `{nvidia: …, amd: …}` chosen by the node's GPUs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<Image>,
    /// Lines run once per node before the ranks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub setup: Vec<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "BTreeMap<String, Scalar>")]
    pub env: BTreeMap<String, String>,
    /// Names of variables whose values come from the keyring or the environment at submit.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Code {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ignore: Vec<String>,
    /// The folder where commands start, below the code root.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workdir: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Copy {
    pub datastore: String,
    #[serde(default)]
    pub path: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subdirs: Vec<String>,
}

/// Preemption always requeues and does not count; other reasons only when named.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RetryPolicy {
    pub when: Vec<crate::reason::Cause>,
    /// Starts in all, 3 by default. A start that a time limit ended counts only if this is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<u32>,
}

impl RetryPolicy {
    /// The number of starts that count, at most.
    pub fn max_starts(&self) -> u32 {
        self.max.unwrap_or(3)
    }

    /// Whether the job starts again without limit after this cause. With `when: [time_limit]` and no
    /// `max`, a job goes on until it is done.
    pub fn is_unlimited_after(&self, cause: crate::reason::Cause) -> bool {
        cause == crate::reason::Cause::TimeLimit && self.max.is_none() && self.when.contains(&cause)
    }
}

/// For the schema: a text, or a value that YAML writes without quotes.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
enum Scalar {
    Text(String),
    Number(f64),
    Switch(bool),
}

/// The JSON Schema that editors complete job files from.
pub fn schema() -> serde_json::Value {
    let mut schema = schemars::generate::SchemaSettings::draft07()
        .into_generator()
        .into_root_schema_for::<Job>();
    schema.insert("title".into(), "Towline job file".into());
    schema.insert(
        "anyOf".into(),
        serde_json::json!([{ "required": ["command"] }, { "required": ["script"] }]),
    );
    schema.to_value()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml;

    const FULL_JOB_FILE: &str = r#"
name: vitl_contitrain
experiment: hoi_experiment_v1
cluster: [gpu-a, gpu-b]
resources: {nodes: 4, gpus_per_node: 8, cpus_per_node: 40, memory: 600G, instance_type: ND40rs_v2, tier: standard, location: [eastus], time: 14d, account: lab, native: [--exclusive]}
launch: per_node
io:
  blobmnt: {datastore: research, path: alice/work, mode: mount, options: [--attr-timeout=240]}
environment:
  image: amsword/setup:py36pt16
  setup: [pip install -r requirements.txt]
  env: {NCCL_IB_DISABLE: "0"}
  secrets: [GITHUB_PAT]
identity: managed:my-uami
code: {root: ., ignore: [data, output], workdir: .}
copy: {datastore: research, path: alice/data, subdirs: [voc20, coco]}
retry: {when: [node_failed, time_limit], max: 10}
hold_on_failure: 2h
sweep: {lr: [0.1, 0.01], "(bs, acc)": [[8, 4], [16, 2]], seed: 1-3}
tags: [vitl, ablation]
script: |
  ln -sfn ${{blobmnt}} blobmnt
"#;

    #[test]
    fn the_contracts_example_is_read_whole_and_survives_storage() {
        let job: Job =
            yaml::decode(&yaml::parse("job.yaml", FULL_JOB_FILE).expect("YAML")).expect("decodes");
        assert_eq!(job.resources.memory, Some(Memory(600 << 30)));
        assert_eq!(job.cluster.as_slice(), ["gpu-a", "gpu-b"]);
        assert_eq!(job.sweep.combinations().expect("expands").len(), 12);
        let stored = serde_json::to_string(&job).expect("serialises");
        assert_eq!(
            serde_json::from_str::<Job>(&stored).expect("reads back"),
            job
        );
    }

    #[test]
    fn an_empty_file_is_an_empty_job() {
        let job: Job =
            yaml::decode(&yaml::parse("job.yaml", "# nothing\n").expect("YAML")).expect("decodes");
        assert_eq!(job, Job::default());
    }

    #[test]
    fn the_schema_knows_every_key_and_wants_a_program() {
        let schema = schema();
        assert_eq!(schema["title"], "Towline job file");
        assert_eq!(schema["anyOf"][0]["required"][0], "command");
        let keys = schema["properties"].as_object().expect("keys");
        assert!(
            ["command", "script", "resources", "sweep"]
                .iter()
                .all(|key| keys.contains_key(*key))
        );
    }
}
