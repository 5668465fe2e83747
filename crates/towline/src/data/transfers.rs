//! The options of `up`, `down` and `cp`, the copy itself, and its report.

use crate::commands::Report;
use crate::context::Context;
use crate::data::stores;
use crate::output;
use crate::output::bar;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use towline_core::quantity::Size;
use towline_core::suggest::did_you_mean;
use towline_core::time::human_millis;
use towline_core::{Error, Result};
use towline_io::folder::Folder;
use towline_io::transfer::engine::copy;
use towline_io::transfer::progress::Progress;
use towline_io::transfer::remove::remove;
use towline_io::transfer::{Options, Outcome, StorePath};

#[derive(Debug, clap::Args)]
pub(crate) struct Choices {
    /// Show what would be done, and do nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Also remove files that only the target has; shown and asked first.
    #[arg(long)]
    pub(crate) delete: bool,
    /// Compare contents, even if sizes and times are equal.
    #[arg(long)]
    pub(crate) checksum: bool,
    /// Do not ask before removing.
    #[arg(long)]
    pub(crate) yes: bool,
}

/// The direction of a copy, seen from this machine; it chooses the words of the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Up,
    Down,
    Across,
}

impl Direction {
    const fn done(self) -> &'static str {
        match self {
            Self::Up => "sent",
            Self::Down => "received",
            Self::Across => "copied",
        }
    }
    const fn plan(self) -> &'static str {
        match self {
            Self::Up => "send",
            Self::Down => "receive",
            Self::Across => "copy",
        }
    }
}

/// One copy, with its names for the report.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) shown: String,
    pub(crate) from: StorePath,
    pub(crate) to: StorePath,
    pub(crate) direction: Direction,
    /// Names that are never removed at the target, even if the source does not have them.
    pub(crate) kept: Vec<String>,
}

/// Files and folders of this machine as the source of a copy. The path may be a link.
pub(crate) fn local(path: &Path) -> Result<StorePath> {
    let metadata = fs::metadata(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => missing(path),
        _ => Error::refused(format!("{} cannot be read", path.display())).source_error(error),
    })?;
    if metadata.is_dir() {
        return Ok(StorePath {
            store: Arc::new(Folder::local(path)),
            path: String::new(),
        });
    }
    let real = path.canonicalize().map_err(|error| {
        Error::refused(format!("{} cannot be read", path.display())).source_error(error)
    })?;
    let name = real
        .file_name()
        .and_then(|name| name.to_str())
        .ok_or_else(|| Error::refused(format!("the name of {} is not UTF-8", path.display())))?;
    Ok(StorePath {
        store: Arc::new(Folder::local(real.parent().unwrap_or(Path::new("/")))),
        path: name.to_owned(),
    })
}

/// A place on this machine for a file or folder.
pub(crate) fn local_target(path: &Path) -> Result<StorePath> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Ok(StorePath {
            store: Arc::new(Folder::local(path)),
            path: String::new(),
        });
    };
    if path.is_dir() {
        return Ok(StorePath {
            store: Arc::new(Folder::local(path)),
            path: String::new(),
        });
    }
    let name = name
        .to_str()
        .ok_or_else(|| Error::usage(format!("{} is not UTF-8", path.display())))?;
    Ok(StorePath {
        store: Arc::new(Folder::local(parent)),
        path: name.to_owned(),
    })
}

fn missing(path: &Path) -> Error {
    let names: Vec<String> = path
        .parent()
        .and_then(|parent| fs::read_dir(parent).ok())
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    let name = path
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default();
    Error::not_found(format!("there is no {}", path.display()))
        .maybe_hint(did_you_mean(name, names.iter().map(String::as_str)))
}

/// Runs the copies one after the other, each with many objects at once.
pub(crate) fn run(context: &Context, jobs: Vec<Job>, choices: &Choices) -> Result<Report> {
    if choices.delete && !choices.yes && !choices.dry_run && !output::can_ask() {
        return Err(
            Error::refused("--delete removes files, and there is no terminal to ask on")
                .hint("look with --dry-run first, then add --yes"),
        );
    }
    let journals = context.state()?.root().join("transfers");
    let mut report = Report::default();
    let mut values = Vec::new();
    for job in jobs {
        let options = Options {
            checksum: choices.checksum,
            extras: choices.delete,
            dry_run: choices.dry_run,
            journals: Some(journals.clone()),
        };
        let begun = Instant::now();
        let progress = Arc::new(Progress::default());
        let (source, target) = (job.from.clone(), job.to.clone());
        let work = bar::with_bar(progress.clone(), copy(job.from, job.to, options, progress));
        let Some(mut outcome) = stores::drive(work)? else {
            return Ok(interrupted());
        };
        outcome.spare(&source, &target, &job.kept);
        if outcome.spared > 0 {
            output::status(&format!(
                "{} file(s) stay there: their counterparts here were left out",
                outcome.spared
            ));
        }
        let Some(deleted) = extras(&target, &outcome, choices)? else {
            return Ok(interrupted());
        };
        let told = Told {
            shown: &job.shown,
            direction: job.direction,
            deleted,
            choices,
            elapsed: begun.elapsed(),
        };
        values.push(describe(&mut report, &outcome, &told));
        if let Some((_, error)) = outcome.failed.first()
            && report.code == 0
        {
            report.code = error.kind().exit_code();
        }
    }
    report.json = Some(json!({ "transfers": values }));
    Ok(report)
}

pub(crate) fn interrupted() -> Report {
    Report {
        last_words: Some("interrupted: the same command goes on where it stopped".to_owned()),
        ..Report::default().code(130)
    }
}

