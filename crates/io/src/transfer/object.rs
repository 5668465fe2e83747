//! One object from the source to the target: in one call if it is small, else in blocks.

use super::pace::Pace;
use super::progress::Progress;
use super::{BLOCK_BYTES, StorePath, hash};
use crate::data::{Key, Marks, Object};
use std::path::PathBuf;
use std::sync::Arc;
use towline_core::{Error, ErrorKind, Result, Retry};

/// An object that arrives damaged is tried this often.
const MAX_TRIES: u32 = 3;

/// The two sides of a copy, and what all its objects share.
#[derive(Debug)]
pub(super) struct Carrier {
    pub(super) source: StorePath,
    pub(super) target: StorePath,
    pub(super) pace: Arc<Pace>,
    pub(super) progress: Arc<Progress>,
    pub(super) journals: Option<PathBuf>,
}

/// How an object was copied.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Carried {
    /// The service copied it, without the bytes passing here.
    pub(super) inside: bool,
    /// There was no hash to compare; only the length was checked.
    pub(super) by_length: bool,
    /// Bytes that an earlier copy, cut off, had already brought over.
    pub(super) resumed: u64,
}

/// Runs `act` on a thread that may be busy for long.
pub(super) async fn off_runtime<T: Send + 'static>(
    act: impl FnOnce() -> T + Send + 'static,
) -> Result<T> {
    tokio::task::spawn_blocking(act)
        .await
        .map_err(|error| Error::bug("a task broke").source_error(error))
}

pub(super) fn damaged(key: &Key) -> Error {
    Error::refused(format!(
        "{key}: what arrived is not what was stored (its hash differs)"
    ))
    .retry(Retry::Later)
    .hint("try again; if it stays so, the stored object is damaged")
}

impl Carrier {
    pub(super) async fn carry(self: &Arc<Self>, object: &Object, to: &Key) -> Result<Carried> {
        let (source, target) = (&self.source.store, &self.target.store);
        if !source.limits().near && !target.limits().near {
            let turn = self.pace.turn(0).await;
            let copied = target
                .copy_from(source.as_ref(), &object.key, to, object.size)
                .await?;
            turn.done(0, target.throttled());
            if copied {
                self.check_copy(object, to).await?;
                self.progress.advance(object.size);
                return Ok(Carried {
                    inside: true,
                    ..Carried::default()
                });
            }
        }
        let mut tries = 0;
        loop {
            tries += 1;
            match self.carry_through(object, to).await {
                // It arrived damaged or short, and the next try may do better.
                Err(error) if error.retry_advice() == Retry::Later && tries < MAX_TRIES => {}
                other => return other,
            }
        }
    }

    async fn carry_through(self: &Arc<Self>, object: &Object, to: &Key) -> Result<Carried> {
        if object.size <= BLOCK_BYTES {
            return self.carry_whole(object, to).await;
        }
        let may_forget = !self.target.store.limits().remembers;
        match self.carry_blocks(object, to, true).await {
            // The service has forgotten the upload that the journal names: begin anew.
            Err(error) if may_forget && error.kind() == ErrorKind::NotFound => {
                self.carry_blocks(object, to, false).await
            }
            other => other,
        }
    }

    /// An error unless a copy inside the service has the size and the hash of its source.
    async fn check_copy(&self, object: &Object, to: &Key) -> Result<()> {
        let copy = self.target.store.head(to).await?;
        let same = copy.is_some_and(|copy| {
            copy.size == object.size
                && (object.marks.blake3.is_none() || copy.marks.blake3 == object.marks.blake3)
        });
        if same { Ok(()) } else { Err(damaged(to)) }
    }

    async fn carry_whole(&self, object: &Object, to: &Key) -> Result<Carried> {
        let target = &self.target.store;
        let turn = self.pace.turn(object.size).await;
        let bytes = self
            .source
            .store
            .read(&object.key, 0..object.size, object.version.as_deref())
            .await?;
        let wants_md5 = object.marks.md5.is_some() && object.marks.blake3.is_none();
        let hash = move |bytes: &[u8]| (hash::blake3(bytes), wants_md5.then(|| hash::md5(bytes)));
        let (blake3, md5) = if bytes.len() > 64 << 10 {
            let bytes = bytes.clone();
            off_runtime(move || hash(&bytes)).await?
        } else {
            hash(&bytes)
        };
        let differs = match (object.marks.blake3, object.marks.md5.zip(md5)) {
            (Some(expected), _) => expected != blake3,
            (None, Some((expected, got))) => expected != got,
            (None, None) => false,
        };
        if differs {
            return Err(damaged(&object.key));
        }
        let marks = Marks {
            md5,
            blake3: Some(blake3),
            modified: object.modified(),
        };
        target.write(to, bytes, &marks, false).await?;
        turn.done(
            object.size,
            target.throttled() + self.source.store.throttled(),
        );
        self.progress.advance(object.size);
        Ok(Carried {
            by_length: self.is_unmarked(object),
            ..Carried::default()
        })
    }

    /// Whether a far source has no hash of its bytes.
    pub(super) fn is_unmarked(&self, object: &Object) -> bool {
        !self.source.store.limits().near
            && object.marks.blake3.is_none()
            && object.marks.md5.is_none()
    }
}
