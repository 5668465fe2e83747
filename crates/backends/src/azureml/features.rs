//! What Azure ML offers.

use crate::features::How;
use towline_core::cluster::Caps;
use towline_core::config::StoreKind;

/// The capabilities of a compute, or of a virtual cluster.
pub(crate) const fn caps(is_compute: bool) -> Caps {
    Caps {
        containers: true,
        io: true,
        native_options: true,
        locations: !is_compute,
        identity: true,
        whole_nodes: true,
        fixed_machines: is_compute,
        own_datastores: Some(&StoreKind::Azureml),
        mounts_folders: true,
        adopts_others: true,
        ..Caps::NONE
    }
}

pub(crate) const HOW: How = How {
    sweep: "one job each",
    retry: "the job itself, there",
    tier: "`slaTier`, a priority or `jobTier`",
    waiting: "the service's state and message, quotas",
    shell: "in jobs of `tow submit ssh`",
    port: "none",
    image: "the service",
    secret: "the workspace's Key Vault; needs an identity",
};
