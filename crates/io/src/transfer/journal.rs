//! The journal of a copy in blocks, for stores that cannot say how far a copy came.
//!
//! The first line says what is copied. One line for each block follows, written when the block is
//! safe. A line that was cut short is ignored.

use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

/// An older journal is removed. The services forget the blocks of an abandoned upload after a week.
const JOURNAL_MAX_AGE: Duration = Duration::from_secs(30 * 24 * 3600);

fn forget_old(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let age = entry
            .metadata()
            .and_then(|meta| meta.modified())
            .map(|changed| towline_host::clock::age(changed).unwrap_or_default());
        if age.is_ok_and(|age| age > JOURNAL_MAX_AGE) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// The subject of a copy. A journal is used again only if all of this is the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Subject {
    pub(super) version: u32,
    pub(super) source: String,
    pub(super) source_version: String,
    pub(super) target: String,
    pub(super) size: u64,
    pub(super) block: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Record {
    Subject(Subject),
    Upload(String),
    Block {
        index: u32,
        value: String,
        tag: String,
    },
}

/// A block that was copied: its value, and its name at the target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Done {
    pub(super) value: [u8; 32],
    pub(super) tag: String,
}

#[derive(Debug)]
pub(super) struct Journal {
    path: PathBuf,
    file: Mutex<File>,
    pub(super) upload: Option<String>,
    pub(super) done: HashMap<u32, Done>,
}

impl Journal {
    /// Opens the journal of this subject: an earlier one of the same subject, else a new one.
    pub(super) fn open(folder: &Path, subject: &Subject) -> io::Result<Self> {
        towline_host::filesystem::private_folder(folder)?;
        let name =
            blake3::hash(format!("{}\n{}", subject.target, subject.source).as_bytes()).to_hex();
        let path = folder.join(format!("{}.journal", &name[..32]));
        let text = std::fs::read(&path).unwrap_or_default();
        let Replayed {
            subject: known,
            upload,
            done,
            whole_bytes,
        } = replay(&text);
        let options = |truncate: bool| {
            File::options()
                .create(true)
                .write(true)
                .truncate(truncate)
                .mode(0o600)
                .open(&path)
        };
        if known.as_ref() == Some(subject) {
            let file = options(false)?;
            // A torn line is cut off, so that the next line begins on its own.
            file.set_len(whole_bytes as u64)?;
            drop(file);
            let file = File::options().append(true).open(&path)?;
            return Ok(Self {
                path,
                file: Mutex::new(file),
                upload,
                done,
            });
        }
        forget_old(folder);
        drop(options(true)?);
        let file = File::options().append(true).open(&path)?;
        let journal = Self {
            path,
            file: Mutex::new(file),
            upload: None,
            done: HashMap::new(),
        };
        journal.append(&Record::Subject(subject.clone()))?;
        Ok(journal)
    }

    fn append(&self, line: &Record) -> io::Result<()> {
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        self.file
            .lock()
            .expect("no panic while held")
            .write_all(&text)
    }

    pub(super) fn note_upload(&self, id: &str) -> io::Result<()> {
        self.append(&Record::Upload(id.to_owned()))
    }

    pub(super) fn note_block(&self, index: u32, value: [u8; 32], tag: &str) -> io::Result<()> {
        self.append(&Record::Block {
            index,
            value: blake3::Hash::from_bytes(value).to_hex().to_string(),
            tag: tag.to_owned(),
        })
    }

    /// Removes the journal of a copy that is whole, or can never be.
    pub(super) fn remove(self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// The state after the lines of a journal.
#[derive(Default)]
struct Replayed {
    subject: Option<Subject>,
    upload: Option<String>,
    done: HashMap<u32, Done>,
    /// The length of the whole lines.
    whole_bytes: usize,
}

/// Reads the lines up to the first that is torn or unknown.
fn replay(text: &[u8]) -> Replayed {
    let mut replayed = Replayed::default();
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let Some(body) = line.strip_suffix(b"\n") else {
            break;
        };
        match serde_json::from_slice(body) {
            Ok(Record::Subject(subject)) => replayed.subject = Some(subject),
            Ok(Record::Upload(id)) => {
                replayed.upload = Some(id);
                replayed.done.clear();
            }
            Ok(Record::Block { index, value, tag }) => {
                if let Ok(value) = blake3::Hash::from_hex(&value) {
                    let value = *value.as_bytes();
                    replayed.done.insert(index, Done { value, tag });
                }
            }
            Err(_) => break,
        }
        replayed.whole_bytes += line.len();
    }
    replayed
}

#[cfg(test)]
#[path = "journal_golden_tests.rs"]
mod golden_tests;

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn subject() -> Subject {
        Subject {
            version: 1,
            source: "s".into(),
            source_version: "v".into(),
            target: "t".into(),
            size: 10,
            block: 4,
        }
    }

    #[test]
    fn a_tail_torn_at_any_byte_loses_only_its_line() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = {
            let journal = Journal::open(folder.path(), &subject()).expect("opens");
            journal.note_upload("id").expect("noted");
            for index in 0..3 {
                journal
                    .note_block(index, [u8::try_from(index).expect("small"); 32], "tag\n\"")
                    .expect("noted");
            }
            journal.path.clone()
        };
        assert_eq!(
            std::fs::metadata(&path)
                .expect("there")
                .permissions()
                .mode()
                & 0o777,
            0o600
        );
        let whole = std::fs::read(&path).expect("read");
        for cut in 0..=whole.len() {
            std::fs::write(&path, &whole[..cut]).expect("written");
            let journal = Journal::open(folder.path(), &subject()).expect("opens");
            let lines = String::from_utf8_lossy(&whole[..cut]).matches('\n').count();
            assert_eq!(journal.done.len(), lines.saturating_sub(2), "cut at {cut}");
            assert_eq!(journal.upload.is_some(), lines >= 2, "cut at {cut}");
            journal.note_block(9, [9; 32], "t").expect("noted");
            drop(journal);
            let again = Journal::open(folder.path(), &subject()).expect("opens");
            assert_eq!(
                again.done.get(&9).map(|done| done.tag.as_str()),
                Some("t"),
                "cut at {cut}"
            );
        }
    }

    #[test]
    fn old_journals_are_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let old = folder.path().join("old.journal");
        let month = std::time::UNIX_EPOCH
            + Duration::from_secs(towline_host::clock::now().seconds().unsigned_abs())
            - JOURNAL_MAX_AGE
            - Duration::from_secs(60);
        File::create(&old)
            .and_then(|file| file.set_modified(month))
            .expect("an old journal");
        std::fs::write(folder.path().join("new.journal"), "").expect("a new one");
        forget_old(folder.path());
        assert!(!old.exists() && folder.path().join("new.journal").exists());
    }

    #[test]
    fn another_source_begins_anew() {
        let folder = tempfile::tempdir().expect("a folder");
        Journal::open(folder.path(), &subject())
            .expect("opens")
            .note_block(0, [0; 32], "")
            .expect("noted");
        assert_eq!(
            Journal::open(folder.path(), &subject())
                .expect("opens")
                .done
                .len(),
            1
        );
        let changed = Subject {
            source_version: "w".into(),
            ..subject()
        };
        assert!(
            Journal::open(folder.path(), &changed)
                .expect("opens")
                .done
                .is_empty()
        );
        Journal::open(folder.path(), &changed)
            .expect("opens")
            .remove();
        assert_eq!(std::fs::read_dir(folder.path()).expect("there").count(), 0);
    }
}
