//! Jobs of a workspace that another machine or another tool submitted.

use super::client::{pages, url};
use super::cluster::AzureCluster;
use super::image::hash;
use super::memory::ObjectPlace;
use super::observe::job_name;
use super::report::JobView;
use super::site::AzureSite;
use super::state::NativeState;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use towline_core::cloud::Call;
use towline_core::cluster::{KnownJob, RunRef};
use towline_core::job::{Job, OneOrMany, Resources};
use towline_core::plan::{PLAN_VERSION, Plan, PlannedRun, Request};
use towline_core::resolve::{Surroundings, resolve};
use towline_core::{Error, Result, RunId};
use towline_wire::crew::{CrewOrder, keys};

/// How many jobs are shown, newest first: a workspace keeps every job it ever had.
const MAX_KNOWN_JOBS: usize = 5_000;
/// How many of the newest jobs are searched for running ones.
const NEWEST_JOBS_READ: usize = 1_000;

/// A user whose jobs run on nodes of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Holder {
    pub user: String,
    pub nodes: u32,
    pub jobs: Vec<String>,
}

/// A job that was submitted this long ago is listed, or gone.
const SETTLED_MILLIS: u64 = 600_000;

impl AzureCluster {
    pub(super) fn known(&self) -> Result<Vec<KnownJob>> {
        let site = self.site()?;
        let first = Call::get(url(
            self.cloud(),
            &format!("{}/jobs?listViewType=ActiveOnly", site.scope.id()),
        ));
        let known = |job: JobView| KnownJob {
            run: job
                .run
                .as_ref()
                .and_then(|run| RunId::try_from(run.clone()).ok()),
            ended: job.state.is_final(),
            job: Some(job.name),
            name: job.display_name,
            user: job.user,
            state: job.state.word().map(ToOwned::to_owned),
            word: Some(job.word),
            reason: None,
            nodes: job.nodes,
            created: job.created,
        };
        let mut jobs = Vec::new();
        pages(self.cloud(), "the jobs of the workspace", first, |page| {
            jobs.extend(page.iter().filter_map(JobView::read).map(known));
            jobs.len() >= MAX_KNOWN_JOBS
        })?;
        Ok(jobs)
    }

    /// The users who hold nodes of the cluster now, from its newest jobs. The one with the most
    /// nodes comes first.
    pub fn holders(&self) -> Result<Vec<Holder>> {
        let site = self.site()?;
        let first = Call::get(url(
            self.cloud(),
            &format!(
                "{}/jobs?listViewType=ActiveOnly&jobType=Command",
                site.scope.id()
            ),
        ));
        let (mut read, mut held) = (0, BTreeMap::<String, Holder>::new());
        pages(self.cloud(), "the jobs of the workspace", first, |page| {
            let holds = |job: &JobView| {
                job.compute.eq_ignore_ascii_case(&site.compute_id)
                    && matches!(job.state, NativeState::Running | NativeState::Cancelling)
            };
            for job in page.iter().filter_map(JobView::read).filter(holds) {
                let holder = held.entry(job.user.clone()).or_insert_with(|| Holder {
                    user: job.user.clone(),
                    nodes: 0,
                    jobs: Vec::new(),
                });
                holder.nodes += job.nodes;
                holder.jobs.push(job.name);
            }
            read += page.len();
            read >= NEWEST_JOBS_READ
        })?;
        let mut holders: Vec<Holder> = held.into_values().collect();
        holders.sort_by_key(|holder| std::cmp::Reverse(holder.nodes));
        Ok(holders)
    }

    /// The plan of a known job: from its order if it is a run of ours, else made from what the
    /// service shows.
    pub(super) fn plan_for(
        &self,
        submission: &RunId,
        native: Option<&str>,
    ) -> Result<Option<Plan>> {
        if native.is_none() {
            let own = self.staged(&keys::order(submission));
            if let Some(order) = self.with_stage(|stage| stage.json::<CrewOrder>(&own))? {
                return Ok(if self.is_gone(&order.plan)? {
                    None
                } else {
                    Some(followed(order))
                });
            }
        }
        let far = RunRef {
            native: native.map(ToOwned::to_owned),
            ..RunRef::of(submission)
        };
        let site = self.site()?;
        let at = url(
            self.cloud(),
            &format!("{}/jobs/{}", site.scope.id(), job_name(&far)),
        );
        let Some(document) = super::client::get(self.cloud(), "the job", &Call::get(at))? else {
            return Ok(None);
        };
        let Some(job) = JobView::read(&document) else {
            return Ok(None);
        };
        match (
            self.job(&far)?
                .map(|_| self.object_place(&far))
                .transpose()?,
            &job.run,
        ) {
            // A colleague's run, with a stage of its own.
            (Some(ObjectPlace::Stage(stage)), Some(run)) => {
                let run = RunId::try_from(run.clone()).map_err(|_| {
                    Error::not_found(format!("`{}` has no run id of ours", job.name))
                })?;
                let submission = RunRef::of(&run).submission;
                let order = self.with_stage(|objects| {
                    objects.json::<CrewOrder>(&format!("{stage}/{}", keys::order(&submission)))
                })?;
                Ok(order.map(followed))
            }
            _ => foreign(&self.config.name, &site, &document, &job).map(Some),
        }
    }
}

