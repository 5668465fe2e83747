//! Reads everything again and says what is not as it was, and which files that touches.

use crate::digest::Digest;
use crate::manifest::Entry;
use crate::pack::unpack;
use crate::problem::{Problem, Result};
use crate::progress::Progress;
use crate::root::{Root, read_root};
use crate::store::{Blob, BlobKind, BlobStore, Stored};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Something that is not as it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// `pack 0123…`, `snapshot 0123…`.
    pub what: String,
    pub how: String,
    /// Snapshots that cannot be laid out whole any more, and their files.
    pub touches: Vec<(Digest, Vec<String>)>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Checked {
    pub snapshots: usize,
    pub packs: usize,
    pub bytes: u64,
    pub damage: Vec<Damage>,
    /// Packs that are not as they were, or not there.
    pub packs_damaged: Vec<Digest>,
}

/// Where something went wrong: a whole pack, or the frame at one offset of it; [`NOWHERE`] is a
/// part that no snapshot needs.
type Wrong = BTreeMap<(Digest, Option<u64>), String>;

const NOWHERE: Option<u64> = Some(u64::MAX);

/// Checks every snapshot of a store, or the ones named, and all content they need; without names
/// also packs that nothing needs.
pub fn check(store: &dyn BlobStore, only: Option<&[Digest]>, progress: &Progress) -> Result<Checked> {
    let mut checked = Checked::default();
    let ids: Vec<Digest> = match only {
        Some(ids) => ids.to_vec(),
        None => store.list(BlobKind::Root)?.iter().filter_map(|stored| if let Blob::Root(id) = stored.blob { Some(id) } else { None }).collect(),
    };
    let mut roots = Vec::new();
    for id in ids {
        match read_root(store, &id) {
            Ok(root) => roots.push((id, root)),
            Err(Problem::Damaged { what, how }) => checked.damage.push(Damage { what, how, touches: vec![(id, Vec::new())] }),
            Err(Problem::Hostile(how)) => checked.damage.push(Damage { what: format!("snapshot {}", id.short()), how, touches: vec![(id, Vec::new())] }),
            Err(other) => return Err(other),
        }
        checked.snapshots += 1;
    }
    let stored = store.list(BlobKind::Pack)?;
    let mut wrong = Wrong::new();
    let needed: BTreeSet<Digest> = roots.iter().flat_map(|(_, root)| root.packs.iter().copied()).collect();
    let there: BTreeSet<Digest> = stored.iter().filter_map(name).collect();
    for missing in needed.difference(&there) {
        wrong.insert((*missing, None), "it is gone".to_owned());
    }
    let chosen: Vec<&Stored> = stored.iter().filter(|stored| only.is_none() || name(stored).is_some_and(|pack| needed.contains(&pack))).collect();
    progress.expect(chosen.len() as u64, chosen.iter().map(|stored| stored.size).sum());
    let frames = frames_by_pack(&roots);
    for pack in chosen {
        let Some(digest) = name(pack) else { continue };
        check_pack(store, digest, frames.get(&digest).map_or(&[][..], Vec::as_slice), &mut wrong)?;
        checked.packs += 1;
        checked.bytes += pack.size;
        progress.add_file();
        progress.add_bytes(pack.size);
    }
    checked.damage.extend(report(&wrong, &roots));
    checked.packs_damaged = wrong.keys().map(|(pack, _)| *pack).collect();
    checked.packs_damaged.dedup();
    Ok(checked)
}

