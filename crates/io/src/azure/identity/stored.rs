//! A sign-in that `tow login` stored: who it is for, and the refresh token that gives new tokens.
//!
//! The refresh token is in the keyring where there is one that answers, else in the file itself
//! (mode 0600). The login service may give a new refresh token each time. The new one replaces the
//! old one in one step, so that there is always a whole one.

use super::cache::Cache;
use super::method::SignInMethod;
use super::{Surroundings, private_file};
use serde_json::{Value, json};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use towline_core::redact::Secret;
use towline_core::time::Moment;
use towline_core::{Error, Result};
use towline_host::keyring::Keyring;

/// How long to wait for another process that renews the same sign-in.
const LOCK_TIMEOUT: Duration = Duration::from_secs(75);
/// How often to look whether the lock is free.
const LOCK_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The place of the refresh token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RefreshPlace {
    /// A certificate signs in: there is no refresh token.
    None,
    File(Secret),
    /// The name of the entry.
    Keyring(String),
}

impl RefreshPlace {
    /// For people and programs.
    pub(super) const fn name(&self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::File(_) => Some("file"),
            Self::Keyring(_) => Some("keyring"),
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct StoredSignIn {
    pub(super) method: SignInMethod,
    pub(super) refresh: RefreshPlace,
    /// Differs from every other sign-in, and stays when it is renewed. Tokens carry it.
    pub(super) id: Option<String>,
    pub(super) since: Option<Moment>,
    /// The name of the user, as the first token had it.
    pub(super) name: Option<String>,
}

/// The files of stored sign-ins, and the keyring.
#[derive(Debug)]
pub(super) struct SignInStore<'a> {
    pub(super) at: &'a str,
    pub(super) cache: &'a Cache,
    pub(super) surroundings: &'a Surroundings,
    /// All that identifies the sign-in.
    pub(super) key: [&'a str; 7],
}

impl SignInStore<'_> {
    pub(super) fn path(&self) -> PathBuf {
        self.cache.path(&self.key)
    }

    fn keyring(&self) -> Option<Keyring> {
        let variable = |name: &str| (self.surroundings.variable)(name);
        Keyring::find(
            &variable("PATH")?,
            variable("DBUS_SESSION_BUS_ADDRESS").filter(|bus| !bus.is_empty()),
        )
    }

    /// The stored sign-in; `usual` is the method of one that an older `tow` stored without it. A
    /// file that others could have read or written is an error, and is not used.
    pub(super) fn load(&self, usual: Option<&SignInMethod>) -> Result<Option<StoredSignIn>> {
        let path = self.path();
        let bytes = private_file::read(&path).map_err(|found| {
            Error::denied(format!(
                "{}: the stored sign-in is not used: {} {}",
                self.at,
                path.display(),
                found.reason()
            ))
            .hint(format!(
                "sign in again, which replaces it: {}",
                self.surroundings.command
            ))
        })?;
        let Some(value) = bytes.and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok())
        else {
            return Ok(None);
        };
        Ok(StoredSignIn::read(&value, usual))
    }

    /// The refresh token itself.
    pub(super) fn refresh_token(&self, stored: &StoredSignIn) -> Result<Option<Secret>> {
        match &stored.refresh {
            RefreshPlace::None => Ok(None),
            RefreshPlace::File(secret) => Ok(Some(secret.clone())),
            RefreshPlace::Keyring(name) => {
                let lost = |why: String| {
                    // The keyring may be open again in a moment: this says nothing of the sign-in.
                    Error::unreachable(format!(
                        "{}: the sign-in is in the keyring, and {why}",
                        self.at
                    ))
                    .hint(format!(
                        "unlock the keyring, or sign in again: {}",
                        self.surroundings.command
                    ))
                };
                let keyring = self
                    .keyring()
                    .ok_or_else(|| lost("`secret-tool` is not found here".to_owned()))?;
                keyring.get(name).map_err(|error| lost(error.to_string()))
            }
        }
    }

