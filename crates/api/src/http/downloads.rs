//! Downloads: a browser saves what it gets by GET, which carries no token. So a call with the token
//! opens the file and answers a path that nobody can guess; a GET there gives the bytes once.

use super::{Body, Site, answer};
use crate::session::{Args, Opened};
use bytes::Bytes;
use http::header::{CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderValue, Response, StatusCode};
use http_body_util::BodyExt;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::fmt;
use std::io::Read;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{Receiver, channel};
use towline_core::{Error, Result};
use towline_wire::api::files::DownloadPlace;
use towline_wire::report::Failure;

/// What the paths of downloads begin with.
pub(super) const PLACE: &str = "/download/";
/// How long a download waits for the browser that asked for it.
const PICK_UP_TIMEOUT: Duration = Duration::from_secs(60);
/// How many may wait. One more takes the place of the oldest.
const MAX_WAITING: usize = 16;
const CHUNK_BYTES: usize = 64 << 10;
/// How many chunks may wait for a slow browser.
const CHUNKS_AHEAD: usize = 4;

/// Downloads that nobody has picked up yet, the oldest first.
#[derive(Default)]
pub struct Downloads(Mutex<VecDeque<Waiting>>);

impl fmt::Debug for Downloads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Downloads(…)")
    }
}

struct Waiting {
    path: String,
    since: Instant,
    opened: Opened,
}

impl Downloads {
    fn put(&self, opened: Opened) -> Result<String> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes)
            .map_err(|error| Error::bug("there are no random bytes").source_error(error))?;
        let path = format!("{PLACE}{:032x}", u128::from_le_bytes(bytes));
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.retain(|one| one.since.elapsed() < PICK_UP_TIMEOUT);
        if waiting.len() >= MAX_WAITING {
            waiting.pop_front();
        }
        waiting.push_back(Waiting {
            path: path.clone(),
            since: Instant::now(),
            opened,
        });
        Ok(path)
    }

    fn take(&self, path: &str) -> Option<Opened> {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = waiting.iter().position(|one| one.path == path)?;
        let found = waiting.remove(place)?;
        (found.since.elapsed() < PICK_UP_TIMEOUT).then_some(found.opened)
    }

    /// The bytes, once.
    pub(super) fn give(&self, path: &str) -> Response<Body> {
        let Some(opened) = self.take(path) else {
            let error = Error::not_found("this download is over")
                .hint("ask for it again where you found it");
            return answer::failure(StatusCode::NOT_FOUND, &error);
        };
        let named = format!("attachment; filename*=UTF-8''{}", encoded(&opened.name));
        let length = opened.bytes;
        let mut response = Response::new(content(opened).boxed());
        let headers = response.headers_mut();
        let kind = HeaderValue::from_static("application/octet-stream");
        headers.insert(CONTENT_TYPE, kind);
        if let Ok(named) = HeaderValue::from_str(&named) {
            headers.insert(CONTENT_DISPOSITION, named);
        }
        if let Some(length) = length {
            headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
        }
        response
    }
}

/// Opens what is asked for, so that a refusal is told to who asks.
pub(super) async fn begin(site: Arc<Site>, args: Args) -> Response<Body> {
    let opened = tokio::task::spawn_blocking(move || {
        let opened = site.session.open(args)?;
        site.downloads.put(opened)
    });
    match opened.await {
        Ok(Ok(path)) => answer::json(StatusCode::OK, &DownloadPlace { path }),
        Ok(Err(error)) => {
            let failure = Failure::from(&error);
            answer::json(answer::status(&failure), &failure)
        }
        Err(_) => {
            let error = Error::bug("the call broke down");
            answer::failure(StatusCode::INTERNAL_SERVER_ERROR, &error)
        }
    }
}

/// A name for a header: all but plain letters is written in hexadecimal.
fn encoded(name: &str) -> String {
    let mut text = String::new();
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.".contains(&byte) {
            text.push(byte.into());
        } else {
            text += &format!("%{byte:02X}");
        }
    }
    text
}

/// The bytes as they are read, by a thread of their own. It ends when nobody wants them any more.
fn content(opened: Opened) -> Content {
    let (sender, receiver) = channel(CHUNKS_AHEAD);
    let left = opened.bytes;
    tokio::task::spawn_blocking(move || {
        let mut content = opened.content;
        // A file that grows meanwhile is as long as was said.
        let mut left = left.unwrap_or(u64::MAX);
        let mut chunk = vec![0; CHUNK_BYTES];
        while left > 0 {
            let most = usize::try_from(left).map_or(CHUNK_BYTES, |left| left.min(CHUNK_BYTES));
            match content.read(&mut chunk[..most]) {
                Ok(0) | Err(_) => return,
                Ok(count) => {
                    left -= count as u64;
                    let bytes = Bytes::copy_from_slice(&chunk[..count]);
                    if sender.blocking_send(bytes).is_err() {
                        return;
                    }
                }
            }
        }
    });
    Content(receiver)
}

struct Content(Receiver<Bytes>);

impl HttpBody for Content {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<std::result::Result<Frame<Bytes>, Infallible>>> {
        let chunk = self.0.poll_recv(context);
        chunk.map(|chunk| chunk.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(name: &str) -> Opened {
        Opened {
            name: name.to_owned(),
            bytes: Some(1),
            content: Box::new(&b"x"[..]),
        }
    }

    #[test]
    fn each_is_given_once_and_few_wait() {
        let downloads = Downloads::default();
        let paths: Vec<String> = (0..=MAX_WAITING)
            .map(|_| downloads.put(opened("a")).expect("a path"))
            .collect();
        assert!(downloads.take(&paths[0]).is_none(), "the oldest is gone");
        assert!(downloads.take(&paths[1]).is_some());
        assert!(downloads.take(&paths[1]).is_none(), "once");
        assert!(downloads.take("/download/").is_none());
    }

    #[test]
    fn no_name_ends_its_header() {
        assert_eq!(encoded("last-1.pt"), "last-1.pt");
        assert_eq!(encoded("a\"\r\nb/ü"), "a%22%0D%0Ab%2F%C3%BC");
    }
}
