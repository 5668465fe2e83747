//! One object from here to there: in one call if it is small, else in blocks that are resumed.

use super::journal::{Journal, Subject};
use super::pace::Pace;
use super::progress::Progress;
use super::{BLOCK_BYTES, StorePath, compare, hash};
use crate::data::{Block, Data, Key, Marks, Object, Shape, StoreLimits, Sums};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::task::JoinSet;
use towline_core::{Error, ErrorKind, Result, Retry};

/// An object that arrives damaged is tried this often.
const MAX_TRIES: u32 = 3;

/// What all objects of a copy share.
#[derive(Debug)]
pub(super) struct Carrier {
    pub(super) source: StorePath,
    pub(super) target: StorePath,
    pub(super) pace: Arc<Pace>,
    pub(super) progress: Arc<Progress>,
    pub(super) journals: Option<PathBuf>,
}

/// How an object was brought over.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Carried {
    pub(super) inside: bool,
    pub(super) by_length: bool,
    pub(super) resumed: u64,
}

/// Runs what takes long where it holds up nobody.
pub(super) async fn aside<T: Send + 'static>(
    act: impl FnOnce() -> T + Send + 'static,
) -> Result<T> {
    tokio::task::spawn_blocking(act)
        .await
        .map_err(|error| Error::bug("a task broke").source_error(error))
}

/// Blocks grow only where the store would have too many of them.
fn shape(size: u64, limits: StoreLimits) -> Shape {
    let mut shape = Shape {
        size,
        block: limits.block,
    };
    while shape.size.div_ceil(shape.block) > u64::from(limits.blocks) {
        shape.block *= 2;
    }
    shape
}

