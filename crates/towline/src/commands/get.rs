//! `tow get`: copies files from a run's folder.

mod list;
pub(crate) mod serve;

use super::Report;
use crate::context::Context;
use std::fs;
use std::path::{Component, Path, PathBuf};
use towline_core::record::RunRecord;
use towline_core::resolve::{MappedPlace, Resolved};
use towline_core::{Error, ErrorKind, Result};
use towline_engine::history::{History, Target};
use towline_wire::report::get::Got;

/// Copy files or folders out of a run's folder.
///
/// Without a path, say what is there. For a sweep, copy out of the folder of each run.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tow get @                        what there is to copy
  tow get @ checkpoints/last.pt
  tow get 60ce out --to results/
  tow get lr-sweep metrics.json    assets/lr-sweep-…-1/metrics.json and so on")]
pub(crate) struct Args {
    /// A run or sweep: an id, the end of one, or @ for the latest.
    #[arg(value_name = "RUN")]
    run: String,
    /// Paths as the run saw them, relative to its start folder.
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// The target folder [default: assets/RUN]; for a sweep, it gets a folder for each run.
    #[arg(long, value_name = "FOLDER")]
    to: Option<PathBuf>,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<Report> {
    let history = context.history()?;
    let target = history.find_to_read(&args.run)?;
    if args.paths.is_empty() {
        let record = super::logs::one_run(target)?;
        return list(context, &history, &record);
    }
    if let Target::Run(record) = &target {
        let to = context.folder()?.join(
            args.to
                .clone()
                .unwrap_or_else(|| Path::new("assets").join(record.id.as_str())),
        );
        let files = get(context, &history, record, &args.paths, &to)?;
        return Ok(Report::of(&Got { files }, text));
    }
    // Of a sweep each run's files come to a folder of their own.
    let to = context
        .folder()?
        .join(args.to.as_deref().unwrap_or(Path::new("assets")));
    let (mut copied, mut missing) = (Vec::new(), Vec::new());
    for record in target.runs() {
        match get(
            context,
            &history,
            record,
            &args.paths,
            &to.join(record.id.as_str()),
        ) {
            Ok(files) => copied.extend(files),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                missing.push(format!("{}: {error}", record.id));
            }
            Err(error) => return Err(error.while_doing(record.id.to_string())),
        }
    }
    let report = Report::of(&Got { files: copied }, text);
    let report = missing.iter().fold(report, Report::hint);
    Ok(if missing.is_empty() {
        report
    } else {
        report.code(ErrorKind::NotFound.exit_code())
    })
}

fn text(answer: &Got) -> String {
    super::lines(&answer.files, |path| path.display().to_string())
}

/// Copies files of one run.
fn get(
    context: &Context,
    history: &History,
    record: &RunRecord,
    paths: &[PathBuf],
    to: &Path,
) -> Result<Vec<PathBuf>> {
    let resolved = resolved_of(history, record)?;
    if crate::runs::far::is_far(history, &record.id)? {
        let below = far_start_folder(&resolved);
        return crate::runs::far_files::get(context, record, &below, paths, to);
    }
    let roots = roots(context, record, &resolved)?;
    let linked = linked_of(&resolved);
    // All are found before any is copied.
    let found = paths
        .iter()
        .map(|path| find(&roots, &linked, path).map(|from| (path, from)))
        .collect::<Result<Vec<_>>>()?;
    let mut copied = Vec::new();
    for (path, from) in found {
        copy(&from, &to.join(path), to, &mut copied)?;
    }
    Ok(copied)
}

/// What the ignore rules left out and what `folders:` maps: it is reached by links that the run was
/// given.
fn linked_of(resolved: &Resolved) -> Vec<PathBuf> {
    let code = resolved.code.iter();
    let places = code.flat_map(|code| {
        let mapped = code.mapped.values().filter_map(MappedPlace::path);
        mapped.chain([code.root.as_str()])
    });
    places.map(PathBuf::from).collect()
}

/// Says what can be copied.
fn list(context: &Context, history: &History, record: &RunRecord) -> Result<Report> {
    let resolved = resolved_of(history, record)?;
    if crate::runs::far::is_far(history, &record.id)? {
        return list::far(context, record, &far_start_folder(&resolved));
    }
    list::here(record, &roots(context, record, &resolved)?)
}

fn resolved_of(history: &History, record: &RunRecord) -> Result<Resolved> {
    let submission = history.submission_of(&record.id)?;
    let missing = || Error::not_found("its submission is not in the history");
    Ok(submission.ok_or_else(missing)?.plan.resolved)
}

