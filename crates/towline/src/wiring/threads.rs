//! Threads that cannot be started, because of a limit on processes as on login nodes, give an error
//! and never a panic.

use crate::diagnose;
use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use tokio::runtime::{Builder, Runtime};
use towline_core::error::THREADS_HINT;
use towline_core::{Error, Result};

/// Parts of the panic messages of the standard library and tokio.
const NO_THREAD: [&str; 2] = ["failed to spawn thread", "OS can't spawn"];

pub(crate) fn none(error: io::Error) -> Error {
    Error::refused("no thread can be started")
        .source_error(error)
        .hint(THREADS_HINT)
}

/// The runtime of data verbs. Tokio panics if it cannot start its threads.
pub(crate) fn runtime() -> Result<Runtime> {
    // Tokio panics when only some of its threads could be started, so we first try to start as
    // many.
    let tried: Vec<_> = (0..=WORKER_THREADS)
        .map(|_| std::thread::Builder::new().spawn(std::thread::park))
        .collect();
    let mut problem = None;
    for thread in tried {
        match thread {
            Ok(thread) => {
                thread.thread().unpark();
                let _ = thread.join();
            }
            Err(error) => problem = Some(error),
        }
    }
    match problem {
        Some(error) => Err(none(error)),
        None => Builder::new_multi_thread()
            .worker_threads(WORKER_THREADS)
            .max_blocking_threads(16)
            .enable_all()
            .build()
            .map_err(none),
    }
}

const WORKER_THREADS: usize = 2;

/// The runtime of a server: one thread that listens, and one for each call that is under way.
pub(crate) fn serving_runtime() -> Result<Runtime> {
    Builder::new_current_thread()
        .max_blocking_threads(MAX_CALLS)
        .enable_all()
        .build()
        .map_err(none)
}

/// An open page has one call under way all the time: its stream of events.
const MAX_CALLS: usize = 320;

/// Runs a verb. A panic becomes a message and a documented exit code.
pub(crate) fn without_panics(json: bool, verb: impl FnOnce() -> ExitCode) -> ExitCode {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        // If no thread can be started, the message below is enough.
        if !is_no_thread(text_of(panic.payload())) {
            usual(panic);
        }
    }));
    catch_unwind(AssertUnwindSafe(verb))
        .unwrap_or_else(|panic| ExitCode::from(diagnose::report(&told(&*panic), json)))
}

fn text_of(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("without a word")
}

fn is_no_thread(text: &str) -> bool {
    NO_THREAD.iter().any(|words| text.contains(words))
}

fn told(panic: &(dyn Any + Send)) -> Error {
    let text = text_of(panic);
    if is_no_thread(text) {
        return none(io::Error::other(text.to_owned()));
    }
    Error::bug(text.to_owned())
}
