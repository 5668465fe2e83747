//! One call to the blob service. It is signed anew for each try, and a refusal is explained.

use super::address::{Endpoint, query};
use super::cloud::Cloud;
use super::sas::Sas;
use crate::web::{Answer, AskError, Web};
use async_trait::async_trait;
use bytes::Bytes;
use http::header::CONTENT_LENGTH;
use http::{HeaderName, HeaderValue, Method, Request, StatusCode};
use object_store::CredentialProvider;
use object_store::azure::{
    AzureAuthorizer, AzureCredential, AzureCredentialProvider, MicrosoftAzure,
};
use object_store::client::{HttpRequest, HttpRequestBody};
use std::sync::Arc;
use towline_core::cloud::Audience;
use towline_core::redact::Secret;
use towline_core::time::Moment;
use towline_core::{Error, ErrorKind, Result};

/// How calls are authorised, as far as messages and our own signatures need it.
#[derive(Debug, Clone)]
pub(super) enum Authorization {
    /// A SAS, with the account's key where there is one.
    Sas(Sas, Option<Secret>),
    Key(Secret),
    /// A bearer token; the word names its source in messages: `azure_cli`, `managed_identity`, …
    Token(&'static str),
}

#[derive(Debug)]
pub(super) struct Service {
    pub(super) web: Web,
    pub(super) endpoint: Endpoint,
    pub(super) account: String,
    pub(super) container: String,
    pub(super) place: String,
    pub(super) authorization: Authorization,
    pub(super) provider: AzureCredentialProvider,
    /// Signs addresses for others where we have no key to sign with.
    pub(super) signer: MicrosoftAzure,
}

/// The bearer token of the user who is signed in to a cloud.
#[derive(Debug)]
pub(super) struct SignedIn(pub(super) Arc<Cloud>);

#[async_trait]
impl CredentialProvider for SignedIn {
    type Credential = AzureCredential;
    async fn get_credential(&self) -> object_store::Result<Arc<AzureCredential>> {
        let token = self.0.token(Audience::Storage).await;
        let token = token.map_err(|error| object_store::Error::Generic {
            store: "azure_blob",
            source: Box::new(error),
        })?;
        Ok(Arc::new(AzureCredential::BearerToken(
            token.expose().to_owned(),
        )))
    }
}

/// One call. `permission` is the letter of the SAS permission that it needs.
#[derive(Debug, Clone)]
pub(super) struct Call {
    pub(super) method: Method,
    pub(super) key: Option<String>,
    pub(super) query: String,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: Bytes,
    pub(super) permission: char,
}

impl Call {
    pub(super) fn new(method: Method, key: Option<&str>, permission: char) -> Self {
        Self {
            method,
            key: key.map(str::to_owned),
            query: String::new(),
            headers: Vec::new(),
            body: Bytes::new(),
            permission,
        }
    }
    pub(super) fn query(mut self, pairs: &[(&str, &str)]) -> Self {
        self.query = query(pairs);
        self
    }
    pub(super) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
    pub(super) fn body(mut self, body: Bytes) -> Self {
        self.body = body;
        self
    }
}

impl Service {
    /// The answer, whatever its status. It is an error only if no try could succeed.
    pub(super) async fn ask(&self, call: &Call) -> Result<Answer> {
        let credential = self
            .provider
            .get_credential()
            .await
            .map_err(|error| self.no_token(&error))?;
        let url = format!(
            "{}{}",
            self.endpoint.url(&self.container, call.key.as_deref()),
            call.query
        );
        let make = || -> Result<Request<Bytes>> {
            let mut request: HttpRequest = Request::new(HttpRequestBody::empty());
            *request.method_mut() = call.method.clone();
            *request.uri_mut() = url.parse().map_err(|error: http::uri::InvalidUri| {
                Error::bug("an address cannot be made").source_error(error)
            })?;
            for (name, value) in &call.headers {
                let value = HeaderValue::from_str(value)
                    .map_err(|_| Error::refused(format!("`{name}` holds what a header cannot")))?;
                request
                    .headers_mut()
                    .insert(HeaderName::from_static(name), value);
            }
            // Also for an empty body, because the service refuses one without this header.
            if call.method == Method::PUT {
                request
                    .headers_mut()
                    .insert(CONTENT_LENGTH, call.body.len().into());
            }
            let signed =
                AzureAuthorizer::new(&credential, &self.account).try_authorize(&mut request);
            signed.map_err(|_| {
                Error::config(format!("a request to {} cannot be signed", self.place))
                    .hint("is the account key whole?")
            })?;
            Ok(Request::from_parts(
                request.into_parts().0,
                call.body.clone(),
            ))
        };
        self.web.ask(make).await.map_err(|error| match error {
            AskError::Unmade(error) => error,
            AskError::Unanswered(problem) => problem.explain(&self.place, &self.endpoint.host),
        })
    }

