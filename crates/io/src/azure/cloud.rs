//! Calls to a cloud's services, as the user who is signed in.
//!
//! A throttled call is sent again after the pause that the service asks for, because the service
//! did nothing. Other failed calls are sent again only where that is harmless. A refused token is
//! replaced once. No redirect is followed.

use super::endpoints::{Endpoints, PUBLIC_CLOUD};
use super::identity::cache::Cache;
use super::identity::grant::secure;
use super::identity::{LoginRequest, SignIn, SignInState, SignedOut, Watcher};
use super::throttle::Throttle;
use crate::retry::RequestRetry;
use crate::web::{Answer, AskError, Web, WebWhenNeeded};
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, Method, Request, StatusCode};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::OnceCell;
use towline_core::cloud::{self, Audience, Call};
use towline_core::redact::Secret;
use towline_core::{Error, Result};

/// Calls that run at once.
const MAX_PARALLEL_CALLS: usize = 8;

fn host(call: &Call) -> &str {
    call.path()
        .split("://")
        .nth(1)
        .and_then(|rest| rest.split('/').next())
        .unwrap_or_default()
}

fn method(call: &Call) -> Method {
    match call.method {
        cloud::Method::Get => Method::GET,
        cloud::Method::Put => Method::PUT,
        cloud::Method::Post => Method::POST,
        cloud::Method::Patch => Method::PATCH,
        cloud::Method::Delete => Method::DELETE,
    }
}

const fn resource(endpoints: &Endpoints, audience: Audience) -> &String {
    match audience {
        Audience::Management | Audience::Nobody => &endpoints.management,
        Audience::Workspace => &endpoints.workspace,
        Audience::Vault => &endpoints.vault,
        Audience::Storage => &endpoints.storage,
    }
}

/// Whether a service takes the token for real and wants more proof of the user than it has: then
/// another token by the same sign-in is refused as well.
fn wants_more_claims(answer: &Answer) -> bool {
    let challenge = answer.header("www-authenticate").unwrap_or_default();
    answer.status == StatusCode::UNAUTHORIZED && challenge.contains("insufficient_claims")
}

