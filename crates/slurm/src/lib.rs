//! Slurm's commands, answers and variables: what its programs are asked with, and what their answers
//! mean. Pure: nothing here runs a command, reads a file or looks at the environment. The login host
//! (`server/src/site`), a job (`runner/src/far/scheduler.rs`) and the cluster
//! (`backends/src/slurm`) run the commands.

pub mod cancel;
pub mod change;
pub mod environment;
pub mod job_variables;
pub mod own_job;
pub mod parse;
pub mod reasons;
pub mod refusal;
pub mod script;
pub mod state;
pub mod step;
pub mod submit;
pub mod task_layout;

#[cfg(test)]
mod recorded;
#[cfg(test)]
mod recorded_refusals;
#[cfg(test)]
mod soup;

/// An argument vector.
fn owned<const N: usize>(argv: [&str; N]) -> Vec<String> {
    argv.map(str::to_owned).to_vec()
}
