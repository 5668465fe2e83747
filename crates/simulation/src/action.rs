//! One thing that happens in the world. A list of actions is a story that can be told again.

/// Numbers of things (clients, runners, runs, clusters) count modulo how many there are, so that an
/// action keeps a meaning when others are taken out of the story.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// The daemon goes on by so many small steps: an effect, an answer or an input each.
    Daemon(usize),
    /// Something that the daemon started in the background is done.
    Task(usize),
    /// A runner or its guard does its next step.
    Runner(usize),
    Client(usize),
    /// The thread of a cluster goes on by so many small steps.
    Worker {
        cluster: usize,
        steps: usize,
    },
    Cluster {
        cluster: usize,
        act: ClusterAct,
    },
    /// So many milliseconds pass.
    Time(u64),
    Submit(Job),
    /// A client cancels a run.
    Cancel(usize),
    /// A client watches a run.
    Watch(usize),
    /// A client asks for the logs of a far run.
    Logs(usize),
    /// A client puts a run on hold.
    Hold(usize),
    Resume(usize),
    /// A client changes the tier and the size of a run that waits.
    Edit {
        run: usize,
        gpus: u32,
        tier: usize,
    },
    /// A client removes an ended run from the history.
    Forget(usize),
    /// The ranks of a runner end: by themselves, or because of a signal.
    RanksEnd {
        runner: usize,
        how: usize,
    },
    Fault(Fault),
}

/// What a cluster does by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClusterAct {
    /// The scheduler starts a queued job.
    Start(usize),
    /// The ranks of a job print something.
    Print { job: usize, bytes: u64 },
    /// The ranks of a job end.
    End { job: usize, how: usize },
    /// Jobs that were created show in lists.
    List,
}

/// A job that a client submits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Job {
    /// 0 is this machine, the others are far clusters.
    pub cluster: usize,
    pub runs: u32,
    pub gpus: u32,
    pub tier: usize,
    pub has_secrets: bool,
    pub retries: bool,
    /// The run that must end before, and the condition.
    pub after: Option<(usize, usize)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    KillDaemon,
    /// The runner dies; its guard cleans up.
    KillRunner(usize),
    /// The runner and its guard die; its ranks stay.
    KillRunnerAndGuard(usize),
    KillClient(usize),
    /// Everything on this machine dies. Of what is not synced, so many parts in eight stay.
    PowerCut {
        kept: usize,
    },
    DiskFull(bool),
    /// Journals cannot be read.
    Unreadable(bool),
    /// No process can be started.
    NoProcesses(bool),
    /// The system's clock is set to another time.
    ClockJump(i64),
    Network {
        cluster: usize,
        is_up: bool,
    },
    /// The next call takes effect, and its answer is lost.
    LoseAnswer(usize),
    /// The cluster refuses submissions, or takes them again.
    Refuse {
        cluster: usize,
        on: bool,
    },
    /// The connection between the daemon and a runner breaks.
    CutRunner(usize),
}
