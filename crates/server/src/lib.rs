//! The daemon and the site. The daemon holds the local queue and its scheduler, starts runners,
//! talks to far clusters, keeps tunnels open, runs automatic backups, and is the only writer of the
//! history. It can be killed at any moment: runs go on without it, and the next daemon takes over.
//! The site is `tow` on a login host.

pub mod daemon;
pub mod schedule;
mod shell;
mod site;
pub mod worker;

pub use shell::{Opener, bring_code, daemon_main};
pub use site::site_main;
