//! Tokens on disk, so that the next process need not ask for them: files of mode 0600 in a folder
//! of mode 0700. A file that cannot be read or written counts as missing. Two processes that write
//! at once both leave a whole file.

use super::private_file;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

#[derive(Debug, Clone)]
pub(crate) struct Cache {
    folder: PathBuf,
}

impl Cache {
    pub(crate) fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
        }
    }

    /// The file of a value. `what` is everything that identifies the value; the name of the file is
    /// a hash of it.
    pub(crate) fn path(&self, what: &[&str]) -> PathBuf {
        // The lengths keep the parts apart.
        let joined: Vec<String> = what
            .iter()
            .map(|word| format!("{}:{word}", word.len()))
            .collect();
        self.folder.join(format!(
            "{}.json",
            &blake3::hash(joined.concat().as_bytes()).to_hex()[..32]
        ))
    }

    pub(crate) fn get(&self, what: &[&str]) -> Option<Value> {
        let bytes = private_file::read(&self.path(what)).ok()??;
        serde_json::from_slice(&bytes).ok()
    }

    pub(crate) fn put(&self, what: &[&str], value: &Value) {
        if towline_host::filesystem::private_folder(&self.folder).is_ok() {
            let _ = towline_host::once::replace(&self.path(what), value.to_string().as_bytes());
        }
    }

    /// The folder of all files.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Removes the tokens of a sign-in.
    pub(crate) fn forget_login(&self, stamp: &str) {
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let held = private_file::read(&entry.path()).ok().flatten();
            let held: Option<Value> = held.and_then(|bytes| serde_json::from_slice(&bytes).ok());
            if held.is_some_and(|value| value["login"] == stamp) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    pub(crate) fn forget(&self, what: &[&str]) {
        let _ = fs::remove_file(self.path(what));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::fs::Permissions;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    #[test]
    fn the_cache_is_private_and_ignores_files_that_others_can_read() {
        let home = tempfile::tempdir().expect("a folder");
        let folder = home.path().join("azure");
        fs::create_dir(&folder).expect("made");
        fs::set_permissions(&folder, Permissions::from_mode(0o755)).expect("set");
        let cache = Cache::new(&folder);
        let what = ["token", "someone", "https://r"];
        assert_eq!(cache.get(&what), None);
        cache.put(&what, &json!({"a": 1}));
        let mode = |path: &Path| fs::metadata(path).expect("there").mode() & 0o777;
        let path = cache.path(&what);
        assert_eq!((mode(&folder), mode(&path)), (0o700, 0o600));
        assert_eq!(cache.get(&what), Some(json!({"a": 1})));
        assert_eq!(cache.get(&["token", "someonehttps://r", ""]), None);
        fs::set_permissions(&path, Permissions::from_mode(0o640)).expect("set");
        assert_eq!(cache.get(&what), None, "others may have read or written it");
        fs::set_permissions(&path, Permissions::from_mode(0o600)).expect("set");
        fs::write(&path, "torn {").expect("written");
        assert_eq!(cache.get(&what), None);
        cache.forget(&what);
        assert!(!path.exists());
        cache.forget(&what);
    }
}
