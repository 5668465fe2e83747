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

/// What may be new.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct News {
    pub(super) history: bool,
    pub(super) clusters: bool,
}

impl News {
    pub(super) const fn all() -> Self {
        Self {
            history: true,
            clusters: true,
        }
    }

    const fn and(self, other: Self) -> Self {
        Self {
            history: self.history || other.history,
            clusters: self.clusters || other.clusters,
        }
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
    Run,
}

pub(super) struct Watch {
    inotify: Option<OwnedFd>,
    folders: HashMap<i32, Folder>,
    runs: HashMap<PathBuf, i32>,
}

const WRITES: inotify::WatchFlags = inotify::WatchFlags::MODIFY
    .union(inotify::WatchFlags::CREATE)
    .union(inotify::WatchFlags::MOVED_TO);

impl Watch {
    pub(super) fn new(state: &StateFolder) -> Self {
        let flags = inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK;
        let mut watch = Self {
            inotify: inotify::init(flags).ok(),
            folders: HashMap::new(),
            runs: HashMap::new(),
        };
        // Without these folders there is nothing to hear of yet. They are looked at every second
        // all the same, and the next stream watches them.
        watch.add(state.root(), Folder::State);
        watch.add(&state.clusters(), Folder::Clusters);
        watch
    }

    /// Whether the kernel tells of changes.
    pub(super) fn hears(&self) -> bool {
        self.folders.values().any(|folder| *folder == Folder::State)
    }

    fn add(&mut self, path: &Path, folder: Folder) -> Option<i32> {
        let inotify = self.inotify.as_ref()?;
        let number = inotify::add_watch(inotify, path, WRITES).ok()?;
        self.folders.insert(number, folder);
        Some(number)
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
    pub(super) fn wait(&self, descriptors: &[BorrowedFd<'_>], most: Duration) -> Woken {
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
        &self,
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
    fn heard(&self) -> News {
        let Some(inotify) = &self.inotify else {
            return News::all();
        };
        let mut news = News::default();
        let mut buffer = [MaybeUninit::uninit(); 8 << 10];
        let mut reader = inotify::Reader::new(inotify, &mut buffer);
        while let Ok(event) = reader.next() {
            if event.events().contains(inotify::ReadFlags::QUEUE_OVERFLOW) {
                return News::all();
            }
            match self.folders.get(&event.wd()) {
                Some(Folder::State) => {
                    let name = event.file_name().map(std::ffi::CStr::to_bytes);
                    news.history |= name.is_some_and(|name| name.starts_with(b"history.db"));
                }
                Some(Folder::Clusters) => news.clusters = true,
                Some(Folder::Run) | None => {}
            }
        }
        news
    }
}
