//! One attempt from its claim to its end, as a machine that is woken: by an ended process, by the
//! daemon, by the clock.

mod data;
mod ended;

use crate::code::Layout;
use crate::data::DataProcess;
use crate::launch::{Launch, LaunchError, Process, free_port};
use crate::memory::{MemoryGroup, kernel_kills};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use towline_core::reason::{Cause, Ending};
use towline_core::time::Moment;
use towline_host::process::{
    ProcessFacts, Reaped, descendants, facts, kill_all_descendants, reap, terminate,
    terminate_group,
};
use towline_wire::runner::{Assignment, Stop};

/// How long what the ranks left behind may take to leave by itself.
const STRAGGLER_GRACE: Duration = Duration::from_secs(2);
/// How long a container may take to be gone once what runs in it is.
const CONTAINER_EXIT_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The code is being laid out.
    Layout,
    /// What is read is being brought.
    Staging,
    SetUp,
    Ranks,
    /// All of it runs by a runner of its own, below us: in a container, or because our data
    /// process must outlive it.
    Inside,
    /// The ranks have ended; what they left behind is being ended.
    CleanUp,
    /// Nothing of it is alive; what it wrote is being collected.
    Collecting,
    /// A rank failed and the user asked to keep the nodes.
    Held,
    Done,
}

/// What a wake-up changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    Nothing,
    SetUpStarted,
    RanksStarted,
    Held { until: Moment },
    Done,
}

/// Whether all of it runs by a runner of its own.
const fn is_inside(assignment: &Assignment) -> bool {
    assignment.container.is_some() || assignment.data.is_some()
}

#[derive(Debug)]
pub(crate) struct Attempt {
    pub(crate) assignment: Assignment,
    folder: PathBuf,
    hosts: Vec<String>,
    port: u16,
    memory: Vec<MemoryGroup>,
    pub(crate) processes: Vec<Process>,
    stage: Stage,
    layout: Option<Layout>,
    data: Option<DataProcess>,
    /// Nodes that are not ours write to the same folders and have not ended.
    other_nodes_write: bool,
    uncollected: Option<String>,
    /// The runner inside came to its end, and nothing below it is alive.
    left_an_ending: bool,
    /// Decided once; the first cause stays.
    ending: Option<Ending>,
    kill_at: Option<Instant>,
    /// When the processes began that are alive now.
    began: Option<Instant>,
    time_limit: Option<Instant>,
    held_until: Option<Instant>,
    /// What the kernel had killed before it, where the cluster limits our memory.
    kills_before: u64,
    /// Processes that have had their SIGTERM, with their starts: a program may take a second one as
    /// an order to leave at once.
    told: Vec<(i32, u64)>,
    /// Grows while stragglers are waited for: they have no descriptor to watch.
    pause: Duration,
}

/// All that descends from this runner.
fn below_us() -> impl Iterator<Item = (i32, ProcessFacts)> {
    let own = rustix::process::getpid().as_raw_nonzero().get();
    descendants(own)
        .into_iter()
        .filter_map(|pid| Some((pid, facts(pid)?)))
}

impl Attempt {
    /// Prepares the attempt in the run's folder; nothing runs yet.
    pub(crate) fn new(assignment: Assignment, folder: &Path, runner: &str) -> Self {
        let nodes = assignment.shape.nodes;
        let group = |node: u32, bytes| MemoryGroup::create(&format!("{runner}-{node}"), bytes);
        let memory = match assignment.memory {
            None => Vec::new(),
            // The cluster that gave us the node enforces what it gave.
            Some(_) if assignment.gang.is_some() => Vec::new(),
            // One room for all of it.
            Some(bytes) if is_inside(&assignment) => {
                group(0, bytes * u64::from(nodes)).into_iter().collect()
            }
            Some(bytes) => (0..nodes)
                .map(|node| group(node, bytes))
                .collect::<Option<Vec<_>>>()
                .unwrap_or_default(),
        };
        let (hosts, port) = match &assignment.gang {
            Some(place) => (place.hosts.clone(), place.port),
            None => (vec!["127.0.0.1".to_owned(); nodes as usize], free_port()),
        };
        Self {
            folder: folder.to_owned(),
            hosts,
            port,
            memory,
            processes: Vec::new(),
            stage: Stage::Layout,
            layout: None,
            data: None,
            other_nodes_write: false,
            uncollected: None,
            left_an_ending: false,
            ending: None,
            kill_at: None,
            began: None,
            time_limit: assignment
                .time
                .map(|seconds| Instant::now() + Duration::from_secs(seconds)),
            held_until: None,
            kills_before: if assignment.gang.is_some() {
                kernel_kills()
            } else {
                0
            },
            told: Vec::new(),
            pause: Duration::from_millis(1),
            assignment,
        }
    }

