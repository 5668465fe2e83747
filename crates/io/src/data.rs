//! The interface of a datastore: objects by key, read and written in blocks. A folder of this
//! machine is a datastore too, so upload, download and copy are the same operation.

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
    /// The error says why a text cannot be a key, for people.
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

/// A name with its control characters escaped, safe to show.
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

/// Hashes and times that a store keeps with an object.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Marks {
    /// The MD5 of the whole object, as the service keeps it.
    pub md5: Option<[u8; 16]>,
    /// The BLAKE3 of the whole object, as we wrote it.
    pub blake3: Option<[u8; 32]>,
    /// When its source was last modified: seconds and nanoseconds since 1970.
    pub modified: Option<(i64, u32)>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Object {
    pub key: Key,
    pub size: u64,
    /// Bytes on its disk, fewer than `size` for a file with holes; only a folder tells.
    pub disk_bytes: Option<u64>,
    /// When the service last changed it, in milliseconds since 1970.
    pub changed: Option<i64>,
    /// Identifies these bytes, so that a read can ask for exactly this version.
    pub version: Option<String>,
    pub marks: Marks,
    /// Whether `marks` is complete; the listings of some services lack them.
    pub marks_are_whole: bool,
}

impl Object {
    /// When its bytes were last modified, as far as is known.
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
    /// Whether leaving it out is a failure, or only worth a note.
    #[serde(rename = "grave")]
    pub is_failure: bool,
}

/// An entry without bytes that stands for a folder: a blob that blobfuse made, an empty object
/// whose name ends in `/`, or an empty folder of a disk.
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
    /// Names of folders one level below, in a listing of one level.
    pub folders: Vec<String>,
    #[serde(rename = "oddities")]
    pub unsupported: Vec<UnsupportedEntry>,
    /// Marks of folders at or below the prefix.
    #[serde(default)]
    pub marks: Vec<FolderMark>,
    pub next: Option<String>,
}

impl Page {
    /// Adds the folders of which there is only a mark to a listing of one level below `prefix`.
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
    /// The beginning of the [`Sums::value`] of its bytes, if the store knows it.
    pub digest: Option<[u8; 16]>,
    /// The name of the block, for [`Data::finish`].
    pub tag: String,
}

/// The hash of a block's bytes.
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

/// The size of an object and of its blocks. Only the last block may be smaller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shape {
    pub size: u64,
    pub block: u64,
    /// Space that it takes where holes stay holes, if that is less than its size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_bytes: Option<u64>,
}

impl Shape {
    /// Space that it takes in a folder.
    pub fn needed_bytes(&self) -> u64 {
        self.disk_bytes.unwrap_or(self.size)
    }
    pub fn blocks(&self) -> u32 {
        u32::try_from(self.size.div_ceil(self.block)).unwrap_or(u32::MAX)
    }
    pub fn range(&self, index: u32) -> Range<u64> {
        let start = u64::from(index) * self.block;
        start..(start + self.block).min(self.size)
    }
}

/// The limits and abilities of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreLimits {
    /// The most blocks of one object.
    pub blocks: u32,
    /// Bytes of a block: a power of two of at least 1 KiB. Blocks are larger for an object that
    /// would have too many.
    pub block: u64,
    /// Whether reading it costs no more than a local disk.
    pub near: bool,
    /// Whether marks must be given when an upload in blocks begins, not when it ends.
    pub marks_first: bool,
    /// Whether [`Data::blocks`] knows the blocks of an upload; otherwise a journal is needed.
    pub remembers: bool,
}

/// One datastore, below its configured path. All calls may be repeated. After an error of kind
/// `Unreachable` nothing is known about the result; the call was already tried several times.
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

    /// Objects whose key begins with `prefix` (empty, or ending in `/`), one page at a time; with
    /// `deep` all of them, else one level and its folders.
    async fn list(&self, prefix: &str, deep: bool, from: Option<&str>) -> Result<Page>;

    async fn head(&self, key: &Key) -> Result<Option<Object>>;

    /// Exactly `range` of the object, of `version` if it is given; fewer bytes are an error.
    async fn read(&self, key: &Key, range: Range<u64>, version: Option<&str>) -> Result<Bytes>;

    /// Writes the whole object in one call, checked by the service. With `create` an existing
    /// object is not replaced, and the answer is `false`.
    async fn write(&self, key: &Key, bytes: Bytes, marks: &Marks, create: bool) -> Result<bool>;

    /// Begins an upload in blocks, or continues the one that `id` names.
    async fn open(
        &self,
        key: &Key,
        shape: Shape,
        marks: &Marks,
        id: Option<&str>,
    ) -> Result<String>;

    /// The blocks that the store holds of that upload; `None` if it cannot know.
    async fn blocks(&self, key: &Key, id: &str) -> Result<Option<Vec<Block>>>;

    /// Sends one block, checked by the service. The same index again replaces it.
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

    /// Deletes objects. A missing one is not an error.
    async fn delete(&self, keys: &[Key]) -> Result<()>;

    /// The mark of a folder that has the folder's own name. Other marks are in listings.
    async fn folder_mark(&self, _: &Key) -> Result<Option<FolderMark>> {
        Ok(None)
    }

    /// Deletes the marks of folders. A missing one is not an error.
    async fn delete_marks(&self, marks: &[FolderMark]) -> Result<()>;

    /// Copies from another store without the bytes passing through this machine; `false` if the two
    /// stores cannot.
    async fn copy_from(&self, source: &dyn Data, from: &Key, to: &Key, size: u64) -> Result<bool>;

    /// An address at which anybody can read that one object, valid for that long.
    async fn url(&self, key: &Key, valid: Duration) -> Result<String>;

    /// The address with the store's own credential in it, and the rights of that credential in
    /// words; `None` if the store has no such credential.
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
            let shape = Shape {
                size,
                block,
                disk_bytes: None,
            };
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
