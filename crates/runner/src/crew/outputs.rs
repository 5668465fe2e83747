//! Uploads the folder `outputs` of a run to the stage when its ranks have ended, so that `tow get`
//! finds it after its nodes are gone. Only regular files are uploaded, and no link is followed.
//! Files of an earlier attempt are kept, unless this one has a file of the same name.

use super::complain;
use super::periodic::Periodic;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use towline_wire::crew::keys;

/// A folder with more files is a dataset, which belongs into a datastore.
const MAX_OUTPUT_FILES: usize = 10_000;

/// Uploads `outputs` of `workdir` below `folder`, once, in a thread.
pub(super) fn carry(workdir: &Path, folder: &Path) -> io::Result<Periodic> {
    let (from, to) = (workdir.join(keys::OUTPUTS), folder.join(keys::OUTPUTS));
    let periodic = Periodic::start(keys::OUTPUTS, move |is_last| {
        if !is_last {
            for note in all(&from, &to, MAX_OUTPUT_FILES) {
                complain(&note);
            }
        }
        Duration::ZERO
    })?;
    periodic.finish();
    Ok(periodic)
}

/// Messages about files that were not uploaded. One such file does not stop the others.
fn all(from: &Path, to: &Path, most: usize) -> Vec<String> {
    let mut notes = Vec::new();
    let mut failed = 0;
    let mut carried = 0;
    // A path joined with an empty one ends in a slash, which would follow a link.
    let below = |folder: &Path, inner: &Path| {
        if inner.as_os_str().is_empty() {
            folder.to_owned()
        } else {
            folder.join(inner)
        }
    };
    let mut open = vec![PathBuf::new()];
    while let Some(inner) = open.pop() {
        for (name, kind) in entries(&below(from, &inner)) {
            let inner = inner.join(name);
            if kind.is_dir() {
                open.push(inner);
                continue;
            }
            if !kind.is_file() {
                continue;
            }
            if carried + failed >= most {
                notes.push(format!(
                    "outputs: more than {most} files; the rest stays behind. Write \
                    that many to a datastore: `io` with `mode: mount`"
                ));
                return notes;
            }
            match one(&from.join(&inner), &to.join(&inner)) {
                Ok(()) => carried += 1,
                Err(error) => {
                    failed += 1;
                    if failed == 1 {
                        notes.push(format!(
                            "outputs: {} could not be carried away: {error}",
                            inner.display()
                        ));
                    }
                }
            }
        }
    }
    if failed > 1 {
        notes.push(format!(
            "outputs: {} more could not be carried away",
            failed - 1
        ));
    }
    notes
}

/// Sorted, so that the same files are left out every time. A link to a folder is not a folder.
fn entries(folder: &Path) -> Vec<(std::ffi::OsString, fs::FileType)> {
    if folder
        .symlink_metadata()
        .map_or(true, |facts| !facts.is_dir())
    {
        return Vec::new();
    }
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<_> = entries
        .filter_map(|entry| Some((entry.file_name(), entry.file_type().ok()?)))
        .collect();
    found.sort_by(|one, other| one.0.cmp(&other.0));
    found
}

/// Written from start to end, because the mount allows nothing else.
fn one(from: &Path, to: &Path) -> io::Result<()> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut source = File::open(from)?;
    let mut target = File::create(to)?;
    io::copy(&mut source, &mut target)?;
    super::status_file::sync(&target)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn tree(folder: &Path) -> Vec<String> {
        let (mut found, mut open) = (Vec::new(), vec![folder.to_owned()]);
        while let Some(here) = open.pop() {
            for (name, kind) in entries(&here) {
                let path = here.join(name);
                if kind.is_dir() {
                    open.push(path);
                } else {
                    found.push(
                        path.strip_prefix(folder)
                            .expect("below")
                            .display()
                            .to_string(),
                    );
                }
            }
        }
        found.sort();
        found
    }

    #[test]
    fn regular_files_are_carried_and_no_link_is_followed() {
        let folder = tempfile::tempdir().expect("a folder");
        let (from, to) = (folder.path().join("outputs"), folder.path().join("stage"));
        fs::create_dir_all(from.join("deep/er")).expect("made");
        fs::write(from.join("x y"), "one").expect("written");
        fs::write(from.join("deep/er/z"), "two").expect("written");
        symlink("/etc/passwd", from.join("link")).expect("linked");
        symlink("/etc", from.join("folder")).expect("linked");
        rustix::fs::mkfifoat(rustix::fs::CWD, from.join("pipe"), rustix::fs::Mode::RWXU)
            .expect("made");
        assert!(all(&from, &to, MAX_OUTPUT_FILES).is_empty());
        assert_eq!(tree(&to), ["deep/er/z", "x y"]);
        assert_eq!(fs::read(to.join("x y")).expect("there"), b"one");
        fs::write(from.join("x y"), "").expect("written");
        assert!(
            all(&from, &to, MAX_OUTPUT_FILES).is_empty()
                && fs::read(to.join("x y")).expect("there").is_empty(),
            "the newer one counts"
        );
    }

    #[test]
    fn a_folder_that_is_a_link_or_is_not_there_has_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        symlink("/etc", folder.path().join("outputs")).expect("linked");
        for name in ["outputs", "nowhere"] {
            assert!(
                all(
                    &folder.path().join(name),
                    &folder.path().join("stage"),
                    MAX_OUTPUT_FILES
                )
                .is_empty()
            );
        }
        assert!(!folder.path().join("stage").exists());
    }

    #[test]
    fn too_many_are_said_to_be_too_many() {
        let folder = tempfile::tempdir().expect("a folder");
        let (from, to) = (folder.path().join("outputs"), folder.path().join("stage"));
        fs::create_dir(&from).expect("made");
        for number in 0..5 {
            fs::write(from.join(number.to_string()), "").expect("written");
        }
        let notes = all(&from, &to, 3);
        assert!(
            notes.len() == 1 && notes[0].contains("more than 3 files"),
            "{notes:?}"
        );
        assert_eq!(tree(&to), ["0", "1", "2"]);
    }
}
