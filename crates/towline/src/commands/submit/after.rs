//! `--after`: the runs that must end before a submission begins.

use crate::context::Context;
use crate::runs::freshen::freshen;
use towline_core::after::{self, After, Verdict};
use towline_core::counts::PhaseCounts;
use towline_core::{Error, Result};

/// The runs of `--after RUN[:CONDITION]`. One whose condition can never hold is refused.
pub(super) fn runs_before(context: &Context, texts: &[String]) -> Result<Vec<After>> {
    let mut all: Vec<After> = Vec::new();
    for text in texts {
        let (reference, when) = after::parse(text)?;
        let history = context.history()?;
        let target = history.find_to_read(reference)?;
        let mut runs = target.runs().to_vec();
        freshen(context, &history, &mut runs)?;
        let counts: PhaseCounts = runs.iter().map(|run| run.state.phase).collect();
        let before = After {
            run: target.id().clone(),
            when,
        };
        if when.judge(&counts) == Verdict::Never {
            return Err(Error::conflict(format!(
                "--after {text}: {} will never have {}: {counts}",
                before.run,
                when.word()
            ))
            .hint("`--after RUN:ended` begins after any end"));
        }
        if all
            .iter()
            .any(|known| known.run == before.run && known.when != when)
        {
            return Err(Error::usage(format!(
                "--after names {} with two conditions",
                before.run
            )));
        }
        if !all.contains(&before) {
            all.push(before);
        }
    }
    Ok(all)
}
