//! The backup that a folder continues. The mark is stored on the folder itself, so that a copy of
//! the folder has it too, on any machine. So an old copy does not become the newest backup
//! unnoticed.

use crate::backup::{Listed, Place};
use crate::digest::Digest;
use crate::store::Blob;
use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, XattrFlags};
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// If folders have no attributes, a file with this prefix holds the mark. No walk sees it.
pub(crate) const MARK_FILE_PREFIX: &str = ".towline-backups-";
/// The name of the attribute that holds a mark begins with this.
const MARK_ATTRIBUTE_PREFIX: &str = "user.towline.";
/// Every mark has this length, so that it can be replaced on a full disk.
const MARK_BYTES: usize = 128;

/// The backup that a folder was made from, or was last backed up as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    pub at: i64,
    pub id: Digest,
    /// Only some of that backup was brought back.
    pub in_part: bool,
}

impl Mark {
    pub fn of(blob: &Blob, in_part: bool) -> Option<Self> {
        if let Blob::Backup(at, id) = *blob {
            Some(Self { at, id, in_part })
        } else {
            None
        }
    }

    /// Whether a folder with this mark includes everything of a backup of that moment.
    pub(crate) const fn knows_of(&self, at: i64) -> bool {
        !self.in_part && at <= self.at
    }

    fn text(&self) -> String {
        format!(
            "{:<1$}\n",
            format!(
                "{} {} {}",
                self.at,
                self.id,
                if self.in_part { "part" } else { "whole" }
            ),
            MARK_BYTES - 1
        )
    }

    fn parse(text: &[u8]) -> Option<Self> {
        let mut words = std::str::from_utf8(text).ok()?.split_ascii_whitespace();
        let (at, id) = (words.next()?.parse().ok()?, Digest::parse(words.next()?)?);
        Some(Self {
            at,
            id,
            in_part: words.next()? == "part",
        })
    }
}

/// The mark of a folder for one place of backups.
#[derive(Debug)]
pub struct Marked<'a> {
    folder: &'a Path,
    key: String,
}

impl<'a> Marked<'a> {
    /// `place` names where its backups go. A folder that is backed up to two places has a mark for
    /// each.
    pub fn new(folder: &'a Path, place: &str) -> Self {
        Self {
            folder,
            key: Digest::of(place.as_bytes()).short(),
        }
    }

    fn attribute(&self) -> String {
        format!("{MARK_ATTRIBUTE_PREFIX}{}", self.key)
    }
    fn file(&self) -> PathBuf {
        self.folder.join(format!("{MARK_FILE_PREFIX}{}", self.key))
    }

    pub fn read(&self) -> Option<Mark> {
        let mut bytes = vec![0; MARK_BYTES];
        if let Ok(length) = rustix::fs::getxattr(self.folder, self.attribute(), &mut bytes[..]) {
            return Mark::parse(&bytes[..length]);
        }
        let mut file = open(&self.file(), false).ok()?;
        let length = file.read(&mut bytes).ok()?;
        Mark::parse(&bytes[..length])
    }

    /// Writes the mark. If that fails, an older mark is removed.
    pub fn write(&self, mark: Mark) {
        let text = mark.text();
        if rustix::fs::setxattr(
            self.folder,
            self.attribute(),
            text.as_bytes(),
            XattrFlags::empty(),
        )
        .is_ok()
        {
            if self.file().symlink_metadata().is_ok() {
                let _ = keep_time(self.folder, || fs::remove_file(self.file()));
            }
            return;
        }
        let _ = rustix::fs::removexattr(self.folder, self.attribute());
        if open(&self.file(), true)
            .and_then(|file| file.write_all_at(text.as_bytes(), 0))
            .is_err()
        {
            let _ = keep_time(self.folder, || self.make_file(&text));
        }
    }

    fn make_file(&self, text: &str) -> io::Result<()> {
        match fs::remove_file(self.file()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o644)
            .open(self.file())?;
        file.write_all(text.as_bytes())
            .inspect_err(|_| drop(fs::remove_file(self.file())))
    }
}

/// Opens a mark file. A link, or a file with hard links, is not ours.
fn open(path: &Path, write: bool) -> io::Result<fs::File> {
    let flags = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
    let file = fs::OpenOptions::new()
        .read(!write)
        .write(write)
        .custom_flags(flags)
        .open(path)?;
    let found = file.metadata()?;
    if found.is_file() && found.nlink() == 1 {
        Ok(file)
    } else {
        Err(io::ErrorKind::InvalidData.into())
    }
}

