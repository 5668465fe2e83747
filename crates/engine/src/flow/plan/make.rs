//! Resolves a job against one cluster and makes a plan. Pure, apart from questions to the cluster.

use super::notes::{TOKENS_NOTE, unused_gpus, unused_options};
use std::path::{Path, PathBuf};
use towline_core::cluster::{Asked, Cluster, Draft, Facts};
use towline_core::job::{Job, OneOrMany};
use towline_core::plan::{PLAN_VERSION, Plan, plan_runs};
use towline_core::redact::SecretSet;
use towline_core::resolve::{Surroundings, resolve};
use towline_core::{Error, Result, RunId};

/// The facts that the plan is made from, besides the job.
#[derive(Debug, Clone)]
pub struct Request {
    pub job: Job,
    /// `-n`: GPUs in all.
    pub total_gpus: Option<u32>,
    /// GPUs of one node as configured. They count more than what the cluster reports.
    pub gpus_per_node: Option<u32>,
    pub around: Surroundings,
    /// Now, in seconds since 1970, and randomness for the id.
    pub epoch_seconds: i64,
    pub random: u32,
    pub resubmits: Option<RunId>,
    /// The submitter's home.
    pub home: Option<PathBuf>,
}

/// The job resolved against one cluster: everything that will be sent, and nothing sent yet.
pub fn make_plan(
    request: Request,
    cluster: &dyn Cluster,
    facts: Facts,
) -> Result<(Plan, SecretSet)> {
    let Request {
        job,
        total_gpus,
        gpus_per_node,
        mut around,
        epoch_seconds,
        random,
        resubmits,
        home,
    } = request;
    check_caps(&job, cluster)?;
    let fit = cluster.fit(Draft {
        job,
        facts,
        environment: &around.environment,
        workdir: Path::new(&around.workdir),
        home: home.as_deref(),
    })?;
    let (mut job, facts, mut notes) = (fit.job, fit.facts, fit.notes);
    around.container = fit.container;
    let tokens = towline_core::token::take_out(&mut job)?;
    // By the cluster's own word. What is configured decides how GPUs are shared out among nodes.
    let node_gpus = fit.gpus_per_node.unwrap_or_else(|| facts.gpus_per_node());
    let gpus_per_node = fit
        .gpus_per_node
        .or(gpus_per_node)
        .unwrap_or_else(|| facts.gpus_per_node());
    let (mut resolved, mut secrets) = resolve(&job, total_gpus, gpus_per_node, around)?;
    resolved.secrets.extend(tokens.names());
    let has_tokens = !tokens.is_empty();
    secrets.0.extend(tokens.0);
    // Options of the command line become part of the job, so that a resubmission has the same size
    // and place.
    if total_gpus.is_some() {
        job.resources.gpus_per_node = Some(resolved.shape.gpus_per_node);
        job.resources.nodes = (resolved.shape.nodes > 1).then_some(resolved.shape.nodes);
    }
    if job.cluster.is_empty() {
        job.cluster = OneOrMany::One(cluster.name().to_owned());
    }
    let name = job
        .name
        .clone()
        .unwrap_or_else(|| resolved.program.default_name());
    let id = RunId::new(&name_without_values(&name), epoch_seconds, random);
    let runs = plan_runs(&id, &name, &job.sweep.combinations()?)?;
    let asked = Asked {
        id: &id,
        runs: &runs,
        job: &job,
        resolved: &resolved,
    };
    let request = cluster.render(&asked, &facts)?;
    if has_tokens {
        notes.push(TOKENS_NOTE.to_owned());
    }
    let unused = unused_gpus(&resolved.shape, gpus_per_node, cluster);
    notes.extend(unused.filter(|_| total_gpus.is_none()));
    notes.extend(unused_options(&job, cluster));
    let mut plan = Plan {
        version: PLAN_VERSION,
        id,
        cluster: cluster.name().to_owned(),
        kind: cluster.kind().to_owned(),
        runs,
        job,
        resolved,
        request,
        notes,
        after: Vec::new(),
        resubmits,
        adopted: None,
        made: None,
        whole_node_gpus: cluster.caps().whole_nodes.then_some(node_gpus),
        agent: None,
    };
    plan.notes.extend(cluster.notes(&plan, &facts));
    Ok((plan, secrets))
}

/// A sweep's id does not hold one run's values: `train-${{lr}}` gives `train`.
fn name_without_values(name: &str) -> String {
    let mut plain = String::new();
    let mut rest = name;
    while let Some(at) = rest.find("${{") {
        plain.push_str(&rest[..at]);
        plain.push('-');
        rest = rest[at..]
            .find("}}")
            .map_or("", |end| &rest[at + end + 2..]);
    }
    plain + rest
}

/// Refuses, with the reason, what the cluster cannot do, before anything is made.
fn check_caps(job: &Job, cluster: &dyn Cluster) -> Result<()> {
    let caps = cluster.caps();
    let refuse = |key: &str, what: &str| {
        let name = cluster.name();
        let text = format!("cluster `{name}` cannot give a run {what}");
        Err(Error::unsupported(text).about(key))
    };
    if !job.io.is_empty() && !caps.io {
        return refuse("io", "`io`: datastores are not supported there yet");
    }
    if job.copy.is_some() && !caps.io {
        return refuse("copy", "`copy`: datastores are not supported there yet");
    }
    if job.environment.image.is_some() && !caps.containers {
        return refuse(
            "environment.image",
            "an `image`: containers are not supported there yet",
        );
    }
    if job
        .identity
        .as_deref()
        .is_some_and(|identity| identity != "none")
        && !caps.identity
    {
        return refuse("identity", "an `identity`");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_a_sweep_holds_no_value() {
        assert_eq!(name_without_values("train"), "train");
        assert_eq!(name_without_values("a${{lr}}b${{bs}}"), "a-b-");
        assert_eq!(name_without_values("a${{lr"), "a-");
    }
}
