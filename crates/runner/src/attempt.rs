//! One attempt from its claim to its end, as a state machine. It wakes when a process ends, the daemon
//! sends a message, or a timer runs out.

mod data;
mod ended;
mod start;
mod stop;

use crate::code::Layout;
use crate::data::DataProcess;
use crate::launch::{Launch, Process, free_port};
use crate::memory::{MemoryGroup, kernel_kills};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use towline_core::reason::{Cause, Ending};
use towline_core::retry::hold_after;
use towline_core::time::Moment;
use towline_host::process::{ProcessFacts, Reaped, descendants, facts, kill_all_descendants, reap};
use towline_wire::runner::Assignment;

/// How long processes that the ranks left behind may take to end after SIGTERM.
const STRAGGLER_GRACE: Duration = Duration::from_secs(2);
/// How long a container may take to end after the processes in it.
const CONTAINER_EXIT_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// The code is being laid out.
    Layout,
    /// The data that it reads is being downloaded.
    Download,
    SetUp,
    Ranks,
    /// Set-up and ranks run below a second runner: in a container, or because the data process must
    /// outlive them.
    Inside,
    /// The ranks have ended; the processes that they left behind are being ended.
    CleanUp,
    /// All processes have ended; the data that they wrote is being collected.
    Collecting,
    /// A rank failed and the user asked to keep the nodes.
    Held,
    Done,
}

/// The change that a wake-up made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    Nothing,
    SetUpStarted,
    RanksStarted,
    Held { until: Moment },
    Done,
}

/// Whether set-up and ranks run below a second runner.
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
    step: Step,
    layout: Option<Layout>,
    data: Option<DataProcess>,
    /// Other nodes write to the same folders and have not ended.
    other_nodes_write: bool,
    uncollected: Option<String>,
    /// The runner inside has recorded an ending, and nothing below it is alive.
    inner_ending_read: bool,
    /// Decided once: the first cause counts.
    ending: Option<Ending>,
    kill_at: Option<Instant>,
    /// When the present processes started.
    began: Option<Instant>,
    time_limit: Option<Instant>,
    held_until: Option<Instant>,
    /// How many processes the kernel had killed before, where the cluster limits our memory.
    kills_before: u64,
    /// Process ids and start times of those that have received SIGTERM. A program may take a second
    /// one as an order to exit at once.
    signalled: Vec<(i32, u64)>,
    /// Grows while we wait for stragglers, which have no descriptor to poll.
    pause: Duration,
}

/// All descendants of this runner.
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
            // The cluster that allocated the node enforces the limit.
            Some(_) if assignment.gang.is_some() => Vec::new(),
            // One memory group for all nodes.
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
            step: Step::Layout,
            layout: None,
            data: None,
            other_nodes_write: false,
            uncollected: None,
            inner_ending_read: false,
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
            signalled: Vec::new(),
            pause: Duration::from_millis(1),
            assignment,
        }
    }

    /// The descriptors that wake us, besides the clock and the daemon.
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

    /// The ending, after [`Change::Done`] or [`Change::Held`].
    pub(crate) fn ending(&self) -> Ending {
        self.ending
            .clone()
            .unwrap_or_else(Ending::success)
            .with_uncollected(self.uncollected())
    }

    /// When to wake at the latest.
    pub(crate) fn timeout(&self) -> Duration {
        let now = Instant::now();
        let moments = match self.step {
            Step::CleanUp => return self.pause,
            Step::Held => [self.held_until, None],
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
        // Reap orphans that became our children at least every second.
        soonest
            .unwrap_or(Duration::from_secs(1))
            .min(Duration::from_secs(1))
    }

    /// Handles everything that may have happened since the last call.
    pub(crate) fn wake(&mut self) -> Change {
        if self.step == Step::Held {
            return self.wake_held();
        }
        let now = Instant::now();
        let childless = self.reap_all();
        if self.ending.is_none()
            && self.time_limit.is_some_and(|limit| now >= limit)
            && !matches!(self.step, Step::CleanUp | Step::Collecting)
        {
            self.ending = Some(Ending::cause(Cause::TimeLimit));
            self.terminate(false);
        }
        if let Some(change) = self.wake_layout() {
            return change;
        }
        match self.step {
            Step::Download => return self.wake_download(),
            Step::Collecting => return self.wake_collecting(),
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
        match self.step {
            Step::CleanUp if childless => self.finish(),
            Step::CleanUp => {
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
            Step::SetUp if self.ending.is_none() => self.start_ranks(),
            // The runner inside leaves no process behind; only the data process is left.
            Step::Inside if self.data.is_some() && self.inner_ending_read => self.finish(),
            Step::Inside if self.data.is_some() => {
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

    /// Reaps children that have ended; `true` when none is left.
    fn reap_all(&mut self) -> bool {
        loop {
            match reap() {
                Reaped::NoChildren => return true,
                Reaped::NoneYet => return false,
                Reaped::Child(pid, status) => self.ended(pid, status),
            }
        }
    }

    /// Called when no process of the attempt is alive.
    fn finish(&mut self) -> Change {
        self.processes.clear();
        if self.assignment.scripts_hold_tokens {
            self.launch().remove_scripts();
        }
        if let Some(change) = self.collect() {
            return change;
        }
        if self.assignment.data.is_some() {
            // A data process that was killed leaves the programs of its mounts behind.
            kill_all_descendants();
            for order in self.assignment.data.iter().flat_map(|data| &data.io) {
                towline_host::mounts::release_below(Path::new(&order.place));
            }
        }
        for group in self.memory.drain(..) {
            group.remove();
        }
        let wish = self.assignment.hold_on_failure;
        if let Some(span) = hold_after(&self.ending(), wish.map(Duration::from_secs)) {
            self.step = Step::Held;
            self.held_until = Some(Instant::now() + span);
            return Change::Held {
                until: towline_host::clock::now().plus_millis(span.as_secs() * 1000),
            };
        }
        self.step = Step::Done;
        Change::Done
    }

    fn wake_held(&mut self) -> Change {
        if self
            .held_until
            .is_some_and(|moment| Instant::now() >= moment)
        {
            self.step = Step::Done;
            return Change::Done;
        }
        Change::Nothing
    }
}