/// Drops what a check found damaged, and the snapshots that cannot be laid out any more: whoever
/// takes the same code again stores it anew. Gives the snapshots that went.
pub fn repair(store: &dyn BlobStore, checked: &Checked, now: i64) -> Result<Vec<Digest>> {
    let mut gone: Vec<Digest> = checked.damage.iter().flat_map(|damage| damage.touches.iter().map(|(id, _)| *id)).collect();
    gone.sort_unstable();
    gone.dedup();
    if !checked.packs_damaged.is_empty() {
        // On the list first, so that nobody builds on them.
        let bytes: Vec<u8> = checked.packs_damaged.iter().flat_map(|pack| pack.0).collect();
        store.put(&Blob::Doom(now, Digest::of(&bytes)), &bytes)?;
    }
    store.delete(&gone.iter().map(|id| Blob::Root(*id)).collect::<Vec<_>>())?;
    store.delete(&checked.packs_damaged.iter().map(|pack| Blob::Pack(*pack)).collect::<Vec<_>>())?;
    Ok(gone)
}

fn name(stored: &Stored) -> Option<Digest> {
    if let Blob::Pack(digest) = stored.blob { Some(digest) } else { None }
}

type RootFrame<'a> = (&'a Root, u32);

fn frames_by_pack(roots: &[(Digest, Root)]) -> HashMap<Digest, Vec<RootFrame<'_>>> {
    let mut frames: HashMap<Digest, Vec<RootFrame<'_>>> = HashMap::new();
    for (_, root) in roots {
        for (number, (pack, _)) in (0u32..).zip(&root.frames) {
            if let Some(pack) = root.packs.get(*pack as usize) {
                frames.entry(*pack).or_default().push((root, number));
            }
        }
    }
    frames
}

/// Its whole, then every frame that a snapshot needs, then the chunks in it.
fn check_pack(store: &dyn BlobStore, digest: Digest, frames: &[RootFrame<'_>], wrong: &mut Wrong) -> Result<()> {
    let Some(bytes) = store.get(&Blob::Pack(digest))? else {
        wrong.insert((digest, None), "it is gone".to_owned());
        return Ok(());
    };
    if Digest::of(&bytes) == digest && frames.is_empty() {
        return Ok(());
    }
    let mut found_in_frames = false;
    for (root, number) in frames {
        let frame = &root.frames[*number as usize].1;
        let end = usize::try_from(frame.offset).ok().and_then(|begin| Some(begin..begin.checked_add(frame.stored as usize)?));
        let outcome = end.and_then(|range| bytes.get(range)).ok_or_else(|| Problem::damaged(format!("pack {}", digest.short()), "it is cut short"));
        if let Err(problem) = outcome.and_then(|stored| unpack(frame, stored, &digest)) {
            found_in_frames = true;
            wrong.insert((digest, Some(frame.offset)), problem.to_string());
        }
    }
    if Digest::of(&bytes) != digest && !found_in_frames {
        wrong.insert((digest, NOWHERE), "other bytes than were stored, in a part that no snapshot needs".to_owned());
    }
    Ok(())
}

fn report(wrong: &Wrong, roots: &[(Digest, Root)]) -> Vec<Damage> {
    wrong
        .iter()
        .map(|((pack, offset), how)| {
            let touches = roots.iter().filter_map(|(id, root)| touched(root, pack, *offset).map(|files| (*id, files))).collect();
            Damage { what: format!("pack {}", pack.short()), how: how.clone(), touches }
        })
        .collect()
}

/// The files of a snapshot that need that part.
fn touched(root: &Root, pack: &Digest, offset: Option<u64>) -> Option<Vec<String>> {
    let chunks = root.chunks();
    let is_hit = |digest: &Digest| {
        chunks
            .get(digest)
            .and_then(|(place, _)| root.frames.get(place.frame as usize))
            .is_some_and(|(number, frame)| root.packs.get(*number as usize) == Some(pack) && offset.is_none_or(|offset| offset == frame.offset))
    };
    let hit = |entry: &&Entry| entry.chunks().any(|(digest, _)| is_hit(digest));
    let files: Vec<String> = root.manifest.entries.iter().filter(hit).map(|entry| String::from_utf8_lossy(&entry.path).into_owned()).collect();
    (!files.is_empty()).then_some(files)
}
