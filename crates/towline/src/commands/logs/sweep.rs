//! `tow logs` of a sweep: the logs of its runs one after another, or all at once as they grow.

use super::{Args, Report, view};
use crate::context::Context;
use crate::output;
use crate::runs::follow::{Label, View, follow, follow_all};
use crate::runs::freshen::freshen;
use towline_core::counts::PhaseCounts;
use towline_core::reason::Outcome;
use towline_core::record::RunRecord;
use towline_core::state::{Phase, RunState};
use towline_core::{Error, Result, RunId};
use towline_engine::history::History;
use towline_wire::report::Run;
use towline_wire::report::time::Values;

pub(super) fn show(
    context: &Context,
    history: &History,
    args: &Args,
    id: &RunId,
    mut runs: Vec<RunRecord>,
) -> Result<Report> {
    freshen(context, history, &mut runs)?;
    let far = crate::runs::far::is_far(history, &runs[0].id)?;
    let is_active = |run: &RunRecord| !run.state.phase.is_ended();
    if args.follow && runs.iter().any(is_active) {
        return follow_active(context, args, id, &runs, far);
    }
    one_after_another(context, history, args, id, &runs, far)
}

fn one_after_another(
    context: &Context,
    history: &History,
    args: &Args,
    id: &RunId,
    runs: &[RunRecord],
    far: bool,
) -> Result<Report> {
    let least = args.attempt.unwrap_or(1).max(1);
    let begun = |run: &&RunRecord| run.state.attempt >= least;
    if let Some(attempt) = args.attempt
        && !runs.iter().any(|run| begun(&run))
    {
        return Err(Error::not_found(format!(
            "no run of {id} has an attempt {attempt}"
        )));
    }
    for run in runs {
        if begun(&run) {
            if far {
                crate::runs::far::bring_logs(context, history, &run.id)?;
            }
            let view = View {
                follow: false,
                narrate: false,
                ..view(args, run, Label::Heading(heading(run)))?
            };
            follow(context, &view, run.state.clone())?;
        }
        // A program that follows gets the end of each run, also of those that ended before.
        if args.follow && context.json {
            tell_end(context, &run.id, &run.state)?;
        }
    }
    let without = runs.iter().filter(|run| run.state.attempt == 0).count();
    Ok(match without {
        0 => Report::default(),
        all if all == runs.len() => Report::default().hint(format!(
            "no run of {id} has begun, so there is no log yet: tow why {0}    wait for them: tow \
                logs -f {0}",
            id.short()
        )),
        some => Report::default().hint(format!(
            "{some} of {} runs have no log, because they have not begun: tow ps {}",
            runs.len(),
            id.short()
        )),
    })
}

/// `==> b1aee-3 lr=0.1 seed=2: failed <==`
fn heading(run: &RunRecord) -> String {
    // A heading is one line, whatever a value holds.
    let values = Values(run.parameters.clone()).to_string();
    let values = values.replace(['\n', '\r', '\t'], " ");
    let gap = if values.is_empty() { "" } else { " " };
    let word = run.state.phase.word();
    format!("==> {}{gap}{values}: {word} <==", run.id.short())
}

/// Shows the logs of all runs that have not ended, each line with its run.
fn follow_active(
    context: &Context,
    args: &Args,
    id: &RunId,
    runs: &[RunRecord],
    far: bool,
) -> Result<Report> {
    if far && args.tail.is_some() {
        for run in runs.iter().filter(|run| !run.state.phase.is_ended()) {
            crate::runs::far::bring_logs(context, &context.history()?, &run.id)?;
        }
    }
    let views = runs
        .iter()
        .filter(|run| !run.state.phase.is_ended())
        .map(|run| view(args, run, Label::Prefix(run.id.short().to_owned())))
        .collect::<Result<Vec<View>>>()?;
    let before = runs.len() - views.len();
    if before > 0 && !context.json {
        output::hint(&format!(
            "{before} of {} runs had ended before: tow logs {}",
            runs.len(),
            id.short()
        ));
    }
    let mut counts: PhaseCounts = runs
        .iter()
        .map(|run| run.state.phase)
        .filter(|phase| phase.is_ended())
        .collect();
    let mut ended = |run: &RunId, state: &RunState| {
        counts.add(state.phase, 1);
        tell_end(context, run, state)
    };
    if !follow_all(context, &views, far, &mut ended)? {
        return Ok(Report {
            code: 130,
            ..Report::default()
        });
    }
    let report = Report {
        last_words: (!context.json).then(|| format!("{id}: {counts}")),
        ..Report::default()
    };
    Ok(if counts.of(Phase::Ended(Outcome::Failed)) > 0 {
        report.hint(format!("tow why {}", id.short()))
    } else {
        report
    })
}

/// Tells the end of one run. For programs it is a document of its own, as that of a single run is.
fn tell_end(context: &Context, run: &RunId, state: &RunState) -> Result<()> {
    if context.json {
        let Some(mut record) = context.history()?.run(run)? else {
            return Ok(());
        };
        record.state = state.clone();
        let document = serde_json::to_value(Run::from(&record)).unwrap_or_default();
        return output::json(&document);
    }
    let why = match (state.phase, &state.ending) {
        (Phase::Ended(Outcome::Succeeded), _) | (_, None) => String::new(),
        (_, Some(ending)) => format!(": {ending}"),
    };
    output::status(&format!("{} {}{why}", run.short(), state.phase.word()));
    Ok(())
}
