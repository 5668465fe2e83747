//! Programs by their names.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The program of that name in the first of these folders, joined by `:`, that has one.
pub fn find_program(program: &str, path: &str) -> Option<PathBuf> {
    let executable = |file: &PathBuf| {
        file.metadata()
            .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    path.split(':')
        .filter(|folder| folder.starts_with('/'))
        .map(|folder| Path::new(folder).join(program))
        .find(executable)
}
