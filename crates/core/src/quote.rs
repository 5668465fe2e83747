//! Words for a POSIX shell, quoted so that they arrive unchanged. Nothing else in Towline quotes for
//! a shell; a login shell that may be csh or fish needs more (`io/src/machine/login_shell.rs`).

/// The characters beside letters and digits that no shell interprets, wherever they stand in a word.
const PLAIN: &str = "-_./:,+@";
/// Characters that a shell interprets in a few places only, such as the first word of a line: `A=b`
/// there is an assignment.
const PLAIN_BEHIND_A_COMMAND: &str = "=%^";

/// One word of a command that a shell runs.
pub fn word(word: &str) -> String {
    quoted(word, "")
}

/// A command that a shell runs.
pub fn line(argv: &[&str]) -> String {
    argv.iter()
        .map(|each| word(each))
        .collect::<Vec<_>>()
        .join(" ")
}

/// One word of a command that is shown. It can be pasted, and `--lr=0.1` stays readable.
pub fn shown(word: &str) -> String {
    quoted(word, PLAIN_BEHIND_A_COMMAND)
}

fn quoted(word: &str, more: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || PLAIN.contains(c) || more.contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The word, as a shell gets it, and as it is shown.
    const WORDS: [(&str, &str, &str); 22] = [
        ("", "''", "''"),
        (" ", "' '", "' '"),
        ("a b", "'a b'", "'a b'"),
        ("it's", r"'it'\''s'", r"'it'\''s'"),
        ("'", r"''\'''", r"''\'''"),
        ("a\"b", "'a\"b'", "'a\"b'"),
        ("a\nb", "'a\nb'", "'a\nb'"),
        ("end\n", "'end\n'", "'end\n'"),
        ("é ☃", "'é ☃'", "'é ☃'"),
        ("é", "'é'", "'é'"),
        ("-n", "-n", "-n"),
        ("--", "--", "--"),
        ("~", "'~'", "'~'"),
        ("a~b", "'a~b'", "'a~b'"),
        ("a=b", "'a=b'", "a=b"),
        ("--lr=0.1", "'--lr=0.1'", "--lr=0.1"),
        ("50%", "'50%'", "50%"),
        ("^x", "'^x'", "^x"),
        ("a!b", "'a!b'", "'a!b'"),
        ("$HOME", "'$HOME'", "'$HOME'"),
        ("*", "'*'", "'*'"),
        (
            "me@host:/a_b-c.d,e+f",
            "me@host:/a_b-c.d,e+f",
            "me@host:/a_b-c.d,e+f",
        ),
    ];

    #[test]
    fn a_word_is_quoted_only_if_a_shell_would_interpret_it() {
        for (given, run, displayed) in WORDS {
            assert_eq!(word(given), run);
            assert_eq!(shown(given), displayed);
        }
    }

    #[test]
    fn plain_arguments_stay_readable() {
        assert_eq!(line(&["squeue", "-h", "--me"]), "squeue -h --me");
        assert_eq!(line(&["A=b", "", "it's"]), r"'A=b' '' 'it'\''s'");
        assert_eq!(line(&[]), "");
    }
}
