//! An index of the chunks in a store and their places. It is only a cache: content that it does not
//! know is stored again. Packs that are about to be deleted are removed from it.

use crate::codec::{Malformed, Reader, put_bytes, put_number};
use crate::digest::Digest;
use crate::pack::{Frame, Pack, Part};
use crate::pending_deletion;
use crate::problem::{Problem, Result};
use crate::prune::roots;
use crate::root::{Root, put_frame, read, read_frame};
use crate::store::BlobStore;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Bytes of the digest that seals a record.
const SEAL_BYTES: usize = 8;
/// A lost index is rebuilt from this many of the newest roots.
const REBUILD_ROOTS: usize = 8;

#[derive(Debug)]
pub(crate) struct Index {
    file: PathBuf,
    /// Every frame with its pack.
    frames: Vec<(Digest, Frame)>,
    chunks: HashMap<Digest, (u32, u32)>,
    /// The lists of pending deletions that were applied, by name.
    pending_deletion: HashMap<Digest, HashSet<Digest>>,
    /// The file must be written anew, because it is damaged or names removed packs.
    needs_rewrite: bool,
    records: Vec<(Digest, Vec<u8>)>,
}

impl Index {
    /// The index of a store, without the packs that are about to be deleted. A lost or damaged
    /// index is rebuilt from the store.
    pub(crate) fn open(store: &dyn BlobStore, file: &Path) -> Result<Self> {
        let mut index = Self::load(file)?;
        let is_new = !file.exists() || index.is_partial();
        for (_, list) in pending_deletion::lists(store)? {
            // The name is made of moment and content, because the same packs may be listed twice.
            let name = Digest::of(list.path().as_bytes());
            if !index.knows_list(&name) {
                let packs = pending_deletion::packs(store, &list)?;
                index.drop_listed(name, packs.into_iter().collect());
            }
        }
        if is_new {
            // The newest few roots name most of what the store holds.
            let mut roots = roots(store)?;
            roots.sort_by_key(|root| std::cmp::Reverse(root.changed));
            for root in roots.iter().take(REBUILD_ROOTS) {
                if let Ok(root) = read(store, &root.blob) {
                    index.add_root(&root);
                }
            }
        }
        // Somebody may have emptied the store: content that is not there is stored again.
        let known = index.packs();
        if !known.is_empty() {
            index.remove_packs(&store.missing(&known)?);
        }
        Ok(index)
    }

