//! The interface over HTTP on loopback, and the page that uses it.
//!
//! Everything but the page's own files is a POST with a token. The page's files are the same for
//! everybody and hold nothing of the user.

mod answer;
mod downloads;
mod guard;
mod headers;
mod pages;

pub use downloads::Downloads;
pub use guard::Token;
pub use pages::File;

use crate::session::Session;
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use towline_core::{Error, Result};

pub(crate) type Body = BoxBody<Bytes, Infallible>;

/// The length of a call's arguments at most: a job file with a long script fits.
const MAX_ARGS_BYTES: usize = 8 << 20;
const MAX_CONNECTIONS: usize = 512;
/// How long a client may take to send the head of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(20);

/// What a server answers with.
#[derive(Debug)]
pub struct Site {
    pub session: Session,
    pub files: Vec<File>,
    pub token: Token,
    pub downloads: Downloads,
    /// The address that it listens on.
    pub address: SocketAddr,
}

/// Answers on `listener` until `end` is there.
pub async fn serve(
    site: Arc<Site>,
    listener: TcpListener,
    end: impl Future<Output = ()>,
) -> Result<()> {
    let connections = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    tokio::pin!(end);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut end => return Ok(()),
        };
        let stream = match accepted {
            Ok((stream, peer)) if peer.ip().is_loopback() => stream,
            Ok(_) => continue,
            // No descriptor is left, or the client is gone already: others may do better.
            Err(_) => {
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let Ok(place) = Arc::clone(&connections).try_acquire_owned() else {
            continue;
        };
        let _ = stream.set_nodelay(true);
        let site = Arc::clone(&site);
        tokio::spawn(async move {
            let answer = service_fn(move |request| {
                let site = Arc::clone(&site);
                async move { Ok::<_, Infallible>(answer(site, request).await) }
            });
            // An error of one connection is the end of that connection, and nothing else.
            let _ = hyper::server::conn::http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD_TIMEOUT)
                .serve_connection(TokioIo::new(stream), answer)
                .await;
            drop(place);
        });
    }
}

async fn answer(site: Arc<Site>, request: Request<Incoming>) -> Response<Body> {
    let mut response = match respond(&site, request).await {
        Ok(response) => response,
        Err(refusal) => answer::failure(refusal.status, &refusal.error),
    };
    headers::add(&mut response);
    response
}

/// A request that is refused before it is a call.
pub(crate) struct Refusal {
    status: StatusCode,
    error: Error,
}

impl Refusal {
    pub(crate) const fn new(status: StatusCode, error: Error) -> Self {
        Self { status, error }
    }
}

async fn respond(site: &Arc<Site>, request: Request<Incoming>) -> Result<Response<Body>, Refusal> {
    guard::check_host(request.headers(), site.address)?;
    let path = request.uri().path().to_owned();
    match path.strip_prefix("/api/") {
        None if *request.method() == Method::GET && path.starts_with(downloads::PLACE) => {
            guard::check_origin(request.headers(), site.address)?;
            Ok(site.downloads.give(&path))
        }
        None if matches!(*request.method(), Method::GET | Method::HEAD) => {
            Ok(pages::file(&site.files, &path, request.headers()))
        }
        Some(call) if *request.method() == Method::POST => {
            guard::check_caller(request.headers(), site.address, &site.token)?;
            let wants_events = answer::wants_events(request.headers());
            let args = args(request).await?;
            if call == "download" {
                return Ok(downloads::begin(Arc::clone(site), args).await);
            }
            Ok(answer::call(Arc::clone(site), call.to_owned(), args, wants_events).await)
        }
        _ => {
            let error = Error::usage(format!("{} is not answered at {path}", request.method()))
                .hint("calls are POST /api/CALL");
            Err(Refusal::new(StatusCode::METHOD_NOT_ALLOWED, error))
        }
    }
}

async fn args(request: Request<Incoming>) -> Result<crate::session::Args, Refusal> {
    let unreadable = |status, text: String| Refusal::new(status, Error::usage(text));
    let body = Limited::new(request.into_body(), MAX_ARGS_BYTES)
        .collect()
        .await;
    let bytes = body
        .map_err(|error| {
            let text = format!("the arguments cannot be read: {error}");
            unreadable(StatusCode::PAYLOAD_TOO_LARGE, text)
        })?
        .to_bytes();
    if bytes.is_empty() {
        return Ok(crate::session::Args::default());
    }
    serde_json::from_slice(&bytes).map_err(|error| {
        let text = format!("the arguments are not a JSON object: {error}");
        unreadable(StatusCode::BAD_REQUEST, text)
    })
}

pub(crate) fn whole(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).boxed()
}
