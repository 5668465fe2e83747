//! The local cluster, as a user meets it: real processes, real signals, the shipped binary.
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::disallowed_methods)]

mod daemon;
mod gang;
mod gpus;
mod history;
mod hung;
mod limits;
mod orphans;
mod preempt;
mod shell;

use towline_testkit::Home;

fn home() -> Home {
    Home::new(env!("CARGO_BIN_EXE_tow"))
}
