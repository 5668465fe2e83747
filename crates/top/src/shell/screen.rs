//! The terminal while `tow top` has it: raw, its second screen, the mouse reported, pasted text
//! marked as such. All of it is taken back when it is left, also by a panic.

use super::output::{Output, write_all};
use crate::model::State;
use crate::view::{self, look::Look};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::terminal::{disable_raw_mode, enable_raw_mode};
use ratatui::layout::{Rect, Size};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::panic::{self, PanicHookInfo};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use towline_core::{Error, Result};

/// The second screen, clicks and the wheel (not every motion), marks around pasted text, no cursor.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[?1000h\x1b[?1006h\x1b[?2004h\x1b[?25l";
/// The same back, in the opposite order, and no colour left.
const LEAVE: &[u8] = b"\x1b[0m\x1b[?25h\x1b[?2004l\x1b[?1006l\x1b[?1000l\x1b[?1049l";

/// The terminal is ours now.
static IS_ENTERED: AtomicBool = AtomicBool::new(false);
/// A thread panicked: what is shown may be wrong from now on.
static HAS_PANICKED: AtomicBool = AtomicBool::new(false);

type Hook = Arc<dyn Fn(&PanicHookInfo<'_>) + Send + Sync>;

pub(super) struct Screen {
    terminal: Terminal<CrosstermBackend<Output>>,
    look: Look,
    /// What a panic did before.
    hook: Hook,
}

impl Screen {
    pub(super) fn enter(look: Look) -> Result<Self> {
        let output = Output::new().map_err(failed)?;
        let terminal = Terminal::new(CrosstermBackend::new(output)).map_err(failed)?;
        HAS_PANICKED.store(false, Ordering::SeqCst);
        let hook: Hook = Arc::from(panic::take_hook());
        let before = Arc::clone(&hook);
        panic::set_hook(Box::new(move |panic| {
            // First the terminal: the message is for the user's own screen.
            leave();
            HAS_PANICKED.store(true, Ordering::SeqCst);
            before(panic);
        }));
        let mut screen = Self {
            terminal,
            look,
            hook,
        };
        screen.enter_again()?;
        Ok(screen)
    }

    /// Takes the terminal, and draws everything anew.
    pub(super) fn enter_again(&mut self) -> Result<()> {
        // Set before, so that what is half done is taken back.
        IS_ENTERED.store(true, Ordering::SeqCst);
        enable_raw_mode().map_err(failed)?;
        write(ENTER).map_err(failed)?;
        self.forget_drawn()
    }

    /// What is on the screen is not known any more. [`Terminal::clear`] would ask the terminal for
    /// its cursor, and the thread that reads the keys would get the answer.
    pub(super) fn forget_drawn(&mut self) -> Result<()> {
        let area = Rect::from((ratatui::layout::Position::ORIGIN, self.size()?));
        self.terminal.resize(area).map_err(failed)
    }

    #[expect(clippy::unused_self, reason = "only who has the screen may leave it")]
    pub(super) fn leave(&mut self) {
        leave();
    }

    #[expect(clippy::unused_self, reason = "only who has the screen may ask")]
    pub(super) fn is_entered(&self) -> bool {
        IS_ENTERED.load(Ordering::SeqCst)
    }

    pub(super) fn size(&self) -> Result<Size> {
        self.terminal.size().map_err(failed)
    }

    pub(super) fn draw(&mut self, state: &State) -> Result<()> {
        let look = self.look;
        let drawn = self.terminal.draw(|frame| {
            if let Some(cursor) = view::draw(state, look, frame.buffer_mut()) {
                frame.set_cursor_position(cursor);
            }
        });
        drawn.map(drop).map_err(failed)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        leave();
        // A thread that panics may not change what a panic does.
        if !std::thread::panicking() {
            let _ = panic::take_hook();
            let hook = Arc::clone(&self.hook);
            panic::set_hook(Box::new(move |panic| hook(panic)));
        }
    }
}

/// Gives the terminal back. Twice does no harm.
pub(super) fn leave() {
    if IS_ENTERED.swap(false, Ordering::SeqCst) {
        // If the terminal is gone there is nothing to give back.
        let _ = write(LEAVE);
        let _ = disable_raw_mode();
    }
}

/// Gives back the modes of a terminal that takes no more text: a write would wait for ever.
pub(super) fn leave_without_text() {
    if IS_ENTERED.swap(false, Ordering::SeqCst) {
        let _ = disable_raw_mode();
    }
}

/// An error if a thread panicked. Its message is on the user's own screen.
pub(super) fn check_panic() -> Result<()> {
    if HAS_PANICKED.load(Ordering::SeqCst) {
        return Err(Error::bug("a thread of `tow top` panicked"));
    }
    Ok(())
}

fn write(bytes: &[u8]) -> io::Result<()> {
    // Not by way of `stdout()`, whose lock the panicking thread may hold.
    let terminal = rustix::stdio::stdout().as_fd().try_clone_to_owned()?;
    write_all(&File::from(terminal), bytes)
}

fn failed(error: io::Error) -> Error {
    Error::from_io("the terminal cannot be used", error)
}
