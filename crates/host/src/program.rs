//! Finding programs by name.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The program in the first folder of `path` that has it. Folders are joined by `:`.
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