    /// Stores a sign-in and its refresh token, in place of the present one. After an error the
    /// present one is as it was.
    pub(super) fn save(&self, sign_in: &mut StoredSignIn, refresh: Option<&Secret>) -> Result<()> {
        sign_in.refresh = match refresh {
            None => RefreshPlace::None,
            Some(secret) => self
                .in_keyring(secret)
                .unwrap_or_else(|| RefreshPlace::File(secret.clone())),
        };
        self.write(sign_in)
    }

    fn write(&self, sign_in: &StoredSignIn) -> Result<()> {
        let path = self.path();
        let failed = |error: std::io::Error| {
            Error::from_io(
                format!(
                    "{}: the sign-in cannot be stored in {}",
                    self.at,
                    path.display()
                ),
                error,
            )
        };
        towline_host::filesystem::private_folder(self.cache.folder()).map_err(failed)?;
        let text = sign_in.to_private().to_string();
        towline_host::once::replace(&path, text.as_bytes()).map_err(failed)
    }

    /// Replaces the refresh token. After an error the old one is as it was.
    pub(super) fn save_refresh(&self, stored: &mut StoredSignIn, next: &Secret) -> Result<()> {
        let is_in_keyring = matches!(stored.refresh, RefreshPlace::Keyring(_));
        if is_in_keyring && self.in_keyring(next).as_ref() == Some(&stored.refresh) {
            return Ok(());
        }
        stored.refresh = RefreshPlace::File(next.clone());
        self.write(stored)
    }

    /// Puts the token into the keyring and reads it back: a keyring that takes and does not give is
    /// none.
    fn in_keyring(&self, secret: &Secret) -> Option<RefreshPlace> {
        let keyring = self.keyring()?;
        let name = self.entry();
        let label = format!("Towline: sign-in to Azure ({})", self.at.replace('`', ""));
        keyring.put(&name, &label, secret).ok()?;
        match keyring.get(&name) {
            Ok(Some(found)) if found == *secret => Some(RefreshPlace::Keyring(name)),
            _ => None,
        }
    }

    /// The name of the entry in the keyring.
    fn entry(&self) -> String {
        let path = self.path();
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        format!("azure-{stem}")
    }

    /// Removes the sign-in, and the tokens that it gave. Returns whether there was one.
    pub(super) fn remove(&self, stored: Option<&StoredSignIn>) -> Result<bool> {
        if let Some(RefreshPlace::Keyring(name)) = stored.map(|stored| &stored.refresh) {
            let removed = self.keyring().map(|keyring| keyring.remove(name));
            if !matches!(removed, Some(Ok(()))) {
                let why = removed.and_then(Result::err);
                let why = why.map_or_else(
                    || "`secret-tool` is not found here".to_owned(),
                    |error| error.to_string(),
                );
                return Err(Error::unreachable(format!(
                    "{}: the sign-in stays in the keyring: {why}",
                    self.at
                ))
                .hint(format!("remove it: secret-tool clear towline {name}")));
            }
        }
        // The name is removed, whatever it is: the target of a link stays.
        let path = self.path();
        let was_there = match std::fs::remove_file(&path) {
            Ok(()) => true,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => false,
            Err(error) => {
                let what = format!("{}: {} cannot be removed", self.at, path.display());
                return Err(Error::from_io(what, error));
            }
        };
        if let Some(id) = stored.and_then(|stored| stored.id.as_ref()) {
            self.cache.forget_login(id);
        }
        Ok(was_there)
    }

    /// Waits until no other process renews this sign-in. A refresh token may be good only once, so
    /// two at the same time would lose it.
    pub(super) async fn lock(&self) -> Result<Option<File>> {
        let _ = towline_host::filesystem::private_folder(self.cache.folder());
        let path = self.path().with_extension("lock");
        let opened = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(path);
        // Without room for an empty file nobody else can hold it either.
        let Ok(file) = opened else {
            return Ok(None);
        };
        let begun = Instant::now();
        loop {
            match towline_host::lock::try_lock(&file) {
                Ok(true) => return Ok(Some(file)),
                // A file system without locks.
                Err(_) => return Ok(None),
                Ok(false) if begun.elapsed() > LOCK_TIMEOUT => {
                    return Err(Error::unreachable(format!(
                        "{}: another tow has been renewing the sign-in for {} s",
                        self.at,
                        LOCK_TIMEOUT.as_secs()
                    )));
                }
                Ok(false) => tokio::time::sleep(LOCK_POLL_INTERVAL).await,
            }
        }
    }
}

