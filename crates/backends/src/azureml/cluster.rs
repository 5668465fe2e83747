//! A cluster of Azure ML, behind the `Cluster` trait.

mod explaining;
mod files;
mod forgetting;

use super::config::{AzureSettings, Target};
use super::memory::Memory;
use super::payload::Payload;
use super::site::{AzureSite, QuotaFacts};
use super::stage::Stage;
use super::state::NativeState;
use super::{machines, page, probe};
use crate::own_facts::OwnFacts;
use crate::remembered::Remembered;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use towline_core::cloud::Cloud;
use towline_core::cluster::{
    Asked, BlobBytes, Caps, Cluster, Cursor, Depth, Draft, Explanation, Facts, FileEntry, Fit,
    GpuQuota, KnownJob, LogBytes, LogLength, Observed, Page, Reach, ReachRequest, RunRef,
};
use towline_core::plan::{Plan, Request};
use towline_core::redact::SecretSet;
use towline_core::{Error, ErrorKind, Result, RunId};
use towline_wire::crew::keys;
use towline_wire::program::OwnProgram;

/// A cluster of Azure ML. Calls block, so a caller that must not wait uses a thread.
#[derive(Debug)]
pub struct AzureCluster {
    pub(super) config: AzureSettings,
    pub(super) cloud: Arc<dyn Cloud>,
    pub(super) program: OwnProgram,
    site: Remembered<AzureSite>,
    stage: Mutex<Option<Arc<Stage>>>,
    memory: Mutex<Memory>,
    /// Set once the signed-in user is known.
    own_stage: OnceLock<String>,
}

impl AzureCluster {
    pub fn new(
        config: AzureSettings,
        cloud: Arc<dyn Cloud>,
        program: OwnProgram,
        site: Remembered<AzureSite>,
    ) -> Self {
        Self {
            config,
            cloud,
            program,
            site,
            stage: Mutex::new(None),
            memory: Mutex::new(Memory::default()),
            own_stage: OnceLock::new(),
        }
    }

    pub(super) fn cloud(&self) -> &dyn Cloud {
        self.cloud.as_ref()
    }

    /// The known facts of the workspace; fetched if there are none yet.
    pub(super) fn site(&self) -> Result<AzureSite> {
        self.site.current().map_or_else(|| self.look(), Ok)
    }

    /// Fetches the facts again.
    pub(super) fn look(&self) -> Result<AzureSite> {
        let site = probe::probe(self.cloud.as_ref(), &self.config)?;
        self.site.learn(site.clone());
        Ok(site)
    }

    /// The path in the workspace's datastore where we store our objects.
    pub(super) fn own_stage(&self) -> String {
        if !self.config.is_shared_name {
            return self.config.stage.clone();
        }
        if let Some(stage) = self.own_stage.get() {
            return stage.clone();
        }
        match self.cloud.who() {
            Ok(who) => self
                .own_stage
                .get_or_init(|| self.config.stage_of(Some(&who)))
                .clone(),
            // Without a sign-in nothing can be staged anyway.
            Err(_) => self.config.stage.clone(),
        }
    }

    /// Whether a stage is ours: it is named after the signed-in user or, by an older `tow`, after
    /// the machine's user.
    pub(super) fn is_own_stage(&self, stage: &str) -> bool {
        stage == self.own_stage() || stage == self.config.stage
    }

    pub(super) fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Acts on the objects of the workspace's datastore. If the credential has expired, a new one
    /// is fetched once.
    pub(super) fn with_stage<T>(&self, act: impl Fn(&Stage) -> Result<T>) -> Result<T> {
        let held = self
            .stage
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
            .filter(|stage| !stage.is_old());
        if let Some(stage) = held {
            match act(&stage) {
                Err(error) if error.kind() == ErrorKind::Denied => {}
                outcome => return outcome,
            }
        }
        let site = self.site()?;
        let stage = Stage::open(self.cloud.as_ref(), &site)?;
        let (stage, outcome) = match act(&stage) {
            // The service returns a key even if the account accepts none. Then the signed-in user's
            // token may work.
            Err(error) if error.kind() == ErrorKind::Denied && stage.is_by_key() => {
                let by_token = Stage::by_token(self.cloud.as_ref(), &site)?;
                match act(&by_token) {
                    Ok(done) => (by_token, Ok(done)),
                    Err(_) => (stage, Err(error)),
                }
            }
            outcome => (stage, outcome),
        };
        *self.stage.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(stage));
        outcome
    }

    pub(super) fn drop_stage(&self) {
        *self.stage.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// The facts of the workspace for this job. If the job does not fit the known facts, they are
    /// fetched again, because the workspace may have changed.
    pub(super) fn site_for(&self, asked: &Asked<'_>) -> Result<AzureSite> {
        let known = self.site()?;
        let mut site = if self.payload(asked, &known).is_ok() {
            known
        } else {
            self.look()?
        };
        site.identities
            .extend(self.identity_elsewhere(asked.job.identity.as_deref(), &site));
        Ok(site)
    }

    pub(super) fn payload<'a>(
        &'a self,
        asked: &Asked<'a>,
        site: &'a AzureSite,
    ) -> Result<Payload<'a>> {
        // The signed-in user is among the facts, so no call is made.
        let stage = self.config.stage_of(site.who.as_ref());
        Payload::new(asked, &self.config, site, &self.program.digest, stage)
    }
}

