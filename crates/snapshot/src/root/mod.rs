//! The root object of a snapshot: its manifest, and the place of each chunk.

mod subset;
mod summary;

pub(crate) use summary::MAX_SUMMARY_BYTES;
pub use summary::Summary;

use crate::codec::{Malformed, Reader, put_bytes, put_number, put_signed};
use crate::digest::Digest;
use crate::manifest::{Entry, Flavor, Manifest};
use crate::pack::{Frame, MAX_FRAME_BYTES};
use crate::problem::{Problem, Result};
use crate::store::{Blob, BlobStore};
use std::collections::HashMap;
use summary::BACKUP_MAGIC;

/// The first bytes of a snapshot's root, with the version of its format.
const SNAPSHOT_MAGIC: &[u8] = b"towline snapshot 1\n";
/// No manifest unpacks to more.
const MAX_BODY_BYTES: usize = 1 << 30;

/// The place of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) frame: u32,
    pub(crate) offset: u32,
}

/// The time and the name of a snapshot, for people.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct About {
    /// Milliseconds since 1970.
    pub taken: i64,
    /// The name of the folder.
    pub name: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Root {
    pub about: About,
    /// The summary of a backup; `None` for a snapshot.
    pub summary: Option<Summary>,
    pub manifest: Manifest,
    pub packs: Vec<Digest>,
    /// Every frame with the number of its pack.
    pub(crate) frames: Vec<(u32, Frame)>,
    /// The places of all chunks, in the order in which the manifest first names them.
    pub(crate) places: Vec<Place>,
}

impl Root {
    pub fn id(&self) -> Digest {
        self.manifest.id()
    }

    pub(crate) fn encode(&self) -> Result<Vec<u8>> {
        let mut body = Vec::new();
        put_signed(&mut body, self.about.taken);
        put_bytes(&mut body, self.about.name.as_bytes());
        let mut tree = Vec::new();
        self.manifest.write_tree(&mut tree, |_| {});
        put_bytes(&mut body, &tree);
        let mut times = Vec::new();
        self.manifest.write_times(&mut times);
        put_bytes(&mut body, &times);
        put_number(&mut body, self.packs.len() as u64);
        self.packs
            .iter()
            .for_each(|pack| body.extend_from_slice(&pack.0));
        put_number(&mut body, self.frames.len() as u64);
        for (pack, frame) in &self.frames {
            put_number(&mut body, u64::from(*pack));
            put_frame(&mut body, frame);
        }
        put_number(&mut body, self.places.len() as u64);
        let mut last = 0;
        for place in &self.places {
            put_signed(&mut body, i64::from(place.frame) - last);
            last = i64::from(place.frame);
            put_number(&mut body, u64::from(place.offset));
        }
        let compressed = zstd::bulk::compress(&body, 1)
            .map_err(|error| Problem::damaged("the compressor", error.to_string()))?;
        let mut out = match &self.summary {
            None => SNAPSHOT_MAGIC.to_vec(),
            Some(summary) => [BACKUP_MAGIC, &summary.encode()?].concat(),
        };
        put_number(&mut out, body.len() as u64);
        out.extend_from_slice(&compressed);
        let seal = Digest::of(&out);
        out.extend_from_slice(&seal.0);
        Ok(out)
    }

    /// Decodes a root and checks everything: seal, encoding, bounds, paths, identity.
    pub fn decode(bytes: &[u8], id: &Digest) -> Result<Self> {
        let root = Self::decode_any(bytes, &id.short())?;
        if root.id() == *id {
            Ok(root)
        } else {
            Err(Problem::damaged(
                format!("snapshot {}", id.short()),
                "it is another snapshot",
            ))
        }
    }

    /// Decodes a root without knowing its id. `name` is for messages.
    pub fn decode_any(bytes: &[u8], name: &str) -> Result<Self> {
        let damaged = |how: &str| Problem::damaged(format!("snapshot {name}"), how);
        let sealed = bytes
            .len()
            .checked_sub(32)
            .ok_or_else(|| damaged("it is cut short"))?;
        if Digest::of(&bytes[..sealed]).0 != bytes[sealed..] {
            return Err(damaged("other bytes than were stored"));
        }
        let (summary, packed) =
            match Summary::split(&bytes[..sealed]).map_err(|how| damaged(&how.to_string()))? {
                Some((summary, packed)) => (Some(summary), packed),
                None => (
                    None,
                    bytes[..sealed]
                        .strip_prefix(SNAPSHOT_MAGIC)
                        .ok_or_else(|| damaged("it is not a snapshot of this version"))?,
                ),
            };
        let mut root = Self::decode_body(&unpack(packed).map_err(|how| damaged(&how))?)
            .map_err(|how| damaged(&how.to_string()))?;
        root.summary = summary;
        if (root.manifest.flavor == Flavor::Workspace) != root.summary.is_some() {
            return Err(damaged("it is neither code nor a workspace"));
        }
        root.manifest.validate()?;
        root.check_places()?;
        Ok(root)
    }