    /// Reads the whole records of the file. A torn or damaged end is left out.
    pub(crate) fn load(file: &Path) -> Result<Self> {
        let mut index = Self {
            file: file.to_owned(),
            frames: Vec::new(),
            chunks: HashMap::new(),
            pending_deletion: HashMap::new(),
            needs_rewrite: false,
            records: Vec::new(),
        };
        let bytes = match fs::read(file) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(index),
            Err(error) => return Err(Problem::file(file, "read", error)),
        };
        let mut reader = Reader::new(&bytes);
        while !reader.is_empty() {
            if index.read_record(&mut reader).is_err() {
                index.needs_rewrite = true;
                break;
            }
        }
        Ok(index)
    }

    fn read_record(&mut self, reader: &mut Reader<'_>) -> Result<(), Malformed> {
        let payload = reader.bytes()?;
        if reader.take(SEAL_BYTES)? != &Digest::of(payload).0[..SEAL_BYTES] {
            return Err(Malformed::Other("a damaged record"));
        }
        let mut record = Reader::new(payload);
        let name = record.digest()?;
        let count = record.number()?;
        if count == 0 {
            let packs = (0..record.count()?)
                .map(|_| record.digest())
                .collect::<Result<_, _>>()?;
            self.pending_deletion.insert(name, packs);
            return record.end();
        }
        for _ in 0..count {
            let frame = read_frame(&mut record)?;
            let mut parts = Vec::new();
            let mut offset = 0u32;
            for _ in 0..record.count()? {
                let digest = record.digest()?;
                let length = u32::try_from(record.number()?).map_err(|_| Malformed::Number)?;
                parts.push(Part {
                    digest,
                    offset,
                    length,
                });
                offset = offset.checked_add(length).ok_or(Malformed::Number)?;
            }
            self.insert(name, frame, &parts);
        }
        record.end()
    }

    fn insert(&mut self, pack: Digest, frame: Frame, parts: &[Part]) {
        if self.is_pending_deletion(&pack) {
            return;
        }
        let number = u32::try_from(self.frames.len()).unwrap_or(u32::MAX);
        self.frames.push((pack, frame));
        for part in parts {
            self.chunks
                .entry(part.digest)
                .or_insert((number, part.offset));
        }
    }

    pub(crate) fn get(&self, digest: &Digest) -> Option<(&Digest, &Frame, u32)> {
        let (frame, offset) = self.chunks.get(digest)?;
        let (pack, frame) = self.frames.get(*frame as usize)?;
        Some((pack, frame, *offset))
    }

    /// Whether some of its records were lost.
    pub(crate) const fn is_partial(&self) -> bool {
        self.needs_rewrite
    }

    pub(crate) fn has(&self, digest: &Digest) -> bool {
        self.chunks.contains_key(digest)
    }

    pub(crate) fn knows_list(&self, name: &Digest) -> bool {
        self.pending_deletion.contains_key(name)
    }

    /// Whether a pack of that name is on a list of pending deletions.
    pub(crate) fn is_pending_deletion(&self, pack: &Digest) -> bool {
        self.pending_deletion
            .values()
            .any(|packs| packs.contains(pack))
    }

    /// Adds a pack that is in the store by now.
    pub(crate) fn add(&mut self, pack: &Pack) {
        let mut payload = pack.digest.0.to_vec();
        put_number(&mut payload, pack.frames.len() as u64);
        for (frame, parts) in &pack.frames {
            put_frame(&mut payload, frame);
            put_number(&mut payload, parts.len() as u64);
            for part in parts {
                payload.extend_from_slice(&part.digest.0);
                put_number(&mut payload, u64::from(part.length));
            }
            self.insert(pack.digest, frame.clone(), parts);
        }
        self.records.push((pack.digest, payload));
    }

    /// Removes packs that are on a list of pending deletions.
    fn drop_listed(&mut self, name: Digest, packs: HashSet<Digest>) {
        let frames = &self.frames;
        self.chunks.retain(|_, (frame, _)| {
            frames
                .get(*frame as usize)
                .is_some_and(|(pack, _)| !packs.contains(pack))
        });
        self.pending_deletion.insert(name, packs);
        self.needs_rewrite = true;
    }

    /// The packs of all known chunks.
    fn packs(&self) -> Vec<Digest> {
        let used: HashSet<Digest> = self
            .chunks
            .values()
            .filter_map(|(frame, _)| self.frames.get(*frame as usize).map(|(pack, _)| *pack))
            .collect();
        used.into_iter().collect()
    }

    /// Removes packs that are not in the store.
    fn remove_packs(&mut self, packs: &[Digest]) {
        if packs.is_empty() {
            return;
        }
        let gone: HashSet<&Digest> = packs.iter().collect();
        let frames = &self.frames;
        self.chunks.retain(|_, (frame, _)| {
            frames
                .get(*frame as usize)
                .is_some_and(|(pack, _)| !gone.contains(pack))
        });
        self.needs_rewrite = true;
    }

    /// Adds everything that a root names. This rebuilds a lost index.
    fn add_root(&mut self, root: &Root) {
        let mut parts: HashMap<u32, Vec<Part>> = HashMap::new();
        for (digest, (place, length)) in root.chunks() {
            if !self.has(&digest) {
                let length = u32::try_from(length).unwrap_or(u32::MAX);
                parts.entry(place.frame).or_default().push(Part {
                    digest,
                    offset: place.offset,
                    length,
                });
            }
        }
        for (number, parts) in parts {
            if let Some((pack, frame)) = root.frames.get(number as usize)
                && let Some(pack) = root.packs.get(*pack as usize)
            {
                self.insert(*pack, frame.clone(), &parts);
            }
        }
    }

    /// Appends the new records, or writes the whole file anew if needed.
    pub(crate) fn save(&mut self) -> Result<()> {
        if self.records.is_empty() && !self.needs_rewrite {
            return Ok(());
        }
        let failed = |error| Problem::file(&self.file, "written", error);
        if let Some(folder) = self.file.parent() {
            fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(folder)
                .map_err(failed)?;
        }
        let mut out = Vec::new();
        if self.needs_rewrite {
            self.write_whole(&mut out);
            let part = self
                .file
                .with_extension(format!("part-{}", std::process::id()));
            fs::OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(true)
                .mode(0o600)
                .open(&part)
                .and_then(|mut file| file.write_all(&out))
                .map_err(failed)?;
            fs::rename(&part, &self.file).map_err(failed)?;
        } else {
            for (_, payload) in &self.records {
                put_record(&mut out, payload);
            }
            // One write at the end of the file, so that two processes do not mix their records.
            fs::OpenOptions::new()
                .append(true)
                .create(true)
                .mode(0o600)
                .open(&self.file)
                .and_then(|mut file| file.write_all(&out))
                .map_err(failed)?;
        }
        self.records.clear();
        self.needs_rewrite = false;
        Ok(())
    }

    fn write_whole(&self, out: &mut Vec<u8>) {
        for (name, packs) in &self.pending_deletion {
            let mut payload = name.0.to_vec();
            put_number(&mut payload, 0);
            put_number(&mut payload, packs.len() as u64);
            payload.extend(packs.iter().flat_map(|pack| pack.0));
            put_record(out, &payload);
        }
        let mut parts: HashMap<u32, Vec<(u32, Digest)>> = HashMap::new();
        for (digest, (frame, offset)) in &self.chunks {
            parts.entry(*frame).or_default().push((*offset, *digest));
        }
        for (number, (pack, frame)) in self.frames.iter().enumerate() {
            let Some(mut chunks) = u32::try_from(number)
                .ok()
                .and_then(|number| parts.remove(&number))
            else {
                continue;
            };
            chunks.sort_unstable();
            let mut payload = pack.0.to_vec();
            put_number(&mut payload, 1);
            put_frame(&mut payload, frame);
            put_parts(&mut payload, &chunks, frame.raw);
            put_record(out, &payload);
        }
    }
}

/// Writes the chunks of a frame. A gap between known chunks is written as a chunk with no digest.
fn put_parts(payload: &mut Vec<u8>, chunks: &[(u32, Digest)], raw: u32) {
    let mut rows: Vec<(Digest, u32)> = Vec::new();
    let mut at = 0;
    for (number, (offset, digest)) in chunks.iter().enumerate() {
        if *offset > at {
            rows.push((Digest::default(), offset - at));
        }
        let end = chunks.get(number + 1).map_or(raw, |(next, _)| *next);
        rows.push((*digest, end.saturating_sub(*offset)));
        at = end;
    }
    put_number(payload, rows.len() as u64);
    for (digest, length) in rows {
        payload.extend_from_slice(&digest.0);
        put_number(payload, u64::from(length));
    }
}

fn put_record(out: &mut Vec<u8>, payload: &[u8]) {
    put_bytes(out, payload);
    out.extend_from_slice(&Digest::of(payload).0[..SEAL_BYTES]);
}
