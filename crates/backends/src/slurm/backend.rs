//! The seam, for Slurm: everything goes through one line to `tow __site` beside it.

use super::config::SlurmConfig;
use super::link::Link;
use super::render;
use async_trait::async_trait;
use std::sync::{Arc, Mutex, PoisonError};
use towline_core::backend::{Asked, Backend, Cursor, Facts, Handle, LogChunk, Observation, Staged};
use towline_core::caps::Caps;
use towline_core::event::RunEvent;
use towline_core::plan::{Plan, Request};
use towline_core::reason::Cause;
use towline_core::redact::SecretSet;
use towline_core::retry::{Next, after};
use towline_core::state::{RunState, Step, cancelled, reduce};
use towline_core::time::Moment;
use towline_core::transport::Transport;
use towline_core::{Error, Result, RunId};
use towline_wire::daemon::PrivateSecrets;
use towline_wire::line::OwnProgram;
use towline_wire::site::{FarRun, Observed, RunReport, SiteFacts, SiteReply, SiteRequest};
use towline_wire::stage::{ORDER_VERSION, Order, Sent};

/// What ranks get between SIGTERM and SIGKILL, where the site allows it.
const GRACE_MILLIS: u64 = 10_000;
/// Of the site's own patience, this much is left for writing down the end.
const RESERVE_MILLIS: u64 = 2_000;
/// Seconds between collections of what a run writes.
const COLLECT_EVERY: u64 = 60;

/// A Slurm cluster. Calls block; whoever must not wait calls from a thread of their own.
#[derive(Debug)]
pub struct SlurmBackend {
    config: SlurmConfig,
    transport: Arc<dyn Transport>,
    program: OwnProgram,
    site: Mutex<Option<SiteFacts>>,
    link: Mutex<Option<Link>>,
}

impl SlurmBackend {
    /// `known` is what was learnt of the site before.
    pub fn new(config: SlurmConfig, transport: Arc<dyn Transport>, program: OwnProgram, known: Option<SiteFacts>) -> Self {
        Self { config, transport, program, site: Mutex::new(known), link: Mutex::new(None) }
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
        let known = self.site.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match known {
            Some(site) => Ok(site),
            None => self.look(),
        }
    }

    /// Asks the site anew.
    pub fn look(&self) -> Result<SiteFacts> {
        let SiteReply::Facts(site) = self.ask(&SiteRequest::Probe)? else { return Err(unexpected()) };
        *self.site.lock().unwrap_or_else(PoisonError::into_inner) = Some((*site).clone());
        Ok(*site)
    }

    /// One question. The line is opened where there is none; one that broke is let go.
    pub fn ask(&self, request: &SiteRequest) -> Result<SiteReply> {
        self.with_link(|link| link.ask(request))
    }

    /// Many blobs of a snapshot.
    pub fn keep_all(&self, blobs: impl Iterator<Item = Result<(String, Vec<u8>)>>) -> Result<()> {
        self.with_link(|link| link.keep_all(blobs))
    }

    /// One question whose answer has bytes behind it: those, and the length of the whole.
    pub fn fetch(&self, request: &SiteRequest) -> Result<(Vec<u8>, Option<u64>)> {
        self.with_link(|link| match link.ask(request)? {
            SiteReply::Bytes { size, length } => Ok((link.bytes(size)?, length)),
            _ => Err(unexpected()),
        })
    }

    fn with_link<T>(&self, act: impl FnOnce(&mut Link) -> Result<T>) -> Result<T> {
        let mut held = self.link.lock().unwrap_or_else(PoisonError::into_inner);
        let link = match &mut *held {
            Some(link) => link,
            none => {
                self.transport.connect(false)?;
                none.insert(Link::open(self.transport.as_ref(), &self.config.stage, &self.program)?)
            }
        };
        let answer = act(link);
        if link.is_broken() {
            *held = None;
        }
        answer
    }