impl StoredSignIn {
    fn read(value: &Value, usual: Option<&SignInMethod>) -> Option<Self> {
        let text = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
        if value.get("version")? != 1 {
            return None;
        }
        let (tenant, client) = (text("tenant"), text("client"));
        let method = match text("method").as_deref() {
            None => usual?.clone(),
            Some("device_code") => SignInMethod::Device {
                tenant: tenant?,
                client: client?,
            },
            Some("certificate") => SignInMethod::Certificate {
                tenant: tenant?,
                client: client?,
                pem: text("certificate")?,
            },
            Some(_) => return None,
        };
        let refresh = match (text("keyring"), text("refresh")) {
            (Some(entry), _) => RefreshPlace::Keyring(entry),
            (None, Some(secret)) => RefreshPlace::File(Secret::new(secret)),
            (None, None) => RefreshPlace::None,
        };
        Some(Self {
            method,
            refresh,
            id: text("id"),
            since: value.get("since").and_then(Value::as_i64).map(Moment),
            name: text("name"),
        })
    }

    /// For a private file only.
    fn to_private(&self) -> Value {
        let mut value = json!({
            "version": 1, "id": self.id, "since": self.since, "name": self.name,
        });
        match &self.method {
            SignInMethod::Device { tenant, client } => {
                value["method"] = json!("device_code");
                (value["tenant"], value["client"]) = (json!(tenant), json!(client));
            }
            SignInMethod::Certificate {
                tenant,
                client,
                pem,
            } => {
                value["method"] = json!("certificate");
                (value["tenant"], value["client"]) = (json!(tenant), json!(client));
                value["certificate"] = json!(pem);
            }
            _ => {}
        }
        match &self.refresh {
            RefreshPlace::None => {}
            RefreshPlace::File(secret) => value["refresh"] = json!(secret.expose()),
            RefreshPlace::Keyring(entry) => value["keyring"] = json!(entry),
        }
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sign_in_of_an_older_tow_is_still_read() {
        let usual = SignInMethod::Device {
            tenant: "t".into(),
            client: "c".into(),
        };
        let old = json!({"version": 1, "refresh": "canary"});
        let read = StoredSignIn::read(&old, Some(&usual)).expect("a sign-in");
        assert_eq!(read.method, usual);
        assert_eq!(read.refresh, RefreshPlace::File(Secret::new("canary")));
        assert!(!format!("{read:?}").contains("canary"));
        // An older tow reads what is written now.
        assert_eq!(read.to_private()["refresh"], "canary");
        assert_eq!(read.to_private()["version"], 1);
        assert!(StoredSignIn::read(&old, None).is_none());
        assert!(StoredSignIn::read(&json!({"version": 2}), Some(&usual)).is_none());
    }

    #[test]
    fn every_form_reads_back() {
        let certificate = StoredSignIn {
            method: SignInMethod::Certificate {
                tenant: "t".into(),
                client: "c".into(),
                pem: "file:/k.pem".into(),
            },
            refresh: RefreshPlace::None,
            id: Some("1".into()),
            since: Some(Moment(5)),
            name: Some("app".into()),
        };
        let again = StoredSignIn::read(&certificate.to_private(), None).expect("a sign-in");
        assert_eq!(again.method, certificate.method);
        assert_eq!(
            (&again.id, again.since, &again.name),
            (&certificate.id, certificate.since, &certificate.name)
        );
        let in_keyring = StoredSignIn {
            refresh: RefreshPlace::Keyring("azure-1".into()),
            ..StoredSignIn::read(&certificate.to_private(), None).expect("a sign-in")
        };
        let again = StoredSignIn::read(&in_keyring.to_private(), None).expect("a sign-in");
        assert_eq!(again.refresh.name(), Some("keyring"));
    }
}
