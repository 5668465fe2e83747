//! Splitting a line into words, as `sbatch` and nearly every shell do: quotes keep blanks, a
//! backslash keeps the next character.

/// The words with the column where each begins, from 0; `None` if a quote is not closed. With
/// `comments` a `#` outside of quotes ends the line, as it does for `sbatch`.
pub(super) fn split(text: &str, comments: bool) -> Option<Vec<(usize, String)>> {
    let mut words: Vec<(usize, String)> = Vec::new();
    let (mut quote, mut within, mut escaped) = (None, false, false);
    for (column, c) in text.chars().enumerate() {
        let is_blank = quote.is_none() && !escaped && c.is_whitespace();
        if comments && c == '#' && quote.is_none() && !escaped {
            break;
        }
        if is_blank {
            within = false;
            continue;
        }
        if !within {
            words.push((column, String::new()));
            within = true;
        }
        match (quote, c) {
            _ if escaped => words.last_mut()?.1.push(c),
            (_, '\\') => {
                escaped = true;
                continue;
            }
            (Some(open), _) if c == open => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            _ => words.last_mut()?.1.push(c),
        }
        escaped = false;
    }
    (quote.is_none() && !escaped).then_some(words)
}

/// A word that [`split`] reads back unchanged, quoted only if necessary.
pub(super) fn quoted(word: &str) -> String {
    let has = |characters: &[char]| word.contains(characters);
    match word {
        _ if !word.contains(char::is_whitespace) && !has(&['"', '\'', '#', '\\']) => {
            word.to_owned()
        }
        _ if !has(&['\'', '\\']) => format!("'{word}'"),
        _ => format!("\"{}\"", word.replace('\\', "\\\\").replace('"', "\\\"")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Option<Vec<String>> {
        split(text, true).map(|words| words.into_iter().map(|(_, word)| word).collect())
    }

    #[test]
    fn lines_are_taken_apart() {
        assert_eq!(
            words(r#"-a "b c"'d' e\ f '#g' h#i"#).expect("words"),
            ["-a", "b cd", "e f", "#g", "h"]
        );
        assert_eq!(
            split("  x  ''", false).expect("words"),
            [(2, "x".to_owned()), (5, String::new())]
        );
        assert_eq!((words("'open"), words("end\\")), (None, None));
    }

    proptest::proptest! {
        #[test]
        fn what_is_quoted_reads_back(word in "[ -~]{1,20}") {
            proptest::prop_assert_eq!(words(&format!("--x={}", quoted(&word))), Some(vec![format!("--x={word}")]));
        }
    }
}
