//! Runs on real Slurm: slurmctld, slurmdbd, slurmd on three hosts, behind sshd on a bastion and a
//! login host.
#![allow(
    clippy::unwrap_used,
    clippy::too_many_lines,
    clippy::disallowed_methods
)]

mod console;
mod contract;
mod flow;
mod hostile;
mod images;
mod lab;
mod logs;
mod own_srun;
mod page;
mod polite;
mod preempt;
mod queued;
mod reach;
mod refusals;
mod room;
mod seeds;
mod stage;
mod sweep;
mod versions;
mod why;
mod written;
