//! The names of the secrets of a run.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Begins the stored form of [`SecretName::Token`]. No variable can have such a name.
pub(crate) const TOKEN_PREFIX: &str = "***";
/// Begins the stored form of [`SecretName::Datastore`]. No variable can have such a name.
const DATASTORE_PREFIX: &str = "datastore ";

/// The name of one secret of a run. Every stored and sent form is one text, so any text is a name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum SecretName {
    /// A token that stood in the job itself, by its number. See [`crate::token`].
    Token(String),
    /// A variable of the ranks.
    Variable(String),
    /// The credential of a datastore, by its reference: `env:NAME`, `keyring:NAME`.
    Datastore(String),
}

impl SecretName {
    pub const fn is_token(&self) -> bool {
        matches!(self, Self::Token(_))
    }

    /// The variable of the ranks; none for another secret.
    pub fn variable(&self) -> Option<&str> {
        match self {
            Self::Variable(name) => Some(name),
            Self::Token(_) | Self::Datastore(_) => None,
        }
    }

    /// The reference of a datastore's credential; none for another secret.
    pub fn reference(&self) -> Option<&str> {
        match self {
            Self::Datastore(reference) => Some(reference),
            Self::Token(_) | Self::Variable(_) => None,
        }
    }
}

impl fmt::Display for SecretName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Token(number) => write!(f, "{TOKEN_PREFIX}{number}"),
            Self::Variable(name) => f.write_str(name),
            Self::Datastore(reference) => write!(f, "{DATASTORE_PREFIX}{reference}"),
        }
    }
}

impl From<&str> for SecretName {
    fn from(text: &str) -> Self {
        if let Some(number) = text.strip_prefix(TOKEN_PREFIX) {
            Self::Token(number.to_owned())
        } else if let Some(reference) = text.strip_prefix(DATASTORE_PREFIX) {
            Self::Datastore(reference.to_owned())
        } else {
            Self::Variable(text.to_owned())
        }
    }
}

impl From<String> for SecretName {
    fn from(text: String) -> Self {
        Self::from(text.as_str())
    }
}

impl From<SecretName> for String {
    fn from(name: SecretName) -> Self {
        name.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn every_name_is_stored_as_one_text_and_read_back() {
        for (name, stored) in [
            (SecretName::Token("1".into()), "***1"),
            (SecretName::Variable("HF_TOKEN".into()), "HF_TOKEN"),
            (SecretName::Variable("datastore".into()), "datastore"),
            (
                SecretName::Datastore("keyring:file:/a b".into()),
                "datastore keyring:file:/a b",
            ),
            (SecretName::Datastore(String::new()), "datastore "),
        ] {
            let json = serde_json::to_value(&name).expect("it encodes");
            assert_eq!(json, stored);
            let read: SecretName = serde_json::from_value(json).expect("it is read");
            assert_eq!(read, name);
        }
    }

    #[test]
    fn a_name_is_the_key_of_a_stored_map() {
        let stored = r#"{"***1":"a","PAT":"b","datastore env:KEY":"c"}"#;
        let map: BTreeMap<SecretName, String> = serde_json::from_str(stored).expect("it is read");
        assert_eq!(map[&SecretName::Datastore("env:KEY".into())], "c");
        assert_eq!(serde_json::to_string(&map).expect("it encodes"), stored);
    }

    #[test]
    fn a_name_is_of_one_kind_only() {
        let kinds = |text: &str| {
            let name = SecretName::from(text);
            let own = |text: Option<&str>| text.map(str::to_owned);
            (name.is_token(), own(name.variable()), own(name.reference()))
        };
        assert_eq!(kinds("***1"), (true, None, None));
        assert_eq!(kinds("PAT"), (false, Some("PAT".to_owned()), None));
        let reference = Some("env:KEY".to_owned());
        assert_eq!(kinds("datastore env:KEY"), (false, None, reference));
    }
}
