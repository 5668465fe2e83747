//! Secrets: a type that cannot be printed, and the names that give a secret away.

use crate::secret_name::SecretName;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// A value that never shows: not in `Debug`, not in `Display`, not by accident in JSON.
/// [`Secret::expose`] is the only way out, and each call is a place to review.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("‹secret›")
    }
}

/// Secrets by name. Serialised only by [`SecretSet::to_private_bytes`],
/// for a private socket or a 0600 file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SecretSet(pub BTreeMap<SecretName, Secret>);

#[derive(Serialize, Deserialize)]
#[serde(transparent)]
struct Private(BTreeMap<SecretName, String>);

impl SecretSet {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    pub fn names(&self) -> Vec<SecretName> {
        self.0.keys().cloned().collect()
    }
    pub fn to_private_bytes(&self) -> Vec<u8> {
        let plain = Private(
            self.0
                .iter()
                .map(|(name, value)| (name.clone(), value.0.clone()))
                .collect(),
        );
        serde_json::to_vec(&plain).expect("a map of texts serialises")
    }
    pub fn from_private_bytes(bytes: &[u8]) -> Option<Self> {
        let Private(plain) = serde_json::from_slice(bytes).ok()?;
        Some(Self(
            plain
                .into_iter()
                .map(|(name, value)| (name, Secret(value)))
                .collect(),
        ))
    }
}

/// Whether a variable of this name is held apart as a secret. Errs on the side of secrecy.
pub fn looks_like_credential(name: &str) -> bool {
    const CREDENTIAL_PARTS: [&str; 14] = [
        "TOKEN",
        "SECRET",
        "PASSWORD",
        "PASSWD",
        "PASSPHRASE",
        "APIKEY",
        "API_KEY",
        "ACCESS_KEY",
        "ACCOUNT_KEY",
        "PRIVATE_KEY",
        "CREDENTIAL",
        "CONNECTION_STRING",
        "SAS_URL",
        "AUTHORIZATION",
    ];
    const CREDENTIAL_WORDS: [&str; 5] = ["PAT", "SAS", "AUTH", "PASS", "KEY"];
    // Standard variables of programs whose names do not tell that they hold a credential.
    const CREDENTIAL_NAMES: [&str; 2] = ["MYSQL_PWD", "SSHPASS"];
    // Paths and switches whose names only mention a key.
    const HARMLESS_NAMES: [&str; 4] = ["SSH_AUTH_SOCK", "XAUTHORITY", "GPG_KEY", "SSH_ASKPASS"];
    // A path or a name of a credential is not the credential itself.
    const HARMLESS_ENDINGS: [&str; 7] = [
        "_FILE",
        "_PATH",
        "_DIR",
        "_FOLDER",
        "_COLUMN",
        "_NAME",
        "_PARALLELISM",
    ];
    let upper = name.to_ascii_uppercase();
    if CREDENTIAL_NAMES.contains(&upper.as_str()) {
        return true;
    }
    if HARMLESS_NAMES.contains(&upper.as_str())
        || HARMLESS_ENDINGS
            .iter()
            .any(|ending| upper.ends_with(ending))
    {
        return false;
    }
    // Terms of language models, and `SECRETARY`, only resemble credentials.
    let upper = upper
        .replace("TOKENIZER", "")
        .replace("TOKENS", "")
        .replace("SECRETARY", "");
    CREDENTIAL_PARTS.iter().any(|part| upper.contains(part))
        || upper
            .split('_')
            .any(|word| CREDENTIAL_WORDS.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_known_by_name() {
        for name in [
            "GITHUB_PAT",
            "WANDB_API_KEY",
            "AWS_SECRET_ACCESS_KEY",
            "HF_TOKEN",
            "my_password",
            "RESEARCH_SAS",
            "DB_PASS",
            "AZURE_STORAGE_CONNECTION_STRING",
            "MYSQL_PWD",
            "SSHPASS",
        ] {
            assert!(looks_like_credential(name), "{name}");
        }
        for name in [
            "PATH",
            "HOME",
            "PWD",
            "OLDPWD",
            "SSH_AUTH_SOCK",
            "KEYBOARD",
            "PATIENCE",
            "CUDA_HOME",
            "TOKENIZERS_PARALLELISM",
            "MONKEY",
            "MAX_TOKENS",
            "API_KEY_FILE",
            "PRIMARY_KEY_COLUMN",
            "SECRETARY",
        ] {
            assert!(!looks_like_credential(name), "{name}");
        }
    }

    #[test]
    fn a_secret_does_not_show() {
        let mut set = SecretSet::default();
        set.0.insert("PAT".into(), Secret::new("canary"));
        assert!(!format!("{set:?}").contains("canary"));
        assert_eq!(
            SecretSet::from_private_bytes(&set.to_private_bytes()),
            Some(set)
        );
    }
}
