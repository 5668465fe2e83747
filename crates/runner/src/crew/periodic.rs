//! Work that is repeated in a thread while the attempt runs, and once more when it is over.

use crate::code::{NotifyOnDrop, is_notified};
use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

#[derive(Debug)]
pub(super) struct Periodic {
    /// Readable once it is over.
    done: OwnedFd,
    ending: Arc<(Mutex<bool>, Condvar)>,
}

impl Periodic {
    /// Calls `pass` at once, and again after the pause that it returns. Its argument tells whether
    /// it is the last call.
    pub(super) fn start(
        name: &str,
        mut pass: impl FnMut(bool) -> Duration + Send + 'static,
    ) -> io::Result<Self> {
        let done = eventfd(0, EventfdFlags::CLOEXEC)?;
        let bell = NotifyOnDrop(done.try_clone()?);
        let ending = Arc::new((Mutex::new(false), Condvar::new()));
        let shared = ending.clone();
        std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || {
                let _bell = bell;
                let (flag, changed) = &*shared;
                let mut is_last = false;
                loop {
                    let pause = pass(is_last);
                    if is_last {
                        return;
                    }
                    let over = flag.lock().unwrap_or_else(PoisonError::into_inner);
                    is_last = changed
                        .wait_timeout_while(over, pause, |over| !*over)
                        .is_ok_and(|(over, _)| *over);
                }
            })?;
        Ok(Self { done, ending })
    }

    /// Asks for one last call.
    pub(super) fn finish(&self) {
        let (flag, changed) = &*self.ending;
        *flag.lock().unwrap_or_else(PoisonError::into_inner) = true;
        changed.notify_all();
    }

    pub(super) fn is_over(&self) -> bool {
        is_notified(&self.done)
    }

    pub(super) fn watch(&self) -> BorrowedFd<'_> {
        self.done.as_fd()
    }
}
