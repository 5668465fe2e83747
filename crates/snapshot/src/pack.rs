//! Chunks are gathered into frames, and frames into packs. A frame is compressed, read and checked
//! as one. Small files share a frame, so that they compress well and need no request of their own.

use crate::digest::Digest;
use crate::problem::{Problem, Result};

/// How chunks are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compression {
    /// The level of zstd.
    pub level: i32,
    /// A frame is closed once it holds this many bytes. Larger frames compress better; smaller ones
    /// are quicker to read a part of.
    pub frame: usize,
}

impl Compression {
    /// For code that is laid out soon and often.
    pub const QUICK: Self = Self {
        level: 1,
        frame: 2 << 20,
    };
    /// For backups. A mixed tree is no larger than one compressed archive; a tree of text is a
    /// little larger.
    pub const SMALL: Self = Self {
        level: 3,
        frame: 4 << 20,
    };
}

/// No frame unpacks to more. A reader must be ready for this much, and a compression bomb may not
/// exceed it.
pub(crate) const MAX_FRAME_BYTES: usize = 8 << 20;
/// A pack is closed once it holds this much.
const PACK_BYTES: usize = 8 << 20;

/// One chunk inside a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) digest: Digest,
    pub(crate) offset: u32,
    pub(crate) length: u32,
}

/// One frame inside its pack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) offset: u64,
    pub(crate) stored: u32,
    pub(crate) raw: u32,
    /// Whether it is compressed. Bytes that do not shrink are stored as they are.
    pub(crate) packed: bool,
    /// The digest of the stored bytes.
    pub(crate) digest: Digest,
}

/// A whole pack, ready to be stored.
#[derive(Debug)]
pub(crate) struct Pack {
    pub(crate) digest: Digest,
    pub(crate) bytes: Vec<u8>,
    pub(crate) frames: Vec<(Frame, Vec<Part>)>,
}

impl Pack {
    /// Gives the pack another name by appending bytes after its frames.
    pub(crate) fn rename(&mut self, salt: i64) {
        self.bytes.extend_from_slice(&salt.to_le_bytes());
        self.digest = Digest::of(&self.bytes);
    }
}

/// The compression level of chunks that are dense already.
const DENSE_LEVEL: i32 = 1;
/// Bytes of a chunk that decide whether it is dense.
const SAMPLE_BYTES: usize = 4096;

/// Whether a chunk looks like pictures, archives or noise: in a sample all bytes are about as
/// frequent. Dense chunks get their own frames, so that text lies beside text. A wrong guess costs
/// only room.
fn is_dense(chunk: &[u8]) -> bool {
    let mut counts = [0u32; 256];
    let step = chunk.len().div_ceil(SAMPLE_BYTES).max(1);
    // The sample is of short runs, spread over the whole chunk.
    let mut taken: u32 = 0;
    for run in chunk.chunks(64 * step) {
        for byte in run.iter().take(64) {
            counts[usize::from(*byte)] += 1;
            taken += 1;
        }
    }
    if taken < 1024 {
        return false;
    }
    // In noise two bytes are equal once in 256 times; in text many times as often.
    let pairs: u64 = counts
        .iter()
        .map(|count| u64::from(*count) * u64::from(count.saturating_sub(1)))
        .sum();
    pairs * 256 < u64::from(taken) * u64::from(taken - 1) * 5 / 4
}

/// The chunks of the next frame.
struct OpenFrame {
    raw: Vec<u8>,
    parts: Vec<Part>,
    compressor: zstd::bulk::Compressor<'static>,
}

impl OpenFrame {
    fn new(level: i32) -> Result<Self> {
        let compressor = zstd::bulk::Compressor::new(level)
            .map_err(|error| Problem::damaged("the compressor", error.to_string()))?;
        Ok(Self {
            raw: Vec::new(),
            parts: Vec::new(),
            compressor,
        })
    }
}

pub(crate) struct Packer {
    plain: OpenFrame,
    dense: OpenFrame,
    bytes: Vec<u8>,
    frames: Vec<(Frame, Vec<Part>)>,
    frame: usize,
}

impl Packer {
    pub(crate) fn new(compression: Compression) -> Result<Self> {
        let (plain, dense) = (
            OpenFrame::new(compression.level)?,
            OpenFrame::new(compression.level.min(DENSE_LEVEL))?,
        );
        Ok(Self {
            plain,
            dense,
            bytes: Vec::new(),
            frames: Vec::new(),
            frame: compression.frame,
        })
    }

    /// Adds a chunk; returns a pack when one is full.
    pub(crate) fn add(&mut self, digest: Digest, chunk: &[u8]) -> Result<Option<Pack>> {
        let Self {
            plain,
            dense,
            bytes,
            frames,
            frame,
        } = self;
        let current = if is_dense(chunk) { dense } else { plain };
        if !current.raw.is_empty() && current.raw.len() + chunk.len() > *frame {
            close(current, bytes, frames)?;
        }
        current.parts.push(Part {
            digest,
            offset: small(current.raw.len()),
            length: small(chunk.len()),
        });
        current.raw.extend_from_slice(chunk);
        if current.raw.len() >= *frame {
            close(current, bytes, frames)?;
        }
        Ok(if self.bytes.len() >= PACK_BYTES {
            self.take_pack()
        } else {
            None
        })
    }

