//! The place of a mapped folder.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Begins the stored form of [`MappedPlace::Io`]; the name of the `io` follows.
const IO_PREFIX: &str = "io:";

/// The place of a folder that `folders:` maps. Plans store it as one text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum MappedPlace {
    /// A path on the machine of the run.
    Path(String),
    /// The place that the `io` of this name has on the node.
    Io(String),
}

impl MappedPlace {
    /// Whether the place is that of an `io`.
    pub const fn is_io(&self) -> bool {
        matches!(self, Self::Io(_))
    }

    /// The path; none if the place is that of an `io`.
    pub fn path(&self) -> Option<&str> {
        match self {
            Self::Path(path) => Some(path),
            Self::Io(_) => None,
        }
    }
}

impl fmt::Display for MappedPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => f.write_str(path),
            Self::Io(name) => write!(f, "{IO_PREFIX}{name}"),
        }
    }
}

impl From<String> for MappedPlace {
    fn from(stored: String) -> Self {
        match stored.strip_prefix(IO_PREFIX) {
            Some(name) => Self::Io(name.to_owned()),
            None => Self::Path(stored),
        }
    }
}

impl From<MappedPlace> for String {
    fn from(place: MappedPlace) -> Self {
        place.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_is_stored_as_one_text_and_read_back() {
        for (place, stored) in [
            (MappedPlace::Path("/mnt/nas/data".into()), "/mnt/nas/data"),
            (MappedPlace::Path("/a/io:b".into()), "/a/io:b"),
            (MappedPlace::Path(String::new()), ""),
            (MappedPlace::Io("data".into()), "io:data"),
            (MappedPlace::Io(String::new()), "io:"),
        ] {
            let json = serde_json::to_value(&place).expect("it encodes");
            assert_eq!(json, stored);
            let read: MappedPlace = serde_json::from_value(json).expect("it is read");
            assert_eq!(read, place);
        }
    }

    #[test]
    fn only_a_path_is_a_path() {
        let place = |text: &str| MappedPlace::from(text.to_owned());
        assert_eq!(place("/mnt/nas").path(), Some("/mnt/nas"));
        assert_eq!(place("io:data").path(), None);
        assert!(place("io:data").is_io() && !place("/mnt/nas").is_io());
    }
}
