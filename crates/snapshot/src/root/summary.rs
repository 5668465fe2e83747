//! The summary at the beginning of a backup's root.

use crate::codec::{Malformed, Reader, put_bytes, put_number, put_signed};
use crate::problem::{Problem, Result};

/// The first bytes of a backup's root. A summary follows, which can be read without the rest.
pub(super) const BACKUP_MAGIC: &[u8] = b"towline backup 1\n";
/// No summary is longer. All of it lies within this many bytes at the beginning of the object.
pub(crate) const MAX_SUMMARY_BYTES: usize = 8 << 10;

/// The facts of a backup that a list shows without reading the whole root.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Summary {
    /// Milliseconds since 1970, by the clock of the machine that made the backup.
    pub taken: i64,
    /// The name of the workspace.
    pub name: String,
    /// The host and the folder at that time.
    pub host: String,
    pub folder: String,
    pub files: u64,
    pub bytes: u64,
    /// Bytes that were new to the store.
    pub stored: u64,
    /// Files that could not be read, or kept changing.
    pub doubtful: u64,
}

impl Summary {
    pub(super) fn encode(&self) -> Result<Vec<u8>> {
        let mut body = Vec::new();
        put_signed(&mut body, self.taken);
        for text in [&self.name, &self.host, &self.folder] {
            put_bytes(&mut body, text.as_bytes());
        }
        for number in [self.files, self.bytes, self.stored, self.doubtful] {
            put_number(&mut body, number);
        }
        if body.len() > MAX_SUMMARY_BYTES {
            return Err(Problem::hostile("its names are too long"));
        }
        let mut out = Vec::new();
        put_bytes(&mut out, &body);
        Ok(out)
    }

    /// The summary at the beginning of a backup, and the rest; `None` if this is no backup.
    pub(super) fn split(bytes: &[u8]) -> Result<Option<(Self, &[u8])>, Malformed> {
        let Some(rest) = bytes.strip_prefix(BACKUP_MAGIC) else {
            return Ok(None);
        };
        let mut reader = Reader::new(rest);
        let body = reader.bytes()?;
        let mut prefix = Vec::new();
        put_number(&mut prefix, body.len() as u64);
        let packed = &rest[prefix.len() + body.len()..];
        let mut reader = Reader::new(body);
        let taken = reader.signed()?;
        let mut text = || {
            reader
                .bytes()
                .map(|text| String::from_utf8_lossy(text).into_owned())
        };
        let (name, host, folder) = (text()?, text()?, text()?);
        let summary = Self {
            taken,
            name,
            host,
            folder,
            files: reader.number()?,
            bytes: reader.number()?,
            stored: reader.number()?,
            doubtful: reader.number()?,
        };
        reader.end()?;
        Ok(Some((summary, packed)))
    }

    /// Reads the first [`MAX_SUMMARY_BYTES`] bytes of a backup. The seal is not checked, so this is
    /// only for display.
    pub(crate) fn peek(bytes: &[u8]) -> Option<Self> {
        Self::split(bytes)
            .ok()
            .flatten()
            .map(|(summary, _)| summary)
    }
}
