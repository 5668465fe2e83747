//! One HTTP client for all services. A request that failed is sent again after growing pauses,
//! where that can help.

mod answer;
mod asked_pause;
mod connector;
mod no_answer;
mod when_needed;

pub use answer::{Answer, element};
pub(crate) use asked_pause::asked_pause;
pub(crate) use connector::Connector;
pub use no_answer::{AskError, Cause, NoAnswer};
pub use when_needed::WebWhenNeeded;

use crate::buffer::Buffer;
use crate::network::Network;
use crate::retry::{RequestRetry, Tried};
use crate::{random, trust};
use bytes::Bytes;
use futures_util::StreamExt;
use http::header::CONTENT_LENGTH;
use http::{Method, Request, StatusCode};
use no_answer::describe;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};
use towline_core::{Error, Result};
use towline_host::backoff::{self, Backoff};

/// Pause after the first failure.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
/// The longest pause between two tries, unless the service asks for a longer one.
const MAX_PAUSE: Duration = Duration::from_secs(15);
/// A pause is a random share of the growing one, so that many callers do not come at once.
const PAUSE_SHARE: RangeInclusive<f64> = 0.5..=1.0;
/// A connection without a byte for this long counts as dead.
const READ_TIMEOUT: Duration = Duration::from_secs(60);
/// Memory for a body of up to this size is allocated before the body arrives.
const MAX_PREALLOCATED_BYTES: usize = 64 << 20;

/// Called with a line for people when a service is asked again; one for the whole process.
static TROUBLE_LISTENER: OnceLock<fn(&str)> = OnceLock::new();
/// The first line about a failing service comes after this time.
const FIRST_NOTICE_AFTER: Duration = Duration::from_secs(5);
/// Two lines about failing services are at least this far apart.
const NOTICE_INTERVAL: Duration = Duration::from_secs(20);

/// From now on `tell` is called with a line for people while a service is asked again and again.
pub fn tell_of_trouble(tell: fn(&str)) {
    let _ = TROUBLE_LISTENER.set(tell);
}

/// The client and what is known of the services it talks to; cheap to clone.
#[derive(Debug, Clone)]
pub struct Web {
    client: reqwest::Client,
    state: Arc<State>,
}

#[derive(Debug)]
struct State {
    throttled: AtomicU64,
    has_answered: AtomicBool,
    last_answer: Mutex<Instant>,
    /// When the last line about trouble was shown.
    last_notice: Mutex<Option<Instant>>,
    /// The last failure of each host that is being asked again.
    trouble: Mutex<BTreeMap<String, NoAnswer>>,
}

impl Web {
    /// Trusts the authorities of the system, or of `SSL_CERT_FILE` and `SSL_CERT_DIR` where they
    /// are set.
    pub fn new() -> Result<Self> {
        Self::trusting(&[])
    }

    /// Also trusts the authorities of a PEM file.
    pub fn trusting(authorities: &[u8]) -> Result<Self> {
        Self::over(&Network::default(), authorities)
    }

    /// Goes through the proxies that `network` names.
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
            last_notice: Mutex::new(None),
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

    /// Why a host that is being asked again gives no answer, in its own words where it has some.
    pub fn trouble(&self) -> Option<Error> {
        let trouble = self.state.trouble.lock().expect("no panic while held");
        trouble
            .iter()
            .next()
            .map(|(host, problem)| problem.explain(host, host))
    }

    fn set_trouble(&self, host: &str, problem: Option<&NoAnswer>) {
        let mut trouble = self.state.trouble.lock().expect("no panic while held");
        match problem {
            Some(problem) => drop(trouble.insert(host.to_owned(), problem.clone())),
            None => drop(trouble.remove(host)),
        }
    }

    /// Asks until there is a useful answer. `make` is called for each try, so that every signature
    /// has the time of its try.
    pub async fn ask<F, E>(&self, make: F) -> Result<Answer, AskError<E>>
    where
        F: Fn() -> Result<Request<Bytes>, E>,
    {
        self.ask_with(RequestRetry::default(), make).await
    }

