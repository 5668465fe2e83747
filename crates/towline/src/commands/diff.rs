//! `tow diff`: compares two runs or sweeps.

use super::Report;
use crate::context::Context;
use crate::output::columns::{columns, wrap};
use crate::output::table::Table;
use crate::output::{Paint, width};
use crate::runs::code_diff::code_diff;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use towline_core::counts::PhaseCounts;
use towline_core::record::RunRecord;
use towline_core::resolve::Resolved;
use towline_core::{Error, Result};
use towline_engine::history::{History, Submission, Target};
use towline_wire::report::diff::{Diff, Difference};

const SNAPSHOT: &str = "snapshot";

/// Show what differs between two runs or sweeps, code included.
///
/// Compares command, values, sizes, environment and outcome, and the code line by line.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tow diff 60ce 91ab
  tow diff 60ce-1 60ce-2    two runs of a sweep
  tow diff @-1 @            the last submission but one, and the last")]
pub(crate) struct Args {
    /// A run: an id, the end of one, or @ for the latest.
    #[arg(value_name = "RUN")]
    one: String,
    /// The run to compare it with.
    #[arg(value_name = "RUN")]
    other: String,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<Report> {
    let history = context.history()?;
    let one = history.find_to_read(&args.one)?;
    let other = history.find_to_read(&args.other)?;
    // Only runs of this machine inherit variables. Beside one that does not, each of them would be a
    // row.
    let both_inherit = inherits(&history, &one)? == inherits(&history, &other)?;
    let facts = |target: &Target| facts(&history, target, both_inherit);
    let (mut left, mut right) = (facts(&one)?, facts(&other)?);
    let code = code_diff(context, left.get(SNAPSHOT), right.get(SNAPSHOT))?;
    for (facts, rows) in [(&mut left, &code.one), (&mut right, &code.other)] {
        facts.extend(
            rows.iter()
                .map(|(path, what)| (format!("code {path}"), what.clone())),
        );
    }
    let keys: BTreeSet<&String> = left.keys().chain(right.keys()).collect();
    let differences: Vec<Difference> = keys
        .into_iter()
        .filter(|key| left.get(*key) != right.get(*key))
        .map(|key| Difference {
            what: key.clone(),
            one: left.get(key).cloned(),
            other: right.get(key).cloned(),
        })
        .collect();
    let answer = Diff {
        one: one.id().clone(),
        other: other.id().clone(),
        differences,
        changes: code.changes,
    };
    let report = Report::of(&answer, text);
    Ok(if answer.differences.is_empty() {
        report.hint("they do not differ")
    } else {
        report
    })
}

fn text(answer: &Diff) -> String {
    let mut text = table(&answer.differences);
    for change in &answer.changes {
        text += &format!("\n{change}");
    }
    text
}

fn table(differences: &[Difference]) -> String {
    if differences.is_empty() {
        return String::new();
    }
    let mut table = Table::new(&["WHAT", "ONE", "OTHER"]);
    let room = room_for_values(differences);
    for difference in differences {
        let cell = |value: &Option<String>| {
            wrap(
                &value.as_deref().map_or_else(|| "-".to_owned(), short_ids),
                room,
            )
        };
        let (one, other) = (cell(&difference.one), cell(&difference.other));
        for line in 0..one.len().max(other.len()) {
            let what = if line == 0 {
                difference.what.clone()
            } else {
                String::new()
            };
            let part =
                |lines: &[String]| (lines.get(line).cloned().unwrap_or_default(), Paint::Plain);
            table.row(vec![(what, Paint::Bold), part(&one), part(&other)]);
        }
    }
    table.render()
}

/// The columns for each run's value on this terminal. Longer values are wrapped, because a cut could
/// hide the difference.
fn room_for_values(differences: &[Difference]) -> usize {
    const MIN_VALUE_WIDTH: usize = 16;
    let what = differences
        .iter()
        .map(|difference| columns(&difference.what))
        .max()
        .unwrap_or(0);
    width().map_or(usize::MAX, |width| {
        (width.saturating_sub(what + 4) / 2).max(MIN_VALUE_WIDTH)
    })
}

/// Shortens long ids of commits and of content, so that both values fit beside each other. `--json`
/// has them whole.
fn short_ids(text: &str) -> String {
    let is_id = |word: &&str| word.len() >= 32 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let words: Vec<&str> = text
        .split(' ')
        .map(|word| if is_id(&word) { &word[..12] } else { word })
        .collect();
    words.join(" ")
}

/// Everything that describes a run or a sweep, as flat facts.
fn facts(
    history: &History,
    target: &Target,
    with_inherited: bool,
) -> Result<BTreeMap<String, String>> {
    let submission = submission(history, target)?;
    let resolved = &submission.plan.resolved;
    let mut facts = facts_of_plan(resolved, with_inherited);
    let mut set = |key: &str, value: String| drop(facts.insert(key.to_owned(), value));
    // The runs of a sweep share these.
    let first = &target.runs()[0];
    set("cluster", first.cluster.clone());
    set("tier", first.tier.clone());
    set("nodes", first.nodes.to_string());
    set("ranks", first.world.to_string());
    set("gpus", first.gpus.to_string());
    match target {
        Target::Run(run) => {
            set("command", run.command.clone());
            set("state", run.state.phase.word().to_owned());
            if let Some(ending) = &run.state.ending {
                set("ending", ending.to_string());
            }
        }
        Target::Sweep(_, runs) => {
            let states: PhaseCounts = runs.iter().map(|run| run.state.phase).collect();
            set("command", resolved.program.display());
            set("runs", runs.len().to_string());
            set("state", states.to_string());
        }
    }
    for (name, values) in values(target.runs()) {
        set(&format!("value {name}"), values.join(", "));
    }
    Ok(facts)
}

/// The different values of each name, in their order.
fn values(runs: &[RunRecord]) -> BTreeMap<&str, Vec<&str>> {
    let mut values: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut seen = HashSet::new();
    for (name, value) in runs.iter().flat_map(|run| &run.parameters) {
        if seen.insert((name, value)) {
            values.entry(name).or_default().push(value);
        }
    }
    values
}

fn submission(history: &History, target: &Target) -> Result<Submission> {
    history
        .submission_of(&target.runs()[0].id)?
        .ok_or_else(|| Error::not_found("its submission is not in the history"))
}

/// Whether it has variables of the submitting shell.
fn inherits(history: &History, target: &Target) -> Result<bool> {
    let submission = submission(history, target)?;
    Ok(!submission.plan.resolved.inherited.is_empty())
}

fn facts_of_plan(resolved: &Resolved, with_inherited: bool) -> BTreeMap<String, String> {
    let mut facts = BTreeMap::new();
    let mut set = |key: &str, value: String| drop(facts.insert(key.to_owned(), value));
    if let towline_core::command::Program::Script(script) = &resolved.program {
        set("script", script.clone());
    }
    set("starts in", resolved.workdir.clone());
    if let Some(time) = resolved.time {
        set("time", time.to_string());
    }
    if let Some(memory) = resolved.shape.memory {
        set("memory", memory.to_string());
    }
    if let Some(git) = &resolved.git {
        let dirty = if git.dirty == Some(true) {
            " and changes on top"
        } else {
            ""
        };
        set("commit", format!("{}{dirty}", git.commit));
    }
    if let Some(snapshot) = resolved
        .code
        .as_ref()
        .and_then(|code| code.snapshot.clone())
    {
        set(SNAPSHOT, snapshot);
    }
    if !resolved.setup.is_empty() {
        set("set-up", resolved.setup.join("; "));
    }
    if let Some(limits) = &resolved.limits {
        set("nice", limits.nice.to_string());
        for (name, soft) in &limits.soft {
            set(
                &format!("limit {name}"),
                soft.map_or_else(|| "unlimited".to_owned(), |soft| soft.to_string()),
            );
        }
    }
    let secrets: Vec<String> = resolved.secrets.iter().map(ToString::to_string).collect();
    set("secrets", secrets.join(", "));
    if with_inherited {
        for (name, value) in &resolved.inherited {
            set(&format!("variable {name}"), value.clone());
        }
    } else {
        let count = resolved.inherited.len();
        set("inherits", format!("{count} variables of its shell"));
    }
    for (name, value) in &resolved.env {
        set(&format!("variable {name}"), value.clone());
    }
    facts
}
