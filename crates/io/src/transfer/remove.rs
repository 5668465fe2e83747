//! Removing an object by its exact name, or everything below a folder, and never more.

use super::StorePath;
use crate::data::{FolderMark, Key};
use towline_core::{Error, Result};

/// Everything that would be removed.
#[derive(Debug, Default)]
pub struct Removal {
    pub keys: Vec<Key>,
    pub bytes: u64,
    /// Marks of folders, which hold no bytes.
    pub marks: Vec<FolderMark>,
    /// Names that cannot be used and are not removed.
    pub unsupported: Vec<String>,
}

impl Removal {
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.marks.is_empty()
    }
}

/// Everything that `path` names: the object itself, and all below `path/`. An empty path is
/// refused.
pub async fn find(endpoint: &StorePath) -> Result<Removal> {
    if endpoint.path.is_empty() {
        return Err(Error::refused(format!(
            "this would remove everything in {}",
            endpoint.store.place()
        ))
        .hint("name what is to go"));
    }
    let mut removal = Removal::default();
    match endpoint.store.head(&endpoint.key()?).await? {
        Some(object) => {
            removal.bytes += object.size;
            removal.keys.push(object.key);
        }
        None => removal
            .marks
            .extend(endpoint.store.folder_mark(&endpoint.key()?).await?),
    }
    let prefix = endpoint.prefix();
    let mut next = None;
    loop {
        let page = endpoint.store.list(&prefix, true, next.as_deref()).await?;
        for object in page.objects {
            // Whatever a service lists, only objects below that folder are removed.
            if !object.key.as_str().starts_with(&prefix) {
                return Err(Error::bug(format!(
                    "{} lists {} below {prefix}",
                    endpoint.store.place(),
                    object.key
                )));
            }
            removal.bytes += object.size;
            removal.keys.push(object.key);
        }
        for mark in page.marks {
            if mark.folder.as_str() != endpoint.path && !mark.folder.as_str().starts_with(&prefix) {
                return Err(Error::bug(format!(
                    "{} lists {} below {prefix}",
                    endpoint.store.place(),
                    mark.folder
                )));
            }
            removal.marks.push(mark);
        }
        removal.unsupported.extend(
            page.unsupported
                .into_iter()
                .map(|unsupported| unsupported.name),
        );
        match page.next {
            Some(token) => next = Some(token),
            None => return Ok(removal),
        }
    }
}

/// Removes these and nothing else. Marks of folders come last, because only an empty folder can be
/// removed.
pub async fn remove(endpoint: &StorePath, keys: &[Key], marks: &[FolderMark]) -> Result<()> {
    for part in keys.chunks(256) {
        endpoint.store.delete(part).await?;
    }
    if marks.is_empty() {
        Ok(())
    } else {
        endpoint.store.delete_marks(marks).await
    }
}
