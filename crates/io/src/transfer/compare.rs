//! Whether an object is already at the target.

use super::{BLOCK_BYTES, hash};
use crate::data::{Data, Object, Shape};
use md5::{Digest, Md5};
use std::sync::Arc;
use towline_core::Result;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    EqualByTime,
    EqualByHash,
    Different,
    /// The marks do not decide it; contents must be compared.
    Unknown,
}

/// Compares sizes, times and stored hashes, without reading either object.
pub fn by_marks(source: &Object, target: &Object, checksum: bool) -> Verdict {
    if source.size != target.size {
        return Verdict::Different;
    }
    let by_hash = match (
        source.marks.blake3.zip(target.marks.blake3),
        source.marks.md5.zip(target.marks.md5),
    ) {
        (Some((one, other)), _) => Some(one == other),
        (None, Some((one, other))) => Some(one == other),
        (None, None) => None,
    };
    let same_time = source.modified().is_some() && source.modified() == target.marks.modified;
    match (same_time && !checksum, by_hash) {
        (true, _) => Verdict::EqualByTime,
        (false, Some(true)) => Verdict::EqualByHash,
        (false, Some(false)) => Verdict::Different,
        (false, None) => Verdict::Unknown,
    }
}

/// Compares two objects. The near one is read if the far one has a hash; a far one is never read,
/// because that would cost as much as sending it.
pub async fn verdict(
    source: &Arc<dyn Data>,
    target: &Arc<dyn Data>,
    one: &Object,
    other: &Object,
    checksum: bool,
) -> Result<Verdict> {
    let verdict = by_marks(one, other, checksum);
    if verdict != Verdict::Unknown {
        return Ok(verdict);
    }
    let one = whole(source, one).await?;
    let other = whole(target, other).await?;
    let verdict = by_marks(&one, &other, checksum);
    if verdict != Verdict::Unknown {
        return Ok(verdict);
    }
    let equal = match (source.limits().near, target.limits().near) {
        (true, true) if checksum => {
            Some(blake3_of(source, &one).await? == blake3_of(target, &other).await?)
        }
        (true, false) => matches(source, &one, &other).await?,
        (false, true) => matches(target, &other, &one).await?,
        _ => None,
    };
    Ok(if equal == Some(true) {
        Verdict::EqualByHash
    } else {
        Verdict::Different
    })
}

/// The object with all its marks.
async fn whole(store: &Arc<dyn Data>, object: &Object) -> Result<Object> {
    if object.marks_are_whole {
        return Ok(object.clone());
    }
    Ok(store
        .head(&object.key)
        .await?
        .unwrap_or_else(|| object.clone()))
}

/// Whether the bytes of a near object have the hash of a far one; `None` if that has no hash.
async fn matches(near: &Arc<dyn Data>, object: &Object, far: &Object) -> Result<Option<bool>> {
    if let Some(expected) = far.marks.blake3 {
        return Ok(Some(blake3_of(near, object).await? == expected));
    }
    match far.marks.md5 {
        Some(expected) => Ok(Some(md5_of(near, object).await? == expected)),
        None => Ok(None),
    }
}

/// The BLAKE3 of an object, read block by block.
pub(super) async fn blake3_of(store: &Arc<dyn Data>, object: &Object) -> Result<[u8; 32]> {
    let shape = Shape {
        size: object.size,
        block: BLOCK_BYTES,
        disk_bytes: None,
    };
    let mut values = Vec::new();
    for index in 0..shape.blocks() {
        let bytes = store
            .read(&object.key, shape.range(index), object.version.as_deref())
            .await?;
        values.push(
            super::object::off_runtime(move || hash::block_value(shape, index, &bytes)).await?,
        );
    }
    Ok(hash::whole(shape, &values))
}

async fn md5_of(store: &Arc<dyn Data>, object: &Object) -> Result<[u8; 16]> {
    let shape = Shape {
        size: object.size,
        block: BLOCK_BYTES,
        disk_bytes: None,
    };
    let mut hasher = Md5::new();
    for index in 0..shape.blocks() {
        let bytes = store
            .read(&object.key, shape.range(index), object.version.as_deref())
            .await?;
        hasher = super::object::off_runtime(move || {
            hasher.update(&bytes);
            hasher
        })
        .await?;
    }
    Ok(hasher.finalize().into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Key, Marks};

    fn object(size: u64, marks: Marks) -> Object {
        Object {
            key: Key::new("k").expect("a key"),
            size,
            disk_bytes: None,
            changed: Some(5_000),
            version: None,
            marks,
            marks_are_whole: true,
        }
    }

    #[test]
    #[expect(clippy::too_many_lines, reason = "a table of cases")]
    fn size_then_time_then_hash() {
        let time = |seconds| Marks {
            modified: Some((seconds, 0)),
            ..Marks::default()
        };
        let hash = |byte, seconds| Marks {
            blake3: Some([byte; 32]),
            modified: Some((seconds, 0)),
            ..Marks::default()
        };
        let md5 = |byte| Marks {
            md5: Some([byte; 16]),
            ..Marks::default()
        };
        for (source, target, checksum, verdict) in [
            (
                object(1, time(1)),
                object(2, time(1)),
                false,
                Verdict::Different,
            ),
            (
                object(1, time(1)),
                object(1, time(1)),
                false,
                Verdict::EqualByTime,
            ),
            (
                object(1, time(1)),
                object(1, time(1)),
                true,
                Verdict::Unknown,
            ),
            (
                object(1, time(1)),
                object(1, time(2)),
                false,
                Verdict::Unknown,
            ),
            (
                object(1, hash(1, 1)),
                object(1, hash(1, 2)),
                false,
                Verdict::EqualByHash,
            ),
            (
                object(1, hash(1, 1)),
                object(1, hash(2, 2)),
                false,
                Verdict::Different,
            ),
            (
                object(1, hash(1, 1)),
                object(1, hash(2, 1)),
                true,
                Verdict::Different,
            ),
            (
                object(1, md5(1)),
                object(1, md5(1)),
                false,
                Verdict::EqualByHash,
            ),
            (
                object(1, md5(1)),
                object(1, md5(2)),
                false,
                Verdict::Different,
            ),
            // Without a mark the service's own time counts for the source, not for the target.
            (
                object(1, Marks::default()),
                object(1, time(5)),
                false,
                Verdict::EqualByTime,
            ),
            (
                object(1, time(5)),
                object(1, Marks::default()),
                false,
                Verdict::Unknown,
            ),
        ] {
            assert_eq!(
                by_marks(&source, &target, checksum),
                verdict,
                "{source:?} {target:?} {checksum}"
            );
        }
    }
}
