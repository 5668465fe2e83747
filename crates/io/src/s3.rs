//! A bucket of S3, or of what speaks like it, or a part of one.
//!
//! Every call carries a SHA-256 that the service checks. Parts of an upload cannot be listed here,
//! so a transfer keeps a journal to be resumed by.

use crate::azure::listing::{decode_hex, decode_modified, encode_modified};
use crate::credential::S3Credential;
use crate::data::{
    Block, Data, FolderMark, Key, Marks, Object, Page, Shape, StoreLimits, Sums, UnsupportedEntry,
};
use crate::transfer::BLOCK_BYTES;
use crate::web::{AskError, Connector, NoAnswer, Web};
use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::aws::{
    AmazonS3, AmazonS3Builder, AmazonS3ConfigKey, AwsAuthorizer, Checksum, S3ConditionalPut,
};
use object_store::client::{HttpRequest, HttpRequestBody};
use object_store::list::{PaginatedListOptions, PaginatedListStore};
use object_store::multipart::{MultipartStore, PartId};
use object_store::path::Path;
use object_store::signer::Signer;
use object_store::{
    Attribute, Attributes, CopyOptions, GetOptions, GetRange, ObjectMeta, ObjectStore,
    ObjectStoreExt, PutMode, PutMultipartOptions, PutOptions, RetryConfig,
};
use std::any::Any;
use std::ops::Range;
use std::time::Duration;
use towline_core::{Error, Result};

/// The name of the metadata that holds the object's BLAKE3. It has hyphens because many servers
/// drop headers with an underscore in their name.
const BLAKE3_METADATA: &str = "tow-blake3";
/// The name of the metadata that holds the time of the source.
const MODIFIED_METADATA: &str = "tow-modified";

/// Where a bucket is and how to reach it.
#[derive(Debug, Clone)]
pub struct Place {
    pub name: String,
    pub bucket: String,
    /// Everything lies below this; empty, or ending in `/`.
    pub root: String,
    pub endpoint: Option<String>,
    pub region: Option<String>,
    /// Without one: the standard variables, or the machine's role.
    pub credential: Option<S3Credential>,
}

#[derive(Debug)]
pub struct S3 {
    store: AmazonS3,
    web: Web,
    place: String,
    host: String,
    bucket: String,
    region: String,
    root: String,
}

impl S3 {
    pub fn new(place: Place, web: Web) -> Result<Self> {
        let shown = format!("{} (s3 {})", place.name, place.bucket);
        let wrong = |error: &dyn std::fmt::Display| {
            Error::config(format!(
                "{shown}: {}",
                error.to_string().lines().next().unwrap_or_default()
            ))
        };
        let from_variables = place.credential.is_none();
        let mut builder = if from_variables {
            AmazonS3Builder::from_env()
        } else {
            AmazonS3Builder::new()
        };
        builder = builder
            .with_bucket_name(&place.bucket)
            .with_checksum_algorithm(Checksum::SHA256)
            .with_conditional_put(S3ConditionalPut::ETagMatch)
            // Patience is the client's own.
            .with_retry(RetryConfig {
                max_retries: 0,
                ..RetryConfig::default()
            })
            .with_http_connector(Connector(web.clone()));
        let region = place
            .region
            .or_else(|| builder.get_config_value(&AmazonS3ConfigKey::Region))
            .unwrap_or_else(|| "us-east-1".to_owned());
        let mut host = format!("s3.{region}.amazonaws.com");
        builder = builder.with_region(&region);
        if let Some(endpoint) = place.endpoint {
            let url = url::Url::parse(&endpoint).map_err(|_| {
                wrong(&"`endpoint` is not an address such as https://s3.example.org")
            })?;
            url.host_str().unwrap_or_default().clone_into(&mut host);
            // A host that begins with the bucket's name wants it there only.
            let virtual_hosted = host.split('.').next() == Some(&place.bucket);
            builder = builder
                .with_allow_http(url.scheme() == "http")
                .with_virtual_hosted_style_request(virtual_hosted)
                .with_endpoint(endpoint);
        }
        if let Some(credential) = place.credential {
            builder = builder
                .with_access_key_id(credential.access_key_id.expose())
                .with_secret_access_key(credential.secret_access_key.expose());
            if let Some(token) = credential.session_token {
                builder = builder.with_token(token.expose());
            }
        }
        let store = builder.build().map_err(|error| wrong(&error))?;
        Ok(Self {
            store,
            web,
            place: shown,
            host,
            bucket: place.bucket,
            region,
            root: place.root,
        })
    }

