//! Run ids: `<name>-<epoch>-<8 hex>`, in `[a-z0-9-]`, at most 50 characters; a sweep's runs add
//! `-<number>`.

use crate::time::Moment;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

const MAX_NAME_CHARACTERS: usize = 30;
/// The longest id of a run or sweep, without a sweep's `-<number>`.
pub const MAX_ID_CHARACTERS: usize = 50;
/// The shortest suffix that a verb which changes something accepts.
pub const MIN_SUFFIX_CHARACTERS_TO_CHANGE: usize = 4;

/// The permanent id of a run, or of the sweep that runs belong to.
#[derive(
    Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(try_from = "String", into = "String")]
pub struct RunId(String);

#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not a run id")]
pub struct NotAnId(pub String);

impl RunId {
    /// A new id; `random` comes from the caller.
    pub fn new(name: &str, epoch_seconds: i64, random: u32) -> Self {
        let epoch = epoch_seconds.max(0);
        Self(format!("{}-{epoch}-{random:08x}", safe_name(name)))
    }

    /// The id of run `number` of this sweep.
    #[must_use]
    pub fn numbered(&self, number: u32) -> Self {
        Self(format!("{}-{number}", self.0))
    }

    /// The sweep that a run belongs to, and its number there.
    pub fn sweep(&self) -> Option<(Self, u32)> {
        let (sweep, number) = self.0.rsplit_once('-')?;
        // The rest has to be an id itself.
        if self.0.len() - sweep.len() == 9 {
            None
        } else {
            Some((Self::try_from(sweep.to_owned()).ok()?, number.parse().ok()?))
        }
    }

    /// When the id was made: its epoch part.
    pub fn made(&self) -> Option<Moment> {
        let of_run = self
            .sweep()
            .map_or_else(|| self.clone(), |(sweep, _)| sweep);
        let (rest, _) = of_run.0.rsplit_once('-')?;
        let seconds: i64 = rest.rsplit_once('-')?.1.parse().ok()?;
        (seconds > 0).then(|| Moment(seconds.saturating_mul(1000)))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The short form shown in tables: the last five characters of the hexadecimal part, with a
    /// sweep's number.
    pub fn short(&self) -> &str {
        let last = self.0.rfind('-').unwrap_or(0);
        // A dash and eight hexadecimal digits end a run's id; anything else is a sweep's number.
        let end = if self.0.len() - last == 9 {
            self.0.len()
        } else {
            last
        };
        &self.0[end.saturating_sub(5)..]
    }
}

impl TryFrom<String> for RunId {
    type Error = NotAnId;
    /// Ids become file names, so anything else is refused: `..`, `/`, upper case, blanks.
    fn try_from(text: String) -> Result<Self, NotAnId> {
        let plain = text
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
        let dashes = text.bytes().filter(|b| *b == b'-').count();
        if plain && dashes >= 2 && !text.starts_with('-') && text.len() <= MAX_ID_CHARACTERS + 11 {
            Ok(Self(text))
        } else {
            Err(NotAnId(text))
        }
    }
}

impl From<RunId> for String {
    fn from(id: RunId) -> Self {
        id.0
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The name made safe for ids: lower case, everything else a dash, cut at 30.
pub fn safe_name(name: &str) -> String {
    let mut safe = String::with_capacity(MAX_NAME_CHARACTERS);
    for c in name.chars() {
        let c = if c.is_ascii_alphanumeric() {
            c.to_ascii_lowercase()
        } else {
            '-'
        };
        if !(c == '-' && (safe.is_empty() || safe.ends_with('-'))) {
            safe.push(c);
        }
        if safe.len() == MAX_NAME_CHARACTERS {
            break;
        }
    }
    let trimmed = safe.trim_end_matches('-');
    if trimmed.is_empty() {
        "run".to_owned()
    } else {
        trimmed.to_owned()
    }
}

/// The text by which the user names a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reference {
    /// `@`: my latest; `@-1` the one before it.
    Latest { back: usize },
    /// A part of an id, suffix first.
    Part(String),
}

impl Reference {
    pub fn parse(text: &str) -> Result<Self, NotAnId> {
        let text = text.trim();
        if text == "@" {
            return Ok(Self::Latest { back: 0 });
        }
        if let Some(back) = text.strip_prefix("@-").and_then(|count| count.parse().ok()) {
            return Ok(Self::Latest { back });
        }
        // Users of ACT type its `name_123_ab12cd34`, and paths copied from `assets/`.
        let part = text
            .trim_end_matches('/')
            .rsplit('/')
            .next()
            .unwrap_or_default()
            .replace('_', "-")
            .to_ascii_lowercase();
        let plain = part
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
        if part.is_empty() || !plain {
            Err(NotAnId(text.to_owned()))
        } else {
            Ok(Self::Part(part))
        }
    }

