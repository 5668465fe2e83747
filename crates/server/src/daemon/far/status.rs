//! When a cluster was last heard of, in a file that readers look at: what they show is true as of
//! then, or says since when it is not.

use std::cell::Cell;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use towline_wire::cluster::ClusterStatus;

/// A moment that is written down again only after this time.
const EVERY: Duration = Duration::from_secs(5);

pub(super) struct Status {
    path: PathBuf,
    written: Cell<Option<(Instant, bool)>>,
}

impl Status {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, written: Cell::new(None) }
    }

    pub(super) fn seen(&self) {
        let fresh = self.written.get().is_some_and(|(at, good)| good && at.elapsed() < EVERY);
        if !fresh {
            self.write(&ClusterStatus { seen: Some(towline_host::clock::now()), trouble: None, hints: Vec::new() }, true);
        }
    }

    pub(super) fn trouble(&self, why: &str, hints: &[String]) {
        let seen = ClusterStatus::read(&self.path).and_then(|status| status.seen);
        self.write(&ClusterStatus { seen, trouble: Some(why.to_owned()), hints: hints.to_vec() }, false);
    }

    fn write(&self, status: &ClusterStatus, good: bool) {
        if let Ok(bytes) = serde_json::to_vec(status) {
            let _ = towline_host::once::replace(&self.path, &bytes);
        }
        self.written.set(Some((Instant::now(), good)));
    }
}
