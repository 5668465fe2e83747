//! A container of Azure Blob Storage, or a part of one, over its REST interface.
//!
//! A block's id is its index and the beginning of its BLAKE3. So an upload that was cut off is
//! resumed by asking the service which blocks it holds; nothing is kept here.

pub mod address;
mod call;
pub mod cloud;
mod copy;
pub mod endpoints;
pub mod identity;
pub(crate) mod listing;
mod part;
mod quiet;
pub mod sas;
pub mod seam;

use crate::credential::AzureCredential;
use crate::data::{Block, Data, FolderMark, Key, Marks, Object, Page, Shape, StoreLimits, Sums};
use crate::transfer::BLOCK_BYTES;
use crate::transfer::md5_lanes::{OnItsWay, md5_batched};
use crate::web::{Answer, Web};
use address::{Endpoint, query};
use async_trait::async_trait;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use call::{Call, Means, Service, SignedIn};
use cloud::Cloud;
use futures_util::{StreamExt, TryStreamExt, stream};
use http::{Method, StatusCode};
use object_store::azure::MicrosoftAzureBuilder;
use object_store::signer::Signer;
use std::any::Any;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use towline_core::{Error, Result};

/// Where a container is and how to reach it.
#[derive(Debug, Clone)]
pub struct Place {
    /// The datastore's name in the configuration.
    pub name: String,
    pub account: String,
    pub container: String,
    /// Everything lies below this; empty, or ending in `/`.
    pub root: String,
    pub endpoint: Option<String>,
    pub access: Access,
}

/// What lets in.
#[derive(Debug, Clone)]
pub enum Access {
    /// As the configuration of a datastore has it.
    Credential(AzureCredential),
    /// The token of whoever is signed in to a cloud.
    SignedIn(Arc<Cloud>),
}

#[derive(Debug)]
pub struct Azure {
    service: Service,
    root: String,
}

impl Azure {
    pub fn new(place: Place, web: Web) -> Result<Self> {
        let endpoint = Endpoint::new(place.endpoint.as_deref(), &place.account)?;
        let shown = format!(
            "{} (azure_blob {}/{})",
            place.name, place.account, place.container
        );
        let mut builder = MicrosoftAzureBuilder::new()
            .with_account(&place.account)
            .with_container_name(&place.container)
            .with_endpoint(endpoint.as_str().to_owned())
            .with_allow_http(endpoint.as_str().starts_with("http://"))
            .with_http_connector(crate::web::Connector(web.clone()));
        let means = match place.access {
            Access::Credential(AzureCredential::Sas(secret, key)) => {
                let sas = sas::Sas::parse(&secret).map_err(|error| error.while_doing(&shown))?;
                builder = builder.with_sas_authorization(sas.pairs());
                Means::Sas(sas, key)
            }
            Access::Credential(AzureCredential::Key(key)) => {
                builder = builder.with_access_key(key.expose().trim());
                Means::Key(key)
            }
            Access::Credential(AzureCredential::Cli) => {
                builder = builder.with_use_azure_cli(true);
                Means::Token("azure_cli")
            }
            Access::Credential(AzureCredential::Managed(client)) => {
                builder = builder.with_credential_type("managed_identity");
                // App Service, Functions and Container Apps say where their identity answers.
                if let Some(address) = client.endpoint {
                    builder = builder.with_msi_endpoint(address);
                }
                if let Some(id) = client.id {
                    builder = builder.with_client_id(id);
                }
                Means::Token("managed_identity")
            }
            Access::Credential(AzureCredential::Principal {
                tenant_id,
                client_id,
                client_secret,
            }) => {
                builder = builder.with_client_secret_authorization(
                    client_id,
                    client_secret.expose().trim(),
                    tenant_id,
                );
                Means::Token("the service principal")
            }
            Access::SignedIn(cloud) => {
                builder = builder.with_credentials(Arc::new(SignedIn(cloud)));
                Means::Token("whoever is signed in")
            }
        };
        let signer = builder.build().map_err(|error| match means {
            Means::Key(_) => Error::config(format!("{shown}: the account key is not base64")),
            _ => Error::config(format!(
                "{shown}: {}",
                error.to_string().lines().next().unwrap_or_default()
            )),
        })?;
        let provider = signer.credentials().clone();
        let service = Service {
            web,
            endpoint,
            account: place.account,
            container: place.container,
            place: shown,
            means,
            provider,
            signer,
        };
        Ok(Self {
            service,
            root: place.root,
        })
    }

