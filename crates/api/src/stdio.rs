//! Calls on standard input, replies on standard output: JSON, one object per line. For editors.

use crate::cancel::{self, Cancel, Canceller};
use crate::replies::Caller;
use crate::session::Session;
use std::collections::HashMap;
use std::io::{self, BufRead, Write};
use std::sync::{Arc, Mutex, PoisonError};
use towline_core::{Error, Result};
use towline_wire::api::envelope::{Call, Line, Numbered, Reply};
use towline_wire::report::Failure;

/// How many calls may be under way at once.
const MAX_CALLS: usize = 256;
/// A longer line is refused.
const MAX_LINE_BYTES: u64 = 16 << 20;

type Calls = Arc<Mutex<HashMap<u64, Canceller>>>;

/// Answers calls until the input ends. Calls that are under way then are cancelled.
pub fn serve<W: Write + Send + 'static>(
    session: &Arc<Session>,
    mut input: impl BufRead,
    output: W,
) -> Result<()> {
    let output = Output(Arc::new(Mutex::new(output)));
    let calls = Calls::default();
    let outcome = loop {
        match next_line(&mut input) {
            Ok(None) => break Ok(()),
            Ok(Some(line)) => {
                if !take(session, &calls, &output, &line) {
                    break Ok(());
                }
            }
            Err(error) => {
                break Err(Error::from_io("standard input cannot be read", error));
            }
        }
    };
    let calls = calls.lock().unwrap_or_else(PoisonError::into_inner);
    calls.values().for_each(Canceller::cancel);
    outcome
}

fn next_line(input: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    let count = io::Read::take(input, MAX_LINE_BYTES).read_until(b'\n', &mut line)?;
    if count as u64 == MAX_LINE_BYTES && line.last() != Some(&b'\n') {
        let text = format!("a line is longer than {MAX_LINE_BYTES} bytes");
        return Err(io::Error::new(io::ErrorKind::InvalidData, text));
    }
    Ok((count > 0).then_some(line))
}

/// Where replies are written. Each is written whole.
struct Output<W>(Arc<Mutex<W>>);

impl<W> Clone for Output<W> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<W: Write> Output<W> {
    /// `false` if nobody reads any more.
    fn write(&self, id: Option<u64>, reply: Reply) -> bool {
        let Ok(mut line) = serde_json::to_vec(&Numbered { id, reply }) else {
            return false;
        };
        line.push(b'\n');
        let mut output = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        output
            .write_all(&line)
            .and_then(|()| output.flush())
            .is_ok()
    }

    fn refuse(&self, id: Option<u64>, error: &Error) -> bool {
        self.write(id, Reply::Error(Failure::from(error)))
    }
}

/// Takes one line. `false` if nobody reads the answers any more.
fn take<W: Write + Send + 'static>(
    session: &Arc<Session>,
    calls: &Calls,
    output: &Output<W>,
    line: &[u8],
) -> bool {
    if line.trim_ascii().is_empty() {
        return true;
    }
    match serde_json::from_slice(line) {
        Ok(Line::Call(call)) => begin(session, calls, output, call),
        Ok(Line::Cancel(cancel)) => {
            let calls = calls.lock().unwrap_or_else(PoisonError::into_inner);
            calls.get(&cancel.cancel).map(Canceller::cancel);
            true
        }
        Err(_) => {
            let value: Option<serde_json::Value> = serde_json::from_slice(line).ok();
            let id = value.and_then(|value| value.get("id")?.as_u64());
            let error = Error::usage("the line is neither a call nor a cancel").hint(
                r#"write {"id": 1, "call": "ps", "args": {}} or {"cancel": 1}, each in one line"#,
            );
            output.refuse(id, &error)
        }
    }
}

fn begin<W: Write + Send + 'static>(
    session: &Arc<Session>,
    calls: &Calls,
    output: &Output<W>,
    call: Call,
) -> bool {
    let id = call.id;
    let cancel = {
        let mut in_progress = calls.lock().unwrap_or_else(PoisonError::into_inner);
        if in_progress.contains_key(&id) {
            let error = Error::usage(format!("call {id} is still under way"))
                .hint("give each call a number of its own");
            return output.refuse(Some(id), &error);
        }
        if in_progress.len() >= MAX_CALLS {
            let error = Error::refused(format!("{MAX_CALLS} calls are under way already"));
            return output.refuse(Some(id), &error);
        }
        match cancel::pair() {
            Ok((canceller, cancel)) => {
                in_progress.insert(id, canceller);
                cancel
            }
            Err(error) => {
                let error = Error::from_io("the call cannot be begun", error);
                return output.refuse(Some(id), &error);
            }
        }
    };
    let mut caller = Stdout {
        id,
        output: output.clone(),
        cancel,
    };
    let (session, calls_there) = (Arc::clone(session), Arc::clone(calls));
    let made = std::thread::Builder::new().spawn(move || {
        let reply = match session.call(&call.call, call.args, &mut caller) {
            Ok(answer) => Reply::Done(answer),
            Err(error) => Reply::Error(Failure::from(&error)),
        };
        let mut in_progress = calls_there.lock().unwrap_or_else(PoisonError::into_inner);
        in_progress.remove(&id);
        drop(in_progress);
        caller.reply(reply);
    });
    if let Err(error) = made {
        let mut in_progress = calls.lock().unwrap_or_else(PoisonError::into_inner);
        in_progress.remove(&id);
        drop(in_progress);
        let error = Error::from_io("no thread can be made for the call", error)
            .hint(towline_core::error::THREADS_HINT);
        return output.refuse(Some(id), &error);
    }
    true
}

struct Stdout<W> {
    id: u64,
    output: Output<W>,
    cancel: Cancel,
}

impl<W: Write> Caller for Stdout<W> {
    fn reply(&mut self, reply: Reply) -> bool {
        self.output.write(Some(self.id), reply) && !self.cancel.is_cancelled()
    }

    fn cancel(&self) -> &Cancel {
        &self.cancel
    }
}
