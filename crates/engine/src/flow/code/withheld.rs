//! Files of a code tree that hold credentials. The configuration refers to them, and no snapshot
//! holds them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use towline_core::config::{Cluster, Config, Credential};
use towline_host::surroundings;

/// Where ACT and qd keep accounts of stores.
const ACCOUNTS_FOLDER: &str = "aux_data/configs";
/// Where the MSRA Intern's Toolkit keeps the user's entries, tokens among them.
const TOOLKIT_FOLDER: &str = ".msra_intern_s_toolkit";
/// A file of accounts is small.
const MAX_ACCOUNT_FILE_BYTES: u64 = 1 << 20;

/// The files below `root` that credentials of the configuration refer to, and those of other tools.
pub(super) fn files(config: &Config, root: &Path) -> BTreeSet<PathBuf> {
    let credentials = config
        .datastores
        .values()
        .filter_map(|store| store.credential.as_ref())
        .chain(config.clusters.values().filter_map(Cluster::credential));
    let values = credentials.filter_map(|credential| match credential {
        Credential::Map(map) => Some(map.values()),
        Credential::Word(_) => None,
    });
    let referred = values.flatten().filter_map(|value| file_of(value));
    let accounts = std::fs::read_dir(root.join(ACCOUNTS_FOLDER))
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| holds_keys(path));
    let toolkit = Some(root.join(TOOLKIT_FOLDER)).filter(|folder| folder.is_dir());
    referred
        .chain(accounts)
        .chain(toolkit)
        .filter(|path| path.starts_with(root))
        .collect()
}

/// The file of `file:PATH` or `yaml:PATH#KEY`.
fn file_of(reference: &str) -> Option<PathBuf> {
    let path = reference.strip_prefix("file:").or_else(|| {
        reference
            .strip_prefix("yaml:")?
            .rsplit_once('#')
            .map(|(path, _)| path)
    })?;
    match path.strip_prefix("~/") {
        Some(below) => surroundings::home().map(|home| home.join(below)),
        None => Some(PathBuf::from(path)),
    }
}

fn holds_keys(path: &Path) -> bool {
    let is_small = std::fs::metadata(path)
        .is_ok_and(|meta| meta.is_file() && meta.len() <= MAX_ACCOUNT_FILE_BYTES);
    let text = if is_small {
        std::fs::read(path).unwrap_or_default()
    } else {
        Vec::new()
    };
    let text = String::from_utf8_lossy(&text);
    ["account_key", "sas_token", "password", "secret"]
        .iter()
        .any(|word| text.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_file_that_names_a_key_holds_keys() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = |name: &str, text: &str, padding: u64| {
            let path = folder.path().join(name);
            let size = usize::try_from(padding).expect("small");
            std::fs::write(&path, format!("{text}{}", " ".repeat(size))).expect("written");
            holds_keys(&path)
        };
        assert!(file("keys", "account_key: x", 0));
        assert!(!file("plain", "lr: 1", 0));
        assert!(!file("large", "account_key: x", MAX_ACCOUNT_FILE_BYTES));
        assert!(!holds_keys(folder.path()));
    }
}
