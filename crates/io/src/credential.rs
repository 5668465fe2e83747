//! Credentials of the configuration, and the secrets that they refer to.

use crate::far_folder::Route;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use towline_core::config::Credential;
use towline_core::redact::Secret;
use towline_core::suggest::did_you_mean;
use towline_core::yaml::Node;
use towline_core::{Error, Result};

/// How references are looked up: environment variables, the keyring, files, other hosts.
pub struct Lookup<'a> {
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    pub keyring: &'a dyn Fn(&str) -> Option<Secret>,
    /// The folder that `~` stands for in `file:` and `yaml:`.
    pub home: Option<&'a Path>,
    /// How a host is reached, given its name and its ssh configuration.
    pub reach: &'a dyn Fn(&str, Option<&str>) -> Result<Route>,
    /// Called with warnings about risky credentials: lines for people, without any secret.
    pub notice: &'a dyn Fn(&str),
}

/// For callers that have warned the user already, or have no user.
pub const fn no_notice(_: &str) {}

/// For callers that reach no other machine.
pub fn no_reach(host: &str, _: Option<&str>) -> Result<Route> {
    Err(Error::refused(format!(
        "`{host}` cannot be reached from here"
    )))
}

impl std::fmt::Debug for Lookup<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Lookup")
    }
}

#[derive(Debug, Clone)]
pub enum AzureCredential {
    /// A SAS, with the account's key if one is given: the key can sign addresses for others, a SAS
    /// cannot.
    Sas(Secret, Option<Secret>),
    Key(Secret),
    Cli,
    Managed(Identity),
    Principal {
        tenant_id: String,
        client_id: String,
        client_secret: Secret,
    },
}

/// A managed identity. Client id and address both have defaults.
#[derive(Debug, Clone, Default)]
pub struct Identity {
    pub id: Option<String>,
    pub endpoint: Option<String>,
}

#[derive(Debug, Clone)]
pub struct S3Credential {
    pub access_key_id: Secret,
    pub secret_access_key: Secret,
    pub session_token: Option<Secret>,
}

/// Credentials of an `azure_blob` store that are one word.
const AZURE_WORDS: [&str; 2] = ["azure_cli", "managed_identity"];
/// Keys of any form of an `azure_blob` credential.
const AZURE_KEYS: [&str; 6] = [
    "sas",
    "account_key",
    "managed_identity",
    "tenant_id",
    "client_id",
    "client_secret",
];
/// Keys of an `s3` credential.
const S3_KEYS: [&str; 3] = ["access_key_id", "secret_access_key", "session_token"];

