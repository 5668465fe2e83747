//! A bucket as a datastore.

use super::{S3, attributes};
use crate::data::{Block, Data, FolderMark, Key, Marks, Object, Page, Shape, StoreLimits, Sums};
use crate::transfer::BLOCK_BYTES;
use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::list::{PaginatedListOptions, PaginatedListStore};
use object_store::multipart::{MultipartStore, PartId};
use object_store::signer::Signer;
use object_store::{
    CopyOptions, GetOptions, GetRange, ObjectStore, ObjectStoreExt, PutMode, PutMultipartOptions,
    PutOptions,
};
use std::any::Any;
use std::ops::Range;
use std::time::Duration;
use towline_core::{Error, Result};

#[async_trait]
impl Data for S3 {
    fn place(&self) -> String {
        self.place.clone()
    }
    /// No part but the last may be smaller than 5 MiB.
    fn limits(&self) -> StoreLimits {
        StoreLimits {
            blocks: 10_000,
            block: 2 * BLOCK_BYTES,
            near: false,
            marks_first: true,
            remembers: false,
        }
    }
    fn throttled(&self) -> u64 {
        self.web.throttled()
    }
    fn as_any(&self) -> &dyn Any {
        self
    }

    async fn list(&self, prefix: &str, deep: bool, from: Option<&str>) -> Result<Page> {
        let options = PaginatedListOptions {
            delimiter: (!deep).then(|| "/".into()),
            page_token: from.map(str::to_owned),
            ..PaginatedListOptions::default()
        };
        let asked = prefix;
        let prefix = format!("{}{prefix}", self.root);
        let listed = self
            .store
            .list_paginated(
                Some(prefix.as_str()).filter(|prefix| !prefix.is_empty()),
                options,
            )
            .await;
        let listed = match listed {
            Ok(listed) => listed,
            // One unusable name makes `object_store` fail for the whole page.
            Err(object_store::Error::InvalidPath { source }) => {
                return Err(Error::unsupported(format!(
                    "{} holds a name that cannot be used: {source}",
                    self.place
                ))
                .hint("rename or remove it by another tool"));
            }
            Err(error) => return Err(self.explain(error)),
        };
        let mut page = Page {
            next: listed.page_token,
            ..Page::default()
        };
        page.folders = listed
            .result
            .common_prefixes
            .iter()
            .filter_map(|folder| folder.filename().map(str::to_owned))
            .collect();
        let root = self.root.trim_end_matches('/');
        for meta in listed
            .result
            .objects
            .into_iter()
            .filter(|meta| meta.size > 0 || meta.location.as_ref() != root)
        {
            match self.object(meta, None) {
                Ok(object) => page.objects.push(object),
                Err(entry) => page.unsupported.push(entry),
            }
        }
        page.marks = self.marks_among(&mut page.objects).await?;
        if !deep {
            page.name_marked_folders(asked);
        }
        Ok(page)
    }

