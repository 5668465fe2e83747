//! Tells the user what a long wait is for, and what is known to block it.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// After this time the user is told.
pub const TELL_AFTER: Duration = Duration::from_secs(2);

/// Does `act`. Meanwhile `tell` gets what `line` returns: after a moment, and again when it
/// changes.
pub fn told<T>(tell: fn(&str), line: impl Fn() -> String + Sync, act: impl FnOnce() -> T) -> T {
    let (over, is_over) = channel::<()>();
    let line = &line;
    std::thread::scope(|scope| {
        let tell = move || {
            let mut last = String::new();
            while is_over.recv_timeout(TELL_AFTER) == Err(RecvTimeoutError::Timeout) {
                let line = line();
                if line != last {
                    tell(&line);
                    last = line;
                }
            }
        };
        // Without a thread, the user is told nothing.
        let teller = std::thread::Builder::new().spawn_scoped(scope, tell);
        let done = act();
        drop(over);
        drop(teller);
        done
    })
}
