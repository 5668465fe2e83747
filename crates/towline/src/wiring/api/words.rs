//! The words of the command line that a call stands for. The parser's own description of the verbs
//! says which options there are, so a call can do what the command line can, and nothing else.

use crate::commands::get::serve::FILES_VERB;
use crate::commands::submit::check::CHECK_VERB;
use crate::help;
use clap::{Arg, ArgAction, Command};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::ffi::OsString;
use towline_api::session::Args;
use towline_core::suggest::did_you_mean;
use towline_core::{Error, Result};
use towline_wire::api::check::JobCheck;
use towline_wire::api::files::FilesAsk;
use towline_wire::api::schema::CALLS;

/// Verbs that a program may call. The others hold a terminal, run until they are ended, or are calls
/// of the interface itself.
pub(super) const CALLED: [&str; 40] = [
    "abort", "adopt", "alloc", "clusters", "config", "cp", "daemon", "diff", "doctor", "down",
    "edit", "get", "history", "hold", "import", "init", "login", "logout", "ls", "nodes", "prune",
    "ps", "query", "release", "resubmit", "resume", "rm", "roles", "scratch", "show", "snapshot",
    "submit", "sync", "tag", "trust", "tunnel", "up", "url", "wait", "why",
];

/// Names of arguments that are not options: what a verb reads from its standard input.
pub(super) const INPUT: &str = "input";

/// A call as the words of a command line.
pub(super) struct Words {
    pub(super) words: Vec<OsString>,
    /// What is written to its standard input.
    pub(super) input: Option<String>,
}

/// The words of a call of `verb`, such as `ps` or `tunnel.ls`.
pub(super) fn of_call(verb: &str, args: &Args) -> Result<Words> {
    let mut command = help::command();
    // Only then the places of positional arguments are known.
    command.build();
    let path: Vec<&str> = verb.split('.').collect();
    let command = find(&command, verb, &path)?;
    let mut options = Vec::new();
    let mut positionals: Vec<(usize, Vec<String>)> = Vec::new();
    let mut input = None;
    for (name, value) in args {
        if name == INPUT {
            input = Some(text(name, value)?);
            continue;
        }
        let arg = argument(command, verb, name)?;
        let values = values(arg, name, value)?;
        match (arg.get_long(), arg.get_index()) {
            (Some(long), _) => options.extend(option_words(arg, long, values)),
            (None, Some(index)) => positionals.push((index, values)),
            (None, None) => return Err(unknown(command, verb, name)),
        }
    }
    positionals.sort_by_key(|(index, _)| *index);
    let mut words: Vec<OsString> = path.iter().map(Into::into).collect();
    words.push("--json".into());
    words.extend(options);
    words.extend(value_words(command, positionals)?);
    Ok(Words { words, input })
}

/// The words that are no options, behind a `--`: no value is taken for an option there. Where a verb
/// has words of its own behind it, the others come before, and may not look like options.
fn value_words(command: &Command, values: Vec<(usize, Vec<String>)>) -> Result<Vec<OsString>> {
    let last = command.get_arguments().find(|arg| arg.is_last_set());
    let last = last.and_then(Arg::get_index);
    let mut words: Vec<OsString> = Vec::new();
    let (behind, before): (Vec<_>, Vec<_>) = values
        .into_iter()
        .partition(|(index, _)| last.is_none_or(|last| *index == last));
    for value in before.into_iter().flat_map(|(_, values)| values) {
        if value.starts_with('-') {
            return Err(Error::usage(format!("`{value}` begins with `-`")));
        }
        words.push(value.into());
    }
    let behind: Vec<OsString> = behind
        .into_iter()
        .flat_map(|(_, values)| values)
        .map(Into::into)
        .collect();
    if last.is_none() || !behind.is_empty() {
        words.push("--".into());
    }
    words.extend(behind);
    Ok(words)
}

/// The words of the process that serves files.
pub(super) fn of_files(ask: &FilesAsk) -> Result<Words> {
    let input = serde_json::to_string(ask)
        .map_err(|error| Error::bug("a question cannot be written").source_error(error))?;
    Ok(Words {
        words: vec![FILES_VERB.into()],
        input: Some(input),
    })
}

