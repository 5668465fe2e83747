//! Finding programs by name, and asking one something.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

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

/// The file of that name in the first folder of our own `PATH` that has it.
pub fn on_path(name: &str) -> Option<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH")?)
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
}

/// What a program writes to its stdout; `None` if it cannot be started or fails.
pub fn output(program: &str, arguments: &[&str]) -> Option<Vec<u8>> {
    let output = Command::new(program).args(arguments).output().ok()?;
    output.status.success().then_some(output.stdout)
}
