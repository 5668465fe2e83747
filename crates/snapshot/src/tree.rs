//! A walked tree with what is known of its content, and the manifest and root made of it.

use crate::digest::Digest;
use crate::index::Index;
use crate::manifest::{Entry, Kind, Manifest, Piece};
use crate::problem::{Problem, Result};
use crate::root::{About, Place, Root};
use crate::walk::{Found, FoundKind, Stamp, join};
use std::collections::{HashMap, HashSet};
use std::path::Path;

/// One entry of a walked tree.
pub(crate) struct TreeEntry {
    pub(crate) found: Found,
    /// The content of a file: recalled from the stat cache or read; `None` until then.
    pub(crate) pieces: Option<Vec<Piece>>,
    /// The stamp of a file while it was read; `None` if it was not read, or kept changing.
    pub(crate) read_stamp: Option<Stamp>,
    /// The file kept changing while it was read.
    pub(crate) is_unsteady: bool,
}

impl TreeEntry {
    pub(crate) fn is_file(&self) -> bool {
        self.found.kind == FoundKind::File
    }

    pub(crate) fn shown_path(&self) -> String {
        String::from_utf8_lossy(&self.found.path).into_owned()
    }
}

/// Hard links: the path of each later name of a file, with the path of its first name.
pub(crate) type HardLinks = HashMap<Box<[u8]>, Box<[u8]>>;

pub(crate) fn unsteady_paths(entries: &[TreeEntry]) -> Vec<String> {
    entries
        .iter()
        .filter(|entry| entry.is_unsteady)
        .map(TreeEntry::shown_path)
        .collect()
}

/// Removes the entries whose numbers are in `gone`.
pub(crate) fn remove_gone(entries: &mut Vec<TreeEntry>, gone: &HashSet<usize>) {
    let mut number = 0;
    entries.retain(|_| {
        number += 1;
        !gone.contains(&(number - 1))
    });
}

/// The manifest of a tree whose files all have their content, but for hard links.
pub(crate) fn make_manifest(
    root: &Path,
    tree: &[TreeEntry],
    hard_links: &HardLinks,
) -> Result<Manifest> {
    let mut entries = Vec::with_capacity(tree.len());
    for TreeEntry { found, pieces, .. } in tree {
        let kind = match found.kind {
            FoundKind::Folder => Kind::Folder,
            FoundKind::File => match hard_links.get(&found.path) {
                Some(first) => Kind::Same(first.clone()),
                None => Kind::File(pieces.clone().ok_or_else(|| {
                    Problem::damaged(String::from_utf8_lossy(&found.path), "it was not read")
                })?),
            },
            FoundKind::Link => match read_link(&join(root, &found.path))? {
                Some(target) => Kind::Link(target),
                None => continue,
            },
        };
        // The mode of a link has no meaning.
        let mode = if found.kind == FoundKind::Link {
            0o777
        } else {
            found.mode
        };
        entries.push(Entry {
            path: found.path.clone(),
            mode,
            kind,
            modified: found.stamp.modified,
        });
    }
    Ok(Manifest {
        entries,
        ..Manifest::default()
    })
}

/// The target of a link; `None` for a link that was removed or replaced since the walk.
fn read_link(path: &Path) -> Result<Option<Box<[u8]>>> {
    use rustix::io::Errno;
    match rustix::fs::readlink(path, Vec::new()) {
        Ok(target) => Ok(Some(target.into_bytes().into())),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::INVAL) => Ok(None),
        Err(error) => Err(Problem::file(path, "read", error)),
    }
}

/// The root of a manifest whose content the index knows.
pub(crate) fn make_root(manifest: Manifest, about: About, index: &Index) -> Result<Root> {
    let mut packs: HashMap<Digest, u32> = HashMap::new();
    let mut frames: HashMap<(Digest, u64), u32> = HashMap::new();
    let mut seen: HashSet<Digest> = HashSet::new();
    let mut root = Root {
        about,
        ..Root::default()
    };
    let number =
        |count: usize| u32::try_from(count).map_err(|_| Problem::hostile("too many parts"));
    for (digest, _) in manifest.entries.iter().flat_map(Entry::chunks) {
        if !seen.insert(*digest) {
            continue;
        }
        let (pack, frame, offset) = index.get(digest).ok_or_else(|| {
            Problem::damaged("the index", "content that was just stored is not in it")
        })?;
        let pack_number = if let Some(number) = packs.get(pack) {
            *number
        } else {
            let next = number(root.packs.len())?;
            root.packs.push(*pack);
            packs.insert(*pack, next);
            next
        };
        let frame_number = if let Some(number) = frames.get(&(*pack, frame.offset)) {
            *number
        } else {
            let next = number(root.frames.len())?;
            root.frames.push((pack_number, frame.clone()));
            frames.insert((*pack, frame.offset), next);
            next
        };
        root.places.push(Place {
            frame: frame_number,
            offset,
        });
    }
    root.manifest = manifest;
    Ok(root)
}
