//! A Slurm cluster, behind the `Cluster` trait. Every request goes over one connection to `tow
//! __site` on the login host.

use super::config::SlurmSettings;
use super::link::Link;
use super::{fit, machines, page, render};
use crate::own_facts::OwnFacts;
use crate::remembered::Remembered;
use std::sync::{Arc, Mutex, PoisonError};
use towline_core::change::Change;
use towline_core::cluster::{
    Asked, BlobBytes, Caps, Cluster, Cursor, Depth, Draft, Explanation, Facts, FileEntry, Fit,
    KnownJob, LogBytes, LogLength, Observed, Page, Purpose, Reach, ReachRequest, RunRef,
};
use towline_core::plan::{Plan, Request};
use towline_core::redact::SecretSet;
use towline_core::transport::Transport;
use towline_core::{Error, Result, RunId};
use towline_slurm::step;
use towline_wire::daemon::{PrivateSecrets, Refusal};
use towline_wire::program::OwnProgram;
use towline_wire::site::{JobChange, SiteFacts, SiteReply, SiteRequest};
use towline_wire::stage::{ENTER_VERB, ORDER_VERSION, Order, Sent};

/// The time between SIGTERM and SIGKILL for ranks, if the site allows as much.
const GRACE_MILLIS: u64 = 10_000;
/// How much of the site's own kill wait is left for recording the end.
const RESERVE_MILLIS: u64 = 2_000;
/// Seconds between two uploads of a run's output.
const COLLECT_EVERY: u64 = 60;

/// The expected reply to a request, or an error for any other reply.
macro_rules! answer {
    ($cluster:expr, $request:expr, $pattern:pat => $value:expr) => {
        match $cluster.ask(&$request)? {
            $pattern => Ok($value),
            _ => Err(unexpected()),
        }
    };
}

/// A Slurm cluster. Calls block, so a caller that must not wait uses a thread.
#[derive(Debug)]
pub struct SlurmCluster {
    config: SlurmSettings,
    transport: Arc<dyn Transport>,
    program: OwnProgram,
    site: Remembered<SiteFacts>,
    pub(super) link: Mutex<Option<Link>>,
}

impl SlurmCluster {
    pub fn new(
        config: SlurmSettings,
        transport: Arc<dyn Transport>,
        program: OwnProgram,
        site: Remembered<SiteFacts>,
    ) -> Self {
        Self {
            config,
            transport,
            program,
            site,
            link: Mutex::new(None),
        }
    }

    pub const fn config(&self) -> &SlurmSettings {
        &self.config
    }
    /// The known facts of the site; fetched if there are none yet.
    fn site(&self) -> Result<SiteFacts> {
        self.site.current().map_or_else(|| self.look(), Ok)
    }

    /// Fetches the facts again.
    fn look(&self) -> Result<SiteFacts> {
        let SiteReply::Facts(mut site) = self.ask(&SiteRequest::Probe)? else {
            return Err(unexpected());
        };
        if site.tiers_unknown {
            // QOS hardly ever change, so the former ones count until the database answers again.
            let former = self.site.current().or_else(|| self.site.stored());
            site.tiers = former.map(|former| former.tiers).unwrap_or_default();
        }
        self.site.learn((*site).clone());
        Ok(*site)
    }

    /// Sends one request. Opens a connection if there is none; a broken one is dropped.
    pub fn ask(&self, request: &SiteRequest) -> Result<SiteReply> {
        self.with_link(|link| link.ask(request))
    }

    /// Sends one request whose reply is followed by bytes. Returns them, and the length of the
    /// whole.
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

impl Cluster for SlurmCluster {
    fn kind(&self) -> &'static str {
        "slurm"
    }
    fn name(&self) -> &str {
        &self.config.name
    }
    fn caps(&self) -> Caps {
        super::features::CAPS
    }

