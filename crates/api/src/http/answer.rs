//! The answer of a call: one JSON document, or every reply as a server-sent event.

use super::{Body, Site, whole};
use crate::cancel::{self, Cancel, Canceller};
use crate::replies::Caller;
use crate::session::Args;
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use http_body_util::BodyExt;
use hyper::body::{Body as HttpBody, Frame};
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use towline_core::Error;
use towline_wire::api::envelope::Reply;
use towline_wire::report::Failure;

/// How many replies may wait for a slow reader before the work waits too.
const REPLIES_AHEAD: usize = 16;

pub(super) fn wants_events(headers: &HeaderMap) -> bool {
    headers
        .get(ACCEPT)
        .is_some_and(|accept| accept.as_bytes().starts_with(b"text/event-stream"))
}

pub(super) fn failure(status: StatusCode, error: &Error) -> Response<Body> {
    json(status, &Failure::from(error))
}

pub(super) fn json<T: serde::Serialize>(status: StatusCode, value: &T) -> Response<Body> {
    let bytes = serde_json::to_vec(value).unwrap_or_default();
    let mut response = Response::new(whole(bytes));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

pub(super) async fn call(
    site: Arc<Site>,
    call: String,
    args: Args,
    wants_events: bool,
) -> Response<Body> {
    let (canceller, cancel) = match cancel::pair() {
        Ok(pair) => pair,
        Err(error) => {
            let error = Error::from_io("the call cannot be begun", error);
            return failure(StatusCode::SERVICE_UNAVAILABLE, &error);
        }
    };
    let (sender, receiver) = channel(REPLIES_AHEAD);
    // From here on the call ends when nobody wants its replies: the response is dropped, and with
    // it this.
    let mut replies = Replies {
        receiver,
        canceller,
    };
    tokio::task::spawn_blocking(move || {
        let mut caller = Channel { sender, cancel };
        let last = match site.session.call(&call, args, &mut caller) {
            Ok(answer) => Reply::Done(answer),
            Err(error) => Reply::Error(Failure::from(&error)),
        };
        let _ = caller.sender.blocking_send(last);
    });
    if wants_events {
        let mut response = Response::new(replies.boxed());
        let kind = HeaderValue::from_static("text/event-stream");
        response.headers_mut().insert(CONTENT_TYPE, kind);
        return response;
    }
    loop {
        match replies.receiver.recv().await {
            Some(Reply::Done(answer)) => return json(StatusCode::OK, &answer),
            Some(Reply::Error(failure)) => return json(status(&failure), &failure),
            Some(Reply::Item(_)) => {
                let error = Error::usage("this call is a stream")
                    .hint("ask for it with `Accept: text/event-stream`");
                return failure(StatusCode::NOT_ACCEPTABLE, &error);
            }
            Some(Reply::Note(_) | Reply::Progress(_) | Reply::Part(_)) => {}
            None => {
                let error = Error::bug("the call broke down");
                return failure(StatusCode::INTERNAL_SERVER_ERROR, &error);
            }
        }
    }
}

/// The status of a call that failed. It is never of the kind that says that the server is broken,
/// but for a defect of ours.
pub(super) fn status(failure: &Failure) -> StatusCode {
    match failure.error {
        "usage" | "config" => StatusCode::BAD_REQUEST,
        "not_found" => StatusCode::NOT_FOUND,
        "timeout" => StatusCode::REQUEST_TIMEOUT,
        "unreachable" => StatusCode::FAILED_DEPENDENCY,
        "bug" => StatusCode::INTERNAL_SERVER_ERROR,
        _ => StatusCode::CONFLICT,
    }
}

struct Channel {
    sender: Sender<Reply>,
    cancel: Cancel,
}

impl Caller for Channel {
    fn reply(&mut self, reply: Reply) -> bool {
        self.sender.blocking_send(reply).is_ok()
    }

    fn cancel(&self) -> &Cancel {
        &self.cancel
    }
}

/// The replies of a call. Dropping them cancels the call.
struct Replies {
    receiver: Receiver<Reply>,
    canceller: Canceller,
}

impl Drop for Replies {
    fn drop(&mut self) {
        self.canceller.cancel();
    }
}

impl HttpBody for Replies {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.receiver
            .poll_recv(context)
            .map(|reply| reply.map(|reply| Ok(Frame::data(event(&reply)))))
    }
}

fn event(reply: &Reply) -> Bytes {
    let mut event = b"data: ".to_vec();
    // JSON has no bare line ends, so one line holds it.
    if serde_json::to_writer(&mut event, reply).is_err() {
        event.truncate(6);
    }
    event.extend_from_slice(b"\n\n");
    Bytes::from(event)
}
