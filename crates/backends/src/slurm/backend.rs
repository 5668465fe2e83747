//! The seam, for Slurm: everything goes through one line to `tow __site` beside it.

use super::config::SlurmConfig;
use super::link::Link;
use super::render;
use crate::far::{FarCluster, seam};
use async_trait::async_trait;
use std::sync::{Arc, Mutex, PoisonError};
use towline_core::backend::{Asked, Backend, Handle, Observation, Staged};
use towline_core::caps::Caps;
use towline_core::cluster::RunRef;
use towline_core::cluster::{Cursor, Facts, LogChunk};
use towline_core::plan::{Plan, Request};
use towline_core::redact::SecretSet;
use towline_core::transport::Transport;
use towline_core::{Error, Result, RunId};
use towline_wire::line::OwnProgram;
use towline_wire::site::{SiteFacts, SiteReply, SiteRequest};

/// A Slurm cluster. Calls block; whoever must not wait calls from a thread of their own.
#[derive(Debug)]
pub struct SlurmBackend {
    config: SlurmConfig,
    transport: Arc<dyn Transport>,
    program: OwnProgram,
    site: Mutex<Option<SiteFacts>>,
    /// The QOS that were known of the site, however long ago.
    former_tiers: Vec<String>,
    pub(super) link: Mutex<Option<Link>>,
}

impl SlurmBackend {
    /// `known` is what was learnt of the site before.
    pub fn new(
        config: SlurmConfig,
        transport: Arc<dyn Transport>,
        program: OwnProgram,
        known: Option<SiteFacts>,
    ) -> Self {
        let former_tiers = known
            .as_ref()
            .map(|known| known.tiers.clone())
            .unwrap_or_default();
        Self {
            config,
            transport,
            program,
            site: Mutex::new(known),
            former_tiers,
            link: Mutex::new(None),
        }
    }

    /// With the QOS that were known of the site before, for a time when its accounting does not
    /// answer.
    #[must_use]
    pub fn with_former_tiers(self, former_tiers: Vec<String>) -> Self {
        Self {
            former_tiers,
            ..self
        }
    }

    pub const fn config(&self) -> &SlurmConfig {
        &self.config
    }
    /// This program, as it lies in a stage folder.
    pub fn program_in(&self, stage: &str) -> String {
        self.program.place(stage)
    }
    pub fn transport(&self) -> &dyn Transport {
        self.transport.as_ref()
    }

    /// What is known of the site; asked where nothing is yet.
    pub fn site(&self) -> Result<SiteFacts> {
        let known = self
            .site
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        match known {
            Some(site) => Ok(site),
            None => self.look(),
        }
    }

    /// Asks the site anew.
    pub fn look(&self) -> Result<SiteFacts> {
        let SiteReply::Facts(mut site) = self.ask(&SiteRequest::Probe)? else {
            return Err(unexpected());
        };
        if site.tiers_unknown {
            // They hardly ever change: what was known before counts until they can be asked for
            // again.
            site.tiers.clone_from(&self.former_tiers);
        }
        *self.site.lock().unwrap_or_else(PoisonError::into_inner) = Some((*site).clone());
        Ok(*site)
    }

    /// One question. The line is opened where there is none; one that broke is let go.
    pub fn ask(&self, request: &SiteRequest) -> Result<SiteReply> {
        self.with_link(|link| link.ask(request))
    }

    /// One question whose answer has bytes behind it: those, and the length of the whole.
    pub fn fetch(&self, request: &SiteRequest) -> Result<(Vec<u8>, Option<u64>)> {
        self.with_link(|link| match link.ask(request)? {
            SiteReply::Bytes { size, length } => Ok((link.bytes(size)?, length)),
            _ => Err(unexpected()),
        })
    }

    pub(super) fn with_link<T>(&self, act: impl FnOnce(&mut Link) -> Result<T>) -> Result<T> {
        let mut held = self.link.lock().unwrap_or_else(PoisonError::into_inner);
        let link = match &mut *held {
            Some(link) => link,
            none => {
                self.transport.connect(false)?;
                none.insert(Link::open(
                    self.transport.as_ref(),
                    &self.config,
                    &self.program,
                )?)
            }
        };
        let answer = act(link);
        if link.is_broken() {
            *held = None;
        }
        answer
    }
}

pub(super) fn unexpected() -> Error {
    Error::bug("the far side gave an answer to another question")
}

#[async_trait]
impl Backend for SlurmBackend {
    fn kind(&self) -> &'static str {
        "slurm"
    }
    fn name(&self) -> &str {
        &self.config.name
    }
    fn caps(&self) -> Caps {
        seam::caps()
    }

    async fn probe(&self) -> Result<Facts> {
        Ok(self.look()?.facts)
    }

    fn render(&self, asked: &Asked<'_>, _: &Facts) -> Result<Request> {
        render::render(asked, &self.config, &self.site()?, &self.program)
    }

    async fn submit(&self, plan: &Plan, secrets: &SecretSet, _: &Staged) -> Result<Vec<Handle>> {
        seam::submit(self, plan, secrets)
    }

    async fn find(&self, run: &RunId) -> Result<Option<Handle>> {
        let far = RunRef::of(run);
        let observed = self.observe_runs(std::slice::from_ref(&far), true)?;
        if let Some(why) = observed.unasked {
            return Err(Error::unreachable(why));
        }
        let report = observed.runs.into_iter().next().ok_or_else(unexpected)?;
        let claimed = report
            .attempts
            .iter()
            .rev()
            .find_map(|of| of.claim.as_ref().map(|claim| claim.by.job.clone()));
        let native = report.native.map(|native| native.id);
        Ok((!report.is_unknown).then(|| Handle {
            run: run.clone(),
            native: native.or(claimed).unwrap_or_default(),
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
