//! The code of an attempt, laid out by a thread, so that the runner can still handle a stop.

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use std::fmt::Display;
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use towline_core::obstacle::Obstacle;
use towline_core::reason::Ending;
use towline_core::{Error, Result};
use towline_host::crash;
use towline_snapshot::digest::Digest;
use towline_snapshot::layout::lay_out;
use towline_snapshot::progress::Progress;
use towline_snapshot::renew::renew;
use towline_snapshot::root::read_root;
use towline_snapshot::store::FolderStore;
use towline_wire::runner::CodeOrder;

/// A layout that is in progress.
#[derive(Debug)]
pub(crate) struct Layout {
    /// Readable once it is over.
    done: OwnedFd,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<()>>,
}

/// Signals its descriptor when its thread ends, however it ends.
pub(crate) struct NotifyOnDrop(pub(crate) OwnedFd);

impl Drop for NotifyOnDrop {
    fn drop(&mut self) {
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }
}

/// Whether the thread with the other end has done its work. It may still have to exit: a caller that
/// asked until it has would keep the processor from it.
pub(crate) fn is_notified(done: &OwnedFd) -> bool {
    let mut ready = [PollFd::new(done, PollFlags::IN)];
    let at_once = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    poll(&mut ready, Some(&at_once)).is_ok_and(|count| count > 0)
}

impl Layout {
    pub(crate) fn begin(order: CodeOrder, attempt: u32) -> io::Result<Self> {
        let done = eventfd(0, EventfdFlags::CLOEXEC)?;
        let bell = NotifyOnDrop(done.try_clone()?);
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = std::thread::Builder::new()
            .name("layout".into())
            .spawn(move || {
                let _bell = bell;
                prepare(&order, attempt, &stopped)
            })?;
        Ok(Self { done, stop, thread })
    }

    pub(crate) fn watch(&self) -> BorrowedFd<'_> {
        self.done.as_fd()
    }

    /// Whether there is a result.
    pub(crate) fn is_over(&self) -> bool {
        is_notified(&self.done)
    }

    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Its result. Waits for it if it is not over.
    pub(crate) fn finish(self) -> Result<()> {
        self.thread
            .join()
            .unwrap_or_else(|_| Err(Error::bug("the layout of the code broke down")))
    }
}

/// The end of an attempt whose code could not be laid out. `obstacle` is the one that the error
/// names.
pub(crate) fn not_laid_out(error: &impl Display, obstacle: Option<Obstacle>) -> Ending {
    let why = format!("the code could not be laid out: {error}");
    Ending::not_started(why, obstacle.or(Some(Obstacle::CodeLayout)))
}

/// Makes a fresh tree for the first attempt. A later attempt gets the same tree with its code
/// restored.
fn prepare(order: &CodeOrder, attempt: u32, stop: &AtomicBool) -> Result<()> {
    crash::pass("runner.layout.before");
    let id = Digest::parse(&order.snapshot)
        .ok_or_else(|| Error::bug(format!("`{}` names no snapshot", order.snapshot)))?;
    let store = FolderStore::new(&order.store);
    let target = Path::new(&order.target);
    let root = read_root(&store, &id)?;
    let there = target.symlink_metadata().ok();
    if there.as_ref().is_some_and(|meta| !meta.is_dir()) {
        // The last attempt has replaced the folder by something else: that is kept, and never
        // followed.
        let failed =
            |error| Error::from_io(format!("{} cannot be kept aside", target.display()), error);
        let aside = target.with_file_name("changed");
        fs::create_dir_all(&aside).map_err(failed)?;
        fs::rename(
            target,
            aside.join(format!("attempt-{}.code", attempt.saturating_sub(1))),
        )
        .map_err(failed)?;
    }
    if there.is_some_and(|meta| meta.is_dir()) {
        let aside = target
            .with_file_name("changed")
            .join(format!("attempt-{}", attempt.saturating_sub(1)));
        renew(&root, &store, target, &aside, stop)?;
    } else {
        remove_parts(target);
        lay_out(&root, &store, target, &Progress::default(), stop)?;
    }
    for link in &order.links {
        make_link(&Path::new(&order.root).join(link), &target.join(link));
    }
    for (name, place) in &order.mapped {
        make_link(Path::new(place), &target.join(name));
    }
    crash::pass("runner.layout.done");
    Ok(())
}

/// Removes a layout that a killed runner left unfinished.
fn remove_parts(target: &Path) {
    let Some((folder, name)) = target.parent().zip(target.file_name()) else {
        return;
    };
    let start = format!(".{}.part-", name.to_string_lossy());
    let parts = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(&start));
    for part in parts.map(|entry| entry.path()).collect::<Vec<PathBuf>>() {
        let _ = towline_host::filesystem::remove_tree(&part);
    }
}

/// Makes a link. A target that existed at submission and is gone by now is no reason not to start.
fn make_link(original: &Path, link: &Path) {
    if original.symlink_metadata().is_ok() && link.symlink_metadata().is_err() {
        let _ = symlink(original, link);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_that_is_not_laid_out_lacks_room_or_is_damaged() {
        for (error, obstacle) in [
            (Error::no_room("full"), Obstacle::NoRoom),
            (Error::refused("a pack is damaged"), Obstacle::CodeLayout),
        ] {
            let ending = not_laid_out(&error, Obstacle::of(&error));
            assert_eq!(ending.obstacle, Some(obstacle));
            let detail = ending.detail.expect("a detail");
            let why = format!("the code could not be laid out: {error}");
            assert_eq!(detail, why);
        }
    }
}
