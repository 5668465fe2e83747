//! A cluster of Azure ML, and the seam every cluster has.

use super::config::{AzureConfig, Target};
use super::memory::Memory;
use super::payload::Payload;
use super::probe;
use super::site::AzureSite;
use super::stage::Stage;
use crate::far::seam;
use async_trait::async_trait;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use towline_core::backend::{Asked, Backend, Handle, Observation, Staged};
use towline_core::caps::Caps;
use towline_core::cloud::Cloud;
use towline_core::cluster::RunRef;
use towline_core::cluster::{Cursor, Facts, LogChunk};
use towline_core::plan::{Plan, Request};
use towline_core::redact::SecretSet;
use towline_core::{Error, Result, RunId};
use towline_wire::line::OwnProgram;

/// Calls block; whoever must not wait calls from a thread of their own.
#[derive(Debug)]
pub struct AzureBackend {
    pub(super) config: AzureConfig,
    pub(super) cloud: Arc<dyn Cloud>,
    pub(super) program: OwnProgram,
    site: Mutex<Option<AzureSite>>,
    stage: Mutex<Option<Arc<Stage>>>,
    memory: Mutex<Memory>,
    /// Once it is known who is signed in.
    own_stage: OnceLock<String>,
}

impl AzureBackend {
    /// `known` is what was learnt of the workspace before.
    pub fn new(
        config: AzureConfig,
        cloud: Arc<dyn Cloud>,
        program: OwnProgram,
        known: Option<AzureSite>,
    ) -> Self {
        Self {
            config,
            cloud,
            program,
            site: Mutex::new(known),
            stage: Mutex::new(None),
            memory: Mutex::new(Memory::default()),
            own_stage: OnceLock::new(),
        }
    }

    pub const fn config(&self) -> &AzureConfig {
        &self.config
    }
    pub fn cloud(&self) -> &dyn Cloud {
        self.cloud.as_ref()
    }

    /// Whether jobs run on a compute of the workspace, which has its own machines; else on a
    /// virtual cluster.
    pub const fn is_compute(&self) -> bool {
        matches!(self.config.target, Target::Compute(_))
    }

    /// What is known of the workspace; asked where nothing is yet.
    pub fn site(&self) -> Result<AzureSite> {
        let known = self
            .site
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        known.map_or_else(|| self.look(), Ok)
    }

    /// Asks anew.
    pub fn look(&self) -> Result<AzureSite> {
        let site = probe::probe(self.cloud.as_ref(), &self.config)?;
        *self.site.lock().unwrap_or_else(PoisonError::into_inner) = Some(site.clone());
        Ok(site)
    }

    /// The path below which we keep what we bring.
    pub fn own_stage(&self) -> String {
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
            // Nothing can be staged either.
            Err(_) => self.config.stage.clone(),
        }
    }

    /// Whether a stage is ours; before it was named after who is signed in, it was named after the
    /// machine's user.
    pub(super) fn is_own_stage(&self, stage: &str) -> bool {
        stage == self.own_stage() || stage == self.config.stage
    }

    pub(super) fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Acts on the objects of the workspace's datastore. What let us in may have ended: then it is
    /// asked for once more.
    pub(super) fn with_stage<T>(&self, act: impl Fn(&Stage) -> Result<T>) -> Result<T> {
        let held = self
            .stage
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
            .filter(|stage| !stage.is_old());
        if let Some(stage) = held {
            match act(&stage) {
                Err(error) if error.kind() == towline_core::ErrorKind::Refused => {}
                outcome => return outcome,
            }
        }
        let site = self.site()?;
        let stage = Stage::open(self.cloud.as_ref(), &site)?;
        let (stage, outcome) = match act(&stage) {
            // The service gives out a key also where the account takes none: then whoever is signed
            // in may be let in.
            Err(error) if error.kind() == towline_core::ErrorKind::Refused && stage.is_by_key() => {
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

    /// A workspace that a job fits, as it is known; asked anew where it does not, for what it was
    /// made for may be newer.
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
        Payload::new(
            asked,
            &self.config,
            site,
            &self.program.digest,
            self.own_stage(),
        )
    }
}

#[async_trait]
impl Backend for AzureBackend {
    fn kind(&self) -> &'static str {
        "azureml"
    }
    fn name(&self) -> &str {
        &self.config.name
    }
    fn caps(&self) -> Caps {
        Caps {
            locations: matches!(self.config.target, Target::VirtualCluster(_)),
            identity: true,
            whole_nodes: true,
            ..seam::caps()
        }
    }

    async fn probe(&self) -> Result<Facts> {
        Ok(self.look()?.facts)
    }

    fn render(&self, asked: &Asked<'_>, _: &Facts) -> Result<Request> {
        let site = self.site_for(asked)?;
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
            super::config::API
        );
        let others = match asked.runs.len() {
            1 => String::new(),
            many => format!("and {} more, each with its own name\n", many - 1),
        };
        Ok(Request {
            text: format!("PUT {path}\n{body}\n{others}"),
        })
    }

    async fn submit(&self, plan: &Plan, secrets: &SecretSet, _: &Staged) -> Result<Vec<Handle>> {
        seam::submit(self, plan, secrets)
    }

    async fn find(&self, run: &RunId) -> Result<Option<Handle>> {
        let found = self.job(&RunRef::of(run))?;
        Ok(found.map(|job| Handle {
            run: run.clone(),
            native: job.name,
        }))
    }

    async fn observe(&self, handles: &[Handle]) -> Result<Vec<Observation>> {
        seam::observe(self, handles)
    }
    async fn logs(&self, handle: &Handle, from: &Cursor, most: usize) -> Result<LogChunk> {
        seam::logs(self, handle, from, most)
    }
    async fn cancel(&self, handles: &[Handle]) -> Result<()> {
        seam::cancel(self, handles)
    }
    async fn forget(&self, handle: &Handle) -> Result<()> {
        seam::forget(self, handle)
    }
}
