//! The words of a line that is being typed, as a shell reads them: quotes may still be open.

/// The words; the last one is being typed and may be empty.
pub(super) fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut in_word = false;
    let mut quote = None;
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (None, ' ' | '\t' | '\n') => {
                if in_word {
                    words.push(String::new());
                }
                in_word = false;
                continue;
            }
            (None, '\'' | '"') => quote = Some(letter),
            (Some(open), letter) if open == letter => quote = None,
            (None | Some('"'), '\\') => push(&mut words, letters.next()),
            _ => push(&mut words, Some(letter)),
        }
        in_word = true;
    }
    words
}

fn push(words: &mut [String], letter: Option<char>) {
    if let Some(word) = words.last_mut() {
        word.extend(letter);
    }
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn a_line_is_read_as_a_shell_reads_it() {
        for (line, read) in [
            ("", &[""][..]),
            ("tow", &["tow"]),
            ("tow ", &["tow", ""]),
            ("tow  logs\tab", &["tow", "logs", "ab"]),
            (
                "tow up research:al --to=x",
                &["tow", "up", "research:al", "--to=x"],
            ),
            (
                r#"tow up 'a b' "c d"e f\ g"#,
                &["tow", "up", "a b", "c de", "f g"],
            ),
            ("tow up 'half o", &["tow", "up", "half o"]),
            (r"tow up half\", &["tow", "up", "half"]),
            ("tow up '' ", &["tow", "up", "", ""]),
        ] {
            assert_eq!(words(line), read, "{line}");
        }
    }
}