impl Cluster for AzureCluster {
    fn kind(&self) -> &'static str {
        "azureml"
    }
    fn name(&self) -> &str {
        &self.config.name
    }
    fn caps(&self) -> Caps {
        super::features::caps(matches!(self.config.target, Target::Compute(_)))
    }

    fn connect(&self, may_ask: bool) -> Result<()> {
        self.cloud.sign_in(may_ask)
    }
    fn trouble(&self) -> Option<Error> {
        self.cloud.trouble()
    }
    /// There is no connection: each query is a call of its own.
    fn is_open(&self) -> bool {
        false
    }
    fn hang_up(&self) {
        self.drop_stage();
    }

    fn missing(&self, blobs: Vec<String>) -> Result<Vec<String>> {
        let key = |blob: &String| self.staged(&keys::snapshot(blob));
        let unsure: Vec<String> = blobs
            .into_iter()
            .filter(|blob| !self.memory().is_staged(&key(blob)))
            .collect();
        let wanted: Vec<String> = unsure.iter().map(key).collect();
        let sizes = if wanted.is_empty() {
            Vec::new()
        } else {
            self.with_stage(|stage| stage.sizes(&wanted))?
        };
        let mut missing = Vec::new();
        for (blob, size) in unsure.into_iter().zip(sizes) {
            match size {
                Some(_) => drop(self.memory().staged.insert(key(&blob), Instant::now())),
                None => missing.push(blob),
            }
        }
        Ok(missing)
    }
    fn put(&self, blobs: &mut BlobBytes<'_>) -> Result<()> {
        for blob in blobs {
            let (blob, bytes) = blob?;
            let key = self.staged(&keys::snapshot(&blob));
            self.with_stage(|stage| stage.put(&key, &bytes, true))?;
            self.memory().staged.insert(key, Instant::now());
        }
        Ok(())
    }

    fn submit(&self, plan: &Plan, secrets: &SecretSet) -> Result<Vec<String>> {
        self.submit_all(plan, secrets)
    }
    fn observe(&self, runs: &[RunRef], depth: Depth) -> Result<Observed> {
        self.look_at(runs, depth == Depth::Scheduler)
    }

    fn cancel(&self, runs: &[RunRef]) -> Result<Vec<(RunId, Error)>> {
        self.cancel_all(runs)
    }

    fn listing_delay(&self) -> Duration {
        super::submit::CONFLICT_TIMEOUT
    }

    fn give_up(&self, plan: &Plan) -> Result<()> {
        self.drop_kept(plan)
    }

    fn web_page(&self, native: &str) -> Option<String> {
        self.site().ok().map(|site| site.portal(native))
    }

    fn explain(&self, run: &RunRef) -> Result<Explanation> {
        self.explain_run(run)
    }

    fn forget(&self, runs: &[RunRef]) -> Result<()> {
        self.forget_runs(runs)
    }

    fn logs(&self, run: &RunRef) -> Result<Vec<LogLength>> {
        self.lengths(run)
    }
    fn log_bytes(&self, run: &RunRef, from: &Cursor, most: u64) -> Result<LogBytes> {
        let (bytes, length) = self.bytes(run, from, most)?;
        Ok(LogBytes { bytes, length })
    }

    fn files(&self, run: &RunRef, path: &str) -> Result<Vec<FileEntry>> {
        self.list(run, path)
    }
    fn file_bytes(&self, run: &RunRef, path: &str, offset: u64, most: u64) -> Result<Vec<u8>> {
        self.bytes_of(run, path, offset, most)
    }

    fn platform_log(&self, run: &RunRef) -> Result<Vec<String>> {
        self.platform_words(run)
    }

    fn known_jobs(&self) -> Result<Vec<KnownJob>> {
        self.known()
    }
    fn plan_of(&self, submission: &RunId, native: Option<&str>) -> Result<Option<Plan>> {
        self.plan_for(submission, native)
    }
    /// The service stores what a job left behind after its processes have ended.
    fn is_storing_files(&self, run: &RunRef) -> Result<bool> {
        let job = self.job(run)?;
        Ok(job.is_some_and(|job| !job.state.is_final() && job.state != NativeState::Unknown))
    }
    fn kept_files(&self) -> Option<&'static str> {
        Some(
            "only `outputs/`, logs (`user_logs`, `system_logs`) and what `io` wrote outlive the \
                nodes of a run on Azure ML",
        )
    }
    /// The nodes end with the job. Its results are in the workspace's datastore.
    fn run_folder(&self, run: &RunId) -> Option<(String, Option<String>)> {
        let known = self.site.stored();
        let who = known.as_ref().and_then(|site| site.who.as_ref());
        let stage = self.config.stage_of(who);
        let store = known
            .as_ref()
            .map_or("workspaceblobstore", |site| site.store.name.as_str());
        Some((
            format!("azureml://datastores/{store}/paths/{stage}/runs/{run}"),
            None,
        ))
    }

    fn remembered_facts(&self) -> Option<Facts> {
        self.site.recent().map(OwnFacts::into_facts)
    }
    fn facts(&self) -> Result<Facts> {
        let site = self.look()?;
        self.site.keep(site.clone());
        Ok(site.into_facts())
    }
    fn page(&self, facts: &mut Facts) -> Page {
        self.nodes_page(facts)
    }
    fn machine_types(&self) -> Vec<(String, String)> {
        self.site
            .stored()
            .map(|site| machines::choices(&site))
            .unwrap_or_default()
    }

    fn summary(&self, facts: &Facts) -> String {
        match AzureSite::from_facts(facts) {
            Ok(site) => page::summary(&site, &self.own_stage()),
            Err(error) => error.to_string(),
        }
    }
    /// Checks the storage, because a workspace without storage accepts no job.
    fn check_stage(&self) -> Result<()> {
        let answer = self.missing(vec!["doctor".to_owned()]);
        answer.map(drop).map_err(behind_a_firewall)
    }
    fn stage_trouble(&self, error: Error) -> Error {
        behind_a_firewall(error)
    }
    fn fit(&self, draft: Draft<'_>) -> Result<Fit> {
        self.fit_draft(draft)
    }
    fn render(&self, asked: &Asked<'_>, facts: &Facts) -> Result<Request> {
        let site = AzureSite::from_facts(facts)?;
        let payload = self.payload(asked, &site)?;
        let first = asked
            .runs
            .first()
            .ok_or_else(|| Error::bug("a plan without runs"))?;
        let body = serde_json::to_string_pretty(&payload.body(first))
            .map_err(|error| Error::bug("a request cannot be written").source_error(error))?;
        let path = format!(
            "{}/jobs/{}?api-version={}",
            site.scope.id(),
            first.id,
            super::config::ML_API
        );
        let others = match asked.runs.len() {
            1 => String::new(),
            many => format!("and {} more, each with its own name\n", many - 1),
        };
        Ok(Request {
            text: format!("PUT {path}\n{body}\n{others}"),
        })
    }
    fn notes(&self, plan: &Plan, facts: &Facts) -> Vec<String> {
        self.plan_notes(plan, AzureSite::from_facts(facts).ok().as_ref())
    }
    fn reach(&self, request: &ReachRequest<'_>) -> Result<Reach> {
        self.enter(request)
    }
}

