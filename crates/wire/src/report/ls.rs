//! The answers of `tow ls`.

use super::time::Time;
use schemars::JsonSchema;
use serde::Serialize;

/// What a datastore holds at a path.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Listing {
    /// The path, as it is shown.
    pub path: String,
    /// The datastore.
    pub store: String,
    /// The names of folders there.
    pub folders: Vec<String>,
    /// The files there.
    pub objects: Vec<StoredObject>,
}

/// A file in a datastore.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct StoredObject {
    /// Its name below the path.
    pub name: String,
    /// Its bytes.
    pub size: u64,
    /// When it was last changed; null if the datastore does not say.
    pub changed: Option<Time>,
}

/// The folders and datastores that are configured.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ConfiguredStores {
    /// The folders.
    pub folders: Vec<ConfiguredFolder>,
    /// The datastores.
    pub datastores: Vec<ConfiguredStore>,
}

/// A folder that has the same path here and in a datastore.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ConfiguredFolder {
    /// Its name, below the code root.
    pub name: String,
    /// The datastore.
    pub datastore: String,
    /// Its path in the datastore.
    pub path: String,
}

/// A datastore.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ConfiguredStore {
    /// Its name.
    pub name: String,
    /// Its kind: `azure_blob`, `s3`, `folder`, …
    pub kind: String,
    /// Its account, container, bucket and path, as far as it has them.
    pub place: String,
}
