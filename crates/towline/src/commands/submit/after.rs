//! `--after`: the runs that must end before a submission begins.

use crate::context::Context;
use crate::runs::freshen::freshen;
use towline_core::after::{self, After, Verdict};
use towline_core::counts::PhaseCounts;
use towline_core::plan::Plan;
use towline_core::{Error, Result};
use towline_engine::history::{History, Target};

/// The runs of `--after RUN[:CONDITION]`. One whose condition can never hold is refused.
pub(crate) fn runs_before(context: &Context, texts: &[String]) -> Result<Vec<After>> {
    let mut all: Vec<After> = Vec::new();
    for text in texts {
        let (reference, when) = after::parse(text)?;
        let history = context.history()?;
        let target = history.find_to_read(reference)?;
        let before = After {
            run: target.id().clone(),
            when,
        };
        check_target(context, &history, &before, &target)
            .map_err(|error| error.hint("`--after RUN:ended` begins after any end"))?;
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

/// The hint about the runs that a submission waits for, and about the machine that has to be on.
pub(crate) fn hint(plan: &Plan) -> String {
    let before: Vec<String> = plan.after.iter().map(ToString::to_string).collect();
    let mut hint = format!("it begins after {}", before.join(", "));
    if !plan.is_here() {
        let cluster = &plan.cluster;
        hint += &format!("; this machine sends it to `{cluster}` then, so it has to be on");
    }
    hint
}

/// Refuses an order whose condition can no longer hold.
pub(crate) fn check(context: &Context, history: &History, before: &After) -> Result<()> {
    let target = history.find_to_read(before.run.as_str())?;
    check_target(context, history, before, &target)
}

fn check_target(
    context: &Context,
    history: &History,
    before: &After,
    target: &Target,
) -> Result<()> {
    let mut runs = target.runs().to_vec();
    freshen(context, history, &mut runs)?;
    let counts: PhaseCounts = runs.iter().map(|run| run.state.phase).collect();
    if before.when.judge(&counts) != Verdict::Never {
        return Ok(());
    }
    Err(Error::conflict(format!(
        "it would begin after {}, which will never have {}: {counts}",
        before.run,
        before.when.word()
    )))
}
