//! The data verbs on the real program: against a folder, Microsoft's blob service and an S3 server.
#![allow(
    clippy::unwrap_used,
    clippy::too_many_lines,
    clippy::disallowed_methods
)]

mod act;
mod azure;
mod faults;
mod folder;
mod hostile;
mod identity;
mod jobs;
mod listing;
mod marks;
mod paths;
mod refusals;
mod remove;
mod resume;
mod s3;
mod secrets;
mod snapshots;
mod ssh_folder;
mod url;
mod waiting;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use towline_testkit::Home;
use towline_testkit::campaign::noise;
use towline_testkit::real::{Account, Azurite};

/// A home with the folder datastore `nas` and the folder `data` in it, at `alice/data`.
fn home() -> (Home, PathBuf) {
    let home = Home::new(env!("CARGO_BIN_EXE_tow"));
    let nas = home.path("nas");
    fs::create_dir(&nas).unwrap();
    configure(&home, "");
    (home, nas.join("alice/data"))
}

/// `nas` and what else is given, as lines below `datastores:`.
fn configure(home: &Home, more: &str) {
    let nas = home.path("nas");
    home.configure(&format!(
        "datastores:\n  nas: {{kind: folder, path: \
        {}}}\n{more}folders:\n  data: {{datastore: nas, path: alice/data}}\n",
        nas.display()
    ));
}

/// The datastore `az` in a container of its own; the account's key is in `AZ_KEY`.
fn azure_home(container: &str) -> Home {
    let azurite = Azurite::shared();
    azurite.make_container(container);
    azure_home_at(azurite.first(), container)
}

fn azure_home_at(account: &Account, container: &str) -> Home {
    let home = Home::new(env!("CARGO_BIN_EXE_tow")).with("AZ_KEY", &account.key);
    fs::create_dir(home.path("nas")).unwrap();
    configure(
        &home,
        &format!(
            "  az: {{kind: azure_blob, account: {}, container: {container}, endpoint: '{}', \
                credential: {{account_key: env:AZ_KEY}}}}\n",
            account.name, account.endpoint
        ),
    );
    home
}

/// Every file below a folder with its bytes.
fn tree(root: &Path) -> BTreeMap<String, Vec<u8>> {
    fn walk(root: &Path, at: &Path, found: &mut BTreeMap<String, Vec<u8>>) {
        for entry in fs::read_dir(at).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(root, &path, found);
            } else if path.is_file() {
                found.insert(
                    path.strip_prefix(root)
                        .unwrap()
                        .to_string_lossy()
                        .into_owned(),
                    fs::read(&path).unwrap(),
                );
            }
        }
    }
    let mut found = BTreeMap::new();
    walk(root, root, &mut found);
    found
}

fn write(home: &Home, name: &str, bytes: &[u8]) -> PathBuf {
    let path = home.project().join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, bytes).unwrap();
    path
}

fn modified(path: &Path) -> (i64, i64) {
    let metadata = fs::metadata(path).unwrap();
    (metadata.mtime(), metadata.mtime_nsec())
}

/// Whether a transfer's journal has so many lines.
fn noted(home: &Home, lines: usize) -> bool {
    let journals = fs::read_dir(home.state().root().join("transfers"))
        .into_iter()
        .flatten()
        .flatten();
    journals.into_iter().any(|entry| {
        fs::read_to_string(entry.path())
            .unwrap_or_default()
            .lines()
            .count()
            >= lines
    })
}

/// The one transfer of an answer.
fn only(value: &serde_json::Value) -> &serde_json::Value {
    &value["transfers"][0]
}
