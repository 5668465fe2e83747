//! The `#SBATCH` lines of a batch script: options with their position, in their long form, and the
//! numbers in them.

use super::sbatch_names::{self as names, Takes};
use super::section::wrong;
use super::shell_words;
use std::sync::Arc;
use towline_core::Result;
use towline_core::yaml::Position;

/// One option. Without a value it is a switch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Given {
    pub(super) name: String,
    pub(super) value: Option<String>,
    pub(super) at: Position,
}

impl Given {
    /// The option on one line, as `sbatch` takes it.
    pub(super) fn option_text(&self) -> String {
        match &self.value {
            Some(value) => format!("--{}={}", self.name, shell_words::quoted(value)),
            None => format!("--{}", self.name),
        }
    }
    pub(super) fn text(&self) -> Result<&str> {
        self.value
            .as_deref()
            .filter(|value| !value.is_empty())
            .ok_or_else(|| wrong(&self.at, format!("`--{}` has no value", self.name)))
    }
    pub(super) fn number(&self) -> Result<u32> {
        let text = self.text()?;
        text.parse().map_err(|_| {
            wrong(
                &self.at,
                format!("`--{}`: `{text}` is not a whole number", self.name),
            )
        })
    }
}

/// Every option of the script's head, which ends at its first command.
pub(super) fn options(source: &str, text: &str) -> Result<Vec<Given>> {
    let mut found = Vec::new();
    let source: Arc<str> = source.into();
    for (index, line) in text.lines().enumerate() {
        let Some(rest) = line.strip_prefix("#SBATCH") else {
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            break;
        };
        let place = |column: usize| Position {
            source: source.clone(),
            line: index + 1,
            column: column + 1,
        };
        if !rest.is_empty() && !rest.starts_with([' ', '\t']) {
            // `#SBATCHx` is a comment, and certainly a mistake.
            return Err(wrong(&place(0), "`#SBATCH` is followed by a blank"));
        }
        let words = shell_words::split(rest, true)
            .ok_or_else(|| wrong(&place(7), "a quote is not closed"))?;
        let mut words = words
            .into_iter()
            .map(|(column, option_text)| (column + 7, option_text))
            .peekable();
        while let Some((column, option_text)) = words.next() {
            if matches!(option_text.as_str(), "hetjob" | "packjob") {
                // The next lines belong to another part of the job, with other machines.
                found.push(Given {
                    name: option_text,
                    value: None,
                    at: place(column),
                });
                return Ok(found);
            }
            let not_one = || {
                wrong(
                    &place(column),
                    format!(
                        "`{}` is not an option of `sbatch`",
                        super::scrub::scrub(&option_text).0
                    ),
                )
            };
            for (name, mut value) in split(&option_text).ok_or_else(not_one)? {
                let takes = names::takes(&name);
                if value.is_none()
                    && takes != Takes::Nothing
                    && words.peek().is_some_and(|(_, next)| !next.starts_with('-'))
                {
                    value = words.next().map(|(_, value)| value);
                }
                if value.is_none() && takes == Takes::Value {
                    return Err(wrong(&place(column), format!("`--{name}` has no value")));
                }
                found.push(Given {
                    name,
                    value,
                    at: place(column),
                });
            }
        }
    }
    Ok(found)
}

/// Long names and values of `--nodes=2`, `-N2`, `-N`, `-vQ`.
fn split(option_text: &str) -> Option<Vec<(String, Option<String>)>> {
    if let Some(long) = option_text.strip_prefix("--") {
        let (name, value) = long
            .split_once('=')
            .map_or((long, None), |(name, value)| (name, Some(value.to_owned())));
        let is_name = !name.is_empty()
            && name
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
        return is_name.then(|| vec![(names::whole(&name.replace('_', "-")), value)]);
    }
    let mut letters = option_text
        .strip_prefix('-')
        .filter(|letters| !letters.is_empty())?
        .chars();
    let mut found = Vec::new();
    while let Some(letter) = letters.next() {
        let name = names::of_letter(letter)?;
        if names::takes(name) == Takes::Nothing {
            found.push((name.to_owned(), None));
            continue;
        }
        let value = letters.as_str();
        let value = value.strip_prefix('=').unwrap_or(value);
        found.push((
            name.to_owned(),
            (!value.is_empty()).then(|| value.to_owned()),
        ));
        break;
    }
    Some(found)
}

