//! One HTTP client for all services, and patience: what may pass is tried again with growing
//! pauses, what cannot help is not.

use crate::buffer::Buffer;
use crate::network::Network;
use crate::retry::{RequestRetry, Tried};
use crate::trust;
use async_trait::async_trait;
use bytes::Bytes;
use futures_util::StreamExt;
use http::header::{CONTENT_LENGTH, RETRY_AFTER};
use http::{HeaderMap, Method, Request, StatusCode};
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody,
    HttpResponse, HttpResponseBody, HttpService,
};
use std::collections::BTreeMap;
use std::error::Error as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc2822;
use towline_core::{Error, Result};

const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(15);
/// A connection without a byte for this long counts as dead.
const READ_TIMEOUT: Duration = Duration::from_secs(60);
/// Memory for a body of up to this size is allocated before the body arrives.
const MAX_PREALLOCATED_BYTES: usize = 64 << 20;

/// Characters of a service's message that are shown.
const MAX_MESSAGE_CHARS: usize = 500;

/// A whole answer.
#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
    /// How often it was asked. More than once: an earlier try may have taken effect.
    pub tries: u32,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }
}

/// Why there is no answer, in words without address and secrets.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{said}")]
pub struct NoAnswer {
    pub said: String,
    pub cause: Cause,
    /// How long the service wants to be left alone.
    pub after: Option<Duration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// No such host.
    Name,
    /// Nobody there.
    Connect,
    Tls,
    /// It broke off, or was silent.
    Broken,
    /// The service asked for patience, or failed, each time.
    Status(StatusCode),
}

/// Called with a line for people when a service is asked again; one for the whole process.
static TROUBLE_LISTENER: OnceLock<fn(&str)> = OnceLock::new();
/// The first line about a failing service comes after this time.
const FIRST_NOTICE_AFTER: Duration = Duration::from_secs(5);
/// Two lines about failing services are at least this far apart.
const NOTICE_INTERVAL: Duration = Duration::from_secs(20);

/// Has `tell` called with a line for people while a service is asked again and again.
pub fn tell_of_trouble(tell: fn(&str)) {
    let _ = TROUBLE_LISTENER.set(tell);
}

/// The client with its patience; cheap to clone.
#[derive(Debug, Clone)]
pub struct Web {
    client: reqwest::Client,
    state: Arc<State>,
}

/// A client that is made when it is first needed: whom to trust is read then, which many a call can
/// do without.
#[derive(Debug, Default)]
pub struct WebWhenNeeded {
    web: OnceLock<Web>,
    network: Network,
}

impl WebWhenNeeded {
    pub fn over(network: Network) -> Self {
        Self {
            web: OnceLock::new(),
            network,
        }
    }

    pub fn get(&self) -> Result<&Web> {
        if self.web.get().is_none() {
            let _ = self.web.set(Web::over(&self.network, &[])?);
        }
        Ok(self.web.get().expect("set above"))
    }

    /// What keeps a service from answering that is being asked again and again.
    pub fn trouble(&self) -> Option<Error> {
        self.web.get().and_then(Web::trouble)
    }
}

impl From<Web> for WebWhenNeeded {
    fn from(web: Web) -> Self {
        Self {
            web: web.into(),
            network: Network::default(),
        }
    }
}

#[derive(Debug)]
struct State {
    throttled: AtomicU64,
    has_answered: AtomicBool,
    last_answer: Mutex<Instant>,
    /// When it was last said that there is trouble.
    last_told: Mutex<Option<Instant>>,
    /// What the last try at a host came to, for as long as it is tried again.
    trouble: Mutex<BTreeMap<String, NoAnswer>>,
}

impl Web {
    /// Trusts whom the system trusts, or `SSL_CERT_FILE` and `SSL_CERT_DIR` where they are set.
    pub fn new() -> Result<Self> {
        Self::trusting(&[])
    }

    /// Trusts the authorities of a PEM as well.
    pub fn trusting(authorities: &[u8]) -> Result<Self> {
        Self::over(&Network::default(), authorities)
    }

