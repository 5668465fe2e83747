//! A container of Azure Blob Storage, or a part of one, over its REST interface.
//!
//! A block's id is its index and the beginning of its BLAKE3. So the service itself can say which
//! blocks of an interrupted upload it holds, and no journal is needed.

pub mod address;
mod block_id;
mod call;
pub mod cloud;
mod copy;
mod data;
pub mod endpoints;
pub mod identity;
pub(crate) mod listing;
mod part;
pub mod sas;
pub mod seam;
mod signed_url;
mod throttle;

use crate::credential::AzureCredential;
use crate::data::{Key, Marks, Object};
use crate::web::{Answer, Web};
use address::Endpoint;
use call::{Authorization, Call, Service, SignedIn};
use cloud::Cloud;
use http::{Method, StatusCode};
use object_store::azure::MicrosoftAzureBuilder;
use std::sync::Arc;
use towline_core::{Error, Result};

/// The address of a container, and how to reach it.
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

/// The credential for a container.
#[derive(Debug, Clone)]
pub enum Access {
    /// A credential of a datastore's configuration.
    Credential(AzureCredential),
    /// The token of the user who is signed in to a cloud.
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
        let authorization = match place.access {
            Access::Credential(AzureCredential::Sas(secret, key)) => {
                let sas = sas::Sas::parse(&secret).map_err(|error| error.while_doing(&shown))?;
                builder = builder.with_sas_authorization(sas.pairs());
                Authorization::Sas(sas, key)
            }
            Access::Credential(AzureCredential::Key(key)) => {
                builder = builder.with_access_key(key.expose().trim());
                Authorization::Key(key)
            }
            Access::Credential(AzureCredential::Cli) => {
                builder = builder.with_use_azure_cli(true);
                Authorization::Token("azure_cli")
            }
            Access::Credential(AzureCredential::Managed(client)) => {
                builder = builder.with_credential_type("managed_identity");
                // App Service, Functions and Container Apps name the address of their identity.
                if let Some(address) = client.endpoint {
                    builder = builder.with_msi_endpoint(address);
                }
                if let Some(id) = client.id {
                    builder = builder.with_client_id(id);
                }
                Authorization::Token("managed_identity")
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
                Authorization::Token("the service principal")
            }
            Access::SignedIn(cloud) => {
                builder = builder.with_credentials(Arc::new(SignedIn(cloud)));
                Authorization::Token("whoever is signed in")
            }
        };
        let signer = builder.build().map_err(|error| match authorization {
            Authorization::Key(_) => {
                Error::config(format!("{shown}: the account key is not base64"))
            }
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
            authorization,
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
            disk_bytes: None,
            changed,
            version: answer.header("etag").map(str::to_owned),
            marks,
            marks_are_whole: true,
        })
    }
}

/// An error for a key with a backslash, because the service turns it into a slash.
fn can_be_a_name(key: &Key) -> Result<()> {
    if key.as_str().contains('\\') {
        return Err(Error::unsupported(format!(
            "{key} cannot be a name in Azure: it makes a `/` of the backslash"
        ))
        .hint("rename it"));
    }
    Ok(())
}

/// Whether a blob stands for a folder. blobfuse and Hadoop say so in its metadata, an account with
/// a hierarchical namespace in a header.
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