    /// The same with other limits.
    pub async fn ask_with<F, E>(&self, retry: RequestRetry, make: F) -> Result<Answer, AskError<E>>
    where
        F: Fn() -> Result<Request<Bytes>, E>,
    {
        let begun = Instant::now();
        let mut backoff = Backoff::new(FIRST_PAUSE, MAX_PAUSE);
        let mut tries = 0;
        loop {
            tries += 1;
            let request = make().map_err(AskError::Unmade)?;
            let host = host_of(&request);
            let problem = match self.once(request).await {
                Ok(answer) if retry.takes(&answer) => {
                    self.note_answer(&host);
                    return Ok(Answer { tries, ..answer });
                }
                Ok(answer) => self.refusal(&answer),
                Err(problem) => problem,
            };
            let growing = backoff::spread(backoff.pause(), &PAUSE_SHARE, random::fraction());
            let pause = problem.after.unwrap_or(growing);
            let tried = Tried {
                times: tries,
                elapsed: self.waiting_since(begun, &retry).elapsed(),
                is_known: self.state.has_answered.load(Ordering::Relaxed),
                is_asked: problem.after.is_some(),
            };
            if retry.is_over(&problem, &tried, pause) {
                self.set_trouble(&host, None);
                return Err(AskError::Unanswered(problem));
            }
            let pause = pause.min(retry.throttling);
            self.notify(&host, &problem, tries, begun.elapsed(), pause);
            self.set_trouble(&host, Some(&problem));
            tokio::time::sleep(pause).await;
        }
    }

    fn note_answer(&self, host: &str) {
        self.state.has_answered.store(true, Ordering::Relaxed);
        *self.state.last_answer.lock().expect("no panic while held") = Instant::now();
        self.set_trouble(host, None);
    }

    /// An answer that asks us to try again, or says nothing of the request.
    fn refusal(&self, answer: &Answer) -> NoAnswer {
        if matches!(
            answer.status,
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE
        ) {
            self.state.throttled.fetch_add(1, Ordering::Relaxed);
        }
        NoAnswer {
            message: answer.message(),
            cause: Cause::Status(answer.status),
            after: asked_pause(&answer.headers),
        }
    }

    /// Many calls that are one act count the time since any of them had an answer.
    fn waiting_since(&self, begun: Instant, retry: &RequestRetry) -> Instant {
        if retry.is_shared {
            (*self.state.last_answer.lock().expect("no panic while held")).max(begun)
        } else {
            begun
        }
    }

    /// Tells the user now and then which service is being waited for.
    fn notify(
        &self,
        host: &str,
        problem: &NoAnswer,
        tries: u32,
        waited: Duration,
        pause: Duration,
    ) {
        let mut last = self.state.last_notice.lock().expect("no panic while held");
        if waited + pause < FIRST_NOTICE_AFTER
            || last.is_some_and(|last| last.elapsed() < NOTICE_INTERVAL)
        {
            return;
        }
        *last = Some(Instant::now());
        if let Some(tell) = TROUBLE_LISTENER.get() {
            let what = if matches!(problem.cause, Cause::Status(_)) {
                format!("answers {}", problem.message)
            } else {
                format!("gives no answer: {}", problem.message)
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

/// The host and port of a request, without a user's name.
fn host_of(request: &Request<Bytes>) -> String {
    let authority = request.uri().authority().map(http::uri::Authority::as_str);
    let host = authority.and_then(|authority| authority.rsplit('@').next());
    host.unwrap_or_default().to_owned()
}

/// Reads a body of exactly `length` bytes; any other length is an error.
async fn receive(response: reqwest::Response, length: usize) -> Result<Bytes, NoAnswer> {
    let mut body = Buffer::new(length);
    let mut at = 0;
    let wrong = || NoAnswer {
        message: "the answer was cut short".to_owned(),
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
