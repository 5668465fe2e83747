//! When a cluster was last heard of, in a file that readers look at: what they show is true as of
//! then, or says since when it is not.

use super::super::log;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};
use towline_core::Error;
use towline_core::time::Moment;
use towline_wire::cluster::ClusterStatus;

/// A moment that is written down again only after this time.
const SEEN_WRITE_INTERVAL: Duration = Duration::from_secs(5);
/// How often it is looked whether an answer that is waited for is in trouble.
const TROUBLE_CHECK_INTERVAL: Duration = Duration::from_millis(500);
/// A question that is without an answer for this long is trouble, whatever comes of it: a line that
/// is cut hangs for a while before it breaks.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

pub(super) struct Status(Arc<Mutex<Inner>>);

struct Inner {
    path: PathBuf,
    written: Option<(Instant, bool)>,
    /// Since when an answer is waited for.
    waiting: Option<Instant>,
    /// What was told while an answer is still waited for: gone when it comes.
    passing: Option<String>,
}

impl Status {
    /// `trouble` tells what keeps the cluster from answering while it is asked again and again.
    pub(super) fn new(path: PathBuf, trouble: impl Fn() -> Option<Error> + Send + 'static) -> Self {
        let inner = Arc::new(Mutex::new(Inner {
            path,
            written: None,
            waiting: None,
            passing: None,
        }));
        let watched = Arc::downgrade(&inner);
        // Without it a line that hangs is noticed when it breaks.
        let _ = std::thread::Builder::new()
            .name("patience".into())
            .spawn(move || watch(&watched, &trouble));
        Self(inner)
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn waits(&self) {
        self.inner().waiting = Some(Instant::now());
    }

    pub(super) fn waits_no_more(&self) {
        let mut inner = self.inner();
        inner.waiting = None;
        if inner.passing.take().is_some() {
            let seen = inner.last_seen();
            inner.write(
                &ClusterStatus {
                    seen,
                    ..ClusterStatus::default()
                },
                false,
            );
        }
    }

    pub(super) fn seen(&self) {
        let mut inner = self.inner();
        (inner.waiting, inner.passing) = (None, None);
        let fresh = inner
            .written
            .is_some_and(|(at, good)| good && at.elapsed() < SEEN_WRITE_INTERVAL);
        if !fresh {
            inner.write(
                &ClusterStatus {
                    seen: Some(towline_host::clock::now()),
                    ..ClusterStatus::default()
                },
                true,
            );
        }
    }

    pub(super) fn trouble(&self, why: &str, hints: &[String]) {
        let mut inner = self.inner();
        (inner.waiting, inner.passing) = (None, None);
        inner.trouble(why, hints);
    }
}

impl Inner {
    fn last_seen(&self) -> Option<Moment> {
        ClusterStatus::read(&self.path)
            .ok()
            .flatten()
            .and_then(|status| status.seen)
    }

    fn trouble(&mut self, why: &str, hints: &[String]) {
        let status = ClusterStatus {
            seen: self.last_seen(),
            trouble: Some(why.to_owned()),
            hints: hints.to_vec(),
            at: Some(towline_host::clock::now()),
        };
        self.write(&status, false);
    }

    /// Tells what is known of an answer that does not come: at once, and now and then that it is
    /// still so.
    fn passing(&mut self, why: &str, hints: &[String]) {
        if self.passing.as_deref() != Some(why)
            || self
                .written
                .is_none_or(|(at, _)| at.elapsed() >= SEEN_WRITE_INTERVAL)
        {
            self.passing = Some(why.to_owned());
            self.trouble(why, hints);
        }
    }

    fn write(&mut self, status: &ClusterStatus, good: bool) {
        let written = serde_json::to_vec(status)
            .map_err(std::io::Error::from)
            .and_then(|bytes| towline_host::once::replace(&self.path, &bytes));
        if let Err(error) = written {
            log(&format!(
                "{} cannot be written: {error}",
                self.path.display()
            ));
        }
        self.written = Some((Instant::now(), good));
    }
}

/// Says so when an answer does not come. Ends with the status.
fn watch(status: &Weak<Mutex<Inner>>, trouble: &dyn Fn() -> Option<Error>) {
    loop {
        std::thread::park_timeout(TROUBLE_CHECK_INTERVAL);
        let Some(inner) = status.upgrade() else {
            return;
        };
        let mut inner = inner.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(since) = inner.waiting else { continue };
        match trouble() {
            Some(error) => inner.passing(&error.to_string(), error.hints()),
            None if since.elapsed() > ANSWER_TIMEOUT && inner.passing.is_none() => {
                inner.passing("the cluster does not answer", &[]);
            }
            None => {}
        }
    }
}
