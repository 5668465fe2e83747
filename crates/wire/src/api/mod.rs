//! The interface for programs: `tow api --stdio`, and the page of `tow ui` over HTTP. Calls of verbs
//! have the verb's name and options and answer what its `--json` prints ([`crate::report`]); the
//! calls here are those that no verb has. Fields are only ever added.

#![warn(missing_docs)]

pub mod about;
pub mod check;
pub mod envelope;
pub mod files;
pub mod log;
pub mod runs;
pub mod schema;
pub mod stream;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// No arguments, or no answer but that it is done.
#[derive(Debug, Clone, Copy, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Empty {}

/// The version of the interface. It is raised only when an older client could misread an answer.
pub const API_VERSION: u32 = 1;
