//! What stands around calls and their answers, on every transport.

use crate::api::stream::Item;
use crate::report::Failure;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A line that a program sends on standard input.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Line {
    /// It calls something.
    Call(Call),
    /// It no longer wants the answer of a call.
    Cancel(Cancel),
}

/// A call.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// A number of the caller's. Every reply to the call carries it.
    pub id: u64,
    /// What is called: a verb (`ps`, `tunnel.ls`) or a call of the interface (`runs.page`).
    pub call: String,
    /// Its arguments by name.
    #[serde(default)]
    pub args: Map<String, Value>,
}

/// The end of a call that the caller no longer wants.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cancel {
    /// The number of the call.
    pub cancel: u64,
}

/// A reply to a call: any number of notes, parts, items and reports of progress, then `done` or
/// `error`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// A line for people: a warning, a next step, what is waited for.
    Note(String),
    /// How far the work is.
    Progress(Progress),
    /// A value before the last one, from a verb that prints several.
    Part(Value),
    /// An item of an event stream.
    Item(Box<Item>),
    /// The answer. Nothing follows it.
    Done(Value),
    /// Why there is no answer. Nothing follows it.
    Error(Failure),
}

impl Reply {
    /// Whether nothing follows it.
    pub const fn is_last(&self) -> bool {
        matches!(self, Self::Done(_) | Self::Error(_))
    }
}

/// A reply on a transport that carries several calls.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Numbered {
    /// The number of the call; null if the line could not be read.
    pub id: Option<u64>,
    /// The reply.
    #[serde(flatten)]
    pub reply: Reply,
}

/// A line that a verb prints on stderr for the interface: how far it is.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ProgressLine {
    /// How far it is.
    pub progress: Progress,
}

/// How far a piece of work is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Progress {
    /// What is being done, in one line.
    pub text: String,
    /// Files that are done.
    #[serde(default)]
    pub files: u64,
    /// Bytes that are done.
    #[serde(default)]
    pub bytes: u64,
    /// Files that were found so far.
    #[serde(default)]
    pub of_files: u64,
    /// Bytes that were found so far.
    #[serde(default)]
    pub of_bytes: u64,
    /// Everything has been found: the totals will not grow.
    #[serde(default)]
    pub is_total_known: bool,
}
