//! When a cluster was last heard of, in a file that readers look at: what they show is true as of
//! then, or says since when it is not.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};
use towline_wire::cluster::ClusterStatus;

/// A moment that is written down again only after this time.
const EVERY: Duration = Duration::from_secs(5);
/// A question that is without an answer for this long is trouble, whatever comes of it: a line that
/// is cut hangs for a while before it breaks.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) struct Status(Arc<Mutex<Inner>>);

struct Inner {
    path: PathBuf,
    written: Option<(Instant, bool)>,
    /// Since when an answer is waited for.
    waiting: Option<Instant>,
}

impl Status {
    pub(super) fn new(path: PathBuf) -> Self {
        let inner = Arc::new(Mutex::new(Inner { path, written: None, waiting: None }));
        let watched = Arc::downgrade(&inner);
        // Without it a line that hangs is noticed when it breaks.
        let _ = std::thread::Builder::new().name("patience".into()).spawn(move || watch(&watched));
        Self(inner)
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn waits(&self) {
        self.inner().waiting = Some(Instant::now());
    }

    pub(super) fn waits_no_more(&self) {
        self.inner().waiting = None;
    }

    pub(super) fn seen(&self) {
        let mut inner = self.inner();
        inner.waiting = None;
        let fresh = inner.written.is_some_and(|(at, good)| good && at.elapsed() < EVERY);
        if !fresh {
            inner.write(&ClusterStatus { seen: Some(towline_host::clock::now()), trouble: None, hints: Vec::new() }, true);
        }
    }

    pub(super) fn trouble(&self, why: &str, hints: &[String]) {
        let mut inner = self.inner();
        inner.waiting = None;
        inner.trouble(why, hints);
    }
}

impl Inner {
    fn trouble(&mut self, why: &str, hints: &[String]) {
        let seen = ClusterStatus::read(&self.path).ok().flatten().and_then(|status| status.seen);
        self.write(&ClusterStatus { seen, trouble: Some(why.to_owned()), hints: hints.to_vec() }, false);
    }

    fn write(&mut self, status: &ClusterStatus, good: bool) {
        if let Ok(bytes) = serde_json::to_vec(status) {
            let _ = towline_host::once::replace(&self.path, &bytes);
        }
        self.written = Some((Instant::now(), good));
    }
}

/// Says so when an answer does not come. Ends with the status.
fn watch(status: &Weak<Mutex<Inner>>) {
    loop {
        std::thread::park_timeout(Duration::from_secs(1));
        let Some(inner) = status.upgrade() else { return };
        let mut inner = inner.lock().unwrap_or_else(PoisonError::into_inner);
        if inner.waiting.is_some_and(|since| since.elapsed() > PATIENCE) {
            inner.waiting = None;
            inner.trouble("the cluster does not answer", &[]);
        }
    }
}
