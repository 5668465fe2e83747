//! What is drawn on a terminal: `tow top` and `tow ps --watch`, in a real one, on the shipped
//! binary.
#![allow(clippy::unwrap_used, clippy::print_stderr, clippy::disallowed_methods)]

mod leaving;
mod screen;
mod top;
mod watch;

use towline_testkit::Home;

fn home() -> Home {
    Home::new(env!("CARGO_BIN_EXE_tow"))
}
