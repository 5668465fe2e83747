//! Has the daemon keep the logs of far runs up to date here while somebody follows them.

use crate::cancel::{self, Cancel, Canceller};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};
use towline_client::{self as client, Conversation};
use towline_core::RunId;
use towline_wire::daemon::{Reply, Request};
use towline_wire::layout::StateFolder;

/// How long to wait before a daemon that hung up is asked again.
const AGAIN_AFTER: Duration = Duration::from_secs(1);
/// How long one try to reach the daemon may take.
const ASK_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the cluster may take for the last bytes of a run that ended.
const REST_TIMEOUT: Duration = Duration::from_secs(60);

pub(super) struct FarLogs {
    state: StateFolder,
    followed: HashMap<RunId, Canceller>,
}

impl FarLogs {
    pub(super) fn new(state: &StateFolder) -> Self {
        Self {
            state: state.clone(),
            followed: HashMap::new(),
        }
    }

    /// The far runs to follow from now on.
    pub(super) fn follow(&mut self, runs: BTreeSet<RunId>) {
        self.followed.retain(|run, canceller| {
            let stays = runs.contains(run);
            if !stays {
                canceller.cancel();
            }
            stays
        });
        for run in runs {
            if !self.followed.contains_key(&run)
                && let Ok((canceller, cancel)) = cancel::pair()
            {
                let (state, id) = (self.state.clone(), run.clone());
                let made = std::thread::Builder::new().spawn(move || keep(&state, &id, &cancel));
                if made.is_ok() {
                    self.followed.insert(run, canceller);
                }
            }
        }
    }

    /// A run ended: its last bytes may not be here yet.
    pub(super) fn fetch_rest(&self, run: &RunId) {
        if self.followed.contains_key(run) {
            let (state, run) = (self.state.clone(), run.clone());
            // Without a thread the bytes come when the logs are looked at again.
            let _ = std::thread::Builder::new().spawn(move || fetch(&state, &run));
        }
    }
}

impl Drop for FarLogs {
    fn drop(&mut self) {
        self.followed.values().for_each(Canceller::cancel);
    }
}

fn fetch(state: &StateFolder, run: &RunId) {
    let request = || Request::BringLogs { run: run.clone() };
    // What keeps the cluster from answering is told by its status.
    let _ = client::ask_within(state, &request, REST_TIMEOUT);
}

/// Watches the run until it ends or nobody follows it.
fn keep(state: &StateFolder, run: &RunId, cancel: &Cancel) {
    fetch(state, run);
    let request = || Request::Watch {
        runs: vec![run.clone()],
        logs: true,
    };
    while !cancel.is_cancelled() {
        let until = Some(Instant::now() + ASK_TIMEOUT);
        match client::ask_until(state, &request, until, &mut || {}) {
            Ok((Reply::WatchEnded, _)) => break,
            Ok((_, conversation)) => {
                if listen(conversation, cancel) {
                    break;
                }
                pause(cancel);
            }
            Err(_) => pause(cancel),
        }
    }
    if !cancel.is_cancelled() {
        fetch(state, run);
    }
}

/// Reads what the daemon says until the run has ended or nobody follows: then `true`; `false` if the
/// daemon hung up.
fn listen(mut conversation: Conversation, cancel: &Cancel) -> bool {
    loop {
        loop {
            match conversation.waiting() {
                Ok(Some(Reply::WatchEnded)) => return true,
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(_) => return false,
            }
        }
        let Some(has_news) = wait(&conversation, cancel) else {
            return true;
        };
        if has_news && !conversation.fill().unwrap_or(false) {
            return false;
        }
        if conversation.check().is_err() {
            return false;
        }
    }
}

/// Whether the daemon said something; `None` if nobody follows any more.
fn wait(conversation: &Conversation, cancel: &Cancel) -> Option<bool> {
    let mut ready = [
        PollFd::from_borrowed_fd(cancel.descriptor(), PollFlags::IN),
        PollFd::new(conversation.stream(), PollFlags::IN),
    ];
    // A heartbeat comes every second: a daemon that says nothing for long hangs.
    let timeout = Timespec {
        tv_sec: 5,
        tv_nsec: 0,
    };
    let count = poll(&mut ready, Some(&timeout)).unwrap_or(0);
    ready[0].revents().is_empty().then_some(count > 0)
}

fn pause(cancel: &Cancel) {
    let timeout = Timespec::try_from(AGAIN_AFTER).unwrap_or(Timespec {
        tv_sec: 1,
        tv_nsec: 0,
    });
    let mut ready = [PollFd::from_borrowed_fd(cancel.descriptor(), PollFlags::IN)];
    let _ = poll(&mut ready, Some(&timeout));
}
