//! The protocol between the daemon and a runner.

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

/// The code of an attempt: its snapshot, and the folder to lay it out in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodeOrder {
    pub snapshot: String,
    /// The folder that holds snapshots.
    pub store: String,
    /// The folder that becomes the tree.
    pub target: String,
    /// The folder that the snapshot was taken from; links lead there.
    pub root: String,
    #[serde(default)]
    pub links: Vec<String>,
    /// Links to paths outside the tree, by their place in it.
    #[serde(default)]
    pub mapped: BTreeMap<String, String>,
}

/// The data of an attempt, sent to the data process as one line on its stdin.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DataOrder {
    pub io: Vec<IoOrder>,
    #[serde(default)]
    pub copy: Option<CopyOrder>,
    /// The values of credential references: `env:NAME` and so on.
    #[serde(default)]
    pub secrets: Variables,
    /// The folder of transfer journals.
    pub journals: String,
    /// Seconds between two uploads of output while the run goes on.
    pub collect_every: u64,
    /// The ranks have ended: only collect their output.
    #[serde(default)]
    pub only_collect: bool,
}

/// One datastore path of a run, and its place on this node.
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

/// A message of the data process, one JSON value per line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DataWord {
    /// All data is in place.
    Ready,
    Failed {
        why: String,
    },
}

/// The container of an attempt. Everything of the attempt runs inside, below an inner runner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContainerOrder {
    pub container: towline_core::resolve::Container,
    /// Folders of this machine that have the same path inside.
    pub binds: Vec<String>,
    /// The submitter's variables for the container runtime itself; the job inside does not get
    /// them.
    pub variables: Variables,
}

/// One complete attempt: everything that a runner needs for it.
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
    /// Priority and limits of set-up and ranks; those of the runner if absent.
    #[serde(default)]
    pub limits: Option<towline_core::process_limits::ProcessLimits>,
    pub variables: Variables,
    /// GPU indices by node.
    #[serde(default)]
    pub gpus: Vec<Vec<u32>>,
    #[serde(default)]
    pub gpu_make: GpuMake,
    /// The time limit in seconds.
    #[serde(default)]
    pub time: Option<u64>,
    /// In seconds.
    #[serde(default)]
    pub hold_on_failure: Option<u64>,
    /// Bytes per node, enforced if cgroups allow it.
    #[serde(default)]
    pub memory: Option<u64>,
    pub grace_millis: u64,
    #[serde(default)]
    pub code: Option<CodeOrder>,
    #[serde(default)]
    pub container: Option<ContainerOrder>,
    #[serde(default)]
    pub data: Option<DataOrder>,
    /// The intent is on disk already, so the claim need not be synced before the start.
    #[serde(default)]
    pub intent_is_durable: bool,
    /// The node of this runner, if each node has a runner of its own; else all nodes are here.
    #[serde(default)]
    pub gang: Option<GangPlace>,
    /// A signal that ends the job reaches all its processes, the ranks too, not only the runner.
    #[serde(default)]
    pub signals_reach_all: bool,
    /// Tokens that were taken out of the job are in its scripts again, so the scripts are removed
    /// when the attempt ends.
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

/// Why an attempt is ended from outside.
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
    /// Exit, if idle.
    Retire,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FromRunner {
    /// The first message on a connection: the runner's name and its attempt.
    Hello {
        runner: String,
        carrying: Option<(RunId, u32)>,
    },
    /// The claim could not be written, so nothing of the attempt was started.
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