    async fn head(&self, key: &Key) -> Result<Option<Object>> {
        let options = GetOptions {
            head: true,
            ..GetOptions::default()
        };
        match self.store.get_opts(&self.path(key)?, options).await {
            Ok(found) => Ok(self
                .object(found.meta, Some(&found.attributes))
                .ok()
                .map(|object| Object {
                    key: key.clone(),
                    ..object
                })),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.explain(error)),
        }
    }

    async fn read(&self, key: &Key, range: Range<u64>, version: Option<&str>) -> Result<Bytes> {
        if range.is_empty() {
            return Ok(Bytes::new());
        }
        let length = range.end - range.start;
        let options = GetOptions {
            range: Some(GetRange::Bounded(range)),
            if_match: version.map(str::to_owned),
            ..GetOptions::default()
        };
        let found = self
            .store
            .get_opts(&self.path(key)?, options)
            .await
            .map_err(|error| self.explain(error))?;
        let bytes = found.bytes().await.map_err(|error| self.explain(error))?;
        if bytes.len() as u64 != length {
            return Err(Error::unreachable(format!(
                "{key}: {length} bytes were asked for and {} came",
                bytes.len()
            )));
        }
        Ok(bytes)
    }

    async fn write(&self, key: &Key, bytes: Bytes, marks: &Marks, create: bool) -> Result<bool> {
        let mode = if create {
            PutMode::Create
        } else {
            PutMode::Overwrite
        };
        let options = PutOptions {
            mode,
            attributes: attributes(marks),
            ..PutOptions::default()
        };
        match self
            .store
            .put_opts(&self.path(key)?, bytes.into(), options)
            .await
        {
            Ok(_) => Ok(true),
            Err(object_store::Error::AlreadyExists { .. }) if create => Ok(false),
            Err(error) => Err(self.explain(error)),
        }
    }

    async fn open(&self, key: &Key, _: Shape, marks: &Marks, id: Option<&str>) -> Result<String> {
        if let Some(id) = id {
            return Ok(id.to_owned());
        }
        let options = PutMultipartOptions {
            attributes: attributes(marks),
            ..PutMultipartOptions::default()
        };
        self.store
            .create_multipart_opts(&self.path(key)?, options)
            .await
            .map_err(|error| self.explain(error))
    }

    async fn blocks(&self, _: &Key, _: &str) -> Result<Option<Vec<Block>>> {
        Ok(None)
    }

    async fn put(
        &self,
        key: &Key,
        id: &str,
        index: u32,
        bytes: Bytes,
        sums: &Sums,
    ) -> Result<Block> {
        let size = bytes.len() as u64;
        let part = self
            .store
            .put_part(
                &self.path(key)?,
                &id.to_owned(),
                index as usize,
                bytes.into(),
            )
            .await
            .map_err(|error| self.explain(error))?;
        Ok(Block {
            index,
            size,
            digest: Some(sums.digest()),
            tag: part.content_id,
        })
    }

    async fn finish(&self, key: &Key, id: &str, blocks: &[Block], _: &Marks) -> Result<()> {
        let parts = blocks
            .iter()
            .map(|block| PartId {
                content_id: block.tag.clone(),
            })
            .collect();
        self.store
            .complete_multipart(&self.path(key)?, &id.to_owned(), parts)
            .await
            .map(|_| ())
            .map_err(|error| self.explain(error))
    }

    async fn abandon(&self, key: &Key, id: &str) -> Result<()> {
        match self
            .store
            .abort_multipart(&self.path(key)?, &id.to_owned())
            .await
        {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.explain(error)),
        }
    }

    async fn delete(&self, keys: &[Key]) -> Result<()> {
        // One by one, because not every compatible service has the call for many.
        let paths = keys
            .iter()
            .map(|key| self.path(key))
            .collect::<Result<Vec<_>>>()?;
        let asked = stream::iter(paths).map(|path| async move {
            match self.store.delete(&path).await {
                Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
                Err(error) => Err(self.explain(error)),
            }
        });
        asked.buffer_unordered(16).try_collect().await
    }

    async fn delete_marks(&self, marks: &[FolderMark]) -> Result<()> {
        let folders: Vec<Key> = marks.iter().map(|mark| mark.folder.clone()).collect();
        stream::iter(folders)
            .map(|folder| self.delete_mark(folder))
            .buffer_unordered(16)
            .try_collect()
            .await
    }

    async fn copy_from(&self, source: &dyn Data, from: &Key, to: &Key, size: u64) -> Result<bool> {
        // One call copies at most 5 GiB, and only within a bucket.
        let Some(source) = source
            .as_any()
            .downcast_ref::<Self>()
            .filter(|source| source.bucket == self.bucket && source.host == self.host)
        else {
            return Ok(false);
        };
        if size > 5 << 30 {
            return Ok(false);
        }
        self.store
            .copy_opts(&source.path(from)?, &self.path(to)?, CopyOptions::default())
            .await
            .map_err(|error| self.explain(error))?;
        Ok(true)
    }

    async fn url(&self, key: &Key, valid: Duration) -> Result<String> {
        let week = Duration::from_secs(7 * 86_400);
        if valid > week {
            return Err(
                Error::too_large("S3 signs addresses for a week at most").hint("use --for 7d")
            );
        }
        let url = self
            .store
            .signed_url(http::Method::GET, &self.path(key)?, valid)
            .await
            .map_err(|error| self.explain(error))?;
        Ok(url.to_string())
    }
}