/// Removes files that only the target has, after showing them and asking. `None` if interrupted.
fn extras(target: &StorePath, outcome: &Outcome, choices: &Choices) -> Result<Option<usize>> {
    if outcome.extra.is_empty() || choices.dry_run {
        return Ok(Some(0));
    }
    if !outcome.failed.is_empty() {
        output::status("nothing was removed, because not everything was copied");
        return Ok(Some(0));
    }
    let bytes: u64 = outcome.extra.iter().map(|(_, size)| size).sum();
    outcome
        .extra
        .iter()
        .take(10)
        .for_each(|(key, _)| output::status(&format!("only there: {key}")));
    if outcome.extra.len() > 10 {
        output::status(&format!("… and {} more", outcome.extra.len() - 10));
    }
    let question = format!(
        "remove {} file(s), {}, from {}?",
        outcome.extra.len(),
        Size(bytes),
        target.store.place()
    );
    match if choices.yes {
        Some(true)
    } else {
        stores::ask(&question)?
    } {
        Some(true) => {}
        Some(false) => {
            output::status("nothing was removed");
            return Ok(Some(0));
        }
        None => return Ok(None),
    }
    let keys: Vec<_> = outcome.extra.iter().map(|(key, _)| key.clone()).collect();
    let done = stores::drive(remove(target, &keys, &[]))?;
    Ok(done.map(|()| keys.len()))
}

/// Facts about one copy for its report, beside its outcome.
struct Told<'t> {
    shown: &'t str,
    direction: Direction,
    deleted: usize,
    choices: &'t Choices,
    elapsed: Duration,
}

fn describe(report: &mut Report, outcome: &Outcome, told: &Told<'_>) -> Value {
    let Told {
        shown,
        deleted,
        choices,
        ..
    } = *told;
    for (name, size) in &outcome.planned {
        report.text += &format!("{:<7} {:>8}  {name}\n", told.direction.plan(), Size(*size));
    }
    if choices.dry_run {
        outcome
            .extra
            .iter()
            .for_each(|(key, size)| report.text += &format!("remove  {:>8}  {key}\n", Size(*size)));
    }
    for odd in &outcome.left_out {
        report
            .hints
            .push(format!("left out {}: {}", odd.name, odd.why));
    }
    for (name, error) in &outcome.failed {
        report
            .hints
            .push(format!("failed {}: {error}", towline_io::data::shown(name)));
    }
    // Many files may fail for the same reason, so each hint is shown once.
    let steps: BTreeSet<&String> = outcome
        .failed
        .iter()
        .flat_map(|(_, error)| error.hints())
        .collect();
    for step in steps.into_iter().take(3) {
        report.hints.push(format!("hint: {step}"));
    }
    report.hints.push(totals(outcome, told));
    let named = |pairs: Vec<(String, String)>| -> Vec<Value> {
        pairs
            .into_iter()
            .map(|(name, why)| json!({ "name": name, "why": why }))
            .collect()
    };
    json!({
        "path": shown,
        "sent": outcome.sent,
        "sent_bytes": outcome.sent_bytes,
        "resumed_bytes": outcome.resumed_bytes,
        "copied_inside": outcome.inside,
        "by_length_only": outcome.by_length,
        "equal_by_time": outcome.equal_by_time,
        "equal_by_hash": outcome.equal_by_hash,
        "removed": deleted,
        "dry_run": choices.dry_run,
        "would_send": outcome.planned.iter().map(|(name, size)| json!({ "name": name, "size": size })).collect::<Vec<_>>(),
        "only_there": outcome.extra.iter().map(|(key, size)| json!({ "name": key.as_str(), "size": size })).collect::<Vec<_>>(),
        "left_out": named(outcome.left_out.iter().map(|odd| (odd.name.clone(), odd.why.clone())).collect()),
        "failed": named(outcome.failed.iter().map(|(name, error)| (towline_io::data::shown(name), error.to_string())).collect()),
    })
}

/// `data/voc20: 12 sent, 3.2G in 4.1s (800M/s); 488 equal by time, 3 by content`
fn totals(outcome: &Outcome, told: &Told<'_>) -> String {
    let Told {
        shown,
        direction,
        deleted,
        choices,
        elapsed,
    } = *told;
    let millis = u64::try_from(elapsed.as_millis())
        .unwrap_or(u64::MAX)
        .max(1);
    let mut parts = Vec::new();
    if choices.dry_run {
        let bytes: u64 = outcome.planned.iter().map(|(_, size)| size).sum();
        parts.push(format!(
            "{} would be {}, {}",
            outcome.planned.len(),
            direction.done(),
            Size(bytes)
        ));
    } else {
        let rate = Size(outcome.sent_bytes.saturating_mul(1000) / millis);
        parts.push(format!(
            "{} {}, {} in {} ({rate}/s)",
            outcome.sent,
            direction.done(),
            Size(outcome.sent_bytes),
            human_millis(millis)
        ));
    }
    let mut count = |number: u64, words: &str| {
        if number > 0 {
            parts.push(format!("{number} {words}"));
        }
    };
    count(outcome.equal_by_time, "equal by time");
    count(outcome.equal_by_hash, "equal by content");
    count(outcome.inside, "copied inside the service");
    count(outcome.by_length, "checked by length only");
    count(deleted as u64, "removed");
    count(outcome.failed.len() as u64, "failed");
    if outcome.resumed_bytes > 0 {
        parts.push(format!(
            "{} were there from before",
            Size(outcome.resumed_bytes)
        ));
    }
    format!("{shown}: {}", parts.join("; "))
}
