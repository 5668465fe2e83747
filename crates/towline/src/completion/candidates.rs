//! The candidates for a value, by the name that its help has for it: `RUN`, `CLUSTER`. A new
//! argument of such a name is completed without a word more.

use super::place::Value;
use super::{Answer, Beside};
use crate::context::Context;
use crate::reach::tunnels;
use crate::scratch;
use clap::{Arg, Command};
use std::collections::BTreeSet;
use towline_core::config;
use towline_core::job::{Launch, Tier};
use towline_core::record::RunRecord;
use towline_core::state::Phase;
use towline_engine::history::Filter;
use towline_engine::layers::Layers;

/// How many of the newest runs are looked at.
const RUNS_LOOKED_AT: usize = 500;
/// The part of a command that a description has.
const DESCRIPTION_CHARACTERS: usize = 60;
/// The verbs to which only runs that have not ended are of use.
const VERBS_OF_ACTIVE_RUNS: [&str; 5] = ["abort", "wait", "ssh", "port", "release"];

/// A word that can stand at the cursor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) value: String,
    pub(super) description: String,
}

impl Candidate {
    fn new(value: impl Into<String>, description: impl Into<String>) -> Self {
        Self {
            value: value.into(),
            description: description.into(),
        }
    }
}

/// The verbs of a command that its help lists.
pub(super) fn verbs(command: &Command) -> Vec<Candidate> {
    let listed = command.get_subcommands().filter(|verb| !verb.is_hide_set());
    listed
        .map(|verb| {
            let about = verb.get_about().map(ToString::to_string);
            Candidate::new(verb.get_name(), about.unwrap_or_default())
        })
        .collect()
}

/// The options of a command that its help lists.
pub(super) fn options(command: &Command) -> Vec<Candidate> {
    let described = |option: &Arg| {
        let long = option.get_long().filter(|_| !option.is_hide_set())?;
        let help = option.get_help().map(ToString::to_string);
        Some(Candidate::new(
            format!("--{long}"),
            help.unwrap_or_default(),
        ))
    };
    let own = command.get_arguments().filter_map(described);
    // Those that every verb has are made only when a line is parsed.
    let everywhere = [
        Candidate::new("--json", "Print one JSON value instead of text"),
        Candidate::new("--help", "Print help"),
    ];
    let mut all: Vec<Candidate> = own.collect();
    for candidate in everywhere {
        if !all.iter().any(|known| known.value == candidate.value) {
            all.push(candidate);
        }
    }
    all
}

/// The candidates for a value. `typed` is the whole word so far.
pub(super) fn candidates(context: &Context, value: &Value<'_>, typed: &str) -> Answer {
    let name = value
        .argument
        .get_value_names()
        .and_then(|names| names.first())
        .map_or("", |name| name.as_str());
    let own = typed.get(value.before.len()..).unwrap_or_default();
    let mut beside = Beside::Nothing;
    let mut found = match name {
        "RUN" => runs(context, value, own),
        "CLUSTER" => clusters(context),
        "STATE" => states(),
        "TIER" => plain(Tier::ALL.map(Tier::word)),
        "TYPE" => names(machine_types(context, value.cluster.as_deref())),
        "LAUNCH" => plain([Launch::PerNode, Launch::PerGpu, Launch::Once]),
        "EXPERIMENT" => of_runs(context, |run| run.experiment.into_iter().collect()),
        "TAG" => of_runs(context, |run| run.tags),
        "DATASTORE" => datastores(context, ""),
        "DATASTORE:PATH" | "DATASTORE[:PATH]" => datastores(context, ":"),
        "NAME" if value.verb.starts_with("tunnel") => names(tunnels_of(context, &value.verb)),
        "NAME" if value.verb.starts_with("scratch") => names(workspaces(context, &value.verb)),
        // Files of a run's folder may be on another machine.
        "PATH" if value.verb == "get" => Vec::new(),
        "PATH" | "FROM" | "TO" => {
            let stores = datastores(context, ":");
            // What a store holds is not asked: that may take seconds.
            let is_far = stores.iter().any(|store| own.starts_with(&store.value));
            if !is_far {
                beside = Beside::Files;
            }
            folders(context).into_iter().chain(stores).collect()
        }
        "FILE" | "JOB.yaml" => {
            beside = Beside::Files;
            Vec::new()
        }
        "FOLDER" => {
            beside = Beside::Folders;
            Vec::new()
        }
        _ => {
            let listed = value.argument.get_possible_values();
            listed
                .iter()
                .map(|listed| Candidate::new(listed.get_name(), ""))
                .collect()
        }
    };
    found.retain(|candidate| !value.others.contains(&candidate.value));
    for candidate in &mut found {
        candidate.value.insert_str(0, &value.before);
    }
    Answer {
        beside,
        candidates: found,
    }
}

fn plain<T: ToString, const N: usize>(words: [T; N]) -> Vec<Candidate> {
    words
        .map(|word| Candidate::new(word.to_string(), ""))
        .into()
}

fn names(names: impl IntoIterator<Item = (String, String)>) -> Vec<Candidate> {
    let named = |(name, description)| Candidate {
        value: name,
        description,
    };
    names.into_iter().map(named).collect()
}

