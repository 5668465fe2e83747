//! The settings that a process inherits besides its variables and its umask: its priority and its
//! limits, as `nice` and `ulimit` set them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The submitter's nice value and soft limits, which a run on the submitter's machine gets.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ProcessLimits {
    /// The nice value.
    #[serde(default)]
    pub nice: i32,
    /// By the name that `getrlimit` has for it, in lower case: `nofile`, `stack`. `None` is
    /// unlimited.
    #[serde(default)]
    pub soft: BTreeMap<String, Option<u64>>,
}
