//! Which part of the command line the cursor is in.

use clap::{Arg, ArgAction, Command};

/// What the word at the cursor is.
#[derive(Debug)]
pub(super) enum Place<'c> {
    /// The name of a verb of this command.
    Verb(&'c Command),
    /// The name of an option of this command.
    Option(&'c Command),
    Value(Value<'c>),
    /// The command of a job, which begins at this word.
    Command(usize),
    Nothing,
}

/// The value of an option or a positional argument.
#[derive(Debug)]
pub(super) struct Value<'c> {
    pub(super) argument: &'c Arg,
    /// The verb that it belongs to: `scratch ls`.
    pub(super) verb: String,
    /// The part of the word before the value: `--cluster=`, or `failed,`.
    pub(super) before: String,
    /// The other positional words of the verb.
    pub(super) others: Vec<String>,
    /// The cluster that the line names before the cursor.
    pub(super) cluster: Option<String>,
}

/// Follows the words up to the last one, which is being typed. The first is the program.
pub(super) fn place<'c>(root: &'c Command, words: &[String]) -> Place<'c> {
    let Some((typed, earlier)) = words.split_last() else {
        return Place::Nothing;
    };
    let mut walk = Walk {
        command: root,
        verb: Vec::new(),
        positional: Vec::new(),
        waiting: None,
        cluster: None,
        is_escaped: false,
    };
    for (number, word) in earlier.iter().enumerate().skip(1) {
        match walk.take(word) {
            Taken::Fine => {}
            Taken::Command => return Place::Command(number),
            Taken::Unknown => return Place::Nothing,
        }
    }
    walk.place(typed, words.len() - 1)
}

struct Walk<'c> {
    command: &'c Command,
    verb: Vec<&'c str>,
    positional: Vec<String>,
    /// The option whose value is the next word.
    waiting: Option<&'c Arg>,
    /// The value of an option that names a cluster.
    cluster: Option<String>,
    /// `--` was passed.
    is_escaped: bool,
}

enum Taken {
    Fine,
    Command,
    Unknown,
}

impl<'c> Walk<'c> {
    fn take(&mut self, word: &str) -> Taken {
        if let Some(option) = self.waiting.take() {
            self.note_cluster(option, word);
            return Taken::Fine;
        }
        if !self.is_escaped && word == "--" {
            self.is_escaped = true;
            return Taken::Fine;
        }
        if !self.is_escaped && word.starts_with('-') && word.len() > 1 {
            self.waiting = self.option_that_waits(word);
            if let Some((long, value)) = word.strip_prefix("--").and_then(|w| w.split_once('='))
                && let Some(option) = self.long(long)
            {
                self.note_cluster(option, value);
            }
            return Taken::Fine;
        }
        if self.command.has_subcommands() {
            // `tow help VERB`
            if self.verb.is_empty() && word == "help" {
                return Taken::Fine;
            }
            let Some(verb) = self.command.find_subcommand(word) else {
                return Taken::Unknown;
            };
            self.command = verb;
            self.verb.push(verb.get_name());
            return Taken::Fine;
        }
        if self.next_positional().is_some_and(is_command) {
            return Taken::Command;
        }
        self.positional.push(word.to_owned());
        Taken::Fine
    }

    fn note_cluster(&mut self, option: &Arg, value: &str) {
        let names = option.get_value_names().unwrap_or_default();
        if names.first().is_some_and(|name| name == "CLUSTER") {
            self.cluster = Some(value.to_owned());
        }
    }

