//! A store reduced to chosen objects.

use crate::data::{Block, Data, FolderMark, Key, Marks, Object, Page, Shape, StoreLimits, Sums};
use async_trait::async_trait;
use bytes::Bytes;
use std::any::Any;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use towline_core::Result;

/// Keys of one page of a listing.
const PAGE_ENTRIES: usize = 1000;

/// The chosen objects of a store, in the order of their keys.
#[derive(Debug)]
pub struct Listed {
    store: Arc<dyn Data>,
    keys: Vec<Key>,
}

impl Listed {
    pub fn new(store: Arc<dyn Data>, mut keys: Vec<Key>) -> Self {
        keys.sort();
        Self { store, keys }
    }
}

#[async_trait]
impl Data for Listed {
    fn place(&self) -> String {
        self.store.place()
    }
    fn limits(&self) -> StoreLimits {
        self.store.limits()
    }
    fn throttled(&self) -> u64 {
        self.store.throttled()
    }
    fn as_any(&self) -> &dyn Any {
        self.store.as_any()
    }

    async fn list(&self, prefix: &str, _deep: bool, from: Option<&str>) -> Result<Page> {
        let begin = from.and_then(|from| from.parse().ok()).unwrap_or(0usize);
        let end = self.keys.len().min(begin + PAGE_ENTRIES);
        let mut page = Page {
            next: (end < self.keys.len()).then(|| end.to_string()),
            ..Page::default()
        };
        for key in self
            .keys
            .get(begin..end)
            .unwrap_or_default()
            .iter()
            .filter(|key| key.as_str().starts_with(prefix))
        {
            // An object that was removed meanwhile is left out.
            page.objects.extend(self.store.head(key).await?);
        }
        Ok(page)
    }

    async fn head(&self, key: &Key) -> Result<Option<Object>> {
        if self.keys.binary_search(key).is_ok() {
            self.store.head(key).await
        } else {
            Ok(None)
        }
    }
    async fn read(&self, key: &Key, range: Range<u64>, version: Option<&str>) -> Result<Bytes> {
        self.store.read(key, range, version).await
    }
    async fn write(&self, key: &Key, bytes: Bytes, marks: &Marks, create: bool) -> Result<bool> {
        self.store.write(key, bytes, marks, create).await
    }
    async fn open(
        &self,
        key: &Key,
        shape: Shape,
        marks: &Marks,
        id: Option<&str>,
    ) -> Result<String> {
        self.store.open(key, shape, marks, id).await
    }
    async fn blocks(&self, key: &Key, id: &str) -> Result<Option<Vec<Block>>> {
        self.store.blocks(key, id).await
    }
    async fn put(
        &self,
        key: &Key,
        id: &str,
        index: u32,
        bytes: Bytes,
        sums: &Sums,
    ) -> Result<Block> {
        self.store.put(key, id, index, bytes, sums).await
    }
    async fn finish(&self, key: &Key, id: &str, blocks: &[Block], marks: &Marks) -> Result<()> {
        self.store.finish(key, id, blocks, marks).await
    }
    async fn abandon(&self, key: &Key, id: &str) -> Result<()> {
        self.store.abandon(key, id).await
    }
    async fn delete(&self, keys: &[Key]) -> Result<()> {
        self.store.delete(keys).await
    }
    async fn folder_mark(&self, _: &Key) -> Result<Option<FolderMark>> {
        Ok(None)
    }
    async fn delete_marks(&self, marks: &[FolderMark]) -> Result<()> {
        self.store.delete_marks(marks).await
    }
    async fn copy_from(&self, source: &dyn Data, from: &Key, to: &Key, size: u64) -> Result<bool> {
        self.store.copy_from(source, from, to, size).await
    }
    async fn url(&self, key: &Key, valid: Duration) -> Result<String> {
        self.store.url(key, valid).await
    }
}
