//! The job as the user wrote it, over the defaults of its cluster, and the other inputs of a plan.

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

/// The inputs of a plan beside the job.
#[derive(Debug)]
pub struct Origin {
    pub place: CodePlace,
    pub environment: Vec<(String, String)>,
    pub resubmits: Option<RunId>,
    pub code: CodeChoice,
    /// The data of the run that is resubmitted.
    pub data: Option<(Vec<IoPlan>, Option<CopyPlan>)>,
}

/// Which code a run gets.
#[derive(Debug)]
pub enum CodeChoice {
    /// The code that is in the folder now.
    Today { any_size: bool },
    /// The code of another run.
    SameAs(FrozenCode, Option<GitState>),
    /// None: the run starts in the folder itself.
    InPlace,
}

/// The job over the defaults of that cluster. The job and the command line take precedence.
pub fn with_defaults(layers: &Layers, job: Job, cluster: &str, total_gpus: Option<u32>) -> Job {
    let Some(usual) = layers.cluster(cluster).ok().and_then(|cluster| cluster.job) else {
        return job;
    };
    let mut usual = *usual;
    if total_gpus.is_some() {
        // `-n` decides the number of nodes, so the default number does not count.
        usual.resources.nodes = None;
    }
    let own = job.launch;
    let mut job = job.over(&usual);
    let none = total_gpus.or(job.resources.gpus_per_node).unwrap_or(0) == 0;
    if own.is_none() && none && job.launch == Some(Launch::PerGpu) {
        // One rank per GPU is the cluster's default; this job does not ask for it.
        job.launch = None;
    }
    job
}
