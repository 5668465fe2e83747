//! Queries to the service and to the stage: jobs, status documents, why a job ended.

use super::super::client::CALL_BATCH;
use super::super::client::found;
use super::super::client::is_elsewhere;
use super::super::client::pages;
use super::super::client::refusal;
use super::super::client::url;
use super::super::cluster::AzureCluster;
use super::super::memory::ObjectPlace;
use super::super::memory::SETTLE_TIME;
use super::super::report::JobView;
use super::super::site::AzureSite;
use super::super::state::RunError;
use super::Jobs;
use super::SINGLE_QUERY_JOBS;
use super::job_name;
use serde_json::Value;
use std::collections::HashMap;
use std::collections::HashSet;
use towline_core::Error;
use towline_core::Result;
use towline_core::RunId;
use towline_core::cloud::Audience;
use towline_core::cloud::Call;
use towline_core::cloud::Reply;
use towline_core::cluster::RunRef;
use towline_wire::crew::CrewOrder;
use towline_wire::crew::StatusDocument;
use towline_wire::crew::keys;
pub(super) fn history_call(site: &AzureSite, job: &str, part: &str) -> Call {
    Call::get(format!(
        "{}/history/v1.0{}/runs/{job}{part}",
        site.api,
        site.scope.id()
    ))
    .audience(Audience::Workspace)
}

/// The job in an answer. `None` only if the workspace exists and has no job of that name.
pub(super) fn job_in(reply: &Reply) -> Result<Option<JobView>> {
    if reply.status == 404 && is_elsewhere(reply) {
        return Err(Error::unreachable(
            refusal("the workspace cannot be seen", reply).to_string(),
        ));
    }
    Ok(found("the job", reply)?.as_ref().and_then(JobView::read))
}

impl AzureCluster {
    /// The jobs of these runs. Reads a list as long as that is cheaper than one call per job.
    pub(super) fn jobs(&self, runs: &[RunRef]) -> Result<Jobs> {
        let site = self.site()?;
        let mut wanted: HashSet<&str> = runs.iter().map(job_name).collect();
        let mut jobs = Jobs {
            known: HashMap::new(),
            silent: HashSet::new(),
            failed: Ok(()),
        };
        if wanted.len() > SINGLE_QUERY_JOBS {
            let first = Call::get(url(
                self.cloud(),
                &format!("{}/jobs?listViewType=All&jobType=Command", site.scope.id()),
            ));
            let mut read = 0;
            pages(self.cloud(), "the jobs of the workspace", first, |page| {
                for job in page.iter().filter_map(JobView::read) {
                    if wanted.remove(job.name.as_str()) {
                        jobs.known.insert(job.name.clone(), job);
                    }
                }
                read += 1;
                wanted.len() <= read
            })?;
        }
        // A list may lack the newest jobs; only a query for the job itself proves that there is
        // none.
        let names: Vec<&str> = wanted.into_iter().collect();
        let calls: Vec<Call> = names
            .iter()
            .map(|name| Call::get(self.job_url(&site, name)))
            .collect();
        let replies = calls
            .chunks(CALL_BATCH)
            .flat_map(|calls| self.cloud.call_all(calls));
        for (name, reply) in names.into_iter().zip(replies) {
            match reply.and_then(|reply| job_in(&reply)) {
                Ok(job) => jobs.known.extend(job.map(|job| (job.name.clone(), job))),
                Err(error) => {
                    jobs.silent.insert(name.to_owned());
                    jobs.failed = jobs.failed.and(Err(error.to_string()));
                }
            }
        }
        if jobs.known.is_empty() && !jobs.silent.is_empty() {
            return Err(Error::unreachable(jobs.failed.err().unwrap_or_default()));
        }
        Ok(jobs)
    }

