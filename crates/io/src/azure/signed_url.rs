//! Addresses of blobs that others can read.

use super::address::query;
use super::call::Authorization;
use super::{Azure, sas};
use crate::data::Key;
use http::Method;
use object_store::signer::Signer;
use std::time::Duration;
use towline_core::{Error, Result};

impl Azure {
    /// An address from which another service can read the blob. If our credential is a SAS, the
    /// address has that SAS.
    pub(super) async fn source_url(&self, key: &Key, valid: Duration) -> Result<String> {
        match &self.service.authorization {
            Authorization::Sas(sas, _) => Ok(self.url_with(key, &sas.pairs())),
            _ => self.signed_url(key, valid).await,
        }
    }

    pub(super) fn url_with(&self, key: &Key, pairs: &[(String, String)]) -> String {
        let pairs: Vec<(&str, &str)> = pairs
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        format!("{}{}", self.bare_url(key), query(&pairs))
    }

    /// An address that lets anybody read this one blob and nothing else.
    pub(super) async fn signed_url(&self, key: &Key, valid: Duration) -> Result<String> {
        let full = self.full(key);
        let pairs = match &self.service.authorization {
            Authorization::Sas(_, None) => {
                let error = Error::unsupported(format!(
                    "{} is reached by a SAS, and a SAS cannot sign an address for one file",
                    self.service.place
                ));
                return Err(error.hint(
                    "give the account's key as well: `credential: {sas: …, account_key: …}`",
                ));
            }
            Authorization::Sas(_, Some(secret)) | Authorization::Key(secret) => sas::sign_read(
                secret,
                &self.service.account,
                &self.service.container,
                &full,
                valid,
            )?,
            Authorization::Token(_) => {
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
}
