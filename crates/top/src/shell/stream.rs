//! The stream of events, on a thread of its own. If it breaks it begins again.

use super::closing::Closing;
use super::gate::Gate;
use super::{Message, send, thread};
use crate::model::event::Event;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use towline_api::cancel::{self, Cancel, Canceller};
use towline_api::replies::Caller;
use towline_api::session::{Args, Session};
use towline_core::{Error, Result};
use towline_wire::api::envelope::Reply;
use towline_wire::api::stream::Item;

/// How long to wait before a stream that broke begins again.
const AGAIN_AFTER: Duration = Duration::from_secs(2);

/// The stream that is listened to now.
#[derive(Debug, Clone, Default)]
pub(super) struct Stream(Arc<Mutex<Option<Canceller>>>);

impl Stream {
    pub(super) fn cancel(&self) {
        let canceller = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        canceller.as_ref().map(Canceller::cancel);
    }

    fn begin(&self) -> Result<Cancel> {
        let pair = cancel::pair();
        let (canceller, cancel) =
            pair.map_err(|error| Error::from_io("the stream cannot begin", error))?;
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(canceller);
        Ok(cancel)
    }
}

pub(super) fn listen(
    session: &Arc<Session>,
    sender: &Sender<Message>,
    gate: &Gate,
    closing: &Closing,
) -> Result<Stream> {
    let stream = Stream::default();
    let (session, sender, gate) = (Arc::clone(session), sender.clone(), gate.clone());
    let (stream_there, closing) = (stream.clone(), closing.clone());
    thread("top-stream", move || {
        loop {
            let end = stream_there.begin().and_then(|cancel| {
                let mut listener = Listener {
                    sender: sender.clone(),
                    gate: gate.clone(),
                    cancel,
                };
                session.call("events", Args::new(), &mut listener)
            });
            let why = end.map_or_else(|error| error.to_string(), |_| "the stream ended".into());
            if closing.wait(Duration::ZERO) || !send(&sender, Event::StreamEnded(why)) {
                return;
            }
            if closing.wait(AGAIN_AFTER) {
                return;
            }
        }
    })?;
    Ok(stream)
}

struct Listener {
    sender: Sender<Message>,
    gate: Gate,
    cancel: Cancel,
}

impl Caller for Listener {
    fn reply(&mut self, reply: Reply) -> bool {
        let Reply::Item(item) = reply else {
            return true;
        };
        let bytes = match item.as_ref() {
            Item::Log(part) => {
                let texts = [&part.text, &part.base64].into_iter().flatten();
                texts.map(String::len).sum()
            }
            _ => 0,
        };
        self.gate.pass(bytes);
        self.sender
            .send(Message::Streamed(Event::Item(item), bytes))
            .is_ok()
    }

    fn cancel(&self) -> &Cancel {
        &self.cancel
    }
}
