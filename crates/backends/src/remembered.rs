//! A cache of the facts of a cluster, in the state folder, for the next call.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use towline_wire::layout::StateFolder;

/// How long cached facts count as recent.
const FACTS_LIFETIME: Duration = Duration::from_secs(600);

/// Facts of one cluster, in memory and on disk.
#[derive(Debug)]
pub struct Remembered<T> {
    /// None if nothing is stored beyond this process.
    file: Option<PathBuf>,
    /// The configuration that they were fetched with: with another one they are not used.
    of: String,
    current: Mutex<Option<T>>,
}

/// The form on disk.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Stored<T> {
    of: String,
    site: T,
}

impl<T: Clone + Serialize + DeserializeOwned> Remembered<T> {
    pub fn new(state: &StateFolder, cluster: &str, of: String) -> Self {
        let remembered = Self {
            file: Some(state.cluster(cluster, "facts")),
            of,
            current: Mutex::new(None),
        };
        let recent = remembered.recent();
        *remembered.lock() = recent;
        remembered
    }

    /// Stores nothing on disk.
    pub const fn in_memory() -> Self {
        Self {
            file: None,
            of: String::new(),
            current: Mutex::new(None),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<T>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The facts that this process last learnt.
    pub fn current(&self) -> Option<T> {
        self.lock().clone()
    }

    /// The facts, if they are at most some minutes old.
    pub fn recent(&self) -> Option<T> {
        let Some(file) = &self.file else {
            return self.current();
        };
        let changed = std::fs::metadata(file).ok()?.modified().ok()?;
        (towline_host::clock::age(changed)? < FACTS_LIFETIME).then(|| self.stored())?
    }

    /// The facts that were last learnt, however long ago.
    pub fn stored(&self) -> Option<T> {
        let bytes = std::fs::read(self.file.as_ref()?).ok()?;
        let stored: Stored<T> = serde_json::from_slice(&bytes).ok()?;
        (stored.of == self.of).then_some(stored.site)
    }

    /// Remembers facts for this process.
    pub fn learn(&self, facts: T) {
        *self.lock() = Some(facts);
    }

    /// Remembers facts for this process and the next. A failed write is no error.
    pub fn keep(&self, facts: T) {
        if let (Some(file), Some(folder)) = (
            &self.file,
            self.file.as_ref().and_then(|file| file.parent()),
        ) {
            let stored = Stored {
                of: self.of.clone(),
                site: facts.clone(),
            };
            let _ = towline_host::filesystem::private_folder(folder)
                .and_then(|()| serde_json::to_vec(&stored).map_err(std::io::Error::other))
                .and_then(|bytes| towline_host::once::replace(file, &bytes));
        }
        self.learn(facts);
    }
}