impl Lookup<'_> {
    /// The credential of an `azure_blob` store. `at` names the store in messages.
    pub fn azure(&self, at: &str, credential: Option<&Credential>) -> Result<AzureCredential> {
        let known = "azure_cli, managed_identity, {sas: …}, {account_key: …}, both, \
            {managed_identity: CLIENT_ID} or {tenant_id, client_id, client_secret}";
        let map = match credential {
            None => {
                return Err(Error::config(format!("{at} has no `credential`"))
                    .hint(format!("write one of {known}")));
            }
            Some(Credential::Word(word)) => {
                return match word.as_str() {
                    "azure_cli" => Ok(AzureCredential::Cli),
                    "managed_identity" => Ok(AzureCredential::Managed(self.identity(None))),
                    // The value may be a secret. It is repeated only if it is close to a known
                    // word.
                    other => Err(
                        Error::config(format!("{at}: `credential` is none of {known}"))
                            .maybe_hint(did_you_mean(other, AZURE_WORDS)),
                    ),
                };
            }
            Some(Credential::Map(map)) => map,
        };
        let get = |name: &str| map.get(name).map(String::as_str);
        let only = |names: &[&str]| known_keys(at, map.keys(), names, &AZURE_KEYS);
        match (
            get("sas"),
            get("account_key"),
            get("managed_identity"),
            get("client_secret"),
        ) {
            (Some(sas), key, ..) => {
                only(&["sas", "account_key"])?;
                // Both are mostly in one file, and one warning about it is enough.
                let quiet = Lookup {
                    notice: &no_notice,
                    ..*self
                };
                let key = key
                    .map(|key| quiet.secret(at, "account_key", key))
                    .transpose()?;
                Ok(AzureCredential::Sas(self.secret(at, "sas", sas)?, key))
            }
            (_, Some(key), ..) => only(&["account_key"])
                .and_then(|()| self.secret(at, "account_key", key))
                .map(AzureCredential::Key),
            (_, _, Some(id), _) => only(&["managed_identity"])
                .map(|()| AzureCredential::Managed(self.identity(Some(id)))),
            (.., Some(secret)) => {
                only(&["tenant_id", "client_id", "client_secret"])?;
                let need = |name: &str| {
                    get(name)
                        .map(str::to_owned)
                        .ok_or_else(|| Error::config(format!("{at}: `credential` lacks `{name}`")))
                };
                let client_secret = self.secret(at, "client_secret", secret)?;
                Ok(AzureCredential::Principal {
                    tenant_id: need("tenant_id")?,
                    client_id: need("client_id")?,
                    client_secret,
                })
            }
            _ => {
                only(&[])?;
                Err(Error::config(format!("{at}: `credential` is empty"))
                    .hint(format!("write one of {known}")))
            }
        }
    }

    fn identity(&self, id: Option<&str>) -> Identity {
        Identity {
            id: id.map(str::to_owned),
            endpoint: (self.variable)("IDENTITY_ENDPOINT")
                .or_else(|| (self.variable)("MSI_ENDPOINT")),
        }
    }

    /// The credential of an `s3` store; `None` means the standard variables and roles.
    pub fn s3(&self, at: &str, credential: Option<&Credential>) -> Result<Option<S3Credential>> {
        let map = match credential {
            None => return Ok(None),
            Some(Credential::Word(_)) => {
                let error = Error::config(format!(
                    "{at}: `credential` is a word, where {{access_key_id: …, secret_access_key: \
                        …}} is expected"
                ));
                return Err(error
                    .hint("leave it out to use the standard AWS variables or the machine's role"));
            }
            Some(Credential::Map(map)) => map,
        };
        known_keys(at, map.keys(), &S3_KEYS, &S3_KEYS)?;
        let need = |name: &'static str| {
            let reference = map
                .get(name)
                .ok_or_else(|| Error::config(format!("{at}: `credential` lacks `{name}`")))?;
            self.secret(at, name, reference)
        };
        let session_token = map
            .get("session_token")
            .map(|reference| self.secret(at, "session_token", reference))
            .transpose()?;
        Ok(Some(S3Credential {
            access_key_id: need("access_key_id")?,
            secret_access_key: need("secret_access_key")?,
            session_token,
        }))
    }

    /// The secret behind a reference. A literal secret is refused, and never repeated in a message.
    pub fn secret(&self, at: &str, key: &str, reference: &str) -> Result<Secret> {
        let missing = |what: String| Error::config(format!("{at}: `{key}` refers to {what}"));
        let found = match reference.split_once(':') {
            Some(("env", name)) => {
                let value = (self.variable)(name).filter(|value| !value.trim().is_empty());
                value.map(Secret::new).ok_or_else(|| {
                    missing(format!(
                        "the variable {name}, which \
                    is not set"
                    ))
                    .hint(format!("export {name}=…"))
                })
            }
            Some(("keyring", name)) => (self.keyring)(name).ok_or_else(|| {
                if self.has_keyring() {
                    return missing(format!("`{name}` in the keyring, where it is not")).hint(
                        format!("store it: secret-tool store --label={name} towline {name}"),
                    );
                }
                let variable = name
                    .to_ascii_uppercase()
                    .replace(|c: char| !c.is_ascii_alphanumeric(), "_");
                missing(format!(
                    "`{name}` in the keyring, and the program that asks it, \
                    `secret-tool`, is not installed here"
                ))
                .hint("install it (Debian and Ubuntu: libsecret-tools)")
                .hint(format!(
                    "or write `{key}: env:{variable}` and `export {variable}=…`, or \
                        `{key}: file:PATH` with a file of mode 0600"
                ))
            }),
            Some(("file", path)) => self
                .file(path)
                .map_err(|error| error.while_doing(format!("{at}: `{key}`"))),
            Some(("yaml", place)) => self
                .yaml(at, key, place)
                .map_err(|error| error.while_doing(format!("{at}: `{key}`"))),
            _ => Err(Error::config(format!(
                "{at}: `{key}` must be a reference, not a \
                value"
            ))
            .hint("write env:NAME, keyring:NAME, file:PATH or yaml:PATH#KEY")),
        }?;
        Ok(Secret::new(found.expose().trim()))
    }

    fn has_keyring(&self) -> bool {
        (self.variable)("PATH").is_some_and(|path| {
            path.split(':')
                .any(|folder| Path::new(folder).join("secret-tool").is_file())
        })
    }

    fn below_home(&self, path: &str) -> PathBuf {
        match (path.strip_prefix("~/"), self.home) {
            (Some(below), Some(home)) => home.join(below),
            _ => path.into(),
        }
    }

    /// `PATH#KEY`: a key at the top of a YAML file of another tool. Such files have any mode. If
    /// others can read the file, it is used with a warning.
    fn yaml(&self, at: &str, key: &str, place: &str) -> Result<Secret> {
        let (path, name) = place
            .rsplit_once('#')
            .filter(|(path, name)| !path.is_empty() && !name.is_empty())
            .ok_or_else(|| {
                Error::config("a reference to a YAML file names a key of it")
                    .hint("write yaml:/path/to/account.yaml#account_key")
            })?;
        let path = self.below_home(path);
        if !path.is_absolute() {
            return Err(Error::config(
                "the path in `yaml:PATH#KEY` must begin with `/` or `~/`",
            ));
        }
        let unreadable = |error: std::io::Error| {
            Error::config(format!("{} cannot be read", path.display())).source_error(error)
        };
        let file = std::fs::File::open(&path).map_err(unreadable)?;
        let mode = file.metadata().map_err(unreadable)?.mode();
        let text = std::io::read_to_string(file).map_err(unreadable)?;
        let tree = towline_core::yaml::parse(&path.display().to_string(), &text)?;
        // The value is never shown.
        let value = tree
            .get(name)
            .filter(|value| !value.is_null())
            .and_then(Node::text)
            .map(str::trim)
            .filter(|value| !value.is_empty());
        let value =
            value.ok_or_else(|| Error::config(format!("{} has no `{name}`", path.display())))?;
        if mode & 0o077 != 0 {
            (self.notice)(&readable_by_others(at, key, &path, mode));
        }
        Ok(Secret::new(value.strip_prefix('?').unwrap_or(value)))
    }

    fn file(&self, path: &str) -> Result<Secret> {
        let path = self.below_home(path);
        let unreadable = |error: std::io::Error| {
            Error::config(format!("{} cannot be read", path.display())).source_error(error)
        };
        let file = std::fs::File::open(&path).map_err(unreadable)?;
        let metadata = file.metadata().map_err(unreadable)?;
        if metadata.uid() != rustix::process::geteuid().as_raw() {
            return Err(Error::config(format!(
                "{} belongs to somebody else",
                path.display()
            )));
        }
        if metadata.mode() & 0o177 != 0 {
            let error = Error::config(format!(
                "{} can be read by others (mode {:o})",
                path.display(),
                metadata.mode() & 0o777
            ));
            return Err(error.hint(format!("chmod 600 {}", path.display())));
        }
        std::io::read_to_string(file)
            .map(Secret::new)
            .map_err(unreadable)
    }
}

