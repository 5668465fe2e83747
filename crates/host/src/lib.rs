//! This machine: its clock, processes, sockets and file systems, and the named points at which a
//! test can kill the program. Linux-only calls are here and in the runner.

pub mod backoff;
pub mod cgroup;
pub mod clock;
pub mod crash;
pub mod daemon;
pub mod filesystem;
pub mod git;
pub mod keyring;
pub mod limits;
pub mod lock;
pub mod mounts;
pub mod once;
pub mod own;
pub mod owner;
pub mod ports;
pub mod process;
pub mod program;
pub mod socket;
pub mod surroundings;
