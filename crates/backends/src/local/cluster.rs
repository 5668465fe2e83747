//! This machine, behind the `Cluster` trait.

use super::{gpus, render};
use crate::run_files;
use towline_client as client;
use towline_core::cluster::{
    Asked, BlobBytes, Caps, Cluster, Cursor, Depth, Draft, Explanation, Facts, FileEntry, Fit,
    KnownJob, LogBytes, LogLength, NodeFacts, Observed, Page, Reach, ReachRequest, RunRef,
    RunReport,
};
use towline_core::config::LocalConfig;
use towline_core::plan::{Plan, Request};
use towline_core::redact::SecretSet;
use towline_core::{Error, ErrorKind, Result, RunId};
use towline_wire::daemon::{Limits, Observation, PrivateSecrets, Reply, Request as Ask, Submit};
use towline_wire::layout::StateFolder;

/// How many runs the daemon forgets with one request, because other clients wait meanwhile.
const FORGET_BATCH: usize = 1000;

/// This machine, reached through its daemon. Calls block: the daemon answers in microseconds.
#[derive(Debug, Clone)]
pub struct LocalCluster {
    name: String,
    state: StateFolder,
    limits: Limits,
}

impl LocalCluster {
    pub fn new(name: &str, state: StateFolder, config: &LocalConfig) -> Self {
        let limits = Limits {
            gpus: config.gpus,
            cpus: config.cpus,
            memory: config.memory.map(|memory| memory.0),
        };
        Self {
            name: name.to_owned(),
            state,
            limits,
        }
    }

    pub const fn state(&self) -> &StateFolder {
        &self.state
    }

    pub const fn limits(&self) -> Limits {
        self.limits
    }

    fn ask(&self, make: &dyn Fn() -> Ask) -> Result<Reply> {
        client::ask(&self.state, make).map(|(reply, _)| reply)
    }
}

/// CPUs and memory that this process may use, or the limits of the configuration.
pub fn machine_size(limits: &Limits) -> NodeFacts {
    let cpus = rustix::thread::sched_getaffinity(None).map_or(1, |set| set.count());
    let system = rustix::system::sysinfo();
    let memory = system.totalram * u64::from(system.mem_unit);
    NodeFacts {
        cpus: limits.cpus.unwrap_or(cpus),
        memory: limits.memory.unwrap_or(memory),
        ..NodeFacts::default()
    }
}

fn unexpected(reply: &Reply) -> Error {
    Error::bug(format!(
        "the daemon's answer does not match the request: {reply:?}"
    ))
}

