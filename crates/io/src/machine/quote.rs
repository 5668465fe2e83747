//! Words for a shell, so that they arrive as they are. Nothing else in the program quotes.

use std::fmt::Write;

/// One word for a POSIX shell.
pub fn word(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:,+@".contains(&byte);
    if !word.is_empty() && word.bytes().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// A command for a POSIX shell.
pub fn line(words: &[&str]) -> String {
    words
        .iter()
        .map(|each| word(each))
        .collect::<Vec<_>>()
        .join(" ")
}

/// A command for the shell of a login, whichever it is: that shell becomes the program.
///
/// Within single quotes csh still sees `!` and the end of a line, fish a backslash. Where such a
/// byte is in the words they travel as octal numbers in a text that all shells read alike, and
/// `/bin/sh` reads the rest.
pub fn login_line(words: &[&str]) -> String {
    let line = format!("exec {}", line(words));
    let differs =
        |byte: u8| matches!(byte, b'\\' | b'!') || byte.is_ascii_control() || !byte.is_ascii();
    if !line.bytes().any(differs) {
        return line;
    }
    let mut octal = String::with_capacity(line.len() * 2);
    for byte in line.bytes() {
        // The text stands in double quotes within single ones.
        if differs(byte) || matches!(byte, b'\'' | b'"' | b'$' | b'`') {
            let _ = write!(octal, "\\0{byte:03o}");
        } else {
            octal.push(char::from(byte));
        }
    }
    format!("exec /bin/sh -c 'eval \"$(printf %b \"{octal}\")\"'")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::process::{Command, Stdio};

    /// What a program is given when `line` goes through `shell`.
    fn given(shell: &[&str], line: &str) -> Vec<Vec<u8>> {
        let output = Command::new(shell[0])
            .args(&shell[1..])
            .arg("-c")
            .arg(line)
            .stdin(Stdio::null())
            .output()
            .expect("the shell runs");
        assert!(
            output.status.success() && output.stderr.is_empty(),
            "{shell:?} {line:?}: {output:?}"
        );
        let mut words: Vec<Vec<u8>> = output
            .stdout
            .split(|byte| *byte == 0)
            .map(<[u8]>::to_vec)
            .collect();
        assert_eq!(words.pop(), Some(Vec::new()));
        words
    }

    fn check(shell: &[&str], make: fn(&[&str]) -> String, words: &[String]) {
        // Not the shell's own `printf`, which would not be started. It prints nothing at all when
        // it has no word.
        let program = ["/usr/bin/printf", "%s\\0", "first"];
        let all: Vec<&str> = program
            .into_iter()
            .chain(words.iter().map(String::as_str))
            .collect();
        let expected: Vec<&[u8]> = all[2..].iter().map(|word| word.as_bytes()).collect();
        assert_eq!(given(shell, &make(&all)), expected, "{shell:?}");
    }

    /// Users have these shells for their login. A shell that is not installed is skipped; the first
    /// two always are.
    const LOGIN_SHELLS: [&[&str]; 7] = [
        &["sh"],
        &["bash", "--norc"],
        &["dash"],
        &["zsh", "-f"],
        &["tcsh", "-f"],
        &["fish", "--no-config"],
        &["busybox", "sh"],
    ];

    fn is_there(shell: &[&str]) -> bool {
        Command::new(shell[0])
            .args(&shell[1..])
            .args(["-c", "true"])
            .stdin(Stdio::null())
            .output()
            .is_ok()
    }

    fn hostile() -> impl Strategy<Value = Vec<String>> {
        let one = prop_oneof![
            "[ '\"\\\\$`!\n\t\r;&|<>(){}\\[\\]*?~#=%^-]{0,12}",
            "[^\0]{0,20}",
            "-{1,2}[a-z']{0,3}"
        ];
        proptest::collection::vec(one, 0..5)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn words_pass_a_posix_shell(words in hostile()) {
            check(&["sh"], line, &words);
        }

        #[test]
        fn words_pass_a_login_shell(words in hostile()) {
            check(&["bash", "--norc"], login_line, &words);
        }
    }

    #[test]
    fn words_pass_every_shell_that_is_here() {
        let words = [
            "",
            " ",
            "-n",
            "it's",
            "a\"b",
            "$HOME",
            "`id`",
            "!!",
            "a!b",
            "a\nb",
            "end\n",
            "\\",
            "\\'",
            "\\n",
            "*",
            "~",
            "é ☃",
            "\u{1b}[0m",
            "a=b",
            "%s",
            "#",
        ];
        let words = words.map(str::to_owned);
        for shell in LOGIN_SHELLS.into_iter().filter(|shell| is_there(shell)) {
            check(shell, login_line, &words);
            check(
                shell,
                login_line,
                &["plain".to_owned(), "with blank".to_owned()],
            );
        }
    }

    #[test]
    fn plain_words_stay_readable() {
        assert_eq!(line(&["squeue", "-h", "--me"]), "squeue -h --me");
        assert_eq!(login_line(&["cat", "/a b"]), "exec cat '/a b'");
        assert_eq!(line(&["A=b", "", "it's"]), r"'A=b' '' 'it'\''s'");
    }
}
