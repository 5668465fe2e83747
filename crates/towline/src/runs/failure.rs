//! Explains the failure of a run from its logs and code.

use crate::context::Context;
use crate::runs::logfiles::{self, TAIL_BYTES};
use std::path::Path;
use towline_core::Result;
use towline_core::cluster::LogSource;
use towline_core::reason::{Cause, Ending};
use towline_core::record::RunRecord;
use towline_core::resolve::Resolved;
use towline_core::why::modules::{self, Own};
use towline_core::why::{LogError, Reading, read, root_cause};
use towline_engine::flow::code;
use towline_snapshot::digest::Digest;
use towline_snapshot::root::read_root;

/// How many ranks' logs are read.
const MOST_RANKS: usize = 256;

/// The error in the logs, and the rank whose log it is.
pub(crate) struct Told {
    pub(crate) whose: LogSource,
    pub(crate) reading: Reading,
    /// The rank that failed first on record, if its own log shows no error.
    pub(crate) silent: Option<u32>,
    /// No log of the run is on this machine.
    pub(crate) missing: bool,
}

/// The error of the first failing rank, unless that only followed another rank's error. `None` if
/// no program of the user failed.
pub(crate) fn told(context: &Context, record: &RunRecord, ending: &Ending) -> Result<Option<Told>> {
    let found = match ending.cause {
        Some(Cause::SetUp) => of_set_up(context, record)?,
        Some(Cause::ExitCode | Cause::Signal | Cause::OutOfMemory) => {
            Some(of_ranks(context, record, ending)?)
        }
        _ => None,
    };
    let Some(mut told) = found else {
        return Ok(None);
    };
    let submission = context.history()?.submission_of(&record.id)?;
    let resolved = submission
        .as_ref()
        .map(|submission| &submission.plan.resolved);
    if let Some(error) = &mut told.reading.error {
        shorten(error, record, resolved);
    }
    if let Some(finding) = &mut told.reading.finding
        && let (Some(module), Some(resolved)) = (&finding.module, resolved)
        && let Some(own) = own(context, module, resolved)
    {
        finding.next_step = modules::advice(module, Some(&own));
    }
    Ok(Some(told))
}

fn of_set_up(context: &Context, record: &RunRecord) -> Result<Option<Told>> {
    let state = context.state()?;
    let readings = (0..record.nodes).map(LogSource::SetUp).map(|whose| {
        (
            whose,
            read(&logfiles::tail_bytes(
                &state.log(&record.id, record.state.attempt, whose),
                TAIL_BYTES,
            )),
        )
    });
    Ok(readings
        .into_iter()
        .find(|(_, reading)| reading.consequence_level().is_some())
        .map(|(whose, reading)| Told {
            whose,
            reading,
            silent: None,
            missing: false,
        }))
}

fn of_ranks(context: &Context, record: &RunRecord, ending: &Ending) -> Result<Told> {
    let state = context.state()?;
    let of = |rank| {
        read(&logfiles::tail_bytes(
            &state.log(&record.id, record.state.attempt, LogSource::Rank(rank)),
            TAIL_BYTES,
        ))
    };
    let first = ending
        .first_failure
        .as_ref()
        .map_or(0, |failure| failure.rank);
    let own = of(first);
    let missing = !state
        .log(&record.id, record.state.attempt, LogSource::Rank(first))
        .exists();
    if own.consequence_level() == Some(0) {
        return Ok(Told {
            whose: LogSource::Rank(first),
            reading: own,
            silent: None,
            missing: false,
        });
    }
    // Only the first end is on record, so the other ranks come in order of their number.
    let others = (0..record.world)
        .filter(|rank| *rank != first)
        .take(MOST_RANKS - 1)
        .map(|rank| (rank, of(rank)));
    let readings: Vec<(u32, Reading)> = std::iter::once((first, own)).chain(others).collect();
    let own = &readings[0].1;
    let silent = own.consequence_level().is_none().then_some(first);
    // A rank that is not known to have failed counts only if its log shows a cause of its own.
    let root = root_cause(&readings).filter(|(rank, reading)| {
        *rank == first || reading.finding.is_some() || reading.consequence_level() == Some(0)
    });
    let (rank, reading) = root.cloned().unwrap_or_else(|| (first, own.clone()));
    Ok(Told {
        whose: LogSource::Rank(rank),
        reading,
        silent: silent.filter(|first| *first != rank),
        missing,
    })
}