    fn path(&self, key: &Key) -> Result<Path> {
        Path::parse(format!("{}{key}", self.root))
            .map_err(|error| Error::refused(format!("{key} cannot be a name here: {error}")))
    }

    fn explain(&self, error: object_store::Error) -> Error {
        use object_store::Error as Store;
        let mut deepest: &dyn std::error::Error = &error;
        loop {
            if let Some(problem) = deepest.downcast_ref::<NoAnswer>() {
                return problem.explain(&self.place, &self.host);
            }
            match deepest.source() {
                Some(deeper) => deepest = deeper,
                None => break,
            }
        }
        let said = said(&deepest.to_string());
        match error {
            Store::NotFound { .. } if said.contains("NoSuchBucket") => Error::not_found(format!(
                "{}: there is no bucket `{}`",
                self.place, self.bucket
            ))
            .hint("create it, or correct `bucket`"),
            Store::NotFound { path, .. } => {
                Error::not_found(format!("{}: there is no {path}", self.place))
            }
            Store::PermissionDenied { .. } | Store::Unauthenticated { .. } => {
                let error = Error::refused(format!("{} refuses: {said}", self.place));
                match said.as_str() {
                    text if text.contains("InvalidAccessKeyId") => error.hint(
                        "the access key is not known there: look at access_key_id and `endpoint`",
                    ),
                    text if text.contains("SignatureDoesNotMatch") => {
                        error.hint("the secret key does not fit the access key")
                    }
                    text if text.contains("RequestTimeTooSkewed") => {
                        error.hint("the clock here is wrong")
                    }
                    text if text.contains("ExpiredToken") => {
                        error.hint("the session token has expired; get a new one")
                    }
                    _ => error.hint("these credentials may not do this"),
                }
            }
            Store::Precondition { path, .. } | Store::NotModified { path, .. } => {
                Error::refused(format!("{path} was changed meanwhile"))
            }
            _ => Error::refused(format!("{}: {said}", self.place)),
        }
    }

    /// Takes the marks of folders out of a listing. Their names end in `/`, which the listing does
    /// not tell: an empty object that is not found by the name it tells is one.
    async fn marks_among(&self, objects: &mut Vec<Object>) -> Result<Vec<FolderMark>> {
        let empty: Vec<Key> = objects
            .iter()
            .filter(|object| object.size == 0)
            .map(|object| object.key.clone())
            .collect();
        let look = |key: Key| async move {
            Ok::<_, Error>(self.head(&key).await?.is_none().then_some(key))
        };
        let folders: Vec<Key> = stream::iter(empty)
            .map(look)
            .buffered(16)
            .try_filter_map(|key| async move { Ok(key) })
            .try_collect()
            .await?;
        objects.retain(|object| object.size > 0 || !folders.contains(&object.key));
        Ok(folders
            .into_iter()
            .map(|folder| FolderMark {
                folder,
                has_slash: true,
            })
            .collect())
    }