    /// The last pack.
    pub(crate) fn finish(&mut self) -> Result<Option<Pack>> {
        close(&mut self.plain, &mut self.bytes, &mut self.frames)?;
        close(&mut self.dense, &mut self.bytes, &mut self.frames)?;
        Ok(self.take_pack())
    }

    fn take_pack(&mut self) -> Option<Pack> {
        if self.bytes.is_empty() {
            return None;
        }
        let bytes = std::mem::take(&mut self.bytes);
        Some(Pack {
            digest: Digest::of(&bytes),
            bytes,
            frames: std::mem::take(&mut self.frames),
        })
    }
}

/// Appends a frame to a pack.
fn close(
    current: &mut OpenFrame,
    bytes: &mut Vec<u8>,
    frames: &mut Vec<(Frame, Vec<Part>)>,
) -> Result<()> {
    if current.raw.is_empty() {
        return Ok(());
    }
    let offset = bytes.len();
    let room = zstd::zstd_safe::compress_bound(current.raw.len());
    bytes.resize(offset + room, 0);
    let compressed = current
        .compressor
        .compress_to_buffer(&current.raw, &mut bytes[offset..]);
    let compressed =
        compressed.map_err(|error| Problem::damaged("the compressor", error.to_string()))?;
    let packed = compressed < current.raw.len();
    bytes.truncate(offset + compressed);
    if !packed {
        bytes.truncate(offset);
        bytes.extend_from_slice(&current.raw);
    }
    let stored = &bytes[offset..];
    let frame = Frame {
        offset: offset as u64,
        stored: small(stored.len()),
        raw: small(current.raw.len()),
        packed,
        digest: Digest::of(stored),
    };
    frames.push((frame, std::mem::take(&mut current.parts)));
    current.raw.clear();
    Ok(())
}

fn small(number: usize) -> u32 {
    u32::try_from(number).expect("frames and packs are far below 4 GiB")
}

/// The raw bytes of a frame, from its stored bytes. Digest and lengths are checked.
pub(crate) fn unpack(frame: &Frame, stored: &[u8], pack: &Digest) -> Result<Vec<u8>> {
    let damaged = |how: &str| {
        Problem::damaged(
            format!("pack {}", pack.short()),
            format!("{how} at byte {}", frame.offset),
        )
    };
    if Digest::of(stored) != frame.digest {
        return Err(damaged("other bytes than were stored"));
    }
    let raw = frame.raw as usize;
    if raw > MAX_FRAME_BYTES {
        return Err(Problem::hostile("a part of it would unpack to too much"));
    }
    if !frame.packed {
        return if stored.len() == raw {
            Ok(stored.to_vec())
        } else {
            Err(damaged("a wrong length"))
        };
    }
    match zstd::bulk::decompress(stored, raw) {
        Ok(bytes) if bytes.len() == raw => Ok(bytes),
        _ => Err(damaged("bytes that do not unpack")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(length: usize) -> Vec<u8> {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let next = |_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.to_le_bytes()[3]
        };
        (0..length).map(next).collect()
    }

    #[test]
    fn noise_is_dense_and_text_numbers_and_short_things_are_not() {
        for length in [2000, 5000, 70_000, 3_000_000] {
            assert!(is_dense(&noise(length)), "{length}");
            assert!(
                !is_dense(
                    "def f(x):\n    return x + 1\n"
                        .repeat(length / 27 + 1)
                        .as_bytes()
                ),
                "{length}"
            );
            assert!(!is_dense(&vec![0; length]), "{length}");
        }
        let weights: Vec<u8> = (0..50_000_u16)
            .flat_map(|number| (f32::from(number).sin() * 0.02).to_le_bytes())
            .collect();
        assert!(!is_dense(&weights));
        assert!(!is_dense(b"") && !is_dense(&noise(500)));
    }

    #[test]
    fn what_is_dense_and_what_is_not_come_back_from_one_pack() {
        let mut packer = Packer::new(Compression::SMALL).expect("made");
        let chunks: Vec<Vec<u8>> = (1..6)
            .map(|number| {
                if number % 2 == 0 {
                    noise(number * 3000)
                } else {
                    vec![b'a'; number * 3000]
                }
            })
            .collect();
        for chunk in &chunks {
            assert!(
                packer
                    .add(Digest::of(chunk), chunk)
                    .expect("added")
                    .is_none()
            );
        }
        let pack = packer.finish().expect("finished").expect("a pack");
        assert_eq!(pack.frames.len(), 2);
        for (frame, parts) in &pack.frames {
            let begin = usize::try_from(frame.offset).expect("small");
            let raw = unpack(
                frame,
                &pack.bytes[begin..begin + frame.stored as usize],
                &pack.digest,
            )
            .expect("unpacks");
            for part in parts {
                let bytes = &raw[part.offset as usize..(part.offset + part.length) as usize];
                assert_eq!(Digest::of(bytes), part.digest);
                assert!(chunks.iter().any(|chunk| chunk == bytes));
            }
        }
    }
}
