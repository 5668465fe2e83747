//! Between the daemon and a runner.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use towline_core::RunId;
use towline_core::cluster::GpuMake;
use towline_core::command::Program;
use towline_core::reason::Ending;
use towline_core::resolve::Shape;
use towline_core::time::Moment;

/// Variables of a job, secrets among them: `Debug` shows names only.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Variables(pub BTreeMap<String, String>);

impl fmt::Debug for Variables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// The code of an attempt: which snapshot, and where it is laid out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodeOrder {
    pub snapshot: String,
    /// The folder that holds snapshots.
    pub store: String,
    /// Becomes the tree.
    pub target: String,
    /// The folder it was taken of, where links lead to.
    pub root: String,
    #[serde(default)]
    pub links: Vec<String>,
    /// Links to elsewhere, by their place in the tree.
    #[serde(default)]
    pub mapped: BTreeMap<String, String>,
}

/// The data of an attempt, for the process that carries it. On its stdin, as one line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DataOrder {
    pub io: Vec<IoOrder>,
    #[serde(default)]
    pub copy: Option<CopyOrder>,
    /// What the references of credentials lead to: `env:NAME` and so on.
    #[serde(default)]
    pub secrets: Variables,
    /// Where journals of transfers are kept.
    pub journals: String,
    /// Seconds between collections while the run goes on.
    pub collect_every: u64,
    /// The ranks have been: only what they wrote is to be collected.
    #[serde(default)]
    pub only_collect: bool,
}

/// One datastore path of a run, and where it is on this node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IoOrder {
    pub io: towline_core::resolve::IoPlan,
    pub place: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CopyOrder {
    pub copy: towline_core::resolve::CopyPlan,
    pub place: String,
}

/// What the process that carries data says, one JSON value a line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DataWord {
    /// Everything is in its place.
    Ready,
    Failed {
        why: String,
    },
}

/// What an attempt lives in: everything of it runs inside, by a runner of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContainerOrder {
    pub container: towline_core::resolve::Container,
    /// Folders of this machine that are at the same place inside.
    pub binds: Vec<String>,
    /// For the runtime itself, as the submitter's shell has them; not for what runs inside.
    pub variables: Variables,
}

/// One attempt, complete: what a runner needs to carry it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Assignment {
    pub run: RunId,
    pub attempt: u32,
    pub shape: Shape,
    pub program: Program,
    #[serde(default)]
    pub setup: Vec<String>,
    pub workdir: String,
    pub umask: u32,
    /// Priority and limits of set-up and ranks; absent: those of the runner.
    #[serde(default)]
    pub limits: Option<towline_core::process_limits::ProcessLimits>,
    pub variables: Variables,
    /// GPU indices by node.
    #[serde(default)]
    pub gpus: Vec<Vec<u32>>,
    #[serde(default)]
    pub gpu_make: GpuMake,
    /// Seconds.
    #[serde(default)]
    pub time: Option<u64>,
    /// Seconds.
    #[serde(default)]
    pub hold_on_failure: Option<u64>,
    /// Bytes per node, enforced where cgroups allow it.
    #[serde(default)]
    pub memory: Option<u64>,
    pub grace_millis: u64,
    #[serde(default)]
    pub code: Option<CodeOrder>,
    #[serde(default)]
    pub container: Option<ContainerOrder>,
    #[serde(default)]
    pub data: Option<DataOrder>,
    /// The intent is on disk already, so the claim need not be before the start.
    #[serde(default)]
    pub intent_is_durable: bool,
    /// Which of its nodes this is, where each has a runner of its own; else all are here.
    #[serde(default)]
    pub gang: Option<GangPlace>,
    /// Who ends the job tells all its processes, the ranks too, and not the runner alone.
    #[serde(default)]
    pub signals_reach_all: bool,
    /// Tokens that were taken out of the job stand in its scripts again: they go with the attempt's
    /// end.
    #[serde(default)]
    pub scripts_hold_tokens: bool,
}

/// One node of an attempt that spans machines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GangPlace {
    pub node: u32,
    /// Host names by node.
    pub hosts: Vec<String>,
    /// `MASTER_PORT`, on the first.
    pub port: u16,
}

/// Why an attempt is being ended from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    ByUser,
    Preempted,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToRunner {
    Start(Box<Assignment>),
    Stop {
        run: RunId,
        attempt: u32,
        why: Stop,
    },
    /// Leave, if idle.
    Retire,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FromRunner {
    /// First word on a connection: who this is and what it carries.
    Hello {
        runner: String,
        carrying: Option<(RunId, u32)>,
    },
    /// It could not write its claim, so nothing of the attempt was started.
    Unclaimed {
        run: RunId,
        attempt: u32,
        why: String,
    },
    Started {
        run: RunId,
        attempt: u32,
        at: Moment,
    },
    Held {
        run: RunId,
        attempt: u32,
        until: Moment,
        ending: Ending,
    },
    /// The end record is on disk.
    Ended {
        run: RunId,
        attempt: u32,
        at: Moment,
        ending: Ending,
    },
}