    /// Lays the code out, if there is any to lay out; then set-up, then the ranks.
    pub(crate) fn begin(&mut self) -> Change {
        rustix::process::umask(rustix::fs::Mode::from_raw_mode(
            self.assignment.umask & 0o777,
        ));
        let Some(order) = self.assignment.code.clone() else {
            return self.bring_data();
        };
        match Layout::begin(order, self.assignment.attempt) {
            Ok(layout) => {
                self.layout = Some(layout);
                Change::Nothing
            }
            Err(error) => self.not_started(&format!("the code could not be laid out: {error}")),
        }
    }

    /// Starts set-up, or the ranks where there is none.
    fn set_up(&mut self) -> Change {
        if is_inside(&self.assignment) {
            self.stage = Stage::Inside;
            let started = self.launch().inside();
            return self.started(started.map(|process| vec![process]), Change::RanksStarted);
        }
        self.stage = Stage::SetUp;
        if self.assignment.setup.is_empty() {
            return self.start_ranks();
        }
        let started = self.launch().set_up();
        self.started(started, Change::SetUpStarted)
    }

    fn not_started(&mut self, why: &str) -> Change {
        self.ending
            .get_or_insert(Ending::cause(Cause::NotStarted).detail(why.to_owned()));
        self.stage = Stage::CleanUp;
        self.wake()
    }

    /// `None` while there is nothing to wait for any more.
    fn wake_layout(&mut self) -> Option<Change> {
        let layout = self.layout.as_ref()?;
        if self.ending.is_some() {
            layout.stop();
        }
        if !layout.is_over() {
            return Some(Change::Nothing);
        }
        let outcome = self.layout.take()?.finish();
        Some(match outcome {
            _ if self.ending.is_some() => self.finish(),
            Ok(()) => self.bring_data(),
            Err(error) => self.not_started(&format!("the code could not be laid out: {error}")),
        })
    }

    /// What wakes us, beside the clock and the daemon.
    pub(crate) fn watches(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let processes = self
            .processes
            .iter()
            .filter_map(|process| process.watch.as_ref().map(AsFd::as_fd));
        processes
            .chain(self.layout.as_ref().map(Layout::watch))
            .chain(self.data.iter().flat_map(DataProcess::watches))
    }

