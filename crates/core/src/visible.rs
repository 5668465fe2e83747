//! Text of others is shown, never obeyed: characters that control a terminal or change the
//! direction of text become text such as `\x1b`.

use std::borrow::Cow;

/// Control characters except newline and tab, and characters that set the direction of text or
/// break lines invisibly.
pub const fn is_hidden(c: char) -> bool {
    matches!(c,
        '\0'..='\x08' | '\x0b'..='\x1f' | '\x7f'..='\u{9f}'
        | '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The text with every such character written out.
pub fn visible(text: &str) -> Cow<'_, str> {
    written_out(text, |c, shown| match c {
        '\r' => shown.push_str("\\r"),
        c if c.is_ascii() => *shown += &format!("\\x{:02x}", u32::from(c)),
        c => *shown += &format!("\\u{{{:x}}}", u32::from(c)),
    })
}

/// JSON with the same characters escaped as JSON does it. In JSON they occur only in strings.
pub fn visible_json(text: &str) -> Cow<'_, str> {
    written_out(text, |c, shown| {
        *shown += &format!("\\u{:04x}", u32::from(c));
    })
}

fn written_out(text: &str, write: impl Fn(char, &mut String)) -> Cow<'_, str> {
    if !text.contains(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_hidden(c) {
            write(c, &mut shown);
        } else {
            shown.push(c);
        }
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_commands_a_terminal_is_written_out_and_the_rest_stays() {
        assert_eq!(
            visible("\x1b]0;T\x07\x1b[31mX\r\u{9b}2J\u{202e}txt"),
            r"\x1b]0;T\x07\x1b[31mX\r\u{9b}2J\u{202e}txt"
        );
        for plain in ["", "two\nlines\tand a tab", "çé 模型 👩‍🔬 עברית"] {
            assert!(matches!(visible(plain), Cow::Borrowed(text) if text == plain));
        }
    }

    proptest! {
        #[test]
        fn nothing_hidden_comes_through(text in any::<String>()) {
            prop_assert!(!visible(&text).contains(is_hidden));
            let plain: String = text.chars().filter(|c| !is_hidden(*c)).collect();
            prop_assert_eq!(visible(&plain), plain.as_str());
        }

        #[test]
        fn json_stays_the_same_value(text in any::<String>()) {
            let json = serde_json::to_string(&text).expect("text is JSON");
            let shown = visible_json(&json);
            prop_assert!(!shown.contains(is_hidden));
            prop_assert_eq!(serde_json::from_str::<String>(&shown).expect("still JSON"), text);
        }
    }
}
