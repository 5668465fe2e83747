//! The small values inside Slurm's answers: times, spans, limits, sizes, and the many words for
//! "nothing".

use towline_core::time::Moment;

/// A limit that Slurm states; a reader returns `None` if there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    Unlimited,
    /// In the unit of the field: seconds, nodes, jobs.
    At(u64),
}

impl Limit {
    /// Whether `asked` is more than the limit allows.
    pub const fn is_passed_by(self, asked: u64) -> bool {
        match self {
            Self::Unlimited => false,
            Self::At(most) => asked > most,
        }
    }
}

/// The text, unless it is one of Slurm's words for nothing.
pub fn present(text: &str) -> Option<&str> {
    let text = text.trim();
    let nothing = [
        "",
        "(null)",
        "N/A",
        "n/a",
        "None",
        "NONE",
        "Unknown",
        "NOT_SET",
        "None assigned",
        "INVALID",
        "(None)",
    ];
    (!nothing.contains(&text)).then_some(text)
}

/// [`present`], owned.
pub fn words(text: &str) -> Option<String> {
    present(text).map(str::to_owned)
}

/// Epoch seconds. A local time without a zone (`2026-11-15T06:48:00`, printed if
/// `SLURM_TIME_FORMAT` was not passed on) is not a moment.
pub fn moment(text: &str) -> Option<Moment> {
    let seconds: i64 = present(text)?.parse().ok()?;
    (seconds > 0).then(|| Moment(seconds.saturating_mul(1000)))
}

/// `M:SS`, `H:MM:SS`, `D-HH:MM:SS`, `D-HH`, or minutes alone, in seconds.
pub fn span(text: &str) -> Option<u64> {
    clock(text, 60)
}

/// [`span`], where a number alone counts units of so many seconds: minutes in limits, seconds in
/// what is left of one.
pub(crate) fn clock(text: &str, unit: u64) -> Option<u64> {
    let text = present(text)?;
    let (days, clock) = match text.split_once('-') {
        Some((days, clock)) => (Some(number(days)?), clock),
        None => (None, text),
    };
    let parts: Vec<u64> = clock.split(':').map(number).collect::<Option<_>>()?;
    // With days the clock begins with hours; without, it ends with seconds.
    let (hours, minutes, seconds) = match (days, parts.as_slice()) {
        (Some(_), [hours]) => (*hours, 0, 0),
        (Some(_), [hours, minutes]) => (*hours, *minutes, 0),
        (_, [hours, minutes, seconds]) => (*hours, *minutes, *seconds),
        (None, [minutes, seconds]) => (0, *minutes, *seconds),
        (None, [units]) => (0, 0, units.checked_mul(unit)?),
        _ => return None,
    };
    let days = days.unwrap_or(0).checked_mul(86_400)?;
    days.checked_add(hours.checked_mul(3_600)?)?
        .checked_add(minutes.checked_mul(60)?)?
        .checked_add(seconds)
}

fn number(text: &str) -> Option<u64> {
    // `parse` alone would accept a sign.
    text.bytes()
        .all(|b| b.is_ascii_digit())
        .then(|| text.parse().ok())?
}

fn unlimited(text: &str) -> bool {
    ["UNLIMITED", "INFINITE"].contains(&text.trim())
}

/// A span that may be `UNLIMITED`.
pub fn time_limit(text: &str) -> Option<Limit> {
    if unlimited(text) {
        Some(Limit::Unlimited)
    } else {
        span(text).map(Limit::At)
    }
}

/// A number that may be `UNLIMITED`.
pub fn count_limit(text: &str) -> Option<Limit> {
    if unlimited(text) {
        Some(Limit::Unlimited)
    } else {
        number(present(text)?).map(Limit::At)
    }
}

/// A whole number; for a range such as `2-4`, the smaller one.
pub fn count(text: &str) -> Option<u32> {
    let text = present(text)?;
    let text = text.split_once('-').map_or(text, |(least, _)| least);
    number(text)?.try_into().ok()
}