impl AzureCluster {
    /// Whether all jobs of a submission are gone. A new job may not be listed yet.
    fn is_gone(&self, plan: &Plan) -> Result<bool> {
        let now = towline_host::clock::now();
        if plan
            .id
            .made()
            .is_none_or(|made| now.since(made) < SETTLED_MILLIS)
        {
            return Ok(false);
        }
        for run in &plan.runs {
            if self.job(&RunRef::of(&run.id))?.is_some() {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// The plan of a run of ours that exists already.
fn followed(order: CrewOrder) -> Plan {
    Plan {
        adopted: Some(order.plan.id.to_string()),
        ..order.plan
    }
}

/// A plan that describes a job of another tool, so that it can be shown, followed and cancelled. It
/// is never submitted.
fn foreign(cluster: &str, site: &AzureSite, document: &Value, job: &JobView) -> Result<Plan> {
    let properties = &document["properties"];
    let text = |value: &Value| value.as_str().map(ToOwned::to_owned);
    let command = text(&properties["command"]).unwrap_or_else(|| job.name.clone());
    let ranks = properties["distribution"]["processCountPerInstance"]
        .as_u64()
        .and_then(|ranks| u32::try_from(ranks).ok())
        .filter(|ranks| (1..=4096).contains(ranks));
    let asked = Job {
        name: Some(job.display_name.clone()),
        experiment: text(&properties["experimentName"]),
        cluster: OneOrMany::One(cluster.to_owned()),
        resources: Resources {
            nodes: (job.nodes > 1).then_some(job.nodes),
            gpus_per_node: gpus(properties, site, ranks),
            ..Resources::default()
        },
        launch: ranks.map(towline_core::job::Launch::Ranks),
        script: Some(command.replace("${{", "$${{")),
        ..Job::default()
    };
    let (resolved, _) = resolve(
        &asked,
        None,
        0,
        Surroundings {
            workdir: "/".to_owned(),
            ..Surroundings::default()
        },
    )?;
    let created = job.created.map_or(0, towline_core::time::Moment::seconds);
    let id = id_of(&job.name, created);
    let request = Request {
        text: serde_json::to_string_pretty(&document["properties"]).unwrap_or_default(),
    };
    let run = PlannedRun {
        id: id.clone(),
        name: job.display_name.clone(),
        parameters: Vec::new(),
    };
    Ok(Plan {
        version: PLAN_VERSION,
        id,
        cluster: cluster.to_owned(),
        kind: "azureml".to_owned(),
        runs: vec![run],
        job: asked,
        resolved,
        request,
        notes: vec![format!("submitted by another tool, as {}", job.name)],
        after: Vec::new(),
        resubmits: None,
        adopted: Some(job.name.clone()),
        made: job.created,
        whole_node_gpus: None,
        agent: None,
    })
}

/// The GPUs per node, from its kind of machine. If that is unknown, the number of processes,
/// because other tools start one per GPU.
fn gpus(properties: &Value, site: &AzureSite, ranks: Option<u32>) -> Option<u32> {
    let resources = &properties["resources"];
    let mut bags = resources["properties"]
        .as_object()
        .into_iter()
        .flat_map(serde_json::Map::values);
    let named = bags.find_map(|bag| {
        bag["instanceType"]
            .as_str()
            .or_else(|| bag["instance_type"].as_str())
    });
    let own = properties["computeId"]
        .as_str()
        .is_some_and(|id| id.eq_ignore_ascii_case(&site.compute_id))
        .then_some(site.vm_size.as_deref())
        .flatten();
    let asked = resources["properties"]["itp"]["resource_configuration"]["gpu_count"]
        .as_u64()
        .and_then(|gpus| u32::try_from(gpus).ok());
    let machine = named
        .or_else(|| resources["instanceType"].as_str())
        .or(own)
        .and_then(|name| site.instance(name))
        .map(|instance| instance.gpus);
    asked.or(machine).or(ranks).filter(|gpus| *gpus > 0)
}

/// An id for a job. ACT's names differ from ours only in one character; other names get a fixed id
/// of their own.
pub(super) fn id_of(name: &str, created: i64) -> RunId {
    let like_ours = name.to_ascii_lowercase().replace('_', "-");
    let tail = like_ours.rsplit('-').next().unwrap_or_default();
    let fits = tail.len() == 8 && tail.bytes().all(|byte| byte.is_ascii_hexdigit());
    match RunId::try_from(like_ours) {
        Ok(id) if fits => id,
        _ => RunId::new(name, created, u32::try_from(hash(name) >> 32).unwrap_or(0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_of_another_tool_has_one_id() {
        assert_eq!(
            id_of("jianfw_1563257309_60ce2fc7", 1).as_str(),
            "jianfw-1563257309-60ce2fc7"
        );
        let odd = id_of("gifted_bear_x12", 1_700_000_000);
        assert!(odd.as_str().starts_with("gifted-bear-x12-1700000000-"));
        assert_eq!(odd, id_of("gifted_bear_x12", 1_700_000_000));
    }
}
