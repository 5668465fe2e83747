//! Data that the service has put on this node before we started: io by name, and the parts of the
//! copied dataset.

use super::CrewTask;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Component, Path};

/// Begins the name of a part of the dataset. The number of its subfolder follows, because the name
/// itself might not survive a shell.
const COPY_PREFIX: &str = "copy/";

/// Io by name.
pub(super) fn io(task: &CrewTask) -> Vec<(String, String)> {
    task.at
        .iter()
        .filter(|(name, _)| !name.starts_with(COPY_PREFIX))
        .cloned()
        .collect()
}

/// The folder of the dataset: where the service has put it, or one of ours with links to its parts.
/// None if there is no dataset.
pub(super) fn copy(
    task: &CrewTask,
    subdirs: &[String],
    folder: &Path,
) -> io::Result<Option<String>> {
    let parts: Vec<(&str, &str)> = task
        .at
        .iter()
        .filter_map(|(name, place)| Some((name.strip_prefix(COPY_PREFIX)?, place.as_str())))
        .collect();
    let Some((_, first)) = parts.first() else {
        return Ok(None);
    };
    if subdirs.is_empty() {
        return Ok(Some((*first).to_owned()));
    }
    let dataset = folder.join("copy");
    for (number, place) in parts {
        let part = number
            .parse()
            .ok()
            .and_then(|number: usize| subdirs.get(number));
        let part =
            part.ok_or_else(|| io::Error::other(format!("the dataset has no part {number}")))?;
        if !Path::new(part)
            .components()
            .all(|component| matches!(component, Component::Normal(_)))
        {
            return Err(io::Error::other(format!(
                "`{part}` is no subfolder of a dataset"
            )));
        }
        let link = dataset.join(part);
        fs::create_dir_all(link.parent().unwrap_or(&dataset))?;
        // An earlier attempt may have left it, or replaced it.
        if link.is_symlink() {
            fs::remove_file(&link)?;
        }
        symlink(place, &link)?;
    }
    Ok(Some(dataset.to_string_lossy().into_owned()))
}