impl Cluster for LocalCluster {
    fn kind(&self) -> &'static str {
        "local"
    }
    fn name(&self) -> &str {
        &self.name
    }
    fn caps(&self) -> Caps {
        super::features::CAPS
    }

    /// The machine's size without asking the daemon: enough to resolve a job.
    fn remembered_facts(&self) -> Option<Facts> {
        let count = self.limits.gpus.unwrap_or_else(gpus::count_quickly);
        let node = NodeFacts {
            name: self.name.clone(),
            gpus: gpus::declared(count),
            ..machine_size(&self.limits)
        };
        Some(Facts {
            nodes: vec![node],
            ..Facts::default()
        })
    }
    fn facts(&self) -> Result<Facts> {
        match self.ask(&|| Ask::Facts {
            limits: self.limits,
        })? {
            Reply::Facts(facts) => Ok(facts),
            other => Err(unexpected(&other)),
        }
    }
    fn page(&self, facts: &mut Facts) -> Page {
        super::page::page(facts)
    }
    fn summary(&self, facts: &Facts) -> String {
        let gpus: usize = facts.nodes.iter().map(|node| node.gpus.len()).sum();
        format!("this machine, {gpus} GPU(s)")
    }

    fn fit(&self, draft: Draft<'_>) -> Result<Fit> {
        super::fit::fit(draft)
    }
    fn render(&self, asked: &Asked<'_>, facts: &Facts) -> Result<Request> {
        render::render(asked.resolved, facts)
    }

    fn missing(&self, blobs: Vec<String>) -> Result<Vec<String>> {
        let store = self.state.snapshots();
        let is_missing = |blob: &String| !store.join(blob).exists();
        Ok(blobs.into_iter().filter(is_missing).collect())
    }
    fn put(&self, blobs: &mut BlobBytes<'_>) -> Result<()> {
        for blob in blobs {
            let (name, bytes) = blob?;
            let path = self.state.snapshots().join(&name);
            let failed =
                |error| Error::from_io(format!("{} cannot be written", path.display()), error);
            if let Some(folder) = path.parent().filter(|_| !path.exists()) {
                towline_host::filesystem::private_folder(folder).map_err(failed)?;
                towline_host::once::create(&path, &bytes).map_err(failed)?;
            }
        }
        Ok(())
    }

    fn submit(&self, plan: &Plan, secrets: &SecretSet) -> Result<Vec<String>> {
        let submit = || Submit {
            plan: plan.clone(),
            secrets: PrivateSecrets(secrets.clone()),
            limits: self.limits,
            cluster: None,
        };
        match self.ask(&|| Ask::Submit(Box::new(submit())))? {
            Reply::Submitted { runs } => Ok(runs.iter().map(ToString::to_string).collect()),
            other => Err(unexpected(&other)),
        }
    }
    fn observe(&self, runs: &[RunRef], _: Depth) -> Result<Observed> {
        let ids = || runs.iter().map(|run| run.run.clone()).collect();
        let observations = match self.ask(&|| Ask::Observe { runs: ids() })? {
            Reply::Observed { observations } => observations,
            other => return Err(unexpected(&other)),
        };
        let reports = runs.iter().zip(observations);
        Ok(Observed {
            at: towline_host::clock::now(),
            runs: reports.map(|(run, seen)| report(run, seen)).collect(),
            unasked: None,
            settles_in: None,
        })
    }
    fn cancel(&self, runs: &[RunRef]) -> Result<Vec<(RunId, Error)>> {
        let ids = || runs.iter().map(|run| run.run.clone()).collect();
        let ask = || Ask::Cancel {
            runs: ids(),
            by: None,
        };
        match self.ask(&ask)? {
            Reply::Cancelling { .. } => Ok(Vec::new()),
            other => Err(unexpected(&other)),
        }
    }
    fn explain(&self, run: &RunRef) -> Result<Explanation> {
        let text = match self.ask(&|| Ask::Explain {
            run: run.run.clone(),
        }) {
            Ok(Reply::Explained(explanation)) => explanation.text,
            Ok(other) => return Err(unexpected(&other)),
            Err(error) if error.kind() == ErrorKind::NotFound => "it does not wait".to_owned(),
            Err(error) => return Err(error),
        };
        Ok(Explanation {
            native: None,
            text,
            next: None,
            forever: false,
        })
    }
    fn forget(&self, runs: &[RunRef]) -> Result<()> {
        let ids: Vec<RunId> = runs.iter().map(|run| run.run.clone()).collect();
        forget(&self.state, &ids).map(drop)
    }

    fn logs(&self, run: &RunRef) -> Result<Vec<LogLength>> {
        run_files::logs(&self.state.run(&run.run))
    }
    fn log_bytes(&self, run: &RunRef, from: &Cursor, most: u64) -> Result<LogBytes> {
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        read_log(&self.state, &run.run, from, most)
    }
    fn files(&self, run: &RunRef, path: &str) -> Result<Vec<FileEntry>> {
        let folder = self.state.run(&run.run);
        run_files::list(&run_files::below(self.state.root(), &folder, path)?)
    }
    fn file_bytes(&self, run: &RunRef, path: &str, offset: u64, most: u64) -> Result<Vec<u8>> {
        let folder = self.state.run(&run.run);
        let file = run_files::below(self.state.root(), &folder, path)?;
        Ok(run_files::part(&file, offset, most)?.bytes)
    }

    fn known_jobs(&self) -> Result<Vec<KnownJob>> {
        Err(Error::unsupported(format!(
            "cluster `{}` is this machine: `tow ps` lists all its runs",
            self.name
        ))
        .hint("name another with `-c`"))
    }
    fn plan_of(&self, _: &RunId, _: Option<&str>) -> Result<Option<Plan>> {
        Err(Error::unsupported(format!(
            "runs of `{}` are all in the history here",
            self.name
        )))
    }
    fn reach(&self, _: &ReachRequest<'_>) -> Result<Reach> {
        Ok(Reach::Here)
    }
}

/// The daemon's state needs no translation.
fn report(run: &RunRef, seen: Observation) -> RunReport {
    let state = match seen {
        Observation::Known { state, .. } => Some(state),
        Observation::Gone => None,
    };
    RunReport {
        run: run.run.clone(),
        is_unknown: state.is_none(),
        is_lost: false,
        cancelled: state.as_ref().is_some_and(|state| state.cancel_requested),
        attempts: Vec::new(),
        native: None,
        state,
    }
}

/// Removes ended runs from the history, then their folders. Returns the removed runs. Their
/// clusters must have deleted their own files before.
pub fn forget(state: &StateFolder, runs: &[RunId]) -> Result<Vec<RunId>> {
    let mut gone = Vec::new();
    for some in runs.chunks(FORGET_BATCH) {
        match client::ask(state, &|| Ask::Forget {
            runs: some.to_vec(),
            told: true,
        })?
        .0
        {
            Reply::Forgotten { runs } => gone.extend(runs),
            other => return Err(unexpected(&other)),
        }
    }
    // A folder that cannot be removed does not stop the others; a later prune finds it.
    let mut failure = None;
    for folder in gone.iter().map(|run| state.run(run)) {
        if let Err(error) = towline_host::filesystem::remove_tree(&folder) {
            failure = Some(Error::from_io(
                format!("{} cannot be removed", folder.display()),
                error,
            ));
        }
    }
    match failure {
        Some(error) => Err(error),
        None => Ok(gone),
    }
}

/// Bytes of a log from an offset on. A missing log is empty.
pub fn read_log(state: &StateFolder, run: &RunId, from: &Cursor, most: usize) -> Result<LogBytes> {
    run_files::part(
        &state.log(run, from.attempt, from.source),
        from.offset,
        most as u64,
    )
}