    /// The answer if its status is one of `good`, else an error that explains the refusal.
    pub(super) async fn ask_expecting(&self, call: &Call, good: &[StatusCode]) -> Result<Answer> {
        let answer = self.ask(call).await?;
        if good.contains(&answer.status) {
            Ok(answer)
        } else {
            Err(self.explain(call, &answer))
        }
    }

    /// Explains the refusal of a HEAD request, which has no body. A listing is tried as well,
    /// because its refusal has the service's message.
    pub(super) async fn explain_bodyless(&self, call: &Call, answer: &Answer) -> Error {
        if answer.status == StatusCode::FORBIDDEN
            && answer.header("x-ms-error-code") == Some(FIREWALL_OR_KEY)
        {
            let list = Call::new(Method::GET, None, 'l').query(&[
                ("restype", "container"),
                ("comp", "list"),
                ("maxresults", "1"),
            ]);
            if let Ok(listed) = self.ask(&list).await
                && listed.status == StatusCode::FORBIDDEN
            {
                return self.explain(call, &listed);
            }
        }
        self.explain(call, answer)
    }

    fn no_token(&self, error: &object_store::Error) -> Error {
        let word = match self.authorization {
            Authorization::Token(word) => word,
            _ => "its credential",
        };
        // An error of our own says more.
        if let object_store::Error::Generic { source, .. } = error
            && let Some(ours) = source.downcast_ref::<Error>()
        {
            let again = Error::new(ours.kind(), format!("{}: {}", self.place, ours.message()));
            let again = again.blame_network(ours.blames_network());
            return ours.hints().iter().fold(again, Error::hint);
        }
        let text = error.to_string();
        let first = text.lines().next().unwrap_or_default();
        let error = Error::unreachable(format!("{}: no token from {word}: {first}", self.place));
        match word {
            "azure_cli" => error.hint(
                "sign in with `az login`, and see that `az account \
                get-access-token` works",
            ),
            "managed_identity" => error.hint(
                "only an Azure machine with an identity has one; \
                elsewhere use `azure_cli` or a SAS",
            ),
            _ => error.hint("look at tenant_id, client_id and client_secret"),
        }
    }

    /// The error for a refusal, with what to do.
    pub(super) fn explain(&self, call: &Call, answer: &Answer) -> Error {
        let what = call.key.as_ref().map_or_else(
            || self.place.clone(),
            |key| format!("{} in {}", crate::data::shown(key), self.place),
        );
        let code = answer
            .header("x-ms-error-code")
            .map(str::to_owned)
            .or_else(|| crate::web::element(&answer.body, "Code"))
            .unwrap_or_default();
        match answer.status {
            StatusCode::FORBIDDEN | StatusCode::UNAUTHORIZED => self.denied(call, answer),
            StatusCode::NOT_FOUND if code == "ContainerNotFound" || call.key.is_none() => {
                Error::not_found(format!(
                    "there is no container `{}` in account `{}`",
                    self.container, self.account
                ))
                .hint("create it, or correct `container`")
            }
            StatusCode::NOT_FOUND => Error::not_found(format!("there is no {what}")),
            StatusCode::PRECONDITION_FAILED | StatusCode::CONFLICT => Error::conflict(format!(
                "{what} was changed meanwhile ({})",
                answer.message()
            )),
            StatusCode::BAD_REQUEST if matches!(code.as_str(), "Md5Mismatch" | "InvalidMd5") => {
                Error::unreachable(format!(
                    "{what}: the bytes arrived damaged ({})",
                    answer.message()
                ))
                .hint("try again")
            }
            status => {
                // The service calls a credential in a wrong form a bad request.
                let kind = if code == "InvalidAuthenticationInfo" {
                    ErrorKind::Denied
                } else {
                    ErrorKind::refusal_of_status(status.as_u16())
                };
                Error::new(
                    kind,
                    format!("{what}: the service answers {}", answer.message()),
                )
            }
        }
    }