    /// Reads the status documents that have changed; the others come from the cache.
    pub(super) fn status_document(
        &self,
        runs: &[RunRef],
    ) -> Result<HashMap<RunId, StatusDocument>> {
        let mut by_stage: HashMap<String, Vec<&RunRef>> = HashMap::new();
        for far in runs {
            if let ObjectPlace::Stage(stage) = self.likely(far) {
                by_stage.entry(stage).or_default().push(far);
            }
        }
        let mut found = HashMap::new();
        for (stage, runs) in by_stage {
            let listed = self.with_stage(|objects| objects.list(&format!("{stage}/news/")))?;
            let versions: HashMap<&str, &str> = listed
                .iter()
                .map(|item| (item.key.as_str(), item.version.as_str()))
                .collect();
            let (mut stale, mut late) = (Vec::new(), Vec::new());
            for far in &runs {
                let key = format!("{stage}/{}", keys::status(&far.run));
                match (
                    versions.get(key.as_str()),
                    self.memory().status_document.get(&far.run),
                ) {
                    (Some(version), Some((known, status_document))) if known == version => {
                        drop(found.insert(far.run.clone(), status_document.clone()));
                    }
                    (Some(version), _) => stale.push((far.run.clone(), key, (*version).to_owned())),
                    (None, Some((_, status_document))) => {
                        drop(found.insert(far.run.clone(), status_document.clone()));
                    }
                    // The run has ended, so only the copy beside the run is left.
                    (None, None) => late.push(far.run.clone()),
                }
            }
            late.retain(|run| self.memory().finals.contains_key(run));
            stale.extend(late.into_iter().map(|run| {
                (
                    run.clone(),
                    format!("{stage}/{}", keys::last_status(&run)),
                    String::new(),
                )
            }));
            let wanted: Vec<String> = stale.iter().map(|(_, key, _)| key.clone()).collect();
            let bodies = if wanted.is_empty() {
                Vec::new()
            } else {
                self.with_stage(|objects| objects.get_all(&wanted))?
            };
            for ((run, _, version), body) in stale.into_iter().zip(bodies) {
                // A document that is being written does not parse. The next look reads it.
                let Some(status_document) =
                    body.and_then(|body| serde_json::from_slice::<StatusDocument>(&body).ok())
                else {
                    continue;
                };
                self.memory()
                    .status_document
                    .insert(run.clone(), (version, status_document.clone()));
                found.insert(run, status_document);
            }
        }
        Ok(found)
    }

    /// Reads the causes of failures from run history. Run history may lag behind or be unreachable:
    /// then the report has no such cause.
    pub(super) fn learn_errors(
        &self,
        runs: &[RunRef],
        jobs: &HashMap<String, JobView>,
        site: &AzureSite,
    ) {
        let failed = |far: &&RunRef| {
            jobs.get(job_name(far))
                .is_some_and(|job| job.state.is_final() && job.word != "Completed")
        };
        let is_open = |far: &&RunRef| {
            let memory = self.memory();
            let is_young = memory
                .finals
                .get(&far.run)
                .is_none_or(|since| since.elapsed() < SETTLE_TIME);
            memory
                .errors
                .get(&far.run)
                .is_none_or(|known| known.is_none() && is_young)
        };
        let unknown: Vec<&RunRef> = runs.iter().filter(failed).filter(is_open).collect();
        for some in unknown.chunks(CALL_BATCH) {
            let calls: Vec<Call> = some
                .iter()
                .map(|far| history_call(site, job_name(far), ""))
                .collect();
            for (far, reply) in some.iter().zip(self.cloud.call_all(&calls)) {
                let run = reply
                    .and_then(|reply| found("run history", &reply))
                    .ok()
                    .flatten();
                self.memory().errors.insert(
                    far.run.clone(),
                    run.and_then(|run| RunError::read(&run["error"])),
                );
            }
        }
    }

    /// A part of run history: the run itself, or something below it.
    pub(in super::super) fn history(
        &self,
        site: &AzureSite,
        job: &str,
        part: &str,
    ) -> Result<Option<Value>> {
        found(
            "run history",
            &self.cloud.call(&history_call(site, job, part))?,
        )
    }

    pub(in super::super) fn order(&self, far: &RunRef) -> Result<Option<CrewOrder>> {
        let ObjectPlace::Stage(stage) = self.object_place(far)? else {
            return Ok(None);
        };
        self.with_stage(|objects| {
            objects.json(&format!("{stage}/{}", keys::order(&far.submission)))
        })
    }
}
