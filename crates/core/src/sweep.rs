//! Sweeps: a grid of values, tuples that move together, inclusive ranges.

use crate::{Error, Result};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, MapAccess, SeqAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;

/// More runs than this in one sweep is taken for a mistake.
pub const MAX_SWEEP_RUNS: usize = 100_000;

/// One run's values, in the order of the sweep.
pub type Parameters = Vec<(String, String)>;

/// Names that move together, and the values they take. Values keep their spelling.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Axis {
    pub names: Vec<String>,
    pub choices: Vec<Vec<String>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sweep(pub Vec<Axis>);

impl Sweep {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0
            .iter()
            .flat_map(|axis| axis.names.iter().map(String::as_str))
    }

    /// Every combination, the last axis moving fastest. No sweep is one run without values.
    pub fn combinations(&self) -> Result<Vec<Parameters>> {
        self.check()?;
        let mut rows: Vec<Parameters> = vec![Vec::new()];
        for axis in &self.0 {
            if rows.len().saturating_mul(axis.choices.len()) > MAX_SWEEP_RUNS {
                return Err(Error::too_large(format!(
                    "the sweep has more than {MAX_SWEEP_RUNS} runs"
                ))
                .hint("split it, or take fewer values"));
            }
            rows = rows
                .iter()
                .flat_map(|row| {
                    axis.choices.iter().map(move |choice| {
                        let values = axis.names.iter().cloned().zip(choice.iter().cloned());
                        row.iter().cloned().chain(values).collect()
                    })
                })
                .collect();
        }
        Ok(rows)
    }

    fn check(&self) -> Result<()> {
        let mut seen = std::collections::HashSet::new();
        for axis in &self.0 {
            let label = axis.label();
            if axis.choices.is_empty() {
                return Err(Error::config(format!("sweep `{label}` has no values")));
            }
            for name in &axis.names {
                if name.is_empty()
                    || !name
                        .chars()
                        .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-' || c == '.')
                {
                    return Err(Error::config(format!(
                        "`{name}` cannot be the name of a sweep value"
                    ))
                    .hint("letters, digits, `_`, `-` and `.`"));
                }
                if !seen.insert(name) {
                    return Err(Error::config(format!(
                        "sweep value `{name}` is given twice"
                    )));
                }
            }
            if let Some(choice) = axis
                .choices
                .iter()
                .find(|choice| choice.len() != axis.names.len())
            {
                let message = format!(
                    "sweep `{label}` takes {} values at a time, but `{}` has {}",
                    axis.names.len(),
                    choice.join(", "),
                    choice.len()
                );
                return Err(Error::config(message));
            }
        }
        Ok(())
    }

    /// Adds or replaces axes from the command line. A name that is given twice is refused, because
    /// it is not clear which values it gets.
    pub fn set_all(&mut self, texts: &[String]) -> Result<()> {
        let mut given = Self::default();
        for text in texts {
            let axis = Axis::parse(text)?;
            if let Some(name) = axis
                .names
                .iter()
                .find(|name| given.names().any(|known| known == name.as_str()))
            {
                return Err(
                    Error::usage(format!("--sweep gives `{name}` twice")).hint(format!(
                        "write all its values at once: --sweep {name}=V1,V2"
                    )),
                );
            }
            given.0.push(axis);
        }
        texts.iter().try_for_each(|text| self.set(text))
    }

    /// Adds or replaces an axis from the command line: `lr=0.1,0.01`, `seed=1-3`,
    /// `(bs,acc)=(8,4),(16,2)`.
    pub fn set(&mut self, text: &str) -> Result<()> {
        let axis = Axis::parse(text)?;
        self.0
            .retain(|old| !old.names.iter().any(|name| axis.names.contains(name)));
        self.0.push(axis);
        Ok(())
    }
}

impl Axis {
    fn label(&self) -> String {
        match self.names.as_slice() {
            [one] => one.clone(),
            many => format!("({})", many.join(", ")),
        }
    }

    fn named(label: &str) -> Vec<String> {
        match label
            .trim()
            .strip_prefix('(')
            .and_then(|inner| inner.strip_suffix(')'))
        {
            Some(inner) => inner
                .split(',')
                .map(|name| name.trim().to_owned())
                .collect(),
            None => vec![label.trim().to_owned()],
        }
    }

