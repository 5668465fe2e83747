//! The answer of `tow ui`: printed when the page can be opened.

use schemars::JsonSchema;
use serde::Serialize;

/// The address of the page.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct PageAddress {
    /// The address, with the token that the page needs.
    pub address: String,
    /// The port on this machine.
    pub port: u16,
}
