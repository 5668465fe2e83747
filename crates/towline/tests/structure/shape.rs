//! How long files are. The length of functions is clippy's to judge.

use super::sources::product;

/// No file is longer, its tests aside.
const LONGEST_FILE_LINES: usize = 500;
const MEDIAN_FILE_LINES: usize = 160;

/// Lines before the tests at the end of a file.
fn lines(text: &str) -> usize {
    let tests = text
        .find("\n#[cfg(test)]\nmod tests {")
        .unwrap_or(text.len());
    text[..tests].lines().count()
}

#[test]
fn no_file_is_too_long_and_most_are_short() {
    let sources = product();
    let mut lengths: Vec<(usize, &str)> = sources
        .iter()
        .filter(|source| !source.path.starts_with("testkit/"))
        .map(|source| (lines(&source.text), source.path.as_str()))
        .collect();
    lengths.sort_unstable();
    let (median, _) = lengths[lengths.len() / 2];
    assert!(median < MEDIAN_FILE_LINES, "the median is {median}");
    let long: Vec<_> = lengths
        .iter()
        .filter(|(length, _)| *length > LONGEST_FILE_LINES)
        .collect();
    assert!(long.is_empty(), "{long:?}");
}