    fn launch(&self) -> Launch<'_> {
        Launch {
            assignment: &self.assignment,
            folder: &self.folder,
            hosts: &self.hosts,
            port: self.port,
            memory: &self.memory,
        }
    }

    fn start_ranks(&mut self) -> Change {
        self.stage = Stage::Ranks;
        let started = self.launch().ranks();
        self.started(started, Change::RanksStarted)
    }

    fn started(&mut self, started: Result<Vec<Process>, LaunchError>, change: Change) -> Change {
        match started {
            Ok(processes) => {
                self.processes = processes;
                self.began = Some(Instant::now());
                change
            }
            Err(problem) => {
                let mut ending = Ending::cause(Cause::NotStarted).detail(problem.to_string());
                ending.exit_code = Some(problem.exit_code());
                self.ending.get_or_insert(ending);
                self.stage = Stage::CleanUp;
                // The data process waits for us to say that it is over.
                if self.data.is_some() {
                    self.finish()
                } else {
                    self.wake()
                }
            }
        }
    }

    /// The ending, once [`Change::Done`] or [`Change::Held`] was told.
    pub(crate) fn ending(&self) -> Ending {
        self.ending
            .clone()
            .unwrap_or_else(Ending::success)
            .with_uncollected(self.uncollected())
    }

    /// Ends the attempt from outside: SIGTERM now, SIGKILL after the grace.
    pub(crate) fn stop(&mut self, why: Stop) {
        self.end(why, false);
    }

    /// The same, where every process has had its SIGTERM from somebody else.
    pub(crate) fn stop_told(&mut self, why: Stop) {
        // One that began while the others were told may have been missed; better twice than never.
        let is_young = self
            .began
            .is_some_and(|moment| moment.elapsed() < Duration::from_secs(1));
        self.end(why, !is_young && self.assignment.container.is_none());
    }

    fn end(&mut self, why: Stop, is_told: bool) {
        if self.stage == Stage::Held {
            // The failure stays the ending; only the keeping of the nodes is over.
            self.held_until = Some(Instant::now());
            return;
        }
        let cause = match why {
            Stop::ByUser => Cause::ByUser,
            Stop::Preempted => Cause::Preempted,
        };
        // A user's wish outranks a preemption that is under way.
        let replace = matches!(
            self.ending.as_ref().and_then(|ending| ending.cause),
            None | Some(Cause::Preempted)
        );
        if replace && cause != Cause::Preempted || self.ending.is_none() {
            self.ending = Some(Ending::cause(cause));
        }
        self.terminate(is_told);
    }

    /// SIGTERM to every rank's process group, once, unless they have had it.
    fn terminate(&mut self, is_told: bool) {
        if self.kill_at.is_some() {
            return;
        }
        // A runtime takes its own time to pass the word on and to clear away.
        let slack = if self.stage == Stage::Inside {
            CONTAINER_EXIT_TIMEOUT
        } else {
            Duration::ZERO
        };
        self.kill_at =
            Some(Instant::now() + Duration::from_millis(self.assignment.grace_millis) + slack);
        let groups: Vec<i32> = self
            .processes
            .iter()
            .filter(|process| process.status.is_none())
            .map(|process| process.pid)
            .collect();
        self.told = below_us()
            .filter(|(_, facts)| is_told || groups.contains(&facts.group))
            .map(|(pid, facts)| (pid, facts.started))
            .collect();
        if !is_told {
            groups.into_iter().for_each(terminate_group);
        }
    }

    /// When to wake at the latest.
    pub(crate) fn timeout(&self) -> Duration {
        let now = Instant::now();
        let moments = match self.stage {
            Stage::CleanUp => return self.pause,
            Stage::Held => [self.held_until, None],
            _ => [
                self.kill_at,
                self.time_limit.filter(|_| self.ending.is_none()),
            ],
        };
        let soonest = moments.into_iter().flatten().min().map(|moment| {
            moment
                .saturating_duration_since(now)
                .max(Duration::from_millis(5))
        });
        // Orphans that fell to us are collected at least every second.
        soonest
            .unwrap_or(Duration::from_secs(1))
            .min(Duration::from_secs(1))
    }

    /// Looks at everything that may have happened.
    pub(crate) fn wake(&mut self) -> Change {
        if self.stage == Stage::Held {
            return self.wake_held();
        }
        let now = Instant::now();
        let childless = self.reap_all();
        if self.ending.is_none()
            && self.time_limit.is_some_and(|limit| now >= limit)
            && !matches!(self.stage, Stage::CleanUp | Stage::Collecting)
        {
            self.ending = Some(Ending::cause(Cause::TimeLimit));
            self.terminate(false);
        }
        if let Some(change) = self.wake_layout() {
            return change;
        }
        match self.stage {
            Stage::Staging => return self.wake_staging(),
            Stage::Collecting => return self.wake_collecting(),
            _ => {}
        }
        if self.kill_at.is_some_and(|moment| now >= moment) {
            self.launch().remove_container();
            kill_all_descendants();
            if let Some(data) = &mut self.data {
                data.has_ended(false);
            }
            return self.finish();
        }
        match self.stage {
            Stage::CleanUp if childless => self.finish(),
            Stage::CleanUp => {
                self.pause = (self.pause * 2).min(Duration::from_millis(50));
                Change::Nothing
            }
            _ if self
                .processes
                .iter()
                .any(|process| process.status.is_none()) =>
            {
                Change::Nothing
            }
            Stage::SetUp if self.ending.is_none() => self.start_ranks(),
            // The runner inside leaves nothing behind; only the data process is below us.
            Stage::Inside if self.data.is_some() && self.left_an_ending => self.finish(),
            Stage::Inside if self.data.is_some() => {
                kill_all_descendants();
                if let Some(data) = &mut self.data {
                    data.has_ended(false);
                }
                self.finish()
            }
            _ if childless => self.finish(),
            _ => {
                self.end_stragglers();
                Change::Nothing
            }
        }
    }

    /// Collects what has ended; `true` when no child is left.
    fn reap_all(&mut self) -> bool {
        loop {
            match reap() {
                Reaped::NoChildren => return true,
                Reaped::NoneYet => return false,
                Reaped::Child(pid, status) => self.ended(pid, status),
            }
        }
    }

    fn end_stragglers(&mut self) {
        self.stage = Stage::CleanUp;
        // A program behind a shell outlives it, and has had its SIGTERM with it.
        for (pid, _) in
            below_us().filter(|(pid, facts)| !self.told.contains(&(*pid, facts.started)))
        {
            terminate(pid);
        }
        self.kill_at.get_or_insert(Instant::now() + STRAGGLER_GRACE);
    }

    /// Nothing of the attempt is alive any more.
    fn finish(&mut self) -> Change {
        self.processes.clear();
        if self.assignment.scripts_hold_tokens {
            self.launch().remove_scripts();
        }
        if let Some(change) = self.collect() {
            return change;
        }
        if self.assignment.data.is_some() {
            // A data process that was killed leaves the programs behind its mounts.
            kill_all_descendants();
            for order in self.assignment.data.iter().flat_map(|data| &data.io) {
                towline_host::mounts::release_below(Path::new(&order.place));
            }
        }
        for group in self.memory.drain(..) {
            group.remove();
        }
        let failed = self.ending().cause.is_some_and(Cause::is_own_failure);
        match self.assignment.hold_on_failure {
            Some(seconds) if failed => {
                self.stage = Stage::Held;
                self.held_until = Some(Instant::now() + Duration::from_secs(seconds));
                Change::Held {
                    until: towline_host::clock::now().plus_millis(seconds * 1000),
                }
            }
            _ => {
                self.stage = Stage::Done;
                Change::Done
            }
        }
    }

    fn wake_held(&mut self) -> Change {
        if self
            .held_until
            .is_some_and(|moment| Instant::now() >= moment)
        {
            self.stage = Stage::Done;
            return Change::Done;
        }
        Change::Nothing
    }
}
