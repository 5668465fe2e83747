//! Sizes and spans of time as users write them: `600G`, `14d`, `2h30m`, `90s`.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;
use std::str::FromStr;

/// A number of bytes, written `600G`, `512M`, `1.5T`, `1024` (bytes). Units are powers of 1024.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Memory(pub u64);

/// A span of time in seconds, written `14d`, `2h30m`, `90s` or as plain seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span(pub u64);

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum QuantityError {
    #[error("`{0}` is not a size; write it like `600G` or `512M`")]
    Memory(String),
    #[error("`{0}` is not a span of time; write it like `14d`, `2h30m`, `90s` or `01:30:00`")]
    Span(String),
    #[error("`{0}` is no time at all; the least is `1s`")]
    NoTime(String),
    #[error("`{0}` is longer than 100 years, which is the most")]
    TooLong(String),
}

impl FromStr for Memory {
    type Err = QuantityError;
    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let wrong = || QuantityError::Memory(text.to_owned());
        let trimmed = text.trim();
        let split = trimmed
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(trimmed.len());
        let (number, unit) = trimmed.split_at(split);
        let power = match unit
            .trim()
            .to_ascii_lowercase()
            .trim_end_matches('b')
            .trim_end_matches('i')
        {
            "" => 0u32,
            "k" => 1,
            "m" => 2,
            "g" => 3,
            "t" => 4,
            _ => return Err(wrong()),
        };
        // Whole numbers stay exact; only a fraction goes through floating point.
        if let Ok(whole) = number.parse::<u64>() {
            let bytes = whole
                .checked_mul(1024u64.pow(power))
                .filter(|bytes| (1..=1_000_000_000_000_000_000).contains(bytes));
            return bytes.map(Self).ok_or_else(wrong);
        }
        let value: f64 = number.parse().map_err(|_| wrong())?;
        let bytes = value * 1024f64.powi(power.cast_signed());
        if !(1.0..=1e18).contains(&bytes) {
            return Err(wrong());
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "checked above: 1..=1e18"
        )]
        Ok(Self(bytes as u64))
    }
}

/// The size of files, for people: as [`Memory`], with a unit also below 1K (`12B`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size(pub u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = if self.0 < 1024 {
            format!("{}B", self.0)
        } else {
            Memory(self.0).to_string()
        };
        f.pad(&text)
    }
}

impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u64, &str); 4] = [
            (1 << 40, "T"),
            (1 << 30, "G"),
            (1 << 20, "M"),
            (1 << 10, "K"),
        ];
        for (size, unit) in UNITS {
            if self.0 >= size {
                return if self.0.is_multiple_of(size) {
                    write!(f, "{}{unit}", self.0 / size)
                } else {
                    let tenths = u128::from(self.0) * 10 / u128::from(size);
                    write!(f, "{}.{}{unit}", tenths / 10, tenths % 10)
                };
            }
        }
        write!(f, "{}", self.0)
    }
}

impl FromStr for Span {
    type Err = QuantityError;
    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let wrong = || QuantityError::Span(text.to_owned());
        let too_long = || QuantityError::TooLong(text.to_owned());
        let trimmed = text.trim();
        if trimmed.contains(':') {
            return clock(trimmed).map(Self).ok_or_else(wrong);
        }
        let mut total: u64 = 0;
        let mut digits = String::new();
        let mut last_unit = u64::MAX;
        for c in trimmed.chars() {
            if c.is_ascii_digit() {
                digits.push(c);
                continue;
            }
            let unit = match c.to_ascii_lowercase() {
                'd' => 86_400,
                'h' => 3_600,
                'm' => 60,
                's' => 1,
                _ => return Err(wrong()),
            };
            // Units only fall, so that `5m3h` is a mistake and not three hours and five minutes.
            if digits.is_empty() || unit >= last_unit {
                return Err(wrong());
            }
            last_unit = unit;
            let count: u64 = digits.parse().map_err(|_| too_long())?;
            total = count
                .checked_mul(unit)
                .and_then(|part| total.checked_add(part))
                .ok_or_else(too_long)?;
            digits.clear();
        }
        if !digits.is_empty() {
            if last_unit != u64::MAX {
                return Err(wrong());
            }
            total = digits.parse().map_err(|_| too_long())?;
        } else if last_unit == u64::MAX {
            return Err(wrong());
        }
        if total == 0 {
            return Err(QuantityError::NoTime(text.to_owned()));
        }
        if total > 100 * 365 * 86_400 {
            return Err(too_long());
        }
        Ok(Self(total))
    }
}

