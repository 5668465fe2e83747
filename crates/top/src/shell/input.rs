//! Keys, the mouse, pasted text and the size of the terminal.

use super::{Message, thread};
use crate::model::event::Event;
use ratatui::crossterm::event::{self, Event as Told};
use std::sync::mpsc::Sender;
use towline_core::Result;

/// Listens until the terminal gives no more. The thread ends with the program: it waits for a key.
pub(super) fn listen(sender: &Sender<Message>) -> Result<()> {
    let sender = sender.clone();
    thread("top-input", move || {
        loop {
            let Ok(told) = event::read() else {
                // If nobody listens any more, nobody misses it.
                let _ = sender.send(Message::InputEnded);
                return;
            };
            let event = match told {
                Told::Key(key) => Event::Key(key),
                Told::Mouse(mouse) => Event::Mouse(mouse),
                Told::Paste(text) => Event::Paste(text),
                Told::Resize(width, height) => Event::Resize { width, height },
                Told::FocusGained | Told::FocusLost => continue,
            };
            if !super::send(&sender, event) {
                return;
            }
        }
    })
}
