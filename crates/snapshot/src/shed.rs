//! Removes from the tree of an ended run the files that its snapshot holds. Everything that the run
//! made or changed stays.

use crate::digest::Digest;
use crate::manifest::{Entry, Kind, Piece};
use crate::problem::Result;
use crate::renew::{is_as_it_was, parent};
use crate::root::Root;
use crate::walk::join;
use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

/// The entries that are in the tree, below real folders only. If a run replaced a folder by a link,
/// the files behind the link are not ours.
fn present<'r>(root: &'r Root, target: &Path) -> Vec<&'r Entry> {
    let mut lost: HashSet<&[u8]> = HashSet::new();
    let mut present = Vec::new();
    for entry in &root.manifest.entries {
        let meta = fs::symlink_metadata(join(target, &entry.path))
            .ok()
            .filter(|_| !lost.contains(parent(&entry.path)));
        if entry.kind == Kind::Folder && !meta.as_ref().is_some_and(fs::Metadata::is_dir) {
            lost.insert(&entry.path);
        }
        if meta.is_some() {
            present.push(entry);
        }
    }
    present
}

/// The paths that the run removed or moved: the snapshot has them, and the tree has not.
pub fn absent(root: &Root, target: &Path) -> Vec<Box<[u8]>> {
    let present: HashSet<&[u8]> = present(root, target)
        .into_iter()
        .map(|entry| &*entry.path)
        .collect();
    root.manifest
        .entries
        .iter()
        .filter(|entry| !present.contains(&*entry.path))
        .map(|entry| entry.path.clone())
        .collect()
}

/// Removes the files that are the same as in the snapshot, compared byte by byte, and the folders
/// that are then empty. `false` if it was stopped before the end. May be repeated.
pub fn shed(root: &Root, target: &Path, stop: &dyn Fn() -> bool) -> Result<bool> {
    root.manifest.validate()?;
    let present = present(root, target);
    for entry in &present {
        if stop() {
            return Ok(false);
        }
        let path = join(target, &entry.path);
        let is_same = match &entry.kind {
            Kind::File(pieces) => {
                is_as_it_was(entry, target) && holds(&path, pieces, stop).unwrap_or(false)
            }
            Kind::Link(_) => is_as_it_was(entry, target),
            Kind::Folder | Kind::Same(_) => false,
        };
        if is_same {
            // A file that cannot be removed stays.
            let _ = fs::remove_file(path);
        }
    }
    for entry in present
        .iter()
        .rev()
        .filter(|entry| entry.kind == Kind::Folder)
    {
        // This removes only an empty folder.
        let _ = fs::remove_dir(join(target, &entry.path));
    }
    Ok(true)
}

/// Whether a file has exactly these bytes; also `false` if it was stopped before the end.
fn holds(path: &Path, pieces: &[Piece], stop: &dyn Fn() -> bool) -> io::Result<bool> {
    let mut file = File::open(path)?;
    for piece in pieces {
        let length = usize::try_from(piece.length()).map_err(io::Error::other)?;
        let is_same = match piece {
            Piece::Chunk { digest, .. } => {
                let mut bytes = vec![0; length];
                file.read_exact(&mut bytes)?;
                Digest::of(&bytes) == *digest
            }
            Piece::Hole { .. } => {
                let mut rest = length;
                let mut bytes = vec![0; 64 << 10];
                while rest > 0 {
                    let part = rest.min(bytes.len());
                    file.read_exact(&mut bytes[..part])?;
                    if stop() || bytes[..part].iter().any(|byte| *byte != 0) {
                        return Ok(false);
                    }
                    rest -= part;
                }
                true
            }
        };
        if !is_same {
            return Ok(false);
        }
    }
    Ok(file.read(&mut [0])? == 0)
}
