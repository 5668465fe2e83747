//! Listings of a folder.

use super::Inner;
use super::walk::{self, Found, Walker};
use crate::data::{FolderMark, Key, Page, UnsupportedEntry};
use std::io;
use towline_core::{Error, Result};

/// Objects of one page of a listing.
const PAGE_ENTRIES: usize = 5_000;

impl Inner {
    /// Whether a folder can be entered without following a link. Files behind a link are not part
    /// of this store.
    fn can_enter(&self, prefix: &str) -> bool {
        let Ok(inside) = Key::new(format!("{prefix}x")) else {
            return prefix.is_empty();
        };
        match self.tree.folder(&inside, false) {
            Ok(_) => true,
            // Other errors are reported when the folder is read.
            Err(error) => {
                !matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                ) && error.raw_os_error() != Some(rustix::io::Errno::LOOP.raw_os_error())
            }
        }
    }

    pub(super) fn list(&self, prefix: &str, from: Option<&str>) -> Page {
        if !self.can_enter(prefix) {
            return Page::default();
        }
        let kept = self.walk.lock().expect("no panic while held").take();
        let mut walker = match (kept, from) {
            (Some((at, walker)), Some(from)) if at == from => walker,
            _ => Walker::new(self.tree.root(), prefix, from),
        };
        let mut page = Page::default();
        for found in walker.by_ref() {
            match found {
                Found::Object(object) => page.objects.push(object),
                Found::Unsupported(entry) => page.unsupported.push(entry),
                Found::Empty(folder) => page.marks.push(FolderMark {
                    folder,
                    has_slash: true,
                }),
            }
            if page.objects.len() == PAGE_ENTRIES {
                break;
            }
        }
        if page.objects.len() == PAGE_ENTRIES
            && let Some(last) = page.objects.last()
        {
            page.next = Some(last.key.to_string());
            *self.walk.lock().expect("no panic while held") = Some((last.key.to_string(), walker));
        }
        page
    }

    /// Lists one level. A link to a folder is not entered, so it is not listed as a folder.
    pub(super) fn list_level(&self, prefix: &str) -> Result<Page> {
        let mut page = Page::default();
        if !self.can_enter(prefix) {
            return Ok(page);
        }
        let path = self.tree.root().join(prefix);
        let entries = match std::fs::read_dir(&path) {
            Ok(entries) => entries,
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                ) =>
            {
                return Ok(page);
            }
            Err(error) => {
                return Err(Error::from_io(
                    format!("{} cannot be read", path.display()),
                    error,
                ));
            }
        };
        for entry in entries.flatten() {
            let raw = entry.file_name();
            let Some(name) = raw
                .to_str()
                .filter(|name| Key::new(*name).is_ok() && !crate::tree::is_part(name))
            else {
                continue;
            };
            match (
                entry.file_type(),
                std::fs::metadata(entry.path()),
                Key::new(format!("{prefix}{name}")),
            ) {
                (Ok(kind), _, _) if kind.is_dir() => page.folders.push(name.to_owned()),
                (Ok(kind), _, Ok(key)) if kind.is_symlink() && !self.tree.stays_below(&key) => {
                    page.unsupported.push(UnsupportedEntry {
                        name: key.to_string(),
                        why: walk::OUTSIDE_LINK_REASON.to_owned(),
                        is_failure: false,
                    });
                }
                (Ok(_), Ok(metadata), Ok(key)) if metadata.is_file() => {
                    page.objects.push(walk::object(key, &metadata));
                }
                _ => {}
            }
        }
        page.folders.sort();
        page.objects.sort_by(|one, other| one.key.cmp(&other.key));
        Ok(page)
    }
}