/// The warning about a credential that others can read. `at` is "datastore `NAME`".
fn readable_by_others(at: &str, key: &str, path: &Path, mode: u32) -> String {
    let name = at.split('`').nth(1).unwrap_or("NAME");
    format!(
        "{} holds a credential and can be read by others (mode {:o})\n  keep it to \
            yourself:     chmod 600 {}\n  or move it to the keyring: secret-tool store \
                --label={name} towline {name}\n  and in towline.yaml:     datastores: {{{name}: \
                    {{credential: {{{key}: \"keyring:{name}\"}}}}}}",
        path.display(),
        mode & 0o777,
        path.display()
    )
}

/// Refuses keys other than `wanted`; `all` has the keys of every form, for a suggestion.
pub(crate) fn known_keys<'k>(
    at: &str,
    given: impl Iterator<Item = &'k String>,
    wanted: &[&str],
    all: &[&str],
) -> Result<()> {
    for key in given {
        if wanted.contains(&key.as_str()) {
            continue;
        }
        if all.contains(&key.as_str()) {
            return Err(Error::config(format!(
                "{at}: `{key}` has no place in this form of `credential`"
            )));
        }
        let hint = did_you_mean(key, all.iter().copied())
            .unwrap_or_else(|| format!("known: {}", all.join(", ")));
        return Err(
            Error::config(format!("{at}: `credential` has an unknown key `{key}`")).hint(hint),
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::os::unix::fs::PermissionsExt;

    fn lookup<T>(act: impl FnOnce(&Lookup<'_>) -> T) -> T {
        let variable = |name: &str| (name == "SET").then(|| " value\n".to_owned());
        act(&Lookup {
            variable: &variable,
            keyring: &|name| (name == "stored").then(|| Secret::new("kept")),
            home: None,
            reach: &no_reach,
            notice: &no_notice,
        })
    }

    fn map(pairs: &[(&str, &str)]) -> Credential {
        Credential::Map(
            pairs
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect::<BTreeMap<_, _>>(),
        )
    }

    #[test]
    fn references_lead_to_secrets_and_literals_are_refused() {
        lookup(|lookup| {
            assert_eq!(
                lookup.secret("s", "sas", "env:SET").expect("set").expose(),
                "value"
            );
            assert_eq!(
                lookup
                    .secret("s", "sas", "keyring:stored")
                    .expect("stored")
                    .expose(),
                "kept"
            );
            for reference in ["env:UNSET", "keyring:none", "file:/nowhere"] {
                assert_eq!(
                    lookup
                        .secret("s", "sas", reference)
                        .expect_err("missing")
                        .kind(),
                    towline_core::ErrorKind::Config
                );
            }
            for literal in ["sv=2020&sig=canary", "canary", "https://canary"] {
                let error = lookup.secret("s", "sas", literal).expect_err("literal");
                assert!(!format!("{error} {:?}", error.hints()).contains("canary"));
            }
            let word = Credential::Word("canarycanary".into());
            let error = lookup.azure("s", Some(&word)).expect_err("a literal");
            assert!(!format!("{error} {:?}", error.hints()).contains("canary"));
        });
    }

    #[test]
    fn a_file_others_can_read_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("key");
        std::fs::write(&path, "secret\n").expect("written");
        let reference = format!("file:{}", path.display());
        for (mode, good) in [
            (0o600, true),
            (0o400, true),
            (0o640, false),
            (0o604, false),
            (0o644, false),
        ] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("set");
            let found = lookup(|lookup| lookup.secret("s", "sas", &reference));
            assert_eq!(found.is_ok(), good, "{mode:o}");
        }
    }

    #[test]
    fn a_key_of_a_yaml_file_is_used_and_a_readable_file_gives_a_warning() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("x#_account.yaml");
        std::fs::write(
            &path,
            "account_name: acct\naccount_key: canary==\nsas_token: ?sv=1&sig=canary\nempty: null\n",
        )
        .expect("written");
        let place = path.display();
        for (mode, notices) in [(0o600, 0), (0o400, 0), (0o644, 1), (0o604, 1)] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("set");
            let warnings = std::cell::RefCell::new(Vec::new());
            let notice = |line: &str| warnings.borrow_mut().push(line.to_owned());
            let lookup = Lookup {
                variable: &|_| None,
                keyring: &|_| None,
                home: None,
                reach: &no_reach,
                notice: &notice,
            };
            assert_eq!(
                lookup
                    .secret("datastore `x`", "sas", &format!("yaml:{place}#sas_token"))
                    .expect("there")
                    .expose(),
                "sv=1&sig=canary"
            );
            assert_eq!(warnings.borrow().len(), notices, "{mode:o}");
            assert!(
                warnings
                    .borrow()
                    .iter()
                    .all(|line| line.contains("towline x")
                        && line.contains("chmod 600")
                        && !line.contains("canary")),
                "{warnings:?}"
            );
            assert_eq!(
                lookup
                    .secret("s", "account_key", &format!("yaml:{place}#account_key"))
                    .expect("there")
                    .expose(),
                "canary=="
            );
            for wrong in [
                format!("yaml:{place}#none"),
                format!("yaml:{place}#empty"),
                format!("yaml:{place}#"),
                "yaml:x.yaml#a".into(),
                "yaml:/nowhere#a".into(),
            ] {
                let error = lookup.secret("s", "sas", &wrong).expect_err(&wrong);
                assert!(
                    error.kind() == towline_core::ErrorKind::Config
                        && !format!("{error} {:?}", error.hints()).contains("canary"),
                    "{error}"
                );
            }
        }
        std::fs::write(&path, "account_key: [canary").expect("written");
        let error =
            lookup(|lookup| lookup.secret("s", "sas", &format!("yaml:{place}#account_key")))
                .expect_err("broken");
        assert!(!error.to_string().contains("canary"), "{error}");
    }

    #[test]
    fn every_form_is_recognised() {
        lookup(|lookup| {
            let azure = |credential: &Credential| lookup.azure("s", Some(credential));
            assert!(matches!(
                azure(&Credential::Word("azure_cli".into())),
                Ok(AzureCredential::Cli)
            ));
            assert!(matches!(
                azure(&map(&[("sas", "env:SET")])),
                Ok(AzureCredential::Sas(_, None))
            ));
            assert!(matches!(
                azure(&map(&[("sas", "env:SET"), ("account_key", "env:SET")])),
                Ok(AzureCredential::Sas(_, Some(_)))
            ));
            assert!(matches!(
                azure(&map(&[("managed_identity", "id")])),
                Ok(AzureCredential::Managed(Identity { id: Some(_), .. }))
            ));
            assert!(matches!(
                azure(&map(&[
                    ("tenant_id", "t"),
                    ("client_id", "c"),
                    ("client_secret", "env:SET")
                ])),
                Ok(AzureCredential::Principal { .. })
            ));
            assert!(azure(&map(&[("sas", "env:SET"), ("managed_identity", "id")])).is_err());
            assert!(
                azure(&map(&[("sass", "env:SET")]))
                    .expect_err("unknown")
                    .hints()[0]
                    .contains("sas")
            );
            assert!(
                azure(&map(&[("client_secret", "env:SET")]))
                    .expect_err("short")
                    .to_string()
                    .contains("tenant_id")
            );
            assert!(
                lookup
                    .s3("s", Some(&map(&[("access_key_id", "env:SET")])))
                    .expect_err("short")
                    .to_string()
                    .contains("secret_access_key")
            );
            assert!(lookup.s3("s", None).expect("fine").is_none());
        });
    }
}
