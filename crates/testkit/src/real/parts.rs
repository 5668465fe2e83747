//! The folder where `cargo xtask install` put programs of others.

use std::path::{Path, PathBuf};

/// A file of the installed parts. Tests fail without it, because no test is skipped in silence.
#[track_caller]
pub fn file(name: &str) -> PathBuf {
    let folder = std::env::var_os("TOW_TEST_PARTS")
        .map_or_else(|| workspace().join("target/test-parts"), PathBuf::from);
    let path = folder.join(name);
    assert!(
        path.exists(),
        "{} is not there: `cargo xtask install` installs what tests need",
        path.display()
    );
    path
}

pub(super) fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .unwrap_or(Path::new("/"))
}
