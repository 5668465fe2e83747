//! `tow import`: converts files of other tools, and reports what did not map.

use super::Report;
use crate::context::Context;
use serde::Serialize;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use towline_core::{Error, Result};
use towline_engine::layers::{self, PROJECT_FILE, Sources, Untrusted};
use towline_engine::trust::Holding;
use towline_host::surroundings;
use towline_import::{self as import, Destination, Imported, Kind, NewFile, Placement};

/// Convert the files of other tools into a configuration and job files, and report what did not
/// map.
///
/// Secrets are never copied: they become references, and the report says how to store their values.
/// A project of ACT needs no import: `tow` reads its `aux_data/aml` in place. An existing
/// `towline.yaml` gets the missing keys and keeps its comments.
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

#[derive(Serialize)]
struct Answer<'a> {
    files: Vec<File<'a>>,
    reports: &'a [import::Report],
    notes: &'a [String],
}

#[derive(Serialize)]
struct File<'a> {
    path: String,
    written: bool,
    text: &'a str,
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
    Ok(report(here, &imported, !args.dry_run))
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
        let error = Error::refused(format!("{} exists already; nothing was written", made.name));
        return Err(
            error.hint("`--force` writes over it; `--dry-run` prints what would be written")
        );
    }
    for made in files {
        place(here, made, force).map_err(|error| {
            Error::refused(format!("{} cannot be written", made.name)).source_error(error)
        })?;
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

fn report(here: &Path, imported: &Imported, written: bool) -> Report {
    let mut text: String = imported.reports.iter().map(import::Report::text).collect();
    for made in &imported.files {
        let done = match made.placement {
            Placement::New => format!("wrote {}\n", made.name),
            Placement::Added => format!("added to {}\n", made.name),
            Placement::Replaced => format!("wrote {0}; the old one is {0}.old\n", made.name),
        };
        text += &if written {
            done
        } else {
            format!("--- {}\n{}", made.name, made.text)
        };
    }
    for note in &imported.notes {
        text += &format!("{note}\n");
    }
    let files = imported
        .files
        .iter()
        .map(|made| File {
            path: here.join(&made.name).display().to_string(),
            written,
            text: &made.text,
        })
        .collect();
    let report = Report::new(
        text,
        &Answer {
            files,
            reports: &imported.reports,
            notes: &imported.notes,
        },
    );
    match imported
        .files
        .iter()
        .find(|made| made.name.ends_with(".tow.yaml"))
        .filter(|_| written)
    {
        Some(job) => report.hint(format!(
            "look at it, then: tow submit -f {} --dry-run",
            job.name
        )),
        None if written => report.hint("what counts now: tow config show --origin"),
        None => report,
    }
}
