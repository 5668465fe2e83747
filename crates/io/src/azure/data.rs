//! A container as a datastore.

use super::block_id::{block_id, read_block_id};
use super::call::{Authorization, Call};
use super::{Azure, can_be_a_name, copy, is_folder, listing, with_marks};
use crate::data::{Block, Data, FolderMark, Key, Marks, Object, Page, Shape, StoreLimits, Sums};
use crate::transfer::BLOCK_BYTES;
use crate::transfer::md5_lanes::{SendingGuard, md5_batched};
use async_trait::async_trait;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use http::{Method, StatusCode};
use std::any::Any;
use std::ops::Range;
use std::time::Duration;
use towline_core::{Error, Result};

#[async_trait]
impl Data for Azure {
    fn place(&self) -> String {
        self.service.place.clone()
    }
    fn limits(&self) -> StoreLimits {
        StoreLimits {
            blocks: 50_000,
            block: BLOCK_BYTES,
            near: false,
            marks_first: false,
            remembers: true,
        }
    }
    fn throttled(&self) -> u64 {
        self.service.web.throttled()
    }
    fn as_any(&self) -> &dyn Any {
        self
    }

    async fn list(&self, prefix: &str, deep: bool, from: Option<&str>) -> Result<Page> {
        let whole = format!("{}{prefix}", self.root);
        let mut pairs = vec![
            ("restype", "container"),
            ("comp", "list"),
            ("include", "metadata"),
            ("maxresults", "5000"),
            ("prefix", whole.as_str()),
        ];
        if !deep {
            pairs.push(("delimiter", "/"));
        }
        pairs.extend(from.map(|marker| ("marker", marker)));
        let call = Call::new(Method::GET, None, 'l').query(&pairs);
        let answer = self.service.ask_expecting(&call, &[StatusCode::OK]).await?;
        let mut page = listing::page(&answer.body, &self.root)?;
        if !deep {
            page.name_marked_folders(prefix);
        }
        Ok(page)
    }

    async fn head(&self, key: &Key) -> Result<Option<Object>> {
        let call = Call::new(Method::HEAD, Some(&self.full(key)), 'r');
        let answer = self.service.ask(&call).await?;
        match answer.status {
            StatusCode::OK if is_folder(&answer) => Ok(None),
            StatusCode::OK => self.object(key, &answer).map(Some),
            StatusCode::NOT_FOUND
                if answer.header("x-ms-error-code") != Some("ContainerNotFound") =>
            {
                Ok(None)
            }
            _ => Err(self.service.explain_bodyless(&call, &answer).await),
        }
    }

    async fn read(&self, key: &Key, range: Range<u64>, version: Option<&str>) -> Result<Bytes> {
        if range.is_empty() {
            return Ok(Bytes::new());
        }
        let mut call = Call::new(Method::GET, Some(&self.full(key)), 'r').header(
            "x-ms-range",
            format!("bytes={}-{}", range.start, range.end - 1),
        );
        if let Some(version) = version {
            call = call.header("if-match", version);
        }
        let answer = self
            .service
            .ask_expecting(&call, &[StatusCode::PARTIAL_CONTENT, StatusCode::OK])
            .await?;
        if answer.body.len() as u64 != range.end - range.start {
            return Err(Error::unreachable(format!(
                "{key}: {} bytes were asked for and {} came",
                range.end - range.start,
                answer.body.len()
            )));
        }
        Ok(answer.body)
    }

    async fn write(&self, key: &Key, bytes: Bytes, marks: &Marks, create: bool) -> Result<bool> {
        can_be_a_name(key)?;
        let md5 = match marks.md5 {
            Some(md5) => md5,
            None => md5_batched(bytes.clone()).await,
        };
        let mut call = Call::new(
            Method::PUT,
            Some(&self.full(key)),
            if create { 'c' } else { 'w' },
        )
        .header("x-ms-blob-type", "BlockBlob")
        .header("content-md5", BASE64_STANDARD.encode(md5))
        .header("content-type", "application/octet-stream");
        if create {
            call = call.header("if-none-match", "*");
        }
        let call = with_marks(call, marks).body(bytes);
        let sending = SendingGuard::begin();
        let answer = self.service.ask(&call).await?;
        drop(sending);
        match answer.status {
            StatusCode::CREATED => Ok(true),
            StatusCode::CONFLICT | StatusCode::PRECONDITION_FAILED if create => {
                // An earlier try of this same call may have made it.
                let ours = answer.tries > 1
                    && self.head(key).await?.is_some_and(|object| {
                        object.marks.md5 == Some(md5) && object.marks.blake3 == marks.blake3
                    });
                Ok(ours)
            }
            _ => Err(self.service.explain(&call, &answer)),
        }
    }

    async fn open(&self, key: &Key, _: Shape, _: &Marks, _: Option<&str>) -> Result<String> {
        can_be_a_name(key)?;
        Ok(String::new())
    }

