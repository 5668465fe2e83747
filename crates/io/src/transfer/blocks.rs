//! One object in blocks. A copy that was cut off goes on with the blocks that the target holds.

use super::journal::{Journal, Subject};
use super::object::{Carried, Carrier, damaged, off_runtime};
use super::pace::Turn;
use super::progress::Progress;
use super::{compare, hash};
use crate::data::{Block, Data, Key, Marks, Object, Shape, StoreLimits, Sums};
use std::collections::HashMap;
use std::sync::Arc;
use tokio::task::JoinSet;
use towline_core::{Error, Result};

/// Blocks are larger than the store asks for only where there would be too many.
fn shape(size: u64, limits: StoreLimits) -> Shape {
    let mut shape = Shape {
        size,
        block: limits.block,
        disk_bytes: None,
    };
    while shape.size.div_ceil(shape.block) > u64::from(limits.blocks) {
        shape.block *= 2;
    }
    shape
}

impl Carrier {
    /// The journal of this copy, where one is needed: reading a far source again costs as much as
    /// the copy, and some targets do not say which blocks they hold.
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
            Error::from_io(format!("{} cannot be written", folder.display()), error)
        })
    }

    pub(super) async fn carry_blocks(
        self: &Arc<Self>,
        object: &Object,
        to: &Key,
        resume: bool,
    ) -> Result<Carried> {
        let target = &self.target.store;
        let mut shape = shape(object.size, target.limits());
        shape.disk_bytes = object.disk_bytes.filter(|bytes| *bytes < object.size);
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
        let held = held(target, to, &id, shape, journal.as_ref()).await?;
        let upload = Arc::new(Upload {
            to: to.clone(),
            id,
            shape,
            journal,
        });
        let sent = self.send_blocks(object, &upload, held).await?;
        let resumed = sent.resumed_bytes;
        let (values, blocks) = sent.finish()?;
        let whole = off_runtime(move || hash::whole(shape, &values)).await?;
        let differs = |expected: [u8; 32]| expected != whole;
        if object.marks.blake3.is_some_and(differs) || marks.blake3.is_some_and(differs) {
            target.abandon(to, &upload.id).await?;
            Upload::remove_journal(upload);
            return Err(damaged(&object.key));
        }
        // A near target has yet to check the service's MD5, where that is the only hash.
        let unchecked =
            target.limits().near && object.marks.blake3.is_none() && object.marks.md5.is_some();
        marks.blake3 = (!unchecked).then_some(whole);
        target.finish(to, &upload.id, &blocks, &marks).await?;
        self.check_stored(to, object.size, whole).await?;
        Upload::remove_journal(upload);
        Ok(Carried {
            by_length: self.is_unmarked(object),
            resumed,
            ..Carried::default()
        })
    }

    /// A service must hold what was sent; a near target is the disk that was just written.
    async fn check_stored(&self, to: &Key, size: u64, whole: [u8; 32]) -> Result<()> {
        if self.target.store.limits().near {
            return Ok(());
        }
        let stored = self.target.store.head(to).await?;
        if stored.is_some_and(|stored| {
            stored.size == size && stored.marks.blake3.is_none_or(|hash| hash == whole)
        }) {
            return Ok(());
        }
        Err(
            Error::unreachable(format!("{to}: the service does not hold what was sent"))
                .hint("try again"),
        )
    }

    /// Sends the blocks that the target does not hold.
    async fn send_blocks(
        self: &Arc<Self>,
        object: &Object,
        upload: &Arc<Upload>,
        mut held: HashMap<u32, Block>,
    ) -> Result<SentBlocks> {
        let shape = upload.shape;
        let mut sent = SentBlocks::new(shape);
        let mut tasks: JoinSet<Result<SentBlock>> = JoinSet::new();
        for index in 0..shape.blocks() {
            let range = shape.range(index);
            let known = held
                .remove(&index)
                .filter(|block| block.size == range.end - range.start);
            if let Some(block) = self.held_by_journal(upload, index, known.as_ref()) {
                sent.add(block, &self.progress);
                continue;
            }
            let turn = self.pace.turn(shape.block).await;
            tasks.spawn(self.clone().send_block(
                object.clone(),
                upload.clone(),
                index,
                known,
                turn,
            ));
            while let Some(done) = tasks.try_join_next() {
                sent.add(joined(done)?, &self.progress);
            }
        }
        while let Some(done) = tasks.join_next().await {
            sent.add(joined(done)?, &self.progress);
        }
        Ok(sent)
    }

    /// A block of a far source that the target holds and the journal describes. It is not fetched
    /// again.
    fn held_by_journal(
        &self,
        upload: &Upload,
        index: u32,
        known: Option<&Block>,
    ) -> Option<SentBlock> {
        if self.source.store.limits().near {
            return None;
        }
        let value = upload.journal.as_ref()?.done.get(&index)?.value;
        let block = known.filter(|block| {
            block
                .digest
                .as_ref()
                .is_some_and(|digest| digest[..] == value[..16])
        })?;
        Some(SentBlock {
            value,
            block: block.clone(),
            was_held: true,
        })
    }

    /// Reads one block and sends it, unless the target holds the same.
    async fn send_block(
        self: Arc<Self>,
        object: Object,
        upload: Arc<Upload>,
        index: u32,
        known: Option<Block>,
        turn: Turn,
    ) -> Result<SentBlock> {
        let (source, target) = (&self.source.store, &self.target.store);
        let shape = upload.shape;
        let bytes = source
            .read(&object.key, shape.range(index), object.version.as_deref())
            .await?;
        let hashed = bytes.clone();
        let sums = off_runtime(move || hash::sums(shape, index, &hashed)).await?;
        if let Some(block) = known.filter(|block| block.digest == Some(sums.digest())) {
            return Ok(SentBlock {
                value: sums.value,
                block,
                was_held: true,
            });
        }
        let size = bytes.len() as u64;
        let block = target
            .put(&upload.to, &upload.id, index, bytes, &sums)
            .await?;
        if let Some(journal) = &upload.journal {
            noted(journal.note_block(index, sums.value, &block.tag))?;
        }
        turn.done(size, target.throttled() + source.throttled());
        Ok(SentBlock {
            value: sums.value,
            block,
            was_held: false,
        })
    }
}

