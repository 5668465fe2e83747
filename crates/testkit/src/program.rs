//! Programs that tests make.

use std::fs;
use std::path::Path;
use std::process::Command;

/// Writes a program that can be started at once. Another process writes it: a descriptor that is
/// open for writing here is inherited by processes that other threads start, and a file that is
/// open for writing cannot be executed.
///
/// # Panics
///
/// When it cannot be written.
pub fn program(path: &Path, text: impl AsRef<[u8]>) {
    let draft = path.with_extension("draft");
    fs::write(&draft, text).expect("a draft of a program");
    let made = Command::new("install")
        .args(["-m", "755"])
        .arg(&draft)
        .arg(path)
        .status()
        .expect("install of coreutils");
    assert!(made.success(), "{} cannot be made", path.display());
    fs::remove_file(&draft).expect("the draft goes");
}
