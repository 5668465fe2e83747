//! Waits until the history, a log or the state of a cluster may have changed. The kernel tells; if
//! it cannot, everything is looked at often.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify;
use std::collections::HashMap;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use towline_wire::layout::StateFolder;

/// What may be new: a set of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct News(u8);

impl News {
    pub(super) const HISTORY: Self = Self(1);
    pub(super) const CLUSTERS: Self = Self(2);
    pub(super) const TUNNELS: Self = Self(4);
    pub(super) const WORKSPACES: Self = Self(8);
    pub(super) const TRANSFERS: Self = Self(16);

    pub(super) const fn all() -> Self {
        Self(31)
    }

    pub(super) const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Why a wait is over.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Woken {
    /// One of the descriptors can be read.
    Descriptor(usize),
    /// Something may have changed, or the time is over.
    News(News),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Folder {
    State,
    Clusters,
    Tunnels,
    Workspaces,
    Transfers,
    Run,
}

pub(super) struct Watch {
    state: StateFolder,
    inotify: Option<OwnedFd>,
    folders: HashMap<i32, Folder>,
    known: HashMap<PathBuf, i32>,
    runs: HashMap<PathBuf, i32>,
}

const WRITES: inotify::WatchFlags = inotify::WatchFlags::MODIFY
    .union(inotify::WatchFlags::CREATE)
    .union(inotify::WatchFlags::DELETE)
    .union(inotify::WatchFlags::MOVED_TO);

impl Watch {
    pub(super) fn new(state: &StateFolder) -> Self {
        let flags = inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK;
        let mut watch = Self {
            state: state.clone(),
            inotify: inotify::init(flags).ok(),
            folders: HashMap::new(),
            known: HashMap::new(),
            runs: HashMap::new(),
        };
        watch.look_for_folders();
        watch
    }

    /// Watches the folders that are there now. One that is missing is looked for again.
    pub(super) fn look_for_folders(&mut self) {
        let state = self.state.clone();
        self.know(state.root(), Folder::State);
        self.know(&state.clusters(), Folder::Clusters);
        self.know(&state.transfers(), Folder::Transfers);
        for (folder, kind) in [
            (state.tunnels(), Folder::Tunnels),
            (state.workspaces(), Folder::Workspaces),
        ] {
            self.know(&folder, kind);
            for entry in towline_host::filesystem::entries(&folder).unwrap_or_default() {
                self.know(&entry.path(), kind);
            }
        }
    }

    fn know(&mut self, path: &Path, folder: Folder) {
        if !self.known.contains_key(path)
            && let Some(number) = self.add(path, folder)
        {
            self.known.insert(path.to_owned(), number);
        }
    }

    /// Whether the kernel tells of changes.
    pub(super) fn hears(&self) -> bool {
        self.known.contains_key(self.state.root())
    }

    fn add(&mut self, path: &Path, folder: Folder) -> Option<i32> {
        let inotify = self.inotify.as_ref()?;
        let number = inotify::add_watch(inotify, path, WRITES).ok()?;
        self.folders.insert(number, folder);
        Some(number)
    }

    /// The folder is gone. Another one by that name is watched anew.
    fn forget(&mut self, number: i32) {
        self.folders.remove(&number);
        self.known.retain(|_, known| *known != number);
        self.runs.retain(|_, known| *known != number);
    }

    /// Watches the folder of a run from now on, once it is there.
    pub(super) fn watch_run(&mut self, folder: &Path) {
        if !self.runs.contains_key(folder)
            && let Some(number) = self.add(folder, Folder::Run)
        {
            self.runs.insert(folder.to_owned(), number);
        }
    }

    /// Forgets the folders of runs that are not among these.
    pub(super) fn keep_runs(&mut self, keep: impl Fn(&Path) -> bool) {
        let Some(inotify) = &self.inotify else { return };
        let folders = &mut self.folders;
        self.runs.retain(|path, number| {
            let stays = keep(path);
            if !stays {
                let _ = inotify::remove_watch(inotify, *number);
                folders.remove(number);
            }
            stays
        });
    }

    /// Waits for one of the descriptors, for news, or for this time.
    pub(super) fn wait(&mut self, descriptors: &[BorrowedFd<'_>], most: Duration) -> Woken {
        let timeout = Timespec::try_from(most).unwrap_or(Timespec {
            tv_sec: 1,
            tv_nsec: 0,
        });
        let mut ready: Vec<PollFd<'_>> = descriptors
            .iter()
            .map(|descriptor| PollFd::from_borrowed_fd(*descriptor, PollFlags::IN))
            .collect();
        if let Some(inotify) = &self.inotify {
            ready.push(PollFd::from_borrowed_fd(inotify.as_fd(), PollFlags::IN));
        }
        let count = poll(&mut ready, Some(&timeout)).unwrap_or(0);
        let first = ready.iter().position(|one| !one.revents().is_empty());
        match first {
            Some(number) if number < descriptors.len() => Woken::Descriptor(number),
            Some(_) => Woken::News(self.heard()),
            None if count == 0 => Woken::News(News::all()),
            None => Woken::News(News::default()),
        }
    }

    /// Goes on listening for a moment, or until the descriptor can be read: then `true`.
    pub(super) fn gather(
        &mut self,
        until: BorrowedFd<'_>,
        moment: Duration,
        heard: News,
        news: &mut News,
    ) -> bool {
        *news = heard;
        let end = Instant::now() + moment;
        let timeout = Timespec::try_from(end.saturating_duration_since(Instant::now()));
        let mut ready = [PollFd::from_borrowed_fd(until, PollFlags::IN)];
        let cancelled = timeout
            .is_ok_and(|timeout| poll(&mut ready, Some(&timeout)).is_ok_and(|count| count > 0));
        *news = news.and(self.heard());
        cancelled
    }

    /// What the kernel has told of.
    fn heard(&mut self) -> News {
        let Some(inotify) = &self.inotify else {
            return News::all();
        };
        let (mut news, mut gone) = (News::default(), Vec::new());
        let mut buffer = [MaybeUninit::uninit(); 8 << 10];
        let mut reader = inotify::Reader::new(inotify, &mut buffer);
        while let Ok(event) = reader.next() {
            let what = event.events();
            if what.contains(inotify::ReadFlags::QUEUE_OVERFLOW) {
                return News::all();
            }
            if what.contains(inotify::ReadFlags::IGNORED) {
                gone.push(event.wd());
            }
            let name = event.file_name().map(std::ffi::CStr::to_bytes);
            news = news.and(match self.folders.get(&event.wd()) {
                Some(Folder::State) => of_state(name.unwrap_or_default()),
                Some(Folder::Clusters) => News::CLUSTERS,
                Some(Folder::Tunnels) => News::TUNNELS,
                Some(Folder::Workspaces) => News::WORKSPACES,
                Some(Folder::Transfers) => News::TRANSFERS,
                Some(Folder::Run) | None => News::default(),
            });
        }
        for number in gone {
            self.forget(number);
        }
        news
    }
}

/// What a file of the state folder tells.
fn of_state(name: &[u8]) -> News {
    match name {
        b"clusters" => News::CLUSTERS,
        b"tunnels" => News::TUNNELS,
        b"workspaces" => News::WORKSPACES,
        b"transfers" => News::TRANSFERS,
        name if name.starts_with(b"history.db") => News::HISTORY,
        _ => News::default(),
    }
}