fn far_start_folder(resolved: &Resolved) -> PathBuf {
    let code = resolved.code.as_ref();
    code.map(|code| Path::new("code").join(&code.workdir))
        .unwrap_or_default()
}

/// The folders in which files of a run on this machine are looked for, its start folder first.
fn roots(context: &Context, record: &RunRecord, resolved: &Resolved) -> Result<Vec<PathBuf>> {
    let state = context.state()?;
    Ok(match &resolved.code {
        Some(code) => vec![
            state.code(&record.id).join(&code.workdir),
            state.code(&record.id),
            state.run(&record.id),
        ],
        None => vec![PathBuf::from(&resolved.workdir), state.run(&record.id)],
    })
}

/// Finds a path below the run's folder, or behind a link that the run was given. Refuses `..`,
/// absolute paths and other links out of the folder.
fn find(roots: &[PathBuf], linked: &[PathBuf], path: &Path) -> Result<PathBuf> {
    if !path
        .components()
        .all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
    {
        return Err(Error::refused(format!(
            "{} is not a path below the run's folder",
            path.display()
        ))
        .hint("give it relative to where the run started"));
    }
    for from in roots.iter().map(|root| root.join(path)) {
        match towline_host::filesystem::metadata_if_there(&from) {
            Ok(Some(_)) => return inside(from, roots, linked, path),
            Ok(None) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(Error::refused(format!(
                    "{} is a link that leads nowhere",
                    path.display()
                ))
                .source_error(error));
            }
            Err(error) => {
                return Err(Error::from_io(
                    format!("{} cannot be read", from.display()),
                    error,
                ));
            }
        }
    }
    Err(
        Error::not_found(format!("the run has no {}", path.display()))
            .hint(format!("it started in {}", roots[0].display())),
    )
}

/// Checks that a file belongs to the run or to the data it was given; a link that leads elsewhere
/// is refused.
fn inside(from: PathBuf, roots: &[PathBuf], linked: &[PathBuf], path: &Path) -> Result<PathBuf> {
    let real = from
        .canonicalize()
        .map_err(|error| Error::from_io(format!("{} cannot be followed", path.display()), error))?;
    if !roots
        .iter()
        .chain(linked)
        .any(|root| root.canonicalize().is_ok_and(|root| real.starts_with(root)))
    {
        let error = Error::refused(format!(
            "{} leads to {}, outside the run's folder",
            path.display(),
            real.display()
        ));
        return Err(error.hint("copy it from there"));
    }
    Ok(from)
}

/// Copies a file or tree, but never `within`, the target folder, into itself.
fn copy(from: &Path, to: &Path, within: &Path, copied: &mut Vec<PathBuf>) -> Result<()> {
    let failed = |error| Error::from_io(format!("{} cannot be copied", from.display()), error);
    if from.is_dir() {
        for entry in fs::read_dir(from).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let kind = entry.file_type().map_err(failed)?;
            if kind.is_symlink() {
                // A link could lead anywhere, also in circles: it is copied as what it is.
                copy_link(&entry.path(), &to.join(entry.file_name()), within)?;
                continue;
            }
            if !kind.is_dir() && !kind.is_file() {
                crate::output::status(&format!(
                    "left out {}: it is neither file nor folder",
                    entry.path().display()
                ));
                continue;
            }
            if entry.path() == within {
                continue;
            }
            copy(&entry.path(), &to.join(entry.file_name()), within, copied)?;
        }
        return Ok(());
    }
    if !from.is_file() {
        return Err(Error::unsupported(format!(
            "{} is neither file nor folder",
            from.display()
        )));
    }
    crate::runs::far_files::check_inside(within, to)?;
    if let Some(parent) = to.parent() {
        fs::create_dir_all(parent).map_err(failed)?;
    }
    if fs::canonicalize(from).ok() == fs::canonicalize(to).ok() && to.exists() {
        return Err(
            Error::conflict(format!("{} is that file already", to.display()))
                .hint("choose another folder with --to"),
        );
    }
    crate::runs::far_files::whole(to, |part| fs::copy(from, part).map(drop).map_err(failed))?;
    copied.push(to.to_owned());
    Ok(())
}

fn copy_link(from: &Path, to: &Path, within: &Path) -> Result<()> {
    crate::runs::far_files::check_inside(within, to)?;
    let failed = |error| Error::from_io(format!("{} cannot be copied", from.display()), error);
    let target = fs::read_link(from).map_err(failed)?;
    if let Some(parent) = to.parent() {
        fs::create_dir_all(parent).map_err(failed)?;
    }
    match std::os::unix::fs::symlink(target, to) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(failed(error)),
        _ => Ok(()),
    }
}
