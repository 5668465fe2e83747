//! Reads everything again, and lists what is damaged and which files that touches.

use crate::digest::Digest;
use crate::manifest::Kind;
use crate::pack::{Frame, unpack};
use crate::pending_deletion;
use crate::problem::{Problem, Result};
use crate::progress::Progress;
use crate::prune::roots;
use crate::root::{Root, read};
use crate::store::{Blob, BlobKind, BlobStore, Stored};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Something that is damaged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// `pack 0123…`, `snapshot 0123…`.
    pub what: String,
    pub how: String,
    /// Snapshots that cannot be laid out whole any more, with the damaged files.
    pub touches: Vec<(Blob, Vec<String>)>,
    /// It was found before and stored anew; the newest backup does not need it.
    pub is_set_aside: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Checked {
    pub snapshots: usize,
    pub packs: usize,
    pub bytes: u64,
    pub damage: Vec<Damage>,
    /// Packs that are damaged or missing.
    pub packs_damaged: Vec<Digest>,
}

/// The damage by place: a whole pack, or the frame at one offset of it.
type Wrong = BTreeMap<(Digest, Option<u64>), String>;

/// Stands for a part of a pack that no snapshot needs.
const UNUSED_PART: Option<u64> = Some(u64::MAX);

/// Checks the snapshots and backups in `only` and all content they need; without `only`, everything
/// that the store holds. At most one root is in memory at a time.
pub fn check(store: &dyn BlobStore, only: Option<&[Blob]>, progress: &Progress) -> Result<Checked> {
    let mut checked = Checked::default();
    let blobs: Vec<Blob> = match only {
        Some(blobs) => blobs.to_vec(),
        None => roots(store)?.iter().map(|stored| stored.blob).collect(),
    };
    let mut needed: HashMap<Digest, BTreeMap<u64, Frame>> = HashMap::new();
    let mut sound = Vec::new();
    for blob in blobs {
        let touches = vec![(blob, Vec::new())];
        match read(store, &blob) {
            Ok(root) => {
                sound.push(blob);
                gather(&root, &mut needed);
            }
            Err(Problem::Damaged { how, .. } | Problem::Hostile(how)) => {
                checked.damage.push(Damage {
                    what: blob.shown(),
                    how,
                    touches,
                    is_set_aside: false,
                });
            }
            Err(other) => return Err(other),
        }
        checked.snapshots += 1;
    }
    let stored = store.list(BlobKind::Pack)?;
    let mut wrong = Wrong::new();
    let there: BTreeSet<Digest> = stored.iter().map(|stored| stored.blob.digest()).collect();
    for missing in needed.keys().filter(|pack| !there.contains(pack)) {
        wrong.insert((*missing, None), "it is gone".to_owned());
    }
    let chosen: Vec<&Stored> = stored
        .iter()
        .filter(|stored| only.is_none() || needed.contains_key(&stored.blob.digest()))
        .collect();
    progress.expect(
        chosen.len() as u64,
        chosen.iter().map(|stored| stored.size).sum(),
    );
    let none = BTreeMap::new();
    for pack in chosen {
        let digest = pack.blob.digest();
        check_pack(
            store,
            digest,
            needed.get(&digest).unwrap_or(&none),
            &mut wrong,
        )?;
        checked.packs += 1;
        checked.bytes += pack.size;
        progress.add_file();
        progress.add_bytes(pack.size);
    }
    let set_aside = if only.is_none() && !wrong.is_empty() {
        pending_deletion::packs_since(store, i64::MIN)?
            .into_iter()
            .map(|(pack, _)| pack)
            .collect()
    } else {
        BTreeSet::new()
    };
    checked
        .damage
        .extend(report(store, &wrong, &sound, &set_aside)?);
    checked.packs_damaged = wrong.keys().map(|(pack, _)| *pack).collect();
    checked.packs_damaged.dedup();
    Ok(checked)
}

/// The frames of each pack that a root needs.
fn gather(root: &Root, needed: &mut HashMap<Digest, BTreeMap<u64, Frame>>) {
    for (pack, frame) in &root.frames {
        if let Some(pack) = root.packs.get(*pack as usize) {
            needed
                .entry(*pack)
                .or_default()
                .entry(frame.offset)
                .or_insert_with(|| frame.clone());
        }
    }
}

/// Deletes the damaged packs and the snapshots that cannot be laid out any more. The next snapshot
/// of the same code stores it anew. Returns the snapshots that were deleted.
pub fn repair(store: &dyn BlobStore, checked: &Checked, now: i64) -> Result<Vec<Blob>> {
    let mut gone: Vec<Blob> = checked
        .damage
        .iter()
        .flat_map(|damage| damage.touches.iter().map(|(id, _)| *id))
        .collect();
    gone.sort_unstable();
    gone.dedup();
    pending_deletion::announce(store, &checked.packs_damaged, now)?;
    store.delete(&gone)?;
    store.delete(
        &checked
            .packs_damaged
            .iter()
            .map(|pack| Blob::Pack(*pack))
            .collect::<Vec<_>>(),
    )?;
    Ok(gone)
}

