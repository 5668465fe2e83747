//! Records in a file when a cluster last answered. Commands read it to show how old their facts
//! are, and why there are no newer ones.

use super::super::log;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};
use towline_core::Error;
use towline_core::time::Moment;
use towline_wire::cluster::ClusterStatus;

/// The time of the last answer is written again only after this interval.
const SEEN_WRITE_INTERVAL: Duration = Duration::from_secs(5);
/// How often to check whether a pending query is in trouble.
const TROUBLE_CHECK_INTERVAL: Duration = Duration::from_millis(500);
/// A query without an answer for this long is reported as trouble, because a broken connection
/// hangs for a while before it fails.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

pub(super) struct Status(Arc<Mutex<Inner>>);

struct Inner {
    path: PathBuf,
    written: Option<(Instant, bool)>,
    /// Since when a query is pending.
    waiting: Option<Instant>,
    /// The trouble reported while the query is pending; removed when the answer comes.
    passing: Option<String>,
}

impl Status {
    /// `trouble` says why the cluster does not answer while a query is being retried.
    pub(super) fn new(path: PathBuf, trouble: impl Fn() -> Option<Error> + Send + 'static) -> Self {
        let inner = Arc::new(Mutex::new(Inner {
            path,
            written: None,
            waiting: None,
            passing: None,
        }));
        let watched = Arc::downgrade(&inner);
        // Without this thread a hung connection shows only when TCP gives up.
        let _ = std::thread::Builder::new()
            .name("cluster-status".into())
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

    /// Reports the trouble of a pending query: at once, and again after each write interval.
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

/// Reports when an answer does not come. Ends when the status is dropped.
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
