//! The machine we are on: its clock, its processes, its sockets and file systems, and the named
//! moments at which a test may have us killed. Linux-only calls live here and in the runner.

pub mod backoff;
pub mod cgroup;
pub mod clock;
pub mod crash;
pub mod filesystem;
pub mod limits;
pub mod lock;
pub mod mounts;
pub mod once;
pub mod owner;
pub mod ports;
pub mod process;
pub mod program;
pub mod socket;
