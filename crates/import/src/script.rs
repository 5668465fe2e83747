//! Scripts of other tools as scripts of a job. Secrets in them are not copied: each becomes a
//! variable that the user stores.

use super::{Converted, scrub};
use towline_core::yaml::{Content, Node, Position};

/// Lines of a script with their numbers in the file, and how messages call that file.
pub(super) struct ScriptLines<'l> {
    pub(super) lines: Vec<(usize, String)>,
    pub(super) source_name: &'l str,
}

impl<'l> ScriptLines<'l> {
    /// Numbers the lines from 1.
    pub(super) fn of(lines: Vec<String>, source_name: &'l str) -> Self {
        Self {
            lines: lines
                .into_iter()
                .enumerate()
                .map(|(index, line)| (index + 1, line))
                .collect(),
            source_name,
        }
    }
}

/// Puts the lines of a script into a job, without its secrets.
pub(super) fn put_script(
    converted: &mut Converted,
    job: &mut Node,
    path: &[&str],
    lines: &ScriptLines<'_>,
    at: &Position,
) {
    let (text, found) = scrub::scrub(
        &lines
            .lines
            .iter()
            .map(|(_, line)| line.as_str())
            .collect::<Vec<_>>()
            .join("\n"),
    );
    put_secrets(converted, job, &found, lines, at);
    let node = match path {
        ["script"] => Node {
            content: Content::Scalar {
                text: format!("{}\n", text.trim_end_matches('\n')),
                plain: false,
            },
            at: at.clone(),
        },
        _ => Node::sequence(
            text.split('\n').map(|line| quoted(line, at)).collect(),
            at.clone(),
        ),
    };
    job.put(path, node);
}

/// Puts the names of secrets under `environment.secrets` and tells the user how to store each.
fn put_secrets(
    converted: &mut Converted,
    job: &mut Node,
    found: &[scrub::Found],
    lines: &ScriptLines<'_>,
    at: &Position,
) {
    for scrub::Found { name, line } in found {
        let number = lines
            .lines
            .get(line - 1)
            .map_or(*line, |(number, _)| *number);
        let place = format!("line {number} of {}", lines.source_name);
        converted.report.warn(format!(
            "{place} held a secret: it was not copied. `{name}` is under `environment.secrets` and \
                used in its place (look at the quotes there); export {name}=… before submitting, \
                    or store it once"
        ));
        converted
            .report
            .store(name, &format!("the value from {place}"));
        add_secret(job, name, at);
    }
}

/// Adds a name to `environment.secrets`, once.
pub(super) fn add_secret(job: &mut Node, name: &str, at: &Position) {
    let mut names: Vec<Node> = match job
        .get("environment")
        .and_then(|environment| environment.get("secrets"))
        .map(|node| &node.content)
    {
        Some(Content::Sequence(names)) => names.clone(),
        _ => Vec::new(),
    };
    if !names.iter().any(|known| known.text() == Some(name)) {
        names.push(quoted(name, at));
        job.put(
            &["environment", "secrets"],
            Node::sequence(names, at.clone()),
        );
    }
}

/// A text that is written with quotes.
pub(super) fn quoted(text: &str, at: &Position) -> Node {
    Node {
        content: Content::Scalar {
            text: text.to_owned(),
            plain: false,
        },
        at: at.clone(),
    }
}
