//! What a Slurm cluster offers.

use crate::features::How;
use towline_core::cluster::Caps;

pub(crate) const CAPS: Caps = Caps {
    containers: true,
    io: true,
    native_options: true,
    holds: true,
    edits: true,
    ..Caps::NONE
};

pub(crate) const HOW: How = How {
    sweep: "one array job",
    retry: "the job itself, there",
    tier: "a QOS or a partition",
    waiting: "Slurm's reason in words, and when it may start",
    shell: "beside any rank",
    port: "of any node of a run",
    image: "podman, docker or apptainer of the nodes",
    secret: "a file of yours there, gone with the run",
};
