//! What verbs add to the configuration: each thing in a small YAML file of its own, in a folder
//! beside the user's file. That file itself is the user's, and never written.

use crate::layers::{read_yaml, user_folder};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use towline_core::yaml;
use towline_core::{Error, Result};

/// One thing, and the file it stands in.
#[derive(Debug, Clone)]
pub struct Added<T> {
    pub name: String,
    pub value: T,
    pub file: PathBuf,
}

/// The files of one kind of thing: `tunnels`, `workspaces`.
#[derive(Debug, Clone)]
pub struct AddedFiles(PathBuf);

impl AddedFiles {
    pub fn new(environment: &[(String, String)], kind: &str) -> Result<Self> {
        let folder = user_folder(environment)
            .ok_or_else(|| Error::config("neither HOME nor XDG_CONFIG_HOME is set"))?;
        Ok(Self(folder.join(kind)))
    }

    /// Where the one of that name stands, or would. The name is checked by whoever knows what names
    /// are.
    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(format!("{name}.yaml"))
    }

    /// All that can be read, by name, and what is wrong with the others.
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

    /// Writes one under a name that nobody has; `None` where somebody does.
    pub fn create(&self, name: &str, value: &impl Serialize) -> Result<Option<PathBuf>> {
        let made = self.written(name, value, towline_host::once::create)?;
        Ok(made.then(|| self.file(name)))
    }

    /// Writes one, whole or not at all, over what was there.
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
        let failed = |error| {
            Error::refused(format!("{} cannot be written", file.display())).source_error(error)
        };
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
