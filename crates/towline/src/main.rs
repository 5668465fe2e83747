//! `tow`: takes a command from where you sit to where it runs, and brings back logs and answers.

mod arguments;
mod bar;
mod cli;
mod code;
mod code_diff;
mod commands;
mod context;
mod data_process;
mod diagnose;
mod follow;
mod freshen;
mod image;
mod job_data;
mod logfiles;
mod mount;
mod output;
mod progress;
mod remote;
mod stores;
mod table;
mod transfers;

use std::ffi::OsString;
use std::process::ExitCode;
use towline_core::{Error, Result};

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().collect();
    // The two processes of a runner start here, before anything else is looked at.
    match (words.get(1).and_then(|word| word.to_str()), words.get(2).and_then(|word| word.to_str())) {
        (Some(towline_runner::DATA_VERB), None) => return data_process::main(),
        (Some("--version" | "-V"), None) => return version(),
        (Some(towline_runner::GUARD_VERB), Some(name)) => return plainly(towline_runner::guard_main(name)),
        (Some(towline_runner::INNER_VERB), Some(folder)) => return plainly(towline_runner::inner_main(folder.as_ref())),
        (Some(towline_runner::RUNNER_VERB), Some(name)) => return plainly(towline_runner::runner_main(name)),
        _ => {}
    }
    commands::main(words)
}

fn version() -> ExitCode {
    output::data(format!("tow {}\n", towline_wire::version::version()).as_bytes());
    ExitCode::SUCCESS
}

fn plainly(result: std::io::Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::status(&format!("runner: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// A text argument; what is not text cannot be stored.
fn text(word: OsString) -> Result<String> {
    word.into_string().map_err(|word| Error::usage(format!("`{}` is not UTF-8 text", word.to_string_lossy())))
}