/// Seconds of `1-12:00:00` or `12:00:00`, as Slurm and clocks write them. `12:00` could be hours or
/// minutes, so it is refused.
fn clock(text: &str) -> Option<u64> {
    let (days, time) = text.split_once('-').unwrap_or(("0", text));
    let parts: Vec<&str> = time.split(':').collect();
    let [hours, minutes, seconds] = parts[..] else {
        return None;
    };
    let number = |part: &str| {
        let is_number = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| part.parse::<u32>().ok())?.map(u64::from)
    };
    let (minutes, seconds) = (number(minutes)?, number(seconds)?);
    if minutes > 59 || seconds > 59 {
        return None;
    }
    let total = number(days)? * 86_400 + number(hours)? * 3_600 + minutes * 60 + seconds;
    (1..=100 * 365 * 86_400).contains(&total).then_some(total)
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        if rest == 0 {
            return f.write_str("0s");
        }
        for (size, unit) in [(86_400, 'd'), (3_600, 'h'), (60, 'm'), (1, 's')] {
            if rest >= size {
                write!(f, "{}{unit}", rest / size)?;
                rest %= size;
            }
        }
        Ok(())
    }
}

macro_rules! as_text {
    ($name:ident, $title:literal, $pattern:literal) => {
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                // Exact: the display of an odd size is rounded.
                if self.to_string().parse::<Self>() == Ok(*self) {
                    serializer.collect_str(self)
                } else {
                    serializer.collect_str(&self.0)
                }
            }
        }
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
            }
        }
        impl JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "description": $title, "anyOf": [
                    { "type": "string", "pattern": $pattern },
                    { "type": "integer", "minimum": 1 }
                ]})
            }
        }
    };
}
as_text!(
    Memory,
    "A size such as `600G`.",
    "^[0-9.]+ *([kKmMgGtT][iI]?)?[bB]?$"
);
as_text!(
    Span,
    "A span of time such as `14d`, `2h30m`, `90s` or `01:30:00`.",
    "^([0-9]+[dD])?([0-9]+[hH])?([0-9]+[mM])?([0-9]+[sS])?$|^[0-9]+$|^([0-9]+-)?[0-9]+:[0-9]+:[0-9]+$"
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_written() {
        for (text, bytes) in [
            ("600G", 600 << 30),
            ("512MiB", 512 << 20),
            ("1.5g", 3 << 29),
            ("10", 10),
            ("2 TB", 2 << 40),
        ] {
            assert_eq!(text.parse(), Ok(Memory(bytes)), "{text}");
        }
        for text in ["", "G", "-1G", "1X", "0", "1e9", "99999999T", "NaN"] {
            assert!(text.parse::<Memory>().is_err(), "{text}");
        }
    }

    #[test]
    fn spans_are_read_as_written() {
        for (text, seconds) in [
            ("14d", 14 * 86_400),
            ("2h30m", 9_000),
            ("90s", 90),
            ("45", 45),
            ("1d1s", 86_401),
        ] {
            assert_eq!(text.parse(), Ok(Span(seconds)), "{text}");
        }
        for text in [
            "",
            "h",
            "5m3h",
            "1h1h",
            "2h30",
            "0s",
            "-1h",
            "1w",
            "99999999999999999999d",
        ] {
            assert!(text.parse::<Span>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_span_may_be_written_as_a_clock_shows_it() {
        for (text, seconds) in [
            ("01:00:00", 3_600),
            ("1-12:00:30", 86_400 + 43_230),
            ("00:00:01", 1),
            ("100:00:00", 360_000),
        ] {
            assert_eq!(text.parse(), Ok(Span(seconds)), "{text}");
        }
        for text in [
            "10:00",
            "1:60:00",
            "00:00:00",
            "1:2:3:4",
            "::",
            "-1:00:00",
            "1-2",
            "+1:00:00",
            "99999999999:00:00",
            "36501-00:00:00",
        ] {
            assert!(text.parse::<Span>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_span_that_cannot_be_says_why() {
        let message = |text: &str| text.parse::<Span>().expect_err(text).to_string();
        assert_eq!(message("0s"), "`0s` is no time at all; the least is `1s`");
        assert_eq!(message("0"), "`0` is no time at all; the least is `1s`");
        assert_eq!(
            message("99999d"),
            "`99999d` is longer than 100 years, which is the most"
        );
        assert_eq!(
            message("99999999999999999999d"),
            "`99999999999999999999d` is longer than 100 years, which is the most"
        );
        assert!(message("5x").contains("is not a span of time"));
    }

    proptest::proptest! {
        #[test]
        fn what_is_shown_reads_back(seconds in 1u64..3_000_000_000) {
            proptest::prop_assert_eq!(Span(seconds).to_string().parse(), Ok(Span(seconds)));
        }
        #[test]
        fn any_text_is_read_or_refused(text in ".*") {
            let _ = text.parse::<Span>();
            let _ = text.parse::<Memory>();
        }
        #[test]
        fn sizes_survive_storage(bytes in 1u64..1_000_000_000_000_000_000) {
            let stored = serde_json::to_string(&Memory(bytes)).expect("a size serialises");
            proptest::prop_assert_eq!(serde_json::from_str::<Memory>(&stored).ok(), Some(Memory(bytes)));
        }
    }

    #[test]
    fn the_size_of_a_file_always_has_a_unit() {
        let shown = [0, 12, 1023, 1024, 1536].map(|bytes| Size(bytes).to_string());
        assert_eq!(shown, ["0B", "12B", "1023B", "1K", "1.5K"]);
        assert_eq!(format!("{:>5}", Size(12)), "  12B");
    }
}
