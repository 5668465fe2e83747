//! The job as the user wrote it, over what jobs have on its cluster, and what else a plan is made
//! from.

use super::code::CodePlace;
use crate::layers::Layers;
use std::path::Path;
use towline_core::job::{Job, Launch};
use towline_core::resolve::{CopyPlan, FrozenCode, GitState, IoPlan};
use towline_core::{Error, Result, RunId, yaml};

/// Reads a job file; `-` is standard input.
pub fn read_job(file: &Path) -> Result<Job> {
    let node = if file == Path::new("-") {
        crate::layers::read_yaml_from(std::io::stdin().lock(), "standard input")?
    } else {
        crate::layers::read_yaml(file)?
    };
    yaml::decode(&node).map_err(|problem| {
        let is_of_amlt = node.get("target").is_some() && node.get("jobs").is_some();
        let hint = is_of_amlt.then(|| {
            format!(
                "this looks like a file of amlt: `tow import amlt {}` makes job files of it",
                file.display()
            )
        });
        Error::from(problem).maybe_hint(hint)
    })
}

/// What a plan is made from, beside the job.
#[derive(Debug)]
pub struct Origin {
    pub place: CodePlace,
    pub environment: Vec<(String, String)>,
    pub resubmits: Option<RunId>,
    pub code: CodeChoice,
    /// The data of the run that is done again.
    pub data: Option<(Vec<IoPlan>, Option<CopyPlan>)>,
}

/// Which code a run gets.
#[derive(Debug)]
pub enum CodeChoice {
    /// What lies there now.
    Today { any_size: bool },
    /// What another run had.
    SameAs(FrozenCode, Option<GitState>),
    /// None: the run starts in the folder itself.
    InPlace,
}

/// The job over what jobs have on that cluster. What the job or the command line says counts.
pub fn with_defaults(layers: &Layers, job: Job, cluster: &str, total_gpus: Option<u32>) -> Job {
    let Some(usual) = layers.cluster(cluster).ok().and_then(|cluster| cluster.job) else {
        return job;
    };
    let mut usual = *usual;
    if total_gpus.is_some() {
        // `-n` says how many; the usual number of nodes is not asked for then.
        usual.resources.nodes = None;
    }
    let own = job.launch;
    let mut job = job.over(&usual);
    let none = total_gpus.or(job.resources.gpus_per_node).unwrap_or(0) == 0;
    if own.is_none() && none && job.launch == Some(Launch::PerGpu) {
        // One rank per GPU is the cluster's habit, not this job's wish.
        job.launch = None;
    }
    job
}