    /// Whether it is specific enough for a verb that changes something.
    pub fn may_change(&self) -> bool {
        match self {
            Self::Latest { .. } => true,
            Self::Part(part) => part.len() >= MIN_SUFFIX_CHARACTERS_TO_CHANGE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_of_a_sweep_knows_it() {
        let sweep = RunId::new("x", 1, 2);
        assert_eq!(sweep.sweep(), None);
        assert_eq!(sweep.numbered(12).sweep(), Some((sweep, 12)));
        assert_eq!(
            RunId::try_from("nosuch-1-2".to_owned())
                .expect("an id")
                .sweep(),
            None,
            "`nosuch-1` is no id"
        );
    }

    #[test]
    fn names_become_safe() {
        for (name, safe) in [
            ("vitl_contitrain", "vitl-contitrain"),
            ("../../etc/passwd", "etc-passwd"),
            ("  ", "run"),
            ("Ünïcode näme", "n-code-n-me"),
            (
                "a very long name that goes on and on and on",
                "a-very-long-name-that-goes-on",
            ),
        ] {
            assert_eq!(safe_name(name), safe);
        }
    }

    #[test]
    fn short_forms_tell_runs_of_a_sweep_apart() {
        let id = RunId::new("train", 1_763_189_280, 0x60ce_2fc7);
        assert_eq!(id.as_str(), "train-1763189280-60ce2fc7");
        assert_eq!(id.short(), "e2fc7");
        assert_eq!(id.numbered(12).short(), "e2fc7-12");
    }

    #[test]
    fn hostile_ids_are_refused() {
        for text in [
            "", "..", "a/b-1-2", "../x-1-2", "A-1-2", "a b-1-2", "-1-2", "x-1-\n",
        ] {
            assert!(RunId::try_from(text.to_owned()).is_err(), "{text:?}");
        }
    }

    #[test]
    fn references_are_read_leniently_but_change_strictly() {
        assert_eq!(
            Reference::parse("@").expect("latest"),
            Reference::Latest { back: 0 }
        );
        assert_eq!(
            Reference::parse("@-2").expect("two before it"),
            Reference::Latest { back: 2 }
        );
        assert!(
            Reference::parse("@-").is_err()
                && Reference::parse("@-x").is_err()
                && Reference::parse("@--1").is_err()
        );
        let act = Reference::parse("jianfw_1563257309_60ce2fc7").expect("an ACT id");
        assert_eq!(act, Reference::Part("jianfw-1563257309-60ce2fc7".into()));
        assert!(!Reference::parse("fc7").expect("a part").may_change());
        assert!(Reference::parse("2fc7").expect("a part").may_change());
        assert!(Reference::parse("a*b").is_err());
        assert!(Reference::parse("").is_err());
    }

    proptest::proptest! {
        #[test]
        fn every_name_gives_a_legal_id(name in ".*", epoch in 0i64..100_000_000_000, random: u32) {
            let id = RunId::new(&name, epoch, random);
            proptest::prop_assert!(id.as_str().len() <= MAX_ID_CHARACTERS);
            proptest::prop_assert_eq!(id.made(), Some(Moment(epoch * 1000)).filter(|made| made.0 > 0));
            proptest::prop_assert_eq!(id.numbered(7).made(), id.made());
            proptest::prop_assert!(RunId::try_from(id.numbered(99_999).as_str().to_owned()).is_ok());
        }
    }
}