    /// Deletes `FOLDER/`, a name that a path of `object_store` cannot be.
    async fn delete_mark(&self, folder: Key) -> Result<()> {
        let address = self
            .store
            .signed_url(
                http::Method::DELETE,
                &self.path(&folder)?,
                Duration::from_secs(60),
            )
            .await
            .map_err(|error| self.explain(error))?;
        let address = format!(
            "{}/",
            address.as_str().split('?').next().unwrap_or_default()
        );
        let credential = self
            .store
            .credentials()
            .get_credential()
            .await
            .map_err(|error| self.explain(error))?;
        let make = || -> Result<http::Request<Bytes>> {
            let wrong = |error: &dyn std::fmt::Display| {
                Error::bug(format!(
                    "a request to {} cannot be made: {error}",
                    self.place
                ))
            };
            let mut request: HttpRequest = http::Request::new(HttpRequestBody::empty());
            *request.method_mut() = http::Method::DELETE;
            *request.uri_mut() = address
                .parse()
                .map_err(|error: http::uri::InvalidUri| wrong(&error))?;
            AwsAuthorizer::new(&credential, "s3", &self.region)
                .try_authorize(&mut request, None)
                .map_err(|error| wrong(&error))?;
            Ok(http::Request::from_parts(
                request.into_parts().0,
                Bytes::new(),
            ))
        };
        let answer = self.web.ask(make).await.map_err(|error| match error {
            AskError::Unmade(error) => error,
            AskError::Unanswered(problem) => problem.explain(&self.place, &self.host),
        })?;
        if answer.status.is_success() || answer.status == http::StatusCode::NOT_FOUND {
            return Ok(());
        }
        Err(Error::refused(format!(
            "{folder}/ in {}: the service answers {}",
            self.place,
            crate::web::said(&answer)
        )))
    }

    fn object(
        &self,
        meta: ObjectMeta,
        attributes: Option<&Attributes>,
    ) -> Result<Object, UnsupportedEntry> {
        let raw = meta.location.to_string();
        let below = raw.strip_prefix(&self.root).unwrap_or(&raw);
        let key = Key::new(below).map_err(|why| UnsupportedEntry {
            name: crate::data::shown(below),
            why,
            is_failure: true,
        })?;
        let text = |name: &'static str| {
            attributes?
                .get(&Attribute::Metadata(name.into()))
                .map(AsRef::as_ref)
        };
        let marks = Marks {
            md5: None,
            blake3: text(BLAKE3_METADATA).and_then(decode_hex),
            modified: text(MODIFIED_METADATA).and_then(decode_modified),
        };
        let changed = Some(meta.last_modified.timestamp_millis());
        Ok(Object {
            key,
            size: meta.size,
            changed,
            version: meta.e_tag,
            marks,
            marks_are_whole: attributes.is_some(),
        })
    }
}

/// The code and message of an error's XML, or its first line.
fn said(text: &str) -> String {
    match (
        crate::web::element(text.as_bytes(), "Code"),
        crate::web::element(text.as_bytes(), "Message"),
    ) {
        (Some(code), Some(message)) => format!("{code}: {message}"),
        (Some(code), None) => code,
        _ => text.lines().next().unwrap_or_default().to_owned(),
    }
}

fn attributes(marks: &Marks) -> Attributes {
    let mut attributes = Attributes::new();
    if let Some(hash) = marks.blake3 {
        attributes.insert(
            Attribute::Metadata(BLAKE3_METADATA.into()),
            blake3::Hash::from_bytes(hash).to_hex().to_string().into(),
        );
    }
    if let Some(modified) = marks.modified {
        attributes.insert(
            Attribute::Metadata(MODIFIED_METADATA.into()),
            encode_modified(modified).into(),
        );
    }
    attributes
}

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
            // A name that no path can have spoils its whole page.
            Err(object_store::Error::InvalidPath { source }) => {
                return Err(Error::refused(format!(
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
                Err(odd) => page.unsupported.push(odd),
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
        // One by one: not every service that speaks S3 knows the call for many.
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
        // One call copies at most 5 GiB, within a bucket.
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
                Error::refused("S3 signs addresses for a week at most").hint("use --for 7d")
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
