//! Agents: what they may do, what stops them, and what is kept of it; by the official client of the
//! Model Context Protocol, on the shipped binary.
#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

mod agent;
mod ending;
mod limits;
mod story;

use towline_testkit::Home;

fn home() -> Home {
    Home::new(env!("CARGO_BIN_EXE_tow"))
}

/// A home whose user lets agents take two GPU-hours on this machine, which has four GPUs.
fn allowing() -> Home {
    let home = home();
    home.configure(
        "clusters: {local: {gpus: 4, cpus: 8}}\nagents: {clusters: [local], gpu_hours: 2}\n",
    );
    home
}
