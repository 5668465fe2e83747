//! Removing: an object by its exact name, or everything below a folder, never more.

use super::Side;
use crate::data::Key;
use towline_core::{Error, Result};

/// What would go.
#[derive(Debug, Default)]
pub struct Doomed {
    pub keys: Vec<Key>,
    pub bytes: u64,
    /// Names that cannot be handled, and stay.
    pub odd: Vec<String>,
}

/// Everything that `path` names: the object itself, and all below `path/`. An empty path is refused.
pub async fn find(side: &Side) -> Result<Doomed> {
    if side.path.is_empty() {
        return Err(Error::refused(format!("this would remove everything in {}", side.store.place())).hint("name what is to go"));
    }
    let mut doomed = Doomed::default();
    if let Some(object) = side.store.head(&side.key()?).await? {
        doomed.bytes += object.size;
        doomed.keys.push(object.key);
    }
    let prefix = side.prefix();
    let mut next = None;
    loop {
        let page = side.store.list(&prefix, true, next.as_deref()).await?;
        for object in page.objects {
            // Whatever a service lists: what goes is below that folder.
            if !object.key.as_str().starts_with(&prefix) {
                return Err(Error::bug(format!("{} lists {} below {prefix}", side.store.place(), object.key)));
            }
            doomed.bytes += object.size;
            doomed.keys.push(object.key);
        }
        doomed.odd.extend(page.oddities.into_iter().map(|odd| odd.name));
        match page.next {
            Some(token) => next = Some(token),
            None => return Ok(doomed),
        }
    }
}

/// Removes these and nothing else; `done` is told how many are gone.
pub async fn remove(side: &Side, keys: &[Key], mut done: impl FnMut(usize)) -> Result<()> {
    for part in keys.chunks(256) {
        side.store.delete(part).await?;
        done(part.len());
    }
    Ok(())
}
