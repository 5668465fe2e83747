//! Completion in shells: `tow __complete` says what can stand at the cursor. The scripts of
//! `tow completions` call it at each Tab, so they know every verb and value without being
//! installed again.
//!
//! It reads the history and the configuration, starts nothing, asks no cluster and prints no error:
//! a person who types must not see one.

mod candidates;
mod line;
mod place;

use crate::context::Context;
use crate::help;
use candidates::{Candidate, candidates};
use place::{Place, place};
use std::ffi::OsString;
use std::fmt::Write;
use std::process::ExitCode;
use towline_core::visible::visible;

/// The first word of the process.
pub(crate) const COMPLETE_VERB: &str = "__complete";

/// The script of each shell that asks this process.
pub(crate) const BASH: &str = include_str!("scripts/tow.bash");
pub(crate) const ZSH: &str = include_str!("scripts/_tow");
pub(crate) const FISH: &str = include_str!("scripts/tow.fish");

/// What the shell itself completes, in addition to our candidates: the first line of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Beside {
    Nothing,
    Files,
    Folders,
    /// The command of a job, which begins at this word. 0 is `tow`.
    Command(usize),
    /// The first word of such a command.
    Programs,
}

/// An answer: candidates for the word at the cursor, and what the shell adds.
#[derive(Debug)]
struct Answer {
    beside: Beside,
    candidates: Vec<Candidate>,
}

/// The process. Its words are the shell, then what was typed up to the cursor: bash gives the line
/// and the part of it that bash replaces, because bash cuts words at `:` and `=`; the others give
/// the words, the last of which is being typed.
pub(crate) fn main(words: &[OsString]) -> ExitCode {
    // A library or a panic may print too.
    if let Ok(null) = std::fs::File::options().write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stderr(null);
    }
    let words: Vec<String> = words
        .iter()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let Some((shell, typed)) = words.split_first() else {
        return ExitCode::FAILURE;
    };
    let text = match shell.as_str() {
        "bash" => for_bash(typed),
        "zsh" | "fish" => written(&answer(typed), described),
        _ => return ExitCode::FAILURE,
    };
    crate::written(crate::output::data(text.as_bytes()))
}

/// bash cannot complete a part of its line as a command of its own, so it is told the step.
fn for_bash(typed: &[String]) -> String {
    let (line, replaced) = (
        typed.first().map_or("", String::as_str),
        typed.get(1).map_or("", String::as_str),
    );
    let words = line::words(line);
    let current = words.last().map_or("", String::as_str);
    let kept = current.strip_suffix(replaced).unwrap_or_default().len();
    let mut answer = answer(&words);
    if let Beside::Command(first) = answer.beside {
        let is_first = first + 1 == words.len() && !current.contains('/');
        answer.beside = if is_first {
            Beside::Programs
        } else {
            Beside::Files
        };
    }
    written(&answer, |candidate| {
        candidate.value.get(kept..).unwrap_or_default().to_owned()
    })
}

fn answer(words: &[String]) -> Answer {
    let command = help::command();
    let typed = words.last().map_or("", String::as_str);
    let place = place(&command, words);
    let mut answer = match place {
        Place::Verb(command) => Answer {
            beside: Beside::Nothing,
            candidates: candidates::verbs(command),
        },
        Place::Option(command) => Answer {
            beside: Beside::Nothing,
            candidates: candidates::options(command),
        },
        Place::Value(value) => candidates(&Context::new(false, true), &value, typed),
        Place::Command(first) => Answer {
            beside: Beside::Command(first),
            candidates: Vec::new(),
        },
        Place::Nothing => Answer {
            beside: Beside::Nothing,
            candidates: Vec::new(),
        },
    };
    // What is typed already and goes on, such as `research:`, says nothing new.
    let is_new = |candidate: &Candidate| {
        candidate.value != typed || !candidate.value.ends_with([':', '=', '/'])
    };
    answer
        .candidates
        .retain(|candidate| candidate.value.starts_with(typed) && is_new(candidate));
    answer
}

/// The answer as lines: what the shell adds, then one candidate each.
fn written(answer: &Answer, line: impl Fn(&Candidate) -> String) -> String {
    let mut text = match answer.beside {
        Beside::Nothing => "values\n".to_owned(),
        Beside::Files => "files\n".to_owned(),
        Beside::Folders => "folders\n".to_owned(),
        Beside::Command(first) => format!("command {first}\n"),
        Beside::Programs => "programs\n".to_owned(),
    };
    for candidate in &answer.candidates {
        let _ = writeln!(text, "{}", visible(&line(candidate)).replace('\n', " "));
    }
    text
}

fn described(candidate: &Candidate) -> String {
    let description = candidate.description.replace('\t', " ");
    format!("{}\t{description}", candidate.value)
}