    fn full(&self, key: &Key) -> String {
        format!("{}{key}", self.root)
    }

    fn bare_url(&self, key: &Key) -> String {
        self.service
            .endpoint
            .url(&self.service.container, Some(&self.full(key)))
    }

    /// An address for another service to read from: with the store's own SAS, where that is the
    /// credential.
    async fn source_url(&self, key: &Key, valid: Duration) -> Result<String> {
        match &self.service.means {
            Means::Sas(sas, _) => Ok(self.url_with(key, &sas.pairs())),
            _ => self.signed_url(key, valid).await,
        }
    }

    fn url_with(&self, key: &Key, pairs: &[(String, String)]) -> String {
        let pairs: Vec<(&str, &str)> = pairs
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        format!("{}{}", self.bare_url(key), query(&pairs))
    }

    /// An address that lets anybody read this one blob, and nothing else.
    async fn signed_url(&self, key: &Key, valid: Duration) -> Result<String> {
        let full = self.full(key);
        let pairs = match &self.service.means {
            Means::Sas(_, None) => {
                let error = Error::refused(format!(
                    "{} is reached by a SAS, and a SAS cannot sign an address for one file",
                    self.service.place
                ));
                return Err(error.hint(
                    "give the account's key as well: `credential: {sas: …, account_key: …}`",
                ));
            }
            Means::Sas(_, Some(secret)) | Means::Key(secret) => sas::sign_read(
                secret,
                &self.service.account,
                &self.service.container,
                &full,
                valid,
            )?,
            Means::Token(_) => {
                let path = object_store::path::Path::parse(&full)
                    .map_err(|error| Error::refused(error.to_string()))?;
                let signed = self
                    .service
                    .signer
                    .signed_url(Method::GET, &path, valid)
                    .await;
                let url = signed.map_err(|error| {
                    Error::refused(format!("no address can be signed: {error}"))
                        .hint("a credential by account key can")
                })?;
                return Ok(url.to_string());
            }
        };
        Ok(self.url_with(key, &pairs))
    }

    async fn delete_one(&self, name: String) -> Result<()> {
        let call =
            Call::new(Method::DELETE, Some(&name), 'd').header("x-ms-delete-snapshots", "include");
        let answer = self.service.ask(&call).await?;
        match answer.status {
            StatusCode::ACCEPTED => Ok(()),
            StatusCode::NOT_FOUND
                if answer.header("x-ms-error-code") != Some("ContainerNotFound") =>
            {
                Ok(())
            }
            _ => Err(self.service.explain(&call, &answer)),
        }
    }

    fn object(&self, key: &Key, answer: &Answer) -> Result<Object> {
        let size = answer
            .header("content-length")
            .and_then(|length| length.parse().ok());
        let size = size.ok_or_else(|| {
            Error::unreachable(format!(
                "{}: the size of {key} is not told",
                self.service.place
            ))
        })?;
        let meta = |name: &str| answer.header(&format!("x-ms-meta-{name}"));
        let marks = Marks {
            md5: answer.header("content-md5").and_then(listing::decode_md5),
            blake3: meta(listing::BLAKE3_METADATA).and_then(listing::decode_hex),
            modified: meta(listing::MODIFIED_METADATA).and_then(listing::decode_modified),
        };
        let changed = answer.header("last-modified").and_then(listing::millis);
        Ok(Object {
            key: key.clone(),
            size,
            changed,
            version: answer.header("etag").map(str::to_owned),
            marks,
            marks_are_whole: true,
        })
    }
}

