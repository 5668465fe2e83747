//! `tow`: takes a command from where you sit to where it runs, and brings back logs and answers.

mod aliases;
mod arguments;
mod bar;
mod cli;
mod cloud;
mod code_diff;
mod columns;
mod commands;
mod context;
mod crew;
mod data_process;
mod diagnose;
mod discover;
mod failure;
mod far;
mod flow_means;
mod follow;
mod freshen;
mod local_time;
mod logfiles;
mod loglines;
mod machines;
mod means;
mod mount;
mod output;
mod page;
mod progress;
mod reach;
mod scratch;
mod ssh_include;
mod stores;
mod table;
mod threads;
mod transfers;
mod trusting;
mod tunnels;

use std::ffi::OsString;
use std::process::ExitCode;
use towline_core::{Error, Result, RunId};

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().collect();
    // The two processes of a runner start here, before anything else is looked at.
    match (
        words.get(1).and_then(|word| word.to_str()),
        words.get(2).and_then(|word| word.to_str()),
    ) {
        (Some(towline_runner::DATA_VERB), None) => return data_process::main(),
        (Some("--version" | "-V"), None) => return version(),
        (Some(towline_runner::GUARD_VERB), Some(name)) => {
            return exit_code(towline_runner::guard_main(name));
        }
        (Some(towline_runner::INNER_VERB), Some(folder)) => {
            return exit_code(towline_runner::inner_main(folder.as_ref()));
        }
        (Some(towline_runner::RUNNER_VERB), Some(name)) => {
            return exit_code(towline_runner::runner_main(name));
        }
        (Some(towline_wire::stage::HEAD_VERB), Some(stage)) => {
            return job_exit_code(head(stage, &words));
        }
        (Some(towline_runner::far::NODE_VERB), Some(stage)) => {
            return job_exit_code(node(stage, &words));
        }
        (Some(towline_wire::crew::CREW_VERB), Some(_)) => {
            return job_exit_code(crew::main(&words[2..]));
        }
        (Some(towline_wire::site::SITE_VERB), Some(stage)) => {
            return exit_code(site(stage, words.get(3).and_then(|folder| folder.to_str())));
        }
        (Some(towline_io::far_folder::FOLDER_VERB), Some(name)) => {
            return exit_code(folder(name, &words));
        }
        (Some(towline_wire::workspace::SCRATCH_VERB), None) => return exit_code(scratch::serve()),
        (Some(towline_wire::workspace::BACKUP_VERB), Some(state)) => {
            return scratch::auto_main(
                state,
                words
                    .get(3)
                    .and_then(|name| name.to_str())
                    .unwrap_or_default(),
            );
        }
        (Some(towline_wire::tunnel::TUNNEL_VERB), Some(state)) => {
            return exit_code(tunnels::supervisor_main(
                state,
                words
                    .get(3)
                    .and_then(|name| name.to_str())
                    .unwrap_or_default(),
            ));
        }
        (Some(towline_wire::tunnel::COMMAND_VERB), Some(_)) => {
            return job_exit_code(towline_io::tunnel::command_main(&words[2..]));
        }
        (Some(towline_wire::stage::ENTER_VERB), Some(_)) => {
            return exec_failed(commands::ssh::enter(&words[2..]));
        }
        (Some(aliases::CONNECT_VERB), Some(state)) => return exec_failed(connect(state, &words)),
        _ => {}
    }
    commands::main(words)
}

fn version() -> ExitCode {
    written(output::text(&format!(
        "tow {}\n",
        towline_wire::version::version()
    )))
}

/// The code to leave with when all that was to do was to print.
fn written(result: Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => ExitCode::from(diagnose::report(&error, false)),
    }
}

fn exit_code(result: std::io::Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::status(&format!("runner: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// A process of a far cluster's job leaves with the job's own code.
fn job_exit_code(result: std::io::Result<i32>) -> ExitCode {
    match result {
        Ok(code) => ExitCode::from(u8::try_from(code & 0xff).unwrap_or(1)),
        Err(error) => {
            output::status(&format!("tow: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// What becomes another program comes back only when it cannot.
fn exec_failed(result: Result<std::convert::Infallible>) -> ExitCode {
    let Err(error) = result;
    ExitCode::from(diagnose::report(&error, false))
}

fn connect(state: &str, words: &[OsString]) -> Result<std::convert::Infallible> {
    let word = |place: usize| {
        words
            .get(place)
            .and_then(|word| word.to_str())
            .unwrap_or_default()
    };
    aliases::connect(
        &context::Context::of(state),
        word(3),
        word(4).parse().unwrap_or(22),
    )
}

fn run_id(words: &[OsString], place: usize) -> std::io::Result<RunId> {
    let text = words
        .get(place)
        .and_then(|word| word.to_str())
        .unwrap_or_default();
    RunId::try_from(text.to_owned()).map_err(std::io::Error::other)
}

fn head(stage: &str, words: &[OsString]) -> std::io::Result<i32> {
    towline_runner::far::head_main(stage.as_ref(), &run_id(words, 3)?)
}

fn node(stage: &str, words: &[OsString]) -> std::io::Result<i32> {
    let attempt = words
        .get(5)
        .and_then(|word| word.to_str())
        .and_then(|text| text.parse().ok())
        .unwrap_or(1);
    let task = towline_runner::far::NodeTask {
        stage: stage.into(),
        submission: run_id(words, 3)?,
        run: run_id(words, 4)?,
        attempt,
    };
    towline_runner::far::node_main(&task)
}

fn folder(name: &str, words: &[OsString]) -> std::io::Result<()> {
    let path = std::path::PathBuf::from(words.get(3).cloned().unwrap_or_default());
    // A path that is not absolute is below the home, where the line begins.
    let path = if path.is_absolute() {
        path
    } else {
        std::env::current_dir()?.join(path)
    };
    towline_io::far_folder::folder_main(name, &path)
}

fn site(stage: &str, bin: Option<&str>) -> std::io::Result<()> {
    let here = machines::here().map_err(std::io::Error::other)?;
    towline_server::site_main(stage.as_ref(), bin, here)
}

/// A text argument; what is not text cannot be stored.
fn text(word: OsString) -> Result<String> {
    word.into_string()
        .map_err(|word| Error::usage(format!("`{}` is not UTF-8 text", word.to_string_lossy())))
}