/// The arguments of a call that no verb has.
pub(super) fn read<T: DeserializeOwned>(args: &Args) -> Result<T> {
    serde_json::from_value(Value::Object(args.clone()))
        .map_err(|error| Error::usage(format!("the arguments cannot be read: {error}")))
}

/// The words of the process that checks a job file.
pub(super) fn of_check(args: &Args) -> Result<Words> {
    let asked: JobCheck = read(args)?;
    let cluster = asked.cluster.unwrap_or_default();
    Ok(Words {
        words: vec![CHECK_VERB.into(), cluster.into()],
        input: Some(asked.input),
    })
}

fn find<'c>(command: &'c Command, verb: &str, path: &[&str]) -> Result<&'c Command> {
    let no_such = || {
        let error = Error::not_found(format!("there is no call `{verb}`"));
        let known = CALLS.iter().map(|call| call.name).chain(CALLED);
        error.maybe_hint(did_you_mean(verb, known))
    };
    let mut found = command;
    for (depth, word) in path.iter().enumerate() {
        let is_called = depth > 0 || CALLED.contains(word);
        // Only by its own name: old names are for fingers.
        found = found
            .get_subcommands()
            .find(|verb| verb.get_name() == *word && !(depth > 0 && verb.is_hide_set()))
            .filter(|_| is_called)
            .ok_or_else(no_such)?;
    }
    if found.has_subcommands() {
        let names: Vec<String> = found
            .get_subcommands()
            .filter(|verb| !verb.is_hide_set())
            .map(|below| format!("{verb}.{}", below.get_name()))
            .collect();
        return Err(no_such().hint(names.join(", ")));
    }
    Ok(found)
}

fn argument<'c>(command: &'c Command, verb: &str, name: &str) -> Result<&'c Arg> {
    command
        .get_arguments()
        .find(|arg| is_named(arg, name))
        .ok_or_else(|| unknown(command, verb, name))
}

/// An option by its long name, with `_` for `-`; another argument by its name in the program.
fn is_named(arg: &Arg, name: &str) -> bool {
    match arg.get_long() {
        Some(long) => long.replace('-', "_") == name && long != "help" && long != "json",
        None => arg.get_id() == name,
    }
}

fn unknown(command: &Command, verb: &str, name: &str) -> Error {
    let known: Vec<String> = command
        .get_arguments()
        .map(|arg| match arg.get_long() {
            Some(long) => long.replace('-', "_"),
            None => arg.get_id().to_string(),
        })
        .filter(|name| !matches!(name.as_str(), "help" | "json"))
        .collect();
    let hint = did_you_mean(name, known.iter().map(String::as_str))
        .unwrap_or_else(|| format!("known here: {}", known.join(", ")));
    Error::usage(format!("`{verb}` has no argument `{name}`")).hint(hint)
}

/// The values of an argument as text. A flag has the value `true` or none.
fn values(arg: &Arg, name: &str, value: &Value) -> Result<Vec<String>> {
    let is_flag = !arg.get_action().takes_values();
    match value {
        Value::Null | Value::Bool(false) => Ok(Vec::new()),
        Value::Bool(true) if is_flag => Ok(vec![String::new()]),
        _ if is_flag => Err(Error::usage(format!("`{name}` is true or false"))),
        Value::Array(items) if takes_several(arg) => {
            items.iter().map(|item| text(name, item)).collect()
        }
        Value::Array(_) => Err(Error::usage(format!("`{name}` is one value, not a list"))),
        // An option whose value may be left out: `--setup` means node 0.
        Value::Bool(true) => Ok(vec![String::new()]),
        value => Ok(vec![text(name, value)?]),
    }
}

pub(super) fn takes_several(arg: &Arg) -> bool {
    matches!(arg.get_action(), ArgAction::Append)
        || arg
            .get_num_args()
            .is_some_and(|range| range.max_values() > 1)
}

fn text(name: &str, value: &Value) -> Result<String> {
    match value {
        Value::String(text) if text.contains('\0') => {
            Err(Error::usage(format!("`{name}` holds a zero byte")))
        }
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) => Ok(number.to_string()),
        _ => Err(Error::usage(format!("`{name}` is a text or a number"))),
    }
}

