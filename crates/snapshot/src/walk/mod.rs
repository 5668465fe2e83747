//! Walks a tree: every entry that is included, and what was left out and why. Only folders and
//! ignore files are read.

mod folder;
mod found;

pub use found::{Found, FoundKind, LeftOut, Limits, Stamp, Walked};

use crate::problem::{Problem, Result};
use crate::rules::{Chain, Rules};
use std::ffi::OsString;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// How many folders one thread walks before others help.
const FOLDERS_BEFORE_THREADS: usize = 16;

/// A folder to walk. It is opened only when its turn comes, because many may wait.
struct Job {
    path: PathBuf,
    below: Vec<u8>,
    chain: Option<Arc<Chain>>,
}

#[derive(Default)]
struct Shared {
    jobs: Vec<Job>,
    busy: usize,
    files: usize,
    bytes: u64,
    problem: Option<Problem>,
    stop: bool,
}

struct Walk<'a> {
    rules: &'a Rules,
    limits: Limits,
    shared: Mutex<Shared>,
    wake: Condvar,
}

/// Walks `root`. Beyond the limits it goes on long enough to find the largest folders, then stops.
pub fn walk(root: &Path, rules: &Rules, limits: Limits) -> Result<Walked> {
    let job = Job {
        path: root.to_owned(),
        below: Vec::new(),
        chain: rules.above().cloned(),
    };
    let walk = Walk {
        rules,
        limits,
        shared: Mutex::new(Shared {
            jobs: vec![job],
            ..Shared::default()
        }),
        wake: Condvar::new(),
    };
    // A small tree is walked in less time than it takes to start a thread.
    let mut walked = walk.work(FOLDERS_BEFORE_THREADS);
    if walk.goes_on() {
        walk.work_in_threads(&mut walked);
    }
    let shared = walk
        .shared
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    if let Some(problem) = shared.problem {
        return Err(problem);
    }
    walked.cut_short = shared.stop;
    walked.found.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    walked.left_out.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    Ok(walked)
}

impl Walk<'_> {
    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn goes_on(&self) -> bool {
        let shared = self.lock();
        !shared.jobs.is_empty() && !shared.stop && shared.problem.is_none()
    }

    fn work_in_threads(&self, walked: &mut Walked) {
        let threads = std::thread::available_parallelism().map_or(1, |count| count.get().min(8));
        std::thread::scope(|scope| {
            // If no more threads can be made, the existing ones do all the work.
            let others: Vec<_> = (1..threads)
                .map_while(|_| {
                    std::thread::Builder::new()
                        .spawn_scoped(scope, || self.work(usize::MAX))
                        .ok()
                })
                .collect();
            let mut parts = vec![self.work(usize::MAX)];
            parts.extend(others.into_iter().filter_map(|thread| thread.join().ok()));
            for part in parts {
                walked.found.extend(part.found);
                walked.left_out.extend(part.left_out);
            }
        });
    }

    /// Walks folders until all are done, or `most` of them.
    fn work(&self, most: usize) -> Walked {
        let mut part = Walked::default();
        let mut buffer = vec![MaybeUninit::uninit(); 32 << 10];
        for _ in 0..most {
            let job = {
                let mut shared = self.lock();
                loop {
                    if shared.stop || shared.problem.is_some() {
                        return part;
                    }
                    if let Some(job) = shared.jobs.pop() {
                        shared.busy += 1;
                        break job;
                    }
                    if shared.busy == 0 {
                        return part;
                    }
                    shared = self
                        .wake
                        .wait(shared)
                        .unwrap_or_else(PoisonError::into_inner);
                }
            };
            let before = (part.found.len(), part.left_out.len());
            let outcome = self.walk_folder(&job, &mut part, &mut buffer);
            let (mut files, mut bytes) = (0, 0);
            for found in part.found[before.0..]
                .iter()
                .filter(|found| found.kind == FoundKind::File)
            {
                files += 1;
                bytes += found.stamp.size;
            }
            let mut shared = self.lock();
            shared.busy -= 1;
            match outcome {
                Ok(jobs) => shared.jobs.extend(jobs),
                Err(problem) => shared.problem = Some(problem),
            }
            shared.files += files;
            shared.bytes = shared.bytes.saturating_add(bytes);
            // At four times the limits the largest folders are known well enough.
            shared.stop |=
                shared.files / 4 >= self.limits.files || shared.bytes / 4 >= self.limits.bytes;
            self.wake.notify_all();
        }
        part
    }
}

/// A path below the root as the system takes it.
pub(crate) fn join(root: &Path, below: &[u8]) -> PathBuf {
    root.join(OsString::from_vec(below.to_vec()))
}
