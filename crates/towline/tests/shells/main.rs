//! What needs programs beside `tow`: completion in real shells, manual pages in a real `man`. They
//! are apart from the other verbs, whose tests need nothing.
#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

mod completions;
mod man;

use towline_testkit::Home;

fn home() -> Home {
    Home::new(env!("CARGO_BIN_EXE_tow"))
}
