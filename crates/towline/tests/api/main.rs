//! The interface for programs and pages, on the shipped binary: calls on standard input, calls over
//! HTTP, and the stream of events under kills.
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::disallowed_methods)]

mod around;
mod calls;
mod check;
mod client;
mod described;
mod http;
mod logs;
mod stream;
mod watchers;
mod web;

use towline_testkit::Home;

fn home() -> Home {
    Home::new(env!("CARGO_BIN_EXE_tow"))
}