    /// By the way that these variables tell.
    pub fn over(network: &Network, authorities: &[u8]) -> Result<Self> {
        let client = reqwest::Client::builder().no_proxy();
        let client = network
            .proxies()?
            .into_iter()
            .fold(client, reqwest::ClientBuilder::proxy);
        let client = client
            .user_agent(concat!("tow/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(Duration::from_secs(10))
            .read_timeout(READ_TIMEOUT)
            .pool_max_idle_per_host(64)
            .pool_idle_timeout(Duration::from_secs(20))
            .redirect(reqwest::redirect::Policy::none())
            .http1_only()
            .tls_backend_preconfigured(trust::client(network, authorities)?)
            .build();
        let client = client.map_err(|error| {
            Error::bug("the HTTP client cannot be made").source_error(error.without_url())
        })?;
        let state = State {
            throttled: AtomicU64::new(0),
            has_answered: AtomicBool::new(false),
            last_answer: Mutex::new(Instant::now()),
            last_told: Mutex::new(None),
            trouble: Mutex::default(),
        };
        Ok(Self {
            client,
            state: Arc::new(state),
        })
    }

    pub fn throttled(&self) -> u64 {
        self.state.throttled.load(Ordering::Relaxed)
    }

    /// What keeps a host from answering that is being asked again and again, in its own words where
    /// it has some.
    pub fn trouble(&self) -> Option<Error> {
        let trouble = self.state.trouble.lock().expect("no panic while held");
        trouble
            .iter()
            .next()
            .map(|(host, problem)| problem.explain(host, host))
    }

    fn note(&self, host: &str, problem: Option<&NoAnswer>) {
        let mut trouble = self.state.trouble.lock().expect("no panic while held");
        match problem {
            Some(problem) => drop(trouble.insert(host.to_owned(), problem.clone())),
            None => drop(trouble.remove(host)),
        }
    }

    /// Asks until there is an answer worth having. `make` is called for each try, so that
    /// signatures are of that moment.
    pub async fn ask<F, E>(&self, make: F) -> Result<Answer, AskError<E>>
    where
        F: Fn() -> Result<Request<Bytes>, E>,
    {
        self.ask_with(RequestRetry::default(), make).await
    }

    /// The same, with another patience.
    pub async fn ask_with<F, E>(&self, retry: RequestRetry, make: F) -> Result<Answer, AskError<E>>
    where
        F: Fn() -> Result<Request<Bytes>, E>,
    {
        let begun = Instant::now();
        let mut tries = 0;
        loop {
            tries += 1;
            let request = make().map_err(AskError::Unmade)?;
            let host = request
                .uri()
                .authority()
                .map_or_else(String::new, |authority| {
                    authority
                        .as_str()
                        .rsplit('@')
                        .next()
                        .unwrap_or_default()
                        .to_owned()
                });
            let outcome = self.once(request).await;
            let problem = match outcome {
                Ok(answer) if retry.takes(&answer) => {
                    self.state.has_answered.store(true, Ordering::Relaxed);
                    *self.state.last_answer.lock().expect("no panic while held") = Instant::now();
                    self.note(&host, None);
                    return Ok(Answer { tries, ..answer });
                }
                Ok(answer) => {
                    if matches!(
                        answer.status,
                        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE
                    ) {
                        self.state.throttled.fetch_add(1, Ordering::Relaxed);
                    }
                    NoAnswer {
                        said: said(&answer),
                        cause: Cause::Status(answer.status),
                        after: asked_pause(&answer.headers),
                    }
                }
                Err(problem) => problem,
            };
            let progress =
                (*self.state.last_answer.lock().expect("no panic while held")).max(begun);
            let since = if retry.is_shared { progress } else { begun };
            let pause = problem.after.unwrap_or_else(|| pause(tries, random()));
            let is_known = self.state.has_answered.load(Ordering::Relaxed);
            if retry.is_over(
                &problem,
                &Tried {
                    times: tries,
                    elapsed: since.elapsed(),
                    is_known,
                    is_asked: problem.after.is_some(),
                },
                pause,
            ) {
                self.note(&host, None);
                return Err(AskError::Unanswered(problem));
            }
            self.tell(
                &host,
                &problem,
                tries,
                begun.elapsed(),
                pause.min(retry.throttling),
            );
            self.note(&host, Some(&problem));
            tokio::time::sleep(pause.min(retry.throttling)).await;
        }
    }

    /// Says once in a while that somebody waits, and for whom.
    fn tell(&self, host: &str, problem: &NoAnswer, tries: u32, waited: Duration, pause: Duration) {
        let mut last = self.state.last_told.lock().expect("no panic while held");
        if waited + pause < FIRST_NOTICE_AFTER
            || last.is_some_and(|last| last.elapsed() < NOTICE_INTERVAL)
        {
            return;
        }
        *last = Some(Instant::now());
        if let Some(tell) = TROUBLE_LISTENER.get() {
            let what = if matches!(problem.cause, Cause::Status(_)) {
                format!("answers {}", problem.said)
            } else {
                format!("gives no answer: {}", problem.said)
            };
            tell(&format!(
                "{host} {what}; asked {tries} time(s) in {}s, again in {}s",
                waited.as_secs(),
                pause.as_secs_f64().ceil()
            ));
        }
    }

    async fn once(&self, request: Request<Bytes>) -> Result<Answer, NoAnswer> {
        let has_body = request.method() != Method::HEAD;
        let request =
            reqwest::Request::try_from(request).map_err(|error| describe(&error.without_url()))?;
        let response = self
            .client
            .execute(request)
            .await
            .map_err(|error| describe(&error.without_url()))?;
        let (status, headers) = (response.status(), response.headers().clone());
        let promised: Option<usize> = headers
            .get(CONTENT_LENGTH)
            .and_then(|length| length.to_str().ok()?.parse().ok());
        let body = match promised {
            _ if !has_body => Bytes::new(),
            Some(promised) if promised <= MAX_PREALLOCATED_BYTES => {
                receive(response, promised).await?
            }
            _ => response
                .bytes()
                .await
                .map_err(|error| describe(&error.without_url()))?,
        };
        Ok(Answer {
            status,
            headers,
            body,
            tries: 1,
        })
    }
}

/// A body of that length; another is an error.
async fn receive(response: reqwest::Response, length: usize) -> Result<Bytes, NoAnswer> {
    let mut body = Buffer::new(length);
    let mut at = 0;
    let wrong = || NoAnswer {
        said: "the answer was cut short".to_owned(),
        cause: Cause::Broken,
        after: None,
    };
    let mut parts = response.bytes_stream();
    while let Some(part) = parts.next().await {
        let part = part.map_err(|error| describe(&error.without_url()))?;
        body.as_mut()
            .get_mut(at..at + part.len())
            .ok_or_else(wrong)?
            .copy_from_slice(&part);
        at += part.len();
    }
    if at == length {
        Ok(body.freeze())
    } else {
        Err(wrong())
    }
}

/// Why [`Web::ask`] gave up.
#[derive(Debug)]
pub enum AskError<E> {
    Unmade(E),
    Unanswered(NoAnswer),
}

/// The pause the service asks for.
pub(crate) fn asked_pause(headers: &HeaderMap) -> Option<Duration> {
    let number = |name: &str| headers.get(name)?.to_str().ok()?.trim().parse::<u64>().ok();
    number("x-ms-retry-after-ms")
        .or_else(|| number("retry-after-ms"))
        .map(Duration::from_millis)
        .or_else(|| number(RETRY_AFTER.as_str()).map(Duration::from_secs))
        .or_else(|| until(headers.get(RETRY_AFTER)?.to_str().ok()?))
}

/// From now to a moment as HTTP writes it: `Sun, 06 Nov 1994 08:49:37 GMT`.
fn until(text: &str) -> Option<Duration> {
    let moment = OffsetDateTime::parse(text.trim(), &Rfc2822).ok()?;
    Some(
        (moment - OffsetDateTime::now_utc())
            .try_into()
            .unwrap_or(Duration::ZERO),
    )
}

/// Twice as long each time, and between half and all of that, so that many do not come at once.
fn pause(tries: u32, random: f64) -> Duration {
    let longest = FIRST_PAUSE
        .saturating_mul(1 << (tries.saturating_sub(1)).min(16))
        .min(LONGEST_PAUSE);
    longest.mul_f64(0.5 + random.clamp(0.0, 1.0) / 2.0)
}

fn random() -> f64 {
    let mut byte = [0];
    if getrandom::fill(&mut byte).is_err() {
        return 0.5;
    }
    f64::from(byte[0]) / 255.0
}

/// `503 ServerBusy: The server is busy.`, from whatever the body holds.
pub fn said(answer: &Answer) -> String {
    let json: serde_json::Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    let of_json = |key: &str| json.get("error").unwrap_or(&json)[key].as_str().map(plain);
    let code = answer
        .header("x-ms-error-code")
        .map(str::to_owned)
        .or_else(|| element(&answer.body, "Code"))
        .or_else(|| of_json("code"));
    let message = element(&answer.body, "Message")
        .or_else(|| of_json("message"))
        .map(|text| text.lines().next().unwrap_or_default().to_owned());
    let words: Vec<String> = [Some(answer.status.as_u16().to_string()), code]
        .into_iter()
        .flatten()
        .collect();
    match message {
        Some(message) if !message.is_empty() => format!("{}: {message}", words.join(" ")),
        _ => match answer.status.canonical_reason() {
            Some(reason) if words.len() == 1 => format!("{} {reason}", words[0]),
            _ => words.join(" "),
        },
    }
}

/// The text of the first element of that name in an error's small XML.
pub fn element(body: &[u8], name: &str) -> Option<String> {
    let text = String::from_utf8_lossy(&body[..body.len().min(4096)]);
    let begin = text.find(&format!("<{name}>"))? + name.len() + 2;
    let end = begin + text[begin..].find(&format!("</{name}>"))?;
    let inner = text[begin..end].trim();
    let inner = inner
        .strip_prefix("<![CDATA[")
        .and_then(|inner| inner.strip_suffix("]]>"))
        .unwrap_or(inner);
    Some(plain(inner))
}

/// A service's words: so many, and nothing that commands a terminal.
fn plain(text: &str) -> String {
    text.chars()
        .filter(|c| !c.is_control() || *c == '\n')
        .take(MAX_MESSAGE_CHARS)
        .collect()
}

fn describe(error: &reqwest::Error) -> NoAnswer {
    let mut said = error.to_string();
    let mut source = error.source();
    while let Some(deeper) = source {
        said = deeper.to_string();
        source = deeper.source();
    }
    let lower = said.to_lowercase();
    if lower.contains("no record") || lower.contains("nxdomain") {
        return NoAnswer {
            said: "no host has that name".to_owned(),
            cause: Cause::Name,
            after: None,
        };
    }
    let cause = if error.is_timeout() && error.is_connect() {
        Cause::Connect
    } else if lower.contains("dns")
        || lower.contains("lookup")
        || lower.contains("no connections available")
    {
        Cause::Name
    } else if lower.contains("eof")
        || lower.contains("reset")
        || lower.contains("closed")
        || error.is_timeout()
    {
        // A handshake that breaks off says nothing of what is spoken there.
        Cause::Broken
    } else if lower.contains("certificate")
        || lower.contains("invalid")
        || lower.contains("corrupt message")
        || lower.contains("alert")
    {
        Cause::Tls
    } else if error.is_connect() {
        Cause::Connect
    } else {
        Cause::Broken
    };
    if error.is_timeout() {
        "it did not answer in time".clone_into(&mut said);
    }
    NoAnswer {
        said,
        cause,
        after: None,
    }
}

impl NoAnswer {
    /// What it means for whoever asked `host`.
    pub fn explain(&self, place: &str, host: &str) -> Error {
        let error = Error::unreachable(format!("{place} cannot be reached: {}", self.said))
            .retry(towline_core::Retry::Exhausted);
        match self.cause {
            Cause::Name => error.hint(format!(
                "there is no network, or no host is called {host}: \
                look at `account` and `endpoint`; is the VPN on?"
            )),
            Cause::Connect => error.hint(format!(
                "nothing listens at {host}, or a firewall is in \
                between: is the VPN on?"
            )),
            Cause::Tls if self.said.contains("UnknownIssuer") => error.hint(format!(
                "who vouches for {host} is not known here: SSL_CERT_FILE names \
                    a file of authorities to trust"
            )),
            Cause::Tls => error.hint(format!(
                "{host} does not speak TLS as expected; an `endpoint` \
                that begins with http:// goes without it"
            )),
            Cause::Broken => error.hint("the same command goes on where it stopped"),
            Cause::Status(_) => error.hint(
                "the service is busy or ill; the same command goes on \
                where it stopped",
            ),
        }
    }
}

/// Our client for the calls that `object_store` makes: the same patience, and whole answers.
#[derive(Debug)]
pub(crate) struct Connector(pub(crate) Web);

impl HttpConnector for Connector {
    fn connect(&self, _: &object_store::ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.0.clone()))
    }
}

