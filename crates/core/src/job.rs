//! The job file: what the user asks for. Decoded from YAML, stored as JSON, described by a JSON
//! Schema.

use crate::quantity::{Memory, Span};
use crate::sweep::Sweep;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

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
    /// Where to run: one name, or several, of which the first that can start it is taken.
    #[serde(skip_serializing_if = "Words::is_empty")]
    pub cluster: Words,
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
    #[serde(skip_serializing_if = "Words::is_empty")]
    pub command: Words,
    /// Lines run by `bash -e`, or by their own `#!` line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub script: Option<String>,
}

impl Job {
    /// The command of a job that only keeps its nodes, for `tow ssh`.
    pub fn only_for_ssh() -> Words {
        Words::Many(vec!["sleep".into(), "infinity".into()])
    }

    pub fn holds_for_ssh(&self) -> bool {
        self.command == Self::only_for_ssh()
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// What a run needs, per node where that makes sense.
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
    #[serde(skip_serializing_if = "Words::is_empty")]
    pub location: Words,
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
    /// Where commands start, below the code root.
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
    /// Starts in all, 3 where nothing is said. A start that a time limit ended counts only where
    /// this is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<u32>,
}

impl RetryPolicy {
    /// Starts in all that count.
    pub fn most(&self) -> u32 {
        self.max.unwrap_or(3)
    }

    /// A job that goes on after each time limit goes on for as long as it needs, unless its user
    /// says how often.
    pub fn goes_on_after(&self, cause: crate::reason::Cause) -> bool {
        cause == crate::reason::Cause::TimeLimit && self.max.is_none() && self.when.contains(&cause)
    }
}

/// For the schema: a text, or what YAML writes without quotes.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
enum Scalar {
    Text(String),
    Number(f64),
    Switch(bool),
}

/// One word or several.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Words {
    #[default]
    None,
    One(String),
    Many(Vec<String>),
}

impl Words {
    pub fn is_empty(&self) -> bool {
        match self {
            Self::None => true,
            Self::One(_) => false,
            Self::Many(words) => words.is_empty(),
        }
    }
    pub fn as_slice(&self) -> &[String] {
        match self {
            Self::None => &[],
            Self::One(word) => std::slice::from_ref(word),
            Self::Many(words) => words,
        }
    }
}

impl Serialize for Words {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::None => serializer.collect_seq(std::iter::empty::<String>()),
            Self::One(word) => serializer.serialize_str(word),
            Self::Many(words) => serializer.collect_seq(words),
        }
    }
}

impl<'de> Deserialize<'de> for Words {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneOrMany;
        impl<'de> Visitor<'de> for OneOrMany {
            type Value = Words;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or a list of texts")
            }
            fn visit_str<E: de::Error>(self, word: &str) -> Result<Words, E> {
                Ok(Words::One(word.to_owned()))
            }
            fn visit_unit<E: de::Error>(self) -> Result<Words, E> {
                Ok(Words::None)
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Words, A::Error> {
                let mut words = Vec::new();
                while let Some(word) = items.next_element()? {
                    words.push(word);
                }
                Ok(Words::Many(words))
            }
        }
        deserializer.deserialize_any(OneOrMany)
    }
}

impl JsonSchema for Words {
    fn schema_name() -> Cow<'static, str> {
        "Words".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [{ "type": "string" }, { "type": "array", "items": { "type": ["string", "number", "boolean"] } }] })
    }
}

/// Ranks per node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Launch {
    #[default]
    PerNode,
    PerGpu,
    Once,
    Ranks(u32),
}

impl fmt::Display for Launch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PerNode => f.write_str("per_node"),
            Self::PerGpu => f.write_str("per_gpu"),
            Self::Once => f.write_str("once"),
            Self::Ranks(ranks) => write!(f, "{ranks}"),
        }
    }
}

impl std::str::FromStr for Launch {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "per_node" => Ok(Self::PerNode),
            "per_gpu" => Ok(Self::PerGpu),
            "once" => Ok(Self::Once),
            _ => match text.parse() {
                Ok(ranks @ 1..=4096) => Ok(Self::Ranks(ranks)),
                _ => Err(format!(
                    "`{text}` is not a launch: per_node, per_gpu, once, or ranks per node from 1 \
                        to 4096"
                )),
            },
        }
    }
}

impl Serialize for Launch {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Launch {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(de::Error::custom)
    }
}

impl JsonSchema for Launch {
    fn schema_name() -> Cow<'static, str> {
        "Launch".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [{ "enum": ["per_node", "per_gpu", "once"] }, { "type": "integer", "minimum": 1, "maximum": 4096 }] })
    }
}

/// An image for every node, or one per make of GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Image {
    Any(String),
    PerMake(BTreeMap<String, String>),
}

impl Serialize for Image {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Any(name) => serializer.serialize_str(name),
            Self::PerMake(names) => names.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Image {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneOrPerMake;
        impl<'de> Visitor<'de> for OneOrPerMake {
            type Value = Image;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an image name or {nvidia: …, amd: …}")
            }
            fn visit_str<E: de::Error>(self, name: &str) -> Result<Image, E> {
                Ok(Image::Any(name.to_owned()))
            }
            fn visit_map<A: de::MapAccess<'de>>(self, mut entries: A) -> Result<Image, A::Error> {
                let mut names = BTreeMap::new();
                while let Some((make, name)) = entries.next_entry::<String, String>()? {
                    if make != "nvidia" && make != "amd" {
                        return Err(de::Error::custom(format!(
                            "unknown make `{make}`: nvidia or amd"
                        )));
                    }
                    names.insert(make, name);
                }
                Ok(Image::PerMake(names))
            }
        }
        deserializer.deserialize_any(OneOrPerMake)
    }
}

impl JsonSchema for Image {
    fn schema_name() -> Cow<'static, str> {
        "Image".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [
            { "type": "string" },
            { "type": "object", "properties": { "nvidia": { "type": "string" }, "amd": { "type": "string" } }, "additionalProperties": false }
        ]})
    }
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
}