    fn denied(&self, call: &Call, answer: &Answer) -> Error {
        let now = towline_host::clock::now();
        let error = |why: &str| Error::denied(format!("{} refuses: {why}", self.place));
        let skew = answer
            .header("date")
            .and_then(super::listing::millis)
            .map(|theirs| now.0 - theirs)
            .filter(|skew| skew.abs() > 300_000);
        // The service judges by its own clock.
        let theirs = Moment(now.0 - skew.unwrap_or(0));
        let clock = skew.map(|skew| {
            let direction = if skew > 0 { "ahead" } else { "behind" };
            format!(
                "the clock here is {} {direction} of the service's",
                towline_core::time::human_millis(skew.unsigned_abs())
            )
        });
        let code = answer
            .header("x-ms-error-code")
            .map(str::to_owned)
            .or_else(|| crate::web::element(&answer.body, "Code"))
            .unwrap_or_default();
        let message = crate::web::element(&answer.body, "Message").unwrap_or_default();
        let seen = match &self.authorization {
            Authorization::Sas(sas, _) => sas.diagnose(call.permission, theirs),
            _ => None,
        };
        if let Some((why, hint)) = seen {
            return error(&why).hint(hint).maybe_hint(clock);
        }
        if code == FIREWALL_OR_KEY && message.contains("not authorized to perform") {
            // The same call succeeds once the VPN is on: neither it nor the credential is wrong.
            return Error::unreachable(format!(
                "{} lets nobody in from here: its firewall, or a rule of its account ({})",
                self.place,
                answer.message()
            ))
            .hint(
                "is the VPN on? the account's owner sees under Networking who may come from where",
            )
            .blame_network(true);
        }
        if let Some((why, hint)) = cause_of(&code) {
            return error(&format!("{why} ({})", answer.message()))
                .hint(hint)
                .maybe_hint(clock);
        }
        let refused = match &self.authorization {
            Authorization::Sas(..) => {
                error(&format!("the SAS is not accepted ({})", answer.message())).hint(
                    "was it made \
                    for this container, or was its key renewed since?",
                )
            }
            Authorization::Key(_) => error(&format!(
                "the account key is not accepted ({})",
                answer.message()
            ))
            .hint(format!(
                "is it the key of `{}`, and whole? it may have been \
                    renewed",
                self.account
            )),
            Authorization::Token(word) => {
                error(&format!("{word} may not do this ({})", answer.message())).hint(
                    "it needs the role Storage Blob Data Contributor (or Reader, to read) on the \
                    account or container",
                )
            }
        };
        refused.maybe_hint(clock)
    }
}

/// The code of a refusal by an account's firewall. Emulators also use it for a wrong signature,
/// with another message.
const FIREWALL_OR_KEY: &str = "AuthorizationFailure";

/// The cause that an error code names, and what to do; `None` for codes that only say that the
/// credential is wrong or lacks a right.
fn cause_of(code: &str) -> Option<(&'static str, &'static str)> {
    Some(match code {
        "KeyBasedAuthenticationNotPermitted" => (
            "the account takes no keys, nor what is signed with one",
            "use `credential: azure_cli` or `managed_identity`, with the role Storage Blob Data \
                Contributor",
        ),
        "AuthorizationSourceIPMismatch" => (
            "the SAS is for other addresses than this machine's",
            "make a SAS without a range of addresses, or work from one of them",
        ),
        "AuthorizationProtocolMismatch" => (
            "the SAS is for https alone",
            "begin `endpoint` with https://",
        ),
        "AuthorizationServiceMismatch" | "AuthorizationResourceTypeMismatch" => (
            "the SAS is for another service or another kind of thing",
            "make a SAS of the container, or an account SAS for blobs, containers and objects",
        ),
        "PublicAccessNotPermitted" | "NoAuthenticationInformation" => (
            "nobody gets in without a credential",
            "write `credential` for this datastore",
        ),
        "AccountIsDisabled" => ("the account is disabled", "ask the subscription's owner"),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::azure::{Access, Azure, Place};
    use crate::credential::AzureCredential as Credential;

    fn explained(credential: &Credential, status: u16, code: &str, message: &str) -> Error {
        let place = Place {
            name: "s".into(),
            account: "a".into(),
            container: "c".into(),
            root: String::new(),
            endpoint: None,
            access: Access::Credential(credential.clone()),
        };
        let store = Azure::new(place, Web::new().expect("a client")).expect("it opens");
        let answer = Answer {
            status: StatusCode::from_u16(status).expect("a status"),
            headers: http::HeaderMap::new(),
            body: format!("<Error><Code>{code}</Code><Message>{message}</Message></Error>").into(),
            tries: 1,
        };
        let call = Call::new(Method::GET, Some("key"), 'r');
        store.service.explain(&call, &answer)
    }

    /// A cluster fetches a new credential for its stage after an error of this kind alone.
    #[test]
    fn a_credential_that_is_not_accepted_is_denied() {
        let key = Credential::Key(Secret::new("a2V5"));
        let expired = "sv=2022-11-02&sr=c&sp=rcwl&se=2020-01-01T00:00:00Z&sig=x";
        let expired = Credential::Sas(Secret::new(expired), None);
        for (credential, status, code, kind) in [
            (&key, 401, "InvalidAuthenticationInfo", ErrorKind::Denied),
            (&key, 403, "AuthenticationFailed", ErrorKind::Denied),
            (
                &key,
                403,
                "KeyBasedAuthenticationNotPermitted",
                ErrorKind::Denied,
            ),
            (&key, 403, FIREWALL_OR_KEY, ErrorKind::Denied),
            (&key, 400, "InvalidAuthenticationInfo", ErrorKind::Denied),
            (&expired, 403, "AuthenticationFailed", ErrorKind::Denied),
            (&key, 409, "BlobAlreadyExists", ErrorKind::Conflict),
            (&key, 413, "RequestBodyTooLarge", ErrorKind::TooLarge),
            (&key, 400, "OutOfRangeInput", ErrorKind::Refused),
        ] {
            let error = explained(credential, status, code, "no");
            assert_eq!(error.kind(), kind, "{status} {code}: {error}");
        }
        let firewall = "This request is not authorized to perform this operation.";
        let error = explained(&key, 403, FIREWALL_OR_KEY, firewall);
        assert_eq!(error.kind(), ErrorKind::Unreachable, "{error}");
        assert!(error.blames_network());
    }

    #[test]
    fn a_refusal_is_explained_by_its_code() {
        for (code, part) in [
            ("KeyBasedAuthenticationNotPermitted", "takes no keys"),
            ("AuthorizationSourceIPMismatch", "other addresses"),
            ("AccountIsDisabled", "disabled"),
        ] {
            assert!(
                cause_of(code).is_some_and(|(why, hint)| why.contains(part) && !hint.is_empty()),
                "{code}"
            );
        }
        for code in [
            "AuthenticationFailed",
            super::FIREWALL_OR_KEY,
            "AuthorizationPermissionMismatch",
        ] {
            assert_eq!(cause_of(code), None, "{code}");
        }
    }
}