/// Slurm's times: `90` minutes, `M:S`, `H:M:S`, `D-H`, `D-H:M`, `D-H:M:S`. `None` is no limit.
pub(super) fn seconds(given: &Given) -> Result<Option<u64>> {
    let text = given.text()?;
    let bad = || {
        wrong(
            &given.at,
            format!("`--time`: `{text}` is not a time of Slurm's"),
        )
    };
    if ["unlimited", "infinite", "0"].contains(&text.to_ascii_lowercase().as_str()) {
        return Ok(None);
    }
    let (days, clock) = text
        .split_once('-')
        .map_or((None, text), |(days, clock)| (Some(days), clock));
    let parts = clock
        .split(':')
        .map(|part| part.parse::<u32>().map(u64::from).map_err(|_| bad()))
        .collect::<Result<Vec<_>>>()?;
    let clock = match (days, parts.as_slice()) {
        (None, [minutes]) => minutes * 60,
        (None, [minutes, seconds]) => minutes * 60 + seconds,
        (Some(_), [hours]) => hours * 3_600,
        (Some(_), [hours, minutes]) => hours * 3_600 + minutes * 60,
        (_, [hours, minutes, seconds]) => hours * 3_600 + minutes * 60 + seconds,
        _ => return Err(bad()),
    };
    let days: u64 = days.map_or(Ok(0), |days| days.parse().map_err(|_| bad()))?;
    days.checked_mul(86_400)
        .and_then(|days| days.checked_add(clock))
        .filter(|total| *total > 0 && *total < 100 * 365 * 86_400)
        .map(Some)
        .ok_or_else(bad)
}

/// Slurm's sizes, in mebibytes: `16G`, `4000`.
pub(super) fn mebibytes(given: &Given) -> Result<u64> {
    let text = given.text()?;
    let bad = || {
        wrong(
            &given.at,
            format!("`--{}`: `{text}` is not a size", given.name),
        )
    };
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let number: u64 = digits.parse().map_err(|_| bad())?;
    let factor = match text[digits.len()..]
        .to_ascii_uppercase()
        .trim_end_matches('B')
    {
        "K" => return Ok(number.div_ceil(1024)),
        "" | "M" => 1,
        "G" => 1024,
        "T" => 1024 * 1024,
        _ => return Err(bad()),
    };
    number
        .checked_mul(factor)
        .filter(|size| *size < 1 << 40)
        .ok_or_else(bad)
}

/// `0-9`, `1,3,5-7`, `1-9:2`, `0-99%4`: the numbers, and how many at once.
pub(super) fn array(given: &Given) -> Result<(Vec<String>, Option<&str>)> {
    let text = given.text()?;
    let bad = || {
        wrong(
            &given.at,
            format!("`--array`: `{text}` is not a list of numbers"),
        )
    };
    let (list, at_once) = text
        .split_once('%')
        .map_or((text, None), |(list, at_once)| (list, Some(at_once)));
    let mut numbers = Vec::new();
    for part in list.split(',') {
        let (range, step) = part
            .split_once(':')
            .map_or((part, "1"), |(range, step)| (range, step));
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let number = |text: &str| text.trim().parse::<u64>().map_err(|_| bad());
        let (first, last, step) = (number(first)?, number(last)?, number(step)?);
        if step == 0 || last < first || last - first > 100_000 {
            return Err(bad());
        }
        numbers.extend(
            (first..=last)
                .step_by(usize::try_from(step).map_err(|_| bad())?)
                .map(|number| number.to_string()),
        );
    }
    Ok((numbers, at_once))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_in_every_spelling() {
        let text = "#!/bin/bash\n#SBATCH -N2 --time 1-2:30 # two\n# a word\n#SBATCH --comment=\"a \
            b\"  --exclusive -p gpu -vvQ --part \"#x\"\necho\n#SBATCH --late=1\n";
        let given = options("x", text).expect("reads");
        let words: Vec<String> = given.iter().map(Given::option_text).collect();
        assert_eq!(
            words,
            [
                "--nodes=2",
                "--time=1-2:30",
                "--comment='a b'",
                "--exclusive",
                "--partition=gpu",
                "--verbose",
                "--verbose",
                "--quiet",
                "--partition='#x'"
            ]
        );
        assert_eq!(given[1].at.to_string(), "x:2:13");
        assert_eq!(seconds(&given[1]).expect("a time"), Some(95_400));
    }

    #[test]
    fn arrays_and_sizes() {
        let given = |name: &str, value: &str| Given {
            name: name.into(),
            value: Some(value.into()),
            at: Position {
                source: "x".into(),
                line: 1,
                column: 1,
            },
        };
        assert_eq!(
            array(&given("array", "1-7:3,9%2")).expect("reads"),
            (
                vec!["1".into(), "4".into(), "7".into(), "9".into()],
                Some("2")
            )
        );
        for (text, size) in [
            ("16G", 16_384),
            ("4000", 4_000),
            ("1T", 1 << 20),
            ("512K", 1),
        ] {
            assert_eq!(mebibytes(&given("mem", text)).expect("a size"), size);
        }
        assert!(
            array(&given("array", "5-1")).is_err() && mebibytes(&given("mem", "much")).is_err()
        );
    }
}
