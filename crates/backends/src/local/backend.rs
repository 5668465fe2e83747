//! The seam, for this machine.

use super::{client, gpus, render};
use async_trait::async_trait;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use towline_core::backend::{Asked, Backend, Handle, Observation, Staged};
use towline_core::caps::Caps;
use towline_core::cluster::{Cursor, Facts, LogChunk, NodeFacts};
use towline_core::config::Cluster;
use towline_core::plan::{Plan, Request};
use towline_core::redact::SecretSet;
use towline_core::{Error, Result, RunId};
use towline_wire::daemon::{Limits, PrivateSecrets, Reply, Request as Ask, Submit};
use towline_wire::layout::StateFolder;

/// Runs that the daemon forgets in one go; it has others to answer meanwhile.
const FORGOTTEN_AT_ONCE: usize = 1000;

/// This machine, reached through its daemon. Calls block: the daemon answers in microseconds.
#[derive(Debug, Clone)]
pub struct LocalBackend {
    name: String,
    state: StateFolder,
    limits: Limits,
}

impl LocalBackend {
    pub fn new(name: &str, state: StateFolder, cluster: &Cluster) -> Self {
        let limits = Limits {
            gpus: cluster.gpus,
            cpus: cluster.cpus,
            memory: cluster.memory.map(|memory| memory.0),
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

    /// The machine's size without asking anybody: enough to resolve a job.
    pub fn quick_facts(&self) -> Facts {
        let count = self.limits.gpus.unwrap_or_else(gpus::count_quickly);
        let node = NodeFacts {
            name: self.name.clone(),
            gpus: gpus::declared(count),
            ..machine_size(&self.limits)
        };
        Facts {
            nodes: vec![node],
            notes: Vec::new(),
        }
    }

    fn ask(&self, make: &dyn Fn() -> Ask) -> Result<Reply> {
        client::ask(&self.state, make).map(|(reply, _)| reply)
    }
}

/// CPUs and memory, as this process may use them or as the configuration limits them.
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
        "the daemon gave an answer to another question: {reply:?}"
    ))
}

#[async_trait]
impl Backend for LocalBackend {
    fn kind(&self) -> &'static str {
        "local"
    }
    fn name(&self) -> &str {
        &self.name
    }
    fn caps(&self) -> Caps {
        Caps {
            records: true,
            preempts: true,
            time_limit: true,
            several_nodes: true,
            snapshots: true,
            containers: true,
            io: true,
            secrets: true,
            hold: true,
            connect: true,
            live_logs: true,
            ..Caps::default()
        }
    }

    async fn probe(&self) -> Result<Facts> {
        match self.ask(&|| Ask::Facts {
            limits: self.limits,
        })? {
            Reply::Facts(facts) => Ok(facts),
            other => Err(unexpected(&other)),
        }
    }

    fn render(&self, asked: &Asked<'_>, facts: &Facts) -> Result<Request> {
        render::render(asked.resolved, facts)
    }

    async fn submit(&self, plan: &Plan, secrets: &SecretSet, _: &Staged) -> Result<Vec<Handle>> {
        let submit = || Submit {
            plan: plan.clone(),
            secrets: PrivateSecrets(secrets.clone()),
            limits: self.limits,
            cluster: None,
        };
        match self.ask(&|| Ask::Submit(Box::new(submit())))? {
            Reply::Submitted { runs } => Ok(runs
                .into_iter()
                .map(|run| Handle {
                    native: run.to_string(),
                    run,
                })
                .collect()),
            other => Err(unexpected(&other)),
        }
    }

    async fn find(&self, run: &RunId) -> Result<Option<Handle>> {
        match self.ask(&|| Ask::Find { run: run.clone() })? {
            Reply::Found { known } => Ok(known.then(|| Handle {
                run: run.clone(),
                native: run.to_string(),
            })),
            other => Err(unexpected(&other)),
        }
    }

    async fn observe(&self, handles: &[Handle]) -> Result<Vec<Observation>> {
        match self.ask(&|| Ask::Observe {
            runs: handles.iter().map(|handle| handle.run.clone()).collect(),
        })? {
            Reply::Observed { observations } => Ok(observations),
            other => Err(unexpected(&other)),
        }
    }

    async fn logs(&self, handle: &Handle, from: &Cursor, most: usize) -> Result<LogChunk> {
        read_log(&self.state, &handle.run, from, most)
    }

    async fn cancel(&self, handles: &[Handle]) -> Result<()> {
        match self.ask(&|| Ask::Cancel {
            runs: handles.iter().map(|handle| handle.run.clone()).collect(),
        })? {
            Reply::Cancelling { .. } => Ok(()),
            other => Err(unexpected(&other)),
        }
    }

    async fn forget(&self, handle: &Handle) -> Result<()> {
        forget(&self.state, std::slice::from_ref(&handle.run)).map(|_| ())
    }
}

/// Strikes ended runs from the history, then removes their folders. Gives those that went. What
/// clusters keep of them is dropped before.
pub fn forget(state: &StateFolder, runs: &[RunId]) -> Result<Vec<RunId>> {
    let mut gone = Vec::new();
    for some in runs.chunks(FORGOTTEN_AT_ONCE) {
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
    // One that cannot go is no reason to leave the others; a later prune finds it.
    let mut failure = None;
    for folder in gone.iter().map(|run| state.run(run)) {
        if let Err(error) = towline_host::filesystem::remove_tree(&folder) {
            failure = Some(
                Error::refused(format!("{} cannot be removed", folder.display()))
                    .source_error(error),
            );
        }
    }
    match failure {
        Some(error) => Err(error),
        None => Ok(gone),
    }
}

/// Bytes of a log from a place on. A log that is not there yet is empty.
pub fn read_log(state: &StateFolder, run: &RunId, from: &Cursor, most: usize) -> Result<LogChunk> {
    let path = state.log(run, from.attempt, from.source);
    let failed = |error| {
        Error::bug(format!("the log {} cannot be read", path.display())).source_error(error)
    };
    let mut file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Ok(LogChunk::default());
        }
        Err(error) => return Err(failed(error)),
    };
    let length = file.metadata().map_err(failed)?.len();
    if length < from.offset {
        return Ok(LogChunk {
            bytes: Vec::new(),
            truncated_to: Some(length),
        });
    }
    file.seek(SeekFrom::Start(from.offset)).map_err(failed)?;
    let mut bytes = Vec::new();
    file.take(most as u64)
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    Ok(LogChunk {
        bytes,
        truncated_to: None,
    })
}