/// Does `work` in a folder and restores the folder's time, because a backup would otherwise see a
/// change.
fn keep_time(folder: &Path, work: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    let before = rustix::fs::stat(folder)?;
    work()?;
    let last_modification = Timespec {
        tv_sec: before.st_mtime,
        tv_nsec: before.st_mtime_nsec.cast_signed(),
    };
    let last_access = Timespec {
        tv_sec: 0,
        tv_nsec: rustix::fs::UTIME_OMIT,
    };
    Ok(rustix::fs::utimensat(
        CWD,
        folder,
        &Timestamps {
            last_access,
            last_modification,
        },
        AtFlags::empty(),
    )?)
}

/// Whether `newest` holds something that a folder with this mark does not know of.
pub fn is_overtaken(mark: Option<Mark>, newest: &Listed, place: &Place) -> bool {
    match mark {
        Some(mark) => !mark.knows_of(newest.at),
        // The folder was backed up before there were marks, or its mark could not be written.
        None => newest
            .summary
            .as_ref()
            .is_some_and(|made| (&made.host, &made.folder) != (&place.host, &place.folder)),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::{MARK_BYTES, Mark, Marked, is_overtaken, keep_time};
    use crate::backup::{Listed, Place};
    use crate::digest::Digest;
    use crate::root::Summary;
    use crate::store::Blob;
    use std::fs;

    fn mark(at: i64) -> Mark {
        Mark {
            at,
            id: Digest::of(b"a backup"),
            in_part: false,
        }
    }

    #[test]
    fn a_mark_stays_with_its_folder_and_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let (one, other) = (
            Marked::new(folder.path(), "/backups"),
            Marked::new(folder.path(), "/elsewhere"),
        );
        assert_eq!(one.read(), None);
        one.write(mark(7));
        other.write(Mark {
            in_part: true,
            ..mark(8)
        });
        assert_eq!(
            (one.read(), other.read()),
            (
                Some(mark(7)),
                Some(Mark {
                    in_part: true,
                    ..mark(8)
                })
            )
        );
    }

    /// For file systems whose folders have no attributes.
    #[test]
    fn a_file_holds_it_where_nothing_else_does() {
        let folder = tempfile::tempdir().unwrap();
        let marked = Marked::new(folder.path(), "/backups");
        let before = fs::metadata(folder.path()).unwrap().modified().unwrap();
        for at in [7, 1_794_841_124_862] {
            let text = mark(at).text();
            assert_eq!(text.len(), MARK_BYTES);
            keep_time(folder.path(), || marked.make_file(&text)).unwrap();
            assert_eq!(marked.read(), Some(mark(at)));
            assert_eq!(
                fs::metadata(folder.path()).unwrap().modified().unwrap(),
                before,
                "the folder looks changed"
            );
        }
        // A link is neither read nor written through.
        let secret = folder.path().join("secret");
        fs::write(&secret, mark(9).text()).unwrap();
        fs::remove_file(marked.file()).unwrap();
        std::os::unix::fs::symlink(&secret, marked.file()).unwrap();
        assert_eq!(marked.read(), None);
        marked.make_file(&mark(10).text()).unwrap();
        assert_eq!(
            (marked.read(), fs::read_to_string(&secret).unwrap()),
            (Some(mark(10)), mark(9).text())
        );
    }

    #[test]
    fn a_folder_is_overtaken_by_what_it_does_not_know_of() {
        let here = Place {
            host: "a".into(),
            folder: "/scratch".into(),
            ..Place::default()
        };
        let newest = |host: &str, at| {
            let summary = Some(Summary {
                host: host.into(),
                folder: "/scratch".into(),
                ..Summary::default()
            });
            Listed {
                blob: Blob::Backup(at, Digest::of(b"x")),
                at,
                size: 0,
                summary,
            }
        };
        assert!(!is_overtaken(Some(mark(5)), &newest("a", 5), &here));
        assert!(
            !is_overtaken(Some(mark(5)), &newest("b", 4), &here),
            "the one it knew of was dropped"
        );
        assert!(is_overtaken(Some(mark(5)), &newest("b", 6), &here));
        assert!(
            is_overtaken(Some(mark(5)), &newest("a", 6), &here),
            "an older copy of this very folder"
        );
        assert!(is_overtaken(
            Some(Mark {
                in_part: true,
                ..mark(5)
            }),
            &newest("a", 5),
            &here
        ));
        assert!(!is_overtaken(None, &newest("a", 5), &here));
        assert!(is_overtaken(None, &newest("b", 5), &here));
        assert!(
            !is_overtaken(
                None,
                &Listed {
                    summary: None,
                    ..newest("b", 5)
                },
                &here
            ),
            "nobody knows whose it is"
        );
    }
}
