//! Calls of the session, with the end that comes when the agent or the whole program gives up.

use serde::Serialize;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use towline_api::cancel::{self, Cancel, Canceller};
use towline_api::replies::Caller;
use towline_api::session::Session;
use towline_core::{Error, Result};
use towline_wire::api::envelope::Reply;

/// The tools that are being used.
#[derive(Debug, Clone, Default)]
pub(crate) struct InUse(Arc<Mutex<Numbered>>);

#[derive(Debug, Default)]
struct Numbered {
    next: u64,
    cancellers: HashMap<u64, Canceller>,
}

/// The use of one tool: what its calls go by.
#[derive(Debug)]
pub(crate) struct Use {
    number: u64,
    all: InUse,
    cancel: Cancel,
}

impl InUse {
    pub(crate) fn begin(&self) -> Result<(Use, Canceller)> {
        let (canceller, cancel) =
            cancel::pair().map_err(|error| Error::from_io("the call cannot be begun", error))?;
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.next += 1;
        let number = all.next;
        all.cancellers.insert(number, canceller.clone());
        drop(all);
        let call = Use {
            number,
            all: self.clone(),
            cancel,
        };
        Ok((call, canceller))
    }

    /// Ends all. Verbs that are under way are asked to end.
    pub(crate) fn cancel(&self) {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.cancellers.values().for_each(Canceller::cancel);
    }

    pub(crate) fn is_empty(&self) -> bool {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.cancellers.is_empty()
    }
}

impl Drop for Use {
    fn drop(&mut self) {
        let mut all = self.all.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.cancellers.remove(&self.number);
    }
}

impl Caller for Use {
    fn reply(&mut self, _: Reply) -> bool {
        !self.cancel.is_cancelled()
    }

    fn cancel(&self) -> &Cancel {
        &self.cancel
    }
}

/// Calls with arguments that are written as JSON.
pub(crate) fn call(
    session: &Session,
    calling: &mut Use,
    name: &str,
    args: &impl Serialize,
) -> Result<Value> {
    match json!(args) {
        Value::Object(args) => session.call(name, args, calling),
        _ => Err(Error::bug("the arguments of a call are no object")),
    }
}