    async fn blocks(&self, key: &Key, _: &str) -> Result<Option<Vec<Block>>> {
        let call = Call::new(Method::GET, Some(&self.full(key)), 'r')
            .query(&[("comp", "blocklist"), ("blocklisttype", "uncommitted")]);
        let answer = self.service.ask(&call).await?;
        let listed = match answer.status {
            StatusCode::OK => listing::blocks(&answer.body)?,
            StatusCode::NOT_FOUND => Vec::new(),
            // A credential that may write but not read: all blocks are sent.
            StatusCode::FORBIDDEN => return Ok(None),
            _ => return Err(self.service.explain(&call, &answer)),
        };
        let ours = listed.into_iter().filter_map(|(tag, size)| {
            let (index, digest) = read_block_id(&tag)?;
            Some(Block {
                index,
                size,
                digest: Some(digest),
                tag,
            })
        });
        Ok(Some(ours.collect()))
    }

    async fn put(
        &self,
        key: &Key,
        _: &str,
        index: u32,
        bytes: Bytes,
        sums: &Sums,
    ) -> Result<Block> {
        let (tag, size) = (block_id(index, sums.digest()), bytes.len() as u64);
        let md5 = md5_batched(bytes.clone()).await;
        let call = Call::new(Method::PUT, Some(&self.full(key)), 'w')
            .query(&[("comp", "block"), ("blockid", &tag)])
            .header("content-md5", BASE64_STANDARD.encode(md5))
            .body(bytes);
        let _sending = SendingGuard::begin();
        self.service
            .ask_expecting(&call, &[StatusCode::CREATED])
            .await?;
        Ok(Block {
            index,
            size,
            digest: Some(sums.digest()),
            tag,
        })
    }

    async fn finish(&self, key: &Key, _: &str, blocks: &[Block], marks: &Marks) -> Result<()> {
        let mut body = String::from("<?xml version=\"1.0\" encoding=\"utf-8\"?><BlockList>");
        // `Latest` also finds committed blocks, so a try whose answer was lost can be repeated.
        for block in blocks {
            body += &format!("<Latest>{}</Latest>", block.tag);
        }
        body += "</BlockList>";
        let mut call = Call::new(Method::PUT, Some(&self.full(key)), 'w')
            .query(&[("comp", "blocklist")])
            .header("content-type", "application/xml");
        if let Some(md5) = marks.md5 {
            call = call.header("x-ms-blob-content-md5", BASE64_STANDARD.encode(md5));
        }
        let call = with_marks(
            call.header("x-ms-blob-content-type", "application/octet-stream"),
            marks,
        )
        .body(body.into());
        self.service
            .ask_expecting(&call, &[StatusCode::CREATED])
            .await
            .map(|_| ())
    }

    /// The service itself forgets uncommitted blocks within a week.
    async fn abandon(&self, _: &Key, _: &str) -> Result<()> {
        Ok(())
    }

    async fn delete(&self, keys: &[Key]) -> Result<()> {
        let names: Vec<String> = keys.iter().map(|key| self.full(key)).collect();
        stream::iter(names)
            .map(|name| self.delete_one(name))
            .buffer_unordered(16)
            .try_collect()
            .await
    }

    async fn folder_mark(&self, key: &Key) -> Result<Option<FolderMark>> {
        let answer = self
            .service
            .ask(&Call::new(Method::HEAD, Some(&self.full(key)), 'r'))
            .await?;
        let is_mark = answer.status == StatusCode::OK && is_folder(&answer);
        Ok(is_mark.then(|| FolderMark {
            folder: key.clone(),
            has_slash: false,
        }))
    }

    async fn delete_marks(&self, marks: &[FolderMark]) -> Result<()> {
        // One after the other, the deepest first, because an account with a hierarchical namespace
        // removes only empty folders.
        let mut marks: Vec<&FolderMark> = marks.iter().collect();
        marks.sort_by(|one, other| other.cmp(one));
        for mark in marks {
            let slash = if mark.has_slash { "/" } else { "" };
            self.delete_one(format!("{}{slash}", self.full(&mark.folder)))
                .await?;
        }
        Ok(())
    }

    async fn copy_from(&self, source: &dyn Data, from: &Key, to: &Key, size: u64) -> Result<bool> {
        can_be_a_name(to)?;
        match source.as_any().downcast_ref::<Self>() {
            Some(source) => copy::copy(self, source, from, to, size).await,
            None => Ok(false),
        }
    }

    async fn url(&self, key: &Key, valid: Duration) -> Result<String> {
        self.signed_url(key, valid).await
    }

    fn url_with_credential(&self, key: &Key) -> Option<(String, String)> {
        match &self.service.authorization {
            Authorization::Sas(sas, _) => Some((
                self.url_with(key, &sas.pairs()),
                sas.allows(&self.service.container),
            )),
            _ => None,
        }
    }
}