    /// Lets the line go; the next question opens another.
    pub fn hang_up(&self) {
        *self.link.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    pub fn is_open(&self) -> bool {
        self.link.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Submits a plan; the id of its job.
    pub fn submit_plan(&self, plan: &Plan, secrets: &SecretSet) -> Result<String> {
        let site = self.site()?;
        let grace = GRACE_MILLIS.min((site.kill_wait * 1000).saturating_sub(RESERVE_MILLIS).max(1000));
        let order =
            Order { version: ORDER_VERSION, plan: plan.clone(), grace_millis: grace, collect_every: COLLECT_EVERY, signals_reach_all: site.signals_reach_all };
        match self.ask(&SiteRequest::Submit(Box::new(Sent { order, secrets: PrivateSecrets(secrets.clone()) })))? {
            SiteReply::Submitted { job } => Ok(job),
            _ => Err(unexpected()),
        }
    }

    pub fn observe_runs(&self, runs: &[FarRun], ask: bool) -> Result<Observed> {
        match self.ask(&SiteRequest::Observe { runs: runs.to_vec(), ask })? {
            SiteReply::Observed(observed) => Ok(observed),
            _ => Err(unexpected()),
        }
    }

    fn done(&self, request: &SiteRequest) -> Result<()> {
        match self.ask(request)? {
            SiteReply::Done => Ok(()),
            _ => Err(unexpected()),
        }
    }

    pub fn cancel_runs(&self, runs: &[FarRun]) -> Result<()> {
        self.done(&SiteRequest::Cancel { runs: runs.to_vec() })
    }
}

fn unexpected() -> Error {
    Error::bug("the far side gave an answer to another question")
}

/// The events that a report tells, in order and with their moments: what the history does not know
/// yet is applied.
pub fn events(report: &RunReport, policy: Option<&towline_core::job::RetryPolicy>) -> Vec<(RunEvent, Option<Moment>)> {
    let mut events = Vec::new();
    if let Some(native) = &report.native {
        events.push((RunEvent::Observed { native: Box::new(native.clone()) }, None));
    }
    let mut counted = 0;
    // Attempt 0 is the end of a run that no job carries any more: it comes after what was begun.
    let (last, begun): (Vec<_>, Vec<_>) = report.attempts.iter().partition(|of| of.attempt == 0);
    for of in begun.into_iter().chain(last) {
        let attempt = of.attempt;
        if let Some(claim) = &of.claim {
            let intent = RunEvent::AttemptIntent { attempt, runner: format!("job {}", claim.by.job), gpus: Vec::new(), durable: false };
            events.push((intent, Some(claim.at)));
        }
        if let Some(started) = &of.started {
            events.push((RunEvent::AttemptStarted { attempt }, Some(started.at)));
        }
        if let Some(held) = of.held.as_ref().filter(|_| of.end.is_none()) {
            events.push((RunEvent::AttemptHeld { attempt, until: held.until, ending: held.ending.clone() }, Some(held.at)));
        }
        let Some(end) = &of.end else { continue };
        counted += 1;
        let ending = end.ending.clone();
        let event = match after(policy, &ending, counted, report.cancelled) {
            Next::Requeue { counted: is_counted } if attempt > 0 => {
                counted -= u32::from(!is_counted);
                RunEvent::AttemptEnded { attempt, ending, counted: is_counted }
            }
            // Whoever asked for the end gets it, even if a preemption was quicker.
            _ if report.cancelled && ending.cause == Some(Cause::Preempted) => RunEvent::Ended { attempt, ending: cancelled() },
            _ => RunEvent::Ended { attempt, ending },
        };
        events.push((event, Some(end.at)));
    }
    let last_ended = report.attempts.last().is_some_and(|of| of.end.is_some());
    if report.cancelled && last_ended && !events.iter().any(|(event, _)| matches!(event, RunEvent::Ended { .. })) {
        let attempt = report.attempts.last().map_or(0, |of| of.attempt);
        events.push((RunEvent::Ended { attempt, ending: cancelled() }, None));
    }
    events
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
        Caps {
            preempts: true,
            time_limit: true,
            several_nodes: true,
            snapshots: true,
            io: true,
            containers: true,
            secrets: true,
            hold: true,
            connect: true,
            live_logs: true,
            native_words: true,
            ..Caps::default()
        }
    }

    async fn probe(&self) -> Result<Facts> {
        Ok(self.look()?.facts)
    }

    fn render(&self, asked: &Asked<'_>, _: &Facts) -> Result<Request> {
        render::render(asked, &self.config, &self.site()?, &self.program)
    }

    async fn submit(&self, plan: &Plan, secrets: &SecretSet, _: &Staged) -> Result<Vec<Handle>> {
        let job = self.submit_plan(plan, secrets)?;
        Ok(plan.runs.iter().map(|run| handle(&run.id, &job)).collect())
    }

    async fn find(&self, run: &RunId) -> Result<Option<Handle>> {
        let far = FarRun::of(run);
        let observed = self.observe_runs(std::slice::from_ref(&far), true)?;
        if let Some(why) = observed.unasked {
            return Err(Error::unreachable(why));
        }
        let report = observed.runs.into_iter().next().ok_or_else(unexpected)?;
        let claimed = report.attempts.iter().rev().find_map(|of| of.claim.as_ref().map(|claim| claim.by.job.clone()));
        let native = report.native.map(|native| native.id);
        Ok((!report.is_unknown).then(|| Handle { run: run.clone(), native: native.or(claimed).unwrap_or_default() }))
    }

    async fn observe(&self, handles: &[Handle]) -> Result<Vec<Observation>> {
        let runs: Vec<FarRun> = handles.iter().map(|handle| FarRun::of(&handle.run)).collect();
        let observed = self.observe_runs(&runs, true)?;
        Ok(observed.runs.iter().map(observation).collect())
    }

    async fn logs(&self, handle: &Handle, from: &Cursor, most: usize) -> Result<LogChunk> {
        let request = SiteRequest::Log { run: handle.run.clone(), attempt: from.attempt, source: from.source, offset: from.offset, most: most as u64 };
        let (bytes, length) = self.fetch(&request)?;
        Ok(LogChunk { bytes, truncated_to: length.filter(|length| *length < from.offset) })
    }

    async fn cancel(&self, handles: &[Handle]) -> Result<()> {
        self.cancel_runs(&handles.iter().map(|handle| FarRun::of(&handle.run)).collect::<Vec<_>>())
    }

    async fn forget(&self, handle: &Handle) -> Result<()> {
        self.done(&SiteRequest::Forget { runs: vec![FarRun::of(&handle.run)] })
    }
}

fn handle(run: &RunId, job: &str) -> Handle {
    let native = FarRun::of(run).task.map_or_else(|| job.to_owned(), |task| format!("{job}_{task}"));
    Handle { run: run.clone(), native }
}

/// A report as a state, by the one transition function.
fn observation(report: &RunReport) -> Observation {
    if report.is_unknown {
        return Observation::Gone;
    }
    let mut state = RunState { phase: towline_core::state::Phase::Queued, ..RunState::default() };
    for (event, _) in events(report, None) {
        if let Ok(Step::Changed(next)) = reduce(&state, &event) {
            state = next;
        }
    }
    let native = report.native.as_ref().map_or_else(String::new, |native| native.word.clone());
    Observation::Known { state, native }
}
