//! What the service has put on this node before we came: io by name, and the parts of the dataset
//! that is copied.

use super::CrewTask;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Component, Path};

/// What the name of a part of the dataset begins with; the rest is its subfolder.
const COPY: &str = "copy/";

/// Io by name.
pub(super) fn io(task: &CrewTask) -> Vec<(String, String)> {
    task.at.iter().filter(|(name, _)| !name.starts_with(COPY)).cloned().collect()
}

/// The folder that is the dataset: where the service has put it, or one of ours with links to its
/// parts. None, if none was given.
pub(super) fn copy(task: &CrewTask, folder: &Path) -> io::Result<Option<String>> {
    let parts: Vec<(&str, &str)> = task.at.iter().filter_map(|(name, place)| Some((name.strip_prefix(COPY)?, place.as_str()))).collect();
    if let Some((_, whole)) = parts.iter().find(|(part, _)| part.is_empty()) {
        return Ok(Some((*whole).to_owned()));
    }
    if parts.is_empty() {
        return Ok(None);
    }
    let dataset = folder.join("copy");
    for (part, place) in parts {
        if !Path::new(part).components().all(|component| matches!(component, Component::Normal(_))) {
            return Err(io::Error::other(format!("`{part}` is no subfolder of a dataset")));
        }
        let link = dataset.join(part);
        fs::create_dir_all(link.parent().unwrap_or(&dataset))?;
        // An earlier attempt may have left it, or put something in its place.
        if link.is_symlink() {
            fs::remove_file(&link)?;
        }
        symlink(place, &link)?;
    }
    Ok(Some(dataset.to_string_lossy().into_owned()))
}