    /// The option of this word, if its value is the next word.
    fn option_that_waits(&self, word: &str) -> Option<&'c Arg> {
        let option = match word.strip_prefix("--") {
            Some(long) if long.contains('=') => return None,
            Some(long) => self.long(long),
            // In `-ab`, the first letter that takes a value has the rest of the word as its value.
            None => {
                let mut letters = word.chars().skip(1);
                let option = letters.find_map(|letter| self.short(letter).filter(takes_value));
                option.filter(|_| letters.next().is_none())
            }
        };
        option.filter(takes_value)
    }

    /// Options may stand before the verb; then they belong to any verb.
    fn options(&self) -> impl Iterator<Item = &'c Arg> + use<'c> {
        let verbs = if self.verb.is_empty() {
            Some(self.command.get_subcommands())
        } else {
            None
        };
        let of_verbs = verbs.into_iter().flatten().flat_map(Command::get_arguments);
        self.command.get_arguments().chain(of_verbs)
    }

    fn long(&self, name: &str) -> Option<&'c Arg> {
        let is_named = |option: &&Arg| {
            option.get_long() == Some(name)
                || option
                    .get_all_aliases()
                    .is_some_and(|aliases| aliases.contains(&name))
        };
        self.options().find(is_named)
    }

    fn short(&self, letter: char) -> Option<&'c Arg> {
        self.options()
            .find(|option| option.get_short() == Some(letter))
    }

    /// The positional argument that the next word belongs to.
    fn next_positional(&self) -> Option<&'c Arg> {
        let mut free = self.positional.len();
        for argument in self.command.get_positionals() {
            let takes_all = matches!(argument.get_action(), ArgAction::Append);
            // What stands behind `--` alone is reached by it.
            if free == 0 || takes_all {
                return Some(argument);
            }
            free -= 1;
        }
        None
    }

    fn place(self, typed: &str, number: usize) -> Place<'c> {
        if let Some(option) = self.waiting {
            return self.value(option, typed, "");
        }
        if !self.is_escaped
            && let Some((name, typed)) = typed
                .strip_prefix("--")
                .and_then(|long| long.split_once('='))
        {
            let before = format!("--{name}=");
            return match self.long(name).filter(takes_value) {
                Some(option) => self.value(option, typed, &before),
                None => Place::Nothing,
            };
        }
        if !self.is_escaped && typed.starts_with('-') {
            return Place::Option(self.command);
        }
        if self.command.has_subcommands() {
            return Place::Verb(self.command);
        }
        match self.next_positional() {
            Some(argument) if is_command(argument) => Place::Command(number),
            Some(argument) => self.value(argument, typed, ""),
            None if typed.is_empty() => Place::Option(self.command),
            None => Place::Nothing,
        }
    }

    fn value(self, argument: &'c Arg, typed: &str, before: &str) -> Place<'c> {
        // Of a list, the last one is typed.
        let listed = argument
            .get_value_delimiter()
            .and_then(|delimiter| typed.rfind(delimiter))
            .map_or("", |at| &typed[..=at]);
        Place::Value(Value {
            argument,
            verb: self.verb.join(" "),
            before: format!("{before}{listed}"),
            others: self.positional,
            cluster: self.cluster,
        })
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "a predicate of `filter`")]
fn takes_value(option: &&Arg) -> bool {
    option.get_action().takes_values()
        && option
            .get_num_args()
            .is_none_or(|number| number.min_values() > 0)
}

/// The words from here on are the user's own command.
fn is_command(argument: &Arg) -> bool {
    argument.is_trailing_var_arg_set() || argument.is_last_set()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::help;

    /// What is at the end of this line, in short.
    fn at_end(line: &str) -> String {
        let command = help::command();
        match place(&command, &super::super::line::words(line)) {
            Place::Verb(command) => format!("verb of {}", command.get_name()),
            Place::Option(command) => format!("option of {}", command.get_name()),
            Place::Value(value) => format!(
                "{} of {}{}",
                value
                    .argument
                    .get_value_names()
                    .map_or("", |names| &names[0]),
                value.verb,
                Some(value.before)
                    .filter(|before| !before.is_empty())
                    .map_or_else(String::new, |before| format!(" behind {before}"))
            ),
            Place::Command(first) => format!("command from {first}"),
            Place::Nothing => "nothing".to_owned(),
        }
    }

    #[test]
    fn every_part_of_a_line_is_known() {
        for (line, at) in [
            ("tow ", "verb of tow"),
            ("tow lo", "verb of tow"),
            ("tow help ", "verb of tow"),
            ("tow scratch ", "verb of scratch"),
            ("tow -", "option of tow"),
            ("tow logs --", "option of logs"),
            ("tow logs ", "RUN of logs"),
            ("tow logs -f ", "RUN of logs"),
            ("tow logs --rank 3 ab", "RUN of logs"),
            ("tow logs --rank ", "K|all of logs"),
            ("tow logs ab ", "option of logs"),
            ("tow logs ab c", "nothing"),
            ("tow q ", "RUN of query"),
            ("tow qf --state ", "STATE of qf"),
            ("tow abort ab cd ", "RUN of abort"),
            ("tow diff ab ", "RUN of diff"),
            ("tow get ab ", "PATH of get"),
            ("tow ps --state failed,qu", "STATE of ps behind failed,"),
            (
                "tow ps --state=failed,qu",
                "STATE of ps behind --state=failed,",
            ),
            ("tow ps -s ", "STATE of ps"),
            ("tow -c ", "CLUSTER of "),
            ("tow -c lab ", "verb of tow"),
            ("tow -c lab submit --tier ", "TIER of submit"),
            ("tow submit -c lab -n 8 ", "command from 6"),
            ("tow submit python tr", "command from 2"),
            ("tow submit -- ", "command from 3"),
            ("tow run -f job.yaml -c ", "CLUSTER of run"),
            (
                "tow submit -n8 --name x python --cluster ",
                "command from 5",
            ),
            ("tow ssh ab ", "command from 3"),
            ("tow ssh ab -- nvidia-smi ", "command from 4"),
            ("tow resubmit @ --to ", "CLUSTER of resubmit"),
            ("tow scratch backup ", "NAME of scratch backup"),
            ("tow tunnel open a ", "NAME of tunnel open"),
            ("tow completions ", "SHELL of completions"),
            ("tow nonsense ", "nothing"),
            ("tow doctor ", "option of doctor"),
            ("", "verb of tow"),
        ] {
            assert_eq!(at_end(line), at, "{line:?}");
        }
    }
}
