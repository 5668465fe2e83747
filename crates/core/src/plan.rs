//! A plan: the job resolved against one cluster. Acting takes the plan and nothing else.

use crate::RunId;
use crate::job::Job;
use crate::resolve::Resolved;
use crate::sweep::Parameters;
use serde::{Deserialize, Serialize};

/// The format of stored plans.
pub const PLAN_VERSION: u32 = 1;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    pub version: u32,
    /// The id of the single run, or the one a sweep's runs share.
    pub id: RunId,
    pub cluster: String,
    pub kind: String,
    pub runs: Vec<PlannedRun>,
    /// The job as asked for.
    pub job: Job,
    pub resolved: Resolved,
    /// What will be sent.
    pub request: Request,
    /// What the user should know before it is sent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The run this one does again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resubmits: Option<RunId>,
}

impl Plan {
    /// Whether its runs are on this machine.
    pub fn is_here(&self) -> bool {
        self.kind == "local"
    }

    /// What is stored once per submission: without its runs and the submitter's environment.
    #[must_use]
    pub fn lean(&self) -> Self {
        Self {
            version: self.version,
            id: self.id.clone(),
            cluster: self.cluster.clone(),
            kind: self.kind.clone(),
            runs: Vec::new(),
            job: self.job.clone(),
            resolved: self.resolved.without_inherited(),
            request: self.request.clone(),
            notes: self.notes.clone(),
            resubmits: self.resubmits.clone(),
        }
    }
}

/// One run of a plan with its sweep values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedRun {
    pub id: RunId,
    pub name: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parameters: Parameters,
}

/// The native request, printable as it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// For people: a batch script, a JSON body, a command.
    pub text: String,
}

/// The runs of a plan: one, or one per combination of the sweep.
pub fn plan_runs(id: &RunId, name: &str, combinations: &[Parameters]) -> crate::Result<Vec<PlannedRun>> {
    let is_sweep = combinations.len() > 1;
    combinations
        .iter()
        .zip(1u32..)
        .map(|(parameters, number)| {
            let known: Vec<&str> = parameters.iter().map(|(name, _)| name.as_str()).collect();
            let value_of = |wanted: &str| parameters.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str());
            Ok(PlannedRun {
                id: if is_sweep { id.numbered(number) } else { id.clone() },
                name: crate::template::fill(name, value_of, &known)?,
                parameters: parameters.clone(),
            })
        })
        .collect()
}
