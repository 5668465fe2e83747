//! Every byte that another process parses: the protocols of the daemon and the runner, the runner's
//! journal, the layout of the state folder, and the output of `--json`. Versioned; changed only by
//! adding.

pub mod api;
pub mod cluster;
pub mod crew;
pub mod daemon;
pub mod frame;
pub mod heartbeat;
pub mod journal;
pub mod layout;
pub mod line;
pub mod log_name;
pub mod program;
pub mod report;
pub mod runner;
pub mod site;
pub mod stage;
pub mod transfer;
pub mod tunnel;
pub mod version;
pub mod workspace;
