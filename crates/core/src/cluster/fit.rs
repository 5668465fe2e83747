//! How a job fits a cluster: what has to be added to it, and what it gets there.

use super::Facts;
use crate::RunId;
use crate::job::Job;
use crate::plan::PlannedRun;
use crate::resolve::{Container, Resolved};
use std::path::Path;

/// A job that is to run on a cluster, and where it comes from.
#[derive(Debug)]
pub struct Draft<'a> {
    pub job: Job,
    /// What is known of the cluster.
    pub facts: Facts,
    /// Of whoever submits.
    pub environment: &'a [(String, String)],
    /// Where its commands start, on this machine.
    pub workdir: &'a Path,
    pub home: Option<&'a Path>,
}

/// The job as the cluster takes it.
#[derive(Debug, Default)]
pub struct Fit {
    /// With what the cluster needs added to it.
    pub job: Job,
    /// With what the cluster was asked about this job.
    pub facts: Facts,
    /// GPUs of the type of machine that the job names.
    pub gpus_per_node: Option<u32>,
    /// What our runner starts its ranks in; none where the cluster itself does.
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

/// What a request is made of.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// Of the single run, or the one a sweep's runs share.
    pub id: &'a RunId,
    pub runs: &'a [PlannedRun],
    pub job: &'a Job,
    pub resolved: &'a Resolved,
}