fn option_words(arg: &Arg, long: &str, values: Vec<String>) -> Vec<OsString> {
    let takes_values = arg.get_action().takes_values();
    values
        .into_iter()
        .map(|value| {
            if takes_values && !value.is_empty() {
                format!("--{long}={value}").into()
            } else {
                format!("--{long}").into()
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli;
    use serde_json::json;

    fn words(verb: &str, args: Value) -> Result<Vec<String>> {
        let Value::Object(args) = args else {
            panic!("arguments are an object");
        };
        let words = of_call(verb, &args)?.words;
        let text = |word: OsString| word.into_string().expect("text");
        Ok(words.into_iter().map(text).collect())
    }

    #[test]
    fn arguments_become_options_and_values_stay_values() {
        let found = words(
            "submit",
            json!({
                "command": ["python", "train.py", "--lr", "0.1"],
                "cluster": "lab", "gpus": 2, "tag": ["a", "--b"], "dry_run": true,
                "in_place": false, "name": null,
            }),
        );
        assert_eq!(
            found.expect("words"),
            [
                "submit",
                "--json",
                "--cluster=lab",
                "--gpus=2",
                "--tag=a",
                "--tag=--b",
                "--dry-run",
                "--",
                "python",
                "train.py",
                "--lr",
                "0.1",
            ]
        );
        let found = words("tunnel.ls", json!({}));
        assert_eq!(found.expect("words"), ["tunnel", "ls", "--json", "--"]);
    }

    #[test]
    fn a_value_is_never_an_option() {
        for value in ["--json", "-f", "--", "--help"] {
            let found = words("why", json!({ "run": value })).expect("words");
            assert_eq!(found, ["why", "--json", "--", value]);
            let line = std::iter::once("tow".to_owned()).chain(found);
            cli::parse(line.map(OsString::from).collect()).expect("it is a value");
        }
    }

    #[test]
    fn words_of_another_program_stand_behind_those_of_the_verb() {
        let found = words("tunnel.add", json!({ "name": "box", "to": "far:8888" }));
        assert_eq!(
            found.expect("words"),
            ["tunnel", "add", "--json", "--to=far:8888", "box"]
        );
        let found = words(
            "tunnel.add",
            json!({ "name": "box", "via_command": true, "command": ["ssh", "-N", "{port}"] }),
        );
        assert_eq!(
            found.expect("words")[4..],
            ["box", "--", "ssh", "-N", "{port}"]
        );
        let refused = words("tunnel.add", json!({ "name": "-x", "to": "far:1" }));
        assert!(refused.is_err(), "it is no option");
    }

    #[test]
    fn what_is_not_there_is_refused_with_a_suggestion() {
        for (verb, args, message, hint) in [
            ("ssh", json!({}), "there is no call `ssh`", None),
            (
                "abrot",
                json!({}),
                "there is no call `abrot`",
                Some("did you mean `abort`?"),
            ),
            (
                "daemon.run",
                json!({}),
                "there is no call `daemon.run`",
                None,
            ),
            (
                "ps",
                json!({"sate": "failed"}),
                "`ps` has no argument `sate`",
                Some("did you mean `state`?"),
            ),
            (
                "ps",
                json!({"help": true}),
                "`ps` has no argument `help`",
                None,
            ),
            (
                "why",
                json!({"run": ["a", "b"]}),
                "`run` is one value, not a list",
                None,
            ),
            (
                "why",
                json!({"run": {}}),
                "`run` is a text or a number",
                None,
            ),
            (
                "why",
                json!({"run": "a\u{0}b"}),
                "`run` holds a zero byte",
                None,
            ),
            (
                "submit",
                json!({"dry_run": 1}),
                "`dry_run` is true or false",
                None,
            ),
        ] {
            let error = words(verb, args).expect_err(verb);
            assert_eq!(error.message(), message);
            if let Some(hint) = hint {
                assert_eq!(error.hints(), [hint]);
            }
        }
    }

    #[test]
    fn every_verb_that_is_called_is_one() {
        let command = help::command();
        for verb in CALLED {
            assert!(command.find_subcommand(verb).is_some(), "{verb}");
        }
    }
}
