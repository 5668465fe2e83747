//! `tow import`: files of other tools as ours, and what did not map.

use super::Report;
use crate::context::Context;
use serde::Serialize;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use towline_core::{Error, Result};
use towline_engine::import::{self, Imported, Kind, Made};

/// Make a configuration and job files from those of other tools, and say what did not map.
///
/// Secrets are never copied: they become references, and the report says how to store their values.
/// A project of ACT needs no import: its `aux_data/aml` works where it lies.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tow import act aux_data/aml/*.yaml           towline.yaml with one cluster per file
  tow import toolkit submit_jobs.json          a job file, and towline.yaml
  tow import sbatch train.sbatch --dry-run     what would be written, and nothing written
  tow import qd aux_data/configs/philly_vc.yaml --json")]
pub(crate) struct Args {
    /// Whose files they are.
    #[arg(value_enum, value_name = "TOOL")]
    tool: Tool,
    /// The files.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Print what would be written and write nothing.
    #[arg(long)]
    dry_run: bool,
    /// Write over files that are there.
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
}

#[derive(Serialize)]
struct Answer<'a> {
    files: Vec<File<'a>>,
    reports: &'a [import::Report],
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
    };
    let here = context.folder()?;
    let imported = import::import(kind, &args.files, &|file| fs::read_to_string(here.join(file)))?;
    if !args.dry_run {
        write(here, &imported.files, args.force)?;
    }
    Ok(report(here, &imported, !args.dry_run))
}

/// All or, as far as can be told before, none.
fn write(here: &Path, files: &[Made], force: bool) -> Result<()> {
    let there = files.iter().find(|made| here.join(&made.name).symlink_metadata().is_ok());
    if let Some(made) = there.filter(|_| !force) {
        let error = Error::refused(format!("{} is there already; nothing was written", made.name));
        return Err(error.hint("`--force` writes over it; `--dry-run` prints what would be written"));
    }
    for made in files {
        let failed = |error: io::Error| Error::refused(format!("{} cannot be written", made.name)).source_error(error);
        let (part, path) = (here.join(format!(".{}.part", made.name)), here.join(&made.name));
        fs::write(&part, &made.text).map_err(failed)?;
        let placed = if force { fs::rename(&part, &path) } else { fs::hard_link(&part, &path).and_then(|()| fs::remove_file(&part)) };
        if placed.is_err() {
            let _ = fs::remove_file(&part);
        }
        placed.map_err(failed)?;
    }
    Ok(())
}

fn report(here: &Path, imported: &Imported, written: bool) -> Report {
    let mut text: String = imported.reports.iter().map(import::Report::text).collect();
    for made in &imported.files {
        text += &if written { format!("wrote {}\n", made.name) } else { format!("--- {}\n{}", made.name, made.text) };
    }
    let files = imported.files.iter().map(|made| File { path: here.join(&made.name).display().to_string(), written, text: &made.text }).collect();
    let report = Report::new(text, &Answer { files, reports: &imported.reports });
    match imported.files.iter().find(|made| made.name.ends_with(".tow.yaml")).filter(|_| written) {
        Some(job) => report.hint(format!("look at it, then: tow submit -f {} --dry-run", job.name)),
        None if written => report.hint("what counts now: tow config show --origin"),
        None => report,
    }
}