/// An object on its way in blocks.
struct Upload {
    to: Key,
    id: String,
    shape: Shape,
    journal: Option<Journal>,
}

impl Upload {
    fn remove_journal(upload: Arc<Self>) {
        Arc::into_inner(upload)
            .and_then(|upload| upload.journal)
            .into_iter()
            .for_each(Journal::remove);
    }
}

/// A block that the target holds.
struct SentBlock {
    /// See [`hash::block_value`].
    value: [u8; 32],
    block: Block,
    /// An earlier copy that was cut off had brought it over.
    was_held: bool,
}

/// The blocks of an upload that the target holds so far, in order.
struct SentBlocks {
    blocks: Vec<Option<([u8; 32], Block)>>,
    resumed_bytes: u64,
}

impl SentBlocks {
    fn new(shape: Shape) -> Self {
        Self {
            blocks: vec![None; shape.blocks() as usize],
            resumed_bytes: 0,
        }
    }

    fn add(&mut self, sent: SentBlock, progress: &Progress) {
        progress.advance(sent.block.size);
        if sent.was_held {
            self.resumed_bytes += sent.block.size;
        }
        let index = sent.block.index as usize;
        self.blocks[index] = Some((sent.value, sent.block));
    }

    /// The values and the blocks, once all are there.
    fn finish(self) -> Result<(Vec<[u8; 32]>, Vec<Block>)> {
        let all: Option<Vec<_>> = self.blocks.into_iter().collect();
        Ok(all
            .ok_or_else(|| Error::bug("a block was lost on the way"))?
            .into_iter()
            .unzip())
    }
}

fn joined<T>(done: Result<Result<T>, tokio::task::JoinError>) -> Result<T> {
    done.map_err(|error| Error::bug("a task broke").source_error(error))?
}

fn noted(result: std::io::Result<()>) -> Result<()> {
    result.map_err(|error| Error::from_io("the journal of the transfer cannot be written", error))
}

/// The blocks that the target holds, as it says itself or as the journal says.
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
    use super::super::BLOCK_BYTES;
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
