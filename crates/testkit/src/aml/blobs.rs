//! The blob service, as the emulator itself uses it. Every call blocks.

use super::answer::{Answer, Body};
use super::call::Call;
use crate::real::{Account, Azurite};
use quick_xml::escape::unescape;
use reqwest::{Client, Method, StatusCode};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;

/// The largest append.
const MAX_APPEND_BYTES: usize = 4 << 20;

type Outcome<T> = Result<T, String>;

#[derive(Debug)]
pub(super) struct Blobs {
    pub account: Account,
    port: u16,
    client: Client,
    handle: Handle,
}

impl Blobs {
    pub(super) fn new(azurite: &Azurite, handle: Handle) -> Self {
        let mut roots = RootCertStore::empty();
        let authority = azurite.authority().unwrap();
        roots
            .add(CertificateDer::from_pem_file(authority).unwrap())
            .unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap();
        let config = config.with_root_certificates(roots).with_no_client_auth();
        // Azurite closes connections that are idle for five seconds; a request at that moment would
        // fail.
        let client = Client::builder()
            .tls_backend_preconfigured(config)
            .no_proxy()
            .pool_idle_timeout(Duration::from_secs(2))
            .build()
            .unwrap();
        Self {
            account: azurite.first().clone(),
            port: azurite.port(),
            client,
            handle,
        }
    }

    /// `core.localhost:PORT`
    pub(super) fn suffix(&self) -> String {
        format!("core.localhost:{}", self.port)
    }
    /// The address for clients, with the account's own host name.
    pub(super) fn address(&self, container: &str, name: &str) -> String {
        let end = if name.is_empty() {
            String::new()
        } else {
            format!("/{}", encoded(name))
        };
        format!(
            "https://{}.blob.{}/{container}{end}",
            self.account.name,
            self.suffix()
        )
    }
    /// Container and blob of an address in either style; none if it belongs to another service.
    pub(super) fn place(&self, address: &str) -> Option<(String, String)> {
        let url = url::Url::parse(address).ok()?;
        let path = percent_encoding::percent_decode_str(url.path())
            .decode_utf8()
            .ok()?
            .into_owned();
        let path = path.trim_start_matches('/');
        let own_host = url
            .host_str()?
            .starts_with(&format!("{}.blob.", self.account.name));
        let path = if own_host {
            path
        } else {
            path.strip_prefix(&format!("{}/", self.account.name))?
        };
        let (container, name) = path.split_once('/').unwrap_or((path, ""));
        Some((container.to_owned(), name.to_owned()))
    }

    /// It is no error if it exists.
    pub(super) fn make_container(&self, name: &str) -> Outcome<()> {
        let target = format!("{name}?restype=container");
        self.send(
            Method::PUT,
            &target,
            &[],
            Vec::new(),
            &[StatusCode::CREATED, StatusCode::CONFLICT],
        )
        .map(drop)
    }
    pub(super) fn put(&self, container: &str, name: &str, bytes: Vec<u8>) -> Outcome<()> {
        let target = format!("{container}/{}", encoded(name));
        self.send(
            Method::PUT,
            &target,
            &[("x-ms-blob-type", "BlockBlob")],
            bytes,
            &[StatusCode::CREATED],
        )
        .map(drop)
    }
    pub(super) fn make_append(&self, container: &str, name: &str) -> Outcome<()> {
        let target = format!("{container}/{}", encoded(name));
        self.send(
            Method::PUT,
            &target,
            &[("x-ms-blob-type", "AppendBlob")],
            Vec::new(),
            &[StatusCode::CREATED],
        )
        .map(drop)
    }
    pub(super) fn append(&self, container: &str, name: &str, bytes: &[u8]) -> Outcome<()> {
        let target = format!("{container}/{}?comp=appendblock", encoded(name));
        bytes.chunks(MAX_APPEND_BYTES).try_for_each(|block| {
            self.send(
                Method::PUT,
                &target,
                &[],
                block.to_vec(),
                &[StatusCode::CREATED],
            )
            .map(drop)
        })
    }
    /// None if it does not exist.
    pub(super) fn get(&self, container: &str, name: &str) -> Outcome<Option<Vec<u8>>> {
        let target = format!("{container}/{}", encoded(name));
        let (status, bytes) = self.send(
            Method::GET,
            &target,
            &[],
            Vec::new(),
            &[StatusCode::OK, StatusCode::NOT_FOUND],
        )?;
        Ok((status == StatusCode::OK).then_some(bytes))
    }
    /// Every container of the account.
    pub(super) fn containers(&self) -> Outcome<Vec<String>> {
        let (_, bytes) = self.send(
            Method::GET,
            "?comp=list",
            &[],
            Vec::new(),
            &[StatusCode::OK],
        )?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        Ok(text
            .split("<Container>")
            .skip(1)
            .map(|entry| inside(entry, "Name"))
            .collect())
    }
    /// It is no error if it is gone.
    pub(super) fn delete(&self, container: &str, name: &str) -> Outcome<()> {
        let target = format!("{container}/{}", encoded(name));
        self.send(
            Method::DELETE,
            &target,
            &[],
            Vec::new(),
            &[StatusCode::ACCEPTED, StatusCode::NOT_FOUND],
        )
        .map(drop)
    }
    /// All names that begin so, each with a mark that changes with its bytes.
    pub(super) fn list_marked(
        &self,
        container: &str,
        prefix: &str,
    ) -> Outcome<Vec<(String, String)>> {
        self.list_entries(container, prefix, |entry| {
            (inside(entry, "Name"), inside(entry, "Etag"))
        })
    }
    /// All names that begin so, with their sizes. A missing container is an error, because an empty
    /// answer would hide the caller's mistake.
    pub(super) fn list(&self, container: &str, prefix: &str) -> Outcome<Vec<(String, u64)>> {
        self.list_entries(container, prefix, |entry| {
            (
                inside(entry, "Name"),
                inside(entry, "Content-Length").parse().unwrap_or(0),
            )
        })
    }
    fn list_entries<T>(
        &self,
        container: &str,
        prefix: &str,
        read: impl Fn(&str) -> T,
    ) -> Outcome<Vec<T>> {
        let (mut found, mut marker) = (Vec::new(), String::new());
        loop {
            let target = format!(
                "{container}?restype=container&comp=list&prefix={}&marker={}",
                word(prefix),
                word(&marker)
            );
            let (_, bytes) = self.send(Method::GET, &target, &[], Vec::new(), &[StatusCode::OK])?;
            let text = String::from_utf8_lossy(&bytes).into_owned();
            found.extend(text.split("<Blob>").skip(1).map(&read));
            marker = inside(&text, "NextMarker");
            if marker.is_empty() {
                return Ok(found);
            }
        }
    }

