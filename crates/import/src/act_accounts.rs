//! Storage accounts of ACT: each file is a datastore. Its key or SAS stays in the file, or the user
//! stores it in the keyring.

use super::act::Work;
use super::act_file::named;
use super::section::Section;
use super::{Report, read_tree};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use towline_core::Result;
use towline_core::yaml::Node;

/// The place that a credential is read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// From the account file.
    File,
    /// From the keyring, under the datastore's name.
    Keyring,
}

/// The datastores so far, by account file. One file is one datastore for all clusters.
#[derive(Debug)]
pub struct Accounts {
    place: Place,
    names: BTreeMap<PathBuf, String>,
}

impl Accounts {
    /// Credentials are read from the account files.
    pub const fn in_place() -> Self {
        Self {
            place: Place::File,
            names: BTreeMap::new(),
        }
    }

    /// The user will store credentials in the keyring.
    pub(super) const fn for_import() -> Self {
        Self {
            place: Place::Keyring,
            names: BTreeMap::new(),
        }
    }

    /// Puts the datastore of an account file into the configuration; returns its name.
    pub(super) fn datastore(
        &mut self,
        value: &Node,
        key: &str,
        work: &mut Work<'_>,
    ) -> Result<String> {
        let file = named(value, key, work.root, work.read)?;
        let tree = read_tree(&file, work.read)?;
        let (config, report) = (&mut *work.config, &mut *work.report);
        let account = Section::new(&tree, "")?;
        let name = self.name(&file, report);
        report.mapped(key, &value.at, format!("datastores.{name}"));
        let mut put = |path: &[&str], node: Node| {
            config.put(&[&["datastores", name.as_str()], path].concat(), node);
        };
        put(&["kind"], Node::scalar("azure_blob", tree.at.clone()));
        for (theirs, ours) in [("account_name", "account"), ("container_name", "container")] {
            if let Some(text) = account.text(theirs)? {
                put(&[ours], Node::scalar(text, account.place(theirs).clone()));
                report.mapped(
                    theirs,
                    account.place(theirs),
                    format!("datastores.{name}.{ours}"),
                );
            } else {
                report.warn(format!(
                    "{} has no `{theirs}`: write `{ours}` under `datastores.{name}`",
                    file.display()
                ));
            }
        }
        self.credential(&account, &name, &file, config, report);
        for (other, value) in account.entries() {
            if value.is_null() {
                report.empty(other, account.key_place(other));
            }
        }
        for (other, value) in account
            .rest()
            .into_iter()
            .filter(|(other, _)| !["sas_token", "account_key"].contains(other))
        {
            report.not_mapped(other, &value.at, "no key of an account file");
        }
        Ok(name)
    }

    /// Puts references to the credentials of an account, or the login of the Azure CLI if it has
    /// none.
    fn credential(
        &self,
        account: &Section<'_>,
        name: &str,
        file: &Path,
        config: &mut Node,
        report: &mut Report,
    ) {
        let mut put =
            |path: &[&str], node: Node| config.put(&[&["datastores", name], path].concat(), node);
        let keys = [("sas_token", "sas"), ("account_key", "account_key")];
        let mut given: Vec<(&str, &str)> = keys
            .into_iter()
            .filter(|(theirs, _)| account.text(theirs).is_ok_and(|text| text.is_some()))
            .collect();
        if self.place != Place::File && given.len() > 1 {
            report.not_needed(
                "account_key",
                account.place("account_key"),
                "the SAS is used; the key was not copied",
            );
            given.truncate(1);
        }
        for (theirs, ours) in &given {
            let reference = match self.place {
                Place::File => format!("yaml:{}#{theirs}", file.display()),
                Place::Keyring => format!("keyring:{name}"),
            };
            put(
                &["credential", ours],
                Node::scalar(reference, account.place(theirs).clone()),
            );
            report.mapped(
                *theirs,
                account.place(theirs),
                format!(
                    "datastores.{name}.credential.{ours}, a reference; the value stays where it is"
                ),
            );
            report.store(name, &format!("`{theirs}` of {}", file.display()));
        }
        if given.is_empty() {
            put(
                &["credential"],
                Node::scalar("azure_cli", account.at().clone()),
            );
            report.warn(format!(
                "{} has neither `sas_token` nor `account_key`: the Azure CLI's login is used",
                file.display()
            ));
        }
    }

    /// The name of a datastore, from the stem of its file: `vigeastblob_account.yaml` is `vigeastblob`.
    fn name(&mut self, file: &Path, report: &mut Report) -> String {
        if let Some(name) = self.names.get(file) {
            return name.clone();
        }
        let stem = file
            .file_stem()
            .map(|stem| stem.to_string_lossy().into_owned())
            .unwrap_or_default();
        let stem = stem
            .strip_suffix("_account")
            .filter(|stem| !stem.is_empty())
            .unwrap_or(&stem);
        let plain: String = stem
            .chars()
            .map(|c| {
                if c.is_ascii_alphanumeric() || c == '_' || c == '-' {
                    c
                } else {
                    '-'
                }
            })
            .collect();
        let mut name = plain.clone();
        let mut number = 2;
        while self.names.values().any(|known| *known == name) {
            name = format!("{plain}-{number}");
            number += 1;
        }
        if let Some((other, _)) = self.names.iter().find(|(_, known)| **known == plain) {
            report.warn(format!(
                "the datastore of {} is `datastores.{name}`: `{plain}` is that of {}",
                file.display(),
                other.display()
            ));
        }
        self.names.insert(file.to_owned(), name.clone());
        name
    }
}
