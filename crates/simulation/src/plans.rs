//! The plans of simulated jobs.

use crate::action::Job;
use std::sync::Arc;
use towline_core::RunId;
use towline_core::after::After;
use towline_core::plan::{PLAN_VERSION, Plan, PlannedRun};
use towline_core::redact::{Secret, SecretSet};
use towline_wire::cluster::NamedCluster;
use towline_wire::daemon::{Limits, PrivateSecrets, Submit};

/// What clients submit, made from one sample.
#[derive(Debug, Clone)]
pub struct Plans {
    sample: Arc<Plan>,
    cluster: NamedCluster,
}

/// The name of a far cluster.
pub(crate) fn cluster_name(cluster: usize) -> String {
    format!("far{cluster}")
}

impl Plans {
    pub fn new() -> Self {
        let sample = serde_json::json!({
            "version": PLAN_VERSION,
            "id": "job-1700000000-00000000",
            "cluster": "local",
            "kind": "local",
            "runs": [],
            "job": {"command": ["train"]},
            "resolved": {
                "shape": {"nodes": 1, "ranks_per_node": 1, "gpus_per_node": 0},
                "tier": "standard",
                "program": {"words": ["train"]},
                "workdir": "/",
                "umask": 18
            },
            "request": {"text": ""}
        });
        let cluster = serde_json::json!({
            "name": "far1",
            "cluster": {"kind": "slurm", "host": "login"}
        });
        Self {
            sample: Arc::new(serde_json::from_value(sample).expect("the sample is a plan")),
            cluster: serde_json::from_value(cluster).expect("the sample is a cluster"),
        }
    }

    /// The submission number `number`.
    pub(crate) fn submit(&self, job: Job, number: u32, after: &[After]) -> Submit {
        let mut plan = (*self.sample).clone();
        plan.after = after.to_vec();
        plan.id = RunId::new("job", 1_700_000_000, number);
        let ids = match job.runs {
            1 => vec![plan.id.clone()],
            many => (0..many).map(|run| plan.id.numbered(run)).collect(),
        };
        let planned = |id: RunId| PlannedRun {
            name: id.to_string(),
            id,
            parameters: towline_core::sweep::Parameters::default(),
        };
        plan.runs = ids.into_iter().map(planned).collect();
        plan.resolved.shape.gpus_per_node = job.gpus;
        plan.resolved.tier = towline_core::job::Tier::ALL[job.tier % 3];
        if job.retries {
            plan.resolved.retry = Some(towline_core::job::RetryPolicy {
                when: vec![
                    towline_core::reason::Cause::NodeFailed,
                    towline_core::reason::Cause::ExitCode,
                ],
                max: Some(3),
            });
        }
        let mut secrets = SecretSet::default();
        if job.has_secrets {
            let name = towline_core::secret_name::SecretName::Variable("TOKEN".to_owned());
            secrets.0.insert(name, Secret::new("value"));
        }
        let cluster = (job.cluster > 0).then(|| {
            "slurm".clone_into(&mut plan.kind);
            plan.cluster = cluster_name(job.cluster);
            NamedCluster {
                name: plan.cluster.clone(),
                ..self.cluster.clone()
            }
        });
        Submit {
            plan,
            secrets: PrivateSecrets(secrets),
            limits: Limits::default(),
            cluster,
        }
    }
}

impl Default for Plans {
    fn default() -> Self {
        Self::new()
    }
}