    fn connect(&self, may_ask: bool) -> Result<()> {
        self.transport.connect(may_ask)
    }
    fn is_open(&self) -> bool {
        self.link
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .is_some()
    }
    fn hang_up(&self) {
        *self.link.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn missing(&self, blobs: Vec<String>) -> Result<Vec<String>> {
        answer!(self, SiteRequest::Missing { blobs }, SiteReply::Missing { blobs } => blobs)
    }
    fn put(&self, blobs: &mut BlobBytes<'_>) -> Result<()> {
        self.with_link(|link| link.keep_all(blobs))
    }

    fn submit(&self, plan: &Plan, secrets: &SecretSet) -> Result<Vec<String>> {
        let site = self.site()?;
        let grace = GRACE_MILLIS.min(
            (site.kill_wait * 1000)
                .saturating_sub(RESERVE_MILLIS)
                .max(1000),
        );
        let order = Order {
            version: ORDER_VERSION,
            plan: plan.clone(),
            grace_millis: grace,
            collect_every: COLLECT_EVERY,
            signals_reach_all: site.signals_reach_all,
        };
        let sent = Sent {
            order,
            secrets: PrivateSecrets(secrets.clone()),
        };
        let job: String = answer!(self, SiteRequest::Submit(Box::new(sent)), SiteReply::Submitted { job } => job)?;
        let native = |run: &RunId| {
            RunRef::of(run)
                .task
                .map_or_else(|| job.clone(), |task| format!("{job}_{task}"))
        };
        Ok(plan.runs.iter().map(|run| native(&run.id)).collect())
    }
    fn observe(&self, runs: &[RunRef], depth: Depth) -> Result<Observed> {
        answer!(self, SiteRequest::Observe { runs: runs.to_vec(), ask: depth == Depth::Scheduler }, SiteReply::Observed(observed) => observed)
    }
    fn cancel(&self, runs: &[RunRef]) -> Result<Vec<(RunId, Error)>> {
        answer!(self, SiteRequest::Cancel { runs: runs.to_vec() }, SiteReply::Done => Vec::new())
    }
    fn change(&self, runs: &[RunRef], change: &Change) -> Result<Vec<(RunId, Error)>> {
        let change = match change {
            Change::Hold => JobChange::Hold,
            Change::Resume => JobChange::Release,
            Change::Edit(edit) => render::job_change(edit, &self.config, &self.site()?)?,
        };
        let request = SiteRequest::Change {
            runs: runs.to_vec(),
            change,
        };
        let refused = answer!(self, request, SiteReply::Changed { refused } => refused)?;
        let error = |(run, refusal): (RunId, Refusal)| (run, Error::from(refusal));
        Ok(refused.into_iter().map(error).collect())
    }
    fn explain(&self, run: &RunRef) -> Result<Explanation> {
        answer!(self, SiteRequest::Explain { run: run.clone() }, SiteReply::Explained(explained) => explained)
    }
    fn forget(&self, runs: &[RunRef]) -> Result<()> {
        answer!(self, SiteRequest::Forget { runs: runs.to_vec() }, SiteReply::Done => ())
    }

    fn logs(&self, run: &RunRef) -> Result<Vec<LogLength>> {
        answer!(self, SiteRequest::Logs { run: run.run.clone() }, SiteReply::Logs(logs) => logs)
    }
    fn log_bytes(&self, run: &RunRef, from: &Cursor, most: u64) -> Result<LogBytes> {
        let (bytes, length) = self.fetch(&SiteRequest::Log {
            run: run.run.clone(),
            attempt: from.attempt,
            source: from.source,
            offset: from.offset,
            most,
        })?;
        Ok(LogBytes { bytes, length })
    }
    fn files(&self, run: &RunRef, path: &str) -> Result<Vec<FileEntry>> {
        answer!(self, SiteRequest::List { run: run.run.clone(), path: path.to_owned() }, SiteReply::Listed(entries) => entries)
    }
    fn file_bytes(&self, run: &RunRef, path: &str, offset: u64, most: u64) -> Result<Vec<u8>> {
        self.fetch(&SiteRequest::Read {
            run: run.run.clone(),
            path: path.to_owned(),
            offset,
            most,
        })
        .map(|(bytes, _)| bytes)
    }

    fn known_jobs(&self) -> Result<Vec<KnownJob>> {
        answer!(self, SiteRequest::Known, SiteReply::Known(jobs) => jobs)
    }
    fn plan_of(&self, submission: &RunId, _: Option<&str>) -> Result<Option<Plan>> {
        answer!(self, SiteRequest::Plan { submission: submission.clone() }, SiteReply::Plan(plan) => plan.map(|plan| *plan))
    }
    fn run_folder(&self, run: &RunId) -> Option<(String, Option<String>)> {
        let stage = self.site.stored().map_or_else(
            || super::config::DEFAULT_STAGE.to_owned(),
            |site| site.stage,
        );
        let folder = format!("{}:{stage}/runs/{run}", self.config.name);
        Some((folder.clone(), Some(format!("{folder}/code"))))
    }
    fn transport(&self) -> Option<&dyn Transport> {
        Some(self.transport.as_ref())
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
        SiteFacts::from_facts(facts).map_or_else(|_| Page::default(), |site| page::page(&site))
    }
    fn notes(&self, plan: &Plan, facts: &Facts) -> Vec<String> {
        SiteFacts::from_facts(facts)
            .ok()
            .and_then(|site| machines::near_gpu(plan, &site))
            .into_iter()
            .collect()
    }
    fn machine_types(&self) -> Vec<(String, String)> {
        self.site
            .stored()
            .map(|site| machines::gpu_types(&site))
            .unwrap_or_default()
    }

    fn summary(&self, facts: &Facts) -> String {
        let site = SiteFacts::from_facts(facts).unwrap_or_default();
        let gpus: usize = facts.nodes.iter().map(|node| node.gpus.len()).sum();
        let accounting = if site.accounting {
            ""
        } else {
            ", no accounting"
        };
        format!(
            "Slurm {}{accounting}, {} node(s), {gpus} GPU(s); stage {}",
            site.version,
            facts.nodes.len(),
            site.stage
        )
    }
    fn fit(&self, draft: Draft<'_>) -> Result<Fit> {
        if draft.job.environment.image.is_none() {
            return Ok(Fit::unchanged(draft));
        }
        let site = SiteFacts::from_facts(&draft.facts)?;
        fit::fit(draft, &self.config.name, &site)
    }
    fn render(&self, asked: &Asked<'_>, facts: &Facts) -> Result<Request> {
        let site = SiteFacts::from_facts(facts)?;
        render::render(asked, &self.config, &site, &self.program)
    }
    fn reach(&self, request: &ReachRequest<'_>) -> Result<Reach> {
        request.check_running()?;
        let hosts = request.state.native.as_ref().map(|native| &native.hosts);
        let host = hosts.and_then(|hosts| hosts.get(request.node as usize));
        let job = request.state.job_of_scheduler();
        let (Some(host), Some(job)) = (host, job) else {
            return Err(
                Error::refused(format!("where {} runs is not known yet", request.run.run))
                    .hint("try again in a moment"),
            );
        };
        let Purpose::Shell { argv, terminal } = request.purpose else {
            return Ok(Reach::Through {
                transport: self.transport.clone(),
                host: host.clone(),
            });
        };
        // This also makes sure that our program is there.
        let site = self.look()?;
        let mut words = step::beside(&site.version, &site.environment, job, host);
        if terminal {
            words.push("--pty".into());
        }
        words.extend([
            self.program.place(&site.stage),
            ENTER_VERB.to_owned(),
            site.stage,
            request.run.run.to_string(),
            request.rank.to_string(),
        ]);
        words.extend_from_slice(argv);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        self.transport
            .interactive(&words, terminal)
            .map(Reach::Command)
    }
}

impl OwnFacts for SiteFacts {
    fn common(&mut self) -> &mut Facts {
        &mut self.facts
    }
}
