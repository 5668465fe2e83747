//! The sweep of a toolkit's submission.

use super::section::{Section, wrong};
use super::{Converted, quoted};
use towline_core::Result;
use towline_core::sweep::Sweep;
use towline_core::yaml::{Content, Node, Position};

/// `name: v1, v2` or `(a,b): (1,2), (3,4)`. Commas or line ends separate values, also directly after
/// the colon.
pub(super) fn sweep(keys: &Section<'_>, job: &mut Node, converted: &mut Converted) -> Result<()> {
    let Some(node) = keys.get("arg_sweep") else {
        return Ok(());
    };
    let texts: Vec<(&str, &Position)> = match &node.content {
        Content::Sequence(items) => items
            .iter()
            .map(|item| {
                Ok((
                    super::section::text(item, "experiment.arg_sweep")?,
                    &item.at,
                ))
            })
            .collect::<Result<_>>()?,
        Content::Scalar { text, .. } => vec![(text.as_str(), &node.at)],
        Content::Mapping(_) => {
            return Err(wrong(
                &node.at,
                "`experiment.arg_sweep` must be a list of texts",
            ));
        }
    };
    let lines = texts
        .iter()
        .flat_map(|(text, at)| text.lines().map(move |line| (line, *at)));
    let mut sweep = Sweep::default();
    for (name, values, at) in entries(lines)? {
        let values: Vec<&str> = values
            .into_iter()
            .map(|part| part.trim().trim_matches(',').trim())
            .filter(|part| !part.is_empty())
            .collect();
        if values.is_empty() {
            return Err(wrong(
                at,
                format!("`{name}:` has no value in `experiment.arg_sweep`"),
            ));
        }
        sweep
            .set(&format!("{name}={}", values.join(",")))
            .map_err(|error| wrong(at, error.message()))?;
    }
    sweep
        .combinations()
        .map_err(|error| wrong(&node.at, error.message()))?;
    for axis in &sweep.0 {
        let values = |choice: &Vec<String>| {
            Node::sequence(
                choice.iter().map(|value| quoted(value, &node.at)).collect(),
                node.at.clone(),
            )
        };
        let (label, choices) = match axis.names.as_slice() {
            [one] => (
                one.clone(),
                axis.choices
                    .iter()
                    .flatten()
                    .map(|value| quoted(value, &node.at))
                    .collect(),
            ),
            many => (
                format!("({})", many.join(", ")),
                axis.choices.iter().map(values).collect(),
            ),
        };
        job.put(&["sweep", &label], Node::sequence(choices, node.at.clone()));
    }
    if !sweep.is_empty() {
        converted
            .report
            .mapped("experiment.arg_sweep", &node.at, "sweep");
    }
    Ok(())
}

/// Groups lines: one that names an axis, and the following lines with more of its values.
fn entries<'l>(
    lines: impl Iterator<Item = (&'l str, &'l Position)>,
) -> Result<Vec<(String, Vec<&'l str>, &'l Position)>> {
    let mut entries: Vec<(String, Vec<&str>, &Position)> = Vec::new();
    for (line, at) in lines.filter(|(line, _)| !line.trim().is_empty()) {
        let split = line
            .split_once(':')
            .filter(|(name, values)| names_an_axis(name.trim()) && !values.starts_with('/'));
        match (split, entries.last_mut()) {
            (Some((name, values)), _) => entries.push((name.trim().to_owned(), vec![values], at)),
            (None, Some((_, values, _))) => values.push(line),
            (None, None) => {
                return Err(wrong(
                    at,
                    format!("`{line}`: a sweep is written `name: v1, v2`"),
                ));
            }
        }
    }
    Ok(entries)
}

/// `name` or `(a, b)`.
fn names_an_axis(text: &str) -> bool {
    let is_name = |name: &str| {
        let name = name.trim();
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c))
    };
    match text
        .strip_prefix('(')
        .and_then(|inner| inner.strip_suffix(')'))
    {
        Some(names) => names.split(',').all(is_name),
        None => is_name(text),
    }
}
