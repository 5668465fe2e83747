//! `--after`: a run that begins only when other runs have ended.

use crate::counts::PhaseCounts;
use crate::reason::Outcome;
use crate::state::Phase;
use crate::{Error, Result, RunId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A run or sweep that must end first, and how.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct After {
    /// The run or sweep that must end first.
    pub run: RunId,
    /// How it must end.
    #[serde(default)]
    pub when: Condition,
}

/// How a run must end before another begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Condition {
    /// It succeeds; of a sweep, every run.
    #[default]
    Succeeded,
    /// It fails or is lost; of a sweep, at least one run.
    Failed,
    /// It ends, whatever the outcome; of a sweep, every run.
    Ended,
}

/// Whether a condition holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    NotYet,
    Holds,
    /// It can no longer hold.
    Never,
}

impl Condition {
    pub const ALL: [Self; 3] = [Self::Succeeded, Self::Failed, Self::Ended];

    pub const fn word(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Ended => "ended",
        }
    }

    /// Judges a run, or all runs of a sweep, by their phases. Of what is not known nothing can
    /// hold any more.
    pub fn judge(self, counts: &PhaseCounts) -> Verdict {
        let failed =
            counts.of(Phase::Ended(Outcome::Failed)) + counts.of(Phase::Ended(Outcome::Lost));
        let succeeded = counts.of(Phase::Ended(Outcome::Succeeded));
        let holds = match self {
            _ if counts.total() == 0 => false,
            _ if counts.active() > 0 => return Verdict::NotYet,
            Self::Succeeded => succeeded == counts.total(),
            Self::Failed => failed > 0,
            Self::Ended => true,
        };
        if holds {
            Verdict::Holds
        } else {
            Verdict::Never
        }
    }
}

/// Splits `RUN:failed` into the reference of a run and the condition.
pub fn parse(text: &str) -> Result<(&str, Condition)> {
    let Some((run, word)) = text.split_once(':') else {
        return Ok((text, Condition::default()));
    };
    let known = Condition::ALL.into_iter().find(|when| when.word() == word);
    known.map(|when| (run, when)).ok_or_else(|| {
        let words = Condition::ALL.map(Condition::word);
        Error::usage(format!("--after `{text}`: `{word}` is no condition"))
            .maybe_hint(crate::suggest::did_you_mean(word, words))
            .hint("write RUN (it must succeed), RUN:failed or RUN:ended")
    })
}

impl fmt::Display for After {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.when {
            Condition::Succeeded => f.write_str(self.run.short()),
            when => write!(f, "{}:{}", self.run.short(), when.word()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Condition::{Ended, Failed, Succeeded};
    use Verdict::{Holds, Never, NotYet};

    fn counts(outcomes: &[Phase]) -> PhaseCounts {
        outcomes.iter().copied().collect()
    }

    #[test]
    fn a_condition_holds_of_all_runs_together() {
        let ok = Phase::Ended(Outcome::Succeeded);
        let failed = Phase::Ended(Outcome::Failed);
        let lost = Phase::Ended(Outcome::Lost);
        let cancelled = Phase::Ended(Outcome::Cancelled);
        for (phases, verdicts) in [
            (vec![], [Never, Never, Never]),
            (vec![Phase::Running], [NotYet, NotYet, NotYet]),
            (vec![failed, Phase::Queued], [NotYet, NotYet, NotYet]),
            (vec![ok], [Holds, Never, Holds]),
            (vec![ok, ok], [Holds, Never, Holds]),
            (vec![failed], [Never, Holds, Holds]),
            (vec![lost], [Never, Holds, Holds]),
            (vec![cancelled], [Never, Never, Holds]),
            (vec![ok, failed], [Never, Holds, Holds]),
            (vec![ok, cancelled], [Never, Never, Holds]),
        ] {
            let judged = [Succeeded, Failed, Ended].map(|when| when.judge(&counts(&phases)));
            assert_eq!(judged, verdicts, "{phases:?}");
        }
    }

    #[test]
    fn a_condition_follows_the_run() {
        assert_eq!(parse("@-1").ok(), Some(("@-1", Succeeded)));
        assert_eq!(parse("b1aee:failed").ok(), Some(("b1aee", Failed)));
        assert_eq!(parse("b1aee:ended").ok(), Some(("b1aee", Ended)));
        let error = parse("b1aee:fail").expect_err("it is no condition");
        assert!(error.to_string().contains("`fail`"), "{error}");
        assert!(error.hints()[0].contains("failed"), "{:?}", error.hints());
    }
}
