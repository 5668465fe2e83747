//! What takes more than a moment is told: what is waited for, and what is known to be in the way.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// After this time somebody wonders.
pub const TELL_AFTER: Duration = Duration::from_secs(2);

/// Does `act`. While it lasts, `tell` gets what `line` says after a moment, and again when it says
/// something else.
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
        // Where no thread can be made it is done in silence.
        let teller = std::thread::Builder::new().spawn_scoped(scope, tell);
        let done = act();
        drop(over);
        drop(teller);
        done
    })
}