    fn parse(text: &str) -> Result<Self> {
        let wrong = |why: &str| {
            Error::usage(format!("--sweep `{text}`: {why}"))
                .hint("write `lr=0.1,0.01`, `seed=1-3` or `(bs,acc)=(8,4),(16,2)`")
        };
        let (label, values) = text
            .split_once('=')
            .ok_or_else(|| wrong("there is no `=`"))?;
        let names = Self::named(label);
        let mut choices = Vec::new();
        for item in
            split_outside(values, ',').ok_or_else(|| wrong("a quote or bracket is not closed"))?
        {
            let item = item.trim();
            if let Some(inner) = item
                .strip_prefix('(')
                .and_then(|inner| inner.strip_suffix(')'))
            {
                let parts =
                    split_outside(inner, ',').ok_or_else(|| wrong("a quote is not closed"))?;
                choices.push(parts.into_iter().map(|part| unquote(part.trim())).collect());
            } else if item.is_empty() {
                return Err(wrong("a value is missing"));
            } else if let Some(range) = range(item) {
                choices.extend(range?.map(|value| vec![value]));
            } else {
                choices.push(vec![unquote(item)]);
            }
        }
        let axis = Self { names, choices };
        Sweep(vec![axis.clone()])
            .check()
            .map_err(|error| wrong(error.message()))?;
        Ok(axis)
    }
}

/// `1-3` → 1, 2, 3. `None` when it is not a range; zero padding (`01-12`) is kept.
fn range(text: &str) -> Option<Result<impl Iterator<Item = String> + use<>>> {
    let (from, to) = text.split_once('-')?;
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    if !digits(from) || !digits(to) {
        return None;
    }
    let too_large = || {
        Error::too_large(format!(
            "the range `{text}` has more than {MAX_SWEEP_RUNS} values"
        ))
        .hint("quote it in a list, `[\"1-9\"]`, to mean the word")
    };
    let (Ok(first), Ok(last)) = (from.parse::<u128>(), to.parse::<u128>()) else {
        return Some(Err(too_large()));
    };
    if last >= first && last - first >= MAX_SWEEP_RUNS as u128 {
        return Some(Err(too_large()));
    }
    if first > last {
        return Some(Err(Error::config(format!(
            "`{text}` is not a range from small to large"
        ))
        .hint("quote it in a list, `[\"3-1\"]`, to mean the word")));
    }
    let width = if from.starts_with('0') && from.len() == to.len() {
        from.len()
    } else {
        0
    };
    Some(Ok(
        (first..=last).map(move |value| format!("{value:0width$}"))
    ))
}

fn unquote(text: &str) -> String {
    for quote in ['"', '\''] {
        if let Some(inner) = text
            .strip_prefix(quote)
            .and_then(|inner| inner.strip_suffix(quote))
        {
            return inner.to_owned();
        }
    }
    text.to_owned()
}

/// Splits at `separator` outside quotes and round brackets.
fn split_outside(text: &str, separator: char) -> Option<Vec<&str>> {
    let (mut parts, mut start, mut depth, mut quote) = (Vec::new(), 0, 0u32, None);
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, '(') => depth += 1,
            (None, ')') => depth = depth.checked_sub(1)?,
            (None, _) if c == separator && depth == 0 => {
                parts.push(&text[start..at]);
                start = at + c.len_utf8();
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    (depth == 0 && quote.is_none()).then_some(parts)
}

impl Serialize for Sweep {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for axis in &self.0 {
            if axis.names.len() == 1 {
                map.serialize_entry(
                    &axis.label(),
                    &axis.choices.iter().flatten().collect::<Vec<_>>(),
                )?;
            } else {
                map.serialize_entry(&axis.label(), &axis.choices)?;
            }
        }
        map.end()
    }
}

/// A value of the file: a scalar, or a list of them that moves together.
struct Choice(Vec<String>);

impl<'de> Deserialize<'de> for Choice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        crate::job::OneOrMany::deserialize(deserializer)
            .map(|words| Self(words.as_slice().to_vec()))
    }
}

struct Choices(Vec<Vec<String>>);

impl<'de> Deserialize<'de> for Choices {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct RangeOrList;
        impl<'de> Visitor<'de> for RangeOrList {
            type Value = Choices;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of values or a range such as 1-3")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Choices, E> {
                match range(text) {
                    Some(range) => Ok(Choices(
                        range.map_err(E::custom)?.map(|value| vec![value]).collect(),
                    )),
                    None => Ok(Choices(vec![vec![text.to_owned()]])),
                }
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Choices, A::Error> {
                let mut choices = Vec::new();
                while let Some(Choice(choice)) = items.next_element()? {
                    choices.push(choice);
                }
                Ok(Choices(choices))
            }
        }
        deserializer.deserialize_any(RangeOrList)
    }
}

