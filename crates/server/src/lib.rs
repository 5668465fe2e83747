//! The daemon: the local queue and its scheduler, the runners' keeper, the only writer of the
//! history for runs on this machine. It can be killed at any moment: runs go on without it, and
//! the next one takes up where it left.

mod daemon;
mod ledger;
mod machine;
pub mod schedule;
mod site;

pub use daemon::{Opener, bring_code, daemon_main};
pub use site::site_main;
