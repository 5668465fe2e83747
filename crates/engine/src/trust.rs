//! The project configurations that the user trusts. A folder is trusted with the content that its
//! files had at that time: when they change, the user is asked again.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use towline_core::{Error, Result};

/// The file beside the user's configuration that stores this.
const TRUSTED_FILE: &str = "trusted.json";
const TRUSTED_FILE_VERSION: u32 = 1;

#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Eq)]
struct Record {
    version: u32,
    /// Digests of the trusted content, by folder and by kind of file.
    folders: BTreeMap<String, BTreeMap<String, String>>,
}

/// The trusted folders of this user.
#[derive(Debug, Clone)]
pub struct Trusted {
    file: Option<PathBuf>,
}

/// The kind of files in a folder that must be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holding {
    /// `towline.yaml`.
    Project,
    /// ACT's files.
    Act,
}

impl Holding {
    const fn word(self) -> &'static str {
        match self {
            Self::Project => "towline.yaml",
            Self::Act => "aux_data/aml",
        }
    }
}

/// The digest of files: their names and all their bytes.
pub fn digest<'a>(files: impl IntoIterator<Item = (&'a Path, &'a [u8])>) -> String {
    let mut hasher = blake3::Hasher::new();
    for (name, bytes) in files {
        for part in [name.as_os_str().as_encoded_bytes(), bytes] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
    }
    hasher.finalize().to_hex().to_string()
}

impl Trusted {
    /// The record of the user with this configuration folder; without one nothing is trusted.
    pub fn of(user_folder: Option<&Path>) -> Self {
        Self {
            file: user_folder.map(|folder| folder.join(TRUSTED_FILE)),
        }
    }

    pub fn is(&self, folder: &Path, holding: Holding, digest: &str) -> Result<bool> {
        let record = self.read()?;
        Ok(record
            .folders
            .get(&name_of(folder))
            .and_then(|held| held.get(holding.word()))
            .is_some_and(|known| known == digest))
    }

    pub fn add(&self, folder: &Path, holding: Holding, digest: &str) -> Result<()> {
        let mut record = self.read()?;
        record
            .folders
            .entry(name_of(folder))
            .or_default()
            .insert(holding.word().to_owned(), digest.to_owned());
        self.write(&record)
    }

    /// `false` when nothing of it was trusted.
    pub fn remove(&self, folder: &Path) -> Result<bool> {
        let mut record = self.read()?;
        let was = record.folders.remove(&name_of(folder)).is_some();
        if was {
            self.write(&record)?;
        }
        Ok(was)
    }

    fn read(&self) -> Result<Record> {
        let none = Record {
            version: TRUSTED_FILE_VERSION,
            folders: BTreeMap::new(),
        };
        let Some(file) = &self.file else {
            return Ok(none);
        };
        let failed = |what: &str| {
            Error::refused(format!("{} {what}", file.display()))
                .hint("it says which folders are trusted; remove it to start over")
        };
        match std::fs::read(file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(none),
            Err(error) => Err(failed("cannot be read").source_error(error)),
            Ok(bytes) => {
                if let Some(why) = towline_host::owner::distrust(file).ok().flatten() {
                    return Err(failed(&why));
                }
                let record: Record = serde_json::from_slice(&bytes)
                    .map_err(|error| failed("is damaged").source_error(error))?;
                if record.version == TRUSTED_FILE_VERSION {
                    Ok(record)
                } else {
                    Err(failed("was written by another version of tow"))
                }
            }
        }
    }

    fn write(&self, record: &Record) -> Result<()> {
        let file = self.file.as_ref().ok_or_else(|| {
            Error::config("neither HOME nor XDG_CONFIG_HOME is set")
                .hint("set HOME to your home folder")
        })?;
        let failed = |error: io::Error| {
            Error::from_io(format!("{} cannot be written", file.display()), error)
        };
        if let Some(folder) = file.parent() {
            std::fs::create_dir_all(folder).map_err(failed)?;
        }
        let bytes = serde_json::to_vec_pretty(record)
            .map_err(|error| Error::bug("it cannot be written").source_error(error))?;
        towline_host::once::replace(file, &bytes).map_err(failed)
    }
}

fn name_of(folder: &Path) -> String {
    folder
        .canonicalize()
        .unwrap_or_else(|_| folder.to_owned())
        .to_string_lossy()
        .into_owned()
}

#[cfg(test)]
#[path = "trust_golden_tests.rs"]
mod golden_tests;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_very_content_is_trusted_and_only_there() {
        let home = tempfile::tempdir().expect("a folder");
        let (one, other) = (home.path().join("one"), home.path().join("other"));
        std::fs::create_dir_all(&one)
            .and_then(|()| std::fs::create_dir_all(&other))
            .expect("folders");
        let trusted = Trusted::of(Some(home.path()));
        let of = |text: &str| digest([(Path::new("towline.yaml"), text.as_bytes())]);
        assert!(
            !trusted
                .is(&one, Holding::Project, &of("a"))
                .expect("it can be asked")
        );
        trusted
            .add(&one, Holding::Project, &of("a"))
            .expect("it can be written");
        assert!(
            trusted
                .is(&one, Holding::Project, &of("a"))
                .expect("it can be asked")
        );
        assert!(
            !trusted
                .is(&one, Holding::Project, &of("b"))
                .expect("it can be asked"),
            "changed"
        );
        assert!(
            !trusted
                .is(&other, Holding::Project, &of("a"))
                .expect("it can be asked"),
            "elsewhere"
        );
        assert!(
            !trusted
                .is(&one, Holding::Act, &of("a"))
                .expect("it can be asked"),
            "another file"
        );
        assert!(
            trusted.remove(&one).expect("it can be written")
                && !trusted.remove(&one).expect("it can be written")
        );
        assert!(
            !trusted
                .is(&one, Holding::Project, &of("a"))
                .expect("it can be asked")
        );
        std::fs::write(home.path().join(TRUSTED_FILE), "{").expect("written");
        assert!(
            trusted.is(&one, Holding::Project, &of("a")).is_err(),
            "damage is no agreement"
        );
    }

    #[test]
    fn digests_tell_names_from_contents() {
        let of = |files: &[(&str, &str)]| {
            digest(
                files
                    .iter()
                    .map(|(name, text)| (Path::new(*name), text.as_bytes())),
            )
        };
        assert_ne!(of(&[("a", "bc")]), of(&[("ab", "c")]));
        assert_ne!(of(&[("a", "b"), ("c", "d")]), of(&[("a", "bcd")]));
    }
}
