//! The folder that holds the code of a job.

use std::path::{Path, PathBuf};
use towline_core::job::Job;
use towline_core::{Error, Result};
use towline_host::surroundings;

/// The root of a job's code, and the folder where its commands start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodePlace {
    pub root: PathBuf,
    /// The root or a folder below it; absolute.
    pub workdir: PathBuf,
}

/// `code.root`, else the code root around `current`; `code.workdir` below it, else `current`.
pub fn code_place(job: &Job, current: &Path) -> Result<CodePlace> {
    let root = match &job.code.root {
        Some(root) => current.join(root),
        None => crate::project::code_root(current),
    };
    let workdir = match &job.code.workdir {
        Some(workdir) => {
            let below = Path::new(workdir);
            if below.is_absolute()
                || below
                    .components()
                    .any(|part| part == std::path::Component::ParentDir)
            {
                return Err(Error::config(format!(
                    "`code.workdir` is a folder below the code root, not `{workdir}`"
                ))
                .about("code.workdir"));
            }
            root.join(below)
        }
        None if job.code.root.is_some() => root.clone(),
        None => current.to_owned(),
    };
    Ok(CodePlace {
        root: real_folder(&root).map_err(|error| error.about("code.root"))?,
        workdir: real_folder(&workdir).map_err(|error| error.about("code.workdir"))?,
    })
}

fn real_folder(folder: &Path) -> Result<PathBuf> {
    if !folder.is_dir() {
        return Err(
            Error::config(format!("the folder {} does not exist", folder.display()))
                .hint("see `code.root` and `code.workdir` in the job file"),
        );
    }
    folder.canonicalize().map_err(|error| {
        Error::config(format!("the folder {} cannot be used", folder.display())).source_error(error)
    })
}

/// Why this folder is not sent as code: it is the home, or the root of the file system.
pub fn too_wide(root: &Path, home: Option<&Path>) -> Option<&'static str> {
    let home = home.and_then(|home| home.canonicalize().ok());
    match home {
        _ if root == Path::new("/") => Some("the root of the file system"),
        Some(home) if root == home => Some("your home folder"),
        Some(home) if home.starts_with(root) => Some("a folder that holds your home folder"),
        _ => None,
    }
}

/// The note of the plan if no code is sent from this folder.
pub fn stays(place: &CodePlace) -> Option<String> {
    let home = surroundings::home();
    too_wide(&place.root, home.as_deref()).map(|what| {
        format!(
            "{} is {what}: no code travels from there",
            place.root.display()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_code_travels_from_the_root_of_the_file_system() {
        let place = |root: &str| CodePlace {
            root: root.into(),
            workdir: root.into(),
        };
        let note = stays(&place("/")).expect("a note");
        assert_eq!(
            note,
            "/ is the root of the file system: no code travels from there"
        );
        assert_eq!(stays(&place("/nobody/project")), None);
    }
}