fn request(call: &Call, token: Option<&Secret>) -> Result<Request<Bytes>> {
    let wrong =
        |what: &str| Error::bug(format!("{what} of a call to {} cannot be sent", host(call)));
    let body = call
        .body
        .as_ref()
        .map(|body| Bytes::from(body.to_string()))
        .unwrap_or_default();
    let mut request = Request::builder()
        .method(method(call))
        .uri(&call.url)
        .body(body)
        .map_err(|_| wrong("the address"))?;
    let length = request.body().len();
    let headers = request.headers_mut();
    headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    if call.body.is_some() {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    if call.method != cloud::Method::Get {
        headers.insert(CONTENT_LENGTH, length.into());
    }
    let secret = |text: &str| {
        let mut value = HeaderValue::from_str(text).map_err(|_| wrong("a header"))?;
        value.set_sensitive(true);
        Ok::<_, Error>(value)
    };
    for (name, value) in &call.headers {
        headers.insert(
            HeaderName::try_from(name).map_err(|_| wrong("a header"))?,
            secret(value.expose())?,
        );
    }
    if let Some(token) = token {
        headers.insert(
            AUTHORIZATION,
            secret(&format!("Bearer {}", token.expose()))?,
        );
    }
    Ok(request)
}

/// The cloud. No request is sent, and no client is made, before the first call.
#[derive(Debug)]
pub struct Cloud {
    at: String,
    endpoint: String,
    sign_in: SignIn,
    cache: Cache,
    web: WebWhenNeeded,
    endpoints: OnceCell<Endpoints>,
    throttle: Throttle,
    sent: AtomicU64,
}

impl Cloud {
    /// `at` names the cloud in messages; `endpoint` is the resource manager, by default that of the
    /// public cloud. Tokens and endpoints are kept in the folder `cache`.
    pub fn new(at: &str, endpoint: Option<&str>, sign_in: SignIn, cache: &Path) -> Result<Self> {
        let endpoint = endpoint
            .map(|text| text.trim().trim_end_matches('/'))
            .filter(|text| !text.is_empty())
            .unwrap_or(PUBLIC_CLOUD);
        let is_good = url::Url::parse(endpoint)
            .is_ok_and(|url| url.has_host() && url.query().is_none() && url.username().is_empty());
        if !is_good {
            return Err(Error::config(format!(
                "{at}: `endpoint` is not an address such as {PUBLIC_CLOUD}"
            )));
        }
        let (endpoint, cache) = (endpoint.to_owned(), Cache::new(cache));
        let web = WebWhenNeeded::over(sign_in.network().clone());
        let (endpoints, throttle, sent) = (OnceCell::new(), Throttle::default(), AtomicU64::new(0));
        Ok(Self {
            at: at.to_owned(),
            endpoint,
            sign_in,
            cache,
            web,
            endpoints,
            throttle,
            sent,
        })
    }

    /// Uses a client that exists already.
    #[must_use]
    pub fn with_web(self, web: Web) -> Self {
        Self {
            web: web.into(),
            ..self
        }
    }

    /// The resource manager, without a slash at its end.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// How many requests were sent to services, without those to the login service.
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    pub fn web(&self) -> Result<&Web> {
        self.web.get()
    }

    /// Why a service that is being asked again gives no answer.
    pub fn trouble(&self) -> Option<Error> {
        self.web.trouble().map(|error| error.while_doing(&self.at))
    }

    pub async fn endpoints(&self) -> Result<&Endpoints> {
        self.endpoints
            .get_or_try_init(|| Endpoints::of(&self.at, &self.endpoint, &self.web, &self.cache))
            .await
    }

    /// Signs in. Asks on the terminal if the method needs it and `may_ask` allows it.
    pub async fn sign_in(&self, may_ask: bool) -> Result<()> {
        let endpoints = self.endpoints().await?;
        self.sign_in
            .sign_in(
                &self.web,
                &endpoints.authority,
                &endpoints.management,
                may_ask,
            )
            .await
    }

    /// Signs in anew and stores the sign-in; `None` if the user stops it.
    pub async fn login(
        &self,
        request: &LoginRequest,
        watcher: &Watcher<'_>,
    ) -> Result<Option<SignInState>> {
        let endpoints = self.endpoints().await?;
        self.sign_in
            .login(
                &self.web,
                &endpoints.authority,
                &endpoints.management,
                request,
                watcher,
            )
            .await
    }

    /// Removes the stored sign-in.
    pub async fn logout(&self) -> Result<SignedOut> {
        let endpoints = self.endpoints().await?;
        self.sign_in.logout(&endpoints.authority).await
    }

    /// The signed-in user.
    pub async fn sign_in_state(&self) -> Result<SignInState> {
        let endpoints = self.endpoints().await?;
        self.sign_in
            .state(&self.web, &endpoints.authority, &endpoints.management)
            .await
    }

    /// The same for two clusters that share a stored sign-in.
    pub fn stored_under(&self) -> Option<String> {
        let place = self.sign_in.stored_under()?;
        Some(format!("{} {place}", self.endpoint))
    }

    pub async fn token(&self, audience: Audience) -> Result<Secret> {
        let none = || Error::bug("a token for nobody was asked for");
        self.token_instead(audience, None).await?.ok_or_else(none)
    }

    /// A token that is not the refused one.
    async fn token_instead(
        &self,
        audience: Audience,
        refused: Option<&Secret>,
    ) -> Result<Option<Secret>> {
        if audience == Audience::Nobody {
            return Ok(None);
        }
        let endpoints = self.endpoints().await?;
        let resource = resource(endpoints, audience);
        let web = &self.web;
        let token = match refused {
            None => {
                self.sign_in
                    .token(web, &endpoints.authority, resource)
                    .await
            }
            Some(refused) => {
                self.sign_in
                    .replacement_token(web, &endpoints.authority, resource, refused)
                    .await
            }
        };
        token.map(Some)
    }

    /// The answer, whatever its status. It is an error if nobody is signed in, or no answer came.
    pub async fn call(&self, call: &Call) -> Result<Answer> {
        if call.audience != Audience::Nobody {
            secure(&call.url)?;
        }
        let token = self.token_instead(call.audience, None).await?;
        let first = self.send(call, token.as_ref()).await?;
        match token {
            Some(_) if wants_more_claims(&first) => {
                let endpoints = self.endpoints().await?;
                let resource = resource(endpoints, call.audience);
                Err(self.sign_in.challenged(resource, host(call)))
            }
            Some(refused) if first.status == StatusCode::UNAUTHORIZED => {
                let replacement = self.token_instead(call.audience, Some(&refused)).await?;
                let second = self.send(call, replacement.as_ref()).await?;
                // The refused try has changed nothing and does not count.
                let before = first.tries - 1;
                Ok(Answer {
                    tries: before + second.tries,
                    ..second
                })
            }
            _ => Ok(first),
        }
    }

    /// Sends many calls, several at a time; the answers are in their order.
    pub async fn call_all(&self, calls: &[Call]) -> Vec<Result<Answer>> {
        let asked: Vec<_> = calls.iter().map(|call| self.call(call)).collect();
        stream::iter(asked)
            .buffered(MAX_PARALLEL_CALLS)
            .collect()
            .await
    }

    async fn send(&self, call: &Call, token: Option<&Secret>) -> Result<Answer> {
        let make = || {
            self.sent.fetch_add(1, Ordering::Relaxed);
            request(call, token)
        };
        let (retry, writes) = (
            RequestRetry::of_a_call(call.repeatable),
            call.method != cloud::Method::Get,
        );
        tokio::time::sleep(self.throttle.wait_before(
            &self.at,
            host(call),
            writes,
            retry.throttling,
        )?)
        .await;
        let asked = self.web()?.ask_with(retry, make).await;
        asked.map_err(|error| match error {
            AskError::Unmade(error) => error,
            AskError::Unanswered(problem) => {
                if let Some(pause) = problem.after {
                    self.throttle.note_pause(host(call), writes, pause);
                }
                problem.explain(&format!("{}: {}", self.at, host(call)), host(call))
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn neither_a_request_nor_an_error_shows_a_secret() {
        let call = Call::post("https://host:1/a/b?sig=canary", json!({"value": "canary"}))
            .header("x-azureml-token", Secret::new("canary"));
        let sent = request(&call, Some(&Secret::new("canary"))).expect("a request");
        assert!(!format!("{:?}", sent.headers()).contains("canary"));
        assert_eq!(
            (host(&call), sent.headers()[AUTHORIZATION].to_str().ok()),
            ("host:1", Some("Bearer canary"))
        );
        let bad = Call {
            url: "https://host:1/ canary".to_owned(),
            ..call
        };
        assert!(!format!("{:?}", request(&bad, None).expect_err("no address")).contains("canary"));
    }
}
