//! Chunks gathered into frames, frames into packs. A frame is what is compressed, read and checked
//! as one; small files share a frame, so that they compress well and cost no request of their own.

use crate::digest::Digest;
use crate::problem::{Problem, Result};

/// A frame is closed once it holds this much.
const FRAME: usize = 2 << 20;
/// No frame unpacks to more: what a reader must be ready for, and a bomb may not exceed.
pub(crate) const LARGEST_FRAME: usize = 8 << 20;
/// A pack is closed once it holds this much.
const PACK: usize = 8 << 20;

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
    /// Whether it is compressed; what does not shrink is kept as it is.
    pub(crate) packed: bool,
    /// Of the stored bytes: no bit of them is unwatched.
    pub(crate) digest: Digest,
}

/// A whole pack, ready to be kept.
#[derive(Debug)]
pub(crate) struct Pack {
    pub(crate) digest: Digest,
    pub(crate) bytes: Vec<u8>,
    pub(crate) frames: Vec<(Frame, Vec<Part>)>,
}

impl Pack {
    /// Gives the same content another name, by bytes behind its frames.
    pub(crate) fn rename(&mut self, salt: i64) {
        self.bytes.extend_from_slice(&salt.to_le_bytes());
        self.digest = Digest::of(&self.bytes);
    }
}

pub(crate) struct Packer {
    raw: Vec<u8>,
    parts: Vec<Part>,
    bytes: Vec<u8>,
    frames: Vec<(Frame, Vec<Part>)>,
    squeezer: zstd::bulk::Compressor<'static>,
}

impl Packer {
    pub(crate) fn new(level: i32) -> Result<Self> {
        let squeezer = zstd::bulk::Compressor::new(level).map_err(|error| Problem::damaged("the compressor", error.to_string()))?;
        Ok(Self { raw: Vec::new(), parts: Vec::new(), bytes: Vec::new(), frames: Vec::new(), squeezer })
    }

    /// Takes a chunk in; gives a pack back when one is full.
    pub(crate) fn add(&mut self, digest: Digest, chunk: &[u8]) -> Result<Option<Pack>> {
        if !self.raw.is_empty() && self.raw.len() + chunk.len() > FRAME {
            self.close_frame()?;
        }
        self.parts.push(Part { digest, offset: small(self.raw.len()), length: small(chunk.len()) });
        self.raw.extend_from_slice(chunk);
        if self.raw.len() >= FRAME {
            self.close_frame()?;
        }
        Ok(if self.bytes.len() >= PACK { self.take_pack() } else { None })
    }

    /// What is left.
    pub(crate) fn finish(&mut self) -> Result<Option<Pack>> {
        self.close_frame()?;
        Ok(self.take_pack())
    }

    fn close_frame(&mut self) -> Result<()> {
        if self.raw.is_empty() {
            return Ok(());
        }
        let offset = self.bytes.len();
        let room = zstd::zstd_safe::compress_bound(self.raw.len());
        self.bytes.resize(offset + room, 0);
        let squeezed = self.squeezer.compress_to_buffer(&self.raw, &mut self.bytes[offset..]);
        let squeezed = squeezed.map_err(|error| Problem::damaged("the compressor", error.to_string()))?;
        let packed = squeezed < self.raw.len();
        self.bytes.truncate(offset + squeezed);
        if !packed {
            self.bytes.truncate(offset);
            self.bytes.extend_from_slice(&self.raw);
        }
        let stored = &self.bytes[offset..];
        let frame = Frame { offset: offset as u64, stored: small(stored.len()), raw: small(self.raw.len()), packed, digest: Digest::of(stored) };
        self.frames.push((frame, std::mem::take(&mut self.parts)));
        self.raw.clear();
        Ok(())
    }

    fn take_pack(&mut self) -> Option<Pack> {
        if self.bytes.is_empty() {
            return None;
        }
        let bytes = std::mem::take(&mut self.bytes);
        Some(Pack { digest: Digest::of(&bytes), bytes, frames: std::mem::take(&mut self.frames) })
    }
}

fn small(number: usize) -> u32 {
    u32::try_from(number).expect("frames and packs are far below 4 GiB")
}

/// The raw bytes of a frame, from its stored ones. Checks everything that can be checked of it.
pub(crate) fn unpack(frame: &Frame, stored: &[u8], pack: &Digest) -> Result<Vec<u8>> {
    let damaged = |how: &str| Problem::damaged(format!("pack {}", pack.short()), format!("{how} at byte {}", frame.offset));
    if Digest::of(stored) != frame.digest {
        return Err(damaged("other bytes than were stored"));
    }
    let raw = frame.raw as usize;
    if raw > LARGEST_FRAME {
        return Err(Problem::hostile("a part of it would unpack to too much"));
    }
    if !frame.packed {
        return if stored.len() == raw { Ok(stored.to_vec()) } else { Err(damaged("a wrong length")) };
    }
    match zstd::bulk::decompress(stored, raw) {
        Ok(bytes) if bytes.len() == raw => Ok(bytes),
        _ => Err(damaged("bytes that do not unpack")),
    }
}
