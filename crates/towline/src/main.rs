//! `tow`: takes a command from where you sit to where it runs, and brings back logs and answers.

mod arguments;
mod cli;
mod commands;
mod completion;
mod context;
mod data;
mod diagnose;
mod help;
mod output;
mod processes;
mod reach;
mod runs;
mod scratch;
mod usage;
mod wiring;

use std::ffi::OsString;
use std::process::ExitCode;
use towline_core::{Error, Result};

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().collect();
    let word = |place: usize| words.get(place).and_then(|word| word.to_str());
    if let Some(code) = processes::run(&words) {
        return code;
    }
    if let (Some("--version" | "-V"), None) = (word(1), word(2)) {
        return version();
    }
    commands::main(words)
}

fn version() -> ExitCode {
    written(output::text(&format!(
        "tow {}\n",
        towline_wire::version::version()
    )))
}

/// The exit code of a verb that only prints.
fn written(result: Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => ExitCode::from(diagnose::report(&error, false)),
    }
}

/// An argument as text. An argument that is not UTF-8 is refused.
fn text(word: OsString) -> Result<String> {
    word.into_string()
        .map_err(|word| Error::usage(format!("`{}` is not UTF-8 text", word.to_string_lossy())))
}
