//! Follows several runs at once: the runs of a sweep that have not ended.
//!
//! One conversation with the daemon reports the states of all runs, and one inotify instance
//! reports which logs have grown. A run costs nothing until it begins.

use super::{Follower, Trouble, View, hear_arrived, interrupts};
use crate::context::Context;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use towline_client::{self as client, Conversation};
use towline_core::event::Recorded;
use towline_core::state::RunState;
use towline_core::{Error, Result, RunId};
use towline_wire::daemon::{Reply, Request};

/// How long to sleep if every log is watched, in milliseconds.
const WATCHED_POLL_MILLIS: i64 = 1000;
/// The same if a log is not: its folder is not there yet, or the kernel has no watch to give.
const UNWATCHED_POLL_MILLIS: i64 = 50;

/// Shows the logs of all runs as they are written, until each has ended. `ended` gets every run at
/// its end, after its last byte. `false` if the user pressed Ctrl-C before that.
pub(crate) fn follow_all(
    context: &Context,
    views: &[View],
    far: bool,
    ended: &mut dyn FnMut(&RunId, &RunState) -> Result<()>,
) -> Result<bool> {
    let interrupts = interrupts()?;
    let mut crowd = Crowd::new(context, views, far);
    let mut daemon = crowd.connect()?;
    loop {
        if !crowd.hear(&mut daemon)? && !crowd.open.is_empty() {
            // The daemon exited: connect to the next one.
            daemon = crowd.connect()?;
            continue;
        }
        crowd.watch_folders();
        crowd.advance(ended)?;
        if crowd.open.is_empty() {
            return Ok(true);
        }
        crowd.bring_far_logs()?;
        crowd.trouble.look(context);
        if crowd.wait(&daemon, &interrupts)? {
            return Ok(false);
        }
    }
}

struct Crowd<'a> {
    context: &'a Context,
    /// Runs that have not ended, by their place in the sweep, so that they are shown in order.
    open: BTreeMap<usize, &'a View>,
    places: HashMap<&'a RunId, usize>,
    /// Those that have begun.
    begun: BTreeMap<usize, Follower<'a>>,
    /// Those that may have something new.
    changed: BTreeSet<usize>,
    inotify: Option<OwnedFd>,
    /// Watched folders, by the kernel's number, and these numbers.
    watched: HashMap<i32, usize>,
    numbers: BTreeMap<usize, i32>,
    /// The runs are on a far cluster: the daemon fetches the logs of those that have begun.
    far: bool,
    /// Keeps the daemon fetching, and the runs it was asked for.
    fetching: Option<(Conversation, BTreeSet<usize>)>,
    trouble: Trouble,
}

impl<'a> Crowd<'a> {
    fn new(context: &'a Context, views: &'a [View], far: bool) -> Self {
        let flags = inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK;
        Self {
            context,
            open: views.iter().enumerate().collect(),
            places: views
                .iter()
                .enumerate()
                .map(|(place, view)| (&view.run, place))
                .collect(),
            begun: BTreeMap::new(),
            changed: BTreeSet::new(),
            inotify: inotify::init(flags).ok(),
            watched: HashMap::new(),
            numbers: BTreeMap::new(),
            far,
            fetching: None,
            trouble: Trouble::default(),
        }
    }

    fn connect(&mut self) -> Result<Conversation> {
        let runs: Vec<RunId> = self.open.values().map(|view| view.run.clone()).collect();
        let watch = || Request::Watch {
            runs: runs.clone(),
            logs: false,
        };
        let state = self.context.state()?;
        let (first, conversation) = client::ask_until(state, &watch, None, &mut || {
            self.trouble.look(self.context);
        })?;
        self.note(first);
        Ok(conversation)
    }

    /// Handles the daemon's replies. `false` if it hung up.
    fn hear(&mut self, daemon: &mut Conversation) -> Result<bool> {
        hear_arrived(daemon, &mut |reply| self.note(reply))
            .map_err(|error| error.hint("the runs go on"))
    }

    fn note(&mut self, reply: Reply) {
        let (Reply::State { run, state }
        | Reply::Event {
            recorded: Recorded { run, .. },
            state,
        }) = reply
        else {
            return;
        };
        let Some(place) = self.places.get(&run).copied() else {
            return;
        };
        let Some(view) = self.open.get(&place) else {
            return;
        };
        if let Some(follower) = self.begun.get_mut(&place) {
            follower.note_state(state);
        } else if state.attempt > 0 || state.phase.is_ended() {
            let follower = Follower::new(self.context, view, state);
            self.begun.insert(place, follower);
        }
        self.changed.insert(place);
    }

