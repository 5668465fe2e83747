//! Answers what the model asks for, each question on a thread of its own: a cluster may take long.

use super::questions;
use super::{Message, send, thread};
use crate::model::event::{Answer, Ask, Event, Refusal};
use std::collections::HashMap;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use towline_api::cancel::{self, Cancel, Canceller};
use towline_api::replies::Caller;
use towline_api::session::Session;
use towline_core::Error;
use towline_wire::api::envelope::Reply;

pub(super) struct Calls {
    session: Arc<Session>,
    sender: Sender<Message>,
    in_progress: InProgress,
    next: u64,
}

/// The calls that are under way, and whether each changes something.
#[derive(Debug, Clone, Default)]
struct InProgress(Arc<Mutex<HashMap<u64, (Canceller, bool)>>>);

impl InProgress {
    fn lock(&self) -> MutexGuard<'_, HashMap<u64, (Canceller, bool)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Calls {
    pub(super) fn new(session: &Arc<Session>, sender: &Sender<Message>) -> Self {
        Self {
            session: Arc::clone(session),
            sender: sender.clone(),
            in_progress: InProgress::default(),
            next: 0,
        }
    }

    /// Begins to answer. What cannot be begun is answered with why.
    pub(super) fn begin(&mut self, ask: Ask) {
        if let Ask::Follow { stream, logs } = ask {
            // It wakes the stream and waits for nothing, and the order counts. A stream that is
            // gone is followed by another, whose begin asks for its logs again.
            if let Ok((_canceller, cancel)) = cancel::pair() {
                let _ = questions::follow(&self.session, &stream, &logs, &mut Silent(cancel));
            }
            return;
        }
        let number = self.next;
        self.next += 1;
        let changes = matches!(ask, Ask::Change(_));
        let begun = cancel::pair()
            .map_err(|error| Error::from_io("nothing more can be asked for", error))
            .and_then(|(canceller, cancel)| {
                self.in_progress.lock().insert(number, (canceller, changes));
                self.spawn(number, ask.clone(), cancel)
            });
        if let Err(error) = begun {
            self.in_progress.lock().remove(&number);
            self.refuse(ask, &error);
        }
    }

    fn spawn(&self, number: u64, ask: Ask, cancel: Cancel) -> towline_core::Result<()> {
        let (session, sender) = (Arc::clone(&self.session), self.sender.clone());
        let in_progress = self.in_progress.clone();
        thread("top-call", move || {
            let answer = questions::answer(&session, ask, &mut Silent(cancel));
            in_progress.lock().remove(&number);
            if let Some(answer) = answer {
                send(&sender, Event::Answer(answer));
            }
        })
    }

    fn refuse(&self, ask: Ask, error: &Error) {
        let refusal = Refusal::from(error);
        let answer = match ask {
            Ask::Rows(ask) => Answer::Rows(ask, Err(refusal)),
            Ask::Clusters => Answer::Clusters(Err(refusal)),
            Ask::Logs(run) => Answer::Logs(run, Err(refusal)),
            Ask::Lines(ask) => Answer::Lines(ask, Err(refusal)),
            Ask::Search(ask) => Answer::Search(ask, Err(refusal)),
            Ask::Why(run) => Answer::Why(run, Err(refusal)),
            Ask::Change(ask) => Answer::Change(ask, Err(refusal)),
            Ask::Follow { .. } | Ask::Suspend | Ask::Repaint | Ask::Quit => return,
        };
        send(&self.sender, Event::Answer(answer));
    }

    /// Ends what only asks. What changes something goes on.
    pub(super) fn cancel_questions(&self) {
        let in_progress = self.in_progress.lock();
        let questions = in_progress.values().filter(|(_, changes)| !changes);
        questions.for_each(|(canceller, _)| canceller.cancel());
    }

    pub(super) fn has_changes(&self) -> bool {
        self.in_progress
            .lock()
            .values()
            .any(|(_, changes)| *changes)
    }
}

/// A caller that wants the answer alone.
struct Silent(Cancel);

impl Caller for Silent {
    fn reply(&mut self, _reply: Reply) -> bool {
        !self.0.is_cancelled()
    }

    fn cancel(&self) -> &Cancel {
        &self.0
    }
}