/// Adds the usual reason: the storage answers only inside its own network.
fn behind_a_firewall(error: Error) -> Error {
    let vpn = (!error.blames_network()).then(|| {
        "is the VPN on? storage behind a private endpoint or a firewall answers only inside its \
            own network"
            .to_owned()
    });
    error
        .while_doing("the workspace answers, its storage does not")
        .maybe_hint(vpn)
        .blame_network(true)
}

impl OwnFacts for AzureSite {
    fn common(&mut self) -> &mut Facts {
        &mut self.facts
    }
    fn into_facts(mut self) -> Facts {
        let facts = std::mem::take(&mut self.facts);
        let signed_in_as = self.who.clone();
        let gpu_quota = (!self.quotas.is_empty()).then(|| GpuQuota {
            limit: self.quotas.iter().map(|quota| quota.limit).sum(),
            free: self.quotas.iter().map(QuotaFacts::free).sum(),
        });
        let mut own = serde_json::to_value(&self).unwrap_or_default();
        if let Some(own) = own.as_object_mut() {
            own.remove("facts");
        }
        Facts {
            own,
            signed_in_as,
            gpu_quota,
            ..facts
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_network_is_blamed_once() {
        let silent = behind_a_firewall(Error::unreachable("no answer").hint("try again"));
        assert_eq!(silent.hints().len(), 2);
        assert!(silent.hints()[1].contains("VPN"), "{silent:?}");
        let told = behind_a_firewall(
            Error::unreachable("no answer")
                .hint("is the tunnel to the lab up?")
                .blame_network(true),
        );
        assert_eq!(told.hints().len(), 1);
        assert_eq!(behind_a_firewall(silent).hints().len(), 2);
    }
}
