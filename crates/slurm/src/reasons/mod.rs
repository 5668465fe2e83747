//! Explains why a job waits: Slurm's reason as a sentence, and what to do.

mod limits;
mod table;

use towline_core::time::{Moment, human_millis};

/// A pending reason, explained.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// What it waits for, without a full stop: "jobs of higher priority are ahead of it".
    pub text: String,
    /// What the user can do.
    pub next: Option<String>,
    /// It can never start as it is: the job or the site's settings must change first.
    pub forever: bool,
}

/// Further facts about a waiting job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Outlook<'a> {
    pub now: Moment,
    /// Slurm's number of the job.
    pub job: Option<&'a str>,
    /// When Slurm expects to start it.
    pub start: Option<Moment>,
    /// Waiting jobs of higher priority in the same partition.
    pub ahead: Option<u32>,
    /// All waiting jobs of the partition.
    pub waiting: Option<u32>,
}

/// Explains a reason of `squeue` (with blanks) or `scontrol` (with underscores instead).
pub fn explain(reason: &str) -> Explanation {
    let reason = reason.trim().trim_start_matches('(').trim_end_matches(')');
    let (word, rest) = split(reason);
    if let Some(found) = with_detail(word, rest) {
        return found;
    }
    if let Some((_, text, next, forever)) = table::REASONS.iter().find(|(known, ..)| *known == word)
    {
        return Explanation {
            text: (*text).to_owned(),
            next: (!next.is_empty()).then(|| (*next).to_owned()),
            forever: *forever,
        };
    }
    let spaced = reason.replace('_', " ");
    if let Some((_, text, next, forever)) = table::SENTENCES
        .iter()
        .find(|(begin, ..)| spaced.starts_with(begin))
    {
        return Explanation {
            text: (*text).to_owned(),
            next: (!next.is_empty()).then(|| (*next).to_owned()),
            forever: *forever,
        };
    }
    if reason.is_empty() {
        return Explanation {
            text: "Slurm has not said yet why it waits".to_owned(),
            next: Some("ask again in a few seconds".to_owned()),
            forever: false,
        };
    }
    limits::explain(word)
        .or_else(|| limits::explain_sentence(&spaced))
        .unwrap_or_else(|| Explanation {
            text: format!("Slurm says `{spaced}`"),
            next: Some("Slurm's manual of `squeue` lists its reasons".to_owned()),
            forever: false,
        })
}

/// Whether the job waits for its turn: then its place in the queue is worth a query.
pub fn is_turn(reason: &str) -> bool {
    matches!(
        reason.trim().trim_start_matches('(').trim_end_matches(')'),
        "Priority" | "Resources"
    )
}

/// The same, with its place in the queue.
pub fn explain_with(reason: &str, outlook: &Outlook<'_>) -> Explanation {
    let mut explained = explain(reason);
    if let Some(job) = outlook.job {
        explained.next = explained.next.map(|next| next.replace(table::JOB, job));
    }
    match (outlook.ahead, outlook.waiting) {
        (Some(0), _) => explained.text += "; it is the next in its partition",
        (Some(ahead), Some(waiting)) => {
            explained.text += &format!("; {ahead} of {waiting} waiting jobs are ahead of it");
        }
        (Some(1), None) => explained.text += "; 1 waiting job is ahead of it",
        (Some(ahead), None) => explained.text += &format!("; {ahead} waiting jobs are ahead of it"),
        (None, _) => {}
    }
    // Slurm's prediction for a job that cannot start is a default, not knowledge.
    if let Some(start) = outlook
        .start
        .filter(|start| *start > outlook.now && !explained.forever)
    {
        explained.text += &format!(
            "; expected to start at {} (in {})",
            minute(start),
            human_millis(start.since(outlook.now))
        );
    }
    explained
}

/// `2026-11-15 06:48 UTC`
fn minute(moment: Moment) -> String {
    let text = moment.to_string();
    match text.get(..16) {
        Some(minute) if text.ends_with('Z') => format!("{} UTC", minute.replace('T', " ")),
        _ => text,
    }
}

/// The first word and the rest: `ReqNodeNotAvail, UnavailableNodes:c1`.
fn split(reason: &str) -> (&str, &str) {
    let (word, rest) = reason.split_once(',').unwrap_or((reason, ""));
    (word.trim(), rest.trim().trim_start_matches('_'))
}

fn with_detail(word: &str, rest: &str) -> Option<Explanation> {
    let rest = rest.replace('_', " ");
    match word {
        "ReqNodeNotAvail" if rest.starts_with("UnavailableNodes:") => {
            let nodes = rest.trim_start_matches("UnavailableNodes:").trim();
            let which = if nodes.is_empty() {
                String::new()
            } else {
                format!(": {nodes}")
            };
            Some(Explanation {
                text: format!("nodes that it needs are down, drained or reserved{which}"),
                next: Some(
                    "`tow nodes` tells their state; ask for fewer or other nodes, or wait \
                    for the site's staff"
                        .into(),
                ),
                forever: false,
            })
        }
        "ReqNodeNotAvail" if rest.contains("maintenance") => Some(Explanation {
            text: "its nodes are reserved for maintenance before it could end".into(),
            next: Some("a shorter `time` may fit in before; otherwise it starts afterwards".into()),
            forever: false,
        }),
        "ReqNodeNotAvail" if rest.contains("reserved for other job") => Some(Explanation {
            text: "nodes that it needs may be kept for another job".into(),
            next: Some("wait, or ask for a shorter `time` so that it fits in before".into()),
            forever: false,
        }),
        _ if word.starts_with("RaisedSignal:") => Some(Explanation {
            text: format!(
                "its last start was ended by signal {}",
                word.trim_start_matches("RaisedSignal:")
            ),
            next: Some("`tow logs` shows what it did last".into()),
            forever: false,
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
