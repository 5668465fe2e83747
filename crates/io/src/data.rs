//! The seam to a datastore: objects by key, read and written in blocks. A folder of this machine
//! is one too, so that up, down and across are the same act.

use async_trait::async_trait;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::any::Any;
use std::fmt;
use std::ops::Range;
use std::time::Duration;
use towline_core::Result;

/// The name of an object below its datastore: parts joined by `/`, none empty, `.` or `..`, no
/// control characters.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Key(String);

impl Key {
    /// Why a text cannot be a key, for people.
    pub fn new(text: impl Into<String>) -> Result<Self, String> {
        let text = text.into();
        for part in text.split('/') {
            if part.is_empty() || part == "." || part == ".." {
                return Err("it has an empty, `.` or `..` part".to_owned());
            }
            if part.chars().any(char::is_control) {
                return Err("it holds a control character".to_owned());
            }
        }
        Ok(Self(text))
    }
    pub fn as_str(&self) -> &str {
        &self.0
    }
    /// The last part.
    pub fn name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or(&self.0)
    }
}

impl TryFrom<String> for Key {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        Self::new(text)
    }
}

impl From<Key> for String {
    fn from(key: Key) -> Self {
        key.0
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A hostile name, safe to show.
pub fn shown(name: &str) -> String {
    name.chars()
        .flat_map(|c| {
            if c.is_control() {
                c.escape_default().collect::<Vec<_>>()
            } else {
                vec![c]
            }
        })
        .collect()
}

/// What stands beside an object's bytes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Marks {
    /// As the service keeps it: of the whole object.
    pub md5: Option<[u8; 16]>,
    /// As we wrote it: of the whole object.
    pub blake3: Option<[u8; 32]>,
    /// When its source was last modified: seconds and nanoseconds since 1970.
    pub modified: Option<(i64, u32)>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Object {
    pub key: Key,
    pub size: u64,
    /// When the service last changed it, in milliseconds since 1970.
    pub changed: Option<i64>,
    /// Names these bytes: a read can be tied to it.
    pub version: Option<String>,
    pub marks: Marks,
    /// Whether `marks` is all there is; some services tell it only when asked for the one object.
    pub marks_are_whole: bool,
}

impl Object {
    /// When its bytes were last modified, as well as is known.
    pub fn modified(&self) -> Option<(i64, u32)> {
        let changed = || {
            self.changed.map(|millis| {
                (
                    millis.div_euclid(1000),
                    u32::try_from(millis.rem_euclid(1000) * 1_000_000).unwrap_or(0),
                )
            })
        };
        self.marks.modified.or_else(changed)
    }
}

/// Something in a listing that cannot be an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnsupportedEntry {
    /// Safe to show.
    pub name: String,
    pub why: String,
    /// Whether leaving it out is a failure, and not only worth a word.
    #[serde(rename = "grave")]
    pub is_failure: bool,
}

/// A name in a store that holds no bytes and says "here is a folder": a blob that a mount by
/// blobfuse left, an empty object whose name ends in `/`, or a folder of a disk with nothing in it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FolderMark {
    /// Without a `/` at the end.
    pub folder: Key,
    /// Whether the name in the store ends in `/`.
    pub has_slash: bool,
}

/// A part of a listing, in the order of keys.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Page {
    pub objects: Vec<Object>,
    /// Names of folders one level below, where the listing was not asked to go deeper.
    pub folders: Vec<String>,
    #[serde(rename = "oddities")]
    pub unsupported: Vec<UnsupportedEntry>,
    /// Folders that have a name of their own in the store, at or below what was asked for.
    #[serde(default)]
    pub marks: Vec<FolderMark>,
    pub next: Option<String>,
}

impl Page {
    /// Of a listing of one level below `prefix`: folders that only a mark tells of are folders too.
    pub(crate) fn name_marked_folders(&mut self, prefix: &str) {
        for mark in &self.marks {
            let name = mark
                .folder
                .as_str()
                .strip_prefix(prefix)
                .filter(|name| !name.contains('/'));
            if let Some(name) = name.filter(|name| !self.folders.iter().any(|known| known == name))
            {
                self.folders.push(name.to_owned());
            }
        }
    }
}

/// A block that the store holds for an upload that is not finished.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Block {
    pub index: u32,
    pub size: u64,
    /// The beginning of [`Sums::value`] of what it holds, where the store can tell.
    pub digest: Option<[u8; 16]>,
    /// What [`Data::finish`] must be given.
    pub tag: String,
}

/// What is known of a block's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sums {
    /// See [`crate::transfer::hash::block_value`].
    pub value: [u8; 32],
}

impl Sums {
    pub fn digest(&self) -> [u8; 16] {
        let mut digest = [0; 16];
        digest.copy_from_slice(&self.value[..16]);
        digest
    }
}

/// The shape of an upload in blocks: every block has this size but the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shape {
    pub size: u64,
    pub block: u64,
}

