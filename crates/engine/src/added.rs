//! Entries that verbs add to the configuration, each in a small YAML file of its own, in a folder
//! beside the user's file. Towline never writes the user's file itself.

use crate::layers::{read_yaml, user_folder};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use towline_core::yaml;
use towline_core::{Error, Result};

/// One entry, and its file.
#[derive(Debug, Clone)]
pub struct Added<T> {
    pub name: String,
    pub value: T,
    pub file: PathBuf,
}

/// The files of one kind of entry: `tunnels`, `workspaces`.
#[derive(Debug, Clone)]
pub struct AddedFiles(PathBuf);

impl AddedFiles {
    pub fn new(environment: &[(String, String)], kind: &str) -> Result<Self> {
        let folder = user_folder(environment)
            .ok_or_else(|| Error::config("neither HOME nor XDG_CONFIG_HOME is set"))?;
        Ok(Self(folder.join(kind)))
    }

    /// The file of that name, whether it exists or not. The caller has checked the name.
    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(format!("{name}.yaml"))
    }

    /// All entries that can be read, by name, and the errors of the others.
    pub fn load<T: DeserializeOwned>(&self) -> (Vec<Added<T>>, Vec<Error>) {
        let entries = fs::read_dir(&self.0).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries
            .filter_map(|entry| {
                entry
                    .file_name()
                    .to_str()?
                    .strip_suffix(".yaml")
                    .map(str::to_owned)
            })
            .collect();
        names.retain(|name| !name.starts_with('.'));
        names.sort();
        let (mut all, mut wrong) = (Vec::new(), Vec::new());
        for name in names {
            match self.read(&name) {
                Ok(value) => all.push(Added {
                    file: self.file(&name),
                    name,
                    value,
                }),
                Err(error) => wrong.push(error),
            }
        }
        (all, wrong)
    }

    pub fn read<T: DeserializeOwned>(&self, name: &str) -> Result<T> {
        Ok(yaml::decode(&read_yaml(&self.file(name))?)?)
    }

    /// Writes an entry under a new name; `None` if the name is in use.
    pub fn create(&self, name: &str, value: &impl Serialize) -> Result<Option<PathBuf>> {
        let made = self.written(name, value, towline_host::once::create)?;
        Ok(made.then(|| self.file(name)))
    }

    /// Writes an entry in place of the present one, whole or not at all.
    pub fn replace(&self, name: &str, value: &impl Serialize) -> Result<PathBuf> {
        self.written(name, value, towline_host::once::replace)?;
        Ok(self.file(name))
    }

    fn written<T>(
        &self,
        name: &str,
        value: &impl Serialize,
        write: impl FnOnce(&std::path::Path, &[u8]) -> io::Result<T>,
    ) -> Result<T> {
        let file = self.file(name);
        let failed = |error| Error::from_io(format!("{} cannot be written", file.display()), error);
        let value = serde_json::to_value(value)
            .map_err(io::Error::other)
            .map_err(failed)?;
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.0)
            .map_err(failed)?;
        write(&file, yaml::write(&value).as_bytes()).map_err(failed)
    }
}
