//! The addresses of a cloud's services, and the audiences of tokens for them. Those of the public
//! cloud are built in; any other cloud describes itself at its resource manager.

use super::identity::cache::Cache;
use super::identity::grant::secure;
use crate::retry::RequestRetry;
use crate::web::{AskError, WebWhenNeeded};
use bytes::Bytes;
use http::Request;
use serde_json::{Value, json};
use towline_core::{Error, Result};

/// The resource manager of the public cloud.
pub const PUBLIC_CLOUD: &str = "https://management.azure.com";
/// The API version of the call that describes a cloud.
const METADATA_API_VERSION: &str = "2022-09-01";
/// The description of a cloud is kept for this long.
const CACHE_MILLIS: u64 = 24 * 3600 * 1000;

/// Addresses without a slash at their end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoints {
    /// The login service.
    pub authority: String,
    /// The audiences of tokens: the resource manager, the workspace's own services, Key Vault, blob
    /// storage.
    pub management: String,
    pub workspace: String,
    pub vault: String,
    pub storage: String,
    /// The end of the storage services' host names: `core.windows.net`.
    pub storage_suffix: String,
    /// The end of vaults' host names: `vault.azure.net`.
    pub vault_suffix: String,
}

impl Endpoints {
    pub fn public() -> Self {
        Self {
            authority: "https://login.microsoftonline.com".to_owned(),
            management: PUBLIC_CLOUD.to_owned(),
            workspace: "https://ml.azure.com".to_owned(),
            vault: "https://vault.azure.net".to_owned(),
            storage: "https://storage.azure.com".to_owned(),
            storage_suffix: "core.windows.net".to_owned(),
            vault_suffix: "vault.azure.net".to_owned(),
        }
    }

    /// The endpoints of the cloud whose resource manager is at `endpoint`; fetched once a day.
    pub(super) async fn of(
        at: &str,
        endpoint: &str,
        web: &WebWhenNeeded,
        cache: &Cache,
    ) -> Result<Self> {
        if endpoint == PUBLIC_CLOUD {
            return Ok(Self::public());
        }
        secure(endpoint)?;
        let name = ["endpoints", endpoint];
        let now = towline_host::clock::now();
        let known = cache.get(&name).filter(|known| {
            known["at"]
                .as_i64()
                .is_some_and(|then| now.since(towline_core::time::Moment(then)) < CACHE_MILLIS)
        });
        if let Some(found) = known.and_then(|known| Self::read(endpoint, known.get("told")?)) {
            return Ok(found);
        }
        let url = format!("{endpoint}/metadata/endpoints?api-version={METADATA_API_VERSION}");
        let answer = web
            .get()?
            .ask_with(RequestRetry::of_a_call(true), || {
                Request::get(&url).body(Bytes::new())
            })
            .await
            .map_err(|error| match error {
                AskError::Unmade(_) => Error::config(format!(
                    "{at}: `endpoint` is not an address such as {PUBLIC_CLOUD}"
                )),
                AskError::Unanswered(problem) => {
                    problem.explain(&format!("{at}: {endpoint}"), endpoint)
                }
            })?;
        let description: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        let found = Self::read(endpoint, &description)
            .filter(|_| answer.status.is_success())
            .ok_or_else(|| {
                let error = Error::config(format!(
                    "{at}: {endpoint} does not tell what cloud it is ({})",
                    answer.message()
                ));
                error.hint(format!(
                    "`endpoint` is the address of a resource manager, such as {PUBLIC_CLOUD}"
                ))
            })?;
        cache.put(
            &name,
            &json!({"version": 1, "at": now, "told": description}),
        );
        Ok(found)
    }

    /// Reads the description of a cloud; `None` if it names no login service.
    fn read(endpoint: &str, description: &Value) -> Option<Self> {
        let description = description.get(0).unwrap_or(description);
        let text = |path: &str| {
            description
                .pointer(path)
                .and_then(Value::as_str)
                .map(|text| text.trim_end_matches('/').to_owned())
                .filter(|text| !text.is_empty())
        };
        let public = Self::public();
        // No cloud names the address of its Azure ML; it is beside the portal. The audience of
        // vaults is the end of their host names.
        let beside_portal = text("/portal").and_then(|portal| {
            portal
                .strip_prefix("https://portal.")
                .map(|domain| format!("https://ml.{domain}"))
        });
        let vault_suffix =
            text("/suffixes/keyVaultDns").map(|suffix| suffix.trim_start_matches('.').to_owned());
        Some(Self {
            authority: text("/authentication/loginEndpoint")?,
            management: text("/authentication/audiences/0").unwrap_or_else(|| endpoint.to_owned()),
            workspace: beside_portal.unwrap_or(public.workspace),
            vault: vault_suffix
                .as_ref()
                .filter(|suffix| suffix.starts_with("vault."))
                .map_or(public.vault, |suffix| format!("https://{suffix}")),
            storage: public.storage,
            storage_suffix: text("/suffixes/storage").unwrap_or(public.storage_suffix),
            vault_suffix: vault_suffix.unwrap_or(public.vault_suffix),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_description_of_a_cloud_is_read() {
        let endpoint = "https://management.usgovcloudapi.net";
        let description = json!({
            "authentication": {"loginEndpoint": "https://login.microsoftonline.us/", "audiences": ["https://management.core.usgovcloudapi.net/", endpoint]},
            "portal": "https://portal.azure.us",
            "suffixes": {"storage": "core.usgovcloudapi.net", "keyVaultDns": ".vault.usgovcloudapi.net"},
        });
        let found = Endpoints::read(endpoint, &description).expect("a cloud");
        assert_eq!(found.authority, "https://login.microsoftonline.us");
        assert_eq!(
            found.management,
            "https://management.core.usgovcloudapi.net"
        );
        assert_eq!(
            (found.workspace.as_str(), found.vault_suffix.as_str()),
            ("https://ml.azure.us", "vault.usgovcloudapi.net")
        );
        assert_eq!(found.vault, "https://vault.usgovcloudapi.net");
        assert_eq!(
            Endpoints::read(endpoint, &json!([description])),
            Some(found),
            "older forms are lists"
        );
        let another = json!({
            "portal": "https://portal.cloud.example/", "authentication": {"loginEndpoint": "https://login.cloud.example"},
            "suffixes": {"keyVaultDns": ".vault.cloud.example"},
        });
        let another =
            Endpoints::read("https://management.cloud.example", &another).expect("a cloud");
        assert_eq!(
            (another.workspace.as_str(), another.vault.as_str()),
            ("https://ml.cloud.example", "https://vault.cloud.example"),
            "a cloud that nobody knew"
        );
        let bare = Endpoints::read(
            "https://stack",
            &json!({"authentication": {"loginEndpoint": "https://login"}}),
        )
        .expect("a cloud");
        assert_eq!(
            (bare.management.as_str(), bare.storage_suffix.as_str()),
            ("https://stack", "core.windows.net")
        );
        for nothing in [
            json!({}),
            json!([]),
            json!("x"),
            json!({"authentication": {"loginEndpoint": ""}}),
        ] {
            assert_eq!(Endpoints::read(endpoint, &nothing), None);
        }
    }
}