    fn decode_body(body: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(body);
        let taken = reader.signed()?;
        let name = String::from_utf8_lossy(reader.bytes()?).into_owned();
        let mut manifest = Manifest::read_tree(reader.bytes()?)?;
        manifest.read_times(reader.bytes()?)?;
        let packs = (0..reader.count()?)
            .map(|_| reader.digest())
            .collect::<Result<Vec<_>, _>>()?;
        let mut frames = Vec::new();
        for _ in 0..reader.count()? {
            let pack = u32::try_from(reader.number()?).map_err(|_| Malformed::Number)?;
            if pack as usize >= packs.len() {
                return Err(Malformed::Other("a part lies in a pack that is not named"));
            }
            frames.push((pack, read_frame(&mut reader)?));
        }
        let mut places = Vec::new();
        let mut last = 0i64;
        for _ in 0..reader.count()? {
            last = last
                .checked_add(reader.signed()?)
                .ok_or(Malformed::Number)?;
            let frame = u32::try_from(last).map_err(|_| Malformed::Number)?;
            let offset = u32::try_from(reader.number()?).map_err(|_| Malformed::Number)?;
            places.push(Place { frame, offset });
        }
        reader.end()?;
        Ok(Self {
            about: About { taken, name },
            summary: None,
            manifest,
            packs,
            frames,
            places,
        })
    }

    /// The place and the length of every chunk, by its digest.
    pub(crate) fn chunks(&self) -> HashMap<Digest, (Place, u64)> {
        let mut chunks = HashMap::with_capacity(self.places.len());
        let mut places = self.places.iter();
        for (digest, length) in self.manifest.entries.iter().flat_map(Entry::chunks) {
            if !chunks.contains_key(digest)
                && let Some(place) = places.next()
            {
                chunks.insert(*digest, (*place, length));
            }
        }
        chunks
    }

    fn check_places(&self) -> Result<()> {
        let mut lengths: HashMap<&Digest, u64> = HashMap::new();
        let mut places = self.places.iter();
        for (digest, length) in self.manifest.entries.iter().flat_map(Entry::chunks) {
            match lengths.get(digest) {
                Some(known) if *known == length => {}
                Some(_) => return Err(Problem::hostile("one content has two lengths")),
                None => {
                    let place = places
                        .next()
                        .ok_or_else(|| Problem::hostile("content without a place"))?;
                    let frame = self
                        .frames
                        .get(place.frame as usize)
                        .ok_or_else(|| Problem::hostile("content without a place"))?;
                    if u64::from(place.offset)
                        .checked_add(length)
                        .is_none_or(|end| end > u64::from(frame.1.raw))
                    {
                        return Err(Problem::hostile("content that reaches over its part's end"));
                    }
                    lengths.insert(digest, length);
                }
            }
        }
        if places.next().is_some() {
            Err(Problem::hostile("places without content"))
        } else {
            Ok(())
        }
    }
}

fn unpack(packed: &[u8]) -> Result<Vec<u8>, String> {
    let mut reader = Reader::new(packed);
    let length = reader.number().map_err(|error| error.to_string())?;
    let length = usize::try_from(length)
        .ok()
        .filter(|length| *length <= MAX_BODY_BYTES)
        .ok_or("it would unpack to too much")?;
    let mut prefix = Vec::new();
    put_number(&mut prefix, length as u64);
    // Memory grows with the bytes that really come, not with the announced length.
    let mut body = Vec::new();
    let stream = zstd::stream::read::Decoder::with_buffer(&packed[prefix.len()..])
        .map_err(|error| error.to_string())?;
    std::io::Read::read_to_end(
        &mut std::io::Read::take(stream, length as u64 + 1),
        &mut body,
    )
    .map_err(|error| error.to_string())?;
    if body.len() == length {
        Ok(body)
    } else {
        Err("it has a wrong length".to_owned())
    }
}

pub(crate) fn put_frame(out: &mut Vec<u8>, frame: &Frame) {
    put_number(out, frame.offset);
    put_number(out, u64::from(frame.stored));
    put_number(out, u64::from(frame.raw) << 1 | u64::from(frame.packed));
    out.extend_from_slice(&frame.digest.0);
}

pub(crate) fn read_frame(reader: &mut Reader<'_>) -> Result<Frame, Malformed> {
    let offset = reader.number()?;
    let small = |number: u64| {
        u32::try_from(number)
            .ok()
            .filter(|number| *number as usize <= MAX_FRAME_BYTES)
            .ok_or(Malformed::Other("a part is too large"))
    };
    let stored = small(reader.number()?)?;
    let raw = reader.number()?;
    Ok(Frame {
        offset,
        stored,
        raw: small(raw >> 1)?,
        packed: raw & 1 == 1,
        digest: reader.digest()?,
    })
}

/// Reads the root of a snapshot from a store.
pub fn read_root(store: &dyn BlobStore, id: &Digest) -> Result<Root> {
    read(store, &Blob::Root(*id))
}

/// Reads the root of a snapshot or a backup.
pub fn read(store: &dyn BlobStore, blob: &Blob) -> Result<Root> {
    let bytes = store
        .get(blob)?
        .ok_or_else(|| Problem::NoSnapshot(blob.digest()))?;
    Root::decode(&bytes, &blob.digest())
}
