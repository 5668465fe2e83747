//! A tree whose run has ended, without what its snapshot holds anyway: files that are exactly as
//! they were laid out go, everything that the run made or changed stays.

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

/// The entries that lie in the tree, by way of real folders alone: what a run moved away and left a
/// link to is not ours.
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

/// The paths that the snapshot has and the tree has not: the run removed or moved them.
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

/// Removes what is exactly as the snapshot has it, down to its bytes, and folders that are empty
/// then. `false`: it was told to stop before it had looked at everything. May be repeated.
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
            // What cannot be removed stays.
            let _ = fs::remove_file(path);
        }
    }
    for entry in present
        .iter()
        .rev()
        .filter(|entry| entry.kind == Kind::Folder)
    {
        // Only an empty one goes.
        let _ = fs::remove_dir(join(target, &entry.path));
    }
    Ok(true)
}

/// Whether a file has these bytes and no others; `false` too when it was told to stop before that
/// was known.
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
