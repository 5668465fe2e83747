//! Processes of this program beside the verbs: the program starts itself with one of these words.
//! One row each, looked up before the command line is parsed, because they start often.

mod crew;

use crate::commands;
use crate::commands::get;
use crate::commands::submit::check;
use crate::completion;
use crate::context::Context;
use crate::data;
use crate::diagnose;
use crate::output;
use crate::reach::{aliases, tunnels};
use crate::scratch;
use crate::wiring::machines;
use std::convert::Infallible;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use towline_core::{Result, RunId};
use towline_wire::{crew as crew_words, site, stage, tunnel, workspace};

/// One kind of process.
struct Process {
    /// The first word of its command line.
    verb: &'static str,
    /// The words behind it; a process without any has to have none.
    words: &'static [&'static str],
    main: Main,
}

/// The work of a process, by how its exit code is made.
enum Main {
    /// 0, or 1 with a message.
    Runner(fn(Words<'_>) -> io::Result<()>),
    /// The code of the job, or 1 with a message.
    Job(fn(Words<'_>) -> io::Result<i32>),
    /// It becomes another program, and returns only when it cannot.
    Exec(fn(Words<'_>) -> Result<Infallible>),
    /// It makes the code itself.
    Own(fn(Words<'_>) -> ExitCode),
}

static PROCESSES: [Process; 18] = [
    Process {
        verb: towline_runner::GUARD_VERB,
        words: &["NAME"],
        main: Main::Runner(|words| towline_runner::guard_main(words.text(0))),
    },
    Process {
        verb: towline_runner::RUNNER_VERB,
        words: &["NAME"],
        main: Main::Runner(|words| towline_runner::runner_main(words.text(0))),
    },
    Process {
        verb: towline_runner::INNER_VERB,
        words: &["FOLDER"],
        main: Main::Runner(|words| towline_runner::inner_main(words.path(0))),
    },
    Process {
        verb: towline_runner::DATA_VERB,
        words: &[],
        main: Main::Own(|_| data::process::main()),
    },
    Process {
        verb: stage::HEAD_VERB,
        words: &["STAGE", "RUN"],
        main: Main::Job(|words| towline_runner::far::head_main(words.path(0), &words.run(1)?)),
    },
    Process {
        verb: towline_runner::far::NODE_VERB,
        words: &["STAGE", "SUBMISSION", "RUN", "ATTEMPT"],
        main: Main::Job(node),
    },
    Process {
        verb: crew_words::CREW_VERB,
        words: &["OPTION…"],
        main: Main::Job(|words| crew::main(words.0)),
    },
    Process {
        verb: stage::ENTER_VERB,
        words: &["WORD…"],
        main: Main::Exec(|words| commands::ssh::enter(words.0)),
    },
    Process {
        verb: site::SITE_VERB,
        words: &["STAGE", "BIN"],
        main: Main::Runner(serve_site),
    },
    Process {
        verb: towline_io::far_folder::FOLDER_VERB,
        words: &["NAME", "FOLDER"],
        main: Main::Runner(serve_folder),
    },
    Process {
        verb: workspace::SCRATCH_VERB,
        words: &[],
        main: Main::Runner(|_| scratch::serve()),
    },
    Process {
        verb: workspace::BACKUP_VERB,
        words: &["STATE", "NAME"],
        main: Main::Own(|words| scratch::auto_main(words.text(0), words.text(1))),
    },
    Process {
        verb: tunnel::TUNNEL_VERB,
        words: &["STATE", "NAME"],
        main: Main::Runner(|words| tunnels::supervisor_main(words.text(0), words.text(1))),
    },
    Process {
        verb: tunnel::COMMAND_VERB,
        words: &["WORD…"],
        main: Main::Job(|words| towline_io::tunnel::command_main(words.0)),
    },
    Process {
        verb: aliases::CONNECT_VERB,
        words: &["STATE", "ALIAS", "PORT"],
        main: Main::Exec(connect),
    },
    Process {
        verb: check::CHECK_VERB,
        words: &["CLUSTER"],
        main: Main::Own(|words| check::main(words.get(0))),
    },
    Process {
        verb: get::serve::FILES_VERB,
        words: &[],
        main: Main::Own(|_| get::serve::main()),
    },
    Process {
        verb: completion::COMPLETE_VERB,
        words: &["SHELL", "WORD…"],
        main: Main::Own(|words| completion::main(words.0)),
    },
];

/// The words behind the verb. One that is missing is empty.
#[derive(Clone, Copy)]
struct Words<'w>(&'w [OsString]);

impl<'w> Words<'w> {
    fn text(self, place: usize) -> &'w str {
        self.get(place).unwrap_or_default()
    }

    fn get(self, place: usize) -> Option<&'w str> {
        self.0.get(place).and_then(|word| word.to_str())
    }

    fn path(self, place: usize) -> &'w Path {
        self.0.get(place).map_or(Path::new(""), Path::new)
    }

    fn run(self, place: usize) -> io::Result<RunId> {
        RunId::try_from(self.text(place).to_owned()).map_err(io::Error::other)
    }
}

/// Runs the process that the words of the command line name; `None` where they name none.
pub(crate) fn run(words: &[OsString]) -> Option<ExitCode> {
    let (process, words) = find(words)?;
    Some(match process.main {
        Main::Runner(main) => exit_code(main(words)),
        Main::Job(main) => job_exit_code(main(words)),
        Main::Exec(main) => exec_failed(main(words)),
        Main::Own(main) => main(words),
    })
}

fn find(words: &[OsString]) -> Option<(&'static Process, Words<'_>)> {
    let verb = words.get(1)?.to_str()?;
    let words = Words(&words[2..]);
    let is_named = |process: &&Process| {
        process.verb == verb && process.words.is_empty() == words.get(0).is_none()
    };
    PROCESSES
        .iter()
        .find(is_named)
        .map(|process| (process, words))
}

fn exit_code(result: io::Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::status(&format!("runner: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// A process of a far cluster's job exits with the job's own code.
fn job_exit_code(result: io::Result<i32>) -> ExitCode {
    match result {
        Ok(code) => ExitCode::from(u8::try_from(code & 0xff).unwrap_or(1)),
        Err(error) => {
            output::status(&format!("tow: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// `exec` returns only on failure.
fn exec_failed(result: Result<Infallible>) -> ExitCode {
    let Err(error) = result;
    ExitCode::from(diagnose::report(&error, false))
}

fn connect(words: Words<'_>) -> Result<Infallible> {
    let port = words.text(2).parse().unwrap_or(22);
    aliases::connect(&Context::of(words.text(0)), words.text(1), port)
}

fn node(words: Words<'_>) -> io::Result<i32> {
    towline_runner::far::node_main(&towline_runner::far::NodeTask {
        stage: words.path(0).into(),
        submission: words.run(1)?,
        run: words.run(2)?,
        attempt: words.text(3).parse().unwrap_or(1),
    })
}

fn serve_folder(words: Words<'_>) -> io::Result<()> {
    let path = PathBuf::from(words.path(1));
    // The process starts in the home folder, so a relative path is below it.
    let path = if path.is_absolute() {
        path
    } else {
        std::env::current_dir()?.join(path)
    };
    towline_io::far_folder::folder_main(words.text(0), &path)
}

fn serve_site(words: Words<'_>) -> io::Result<()> {
    let here = machines::here().map_err(io::Error::other)?;
    towline_server::site_main(words.path(0), words.get(1), here)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(words: &[&str]) -> bool {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        find(&words).is_some()
    }

    #[test]
    fn every_process_is_hidden_and_found_by_its_own_word() {
        for process in &PROCESSES {
            assert!(process.verb.starts_with("__"), "{}", process.verb);
            let alike = PROCESSES.iter().filter(|other| other.verb == process.verb);
            assert_eq!(alike.count(), 1, "{}", process.verb);
            let whole: Vec<&str> = ["tow", process.verb]
                .into_iter()
                .chain(process.words.iter().copied())
                .collect();
            assert!(named(&whole), "{whole:?}");
        }
    }

    #[test]
    fn verbs_and_wrong_numbers_of_words_are_for_the_parser_of_arguments() {
        for words in [
            &["tow"][..],
            &["tow", "ps"],
            &["tow", "ps", "__data"],
            &["tow", towline_runner::DATA_VERB, "more"],
            &["tow", towline_runner::GUARD_VERB],
        ] {
            assert!(!named(words), "{words:?}");
        }
    }
}