fn damaged(key: &Key) -> Error {
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
                // It came over damaged or short: that may pass, where the service answers at all.
                Err(error) if error.retry_advice() == Retry::Later && tries < MAX_TRIES => {}
                other => return other,
            }
        }
    }

    async fn carry_through(self: &Arc<Self>, object: &Object, to: &Key) -> Result<Carried> {
        if object.size <= BLOCK_BYTES {
            return self.carry_whole(object, to).await;
        }
        match self.carry_blocks(object, to, true).await {
            // The service has forgotten an upload that the journal knew: all begins anew.
            Err(error)
                if error.kind() == ErrorKind::NotFound && !self.target.store.limits().remembers =>
            {
                self.carry_blocks(object, to, false).await
            }
            other => other,
        }
    }

    /// A copy inside the service brings the marks along.
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
            aside(move || hash(&bytes)).await?
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

    /// Whether a far source has no hash beside its bytes.
    fn is_unmarked(&self, object: &Object) -> bool {
        !self.source.store.limits().near
            && object.marks.blake3.is_none()
            && object.marks.md5.is_none()
    }

    /// A journal, where the two stores cannot tell by themselves how far a copy came: the source
    /// because reading it again is as dear as the copy, the target because it does not say.
    fn journal(&self, object: &Object, to: &Key, shape: Shape) -> Result<Option<Journal>> {
        let needed = !self.source.store.limits().near || !self.target.store.limits().remembers;
        let (Some(folder), Some(version), true) = (&self.journals, &object.version, needed) else {
            return Ok(None);
        };
        let subject = Subject {
            version: 1,
            source: format!("{} {}", self.source.store.place(), object.key),
            source_version: version.clone(),
            target: format!("{} {to}", self.target.store.place()),
            size: shape.size,
            block: shape.block,
        };
        Journal::open(folder, &subject).map(Some).map_err(|error| {
            Error::refused(format!("{} cannot be written", folder.display())).source_error(error)
        })
    }

    async fn carry_blocks(
        self: &Arc<Self>,
        object: &Object,
        to: &Key,
        resume: bool,
    ) -> Result<Carried> {
        let target = &self.target.store;
        let shape = shape(object.size, target.limits());
        let mut journal = self.journal(object, to, shape)?;
        if !resume && let Some(old) = journal.take() {
            old.remove();
            journal = self.journal(object, to, shape)?;
        }
        let known = journal.as_ref().and_then(|journal| journal.upload.clone());
        let mut marks = Marks {
            modified: object.modified(),
            ..object.marks.clone()
        };
        if target.limits().marks_first
            && known.is_none()
            && marks.blake3.is_none()
            && self.source.store.limits().near
        {
            marks.blake3 = Some(compare::blake3_of(&self.source.store, object).await?);
        }
        let id = target.open(to, shape, &marks, known.as_deref()).await?;
        if let Some(journal) = journal.as_ref().filter(|_| known.as_deref() != Some(&id)) {
            noted(journal.note_upload(&id))?;
        }
        let journal = journal.map(Arc::new);
        let held = held(target, to, &id, shape, journal.as_deref()).await?;
        let (parts, resumed) = self
            .send_blocks(object, to, &id, shape, held, journal.clone())
            .await?;

        let values: Vec<[u8; 32]> = parts.iter().map(|(value, _)| *value).collect();
        let whole = aside(move || hash::whole(shape, &values)).await?;
        if object
            .marks
            .blake3
            .is_some_and(|expected| expected != whole)
            || marks.blake3.is_some_and(|expected| expected != whole)
        {
            target.abandon(to, &id).await?;
            journal
                .and_then(Arc::into_inner)
                .into_iter()
                .for_each(Journal::remove);
            return Err(damaged(&object.key));
        }
        // A near target still has to check the service's MD5 where that is all there is.
        let unchecked =
            target.limits().near && object.marks.blake3.is_none() && object.marks.md5.is_some();
        marks.blake3 = (!unchecked).then_some(whole);
        let blocks: Vec<Block> = parts.into_iter().map(|(_, block)| block).collect();
        target.finish(to, &id, &blocks, &marks).await?;
        if !target.limits().near {
            let stored = target.head(to).await?;
            if stored.is_none_or(|stored| {
                stored.size != object.size || stored.marks.blake3.is_some_and(|hash| hash != whole)
            }) {
                return Err(Error::unreachable(format!(
                    "{to}: the service does not hold what was sent"
                ))
                .hint("try again"));
            }
        }
        journal
            .and_then(Arc::into_inner)
            .into_iter()
            .for_each(Journal::remove);
        Ok(Carried {
            by_length: self.is_unmarked(object),
            resumed,
            ..Carried::default()
        })
    }

    /// Every block's value and name, in order; and the bytes that were there already.
    async fn send_blocks(
        self: &Arc<Self>,
        object: &Object,
        to: &Key,
        id: &str,
        shape: Shape,
        mut held: HashMap<u32, Block>,
        journal: Option<Arc<Journal>>,
    ) -> Result<(Vec<([u8; 32], Block)>, u64)> {
        let mut parts: Vec<Option<([u8; 32], Block)>> = vec![None; shape.blocks() as usize];
        let mut tasks: JoinSet<Result<(u32, Sums, Block, bool)>> = JoinSet::new();
        let mut resumed = 0;
        let mut take = |done: Result<Result<(u32, Sums, Block, bool)>, tokio::task::JoinError>,
                        parts: &mut Vec<Option<_>>|
         -> Result<()> {
            let (index, sums, block, was_held) =
                done.map_err(|error| Error::bug("a task broke").source_error(error))??;
            self.progress.advance(block.size);
            resumed += if was_held { block.size } else { 0 };
            parts[index as usize] = Some((sums.value, block));
            Ok(())
        };
        let near = self.source.store.limits().near;
        for index in 0..shape.blocks() {
            let known = held
                .remove(&index)
                .filter(|block| block.size == shape.range(index).end - shape.range(index).start);
            // Of a far source the journal says what the block was; it is not fetched again.
            if !near
                && let Some(done) = journal
                    .as_ref()
                    .and_then(|journal| journal.done.get(&index))
                && let Some(block) = known.clone().filter(|block| {
                    block
                        .digest
                        .as_ref()
                        .is_some_and(|digest| digest[..] == done.value[..16])
                })
            {
                take(
                    Ok(Ok((index, Sums { value: done.value }, block, true))),
                    &mut parts,
                )?;
                continue;
            }
            let turn = self.pace.turn(shape.block).await;
            let (carrier, key, version, to, id, journal) = (
                self.clone(),
                object.key.clone(),
                object.version.clone(),
                to.clone(),
                id.to_owned(),
                journal.clone(),
            );
            tasks.spawn(async move {
                let (source, target) = (&carrier.source.store, &carrier.target.store);
                let bytes = source
                    .read(&key, shape.range(index), version.as_deref())
                    .await?;
                let hashed = bytes.clone();
                let sums = aside(move || hash::sums(shape, index, &hashed)).await?;
                if let Some(block) = known.filter(|block| block.digest == Some(sums.digest())) {
                    return Ok((index, sums, block, true));
                }
                let size = bytes.len() as u64;
                let block = target.put(&to, &id, index, bytes, &sums).await?;
                if let Some(journal) = journal {
                    noted(journal.note_block(index, sums.value, &block.tag))?;
                }
                turn.done(size, target.throttled() + source.throttled());
                Ok((index, sums, block, false))
            });
            while let Some(done) = tasks.try_join_next() {
                take(done, &mut parts)?;
            }
        }
        while let Some(done) = tasks.join_next().await {
            take(done, &mut parts)?;
        }
        let all = parts
            .into_iter()
            .collect::<Option<Vec<_>>>()
            .ok_or_else(|| Error::bug("a block was lost on the way"))?;
        Ok((all, resumed))
    }
}

fn noted(result: std::io::Result<()>) -> Result<()> {
    result.map_err(|error| {
        Error::refused("the journal of the transfer cannot be written").source_error(error)
    })
}

/// What the target holds of the upload, as it says or as the journal does.
async fn held(
    target: &Arc<dyn Data>,
    to: &Key,
    id: &str,
    shape: Shape,
    journal: Option<&Journal>,
) -> Result<HashMap<u32, Block>> {
    if let Some(blocks) = target.blocks(to, id).await? {
        return Ok(blocks
            .into_iter()
            .map(|block| (block.index, block))
            .collect());
    }
    let noted = journal.into_iter().flat_map(|journal| &journal.done);
    Ok(noted
        .map(|(index, done)| {
            let digest = Sums { value: done.value }.digest();
            let range = shape.range(*index);
            (
                *index,
                Block {
                    index: *index,
                    size: range.end.saturating_sub(range.start),
                    digest: Some(digest),
                    tag: done.tag.clone(),
                },
            )
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_grow_only_when_there_would_be_too_many() {
        let limits = |blocks| StoreLimits {
            blocks,
            block: BLOCK_BYTES,
            near: false,
            marks_first: false,
            remembers: true,
        };
        assert_eq!(shape(10 << 30, limits(50_000)).block, BLOCK_BYTES);
        assert_eq!(shape(40 << 30, limits(10_000)).block, 2 * BLOCK_BYTES);
        let largest = shape(4_000 << 30, limits(10_000));
        assert!(largest.blocks() <= 10_000 && largest.block.is_power_of_two());
    }
}