impl<'de> Deserialize<'de> for Sweep {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Axes;
        impl<'de> Visitor<'de> for Axes {
            type Value = Sweep;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a mapping of names to values")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Sweep, A::Error> {
                let mut axes = Vec::new();
                while let Some((label, Choices(choices))) =
                    entries.next_entry::<String, Choices>()?
                {
                    axes.push(Axis {
                        names: Axis::named(&label),
                        choices,
                    });
                }
                let sweep = Sweep(axes);
                sweep.check().map_err(de::Error::custom)?;
                Ok(sweep)
            }
        }
        deserializer.deserialize_map(Axes)
    }
}

impl JsonSchema for Sweep {
    fn schema_name() -> Cow<'static, str> {
        "Sweep".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let value = serde_json::json!({ "type": ["string", "number", "boolean"] });
        json_schema!({ "type": "object", "additionalProperties": { "anyOf": [
            { "type": "array", "items": { "anyOf": [value.clone(), { "type": "array", "items": value }] } },
            value.clone()
        ]}})
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml;

    fn rows(sweep: &Sweep) -> Vec<String> {
        let show = |row: Parameters| {
            row.iter()
                .map(|(k, v)| format!("{k}={v}"))
                .collect::<Vec<_>>()
                .join(" ")
        };
        sweep
            .combinations()
            .expect("expands")
            .into_iter()
            .map(show)
            .collect()
    }

    #[test]
    fn the_grid_is_the_product_and_tuples_move_together() {
        let node = yaml::parse(
            "job",
            r#"{lr: [0.10, 1e-4], "(bs, acc)": [[8, 4], [16, 2]], seed: 1-2, word: ["1-3"]}"#,
        )
        .expect("YAML");
        let sweep: Sweep = yaml::decode(&node).expect("decodes");
        let rows = rows(&sweep);
        assert_eq!(rows.len(), 8);
        assert_eq!(rows[0], "lr=0.10 bs=8 acc=4 seed=1 word=1-3");
        assert_eq!(rows[7], "lr=1e-4 bs=16 acc=2 seed=2 word=1-3");
    }

    #[test]
    fn the_command_line_says_the_same() {
        let mut sweep = Sweep::default();
        for text in [
            "lr=0.1,0.01",
            "(bs,acc)=(8,4),(16,2)",
            "seed=01-03",
            r#"w="1-3","a,b""#,
        ] {
            sweep.set(text).expect(text);
        }
        assert_eq!(rows(&sweep).len(), 24);
        assert_eq!(rows(&sweep)[0], "lr=0.1 bs=8 acc=4 seed=01 w=1-3");
        sweep.set("lr=5").expect("replaces");
        assert_eq!(rows(&sweep).len(), 12);
        for text in [
            "lr",
            "lr=",
            "lr=1,,2",
            "(a,b)=1,2",
            "(a,b)=(1,2,3)",
            "a b=1",
            "s=3-1",
            "x=(1",
            "(a,a)=(1,2)",
            "=1",
        ] {
            assert!(Sweep::default().set(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_range_that_is_too_large_is_refused_and_never_a_word() {
        for text in [
            "a=1-99999999999999999999",
            "a=0-1000000",
            "a=1-999999999999999999999999999999999999999999999",
        ] {
            let error = Sweep::default().set(text).expect_err(text);
            assert!(
                error.to_string().contains("more than 100000 values"),
                "{error}"
            );
        }
        let mut sweep = Sweep::default();
        sweep
            .set("seed=1700000000-1700000002")
            .expect("a range of large numbers");
        assert_eq!(
            rows(&sweep),
            ["seed=1700000000", "seed=1700000001", "seed=1700000002"]
        );
    }

    #[test]
    fn a_name_that_is_given_twice_is_refused() {
        let words = |texts: &[&str]| {
            texts
                .iter()
                .map(|text| (*text).to_owned())
                .collect::<Vec<_>>()
        };
        let mut sweep = Sweep::default();
        let error = sweep
            .set_all(&words(&["a=1", "b=3", "a=2"]))
            .expect_err("twice");
        assert_eq!(error.to_string(), "--sweep gives `a` twice");
        assert!(sweep.is_empty() && error.hints()[0].contains("--sweep a=V1,V2"));
        sweep.set_all(&words(&["a=1,2", "b=3"])).expect("once each");
        sweep
            .set_all(&words(&["a=5"]))
            .expect("what a file says is replaced");
        assert_eq!(rows(&sweep), ["b=3 a=5"]);
    }

    #[test]
    fn an_enormous_sweep_is_refused_before_it_is_built() {
        let mut sweep = Sweep::default();
        for name in ["a", "b", "c", "d"] {
            sweep.set(&format!("{name}=1-9999")).expect("a range");
        }
        assert!(sweep.combinations().is_err());
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in ".{0,80}") {
            let _ = Sweep::default().set(&text);
        }
    }
}