fn newest(context: &Context, phases: Vec<Phase>) -> Vec<RunRecord> {
    let filter = Filter {
        phases,
        limit: Some(RUNS_LOOKED_AT),
        ..Filter::default()
    };
    let history = context.maybe_history().ok().flatten();
    history
        .and_then(|history| history.list(&filter).ok())
        .unwrap_or_default()
}

/// Runs, newest first, by their whole ids. If none begins with what was typed, by the short ids
/// that tables show. A sweep is one candidate until its id is typed.
fn runs(context: &Context, value: &Value<'_>, typed: &str) -> Vec<Candidate> {
    let phases = if VERBS_OF_ACTIVE_RUNS.contains(&value.verb.as_str()) {
        let active = Phase::ALL.into_iter().filter(|phase| !phase.is_ended());
        active.collect()
    } else {
        Vec::new()
    };
    let mut found: Vec<Candidate> = Vec::new();
    let mut short: Vec<Candidate> = Vec::new();
    let mut sweeps = BTreeSet::new();
    for run in newest(context, phases) {
        let description = description(&run);
        if let Some(sweep) = run.sweep.as_ref() {
            let is_open = typed.len() > sweep.as_str().len() && typed.starts_with(sweep.as_str());
            if !is_open && sweeps.insert(sweep.clone()) {
                let description = format!("a sweep: {}, …", cut(&run.command));
                short.push(Candidate::new(sweep.short(), description.clone()));
                found.push(Candidate::new(sweep.as_str(), description));
            }
            if !is_open {
                continue;
            }
        }
        short.push(Candidate::new(run.id.short(), description.clone()));
        found.push(Candidate::new(run.id.as_str(), description));
    }
    let fits = |candidate: &Candidate| candidate.value.starts_with(typed);
    if found.iter().any(fits) { found } else { short }
}

/// A run in a few words. Its name is in its id.
fn description(run: &RunRecord) -> String {
    let mut text = run.state.phase.word().to_owned();
    if run.cluster != "local" {
        text += &format!(" on {}", run.cluster);
    }
    format!("{text}: {}", cut(&run.command))
}

fn cut(command: &str) -> String {
    command.chars().take(DESCRIPTION_CHARACTERS).collect()
}

/// What runs have in common, of the newest first.
fn of_runs(context: &Context, words: impl Fn(RunRecord) -> Vec<String>) -> Vec<Candidate> {
    let mut seen = BTreeSet::new();
    let all = newest(context, Vec::new()).into_iter().flat_map(words);
    all.filter(|word| seen.insert(word.clone()))
        .map(|word| Candidate::new(word, ""))
        .collect()
}

fn states() -> Vec<Candidate> {
    let mut all = vec![
        Candidate::new("active", "queued, running, or on the way there"),
        Candidate::new("ended", "succeeded, failed, cancelled or lost"),
    ];
    all.extend(Phase::ALL.map(|phase| Candidate::new(phase.word(), "")));
    all
}

fn clusters(context: &Context) -> Vec<Candidate> {
    let Ok(layers) = context.layers() else {
        return Vec::new();
    };
    let kind = |name: &&str| {
        layers
            .config
            .clusters
            .get(*name)
            .map(|cluster| cluster.kind.word())
    };
    let names = layers.cluster_names().into_iter();
    names
        .map(|name| Candidate::new(name, kind(&name).unwrap_or("local")))
        .collect()
}

/// The kinds of machines that a cluster last listed; it is not asked.
fn machine_types(context: &Context, cluster: Option<&str>) -> Vec<(String, String)> {
    let default = || context.layers().ok().map(Layers::default_cluster);
    let opened = cluster
        .or_else(default)
        .and_then(|name| context.cluster(name).ok());
    opened
        .map(|cluster| cluster.machine_types())
        .unwrap_or_default()
}

fn datastores(context: &Context, end: &str) -> Vec<Candidate> {
    let Ok(layers) = context.layers() else {
        return Vec::new();
    };
    let all = layers.config.datastores.iter();
    let described = |(name, store): (&String, &config::Datastore)| {
        Candidate::new(
            format!("{name}{end}"),
            format!("a datastore: {}", store.kind),
        )
    };
    all.map(described).collect()
}

/// Folders that are mapped to a datastore.
fn folders(context: &Context) -> Vec<Candidate> {
    let Ok(layers) = context.layers() else {
        return Vec::new();
    };
    let all = layers.config.folders.iter();
    all.map(|(name, folder)| {
        let place = format!("{}:{}", folder.datastore, folder.path);
        Candidate::new(format!("{name}/"), place)
    })
    .collect()
}

/// A name that is to be made is not one that is there.
fn tunnels_of(context: &Context, verb: &str) -> Vec<(String, String)> {
    if verb == "tunnel add" {
        return Vec::new();
    }
    let all = tunnels::all(context).unwrap_or_default().into_iter();
    all.map(|(name, named)| (name, named.tunnel.to)).collect()
}

fn workspaces(context: &Context, verb: &str) -> Vec<(String, String)> {
    if verb == "scratch create" {
        return Vec::new();
    }
    let all = scratch::known(context).unwrap_or_default().into_iter();
    all.map(|(name, known)| (name, known.workspace.path))
        .collect()
}
