//! A line of a log as a terminal would show it at its end: colours stay, a progress bar is what it
//! drew last, and every other command to a terminal is dropped.

use crate::text::one_line;

/// How a part of a line looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Ink {
    /// One of the 256 colours.
    pub(crate) colour: Option<u8>,
    pub(crate) is_bold: bool,
    pub(crate) is_dim: bool,
    pub(crate) is_underlined: bool,
}

const TAB_COLUMNS: usize = 8;
const ESCAPE: char = '\x1b';
/// The same as `ESC [`, in one character.
const CONTROL_SEQUENCE: char = '\u{9b}';

/// What is left of a line over which a program drew again: what follows the last carriage return.
pub(crate) fn folded(line: &str) -> &str {
    let line = line.trim_end_matches('\r');
    line.rfind('\r').map_or(line, |place| &line[place + 1..])
}

/// The parts of a line, each in its ink.
pub(crate) fn parts(line: &str) -> Vec<(String, Ink)> {
    let mut parts: Vec<(String, Ink)> = Vec::new();
    let mut ink = Ink::default();
    let mut text = String::new();
    let mut column = 0;
    let mut rest = folded(line);
    while let Some(c) = rest.chars().next() {
        let after = &rest[c.len_utf8()..];
        rest = after;
        match c {
            ESCAPE => {
                let (next, left) = sequence(after, ink);
                rest = left;
                if next != ink {
                    push(&mut parts, &mut text, ink);
                    ink = next;
                }
            }
            CONTROL_SEQUENCE => {
                let (next, left) = control_sequence(after, ink);
                rest = left;
                if next != ink {
                    push(&mut parts, &mut text, ink);
                    ink = next;
                }
            }
            '\t' => {
                let blanks = TAB_COLUMNS - column % TAB_COLUMNS;
                text.extend(std::iter::repeat_n(' ', blanks));
                column += blanks;
            }
            c if c.is_control() => {}
            c => {
                text.push(c);
                column += 1;
            }
        }
    }
    push(&mut parts, &mut text, ink);
    parts
}

fn push(parts: &mut Vec<(String, Ink)>, text: &mut String, ink: Ink) {
    if !text.is_empty() {
        // Marks of direction are left, which are no control characters.
        parts.push((one_line(text).into_owned(), ink));
        text.clear();
    }
}

/// The ink after what follows an escape character, and the text behind it.
fn sequence(after: &str, ink: Ink) -> (Ink, &str) {
    let Some(kind) = after.chars().next() else {
        return (ink, after);
    };
    let body = &after[kind.len_utf8()..];
    match kind {
        '[' => control_sequence(body, ink),
        // A title, a link, a picture: a text of any length with an end of its own.
        ']' | 'P' | 'X' | '^' | '_' => (ink, behind_string(body)),
        '(' | ')' | '*' | '+' | '#' | '%' | ' ' => {
            let skipped = body.chars().next().map_or(0, char::len_utf8);
            (ink, &body[skipped..])
        }
        c if c.is_ascii_graphic() => (ink, body),
        _ => (ink, after),
    }
}

/// A string without an end would hide the rest of the line, so then only its beginning is dropped.
fn behind_string(body: &str) -> &str {
    let ends = ["\x07", "\x1b\\", "\u{9c}"];
    let found = ends
        .iter()
        .filter_map(|end| Some((body.find(end)?, end.len())));
    found
        .min()
        .map_or(body, |(place, length)| &body[place + length..])
}

fn control_sequence(body: &str, ink: Ink) -> (Ink, &str) {
    let end = body.find(|c: char| !matches!(c, '\x20'..='\x3f'));
    let Some(end) = end else { return (ink, "") };
    let (parameters, rest) = body.split_at(end);
    let mut left = rest.chars();
    match left.next() {
        Some('m') => (inked(ink, parameters), left.as_str()),
        Some('\x40'..='\x7e') => (ink, left.as_str()),
        _ => (ink, rest),
    }
}

