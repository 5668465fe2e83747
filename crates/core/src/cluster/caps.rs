//! The capabilities of a kind of cluster. Everything defaults to "no": an absent capability is not
//! promised.

use crate::config::StoreKind;
use serde::Serialize;

/// Capabilities of one cluster, read before a plan is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Caps {
    /// The cluster is this machine: runs see its folders and inherit the caller's environment, and
    /// its history is complete.
    pub is_here: bool,
    pub containers: bool,
    pub io: bool,
    /// `instance_type`, `account` and `native` have a meaning there.
    pub native_options: bool,
    /// `location` has a meaning there.
    pub locations: bool,
    /// A run can have an `identity`.
    pub identity: bool,
    /// A run has its nodes to itself, with all their GPUs, whether it asks for them or not.
    pub whole_nodes: bool,
    /// A job cannot choose the type of its machines.
    pub fixed_machines: bool,
    /// The kind of datastores that only the cluster itself knows by name.
    pub own_datastores: Option<&'static StoreKind>,
    /// The cluster mounts mapped folders itself and links them into the code.
    pub mounts_folders: bool,
    /// Jobs that other tools submitted can be adopted.
    pub adopts_others: bool,
    /// The cluster watches its runs: [`super::Cluster::on_change`] calls back after a change, and
    /// [`super::Cluster::observe`] sends no query.
    pub watches: bool,
    /// A run that waits can be put on hold and resumed.
    pub holds: bool,
    /// A run that waits can get another tier and another time limit.
    pub edits: bool,
    /// A run that waits can get another size.
    pub edits_size: bool,
}

impl Caps {
    /// Nothing, for constants.
    pub const NONE: Self = Self {
        is_here: false,
        containers: false,
        io: false,
        native_options: false,
        locations: false,
        identity: false,
        whole_nodes: false,
        fixed_machines: false,
        own_datastores: None,
        mounts_folders: false,
        adopts_others: false,
        watches: false,
        holds: false,
        edits: false,
        edits_size: false,
    };
}