/// Lists the damaged packs, so that the next backup stores their content anew. Their sound parts
/// stay for older backups. Roots that cannot be read are deleted. Returns the number of packs and
/// roots.
pub fn set_aside(store: &dyn BlobStore, checked: &Checked, now: i64) -> Result<usize> {
    let unreadable: Vec<Blob> = checked
        .damage
        .iter()
        .flat_map(|damage| &damage.touches)
        .filter(|(_, files)| files.is_empty())
        .map(|(root, _)| *root)
        .collect();
    pending_deletion::announce(store, &checked.packs_damaged, now)?;
    store.delete(&unreadable)?;
    Ok(unreadable.len() + checked.packs_damaged.len())
}

/// Checks the digest of a pack and every frame that a root needs.
fn check_pack(
    store: &dyn BlobStore,
    digest: Digest,
    frames: &BTreeMap<u64, Frame>,
    wrong: &mut Wrong,
) -> Result<()> {
    let Some(bytes) = store.get(&Blob::Pack(digest))? else {
        wrong.insert((digest, None), "it is gone".to_owned());
        return Ok(());
    };
    if Digest::of(&bytes) == digest && frames.is_empty() {
        return Ok(());
    }
    let mut found_in_frames = false;
    for frame in frames.values() {
        let end = usize::try_from(frame.offset)
            .ok()
            .and_then(|begin| Some(begin..begin.checked_add(frame.stored as usize)?));
        let outcome = end
            .and_then(|range| bytes.get(range))
            .ok_or_else(|| Problem::damaged(format!("pack {}", digest.short()), "it is cut short"));
        if let Err(problem) = outcome.and_then(|stored| unpack(frame, stored, &digest)) {
            found_in_frames = true;
            wrong.insert((digest, Some(frame.offset)), problem.to_string());
        }
    }
    if Digest::of(&bytes) != digest && !found_in_frames {
        wrong.insert(
            (digest, UNUSED_PART),
            "other bytes than were stored, in a part that nothing needs".to_owned(),
        );
    }
    Ok(())
}

fn report(
    store: &dyn BlobStore,
    wrong: &Wrong,
    sound: &[Blob],
    set_aside: &BTreeSet<Digest>,
) -> Result<Vec<Damage>> {
    let damage = |((pack, _), how): (&(Digest, _), &String)| Damage {
        what: format!("pack {}", pack.short()),
        how: how.clone(),
        touches: Vec::new(),
        is_set_aside: set_aside.contains(pack),
    };
    let mut damages: Vec<Damage> = wrong.iter().map(damage).collect();
    for blob in sound.iter().filter(|_| !wrong.is_empty()) {
        let root = read(store, blob)?;
        for ((pack, offset), damage) in wrong.keys().zip(&mut damages) {
            damage
                .touches
                .extend(touched(&root, pack, *offset).map(|files| (*blob, files)));
        }
    }
    let newest = sound
        .iter()
        .filter_map(|blob| {
            if let Blob::Backup(at, _) = *blob {
                Some((at, *blob))
            } else {
                None
            }
        })
        .max();
    for damage in &mut damages {
        damage.is_set_aside &= newest
            .is_some_and(|(_, newest)| damage.touches.iter().all(|(blob, _)| *blob != newest));
    }
    Ok(damages)
}

/// The files of a snapshot that need that part of a pack.
fn touched(root: &Root, pack: &Digest, offset: Option<u64>) -> Option<Vec<String>> {
    let chunks = root.chunks();
    let is_hit = |digest: &Digest| {
        chunks
            .get(digest)
            .and_then(|(place, _)| root.frames.get(place.frame as usize))
            .is_some_and(|(number, frame)| {
                root.packs.get(*number as usize) == Some(pack)
                    && offset.is_none_or(|offset| offset == frame.offset)
            })
    };
    let mut hit: BTreeSet<&[u8]> = BTreeSet::new();
    for entry in &root.manifest.entries {
        let is_same = matches!(&entry.kind, Kind::Same(first) if hit.contains(&**first));
        if is_same || entry.chunks().any(|(digest, _)| is_hit(digest)) {
            hit.insert(&entry.path);
        }
    }
    let files: Vec<String> = hit
        .into_iter()
        .map(|path| String::from_utf8_lossy(path).into_owned())
        .collect();
    (!files.is_empty()).then_some(files)
}
