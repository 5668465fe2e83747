//! One stream of everything that happens, from a place in the history and offsets in logs on. It
//! reads the history and the logs itself: the daemon is asked for nothing but to fetch the logs of
//! far runs, so watchers do not make it slower.

mod changes;
mod clusters;
mod far;
mod logs;
pub mod streams;
mod transfers;
mod tunnels;
mod watch;
mod workspaces;

use crate::replies::Caller;
use changes::ChangeReader;
use clusters::ClusterReader;
use logs::LogReader;
use std::time::{Duration, Instant};
use streams::Streams;
use towline_core::{Error, Result};
use towline_wire::api::envelope::Reply;
use towline_wire::api::stream::{Events, Item, Place};
use towline_wire::layout::StateFolder;
use towline_wire::report::Time;
use transfers::TransferReader;
use tunnels::TunnelReader;
use watch::{News, Watch};
use workspaces::WorkspaceReader;

/// What is written in this time is told together.
const GATHER: Duration = Duration::from_millis(4);
/// A stream is never silent for longer.
const ALIVE_EVERY: Duration = Duration::from_secs(10);
/// How often to look although the kernel has told of nothing.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// The same without inotify.
const POLL_EVERY: Duration = Duration::from_millis(100);
/// How often to look whether active runs have a daemon.
const DAEMON_EVERY: Duration = Duration::from_secs(3);

/// Tells everything that happens until the caller has enough.
pub fn run(
    state: &StateFolder,
    streams: &Streams,
    ask: Events,
    caller: &mut dyn Caller,
) -> Result<()> {
    let since = ask.cursor.as_deref().map(place).transpose()?;
    let failed = |error| Error::refused("a stream cannot be made").source_error(error);
    let stream = streams.begin(ask.logs).map_err(failed)?;
    let mut feed = Feed {
        watch: Watch::new(state),
        changes: ChangeReader::new(state, since, !ask.no_runs),
        clusters: ClusterReader::new(state),
        tunnels: TunnelReader::new(state),
        workspaces: WorkspaceReader::new(state),
        transfers: TransferReader::new(state),
        logs: LogReader::new(state),
        told: Instant::now(),
        daemon_looked: None,
    };
    let items = feed.changes.begin(stream.name())?;
    if !feed.tell(caller, items) {
        return Ok(());
    }
    let mut news = News::all();
    loop {
        if let Some(wanted) = stream.take() {
            feed.logs.follow(wanted);
            news = News::all();
        }
        if !feed.look(caller, news)? {
            return Ok(());
        }
        feed.nudge_daemon(state);
        match feed
            .watch
            .wait(&[caller.cancel().descriptor(), stream.wake()], feed.pause())
        {
            watch::Woken::Descriptor(0) => return Ok(()),
            watch::Woken::Descriptor(_) => news = News::default(),
            watch::Woken::News(heard) => {
                // What follows at once is told with it.
                if feed
                    .watch
                    .gather(caller.cancel().descriptor(), GATHER, heard, &mut news)
                {
                    return Ok(());
                }
            }
        }
    }
}

fn place(cursor: &str) -> Result<Place> {
    Place::parse(cursor).ok_or_else(|| {
        Error::usage(format!("`{cursor}` is not a cursor"))
            .hint("give the cursor of an item of the stream, or none to begin now")
    })
}

struct Feed {
    watch: Watch,
    changes: ChangeReader,
    clusters: ClusterReader,
    tunnels: TunnelReader,
    workspaces: WorkspaceReader,
    transfers: TransferReader,
    logs: LogReader,
    told: Instant,
    daemon_looked: Option<Instant>,
}

impl Feed {
    /// Tells what is new. `false` if nobody listens any more.
    fn look(&mut self, caller: &mut dyn Caller, news: News) -> Result<bool> {
        if !self.watch.hears() || news == News::all() {
            self.watch.look_for_folders();
        }
        if news.has(News::HISTORY) {
            loop {
                let (items, has_more) = self.changes.read()?;
                self.logs.note(&items);
                if !self.tell(caller, items) {
                    return Ok(false);
                }
                if !has_more {
                    break;
                }
            }
        }
        let items = self.around(news);
        if !self.tell(caller, items) {
            return Ok(false);
        }
        self.logs.prepare(&mut self.watch);
        loop {
            let (items, has_more) = self.logs.read()?;
            if !self.tell(caller, items) {
                return Ok(false);
            }
            if !has_more {
                break;
            }
        }
        if self.told.elapsed() >= ALIVE_EVERY {
            let now = Time(towline_host::clock::now());
            return Ok(self.tell(caller, vec![Item::Alive { now }]));
        }
        Ok(true)
    }

    /// What changed beside the runs.
    fn around(&mut self, news: News) -> Vec<Item> {
        let mut items = Vec::new();
        if news.has(News::CLUSTERS) {
            items.extend(self.clusters.read());
        }
        if news.has(News::TUNNELS) {
            self.watch.look_for_folders();
            items.extend(self.tunnels.read());
        }
        if news.has(News::WORKSPACES) {
            self.watch.look_for_folders();
            items.extend(self.workspaces.read());
        }
        if news.has(News::TRANSFERS) {
            items.extend(self.transfers.read());
        }
        items
    }

    fn tell(&mut self, caller: &mut dyn Caller, items: Vec<Item>) -> bool {
        for item in items {
            self.told = Instant::now();
            if !caller.reply(Reply::Item(Box::new(item))) {
                return false;
            }
        }
        !caller.cancel().is_cancelled()
    }

    fn pause(&self) -> Duration {
        if self.watch.hears() {
            LOOK_EVERY
        } else {
            POLL_EVERY
        }
    }

    /// Starts a daemon if runs are active and there is none: it records what happens to them.
    fn nudge_daemon(&mut self, state: &StateFolder) {
        let is_due = self
            .daemon_looked
            .is_none_or(|looked| looked.elapsed() >= DAEMON_EVERY);
        if !is_due {
            return;
        }
        self.daemon_looked = Some(Instant::now());
        if self.changes.has_active_runs() && !towline_client::is_there(state).unwrap_or(true) {
            let state = state.clone();
            // A start may take a while. If no thread can be made, the next look tries again.
            let _ = std::thread::Builder::new().spawn(move || towline_client::nudge(&state));
        }
    }
}
