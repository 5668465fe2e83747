//! Files of runs on far clusters, downloaded for `tow get`.

use crate::context::Context;
use crate::output;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, Instant};
use towline_core::cluster::{Cluster, FileEntry, RunRef};
use towline_core::record::RunRecord;
use towline_core::state::Phase;
use towline_core::{Error, Result};
use towline_engine::flow::{OpenCluster, waiting};
use towline_host::backoff::Backoff;

/// How long to wait for files that a cluster is still storing, and how often it is asked.
const FILES_TIMEOUT: Duration = Duration::from_secs(60);
const FIRST_FILES_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_FILES_PAUSE: Duration = Duration::from_secs(2);

/// Downloads files of a run's folder from its cluster: below its start folder, else below its code,
/// else below the folder itself.
pub(crate) fn get(
    context: &Context,
    record: &RunRecord,
    workdir: &Path,
    paths: &[PathBuf],
    to: &Path,
) -> Result<Vec<PathBuf>> {
    let (cluster, run) = open(context, record)?;
    let is_storing = wait_for_files(cluster.cluster.as_ref(), record, &run)?;
    let roots = [workdir.to_owned(), PathBuf::from("code"), PathBuf::new()];
    // Find all files before downloading any.
    let mut found = Vec::new();
    for path in paths {
        let text = |whole: &Path| {
            whole.to_str().map(str::to_owned).ok_or_else(|| {
                Error::unsupported("files whose names are not UTF-8 cannot be downloaded")
            })
        };
        let mut listed = None;
        for root in &roots {
            let place = text(&root.join(path))?;
            let entries = cluster.files(&run, &place)?;
            if !entries.is_empty() {
                listed = Some((place, entries));
                break;
            }
        }
        let listed = listed.ok_or_else(|| {
            let error = Error::not_found(format!("the run has no {}", path.display()));
            let error = error.maybe_hint(cluster.kept_files().map(ToOwned::to_owned));
            error.maybe_hint(is_storing.then(|| still_storing(record)))
        })?;
        found.push((path, listed));
    }
    if is_storing {
        output::status(&format!("warning: {}", still_storing(record)));
    }
    let mut copied = Vec::new();
    for (path, (place, entries)) in found {
        for entry in entries {
            // Without `.` components, because `x/.` cannot be created before `x`.
            let below: PathBuf = path
                .components()
                .filter(|part| matches!(part, Component::Normal(_)))
                .collect();
            let target = if entry.path.is_empty() {
                to.join(below)
            } else {
                to.join(below).join(&entry.path)
            };
            let source = if entry.path.is_empty() {
                place.clone()
            } else {
                format!("{place}/{}", entry.path)
            };
            check_inside(to, &target)?;
            bring(cluster.cluster.as_ref(), &run, &source, &entry, &target)?;
            if !entry.is_folder && entry.link.is_none() {
                copied.push(target);
            }
        }
    }
    Ok(copied)
}

/// The files of the run's start folder; if the cluster keeps none of it, those of the run's folder.
pub(crate) fn list(
    context: &Context,
    record: &RunRecord,
    workdir: &Path,
) -> Result<Vec<FileEntry>> {
    let (cluster, run) = open(context, record)?;
    for root in [workdir, Path::new("")] {
        let root = root.to_string_lossy();
        let entries = cluster.files(&run, &root)?;
        if !entries.is_empty() {
            return Ok(entries);
        }
    }
    Ok(Vec::new())
}

/// What lies at a path of a run's folder on its cluster.
pub(crate) struct At {
    cluster: OpenCluster,
    run: RunRef,
    place: String,
    pub(crate) entries: Vec<FileEntry>,
}

/// A file there.
pub(crate) struct FarFile {
    at: At,
    pub(crate) size: u64,
}

/// Looks below the start folder, else below the code, else below the folder itself.
pub(crate) fn at(context: &Context, record: &RunRecord, workdir: &Path, path: &Path) -> Result<At> {
    let (cluster, run) = open(context, record)?;
    for root in [workdir, Path::new("code"), Path::new("")] {
        let place = root.join(path).to_string_lossy().into_owned();
        let entries = cluster.files(&run, &place)?;
        if !entries.is_empty() {
            return Ok(At {
                cluster,
                run,
                place,
                entries,
            });
        }
    }
    Err(Error::not_found(format!(
        "the run has no {}",
        path.display()
    )))
}

impl At {
    /// The file that it is. A link is not followed.
    pub(crate) fn file(self, path: &Path) -> Result<FarFile> {
        let mut entries = self.entries.iter();
        let itself = entries.find(|entry| entry.path.is_empty());
        let plain = itself.filter(|entry| !entry.is_folder && entry.link.is_none());
        let size = plain
            .map(|entry| entry.size)
            .ok_or_else(|| Error::unsupported(format!("{} is not a plain file", path.display())))?;
        Ok(FarFile { at: self, size })
    }
}

