//! Prepares the arguments for the parser: options may stand before or after the verb, and ACT's
//! options work.

use crate::cli::Cli;
use clap::CommandFactory;
use std::ffi::{OsStr, OsString};

/// ACT's options with a value that no verb has under that name.
const OLD_WITH_VALUE: [&str; 6] = [
    "--num_gpu",
    "-f",
    "--from_cluster",
    "-rt",
    "--resubmit_to",
    "--max",
];
/// Options of ACT and qd before the verb that have no effect here. The last four take a value.
const WITHOUT_EFFECT: [&str; 13] = [
    "-no-wl",
    "-no-dt",
    "-no-lf",
    "-no-wg",
    "-no-m",
    "-no-s",
    "-ic",
    "-wl",
    "--with_log",
    "-p",
    "--param",
    "-ca",
    "--compile_args",
];

/// Whether any verb has an option of this name that takes a value.
fn takes_value(word: &OsStr) -> bool {
    let Some(word) = word.to_str() else {
        return false;
    };
    if OLD_WITH_VALUE.contains(&word) {
        return true;
    }
    let command = Cli::command();
    let mut options = command
        .get_subcommands()
        .flat_map(clap::Command::get_arguments)
        .filter(|option| option.get_action().takes_values());
    options.any(|option| {
        let long = option
            .get_long()
            .is_some_and(|long| word.strip_prefix("--") == Some(long));
        let short = option
            .get_short()
            .is_some_and(|short| word.strip_prefix('-') == Some(short.encode_utf8(&mut [0; 4])));
        long || short
    })
}

/// An old option before the verb: arguments for a submission, or only a note.
struct Old {
    words: Vec<OsString>,
    takes_value: bool,
    note: Option<String>,
}

fn old_option(word: &OsStr) -> Option<Old> {
    let word = word.to_str()?;
    let mapped = |words: &[&str]| Old {
        words: words.iter().map(Into::into).collect(),
        takes_value: false,
        note: None,
    };
    match word {
        "-single" => return Some(mapped(&["--launch", "per_node"])),
        "-hold" => return Some(mapped(&["--hold-on-failure", "14d"])),
        _ => {}
    }
    let place = WITHOUT_EFFECT.iter().position(|known| *known == word)?;
    let takes_value = place >= 9;
    let note = match word {
        "-ca" | "--compile_args" => Some(format!(
            "`{word}` has no effect: write the compilation as a line of `environment.setup`"
        )),
        _ => takes_value.then(|| format!("`{word}` has no effect")),
    };
    Some(Old {
        words: Vec::new(),
        takes_value,
        note,
    })
}

/// Moves options before the verb behind it: `tow -n 8 submit x` becomes `tow submit -n 8 x`. Before
/// the verb `-f` means ACT's from-cluster. Old options without effect are removed, with a note.
pub(crate) fn normalise(words: Vec<OsString>) -> (Vec<OsString>, Vec<String>) {
    let mut words = words.into_iter();
    let program = words.next().unwrap_or_else(|| "tow".into());
    let mut before: Vec<OsString> = Vec::new();
    let mut verb = None;
    let mut rest: Vec<OsString> = Vec::new();
    let (mut notes, mut for_jobs) = (Vec::new(), Vec::new());
    while let Some(word) = words.next() {
        if !word.as_encoded_bytes().starts_with(b"-") || word == "-" {
            verb = Some(word);
            rest.extend(words.by_ref());
            break;
        }
        if let Some(old) = old_option(&word) {
            for_jobs.extend(old.words);
            notes.extend(old.note);
            if old.takes_value {
                words.next();
            }
            continue;
        }
        let takes_value = takes_value(&word);
        before.push(old_name(&word, true));
        if takes_value && let Some(value) = words.next() {
            before.push(value);
        }
    }
    let mut all = vec![program];
    if verb.as_deref() == Some(OsStr::new("help")) {
        // `tow help submit` is `tow submit --help`.
        verb = rest.first().cloned();
        rest = vec!["--help".into()];
    }
    let is_resubmit = verb.as_deref() == Some(OsStr::new("resubmit"));
    if verb
        .as_deref()
        .is_some_and(|verb| verb == "submit" || verb == "run")
    {
        before.extend(for_jobs);
    }
    if verb.as_deref() == Some(OsStr::new("tag")) {
        // Its words may begin with a dash: `-TAG`. Long options are options all the same.
        let is_long = |word: &OsString| word.as_encoded_bytes().starts_with(b"--");
        let (options, words): (Vec<_>, Vec<_>) = rest.into_iter().partition(is_long);
        before.extend(options);
        rest = words;
    }
    all.extend(verb);
    all.extend(before);
    all.extend(rest.into_iter().map(|word| {
        if is_resubmit {
            old_name(&word, false)
        } else {
            word
        }
    }));
    (all, notes)
}

fn old_name(word: &OsStr, before_verb: bool) -> OsString {
    match word.to_str() {
        Some("-rt" | "--resubmit_to") => "--to".into(),
        Some("--num_gpu") => "--gpus".into(),
        Some("--max") => "--limit".into(),
        Some("-f" | "--from_cluster") if before_verb => "--from-cluster".into(),
        _ => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::normalise;

    fn check(from: &str, to: &str) {
        let split = |text: &str| {
            text.split(' ')
                .map(Into::into)
                .collect::<Vec<std::ffi::OsString>>()
        };
        assert_eq!(normalise(split(from)).0, split(to), "{from}");
    }

    #[test]
    fn tags_with_a_dash_and_options_are_told_apart() {
        check("tow tag x +a -b --json", "tow tag --json x +a -b");
    }

    #[test]
    fn options_before_the_verb_are_options_after_it() {
        check(
            "tow -n 8 submit python train.py -n 3",
            "tow submit -n 8 python train.py -n 3",
        );
        check(
            "tow -c eu -f we3v32 up data/voc20",
            "tow up -c eu --from-cluster we3v32 data/voc20",
        );
        check("tow resubmit ab12 -rt c2", "tow resubmit ab12 --to c2");
        check(
            "tow -c c1 -single -n 8 submit x -single",
            "tow submit -c c1 -n 8 --launch per_node x -single",
        );
        check("tow -single -no-wl -no-dt -p abc q 12ab", "tow q 12ab");
        assert_eq!(
            normalise("tow -ca x submit y".split(' ').map(Into::into).collect())
                .1
                .len(),
            1
        );
        check("tow --json ps", "tow ps --json");
        check("tow --version", "tow --version");
        check("tow help submit", "tow submit --help");
        check("tow help", "tow --help");
        check("tow submit -f job.yaml", "tow submit -f job.yaml");
    }
}
