//! Objects of a blob container, for callers that block.

use super::Threads;
use crate::azure::Azure;
use crate::data::{Data, Key, Marks, shown};
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use std::ops::Range;
use towline_core::cloud::{Item, Objects};
use towline_core::{Error, Result};

/// Calls that run at once.
const MAX_PARALLEL_CALLS: usize = 16;

#[derive(Debug)]
pub(super) struct BlobObjects {
    store: Azure,
    threads: Threads,
}

impl BlobObjects {
    pub(super) const fn new(store: Azure, threads: Threads) -> Self {
        Self { store, threads }
    }
}

fn key(text: &str) -> Result<Key> {
    Key::new(text).map_err(|why| {
        Error::refused(format!(
            "`{}` cannot be the name of an object: {why}",
            shown(text)
        ))
    })
}

fn keys(texts: &[String]) -> Result<Vec<Key>> {
    texts.iter().map(|text| key(text)).collect()
}

impl Objects for BlobObjects {
    fn put(&self, name: &str, bytes: &[u8], once: bool) -> Result<bool> {
        let (key, bytes) = (key(name)?, Bytes::copy_from_slice(bytes));
        (self.threads)()?.block_on(self.store.write(&key, bytes, &Marks::default(), once))
    }

    fn get(&self, name: &str, range: Option<Range<u64>>) -> Result<Option<Vec<u8>>> {
        let key = key(name)?;
        let found = (self.threads)()?.block_on(self.store.part(&key, range))?;
        Ok(found.map(|bytes| bytes.to_vec()))
    }

    fn get_all(&self, names: &[String]) -> Result<Vec<Option<Vec<u8>>>> {
        let asked: Vec<_> = keys(names)?
            .into_iter()
            .map(|key| async move { self.store.part(&key, None).await })
            .collect();
        let found: Vec<Option<Bytes>> = (self.threads)()?.block_on(
            stream::iter(asked)
                .buffered(MAX_PARALLEL_CALLS)
                .try_collect(),
        )?;
        Ok(found
            .into_iter()
            .map(|bytes| bytes.map(|bytes| bytes.to_vec()))
            .collect())
    }

    fn sizes(&self, names: &[String]) -> Result<Vec<Option<u64>>> {
        let asked: Vec<_> = keys(names)?
            .into_iter()
            .map(|key| async move { self.store.head(&key).await })
            .collect();
        let asked = stream::iter(asked)
            .buffered(MAX_PARALLEL_CALLS)
            .map_ok(|found| found.map(|object| object.size));
        (self.threads)()?.block_on(asked.try_collect())
    }

    fn list(&self, prefix: &str) -> Result<Vec<Item>> {
        (self.threads)()?.block_on(async {
            let (mut items, mut next) = (Vec::new(), None);
            loop {
                let page = self.store.list(prefix, true, next.as_deref()).await?;
                let item = |object: crate::data::Object| Item {
                    key: object.key.into(),
                    size: object.size,
                    version: object.version.unwrap_or_default(),
                };
                items.extend(page.objects.into_iter().map(item));
                next = page.next;
                if next.is_none() {
                    return Ok(items);
                }
            }
        })
    }

    fn delete(&self, names: &[String]) -> Result<()> {
        let keys = keys(names)?;
        (self.threads)()?.block_on(self.store.delete(&keys))
    }
}