impl FarFile {
    pub(crate) fn bytes(&self, offset: u64, most: u64) -> Result<Vec<u8>> {
        let At {
            cluster,
            run,
            place,
            ..
        } = &self.at;
        cluster.file_bytes(run, place, offset, most)
    }
}

fn open(context: &Context, record: &RunRecord) -> Result<(OpenCluster, RunRef)> {
    let cluster = context.cluster(&record.cluster)?;
    if cluster.is_here() {
        return Err(Error::refused(format!(
            "cluster `{}` is now of another kind",
            record.cluster
        )));
    }
    cluster.sign_in()?;
    Ok((cluster, RunRef::known(&record.id, &record.state)))
}

/// Waits until the cluster has stored the files of an ended run, because a listing before that would
/// lack some. Returns whether it goes on storing after all that time.
fn wait_for_files(cluster: &dyn Cluster, record: &RunRecord, run: &RunRef) -> Result<bool> {
    if !matches!(record.state.phase, Phase::Ended(_)) {
        return Ok(false);
    }
    let deadline = Instant::now() + FILES_TIMEOUT;
    let mut backoff = Backoff::new(FIRST_FILES_PAUSE, LONGEST_FILES_PAUSE);
    let line = || {
        format!(
            "waiting for `{}`: it is still storing the run's files",
            record.cluster
        )
    };
    waiting::told(output::status, line, || {
        while cluster.is_storing_files(run)? {
            if Instant::now() >= deadline {
                return Ok(true);
            }
            std::thread::sleep(backoff.pause());
        }
        Ok(false)
    })
}

fn still_storing(record: &RunRecord) -> String {
    format!(
        "`{}` is still storing files of {}; some may be missing, so try again later",
        record.cluster, record.id
    )
}

fn bring(
    backend: &dyn Cluster,
    run: &RunRef,
    source: &str,
    entry: &FileEntry,
    target: &Path,
) -> Result<()> {
    let failed = |error| Error::from_io(format!("{} cannot be written", target.display()), error);
    if entry.is_folder {
        return std::fs::create_dir_all(target).map_err(failed);
    }
    if let Some(parent) = target.parent() {
        std::fs::create_dir_all(parent).map_err(failed)?;
    }
    if let Some(link) = &entry.link {
        // A link could lead anywhere, so the link itself is copied.
        return match std::os::unix::fs::symlink(link, target) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(failed(error)),
            _ => Ok(()),
        };
    }
    whole(target, |part| {
        let mut file = std::fs::File::create(part).map_err(failed)?;
        let mut offset = 0;
        loop {
            let bytes = backend.file_bytes(run, source, offset, 4 << 20)?;
            if bytes.is_empty() {
                break;
            }
            file.write_all(&bytes).map_err(failed)?;
            offset += bytes.len() as u64;
        }
        file.set_permissions(std::fs::Permissions::from_mode(entry.mode & 0o777))
            .map_err(failed)
    })
}

/// Refuses to write through a link that leads out of the target folder: an earlier download of a
/// job's files may have left one there.
pub(crate) fn check_inside(within: &Path, target: &Path) -> Result<()> {
    // A folder that does not exist yet contains no link.
    let (Ok(root), Some(parent)) = (within.canonicalize(), target.parent()) else {
        return Ok(());
    };
    let Some(nearest) = parent
        .ancestors()
        .find(|folder| folder.symlink_metadata().is_ok())
    else {
        return Ok(());
    };
    if nearest
        .canonicalize()
        .is_ok_and(|real| real.starts_with(&root) || root.starts_with(&real))
    {
        return Ok(());
    }
    let error = Error::refused(format!(
        "{} is a link that leads out of {}: nothing is written through it",
        nearest.display(),
        within.display()
    ));
    Err(error.hint("remove it, or choose another folder with --to"))
}

/// Makes a file under a temporary name, and renames it when it is complete: an interruption leaves
/// no partial file.
pub(crate) fn whole(target: &Path, make: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let mut name = std::ffi::OsString::from(".");
    name.push(target.file_name().unwrap_or_default());
    name.push(format!(".{}.part", std::process::id()));
    let part = target.with_file_name(name);
    let renamed = |error| Error::from_io(format!("{} cannot be written", target.display()), error);
    make(&part)
        .and_then(|()| std::fs::rename(&part, target).map_err(renamed))
        .inspect_err(|_| {
            let _ = std::fs::remove_file(&part);
        })
}
