//! The end of a call that its caller no longer wants. It can be asked, and waited for together with
//! other descriptors.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};

/// Ends a call, and all its clones with it. Dropping it ends nothing.
#[derive(Debug, Clone)]
pub struct Canceller(Arc<Mutex<Option<UnixStream>>>);

/// What the work of a call looks at.
#[derive(Debug)]
pub struct Cancel(UnixStream);

/// A pair for one call.
pub fn pair() -> io::Result<(Canceller, Cancel)> {
    let (ours, theirs) = UnixStream::pair()?;
    Ok((Canceller(Arc::new(Mutex::new(Some(ours)))), Cancel(theirs)))
}

impl Canceller {
    pub fn cancel(&self) {
        // The other end of a closed socket is readable.
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

impl Cancel {
    /// A descriptor that becomes readable when the call is cancelled.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    pub fn is_cancelled(&self) -> bool {
        let at_once = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let mut ready = [PollFd::new(&self.0, PollFlags::IN)];
        poll(&mut ready, Some(&at_once)).unwrap_or(0) > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_cancelled_once_somebody_says_so() {
        let (canceller, cancel) = pair().expect("sockets can be made");
        let other = canceller.clone();
        assert!(!cancel.is_cancelled());
        other.cancel();
        assert!(cancel.is_cancelled());
        canceller.cancel();
        assert!(cancel.is_cancelled());
    }
}