/// A number that may end in `K`, `M`, `G`, `T` or `P` (powers of 1024); without a letter it counts
/// units of `plain` bytes. Fractions such as `1.50G` occur.
pub fn bytes(text: &str, plain: u64) -> Option<u64> {
    let text = present(text)?;
    let (digits, unit) = match text.char_indices().last()? {
        (at, last) if last.is_ascii_alphabetic() => {
            let power = "KMGTP".find(last.to_ascii_uppercase())?;
            (
                &text[..at],
                1024u64.checked_pow(u32::try_from(power).ok()? + 1)?,
            )
        }
        _ => (text, plain),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let whole = number(whole)?.checked_mul(unit)?;
    let hundredths: String = fraction.chars().chain("00".chars()).take(2).collect();
    let rest = u128::from(number(&hundredths)?) * u128::from(unit) / 100;
    whole.checked_add(u64::try_from(rest).ok()?)
}

/// The parts of a list; `ALL` and an empty text give an empty one.
pub fn list(text: &str) -> Vec<String> {
    match present(text) {
        None | Some("ALL") => Vec::new(),
        Some(text) => text
            .split(',')
            .map(str::trim)
            .filter(|part| !part.is_empty())
            .map(str::to_owned)
            .collect(),
    }
}

/// Trackable resources: `cpu=4,mem=1000M,gres/gpu=8,gres/gpu:h200=8`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Resources(pub Vec<(String, String)>);

impl Resources {
    pub fn read(text: &str) -> Self {
        Self(
            list(text)
                .iter()
                .filter_map(|part| part.split_once('='))
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
        )
    }
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }
    /// GPUs of all types: their own entry, else the sum of the typed ones.
    pub fn gpus(&self) -> Option<u32> {
        if let Some(all) = self.get("gres/gpu") {
            return count(all);
        }
        let typed: Vec<u32> = self
            .0
            .iter()
            .filter(|(name, _)| name.starts_with("gres/gpu:"))
            .filter_map(|(_, value)| count(value))
            .collect();
        (!typed.is_empty()).then(|| {
            typed
                .iter()
                .fold(0, |sum: u32, one| sum.saturating_add(*one))
        })
    }
    /// In bytes.
    pub fn memory(&self) -> Option<u64> {
        bytes(self.get("mem")?, 1 << 20)
    }
    pub fn cpus(&self) -> Option<u32> {
        count(self.get("cpu")?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_of_every_command_are_read() {
        for (text, seconds) in [
            ("0:00", 0),
            ("5:03", 303),
            ("1:00:00", 3_600),
            ("14-00:00:00", 1_209_600),
            ("2-12", 216_000),
            ("90", 5_400),
            ("00:01:00", 60),
        ] {
            assert_eq!(span(text), Some(seconds), "{text}");
        }
        for text in [
            "",
            "INVALID",
            "UNLIMITED",
            "Partition_Limit",
            "-1",
            "1:2:3:4",
            "+5",
            "99999999999999999999",
            "213503982334602-00",
        ] {
            assert_eq!(span(text), None, "{text}");
        }
        assert_eq!(time_limit("UNLIMITED"), Some(Limit::Unlimited));
        assert_eq!(time_limit("Partition_Limit"), None);
        assert!(Limit::At(60).is_passed_by(61) && !Limit::Unlimited.is_passed_by(u64::MAX));
    }

    #[test]
    fn sizes_moments_and_resources_are_read() {
        assert_eq!(bytes("4096", 1 << 20), Some(4 << 30));
        assert_eq!(bytes("1.50G", 1), Some(3 << 29));
        assert_eq!(bytes("2T", 1), Some(2 << 40));
        assert_eq!(bytes("9999999999P", 1), None);
        assert_eq!(moment("1763189280"), Some(Moment(1_763_189_280_000)));
        assert_eq!(moment("2026-11-15T06:48:00"), None, "no zone, no moment");
        assert_eq!(moment("Unknown"), None);
        let resources =
            Resources::read("cpu=8,mem=4G,node=1,billing=8,gres/gpu:h200=3,gres/gpu:a100=1");
        assert_eq!(
            (resources.gpus(), resources.memory(), resources.cpus()),
            (Some(4), Some(4 << 30), Some(8))
        );
        assert_eq!(
            Resources::read("gres/gpu=2,gres/gpu:h200=2").gpus(),
            Some(2)
        );
        assert_eq!(Resources::read("").gpus(), None);
    }
}
