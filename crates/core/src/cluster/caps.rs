//! What a kind of cluster can do. Everything defaults to "no": what is not said is not promised.

use serde::Serialize;

/// Capabilities of one cluster, read before a plan is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Caps {
    /// It is this machine: runs see its folders and inherit the caller's environment, and the
    /// history here is all there is to know of them.
    pub is_here: bool,
    pub containers: bool,
    pub io: bool,
    /// `instance_type`, `account` and `native` mean something there.
    pub native_options: bool,
    /// `location` means something there.
    pub locations: bool,
    /// A run can act as somebody: `identity`.
    pub identity: bool,
    /// A run has its nodes to itself, with all their GPUs, whether it asks for them or not.
    pub whole_nodes: bool,
    /// Its machines are given: a job does not choose their type.
    pub fixed_machines: bool,
    /// The kind of the datastores that only the cluster itself knows by name.
    pub own_datastores: Option<&'static str>,
    /// The cluster mounts mapped folders itself and links them into the code.
    pub mounts_folders: bool,
    /// Jobs that other tools submitted can be adopted.
    pub adopts_others: bool,
    /// It keeps a watch: [`super::Cluster::on_change`] calls back when something changed, and
    /// [`super::Cluster::observe`] costs no question.
    pub watches: bool,
}
