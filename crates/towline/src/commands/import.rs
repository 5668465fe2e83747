//! `tow import`: converts files of other tools, and reports what did not map.

use super::Report;
use crate::context::Context;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use towline_core::{Error, Result};
use towline_engine::layers::{self, PROJECT_FILE, Sources, Untrusted};
use towline_engine::trust::Holding;
use towline_host::surroundings;
use towline_import::{self as import, Destination, Imported, Kind, NewFile, Placement};
use towline_wire::report::import::{self as answer, ImportReport, ImportedFile, ImportedKey};

/// Convert files of other tools into a configuration and job files.
///
/// Reports every key that did not map. Secrets are never copied: they become references, and the
/// report says how to store their values. A project of ACT needs no import: `tow` reads its
/// `aux_data/aml` in place. An existing `towline.yaml` gets the missing keys and keeps its
/// comments.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tow import act aux_data/aml/*.yaml           towline.yaml with one cluster per file
  tow import toolkit submit_jobs.json          a job file, and towline.yaml
  tow import amlt train.yaml                   a job file for each of its jobs
  tow import sbatch train.sbatch --dry-run     what would be written, and nothing written
  tow import qd aux_data/configs/philly_vc.yaml --json")]
pub(crate) struct Args {
    /// The tool whose files they are.
    #[arg(value_enum, value_name = "TOOL")]
    tool: Tool,
    /// The files to convert.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Print what would be written and write nothing.
    #[arg(long)]
    dry_run: bool,
    /// Let new values win over those of `towline.yaml`, which is rewritten and kept as
    /// `towline.yaml.old`; overwrite existing job files.
    #[arg(long)]
    force: bool,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Tool {
    /// microsoft/act: `aux_data/aml/NAME.yaml`.
    Act,
    /// quickdetection: the same, and its files for Philly.
    Qd,
    /// MSRA Intern's Toolkit: a submission as JSON, 1.3 or 2.2.
    Toolkit,
    /// Slurm: a batch script.
    Sbatch,
    /// Amulet: its YAML, one job file for each of its jobs.
    Amlt,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<Report> {
    let kind = match args.tool {
        Tool::Act => Kind::Act,
        Tool::Qd => Kind::Qd,
        Tool::Toolkit => Kind::Toolkit,
        Tool::Sbatch => Kind::Sbatch,
        Tool::Amlt => Kind::Amlt,
    };
    let here = context.folder()?;
    let read = |file: &Path| import::read_plain(&here.join(file));
    let existing = existing(here)?;
    let imported = import::import(
        kind,
        &args.files,
        &read,
        &Destination {
            existing: existing.as_deref(),
            force: args.force,
            keyring: surroundings::has_keyring(),
        },
    )?;
    if !args.dry_run {
        let was_ours = existing.is_none() || untrusted(context)?.is_none();
        write(here, &imported.files, args.force)?;
        // What the user made here is agreed to; what a stranger had put beside it is not.
        if let Some((sources, made)) = untrusted(context)?.filter(|_| was_ours) {
            crate::wiring::trusting::agree(&sources, &made)?;
        }
    }
    let cluster = cluster_to_name(context, kind);
    Ok(report(here, imported, !args.dry_run, cluster.as_deref()))
}

/// The part of this folder's `towline.yaml` that the user has not trusted.
fn untrusted(context: &Context) -> Result<Option<(Sources, Untrusted)>> {
    let here = context.folder()?;
    let sources = Sources::find(here, context.environment());
    let of_project = |one: &Untrusted| one.holding == Holding::Project && one.folder == *here;
    Ok(layers::untrusted(&sources)?
        .into_iter()
        .find(of_project)
        .map(|made| (sources, made)))
}

/// The text of the existing `towline.yaml`.
fn existing(here: &Path) -> Result<Option<String>> {
    match import::read_plain(&here.join(PROJECT_FILE)) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(
            Error::config(format!("{PROJECT_FILE} exists and cannot be read")).source_error(error),
        ),
    }
}

/// Writes all files, or none if a problem can be seen before.
fn write(here: &Path, files: &[NewFile], force: bool) -> Result<()> {
    let is_taken = |made: &&NewFile| {
        made.placement == Placement::New && here.join(&made.name).symlink_metadata().is_ok()
    };
    let there = files.iter().find(is_taken);
    if let Some(made) = there.filter(|_| !force) {
        let error = Error::conflict(format!("{} exists already; nothing was written", made.name));
        return Err(
            error.hint("`--force` writes over it; `--dry-run` prints what would be written")
        );
    }
    for made in files {
        place(here, made, force)
            .map_err(|error| Error::from_io(format!("{} cannot be written", made.name), error))?;
    }
    Ok(())
}

/// Writes a file atomically, and keeps the file that it replaces if that may hold more.
fn place(here: &Path, made: &NewFile, force: bool) -> io::Result<()> {
    let path = here.join(&made.name);
    let is_new = made.placement == Placement::New;
    // Behind a link it is the file that changes, not the link.
    let path = if is_new { path } else { path.canonicalize()? };
    let part = path.with_file_name(format!(".{}.part", made.name));
    fs::write(&part, &made.text)?;
    let kept = match made.placement {
        Placement::New => Ok(()),
        Placement::Added => {
            fs::metadata(&path).and_then(|there| fs::set_permissions(&part, there.permissions()))
        }
        Placement::Replaced => fs::copy(&path, here.join(format!("{}.old", made.name))).map(drop),
    };
    let place = || {
        if force || !is_new {
            fs::rename(&part, &path)
        } else {
            fs::hard_link(&part, &path).and_then(|()| fs::remove_file(&part))
        }
    };
    let placed = kept.and_then(|()| place());
    if placed.is_err() {
        let _ = fs::remove_file(&part);
    }
    placed
}

/// The option that a script for Slurm needs where the default cluster is this machine.
fn cluster_to_name(context: &Context, kind: Kind) -> Option<String> {
    if kind != Kind::Sbatch {
        return None;
    }
    let is_here = |name: &str| context.cluster(name).is_ok_and(|cluster| cluster.is_here());
    let layers = context.layers().ok()?;
    if !is_here(layers.default_cluster()) {
        return None;
    }
    let names = layers.cluster_names();
    let far = names.iter().find(|name| !is_here(name));
    Some(far.map_or("CLUSTER", |name| *name).to_owned())
}

fn report(here: &Path, imported: Imported, written: bool, cluster: Option<&str>) -> Report {
    let files = imported.files.into_iter().map(|made| ImportedFile {
        path: here.join(&made.name).display().to_string(),
        name: made.name,
        placement: match made.placement {
            Placement::New => answer::Placement::New,
            Placement::Added => answer::Placement::Added,
            Placement::Replaced => answer::Placement::Replaced,
        },
        written,
        text: made.text,
    });
    let answer = answer::Imported {
        files: files.collect(),
        reports: imported.reports.into_iter().map(told).collect(),
        notes: imported.notes,
    };
    let report = Report::of(&answer, text);
    let mut jobs = answer.files.iter().map(|made| &made.name);
    match jobs
        .find(|name| name.ends_with(".tow.yaml"))
        .filter(|_| written)
    {
        Some(name) => {
            let option = cluster.map_or_else(String::new, |cluster| format!("-c {cluster} "));
            report.hint(format!(
                "look at it, then: tow submit {option}-f {name} --dry-run"
            ))
        }
        None if written => report.hint("what counts now: tow config show --origin"),
        None => report,
    }
}

fn told(report: import::Report) -> ImportReport {
    let keys = |lines: Vec<import::Line>| -> Vec<ImportedKey> {
        let key = |import::Line { key, at, says }| ImportedKey { key, at, says };
        lines.into_iter().map(key).collect()
    };
    ImportReport {
        source: report.source,
        mapped: keys(report.mapped),
        not_needed: keys(report.not_needed),
        not_mapped: keys(report.not_mapped),
        assumed: keys(report.assumed),
        warnings: report.warnings,
        commands: report.commands,
    }
}

fn text(answer: &answer::Imported) -> String {
    let mut text: String = answer.reports.iter().map(report_text).collect();
    for made in &answer.files {
        let name = &made.name;
        text += &match made.placement {
            _ if !made.written => format!("--- {name}\n{}", made.text),
            answer::Placement::New => format!("wrote {name}\n"),
            answer::Placement::Added => format!("added to {name}\n"),
            answer::Placement::Replaced => format!("wrote {name}; the old one is {name}.old\n"),
        };
    }
    for note in &answer.notes {
        text += &format!("{note}\n");
    }
    text
}

fn report_text(report: &ImportReport) -> String {
    let mut text = format!("{}\n", report.source);
    for (title, keys, arrow) in [
        ("mapped", &report.mapped, "→ "),
        ("assumed", &report.assumed, "→ "),
        ("not needed", &report.not_needed, ""),
        ("not mapped", &report.not_mapped, ""),
    ] {
        if keys.is_empty() {
            continue;
        }
        text += &format!("  {title}\n");
        let width = |of: fn(&ImportedKey) -> &String| {
            let widths = keys.iter().map(|key| of(key).chars().count());
            widths.max().unwrap_or(0)
        };
        let (names, places) = (width(|key| &key.key), width(|key| &key.at));
        for ImportedKey { key, at, says } in keys {
            text += &format!("    {key:<names$}  {at:<places$}  {arrow}{says}\n");
        }
    }
    for warning in &report.warnings {
        text += &format!("  warning: {warning}\n");
    }
    for command in &report.commands {
        text += &format!("  run once: {command}\n");
    }
    text
}
