//! The files below a folder, in the order of their keys. Only the entries of open folders are in
//! memory.

use crate::data::{Key, Marks, Object, UnsupportedEntry};
use crate::tree::is_part;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// One result of a walk.
#[derive(Debug)]
pub(super) enum Found {
    Object(Object),
    Unsupported(UnsupportedEntry),
    /// A folder with nothing in it.
    Empty(Key),
}

/// Why a link to a place outside the folder is left out.
pub(super) const OUTSIDE_LINK_REASON: &str = "a link that leads out of the folder";

#[derive(Debug)]
struct Entry {
    /// The name of a folder ends in `/`, so that entries sort as their keys do.
    name: String,
    is_link: bool,
}

#[derive(Debug)]
pub(super) struct Walker {
    root: PathBuf,
    /// For each open folder: its prefix and its remaining entries, in reverse order.
    open: Vec<(String, Vec<Entry>)>,
    unsupported: Vec<UnsupportedEntry>,
    empty: Option<Key>,
}

impl Walker {
    /// Begins below `prefix`, after the key `after`.
    pub(super) fn new(root: &Path, prefix: &str, after: Option<&str>) -> Self {
        let mut walker = Self {
            root: root.to_owned(),
            open: Vec::new(),
            unsupported: Vec::new(),
            empty: None,
        };
        let mut prefix = prefix.to_owned();
        let mut after = after
            .and_then(|after| after.strip_prefix(&prefix))
            .map(str::to_owned);
        loop {
            walker.enter(prefix.clone());
            let Some(rest) = after.take() else {
                return walker;
            };
            let (bound, deeper) = match rest.split_once('/') {
                Some((folder, rest)) => (format!("{folder}/"), Some(rest.to_owned())),
                None => (rest, None),
            };
            if let Some((_, entries)) = walker.open.last_mut() {
                entries.retain(|entry| entry.name > bound);
            }
            if deeper.is_none() {
                return walker;
            }
            prefix += &bound;
            after = deeper;
        }
    }

    fn enter(&mut self, prefix: String) {
        match read(&self.root.join(&prefix), &prefix, &mut self.unsupported) {
            Ok(entries) => {
                if entries.is_empty() && self.unsupported.is_empty() {
                    self.empty = Key::new(prefix.trim_end_matches('/')).ok();
                }
                self.open.push((prefix, entries));
            }
            // A folder that was removed holds nothing.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                ) => {}
            Err(error) => self.unsupported.push(UnsupportedEntry {
                name: prefix,
                why: format!("cannot be read: {error}"),
                is_failure: true,
            }),
        }
    }
}

impl Iterator for Walker {
    type Item = Found;

    fn next(&mut self) -> Option<Found> {
        loop {
            if let Some(unsupported) = self.unsupported.pop() {
                return Some(Found::Unsupported(unsupported));
            }
            if let Some(folder) = self.empty.take() {
                return Some(Found::Empty(folder));
            }
            let (prefix, entries) = self.open.last_mut()?;
            let Some(entry) = entries.pop() else {
                self.open.pop();
                continue;
            };
            let name = format!("{prefix}{}", entry.name);
            if entry.name.ends_with('/') {
                self.enter(name);
                continue;
            }
            match inspect(&self.root, &name, entry.is_link) {
                Ok(Some(found)) => return Some(found),
                Ok(None) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound && !entry.is_link => {}
                Err(error) => {
                    return Some(Found::Unsupported(UnsupportedEntry {
                        name,
                        why: format!("cannot be read: {error}"),
                        is_failure: !entry.is_link,
                    }));
                }
            }
        }
    }
}

/// The entries of one folder, in reverse order.
fn read(
    path: &Path,
    prefix: &str,
    unsupported: &mut Vec<UnsupportedEntry>,
) -> io::Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let raw = entry.file_name();
        let Some(name) = raw.to_str() else {
            let name = format!(
                "{prefix}{}",
                String::from_utf8_lossy(raw.as_bytes()).escape_debug()
            );
            unsupported.push(UnsupportedEntry {
                name,
                why: "its name is not UTF-8".to_owned(),
                is_failure: true,
            });
            continue;
        };
        if let Err(why) = Key::new(name) {
            unsupported.push(UnsupportedEntry {
                name: format!("{prefix}{}", crate::data::shown(name)),
                why,
                is_failure: true,
            });
            continue;
        }
        let kind = entry.file_type()?;
        if is_part(name) && kind.is_file() {
            continue;
        }
        let name = if kind.is_dir() {
            format!("{name}/")
        } else {
            name.to_owned()
        };
        entries.push(Entry {
            name,
            is_link: kind.is_symlink(),
        });
    }
    entries.sort_unstable_by(|one, other| other.name.cmp(&one.name));
    Ok(entries)
}