impl Shape {
    pub fn blocks(&self) -> u32 {
        u32::try_from(self.size.div_ceil(self.block)).unwrap_or(u32::MAX)
    }
    pub fn range(&self, index: u32) -> Range<u64> {
        let start = u64::from(index) * self.block;
        start..(start + self.block).min(self.size)
    }
}

/// What a store asks of those who use it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreLimits {
    /// The most blocks of one object.
    pub blocks: u32,
    /// Bytes of a block: a power of two of at least 1 KiB. It grows for an object of too many.
    pub block: u64,
    /// Whether reading it costs no more than a local disk.
    pub near: bool,
    /// Whether marks count when an upload in blocks begins, not when it ends.
    pub marks_first: bool,
    /// Whether [`Data::blocks`] can tell; else a journal must.
    pub remembers: bool,
}

/// One datastore, below its configured path. All calls may be repeated. An error of kind
/// `Unreachable` means nothing is known: it was tried as often as is sensible.
#[async_trait]
pub trait Data: Send + Sync + fmt::Debug {
    /// For messages: `research (azure_blob acct/data)`. Never a secret.
    fn place(&self) -> String;

    fn limits(&self) -> StoreLimits;

    /// How often the service has asked us to slow down.
    fn throttled(&self) -> u64 {
        0
    }

    /// For [`Data::copy_from`].
    fn as_any(&self) -> &dyn Any;

    /// Objects whose key begins with `prefix` (empty, or ending in `/`), a page at a time; with
    /// `deep` all of them, else one level and the folders of it.
    async fn list(&self, prefix: &str, deep: bool, from: Option<&str>) -> Result<Page>;

    async fn head(&self, key: &Key) -> Result<Option<Object>>;

    /// Exactly `range` of the object, of that version where one is named; less is an error.
    async fn read(&self, key: &Key, range: Range<u64>, version: Option<&str>) -> Result<Bytes>;

    /// The whole object in one call, checked by the service; `create` refuses to replace one
    /// and answers `false` when there is one.
    async fn write(&self, key: &Key, bytes: Bytes, marks: &Marks, create: bool) -> Result<bool>;

    /// Begins an upload in blocks, or goes on with the one that `id` names.
    async fn open(
        &self,
        key: &Key,
        shape: Shape,
        marks: &Marks,
        id: Option<&str>,
    ) -> Result<String>;

    /// The blocks it holds of that upload, or `None` where it cannot tell.
    async fn blocks(&self, key: &Key, id: &str) -> Result<Option<Vec<Block>>>;

    /// One block, checked by the service. The same index again replaces it.
    async fn put(
        &self,
        key: &Key,
        id: &str,
        index: u32,
        bytes: Bytes,
        sums: &Sums,
    ) -> Result<Block>;

    /// Makes the object from its blocks, in order; all or nothing. A near store also checks
    /// `marks.md5` where there is no `marks.blake3`.
    async fn finish(&self, key: &Key, id: &str, blocks: &[Block], marks: &Marks) -> Result<()>;

    /// Forgets an upload that is not finished.
    async fn abandon(&self, key: &Key, id: &str) -> Result<()>;

    /// Deletes; what is not there is fine.
    async fn delete(&self, keys: &[Key]) -> Result<()>;

    /// The mark of a folder that lies beside it, under its own name; the others are in listings.
    async fn folder_mark(&self, _: &Key) -> Result<Option<FolderMark>> {
        Ok(None)
    }

    /// Deletes the marks of folders; what is not there is fine.
    async fn delete_marks(&self, marks: &[FolderMark]) -> Result<()>;

    /// Copies from another store without the bytes passing here; `false` where the two cannot.
    async fn copy_from(&self, source: &dyn Data, from: &Key, to: &Key, size: u64) -> Result<bool>;

    /// An address anybody can read that one object at, for that long.
    async fn url(&self, key: &Key, valid: Duration) -> Result<String>;

    /// The address with the store's own credential in it, and what else that credential allows, in
    /// words; none where the store has no such credential.
    fn url_with_credential(&self, _: &Key) -> Option<(String, String)> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_stays_below_its_store() {
        for good in ["a", "a/b.txt", "a b/%2e%2e/c", "ü/日本", "...", "a/..b"] {
            assert!(Key::new(good).is_ok(), "{good}");
        }
        for bad in [
            "", "/a", "a/", "a//b", "..", "a/../b", "./a", "a/.", "a\nb", "a/\u{7f}", "a\0",
        ] {
            assert!(Key::new(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_shape_covers_every_byte_once() {
        for (size, block, count) in [(10, 4, 3), (8, 4, 2), (1, 4, 1), (9, 4, 3)] {
            let shape = Shape { size, block };
            assert_eq!(shape.blocks(), count);
            let mut at = 0;
            for index in 0..count {
                assert_eq!(shape.range(index).start, at);
                at = shape.range(index).end;
            }
            assert_eq!(at, size);
        }
    }
}
