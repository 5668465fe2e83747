//! Plain requests, by a client that is not ours.

use reqwest::Client;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use towline_testkit::aml::Aml;
use towline_testkit::until;

pub(crate) struct Asker {
    pub aml: Aml,
    client: Client,
    runtime: tokio::runtime::Runtime,
}

#[derive(Debug)]
pub(crate) struct Said {
    pub status: u16,
    pub headers: BTreeMap<String, String>,
    pub bytes: Vec<u8>,
    pub json: Value,
}

impl Asker {
    pub(crate) fn start() -> Self {
        let aml = Aml::start();
        let mut roots = rustls::RootCertStore::empty();
        let authority: rustls::pki_types::CertificateDer<'_> =
            rustls::pki_types::pem::PemObject::from_pem_file(aml.authority()).unwrap();
        roots.add(authority).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap();
        let builder = Client::builder()
            .tls_backend_preconfigured(config.with_root_certificates(roots).with_no_client_auth())
            .no_proxy();
        let client = builder.build().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        Self {
            aml,
            client,
            runtime,
        }
    }

    /// With a valid token. Fails only if the connection does.
    pub(crate) fn try_ask(&self, method: &str, path: &str, body: Option<&Value>) -> Option<Said> {
        self.send(
            method,
            &self.address(path),
            &[("Authorization", &self.bearer())],
            body,
        )
    }
    #[track_caller]
    pub(crate) fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Said {
        self.try_ask(method, path, body).unwrap()
    }
    #[track_caller]
    pub(crate) fn get(&self, path: &str) -> Said {
        self.ask("GET", path, None)
    }
    pub(crate) fn bearer(&self) -> String {
        format!("Bearer {}", self.aml.token(self.aml.endpoint(), 600))
    }

    /// Without anything added.
    pub(crate) fn send(
        &self,
        method: &str,
        address: &str,
        headers: &[(&str, &str)],
        body: Option<&Value>,
    ) -> Option<Said> {
        let mut request = self.client.request(method.parse().unwrap(), address);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if let Some(body) = body {
            request = request
                .header("Content-Type", "application/json")
                .body(body.to_string());
        }
        self.runtime.block_on(async {
            let answer = request.send().await.ok()?;
            let status = answer.status().as_u16();
            let headers = answer
                .headers()
                .iter()
                .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()))
                .collect();
            let bytes = answer.bytes().await.ok()?.to_vec();
            Some(Said {
                status,
                headers,
                json: serde_json::from_slice(&bytes).unwrap_or_default(),
                bytes,
            })
        })
    }

    fn address(&self, path: &str) -> String {
        if path.starts_with("http") {
            path.to_owned()
        } else {
            format!("{}{path}", self.aml.endpoint())
        }
    }
    /// `WORKSPACE/rest?api-version=…`
    pub(crate) fn of_workspace(&self, rest: &str) -> String {
        let mark = if rest.contains('?') { '&' } else { '?' };
        format!(
            "{}/{rest}{mark}api-version=2024-04-01",
            self.aml.scope().id()
        )
    }
    pub(crate) fn of_history(&self, rest: &str) -> String {
        format!("/history/v1.0{}/{rest}", self.aml.scope().id())
    }

    /// A job of one command, with more properties.
    pub(crate) fn put_job(&self, name: &str, command: &str, more: &Value) -> Said {
        self.ask(
            "PUT",
            &self.of_workspace(&format!("jobs/{name}")),
            Some(&job(command, more)),
        )
    }
    #[track_caller]
    pub(crate) fn made_job(&self, name: &str, command: &str, more: &Value) {
        let said = self.put_job(name, command, more);
        assert_eq!(said.status, 201, "{said:?}");
    }
    #[track_caller]
    pub(crate) fn await_status(&self, name: &str, wanted: &str) {
        until(&format!("{name} to be {wanted}"), || {
            (self.aml.status(name).as_deref() == Some(wanted)).then_some(())
        });
    }
    /// All of a log, by its signed address.
    #[track_caller]
    pub(crate) fn log(&self, name: &str, path: &str) -> String {
        let details = self
            .get(&self.of_history(&format!("runs/{name}/details")))
            .json;
        let address = details["logFiles"][path]
            .as_str()
            .unwrap_or_else(|| panic!("{path}: {details}"));
        String::from_utf8(self.send("GET", address, &[], None).unwrap().bytes).unwrap()
    }
}

pub(crate) fn job(command: &str, more: &Value) -> Value {
    let mut properties =
        json!({"jobType": "Command", "command": command, "environmentId": "azureml:e:1"});
    for (name, value) in more.as_object().into_iter().flatten() {
        properties[name] = value.clone();
    }
    json!({"properties": properties})
}
