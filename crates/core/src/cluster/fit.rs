//! How a job fits a cluster: the additions that it needs, and the resources that it gets there.

use super::Facts;
use crate::RunId;
use crate::job::Job;
use crate::plan::PlannedRun;
use crate::resolve::{Container, Resolved};
use std::path::Path;

/// A job that is to run on a cluster, and its origin.
#[derive(Debug)]
pub struct Draft<'a> {
    pub job: Job,
    /// The known facts of the cluster.
    pub facts: Facts,
    /// The submitter's variables.
    pub environment: &'a [(String, String)],
    /// The folder on this machine where its commands start.
    pub workdir: &'a Path,
    pub home: Option<&'a Path>,
}

/// The job in the form that the cluster takes.
#[derive(Debug, Default)]
pub struct Fit {
    /// The job, with the additions that the cluster needs.
    pub job: Job,
    /// The facts, with those that were queried for this job.
    pub facts: Facts,
    /// GPUs of the machine type that the job names.
    pub gpus_per_node: Option<u32>,
    /// The container in which our runner starts the ranks; none if the cluster itself does.
    pub container: Option<Container>,
    pub notes: Vec<String>,
}

impl Fit {
    /// A job that needs nothing more.
    pub fn unchanged(draft: Draft<'_>) -> Self {
        Self {
            job: draft.job,
            facts: draft.facts,
            ..Self::default()
        }
    }
}

/// The parts of a request.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// The id of the single run, or the one that a sweep's runs share.
    pub id: &'a RunId,
    pub runs: &'a [PlannedRun],
    pub job: &'a Job,
    pub resolved: &'a Resolved,
}