    /// Watches the folders of runs that have begun, as soon as they are there.
    fn watch_folders(&mut self) {
        let (Some(inotify), Ok(state)) = (&self.inotify, self.context.state()) else {
            return;
        };
        let events = inotify::WatchFlags::MODIFY | inotify::WatchFlags::CREATE;
        for (place, follower) in &self.begun {
            if self.numbers.contains_key(place) {
                continue;
            }
            let folder = state.run(&follower.view.run);
            if let Ok(number) = inotify::add_watch(inotify, &folder, events) {
                self.watched.insert(number, *place);
                self.numbers.insert(*place, number);
                // Bytes from before the watch are not reported.
                self.changed.insert(*place);
            }
        }
    }

    /// Shows what is new, and passes on the runs that have ended.
    fn advance(&mut self, ended: &mut dyn FnMut(&RunId, &RunState) -> Result<()>) -> Result<()> {
        for place in std::mem::take(&mut self.changed) {
            let Some(follower) = self.begun.get_mut(&place) else {
                continue;
            };
            if self.far && follower.state.phase.is_ended() {
                // A short run may have ended before the daemon was asked for its logs.
                let run = &follower.view.run;
                crate::runs::far::bring_logs(self.context, &self.context.history()?, run)?;
            }
            if follower.advance()? {
                ended(&follower.view.run, &follower.state)?;
                self.forget(place);
            }
        }
        Ok(())
    }

    fn forget(&mut self, place: usize) {
        self.open.remove(&place);
        self.begun.remove(&place);
        if let (Some(inotify), Some(number)) = (&self.inotify, self.numbers.remove(&place)) {
            self.watched.remove(&number);
            let _ = inotify::remove_watch(inotify, number);
        }
    }

    /// Has the daemon fetch the logs of far runs that have begun. Those that wait have none, and
    /// asking for each of a long queue would burden the cluster.
    fn bring_far_logs(&mut self) -> Result<()> {
        let begun: BTreeSet<usize> = self.begun.keys().copied().collect();
        if !self.far || begun.is_empty() {
            return Ok(());
        }
        if let Some((conversation, asked)) = &mut self.fetching
            && begun.is_subset(asked)
            && hear_arrived(conversation, &mut |_| {})?
        {
            return Ok(());
        }
        let runs: Vec<RunId> = self
            .begun
            .values()
            .map(|follower| follower.view.run.clone())
            .collect();
        let watch = || Request::Watch {
            runs: runs.clone(),
            logs: true,
        };
        let (_, conversation) = client::ask(self.context.state()?, &watch)?;
        self.fetching = Some((conversation, begun));
        Ok(())
    }

    /// Sleeps until something may be new. `true` if the user pressed Ctrl-C.
    fn wait(&mut self, daemon: &Conversation, interrupts: &UnixStream) -> Result<bool> {
        let mut descriptors = vec![
            PollFd::from_borrowed_fd(interrupts.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(daemon.stream().as_fd(), PollFlags::IN),
        ];
        if let Some(inotify) = &self.inotify {
            descriptors.push(PollFd::new(inotify, PollFlags::IN));
        }
        let is_blind = self.watched.len() < self.begun.len();
        let millis = if is_blind {
            UNWATCHED_POLL_MILLIS
        } else {
            WATCHED_POLL_MILLIS
        };
        let timeout = Timespec {
            tv_sec: millis / 1000,
            tv_nsec: millis % 1000 * 1_000_000,
        };
        match poll(&mut descriptors, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => {
                return Err(Error::bug("waiting failed").source_error(std::io::Error::from(error)));
            }
        }
        let interrupted = !descriptors[0].revents().is_empty();
        drop(descriptors);
        if is_blind || !self.note_grown_logs() {
            self.changed.extend(self.begun.keys());
        }
        Ok(interrupted)
    }

    /// Notes the runs whose logs have grown. `false` if the kernel has lost events.
    fn note_grown_logs(&mut self) -> bool {
        let Some(inotify) = &self.inotify else {
            return false;
        };
        let mut buffer = [MaybeUninit::uninit(); 16 << 10];
        let mut events = inotify::Reader::new(inotify, &mut buffer);
        while let Ok(event) = events.next() {
            if event.events().contains(inotify::ReadFlags::QUEUE_OVERFLOW) {
                return false;
            }
            self.changed.extend(self.watched.get(&event.wd()));
        }
        true
    }
}
