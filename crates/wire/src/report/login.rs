//! The answers of `tow login` and `tow logout`.

use super::Time;
use schemars::JsonSchema;
use serde::Serialize;
use towline_core::cloud::Who;

/// A code that somebody enters in a browser. `tow login` prints it, and waits.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct LoginCode {
    /// The cluster.
    pub cluster: String,
    /// The page that takes the code.
    pub address: String,
    /// The code.
    pub code: String,
    /// One line that has both, as the login service words it.
    pub message: String,
    /// When the code ends.
    pub expires: Time,
}

/// The sign-in of a cluster.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ClusterSignIn {
    /// The cluster.
    pub cluster: String,
    /// Whether somebody is signed in. Null if that could not be found out.
    pub signed_in: Option<bool>,
    /// How: `device_code`, `certificate`, `azure_cli`, `managed_identity`, `service principal` or
    /// `workload_identity`.
    pub method: Option<String>,
    /// Whether the configuration names the method.
    pub configured: Option<bool>,
    /// The user.
    pub signed_in_as: Option<Who>,
    /// When the present token ends. A stored sign-in renews it.
    pub token_until: Option<Time>,
    /// When `tow login` stored the sign-in.
    pub since: Option<Time>,
    /// The place of the refresh token: `keyring` or `file`. Null if there is none.
    pub stored_in: Option<String>,
    /// Other clusters that use the same stored sign-in.
    pub also_for: Vec<String>,
    /// Why nobody is signed in, or why that is unknown.
    pub problem: Option<String>,
}

/// The sign-ins of the clusters that have one.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct SignIns {
    /// The sign-ins, by cluster.
    pub sign_ins: Vec<ClusterSignIn>,
}

/// What `tow logout` removed.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct LoggedOut {
    /// The cluster.
    pub cluster: String,
    /// Whether a sign-in was stored and is gone.
    pub signed_out: bool,
    /// The user who was signed in.
    pub name: Option<String>,
    /// Other clusters that used the same sign-in.
    pub also_for: Vec<String>,
    /// How the cluster is signed in to from now on.
    pub method: String,
}
