//! Frozen code, as a user meets it: the shipped binary, real trees, real runs.
#![allow(
    clippy::unwrap_used,
    clippy::too_many_lines,
    clippy::disallowed_methods
)]

mod frozen;
mod image;
mod init;
mod place;
mod retry;
mod snapshot;
mod ssh;
mod sync;

use towline_testkit::Home;

fn home() -> Home {
    Home::new(env!("CARGO_BIN_EXE_tow")).freezing()
}
