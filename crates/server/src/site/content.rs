//! Writes blobs of snapshots into the stage folder.

use super::failed;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;
use std::thread::JoinHandle;
use towline_core::{Error, Result};
use towline_snapshot::digest::Digest;
use towline_snapshot::root::read_root;
use towline_snapshot::store::{Blob, BlobStore, FolderStore};
use towline_wire::site::SiteReply;
use towline_wire::stage::StageFolder;

/// The largest blob that is sent in one piece.
const MAX_BLOB_BYTES: u64 = 256 << 20;

pub(super) fn receive(input: &mut impl Read, size: u64) -> io::Result<Vec<u8>> {
    if size > MAX_BLOB_BYTES {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "a blob is too large",
        ));
    }
    let mut bytes = vec![0; usize::try_from(size).map_err(io::Error::other)?];
    input.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Blobs that are being written while the next one is read.
#[derive(Default)]
pub(super) struct Keeping(VecDeque<JoinHandle<Result<()>>>);

/// How many are written at once; the sender knows that these are not acknowledged yet.
const PARALLEL_BLOBS: usize = 4;

fn answer(kept: Result<()>) -> SiteReply {
    match kept {
        Ok(()) => SiteReply::Done,
        Err(error) => SiteReply::Refused(towline_wire::daemon::Refusal::from(&error)),
    }
}

impl Keeping {
    /// Begins to write one, and returns the replies for earlier ones that are due.
    pub(super) fn keep(
        &mut self,
        stage: &StageFolder,
        name: &str,
        bytes: Vec<u8>,
    ) -> Vec<SiteReply> {
        // A root promises that all its packs are there, so it waits for them.
        let is_pack = matches!(Blob::parse(name), Some(Blob::Pack(_)));
        let mut replies = self.wait_for(if is_pack { PARALLEL_BLOBS - 1 } else { 0 });
        let bytes = Arc::new(bytes);
        let shared = bytes.clone();
        let (own_stage, own_name) = (stage.clone(), name.to_owned());
        if let Ok(thread) =
            std::thread::Builder::new().spawn(move || keep(&own_stage, &own_name, &shared))
        {
            self.0.push_back(thread);
        } else {
            // No thread can be started, so this one writes the blob.
            replies.extend(self.finish());
            replies.push(answer(keep(stage, name, &bytes)));
        }
        if !is_pack {
            replies.extend(self.finish());
        }
        replies
    }

    /// The replies for all.
    pub(super) fn finish(&mut self) -> Vec<SiteReply> {
        self.wait_for(0)
    }

    fn wait_for(&mut self, most: usize) -> Vec<SiteReply> {
        let mut replies = Vec::new();
        while self.0.len() > most {
            let Some(first) = self.0.pop_front() else {
                break;
            };
            let kept = first
                .join()
                .unwrap_or_else(|_| Err(Error::bug("the keeping of a blob broke down")));
            replies.push(answer(kept));
        }
        replies
    }
}

fn blob(name: &str) -> Result<Blob> {
    Blob::parse(name).ok_or_else(|| Error::bug(format!("`{name}` is no blob of a snapshot")))
}

/// The blobs that are missing.
pub(super) fn missing(stage: &StageFolder, blobs: Vec<String>) -> Result<Vec<String>> {
    let store = FolderStore::new(stage.snapshots());
    let mut missing = Vec::new();
    for name in blobs {
        let blob = blob(&name)?;
        if !store.has(&blob)? {
            missing.push(name);
            continue;
        }
        // A submission is about to need it. A new time protects it, because no young blob is
        // pruned.
        let _ = File::open(stage.snapshots().join(blob.path()))
            .and_then(|file| file.set_modified(super::tidy::now()));
    }
    Ok(missing)
}

/// Checks that the snapshot and its packs are complete; if not, the sender of a submission uploads
/// them again.
pub(super) fn check_whole(stage: &StageFolder, snapshot: &str) -> Result<()> {
    let store = FolderStore::new(stage.snapshots());
    let gone = || {
        Error::unreachable("its code is not in the stage folder any more").hint("it is sent again")
    };
    let id = Digest::parse(snapshot)
        .ok_or_else(|| Error::bug(format!("`{snapshot}` names no snapshot")))?;
    if !store.has(&Blob::Root(id))? {
        return Err(gone());
    }
    let root = read_root(&store, &id)?;
    if store.missing(&root.packs)?.is_empty() {
        return Ok(());
    }
    // A root promises that its packs are there. Without them the root must go, or nobody would
    // upload them again.
    store.delete(&[Blob::Root(id)])?;
    Err(gone())
}

/// Writes a blob completely or not at all, and only if its content matches its name.
fn keep(stage: &StageFolder, name: &str, bytes: &[u8]) -> Result<()> {
    let blob = blob(name)?;
    if let Blob::Pack(digest) = &blob
        && Digest::of(bytes) != *digest
    {
        return Err(Error::unreachable("a pack arrived damaged").hint("try again"));
    }
    let store = FolderStore::new(stage.snapshots());
    store.put(&blob, bytes).map_err(|problem| match problem {
        towline_snapshot::problem::Problem::File { path, source, .. } => failed(&path, source),
        other => other.into(),
    })
}
