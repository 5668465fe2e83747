//! Commands for a login shell of any kind. `towline_core::quote` quotes for POSIX shells.

use std::fmt::Write;
use towline_core::quote::line;

/// A command for any login shell; that shell becomes the program by `exec`.
///
/// Within single quotes csh still interprets `!` and the end of a line, fish a backslash. Arguments
/// with such bytes travel as octal numbers in a text that all shells read alike, and `/bin/sh`
/// decodes it.
pub(super) fn login_line(argv: &[&str]) -> String {
    let line = format!("exec {}", line(argv));
    let differs =
        |byte: u8| matches!(byte, b'\\' | b'!') || byte.is_ascii_control() || !byte.is_ascii();
    if !line.bytes().any(differs) {
        return line;
    }
    let mut octal = String::with_capacity(line.len() * 2);
    for byte in line.bytes() {
        // The text stands in double quotes within single quotes.
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

    /// The arguments of a program when `line` goes through `shell`.
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
        let mut argv: Vec<Vec<u8>> = output
            .stdout
            .split(|byte| *byte == 0)
            .map(<[u8]>::to_vec)
            .collect();
        assert_eq!(argv.pop(), Some(Vec::new()));
        argv
    }

    fn check(shell: &[&str], argv: &[String]) {
        // The shell's own `printf` would not be started as a program. It prints nothing if it has
        // no argument.
        let program = ["/usr/bin/printf", "%s\\0", "first"];
        let all: Vec<&str> = program
            .into_iter()
            .chain(argv.iter().map(String::as_str))
            .collect();
        let expected: Vec<&[u8]> = all[2..].iter().map(|word| word.as_bytes()).collect();
        assert_eq!(given(shell, &login_line(&all)), expected, "{shell:?}");
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
        fn arguments_pass_a_login_shell(argv in hostile()) {
            check(&["bash", "--norc"], &argv);
        }
    }

    #[test]
    fn arguments_pass_every_installed_shell() {
        let argv = [
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
        let argv = argv.map(str::to_owned);
        for shell in LOGIN_SHELLS.into_iter().filter(|shell| is_there(shell)) {
            check(shell, &argv);
            check(shell, &["plain".to_owned(), "with blank".to_owned()]);
        }
    }

    #[test]
    fn plain_arguments_stay_readable() {
        assert_eq!(login_line(&["cat", "/a b"]), "exec cat '/a b'");
    }
}
