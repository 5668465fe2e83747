//! Tunnels on real hosts: a bastion, a login host and nodes behind it, each in a network of its
//! own. The shipped binary is cut off, killed and restarted at random; its port stays, and leads
//! there again.
//!
//! A seeded tenth of the campaign runs here; `TOW_SOAK=1` runs all.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::too_many_lines,
    clippy::disallowed_methods
)]

mod campaign;
mod command;
mod console;
mod flow;
mod hangs;
mod hops;
mod include;
mod lab;
mod messages;
mod rules;
mod seed;