/// The service takes a backslash for a slash, so that the file would come to lie elsewhere.
fn can_be_a_name(key: &Key) -> Result<()> {
    if key.as_str().contains('\\') {
        return Err(Error::refused(format!(
            "{key} cannot be a name in Azure: it makes a `/` of the backslash"
        ))
        .hint("rename it"));
    }
    Ok(())
}

/// A blob that stands for a folder: blobfuse and Hadoop say so beside it, an account with real
/// folders in a header.
fn is_folder(answer: &Answer) -> bool {
    answer.header("x-ms-meta-hdi_isfolder") == Some("true")
        || answer.header("x-ms-resource-type") == Some("directory")
}

fn with_marks(mut call: Call, marks: &Marks) -> Call {
    if let Some(hash) = marks.blake3 {
        call = call.header(
            "x-ms-meta-tow_blake3",
            blake3::Hash::from_bytes(hash).to_hex().as_str(),
        );
    }
    if let Some(modified) = marks.modified {
        call = call.header("x-ms-meta-tow_modified", listing::encode_modified(modified));
    }
    call
}

/// All ids of a blob have one length: 20 bytes, 28 characters.
fn block_id(index: u32, digest: [u8; 16]) -> String {
    BASE64_STANDARD.encode([&index.to_be_bytes()[..], &digest].concat())
}

/// The index and digest in an id of ours; blocks of other tools have none.
fn read_block_id(id: &str) -> Option<(u32, [u8; 16])> {
    let bytes: [u8; 20] = BASE64_STANDARD.decode(id).ok()?.try_into().ok()?;
    let (index, digest) = bytes.split_at(4);
    Some((
        u32::from_be_bytes(index.try_into().ok()?),
        digest.try_into().ok()?,
    ))
}

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
        let answer = self.service.demand(&call, &[StatusCode::OK]).await?;
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
            _ => Err(self.service.explain_silent(&call, &answer).await),
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
            .demand(&call, &[StatusCode::PARTIAL_CONTENT, StatusCode::OK])
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
        let on_its_way = OnItsWay::begin();
        let answer = self.service.ask(&call).await?;
        drop(on_its_way);
        match answer.status {
            StatusCode::CREATED => Ok(true),
            StatusCode::CONFLICT | StatusCode::PRECONDITION_FAILED if create => {
                // An earlier try of this very call may have made it.
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
            // One that may write need not be allowed to read: then all is sent.
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
        let _on_its_way = OnItsWay::begin();
        self.service.demand(&call, &[StatusCode::CREATED]).await?;
        Ok(Block {
            index,
            size,
            digest: Some(sums.digest()),
            tag,
        })
    }

    async fn finish(&self, key: &Key, _: &str, blocks: &[Block], marks: &Marks) -> Result<()> {
        let mut body = String::from("<?xml version=\"1.0\" encoding=\"utf-8\"?><BlockList>");
        // `Latest` also finds committed ones: a try whose answer was lost may be repeated.
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
            .demand(&call, &[StatusCode::CREATED])
            .await
            .map(|_| ())
    }

    /// Blocks without a list are forgotten by the service within a week.
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
        // One after the other, what lies deeper first: an account with real folders removes only
        // empty ones.
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
        match &self.service.means {
            Means::Sas(sas, _) => Some((
                self.url_with(key, &sas.pairs()),
                sas.allows(&self.service.container),
            )),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn block_ids_have_one_length_and_read_back() {
        for (index, digest) in [
            (0, [0; 16]),
            (49_999, [255; 16]),
            (u32::MAX, *b"0123456789abcdef"),
        ] {
            let id = block_id(index, digest);
            assert_eq!(id.len(), 28);
            assert_eq!(read_block_id(&id), Some((index, digest)));
        }
        assert_eq!(read_block_id("YmxvY2stMDAwMDAx"), None, "another tool's");
    }
}
