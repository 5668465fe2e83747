//! Signals: those that end the program, and those of job control.

use super::closing::Closing;
use super::screen::leave_without_text;
use super::{Message, thread};
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP};
use signal_hook::iterator::{Handle, Signals as Iterator};
use signal_hook::low_level::emulate_default_handler;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::mpsc::Sender;
use std::time::Duration;
use towline_core::{Error, Result};

/// How long the screen may take to be left. A terminal that is held (Ctrl-S) takes no text.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(2);
const NONE: i32 = 0;

/// What the main thread hears of signals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Heard {
    End,
    Suspend,
    Continue,
}

#[derive(Debug)]
pub(super) struct Signals {
    handle: Handle,
    /// The signal that ends the program.
    end: Arc<AtomicI32>,
}

impl Signals {
    pub(super) fn listen(sender: &Sender<Message>, closing: &Closing) -> Result<Self> {
        let all = [SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGTSTP, SIGCONT];
        let mut signals = Iterator::new(all)
            .map_err(|error| Error::from_io("signals cannot be watched", error))?;
        let handle = signals.handle();
        let end = Arc::new(AtomicI32::new(NONE));
        let (end_there, sender, closing) = (Arc::clone(&end), sender.clone(), closing.clone());
        thread("top-signals", move || {
            for signal in signals.forever() {
                let heard = match signal {
                    SIGTSTP => Heard::Suspend,
                    SIGCONT => Heard::Continue,
                    signal => {
                        end_there.store(signal, Ordering::SeqCst);
                        Heard::End
                    }
                };
                // If the main thread is gone, so is the terminal.
                let _ = sender.send(Message::Heard(heard));
                if heard == Heard::End && !closing.wait(LEAVE_TIMEOUT) {
                    leave_without_text();
                    die_of(signal);
                }
            }
        })?;
        Ok(Self { handle, end })
    }

    pub(super) fn close(&self) {
        self.handle.close();
    }

    pub(super) fn heard_end(&self) -> Option<i32> {
        let signal = self.end.load(Ordering::SeqCst);
        (signal != NONE).then_some(signal)
    }
}

/// Ends the program by the signal that it got, so that its parent knows.
pub(super) fn die_of(signal: i32) {
    // A signal that cannot be raised leaves an ordinary end.
    let _ = emulate_default_handler(signal);
}