/// A file, or the reason why it is left out.
fn inspect(root: &Path, name: &str, is_link: bool) -> io::Result<Option<Found>> {
    let path = root.join(name);
    let unsupported = |why: &str| {
        Ok(Some(Found::Unsupported(UnsupportedEntry {
            name: name.to_owned(),
            why: why.to_owned(),
            is_failure: false,
        })))
    };
    let metadata = fs::metadata(&path)?;
    if is_link {
        if !path.canonicalize()?.starts_with(root.canonicalize()?) {
            return unsupported(OUTSIDE_LINK_REASON);
        }
        if metadata.is_dir() {
            return unsupported("a link to a folder");
        }
    }
    if !metadata.is_file() {
        return unsupported("neither a file nor a folder");
    }
    Ok(Key::new(name)
        .ok()
        .map(|key| Found::Object(object(key, &metadata))))
}

pub(super) fn object(key: Key, metadata: &Metadata) -> Object {
    let modified = (
        metadata.mtime(),
        u32::try_from(metadata.mtime_nsec()).unwrap_or(0),
    );
    let changed = Some(modified.0 * 1000 + i64::from(modified.1 / 1_000_000));
    let marks = Marks {
        modified: Some(modified),
        ..Marks::default()
    };
    Object {
        key,
        size: metadata.len(),
        disk_bytes: Some(metadata.blocks().saturating_mul(512)),
        changed,
        version: Some(version(metadata)),
        marks,
        marks_are_whole: true,
    }
}

/// A text that changes whenever the bytes may have changed.
pub(super) fn version(metadata: &Metadata) -> String {
    format!(
        "{}-{}.{:09}-{}",
        metadata.len(),
        metadata.mtime(),
        metadata.mtime_nsec(),
        metadata.ino()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(walker: Walker) -> Vec<String> {
        walker
            .map(|found| match found {
                Found::Object(object) => object.key.to_string(),
                Found::Unsupported(unsupported) => format!("! {}", unsupported.name),
                Found::Empty(folder) => format!("{folder}/"),
            })
            .collect()
    }

    #[test]
    fn keys_come_in_order_from_any_start() {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["a/b/c", "a.b", "a/z", "a0", "b", "a-/x", "ü"] {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().expect("below")).expect("made");
            fs::write(path, name).expect("written");
        }
        let all = keys(Walker::new(folder.path(), "", None));
        let mut sorted = all.clone();
        sorted.sort();
        assert_eq!(all, sorted);
        assert_eq!(all.len(), 7);
        for (at, key) in all.iter().enumerate() {
            assert_eq!(
                keys(Walker::new(folder.path(), "", Some(key))),
                all[at + 1..],
                "behind {key}"
            );
        }
        assert_eq!(
            keys(Walker::new(folder.path(), "a/", None)),
            ["a/b/c", "a/z"]
        );
        assert_eq!(
            keys(Walker::new(folder.path(), "a/", Some("a/b/c"))),
            ["a/z"]
        );
        assert!(keys(Walker::new(folder.path(), "none/", None)).is_empty());
        fs::create_dir_all(folder.path().join("a/empty/er")).expect("made");
        assert_eq!(
            keys(Walker::new(folder.path(), "a/", None)),
            ["a/b/c", "a/empty/er/", "a/z"]
        );
        assert_eq!(
            keys(Walker::new(folder.path(), "a/empty/er/", None)),
            ["a/empty/er/"]
        );
    }

    #[test]
    fn unsupported_entries_are_named() {
        use std::os::unix::ffi::OsStrExt;
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path();
        fs::write(root.join("real"), "x").expect("written");
        fs::write(root.join(".real.tow-part"), "x").expect("written");
        fs::write(root.join(std::ffi::OsStr::from_bytes(b"bad\xff")), "x").expect("written");
        fs::write(root.join("new\nline"), "x").expect("written");
        for (link, target) in [
            ("inside", "real"),
            ("outside", "/etc/passwd"),
            ("loop", "."),
            ("broken", "nowhere"),
        ] {
            std::os::unix::fs::symlink(target, root.join(link)).expect("linked");
        }
        let mut found = keys(Walker::new(root, "", None));
        found.sort();
        assert_eq!(
            found,
            [
                "! bad\u{fffd}",
                "! broken",
                "! loop",
                "! new\\nline",
                "! outside",
                "inside",
                "real"
            ]
        );
    }
}
