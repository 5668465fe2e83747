//! The width of a text in terminal columns: East Asian characters and emoji take two, combining
//! marks none.

/// Ranges of characters that take two columns: those that Unicode calls wide or full width.
const WIDE: [(u32, u32); 19] = [
    (0x1100, 0x115f),
    (0x231a, 0x231b),
    (0x2e80, 0x303e),
    (0x3041, 0x33ff),
    (0x3400, 0x4dbf),
    (0x4e00, 0x9fff),
    (0xa000, 0xa4cf),
    (0xa960, 0xa97f),
    (0xac00, 0xd7a3),
    (0xf900, 0xfaff),
    (0xfe30, 0xfe6f),
    (0xff00, 0xff60),
    (0xffe0, 0xffe6),
    (0x1_f300, 0x1_f64f),
    (0x1_f680, 0x1_f6ff),
    (0x1_f900, 0x1_f9ff),
    (0x1_fa70, 0x1_faff),
    (0x2_0000, 0x2_fffd),
    (0x3_0000, 0x3_fffd),
];
/// Ranges of characters that take no column, because they are drawn onto the one before.
const NONE: [(u32, u32); 14] = [
    (0x0300, 0x036f),
    (0x0483, 0x0489),
    (0x0591, 0x05bd),
    (0x064b, 0x065f),
    (0x0e34, 0x0e3a),
    (0x0e47, 0x0e4e),
    (0x1ab0, 0x1aff),
    (0x1dc0, 0x1dff),
    (0x200b, 0x200f),
    (0x202a, 0x202e),
    (0x20d0, 0x20ff),
    (0xfe00, 0xfe0f),
    (0xfe20, 0xfe2f),
    (0xe_0100, 0xe_01ef),
];

fn is_in(ranges: &[(u32, u32)], character: char) -> bool {
    let number = u32::from(character);
    ranges
        .iter()
        .any(|(first, last)| (*first..=*last).contains(&number))
}

fn of(character: char) -> usize {
    match character {
        ' '..='~' => 1,
        _ if is_in(&NONE, character) => 0,
        _ if is_in(&WIDE, character) => 2,
        _ => 1,
    }
}

pub(crate) fn columns(text: &str) -> usize {
    text.chars().map(of).sum()
}

/// The part of a text that fits, with a mark if it was cut.
pub(crate) fn cut(text: &str, room: usize) -> String {
    if columns(text) <= room {
        return text.to_owned();
    }
    let mut left = room.saturating_sub(1);
    let mut shown = String::new();
    for character in text.chars() {
        let Some(rest) = left.checked_sub(of(character)) else {
            break;
        };
        left = rest;
        shown.push(character);
    }
    shown.push('…');
    shown
}

/// Lines of at most `room` columns, broken between words; only a longer word is itself broken.
pub(crate) fn wrap(text: &str, room: usize) -> Vec<String> {
    if columns(text) <= room {
        return vec![text.to_owned()];
    }
    let room = room.max(2);
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is always one");
        if !line.is_empty() && columns(line) + 1 + columns(word) <= room {
            line.push(' ');
            line.push_str(word);
            continue;
        }
        if !line.is_empty() {
            lines.push(String::new());
        }
        for character in word.chars() {
            if lines
                .last()
                .is_some_and(|line| columns(line) + of(character) > room)
            {
                lines.push(String::new());
            }
            lines
                .last_mut()
                .expect("there is always one")
                .push(character);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_characters_take_two_columns_and_marks_none() {
        assert_eq!(columns("train"), 5);
        assert_eq!(columns("训练"), 4);
        assert_eq!(columns("ｶﾅ"), 2, "half-width forms");
        assert_eq!(columns("e\u{301}"), 1);
        assert_eq!(columns("🚀"), 2);
        assert_eq!(columns("naïve…"), 6);
    }

    #[test]
    fn lines_are_broken_between_words() {
        assert_eq!(
            wrap("rank 0 left with code 1", 11),
            ["rank 0 left", "with code 1"]
        );
        assert_eq!(
            wrap("a /very/long/path b", 6),
            ["a", "/very/", "long/p", "ath b"]
        );
        assert_eq!(wrap("训练模型", 4), ["训练", "模型"]);
        assert_eq!(wrap("", 4), [""]);
    }

    #[test]
    fn a_cut_text_has_room() {
        assert_eq!(cut("train", 5), "train");
        assert_eq!(cut("training", 5), "trai…");
        assert_eq!(cut("训练模型", 5), "训练…");
        assert_eq!(cut("训练模型", 4), "训…");
        assert_eq!(cut("x", 0), "…");
    }
}
