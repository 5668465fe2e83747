//! The stage: objects in the workspace's own datastore, read and written with any credential that
//! works.

use super::client::{good, refusal, url};
use super::site::AzureSite;
use serde_json::Value;
use std::time::{Duration, Instant};
use towline_core::cloud::{BlobAccess, BlobPlace, Call, Cloud, Item, Objects};
use towline_core::redact::Secret;
use towline_core::{Error, Result};

/// How long a signature is used; the service signs for an hour at least.
const SIGNATURE_LIFETIME: Duration = Duration::from_secs(45 * 60);

#[derive(Debug)]
pub(super) struct Stage {
    objects: Box<dyn Objects>,
    made: Instant,
    by_key: bool,
}

impl Stage {
    pub(super) fn open(cloud: &dyn Cloud, site: &AzureSite) -> Result<Self> {
        let path = format!(
            "{}/datastores/{}/listSecrets",
            site.scope.id(),
            site.store.name
        );
        let reply = cloud.call(&Call::post(url(cloud, &path), Value::Null).repeatable())?;
        let access = match reply.status {
            // The workspace's storage accepts only identities, or the user's role may not read
            // keys. Then the signed-in user's token may work.
            400 | 401 | 403 | 404 => BlobAccess::Token,
            _ => access(&good("the workspace's storage", &reply)?)
                .ok_or_else(|| refusal("the workspace's storage", &reply))?,
        };
        Self::with(cloud, site, access)
    }

    /// With the token of the signed-in user.
    pub(super) fn by_token(cloud: &dyn Cloud, site: &AzureSite) -> Result<Self> {
        Self::with(cloud, site, BlobAccess::Token)
    }

    fn with(cloud: &dyn Cloud, site: &AzureSite, access: BlobAccess) -> Result<Self> {
        let (store, by_key) = (&site.store, matches!(access, BlobAccess::Key(_)));
        let place = BlobPlace {
            account: store.account.clone(),
            container: store.container.clone(),
            endpoint: store.endpoint.clone(),
            root: String::new(),
            access,
        };
        Ok(Self {
            objects: cloud.objects(&place)?,
            made: Instant::now(),
            by_key,
        })
    }

    pub(super) const fn is_by_key(&self) -> bool {
        self.by_key
    }

    pub(super) fn is_old(&self) -> bool {
        self.made.elapsed() > SIGNATURE_LIFETIME
    }

    pub(super) fn put(&self, key: &str, bytes: &[u8], once: bool) -> Result<bool> {
        self.objects.put(key, bytes, once)
    }
    pub(super) fn get(&self, key: &str) -> Result<Option<Vec<u8>>> {
        self.objects.get(key, None)
    }
    pub(super) fn range(&self, key: &str, range: std::ops::Range<u64>) -> Result<Option<Vec<u8>>> {
        self.objects.get(key, Some(range))
    }
    pub(super) fn get_all(&self, keys: &[String]) -> Result<Vec<Option<Vec<u8>>>> {
        self.objects.get_all(keys)
    }
    pub(super) fn sizes(&self, keys: &[String]) -> Result<Vec<Option<u64>>> {
        self.objects.sizes(keys)
    }
    pub(super) fn list(&self, prefix: &str) -> Result<Vec<Item>> {
        self.objects.list(prefix)
    }
    pub(super) fn delete(&self, keys: &[String]) -> Result<()> {
        self.objects.delete(keys)
    }
    /// Reads a JSON object. An object of another shape is an error that names it.
    pub(super) fn json<T: serde::de::DeserializeOwned>(&self, key: &str) -> Result<Option<T>> {
        let Some(bytes) = self.get(key)? else {
            return Ok(None);
        };
        serde_json::from_slice(&bytes).map(Some).map_err(|error| {
            Error::refused(format!("{key} in the workspace's datastore cannot be read"))
                .source_error(error)
        })
    }
}

fn access(secrets: &Value) -> Option<BlobAccess> {
    let text = |key: &str| {
        secrets[key]
            .as_str()
            .map(|text| Secret::new(text.trim_start_matches('?')))
    };
    match secrets["secretsType"].as_str() {
        Some("AccountKey") => text("key").map(BlobAccess::Key),
        Some("Sas") => text("sasToken").map(BlobAccess::Sas),
        _ => Some(BlobAccess::Token),
    }
}
