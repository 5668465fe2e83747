//! The answers of `tow submit`.

use super::run::Run;
use schemars::JsonSchema;
use serde::Serialize;
use towline_core::RunId;
use towline_core::after::After;
use towline_core::job::Job;
use towline_core::plan::{Plan, PlannedRun, Request};
use towline_core::resolve::Resolved;
use towline_core::time::Moment;

/// What was submitted.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Submitted {
    /// The id of the run or of the sweep.
    pub id: RunId,
    /// The cluster that it was submitted to.
    pub cluster: String,
    /// The run, or the runs of the sweep.
    pub runs: Vec<Run>,
}

/// The plan that `tow submit --dry-run` would send.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct DryRun {
    /// The version of the plan's format.
    pub version: u32,
    /// The id of the run or of the sweep, would it be submitted.
    pub id: RunId,
    /// The cluster that it would be submitted to.
    pub cluster: String,
    /// The kind of that cluster: `local`, `slurm`, `azureml`, …
    pub kind: String,
    /// The runs that it would have.
    pub runs: Vec<PlannedRun>,
    /// The job as asked for, with the defaults of the configuration.
    pub job: Job,
    /// The job as it would run.
    pub resolved: ShownResolved,
    /// What would be sent to the cluster, as it is.
    pub request: Request,
    /// What the user should know about it. Absent if there is nothing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The runs that must end before it begins. Absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<After>,
    /// The run or sweep that it would repeat. Absent if it repeats none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resubmits: Option<RunId>,
    /// The cluster's name of an adopted job. Absent if it is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adopted: Option<String>,
    /// When the plan was made, in milliseconds since 1970. Absent if that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub made: Option<Moment>,
    /// The GPUs of each node, where a run takes whole nodes whatever it asks for. Absent elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub whole_node_gpus: Option<u32>,
    /// The agent that would submit it for the user. Absent if none does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
}

/// A job as it would run.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ShownResolved {
    /// All of it but the inherited variables.
    #[serde(flatten)]
    pub resolved: Resolved,
    /// The names of the variables that it inherits. Their values are the user's own: names are
    /// enough. Absent if it inherits none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inherited: Vec<String>,
}

impl From<&Plan> for DryRun {
    fn from(plan: &Plan) -> Self {
        let Plan {
            version,
            id,
            cluster,
            kind,
            runs,
            job,
            resolved,
            request,
            notes,
            after,
            resubmits,
            adopted,
            made,
            whole_node_gpus,
            agent,
        } = plan.clone();
        let resolved = ShownResolved {
            inherited: resolved.inherited.keys().cloned().collect(),
            resolved: resolved.without_inherited(),
        };
        Self {
            version,
            id,
            cluster,
            kind,
            runs,
            job,
            resolved,
            request,
            notes,
            after,
            resubmits,
            adopted,
            made,
            whole_node_gpus,
            agent,
        }
    }
}
