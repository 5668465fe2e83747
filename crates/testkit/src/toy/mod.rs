//! The smallest kind of cluster: jobs live in memory, and the test plays their lives. It shows what
//! a new kind needs, and has switches for faults of real clusters.

mod cluster;

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use towline_core::cluster::Wake;
use towline_core::event::RunEvent;
use towline_core::plan::Plan;
use towline_core::reason::Ending;
use towline_core::state::{RunState, Step, reduce};
use towline_core::{Error, Result, RunId};

/// A fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fault {
    #[default]
    None,
    /// A submission arrives, its answer is lost.
    LostAnswer,
    /// No query is answered.
    Unreachable,
}

/// One job.
#[derive(Debug, Default)]
struct ToyJob {
    state: RunState,
    log: Vec<u8>,
    files: BTreeMap<String, Vec<u8>>,
}

#[derive(Default)]
struct World {
    jobs: HashMap<RunId, ToyJob>,
    plans: HashMap<RunId, Plan>,
    blobs: HashMap<String, Vec<u8>>,
    fault: Fault,
    wakes: Vec<Wake>,
}

/// A cluster in memory.
#[derive(Default)]
pub struct ToyCluster {
    world: Mutex<World>,
    calls: AtomicUsize,
}

impl std::fmt::Debug for ToyCluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ToyCluster").finish_non_exhaustive()
    }
}

impl ToyCluster {
    pub fn set_fault(&self, fault: Fault) {
        self.world().fault = fault;
    }

    /// The number of calls that a real cluster would have answered.
    pub fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts one query.
    fn call(&self) -> Result<MutexGuard<'_, World>> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        let world = self.world();
        if world.fault == Fault::Unreachable {
            return Err(Error::unreachable("the toy cluster is unplugged"));
        }
        Ok(world)
    }

    /// The life of a job: it starts, writes a log and a file, and ends.
    pub fn play(&self, run: &RunId, log: &[u8], ending: Ending) {
        let mut world = self.world();
        let Some(job) = world.jobs.get_mut(run) else {
            return;
        };
        job.log = log.to_vec();
        job.files
            .insert("outputs/deep/file".to_owned(), b"0123456789".to_vec());
        for event in [
            RunEvent::AttemptIntent {
                attempt: 1,
                runner: "toy".to_owned(),
                gpus: Vec::new(),
                durable: true,
            },
            RunEvent::AttemptStarted { attempt: 1 },
            RunEvent::Ended { attempt: 1, ending },
        ] {
            job.step(&event);
        }
        let wakes = world.wakes.clone();
        drop(world);
        for wake in &wakes {
            wake();
        }
    }
}

impl ToyJob {
    fn step(&mut self, event: &RunEvent) {
        if let Ok(Step::Changed(next)) = reduce(&self.state, event) {
            self.state = *next;
        }
    }
}
