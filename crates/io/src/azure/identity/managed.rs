//! The identity that the platform gives to this machine or container.

use super::Variable;
use super::grant::{refusal, unreachable};
use super::token::Token;
use crate::retry::RequestRetry;
use crate::web::{AskError, Web};
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{Method, Request};
use serde_json::Value;
use towline_core::redact::Secret;
use towline_core::{Error, Result};

/// Every virtual machine of Azure finds its identity at this address.
const INSTANCE_METADATA_URL: &str = "http://169.254.169.254/metadata/identity/oauth2/token";
/// Tries at an address that has never answered: outside Azure nobody answers there.
const FIRST_TRIES: u32 = 2;

/// The service that gives out tokens on this platform.
#[derive(Debug)]
enum Source {
    /// App Service, Functions, Container Apps.
    Service {
        address: String,
        secret: Secret,
    },
    /// Older App Service, and compute of Azure ML.
    Older {
        address: String,
        secret: Secret,
    },
    /// Cloud Shell.
    Shell {
        address: String,
    },
    Machine,
}

impl Source {
    fn find(variable: &dyn Fn(&str) -> Option<String>) -> Self {
        let filled = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        match (
            filled("IDENTITY_ENDPOINT").zip(filled("IDENTITY_HEADER")),
            filled("MSI_ENDPOINT"),
            filled("MSI_SECRET"),
        ) {
            (Some((address, secret)), ..) => Self::Service {
                address,
                secret: Secret::new(secret),
            },
            (None, Some(address), Some(secret)) => Self::Older {
                address,
                secret: Secret::new(secret),
            },
            (None, Some(address), None) => Self::Shell { address },
            _ => Self::Machine,
        }
    }

    fn address(&self) -> &str {
        match self {
            Self::Service { address, .. }
            | Self::Older { address, .. }
            | Self::Shell { address } => address,
            Self::Machine => INSTANCE_METADATA_URL,
        }
    }

    fn request(&self, resource: &str, client: Option<&str>) -> Result<Request<Bytes>, http::Error> {
        let question = |version: &str, name: &str| {
            let mut query = url::form_urlencoded::Serializer::new(String::new());
            query
                .append_pair("api-version", version)
                .append_pair("resource", resource);
            query.extend_pairs(client.map(|client| (name, client)));
            format!("{}?{}", self.address(), query.finish())
        };
        let get = |url: String| Request::builder().method(Method::GET).uri(url);
        match self {
            Self::Service { secret, .. } => get(question("2019-08-01", "client_id"))
                .header("x-identity-header", secret.expose())
                .body(Bytes::new()),
            Self::Older { secret, .. } => get(question("2017-09-01", "clientid"))
                .header("secret", secret.expose())
                .body(Bytes::new()),
            Self::Shell { address } => {
                let form = url::form_urlencoded::Serializer::new(String::new())
                    .append_pair("resource", resource)
                    .finish();
                let builder = Request::builder()
                    .method(Method::POST)
                    .uri(address)
                    .header("metadata", "true");
                builder
                    .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
                    .body(Bytes::from(form))
            }
            Self::Machine => get(question("2018-02-01", "client_id"))
                .header("metadata", "true")
                .body(Bytes::new()),
        }
    }
}

pub(super) async fn token(
    at: &str,
    web: &Web,
    variable: &Variable,
    resource: &str,
    client: Option<&str>,
) -> Result<Token> {
    let source = Source::find(variable);
    let retry = RequestRetry {
        tries_at_a_stranger: FIRST_TRIES,
        ..RequestRetry::of_a_call(true)
    };
    let answer = web
        .ask_with(retry, || source.request(resource, client))
        .await
        .map_err(|error| match error {
            AskError::Unmade(_) => Error::config(format!(
                "{at}: the address of the managed identity \
            cannot be used"
            ))
            .hint("look at IDENTITY_ENDPOINT"),
            AskError::Unanswered(problem) => unreachable(at, source.address(), &problem).hint(
                "only an Azure machine with an identity has a managed one; elsewhere choose \
                another `credential`, such as azure_cli",
            ),
        })?;
    let json: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    if !answer.status.is_success() {
        let secrets: Vec<&Secret> = match &source {
            Source::Service { secret, .. } | Source::Older { secret, .. } => vec![secret],
            _ => Vec::new(),
        };
        let error = refusal(&answer, &json, &secrets).error(at, "managed_identity");
        return Err(error.hint(
            "does this machine have an identity? one of several is chosen by \
            {managed_identity: CLIENT_ID}",
        ));
    }
    Token::read(&json, towline_host::clock::now()).ok_or_else(|| {
        Error::unreachable(format!(
            "{at}: the managed identity answers without a token"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(set: &[(&str, &str)]) -> Request<Bytes> {
        let variable = |name: &str| {
            set.iter()
                .find(|(known, _)| *known == name)
                .map(|(_, value)| (*value).to_owned())
        };
        let source = Source::find(&variable);
        assert!(!format!("{source:?}").contains("canary"));
        source.request("https://r", Some("c d")).expect("a request")
    }

    #[test]
    fn each_platform_has_its_own_request() {
        let service = request(&[
            ("IDENTITY_ENDPOINT", "http://h/t"),
            ("IDENTITY_HEADER", "canary"),
            ("MSI_ENDPOINT", "http://o"),
        ]);
        assert_eq!(
            service.uri(),
            "http://h/t?api-version=2019-08-01&resource=https%3A%2F%2Fr&client_id=c+d"
        );
        assert_eq!(service.headers()["x-identity-header"], "canary");
        let older = request(&[
            ("MSI_ENDPOINT", "http://h/t"),
            ("MSI_SECRET", "canary"),
            ("IDENTITY_ENDPOINT", "http://h"),
        ]);
        assert_eq!(
            older.uri(),
            "http://h/t?api-version=2017-09-01&resource=https%3A%2F%2Fr&clientid=c+d"
        );
        assert_eq!(older.headers()["secret"], "canary");
        let shell = request(&[("MSI_ENDPOINT", "http://h/t")]);
        assert_eq!(
            (shell.method(), shell.body().as_ref()),
            (&Method::POST, &b"resource=https%3A%2F%2Fr"[..])
        );
        let machine = request(&[]);
        assert_eq!(
            machine.uri(),
            "http://169.254.169.254/metadata/identity/oauth2/token?api-version=2018-02-01&resource=https%3A%2F%2Fr&client_id=c+d"
        );
        assert_eq!(machine.headers()["metadata"], "true");
    }
}
