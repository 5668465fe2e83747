//! SIGTERM as the order to end, and its sender. A cluster may signal every process of a job at
//! once. A runner that forwards such a signal would make the job receive it twice.

use crate::attempt::Attempt;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use signal_hook::consts::SIGTERM;
use signal_hook::iterator::backend::SignalDelivery;
use signal_hook::iterator::exfiltrator::WithOrigin;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// The sender of the order to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SignalSender {
    /// The runner above, which signalled us alone.
    Parent,
    /// Another process, which may have signalled the ranks as well.
    Other,
}

/// Receives `SIGTERM` from the moment it is made.
#[derive(Debug)]
pub(crate) struct EndSignal {
    delivery: SignalDelivery<UnixStream, WithOrigin>,
    parent: u32,
}

impl EndSignal {
    pub(crate) fn new() -> io::Result<Self> {
        let (receiver, sender) = UnixStream::pair()?;
        receiver.set_nonblocking(true)?;
        sender.set_nonblocking(true)?;
        let delivery =
            SignalDelivery::with_pipe(receiver, sender, WithOrigin::default(), [SIGTERM])?;
        Ok(Self {
            delivery,
            parent: std::os::unix::process::parent_id(),
        })
    }

    /// Waits for the signal, for `attempt` to have something to do, or for `limit`.
    pub(crate) fn wait(
        &mut self,
        attempt: Option<&Attempt>,
        limit: Duration,
    ) -> io::Result<Option<SignalSender>> {
        self.wait_also(attempt, &[], limit)
    }

    /// The same, and for anything to be read from `others`.
    pub(crate) fn wait_also(
        &mut self,
        attempt: Option<&Attempt>,
        others: &[BorrowedFd<'_>],
        limit: Duration,
    ) -> io::Result<Option<SignalSender>> {
        let timeout =
            crate::carry::timespec(attempt.map_or(limit, |attempt| attempt.timeout().min(limit)));
        let mut descriptors = vec![PollFd::from_borrowed_fd(
            self.delivery.get_read().as_fd(),
            PollFlags::IN,
        )];
        descriptors.extend(
            attempt
                .iter()
                .flat_map(|attempt| attempt.watches())
                .map(|watch| PollFd::from_borrowed_fd(watch, PollFlags::IN)),
        );
        descriptors.extend(
            others
                .iter()
                .map(|other| PollFd::from_borrowed_fd(*other, PollFlags::IN)),
        );
        match poll(&mut descriptors, Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let parent = self.parent;
        let senders = self.delivery.pending().map(|origin| match origin.process {
            Some(process) if u32::try_from(process.pid) == Ok(parent) => SignalSender::Parent,
            _ => SignalSender::Other,
        });
        // A signal to us alone is the one that must be forwarded.
        Ok(senders.max_by_key(|sender| *sender == SignalSender::Parent))
    }
}
