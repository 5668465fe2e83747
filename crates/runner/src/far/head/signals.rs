//! The signals that the scheduler sends to the head of a job.

use rustix::event::{PollFd, PollFlags, poll};
use std::io::{self, Read};
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// SIGTERM and SIGUSR1, each as a stream that becomes readable when the signal arrives.
pub(super) struct Signals {
    end: UnixStream,
    near_end: UnixStream,
}

impl Signals {
    pub(super) fn new() -> io::Result<Self> {
        let stream = |signal| -> io::Result<UnixStream> {
            let (ours, theirs) = UnixStream::pair()?;
            ours.set_nonblocking(true)?;
            signal_hook::low_level::pipe::register(signal, theirs)?;
            Ok(ours)
        };
        Ok(Self {
            end: stream(signal_hook::consts::SIGTERM)?,
            near_end: stream(signal_hook::consts::SIGUSR1)?,
        })
    }

    /// Waits for a signal, for anything to be read from `others`, or for `limit`.
    pub(super) fn wait(&self, limit: Duration, others: &[BorrowedFd<'_>]) {
        let limit = crate::carry::timespec(limit);
        let mut watched = vec![
            PollFd::new(&self.end, PollFlags::IN),
            PollFd::new(&self.near_end, PollFlags::IN),
        ];
        watched.extend(
            others
                .iter()
                .map(|other| PollFd::from_borrowed_fd(*other, PollFlags::IN)),
        );
        let _ = poll(&mut watched, Some(&limit));
    }

    /// Whether the scheduler ends the job.
    pub(super) fn is_end(&mut self) -> bool {
        self.end.read(&mut [0; 8]).is_ok_and(|count| count > 0)
    }

    /// Whether the scheduler warns that the time limit is near.
    pub(super) fn is_near_end(&mut self) -> bool {
        self.near_end.read(&mut [0; 8]).is_ok_and(|count| count > 0)
    }
}
