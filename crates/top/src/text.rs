//! Text of others in one line of the screen. A name, a message or a log may hold any characters;
//! those that command a terminal, change the direction of text or show nothing never reach it.

use ratatui::buffer::CellWidth;
use std::borrow::Cow;
use towline_core::visible::visible;

/// So many marks may stand on one letter. More would grow over the lines above and below.
const MAX_MARKS: usize = 2;
const ELLIPSIS: char = '…';

/// Characters that show nothing. Dropped, because terminals disagree about the columns they take.
const fn shows_nothing(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2065}'
        | '\u{206a}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
        | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

const fn is_mark(c: char) -> bool {
    matches!(c,
        '\u{300}'..='\u{36f}' | '\u{483}'..='\u{489}' | '\u{1ab0}'..='\u{1aff}'
        | '\u{1dc0}'..='\u{1dff}' | '\u{20d0}'..='\u{20ff}' | '\u{fe20}'..='\u{fe2f}')
}

const fn is_harmless(byte: u8) -> bool {
    matches!(byte, b' '..=b'~')
}

/// The text in one line: hidden characters are written out, line ends and tabs become blanks.
pub(crate) fn one_line(text: &str) -> Cow<'_, str> {
    if text.bytes().all(is_harmless) {
        return Cow::Borrowed(text);
    }
    let mut line = String::with_capacity(text.len());
    let mut marks = 0;
    for c in visible(text).chars() {
        marks = if is_mark(c) { marks + 1 } else { 0 };
        match c {
            '\n' | '\t' => line.push(' '),
            c if shows_nothing(c) || marks > MAX_MARKS => {}
            c => line.push(c),
        }
    }
    Cow::Owned(line)
}

/// The columns that a text takes.
pub(crate) fn width(text: &str) -> usize {
    if text.bytes().all(is_harmless) {
        text.len()
    } else {
        text.chars().map(columns).sum()
    }
}

fn columns(c: char) -> usize {
    usize::from(c.encode_utf8(&mut [0; 4]).cell_width())
}

/// The text within so many columns. An ellipsis shows that something is missing.
pub(crate) fn cut(text: &str, columns_free: usize) -> Cow<'_, str> {
    if width(text) <= columns_free {
        return Cow::Borrowed(text);
    }
    let Some(room) = columns_free.checked_sub(1) else {
        return Cow::Borrowed("");
    };
    let mut kept = String::new();
    let mut taken = 0;
    for c in text.chars() {
        taken += columns(c);
        if taken > room {
            break;
        }
        kept.push(c);
    }
    kept.push(ELLIPSIS);
    Cow::Owned(kept)
}

/// The text in lines of so many columns, broken between words where there are some.
pub(crate) fn wrapped(text: &str, columns_free: usize) -> Vec<String> {
    let room = columns_free.max(1);
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut taken = 0;
    for word in text.split_inclusive(' ') {
        if taken > 0 && taken + width(word.trim_end()) > room {
            lines.push(std::mem::take(&mut line));
            taken = 0;
        }
        for c in word.chars() {
            if taken + columns(c) > room && taken > 0 {
                lines.push(std::mem::take(&mut line));
                taken = 0;
            }
            line.push(c);
            taken += columns(c);
        }
    }
    lines.push(line);
    lines
}

/// `12,345`.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use towline_core::visible::is_hidden;

    #[test]
    fn what_commands_a_terminal_is_written_out() {
        assert_eq!(
            one_line("a\x1b[2J\u{202e}b\nc\td"),
            r"a\x1b[2J\u{202e}b c d"
        );
        assert_eq!(one_line("x\u{200b}y\u{feff}z"), "xyz");
        assert_eq!(one_line("e\u{301}\u{301}\u{301}\u{301}"), "e\u{301}\u{301}");
        assert!(matches!(one_line("train-1"), Cow::Borrowed("train-1")));
    }

    #[test]
    fn a_cut_text_says_so() {
        assert_eq!(cut("train", 5), "train");
        assert_eq!(cut("training", 5), "trai…");
        assert_eq!(cut("模型模型", 5), "模型…");
        assert_eq!(cut("training", 0), "");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(count(999), "999");
    }

    #[test]
    fn lines_break_between_words() {
        assert_eq!(wrapped("one two three", 8), ["one two ", "three"]);
        assert_eq!(wrapped("abcdefgh", 3), ["abc", "def", "gh"]);
        assert_eq!(wrapped("", 3), [""]);
    }

    proptest! {
        #[test]
        fn no_text_brings_anything_hidden_or_more_columns(text in any::<String>(), room in 0..40_usize) {
            let line = one_line(&text);
            prop_assert!(!line.contains(|c| is_hidden(c) || c == '\n' || c == '\t'));
            prop_assert!(width(&cut(&line, room)) <= room);
            for part in wrapped(&line, room) {
                prop_assert!(width(&part) <= room.max(2));
            }
        }
    }
}
