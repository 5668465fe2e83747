//! What kept a program from starting, as far as the next step depends on it.

use crate::{Error, ErrorKind};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use std::io;

/// What kept a program from starting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Obstacle {
    /// A disk or a quota was full.
    NoRoom,
    /// The code could not be laid out, and room was not what it lacked.
    CodeLayout,
    /// The nodes do not share the `stage` of the cluster with its login host.
    StageNotShared,
}

impl Obstacle {
    pub const ALL: [Self; 3] = [Self::NoRoom, Self::CodeLayout, Self::StageNotShared];

    /// The word that is stored and that `--json` has.
    pub const fn word(self) -> &'static str {
        match self {
            Self::NoRoom => "no_room",
            Self::CodeLayout => "code_layout",
            Self::StageNotShared => "stage_not_shared",
        }
    }

    /// The obstacle that an error of ours names.
    pub fn of(error: &Error) -> Option<Self> {
        Self::of_kind(error.kind())
    }

    /// The obstacle that an error of the operating system names.
    pub fn of_io(error: &io::Error) -> Option<Self> {
        Self::of_kind(ErrorKind::refusal_of_io(error))
    }

    fn of_kind(kind: ErrorKind) -> Option<Self> {
        (kind == ErrorKind::NoRoom).then_some(Self::NoRoom)
    }

    /// The obstacle that a text names, where there is nothing but a text: in an ending that a
    /// version without [`Obstacle`] stored, and in what a job printed before it died.
    pub fn named_in(text: &str) -> Option<Self> {
        if text.contains("No space left") || text.contains("are free at") {
            Some(Self::NoRoom)
        } else if text.contains("laid out") {
            Some(Self::CodeLayout)
        } else if text.contains("`stage`") {
            Some(Self::StageNotShared)
        } else {
            None
        }
    }
}

/// Reads a stored word. One of a newer version counts as none.
pub(crate) fn read_word<'de, D: Deserializer<'de>>(
    source: D,
) -> Result<Option<Obstacle>, D::Error> {
    let word = Option::<String>::deserialize(source)?;
    let mut known = Obstacle::ALL.into_iter();
    Ok(word.and_then(|word| known.find(|known| known.word() == word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_obstacle_is_stored_as_its_word() {
        for obstacle in Obstacle::ALL {
            let json = serde_json::to_value(obstacle).expect("it encodes");
            assert_eq!(json, obstacle.word());
            assert_eq!(read_word(&json).expect("it is read"), Some(obstacle));
        }
        let newer = serde_json::json!("flood");
        assert_eq!(read_word(&newer).expect("it is read"), None);
    }

    #[test]
    fn a_full_disk_is_known_by_the_kind_of_the_error() {
        let full = || io::Error::from(io::ErrorKind::StorageFull);
        assert_eq!(Obstacle::of_io(&full()), Some(Obstacle::NoRoom));
        assert_eq!(
            Obstacle::of(&Error::from_io("x", full())),
            Some(Obstacle::NoRoom)
        );
        assert_eq!(Obstacle::of(&Error::refused("No space left")), None);
    }

    /// Texts as earlier versions stored them.
    #[test]
    fn a_text_of_an_earlier_version_names_its_obstacle() {
        for (text, obstacle) in [
            (
                "the code could not be laid out: /r/code cannot be written: No space left on \
                    device (os error 28)",
                Some(Obstacle::NoRoom),
            ),
            (
                "the code could not be laid out: the snapshot needs 9 bytes and 3 are free at /r",
                Some(Obstacle::NoRoom),
            ),
            (
                "the code could not be laid out: pack 12ab of the snapshot is gone",
                Some(Obstacle::CodeLayout),
            ),
            (
                "its output file could not be opened on the node: is `stage` a folder that all \
                    hosts share?",
                Some(Obstacle::StageNotShared),
            ),
            ("command not found: trian", None),
        ] {
            assert_eq!(Obstacle::named_in(text), obstacle, "{text}");
        }
    }
}
