//! The options of `up`, `down` and `cp`, the copy itself, and its report.

use crate::commands::Report;
use crate::context::Context;
use crate::data::announced::Announced;
use crate::data::stores;
use crate::output;
use crate::output::bar;
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
pub(crate) use towline_wire::report::transfer::Direction;
use towline_wire::report::transfer::{FailedFile, LeftOutEntry, NamedSize, Transfer, Transfers};

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

/// The words for what was done.
const fn done_word(direction: Direction) -> &'static str {
    match direction {
        Direction::Up => "sent",
        Direction::Down => "received",
        Direction::Across => "copied",
    }
}

/// The words for what would be done.
const fn plan_word(direction: Direction) -> &'static str {
    match direction {
        Direction::Up => "send",
        Direction::Down => "receive",
        Direction::Across => "copy",
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
        _ => Error::from_io(format!("{} cannot be read", path.display()), error),
    })?;
    if metadata.is_dir() {
        return Ok(StorePath {
            store: Arc::new(Folder::local(path)),
            path: String::new(),
        });
    }
    let real = path
        .canonicalize()
        .map_err(|error| Error::from_io(format!("{} cannot be read", path.display()), error))?;
    let name = real
        .file_name()
        .and_then(|name| name.to_str())
        .ok_or_else(|| {
            Error::unsupported(format!("the name of {} is not UTF-8", path.display()))
        })?;
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
    let mut answer = Transfers::default();
    let mut code = 0;
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
        let announced = Announced {
            state: context.state()?,
            path: &job.shown,
            direction: job.direction,
            progress: progress.clone(),
        };
        let copying = copy(job.from, job.to, options, progress.clone());
        let work = bar::with_bar(&job.shown, progress, announced.during(copying));
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
        if let Some((_, error)) = outcome.failed.first()
            && code == 0
        {
            code = error.kind().exit_code();
        }
        answer.transfers.push(Transfer {
            removed: deleted,
            dry_run: choices.dry_run,
            ..transfer(job.shown, job.direction, outcome, begun.elapsed())
        });
    }
    let hints = answer.transfers.iter().flat_map(hints);
    Ok(hints.fold(Report::of(&answer, text).code(code), Report::hint))
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

fn transfer(path: String, direction: Direction, outcome: Outcome, elapsed: Duration) -> Transfer {
    let size = |(name, size): (String, u64)| NamedSize { name, size };
    let planned = outcome.planned.into_iter();
    let extra = outcome.extra.into_iter();
    let left_out = outcome.left_out.into_iter().map(|odd| LeftOutEntry {
        name: odd.name,
        why: odd.why,
    });
    let failed = outcome.failed.into_iter().map(|(name, error)| FailedFile {
        name: towline_io::data::shown(&name),
        why: error.to_string(),
        hints: error.hints().to_vec(),
    });
    Transfer {
        path,
        direction,
        sent: outcome.sent,
        sent_bytes: outcome.sent_bytes,
        resumed_bytes: outcome.resumed_bytes,
        copied_inside: outcome.inside,
        by_length_only: outcome.by_length,
        equal_by_time: outcome.equal_by_time,
        equal_by_hash: outcome.equal_by_hash,
        removed: 0,
        dry_run: false,
        millis: u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
        would_send: planned.map(size).collect(),
        only_there: extra
            .map(|(key, bytes)| size((key.as_str().to_owned(), bytes)))
            .collect(),
        left_out: left_out.collect(),
        failed: failed.collect(),
    }
}

/// What would be done.
fn text(answer: &Transfers) -> String {
    let mut text = String::new();
    for transfer in &answer.transfers {
        let plan = plan_word(transfer.direction);
        for NamedSize { name, size } in &transfer.would_send {
            text += &format!("{plan:<7} {:>8}  {name}\n", Size(*size));
        }
        for NamedSize { name, size } in transfer.only_there.iter().filter(|_| transfer.dry_run) {
            text += &format!("remove  {:>8}  {name}\n", Size(*size));
        }
    }
    text
}

/// What was left out, what failed, and the totals.
fn hints(transfer: &Transfer) -> Vec<String> {
    let left_out = transfer.left_out.iter();
    let mut hints: Vec<String> = left_out
        .map(|odd| format!("left out {}: {}", odd.name, odd.why))
        .collect();
    let failed = transfer.failed.iter();
    hints.extend(failed.map(|file| format!("failed {}: {}", file.name, file.why)));
    // Many may fail for one reason: the next step is said once.
    let steps: BTreeSet<&String> = transfer
        .failed
        .iter()
        .flat_map(|file| &file.hints)
        .collect();
    hints.extend(
        steps
            .into_iter()
            .take(3)
            .map(|step| format!("hint: {step}")),
    );
    hints.push(totals(transfer));
    hints
}

/// `data/voc20: 12 sent, 3.2G in 4.1s (800M/s); 488 equal by time, 3 by content`
fn totals(transfer: &Transfer) -> String {
    let millis = transfer.millis.max(1);
    let done = done_word(transfer.direction);
    let mut parts = Vec::new();
    if transfer.dry_run {
        let bytes: u64 = transfer.would_send.iter().map(|file| file.size).sum();
        parts.push(format!(
            "{} would be {done}, {}",
            transfer.would_send.len(),
            Size(bytes)
        ));
    } else {
        let rate = Size(transfer.sent_bytes.saturating_mul(1000) / millis);
        parts.push(format!(
            "{} {done}, {} in {} ({rate}/s)",
            transfer.sent,
            Size(transfer.sent_bytes),
            human_millis(millis)
        ));
    }
    let mut count = |number: u64, words: &str| {
        if number > 0 {
            parts.push(format!("{number} {words}"));
        }
    };
    count(transfer.equal_by_time, "equal by time");
    count(transfer.equal_by_hash, "equal by content");
    count(transfer.copied_inside, "copied inside the service");
    count(transfer.by_length_only, "checked by length only");
    count(transfer.removed as u64, "removed");
    count(transfer.failed.len() as u64, "failed");
    if transfer.resumed_bytes > 0 {
        parts.push(format!(
            "{} were there from before",
            Size(transfer.resumed_bytes)
        ));
    }
    format!("{}: {}", transfer.path, parts.join("; "))
}
