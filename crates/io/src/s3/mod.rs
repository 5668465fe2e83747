//! A bucket of S3 or of a compatible service, or a part of one.
//!
//! Every call carries a SHA-256 that the service checks. The parts of an upload are not listed, so
//! a transfer needs a journal to be resumed.

mod data;
mod explain;
mod folder_marks;

use crate::azure::listing::{decode_hex, decode_modified, encode_modified};
use crate::credential::S3Credential;
use crate::data::{Key, Marks, Object, UnsupportedEntry};
use crate::web::{Connector, Web};
use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey, Checksum, S3ConditionalPut};
use object_store::path::Path;
use object_store::{Attribute, Attributes, ObjectMeta, RetryConfig};
use towline_core::{Error, Result};

/// The name of the metadata that holds the object's BLAKE3. It has hyphens because many servers
/// drop headers with an underscore in their name.
const BLAKE3_METADATA: &str = "tow-blake3";
/// The name of the metadata that holds the time of the source.
const MODIFIED_METADATA: &str = "tow-modified";

/// The address of a bucket, and how to reach it.
#[derive(Debug, Clone)]
pub struct Place {
    pub name: String,
    pub bucket: String,
    /// Everything lies below this; empty, or ending in `/`.
    pub root: String,
    pub endpoint: Option<String>,
    pub region: Option<String>,
    /// `None` means the standard variables, or the machine's role.
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
            // Our own client retries.
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
            // A host that begins with the bucket's name takes no bucket in the path.
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
            .map_err(|error| Error::unsupported(format!("{key} cannot be a name here: {error}")))
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
            disk_bytes: None,
            changed,
            version: meta.e_tag,
            marks,
            marks_are_whole: attributes.is_some(),
        })
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
