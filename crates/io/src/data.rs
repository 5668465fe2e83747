//! The seam to a datastore: objects by key, read and written in blocks.

use async_trait::async_trait;
use bytes::Bytes;
use std::fmt;
use std::ops::Range;
use std::time::Duration;
use towline_core::Result;

/// The name of an object below its datastore: parts joined by `/`, none empty, `.` or `..`, no
/// control characters.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(String);

impl Key {
    /// Why a text cannot be a key, for people.
    pub fn new(text: impl Into<String>) -> Result<Self, String> {
        let text = text.into();
        for part in text.split('/') {
            if part.is_empty() || part == "." || part == ".." {
                return Err(format!("`{text}` has an empty, `.` or `..` part"));
            }
            if part.chars().any(char::is_control) {
                return Err(format!("{text:?} holds a control character"));
            }
        }
        Ok(Self(text))
    }
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What stands beside an object's bytes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Marks {
    /// As the service keeps it: of the whole object.
    pub md5: Option<[u8; 16]>,
    /// As we wrote it: of the whole object.
    pub blake3: Option<[u8; 32]>,
    /// When its source was last modified: seconds and nanoseconds since 1970.
    pub modified: Option<(i64, u32)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
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

/// A part of a listing, in the order of keys.
#[derive(Debug, Clone, Default)]
pub struct Page {
    pub objects: Vec<Object>,
    /// Names of folders one level below, where the listing was not asked to go deeper.
    pub folders: Vec<String>,
    pub next: Option<String>,
}

/// A block that the service holds for an upload that is not finished.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    pub index: u32,
    pub size: u64,
    /// What [`Data::finish`] must be given.
    pub tag: String,
}

/// One datastore, below its configured path. All calls may be repeated. An error of kind
/// `Unreachable` means nothing is known; `retry() == Later` that trying again can help.
#[async_trait]
pub trait Data: Send + Sync + fmt::Debug {
    /// For messages: `research (azure_blob acct/data)`. Never a secret.
    fn place(&self) -> String;

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
    async fn open(&self, key: &Key, marks: &Marks, id: Option<&str>) -> Result<String>;

    /// The blocks the service holds of it, or `None` where it cannot tell.
    async fn blocks(&self, key: &Key, id: &str) -> Result<Option<Vec<Block>>>;

    /// One block, checked by the service. The same index again replaces it.
    async fn put(&self, key: &Key, id: &str, index: u32, bytes: Bytes, digest: &[u8; 32]) -> Result<Block>;

    /// Makes the object from its blocks, in order; all or nothing.
    async fn finish(&self, key: &Key, id: &str, blocks: &[Block], marks: &Marks) -> Result<()>;

    /// Forgets an upload that is not finished.
    async fn abandon(&self, key: &Key, id: &str) -> Result<()>;

    /// Deletes; what is not there is fine.
    async fn delete(&self, keys: &[Key]) -> Result<()>;

    /// Copies from another store without the bytes passing here; `false` where the two cannot.
    async fn copy_from(&self, source: &dyn Data, from: &Key, to: &Key, size: u64) -> Result<bool>;

    /// An address anybody can read the object at, for that long.
    async fn url(&self, key: &Key, valid: Duration) -> Result<String>;
}
