//! `tow wait`: waits until runs have ended.

use super::Report;
use super::logs::LOST;
use crate::context::Context;
use crate::runs::follow::wait_for;
use towline_core::quantity::Span;
use towline_core::reason::{Ending, Outcome};
use towline_core::state::{Phase, RunState};
use towline_core::{Result, RunId};
use towline_engine::history::{Filter, History};
use towline_wire::report::{Run, Runs};

/// Wait for runs to end; exit with the first code that is not 0.
///
/// On a terminal a line says meanwhile how many runs are in which state.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tow wait @                  the latest; of a sweep, every run
  tow wait                    all that are not done yet
  tow wait 60ce --timeout 2h  at most two hours, then 124")]
pub(crate) struct Args {
    /// Runs or sweeps [default: all active ones].
    #[arg(value_name = "RUN")]
    runs: Vec<String>,
    /// Give up after this time.
    #[arg(long, value_name = "TIME")]
    timeout: Option<Span>,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<Report> {
    let Some(history) = context.maybe_history()? else {
        return match args.runs.first() {
            Some(text) => Err(
                towline_core::Error::not_found(format!("no run is called `{text}`"))
                    .hint("there is none yet"),
            ),
            None => Ok(Report::of(&Runs::default(), text)),
        };
    };
    let runs = wanted(&history, &args.runs)?;
    let states = wait_for(
        context,
        &runs,
        args.timeout
            .map(|span| std::time::Duration::from_secs(span.0)),
    )?;
    let mut answer = Runs::default();
    let mut first: Option<(u8, String)> = None;
    for (id, state) in runs.iter().zip(&states) {
        let (code, why) = code(state);
        if code != 0 && first.is_none() {
            first = Some((
                code,
                format!("{id} {}: {why}; code {code}", state.phase.word()),
            ));
        }
        if let Some(mut record) = history.run(id)? {
            record.state = state.clone();
            answer.runs.push(Run::from(&record));
        }
    }
    let report = Report::of(&answer, text);
    Ok(match first {
        Some((code, words)) => Report {
            last_words: Some(words),
            ..report.code(code)
        },
        None => report,
    })
}

fn text(answer: &Runs) -> String {
    super::lines(&answer.runs, |run| format!("{} {}", run.id, run.state))
}

/// The runs that are named; all that have not ended if none is.
fn wanted(history: &History, texts: &[String]) -> Result<Vec<RunId>> {
    let mut runs: Vec<RunId> = Vec::new();
    for text in texts {
        runs.extend(
            history
                .find_to_read(text)?
                .runs()
                .iter()
                .map(|run| run.id.clone()),
        );
    }
    if texts.is_empty() {
        let phases = vec![
            Phase::Drafted,
            Phase::Staging,
            Phase::Submitting,
            Phase::Queued,
            Phase::Running,
        ];
        runs.extend(
            history
                .list(&Filter {
                    phases,
                    ..Filter::default()
                })?
                .into_iter()
                .rev()
                .map(|run| run.id),
        );
    }
    Ok(runs)
}

/// The exit code of this verb for a run, and why.
fn code(state: &RunState) -> (u8, String) {
    if state.phase == Phase::Ended(Outcome::Lost) {
        return (towline_core::ErrorKind::Lost.exit_code(), LOST.to_owned());
    }
    let ending = state.ending.clone().unwrap_or_else(Ending::success);
    let code = u8::try_from(ending.passed_code() & 0xff).unwrap_or(1);
    (code, ending.to_string())
}
