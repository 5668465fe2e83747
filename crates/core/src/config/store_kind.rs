//! The kinds of datastores.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The kind of a datastore. Configurations and stored plans have it as a word.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum StoreKind {
    /// A container of Azure Blob Storage.
    AzureBlob,
    /// A bucket of S3.
    S3,
    /// A folder of the machine that opens it.
    Folder,
    /// A folder of another machine, reached by ssh.
    SshFolder,
    /// A datastore that only an Azure ML workspace defines; its name there identifies it. Plans
    /// have it, and no configuration can name it.
    Azureml,
    /// A kind that this version does not know. A newer version may have written it, so it is read,
    /// and refused only when the store is opened.
    Unknown(String),
}

impl StoreKind {
    /// The kinds that a configuration can name.
    pub const CONFIGURABLE: [Self; 4] = [Self::AzureBlob, Self::S3, Self::Folder, Self::SshFolder];

    /// The word of the configuration.
    pub fn word(&self) -> &str {
        match self {
            Self::AzureBlob => "azure_blob",
            Self::S3 => "s3",
            Self::Folder => "folder",
            Self::SshFolder => "ssh_folder",
            Self::Azureml => "azureml",
            Self::Unknown(word) => word,
        }
    }
}

impl Default for StoreKind {
    fn default() -> Self {
        Self::Unknown(String::new())
    }
}

impl fmt::Display for StoreKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl From<String> for StoreKind {
    fn from(word: String) -> Self {
        let mut known = Self::CONFIGURABLE.into_iter().chain([Self::Azureml]);
        known
            .find(|kind| kind.word() == word)
            .unwrap_or(Self::Unknown(word))
    }
}

impl From<StoreKind> for String {
    fn from(kind: StoreKind) -> Self {
        kind.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_stored_as_its_word_and_read_back() {
        let unknown = StoreKind::Unknown("gcs".to_owned());
        for (kind, stored) in [
            (StoreKind::AzureBlob, r#""azure_blob""#),
            (StoreKind::S3, r#""s3""#),
            (StoreKind::Folder, r#""folder""#),
            (StoreKind::SshFolder, r#""ssh_folder""#),
            (StoreKind::Azureml, r#""azureml""#),
            (unknown, r#""gcs""#),
            (StoreKind::default(), r#""""#),
        ] {
            assert_eq!(serde_json::to_string(&kind).expect("it encodes"), stored);
            let read: StoreKind = serde_json::from_str(stored).expect("it is read");
            assert_eq!(read, kind, "{stored}");
        }
    }

    #[test]
    fn a_word_in_other_letters_is_another_kind() {
        for word in ["Folder", " folder", "azure-blob"] {
            let kind = StoreKind::from(word.to_owned());
            assert_eq!(kind, StoreKind::Unknown(word.to_owned()));
        }
    }
}
