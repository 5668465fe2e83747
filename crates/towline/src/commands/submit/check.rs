//! Every problem of a job file at once, for the form of the page: after a problem, the key that it
//! is about is left out, and the rest is read on.

use super::{JobArgs, prepare_with};
use crate::context::Context;
use crate::diagnose;
use crate::output;
use std::io::Read;
use std::process::ExitCode;
use towline_core::job::Job;
use towline_core::yaml::{self, Node};
use towline_core::{Error, Result};
use towline_wire::api::check::{Checked, Problem};
use towline_wire::report::submit::DryRun;

/// The hidden process that reads a job file from its standard input and checks it for a cluster.
pub(crate) const CHECK_VERB: &str = "__check";
/// A file with more problems than this is no job file.
const MAX_PROBLEMS: usize = 40;
/// The name of what is checked, in messages.
const SOURCE: &str = "job";

pub(crate) fn main(cluster: Option<&str>) -> ExitCode {
    let cluster = cluster.filter(|cluster| !cluster.is_empty());
    let answer = read().and_then(|text| {
        let checked = check(&Context::new(true, true), &text, cluster);
        serde_json::to_value(&checked)
            .map_err(|error| Error::bug("the answer cannot be written").source_error(error))
    });
    match answer.and_then(|answer| output::json(&answer)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => ExitCode::from(diagnose::report(&error, true)),
    }
}

fn read() -> Result<String> {
    let mut text = String::new();
    std::io::stdin()
        .lock()
        .read_to_string(&mut text)
        .map_err(|error| Error::from_io("the job file cannot be read", error))?;
    Ok(text)
}

fn check(context: &Context, text: &str, cluster: Option<&str>) -> Checked {
    let mut found = Found::default();
    let plan = match yaml::parse(SOURCE, text) {
        Ok(node) => found.read(context, node, cluster),
        Err(error) => {
            found.problems.push(problem(&error.into(), None));
            None
        }
    };
    Checked {
        plan: plan.filter(|_| found.problems.is_empty()),
        problems: found.problems,
    }
}

#[derive(Default)]
struct Found {
    problems: Vec<Problem>,
}

impl Found {
    /// Reads and plans until nothing more is wrong.
    fn read(&mut self, context: &Context, mut node: Node, cluster: Option<&str>) -> Option<DryRun> {
        loop {
            let error = match plan(context, &node, cluster) {
                Ok(plan) => return Some(plan),
                Err(error) => error,
            };
            let key = error.subject().and_then(|about| about.key.clone());
            let at = key.as_deref().and_then(|key| place(&node, key));
            let found = problem(&error, at);
            if self.problems.contains(&found) || self.problems.len() >= MAX_PROBLEMS {
                return None;
            }
            // What misses a key that was left out has no problem of its own.
            if !self.has_below(key.as_deref()) {
                self.problems.push(found);
            }
            let keys: Vec<&str> = key.as_deref().unwrap_or_default().split('.').collect();
            // What is not in the file cannot be left out: nothing more can be learned.
            if !node.remove(&keys) {
                return None;
            }
        }
    }
}

impl Found {
    /// Whether something below this key was wrong.
    fn has_below(&self, key: Option<&str>) -> bool {
        let Some(key) = key else { return false };
        let below = format!("{key}.");
        let mut keys = self
            .problems
            .iter()
            .filter_map(|found| found.key.as_deref());
        keys.any(|found| found.starts_with(&below))
    }
}

fn plan(context: &Context, node: &Node, cluster: Option<&str>) -> Result<DryRun> {
    let job: Job = yaml::decode(node)?;
    let args = JobArgs {
        cluster: cluster.map(str::to_owned),
        dry_run: true,
        ..JobArgs::default()
    };
    let prepared = prepare_with(context, args, |place| *place = job)?;
    Ok(DryRun::from(&prepared.plan))
}

/// Where a key stands, or the nearest one above it.
fn place(node: &Node, key: &str) -> Option<(usize, usize)> {
    let mut found = None;
    let mut node = node;
    for name in key.split('.') {
        let Some(below) = node.get(name) else { break };
        node = below;
        found = Some((node.at.line, node.at.column));
    }
    found
}

fn problem(error: &Error, at: Option<(usize, usize)>) -> Problem {
    let about = error.subject().cloned().unwrap_or_default();
    let place = about.place.or(at).filter(|(line, _)| *line > 0);
    let message = error.to_string();
    // The page shows the place itself.
    let own = place.map(|(line, column)| format!("{SOURCE}:{line}:{column}: "));
    let message = own
        .and_then(|own| message.strip_prefix(&own).map(str::to_owned))
        .unwrap_or(message);
    Problem {
        key: about.key,
        line: place.map(|(line, _)| line),
        column: place.map(|(_, column)| column),
        message,
        hints: error.hints().to_vec(),
    }
}
