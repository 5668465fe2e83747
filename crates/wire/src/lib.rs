//! Every byte that another process parses: the daemon's and the runner's protocols, the runner's
//! journal, the layout of the state folder, and what `--json` prints. Versioned; changed only by
//! adding.

pub mod cluster;
pub mod crew;
pub mod daemon;
pub mod frame;
pub mod heartbeat;
pub mod journal;
pub mod layout;
pub mod line;
pub mod log_name;
pub mod report;
pub mod runner;
pub mod site;
pub mod stage;
pub mod tunnel;
pub mod version;
pub mod workspace;