    /// A request to another service of the same cloud: status and answer.
    pub(super) fn ask(
        &self,
        method: Method,
        url: &str,
        token: &str,
        body: Option<&serde_json::Value>,
    ) -> Outcome<(u16, serde_json::Value)> {
        let mut request = self.client.request(method, url).bearer_auth(token);
        if let Some(body) = body {
            request = request
                .header("Content-Type", "application/json")
                .body(body.to_string());
        }
        self.handle.block_on(async {
            let answer = request
                .send()
                .await
                .map_err(|error| format!("{url}: {error:?}"))?;
            let status = answer.status().as_u16();
            let bytes = answer
                .bytes()
                .await
                .map_err(|error| format!("{url}: {error:?}"))?;
            Ok((status, serde_json::from_slice(&bytes).unwrap_or_default()))
        })
    }

    /// Forwards a request for the blob service, and returns its answer.
    pub(super) fn pass_on(&self, call: &Call) -> Outcome<Answer> {
        let method =
            Method::from_bytes(call.method.as_bytes()).map_err(|error| error.to_string())?;
        let mut request = self.client.request(
            method,
            format!(
                "https://{}.blob.{}{}",
                self.account.name,
                self.suffix(),
                call.target
            ),
        );
        for (name, value) in call
            .headers
            .iter()
            .filter(|(name, _)| name != "host" && name != "connection")
        {
            request = request.header(name, value);
        }
        self.handle.block_on(async {
            let response = request
                .body(call.body.clone())
                .send()
                .await
                .map_err(|error| error.to_string())?;
            let mut answer = Answer::empty(response.status().as_u16());
            for (name, value) in response
                .headers()
                .iter()
                .filter(|(name, _)| !["transfer-encoding", "connection"].contains(&name.as_str()))
            {
                answer = answer.with(name.as_str(), String::from_utf8_lossy(value.as_bytes()));
            }
            answer.body = Body::Bytes(
                response
                    .bytes()
                    .await
                    .map_err(|error| error.to_string())?
                    .to_vec(),
            );
            Ok(answer)
        })
    }

    fn send(
        &self,
        method: Method,
        target: &str,
        headers: &[(&str, &str)],
        body: Vec<u8>,
        fine: &[StatusCode],
    ) -> Outcome<(StatusCode, Vec<u8>)> {
        let mark = if target.contains('?') { '&' } else { '?' };
        let url = format!(
            "{}/{target}{mark}{}",
            self.account.endpoint,
            self.account.sas("rwdlac", 3600)
        );
        let mut request = self
            .client
            .request(method, url)
            .header("x-ms-version", "2022-11-02")
            .header("Content-Length", body.len())
            .body(body);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (status, bytes) = self.handle.block_on(async {
            // Azurite closes idle connections; a request on one is tried once more.
            let again = request
                .try_clone()
                .filter(|_| !target.contains("comp=appendblock"));
            let answer = match (request.send().await, again) {
                (Err(error), Some(again)) if error.is_request() => again.send().await,
                (answer, _) => answer,
            };
            let answer = answer.map_err(|error| format!("{target}: {error:?}"))?;
            let status = answer.status();
            Ok::<_, String>((
                status,
                answer
                    .bytes()
                    .await
                    .map_err(|error| format!("{target}: {error:?}"))?
                    .to_vec(),
            ))
        })?;
        if fine.contains(&status) {
            Ok((status, bytes))
        } else {
            Err(format!(
                "{target}: {status}: {}",
                String::from_utf8_lossy(&bytes)
            ))
        }
    }
}

/// A blob's name in a path, with its slashes.
fn encoded(name: &str) -> String {
    name.split('/').map(word).collect::<Vec<_>>().join("/")
}

fn word(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
}

/// The text of the first element of a name.
fn inside(text: &str, name: &str) -> String {
    let begin = format!("<{name}>");
    let found = text
        .split_once(&begin)
        .and_then(|(_, rest)| rest.split_once(&format!("</{name}>")));
    found
        .and_then(|(inside, _)| unescape(inside).ok())
        .unwrap_or_default()
        .into_owned()
}
