//! The open streams by name, so that a caller can change which logs one of them follows.

use rustix::event::{EventfdFlags, eventfd};
use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};
use towline_core::{Error, Result};
use towline_wire::api::stream::{EventsLogs, LogFrom};

/// How many logs one stream may follow.
const MAX_LOGS: usize = 256;
/// How many streams there may be.
const MAX_STREAMS: usize = 256;

#[derive(Debug, Default)]
pub struct Streams(Arc<Mutex<HashMap<String, Arc<Wanted>>>>);

/// The logs that a stream is to follow.
#[derive(Debug)]
struct Wanted {
    logs: Mutex<Option<Vec<LogFrom>>>,
    wake: OwnedFd,
}

/// One open stream. It is closed when it is dropped.
#[derive(Debug)]
pub(super) struct Stream {
    name: String,
    wanted: Arc<Wanted>,
    all: Arc<Mutex<HashMap<String, Arc<Wanted>>>>,
}

impl Streams {
    pub(super) fn begin(&self, logs: Vec<LogFrom>) -> io::Result<Stream> {
        check(&logs).map_err(io::Error::other)?;
        let mut name = [0; 8];
        getrandom::fill(&mut name).map_err(io::Error::other)?;
        let name = format!("{:016x}", u64::from_le_bytes(name));
        let wanted = Arc::new(Wanted {
            logs: Mutex::new(Some(logs)),
            wake: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
        });
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MAX_STREAMS {
            return Err(io::Error::other(format!(
                "{MAX_STREAMS} streams are open already"
            )));
        }
        all.insert(name.clone(), Arc::clone(&wanted));
        Ok(Stream {
            name,
            wanted,
            all: Arc::clone(&self.0),
        })
    }

    /// Changes which logs a stream follows.
    pub fn follow(&self, ask: EventsLogs) -> Result<()> {
        check(&ask.logs)?;
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let wanted = all.get(&ask.stream).ok_or_else(|| {
            Error::not_found(format!("there is no open stream `{}`", ask.stream))
                .hint("its name is in its first item")
        })?;
        *wanted.logs.lock().unwrap_or_else(PoisonError::into_inner) = Some(ask.logs);
        // The counter cannot be full: the stream reads it whenever it wakes.
        let _ = rustix::io::write(&wanted.wake, &1u64.to_ne_bytes());
        Ok(())
    }
}

fn check(logs: &[LogFrom]) -> Result<()> {
    if logs.len() > MAX_LOGS {
        return Err(Error::usage(format!("{} logs are too many", logs.len()))
            .hint(format!("one stream follows at most {MAX_LOGS}")));
    }
    Ok(())
}

impl Stream {
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Becomes readable when other logs are to be followed.
    pub(super) fn wake(&self) -> BorrowedFd<'_> {
        self.wanted.wake.as_fd()
    }

    /// The logs to follow from now on, if they changed since the last call.
    pub(super) fn take(&self) -> Option<Vec<LogFrom>> {
        let mut count = [0; 8];
        let _ = rustix::io::read(&self.wanted.wake, &mut count);
        let logs = &self.wanted.logs;
        logs.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.remove(&self.name);
    }
}