/// The ink after "select graphic rendition". The colour of the background is not taken over,
/// because a log could hide text with it.
fn inked(mut ink: Ink, parameters: &str) -> Ink {
    if parameters.contains(|c: char| !c.is_ascii_digit() && c != ';' && c != ':') {
        return ink;
    }
    let mut numbers = parameters
        .split([';', ':'])
        .map(|number| number.parse::<u16>().unwrap_or(0));
    while let Some(number) = numbers.next() {
        match number {
            0 => ink = Ink::default(),
            1 => ink.is_bold = true,
            2 => ink.is_dim = true,
            4 => ink.is_underlined = true,
            22 => (ink.is_bold, ink.is_dim) = (false, false),
            24 => ink.is_underlined = false,
            30..=37 => ink.colour = u8::try_from(number - 30).ok(),
            90..=97 => ink.colour = u8::try_from(number - 90 + 8).ok(),
            38 => ink.colour = chosen(&mut numbers).or(ink.colour),
            39 => ink.colour = None,
            48 => {
                chosen(&mut numbers);
            }
            _ => {}
        }
    }
    ink
}

/// A colour by its number, or the nearest of the 256 to a mixed one.
fn chosen(numbers: &mut impl Iterator<Item = u16>) -> Option<u8> {
    match numbers.next()? {
        5 => u8::try_from(numbers.next()?).ok(),
        2 => {
            let mut step = || Some(numbers.next()?.min(255) * 5 / 255);
            let (red, green, blue) = (step()?, step()?, step()?);
            u8::try_from(16 + 36 * red + 6 * green + blue).ok()
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use towline_core::visible::is_hidden;

    fn text(line: &str) -> String {
        parts(line).into_iter().map(|(text, _)| text).collect()
    }

    #[test]
    fn colours_stay_and_all_else_goes() {
        let red = Ink {
            colour: Some(1),
            is_bold: true,
            ..Ink::default()
        };
        assert_eq!(
            parts("a\x1b[1;31mb\x1b[0mc"),
            [
                ("a".into(), Ink::default()),
                ("b".into(), red),
                ("c".into(), Ink::default())
            ]
        );
        for (line, shown) in [
            ("\x1b]0;title\x07x", "x"),
            ("\x1b]8;;http://a\x1b\\link\x1b]8;;\x1b\\", "link"),
            ("\x1b[2J\x1b[1;1Hx\x1b[?1049h", "x"),
            ("\x1bPq#0;2\x1b\\x", "x"),
            ("\u{9b}31mx\u{9d}", "x"),
            ("\x1b]no end", "no end"),
            ("\x1b(Bx\x1b=y\x1b", "xy"),
            ("\x1b[31", ""),
            ("a\x08b\x00\x07", "ab"),
            ("a\tb", "a       b"),
            ("\u{202e}x", "\\u{202e}x"),
        ] {
            assert_eq!(text(line), shown, "{line:?}");
        }
    }

    #[test]
    fn a_bar_is_what_it_drew_last() {
        assert_eq!(folded("10%\r20%\r30%"), "30%");
        assert_eq!(folded("10%\r20%\r"), "20%");
        assert_eq!(folded("done\r"), "done");
        assert_eq!(folded("\r\r"), "");
    }

    #[test]
    fn mixed_colours_become_one_of_the_256() {
        let ink = |line: &str| parts(line).pop().and_then(|(_, ink)| ink.colour);
        assert_eq!(ink("\x1b[38;5;208mx"), Some(208));
        assert_eq!(ink("\x1b[38;2;255;0;0mx"), Some(196));
        assert_eq!(ink("\x1b[38;5;999mx"), None);
        assert_eq!(ink("\x1b[48;5;1;32mx"), Some(2));
        assert_eq!(ink("\x1b[>31mx"), None);
        assert_eq!(ink("\x1b[97mx"), Some(15));
    }

    proptest! {
        #[test]
        fn no_line_brings_a_command(line in "(\\PC|[\\x00-\\x1f\\x7f-\\x9f]|\x1b\\[|\x1b\\]|[0-9;m]){0,60}") {
            let shown = text(&line);
            prop_assert!(!shown.contains(|c: char| is_hidden(c) || c.is_control()));
        }
    }
}
