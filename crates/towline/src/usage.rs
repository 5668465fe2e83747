//! Wrong usage: what the parser refuses, told with the words that were meant.

use crate::cli::Cli;
use crate::{diagnose, output};
use clap::error::{ContextKind, ContextValue, ErrorKind as ClapKind};
use std::ffi::OsString;
use towline_core::suggest::did_you_mean;
use towline_core::{Error, ErrorKind};
use towline_import::other_tools;

/// Help and version are answers; everything else is wrong usage. Returns the exit code.
pub(crate) fn report(error: &clap::Error, words: &[OsString], json: bool) -> u8 {
    if let Some(error) = unknown_verb(error, words.get(1)) {
        return diagnose::report(&error, json);
    }
    match error.kind() {
        ClapKind::DisplayHelp | ClapKind::DisplayVersion => {
            match output::data(output::styled(error, output::stdout_has_colour()).as_bytes()) {
                Ok(()) => 0,
                Err(error) => diagnose::report(&error, json),
            }
        }
        ClapKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            output::status_styled(&output::styled(error, output::stderr_has_colour()));
            ErrorKind::Usage.exit_code()
        }
        ClapKind::UnknownArgument if foreign_option(error, words).is_some() => {
            let hint = foreign_option(error, words).unwrap_or_default();
            let error = Error::usage(first_line(error));
            diagnose::report(&error.hint(format!("here it is {hint}")), json)
        }
        _ if json => diagnose::report(&Error::usage(first_line(error)), true),
        _ => {
            let text = output::styled(error, output::stderr_has_colour());
            output::status_styled(without_odd_tip(&text).trim_end());
            ErrorKind::Usage.exit_code()
        }
    }
}

/// What is wrong, in one line. A line that ends in a colon goes on in the next ones.
fn first_line(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default();
    let first = first.trim_start_matches("error: ").to_owned();
    if !first.ends_with(':') {
        return first;
    }
    let rest = lines.take_while(|line| line.starts_with(' '));
    let rest: Vec<&str> = rest.map(str::trim).collect();
    format!("{first} {}", rest.join(", "))
}

/// Without the parser's advice to pass an unknown option as a value, which is hardly ever meant.
fn without_odd_tip(text: &str) -> String {
    let is_odd = |line: &&str| line.contains("tip:") && line.contains("as a value, use");
    let kept: Vec<&str> = text.lines().filter(|line| !is_odd(line)).collect();
    kept.join("\n").replace("\n\n\n", "\n\n")
}

/// The error for an unknown verb, with a suggestion. Old one-letter names are left out, because
/// they are close to everything.
fn unknown_verb(error: &clap::Error, first: Option<&OsString>) -> Option<Error> {
    let word = match error.get(ContextKind::InvalidSubcommand)? {
        ContextValue::String(word) if first.is_some_and(|first| first == word.as_str()) => {
            word.clone()
        }
        _ => return None,
    };
    let error = Error::usage(format!("there is no verb `{word}`"));
    let suggestion = match other_tools::verb(&word) {
        Some(ours) => Some(format!("here it is `tow {ours}`")),
        None => did_you_mean(&word, verbs().iter().map(String::as_str)),
    };
    Some(error.maybe_hint(suggestion).hint("`tow --help` lists them"))
}

fn verbs() -> Vec<String> {
    <Cli as clap::CommandFactory>::command()
        .get_subcommands()
        .map(|verb| verb.get_name().to_owned())
        .filter(|name| name.len() > 1 && !name.starts_with('_'))
        .collect()
}

/// The name here of an option of another tool.
fn foreign_option(error: &clap::Error, words: &[OsString]) -> Option<&'static str> {
    if !matches!(words.get(1)?.to_str()?, "submit" | "run" | "alloc") {
        return None;
    }
    let ContextValue::String(option) = error.get(ContextKind::InvalidArg)? else {
        return None;
    };
    other_tools::option(option.split('=').next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_word_of_another_tool_is_one_of_ours() {
        let ours = verbs();
        for (theirs, here) in other_tools::VERBS {
            assert!(!ours.iter().any(|verb| verb == theirs), "{theirs}");
            let first = here.split(' ').next().unwrap_or_default();
            assert!(ours.iter().any(|verb| verb == first), "{here}");
        }
        let command = <Cli as clap::CommandFactory>::command();
        let submit = command.find_subcommand("submit").expect("a verb");
        for option in other_tools::OPTIONS.iter().flat_map(|(names, _)| *names) {
            let is_ours = submit.get_arguments().any(|argument| {
                argument
                    .get_long()
                    .is_some_and(|long| option.strip_prefix("--") == Some(long))
                    || argument
                        .get_short()
                        .is_some_and(|short| *option == format!("-{short}"))
            });
            assert!(!is_ours, "{option}");
        }
    }

    #[test]
    fn an_odd_tip_goes_and_others_stay() {
        let text = "error: x\n\n  tip: a similar argument exists: '--time'\n  \
            tip: to pass '--tim' as a value, use '-- --tim'\n\nUsage: y";
        let kept = "error: x\n\n  tip: a similar argument exists: '--time'\n\nUsage: y";
        assert_eq!(without_odd_tip(text), kept);
        let alone = "error: x\n\n  tip: to pass '-z' as a value, use '-- -z'\n\nUsage: y";
        assert_eq!(without_odd_tip(alone), "error: x\n\nUsage: y");
    }
}
