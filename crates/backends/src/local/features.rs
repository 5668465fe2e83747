//! What this machine offers.

use crate::features::How;
use towline_core::cluster::Caps;

pub(crate) const CAPS: Caps = Caps {
    is_here: true,
    containers: true,
    io: true,
    holds: true,
    edits: true,
    edits_size: true,
    ..Caps::NONE
};

pub(crate) const HOW: How = How {
    sweep: "one submission",
    retry: "`tow`, here",
    tier: "an order of the queue; `basic` is preempted",
    waiting: "what is not free, who holds it, how many are ahead",
    shell: "beside any run",
    port: "they are here already",
    image: "podman, docker or apptainer",
    secret: "a file of yours, gone with the run",
};
