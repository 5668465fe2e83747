//! Spans of time as ISO 8601 writes them: `PT8H`, `P1DT12H`. Services of Azure use this form.

use crate::quantity::Span;
use std::fmt::Write;

const DAY_SECONDS: u64 = 86_400;
const HOUR_SECONDS: u64 = 3_600;
const MINUTE_SECONDS: u64 = 60;

impl Span {
    /// `PT4H`, `PT1H30M`. Days are written as hours, because some services take no days.
    pub fn to_iso8601(self) -> String {
        let mut text = "PT".to_owned();
        let parts = [
            (self.0 / HOUR_SECONDS, 'H'),
            (self.0 % HOUR_SECONDS / MINUTE_SECONDS, 'M'),
            (self.0 % MINUTE_SECONDS, 'S'),
        ];
        for (count, unit) in parts.into_iter().filter(|(count, _)| *count > 0) {
            let _ = write!(text, "{count}{unit}");
        }
        if text == "PT" {
            "PT0S".to_owned()
        } else {
            text
        }
    }

    /// The span that a text of this form means, in whole seconds. `None` for any other text, and
    /// for years and months, because their length depends on the calendar.
    pub fn from_iso8601(text: &str) -> Option<Self> {
        let rest = text.trim().strip_prefix('P')?;
        let (days, time) = match rest.split_once('T') {
            Some((_, "")) => return None,
            Some((days, time)) => (days, time),
            None if rest.is_empty() => return None,
            None => (rest, ""),
        };
        let days = sum(days, &[('W', 7 * DAY_SECONDS), ('D', DAY_SECONDS)])?;
        let units = [('H', HOUR_SECONDS), ('M', MINUTE_SECONDS), ('S', 1)];
        days.checked_add(sum(time, &units)?).map(Self)
    }
}

/// The sum of numbers with units. Each unit occurs at most once, in the given order. A fraction of
/// seconds is dropped.
fn sum(text: &str, units: &[(char, u64)]) -> Option<u64> {
    let (mut total, mut rest) = (0_u64, text);
    for (unit, seconds) in units {
        let Some((number, after)) = rest.split_once(*unit) else {
            continue;
        };
        let whole = match number.split_once('.') {
            Some((whole, fraction)) if *seconds == 1 && is_number(fraction) => whole,
            _ => number,
        };
        if !is_number(whole) {
            return None;
        }
        let part = whole.parse::<u64>().ok()?.checked_mul(*seconds)?;
        total = total.checked_add(part)?;
        rest = after;
    }
    rest.is_empty().then_some(total)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_written_and_read_as_iso_8601() {
        let pairs = [
            (4 * 3_600, "PT4H"),
            (5_400, "PT1H30M"),
            (36 * 3_600, "PT36H"),
            (61, "PT1M1S"),
            (0, "PT0S"),
        ];
        for (seconds, text) in pairs {
            assert_eq!(Span(seconds).to_iso8601(), text);
            assert_eq!(Span::from_iso8601(text), Some(Span(seconds)), "{text}");
        }
    }

    #[test]
    fn other_spellings_of_a_span_are_read() {
        let read = |text: &str| Span::from_iso8601(text).map(|span| span.0);
        assert_eq!(read("P1DT12H"), Some(129_600));
        assert_eq!(read("P365D"), Some(31_536_000));
        assert_eq!(read("P2W"), Some(1_209_600));
        assert_eq!(read("PT480M"), Some(28_800));
        assert_eq!(read(" PT1.5S "), Some(1));
    }

    #[test]
    fn a_text_of_another_form_is_no_span() {
        let wrong = [
            "",
            "P",
            "PT",
            "P1DT",
            "8H",
            "PT8",
            "PTH",
            "PT-8H",
            "PT+8H",
            "PT1M1H",
            "PT1H1H",
            "PT1.5H",
            "P1Y",
            "P6M",
            "P1H",
            "PT1D",
            "PT1.S",
            "PT99999999999999999999H",
            "PT18446744073709551615H",
        ];
        for text in wrong {
            assert_eq!(Span::from_iso8601(text), None, "{text}");
        }
    }
}