#[async_trait]
impl HttpService for Web {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let (parts, body) = request.into_parts();
        let body = collect(body).await?;
        let make = || Ok::<_, NoAnswer>(Request::from_parts(parts.clone(), body.clone()));
        let answer = self.ask(make).await.map_err(|error| match error {
            AskError::Unmade(problem) | AskError::Unanswered(problem) => {
                HttpError::new(HttpErrorKind::Unknown, problem)
            }
        })?;
        let mut response = http::Response::new(HttpResponseBody::from(answer.body));
        *response.status_mut() = answer.status;
        *response.headers_mut() = answer.headers;
        Ok(response)
    }
}

async fn collect(body: HttpRequestBody) -> Result<Bytes, HttpError> {
    if let Some(bytes) = body.as_bytes() {
        return Ok(bytes.clone());
    }
    let collected = http_body_util::BodyExt::collect(body).await?;
    Ok(collected.to_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn pauses_grow_to_a_limit_and_the_service_may_name_its_own() {
        assert_eq!(pause(1, 0.0), Duration::from_millis(100));
        assert_eq!(pause(1, 1.0), Duration::from_millis(200));
        assert!(pause(3, 0.5) > pause(1, 1.0));
        assert_eq!(pause(60, 1.0), LONGEST_PAUSE);
        let mut headers = HeaderMap::new();
        assert_eq!(asked_pause(&headers), None);
        headers.insert(RETRY_AFTER, HeaderValue::from_static("3"));
        assert_eq!(asked_pause(&headers), Some(Duration::from_secs(3)));
        headers.insert(
            RETRY_AFTER,
            HeaderValue::from_static("Sun, 06 Nov 1994 08:49:37 GMT"),
        );
        assert_eq!(asked_pause(&headers), Some(Duration::ZERO), "it has passed");
        headers.insert(
            RETRY_AFTER,
            HeaderValue::from_static("Wed, 06 Nov 2999 08:49:37 GMT"),
        );
        assert!(asked_pause(&headers).is_some_and(|pause| pause > Duration::from_secs(86_400)));
        headers.insert(RETRY_AFTER, HeaderValue::from_static("soon"));
        assert_eq!(asked_pause(&headers), None);
        headers.insert("x-ms-retry-after-ms", HeaderValue::from_static("250"));
        assert_eq!(asked_pause(&headers), Some(Duration::from_millis(250)));
    }

    #[test]
    fn an_error_is_quoted_without_its_markup() {
        let body = "<?xml version=\"1.0\"?><Error><Code>ServerBusy</Code><Message>The server is \
            busy.\nRequestId:1</Message></Error>";
        let answer = Answer {
            status: StatusCode::SERVICE_UNAVAILABLE,
            headers: HeaderMap::new(),
            body: body.into(),
            tries: 1,
        };
        assert_eq!(said(&answer), "503 ServerBusy: The server is busy.");
        let bare = Answer {
            body: Bytes::new(),
            ..answer
        };
        assert_eq!(said(&bare), "503 Service Unavailable");
    }
}
