//! `tow top`: runs, their logs and the GPUs of the clusters, live in a terminal.
//!
//! `model` is what is shown and what is asked for, as a value that events change; `view` draws
//! that value; `shell` has the threads, the terminal and the signals. All that is known comes
//! through the calls and the one stream of the interface for programs.

mod ansi;
mod model;
mod shell;
mod text;
mod view;

pub use shell::run;
