//! Lines of `Key=value` pairs, as `scontrol -o` prints them. Values that users write may contain
//! blanks and `=`, and Slurm quotes none of them. Only keys that are known to follow a free value
//! end it.

/// A key whose value may contain anything, and the keys that can come next.
pub type Free = (&'static str, &'static [&'static [&'static str]]);

/// The pairs of one line, in order.
pub fn pairs<'a>(line: &'a str, free: &[Free]) -> Vec<(&'a str, &'a str)> {
    let mut found: Vec<(&str, &str)> = Vec::new();
    // The start of the current value, and its key.
    let mut current: Option<(&str, usize)> = None;
    for (begin, key, value) in candidates(line) {
        if let Some((open, value_begin)) = current {
            let ends = free
                .iter()
                .find(|(name, _)| *name == open)
                .is_none_or(|(_, next)| next.iter().any(|keys| keys.contains(&key)));
            if !ends {
                continue;
            }
            found.push((open, line[value_begin..begin].trim()));
        }
        current = Some((key, value));
    }
    if let Some((open, value_begin)) = current {
        found.push((open, line[value_begin..].trim()));
    }
    found
}

/// Every word that looks like `Key=`: its start, the key, and the start of its value.
fn candidates(line: &str) -> impl Iterator<Item = (usize, &str, usize)> {
    let mut at = 0;
    line.split(|c: char| c.is_ascii_whitespace())
        .filter_map(move |word| {
            let begin = at;
            at += word.len() + 1;
            let (key, _) = word.split_once('=')?;
            let is_key = key.starts_with(|c: char| c.is_ascii_alphabetic())
                && key
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || "_/:()-".contains(c));
            is_key.then_some((begin, key, begin + key.len() + 1))
        })
}

/// One record per element: `scontrol -o` begins each with the same key, so a line break in a
/// comment begins none.
pub fn records<'a>(text: &'a str, first_key: &str) -> Vec<&'a str> {
    let begins: Vec<usize> = text
        .char_indices()
        .filter(|(at, _)| *at == 0 || text[..*at].ends_with('\n'))
        .map(|(at, _)| at)
        .filter(|at| {
            text[*at..]
                .strip_prefix(first_key)
                .is_some_and(|rest| rest.starts_with('='))
        })
        .collect();
    begins
        .iter()
        .zip(begins.iter().skip(1).copied().chain([text.len()]))
        .map(|(begin, end)| text[*begin..end].trim())
        .collect()
}

/// The value of a key.
pub fn get<'a>(pairs: &[(&str, &'a str)], key: &str) -> &'a str {
    pairs
        .iter()
        .find(|(known, _)| *known == key)
        .map_or("", |(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FREE: &[Free] = &[("Name", &[&["User"]]), ("Reason", &[])];

    #[test]
    fn a_free_value_ends_only_where_slurm_can_end_it() {
        let line = "Id=1 Name=a State=DONE b=c  User=me Odd/Key:X=1 Empty= State=UP Reason=no fan \
            User=x [root]";
        let expected = [
            ("Id", "1"),
            ("Name", "a State=DONE b=c"),
            ("User", "me"),
            ("Odd/Key:X", "1"),
            ("Empty", ""),
            ("State", "UP"),
            ("Reason", "no fan User=x [root]"),
        ];
        assert_eq!(pairs(line, FREE), expected);
        assert_eq!(pairs("no pairs here", FREE), []);
        assert_eq!(pairs("=x 1=2 ü=3", FREE), []);
    }

    #[test]
    fn a_line_break_in_a_value_begins_no_record() {
        assert_eq!(
            records("banner\nId=1 C=a\nb c\n\nId=2\n", "Id"),
            ["Id=1 C=a\nb c", "Id=2"]
        );
        assert!(records("No jobs in the system\n", "Id").is_empty());
    }
}