/// Shortens the path of a file in the run's code to the one that the user knows: below the code
/// root.
fn shorten(error: &mut LogError, record: &RunRecord, resolved: Option<&Resolved>) {
    let Some(place) = &mut error.place else {
        return;
    };
    let tree = format!("/{}/code/", record.id);
    let root = resolved
        .filter(|resolved| resolved.code.is_none())
        .map(|resolved| format!("{}/", resolved.workdir));
    let below = place
        .file
        .split_once(&tree)
        .map(|(_, below)| below)
        .or_else(|| place.file.strip_prefix(root.as_deref()?));
    if let Some(below) = below.map(str::to_owned) {
        place.file = below;
    }
}

/// Whether a module is the user's own, from the code of the run and the folder it was submitted
/// from.
fn own(context: &Context, module: &str, resolved: &Resolved) -> Option<Own> {
    let top = module.split('.').next().unwrap_or(module);
    let Some(code) = &resolved.code else {
        return find_in_folder(module, Path::new(&resolved.workdir));
    };
    let store = code::local_store(context.state().ok()?).ok()?;
    let root = code
        .snapshot
        .as_deref()
        .and_then(Digest::parse)
        .and_then(|id| read_root(&store.store, &id).ok());
    let paths: Vec<&str> = root
        .iter()
        .flat_map(|root| &root.manifest.entries)
        .filter_map(|entry| std::str::from_utf8(&entry.path).ok())
        .collect();
    let found = modules::find_own(module, &code.workdir, paths.into_iter());
    // Found without the snapshot too: a file or package beside the script that the snapshot left
    // out.
    found.or_else(|| {
        let beside = [code.workdir.as_str(), "", "src"]
            .into_iter()
            .map(|folder| Path::new(folder).join(top));
        let left_out = |path: &Path| {
            let there = Path::new(&code.root).join(path);
            there.with_extension("py").is_file() || there.join("__init__.py").is_file()
        };
        root.as_ref()?;
        beside
            .into_iter()
            .find(|path| left_out(path))
            .map(|path| Own::LeftOut {
                path: path.display().to_string(),
            })
    })
}

/// Searches a folder that a run starts in: the folder itself, `src`, and its direct subfolders.
fn find_in_folder(module: &str, folder: &Path) -> Option<Own> {
    /// How many entries of one folder are searched.
    const MAX_FOLDER_ENTRIES: usize = 1000;
    let names = |folder: &Path| -> Vec<String> {
        let entries = std::fs::read_dir(folder)
            .into_iter()
            .flatten()
            .flatten()
            .take(MAX_FOLDER_ENTRIES);
        entries
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect()
    };
    let mut paths = names(folder);
    for name in paths
        .clone()
        .into_iter()
        .filter(|name| !name.starts_with('.'))
        .take(100)
    {
        paths.extend(
            names(&folder.join(&name))
                .into_iter()
                .map(|below| format!("{name}/{below}")),
        );
    }
    let in_src = ["src", "lib"].iter().flat_map(|inside| {
        names(&folder.join(inside))
            .into_iter()
            .map(move |package| format!("{inside}/{package}"))
    });
    let packages: Vec<String> = in_src
        .flat_map(|package| {
            names(&folder.join(&package))
                .into_iter()
                .map(move |file| format!("{package}/{file}"))
        })
        .collect();
    modules::find_own(
        module,
        "",
        paths.iter().chain(&packages).map(String::as_str),
    )
}
