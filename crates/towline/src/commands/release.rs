//! `tow release`: ends an allocation, and no other run.

use super::{Report, abort};
use crate::context::Context;
use crate::reach::aliases;
use towline_core::record::RunRecord;
use towline_core::state::Phase;
use towline_core::{Error, Result, RunId};
use towline_engine::history::{Filter, Target};
use towline_wire::report::release::{Released, ReleasedIds};

/// Release held nodes: exactly that allocation.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tow release           the one I hold
  tow release 60ce      that one, where I hold several
  tow release --all     all that I hold")]
pub(crate) struct Args {
    /// The allocation, where you hold several.
    #[arg(value_name = "RUN")]
    run: Option<String>,
    /// Release every allocation of mine, also those that still wait.
    #[arg(long, conflicts_with = "run")]
    all: bool,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<Report> {
    let history = context.history()?;
    let active = || {
        history.list(&Filter {
            phases: vec![
                Phase::Staging,
                Phase::Submitting,
                Phase::Queued,
                Phase::Running,
            ],
            ..Filter::default()
        })
    };
    let chosen = match &args.run {
        Some(text) => match history.find_to_change(text)? {
            Target::Run(record) if aliases::is_allocation(&record) => vec![*record],
            other => {
                return Err(
                    Error::refused(format!("{} is not an allocation", other.id()))
                        .hint("`tow abort` ends other runs"),
                );
            }
        },
        None if args.all => active()?
            .into_iter()
            .filter(aliases::is_allocation)
            .collect(),
        None => vec![only(active()?)?],
    };
    drop(history);
    let ids: Vec<RunId> = chosen.into_iter().map(|record| record.id).collect();
    // Connections to nodes that are about to be somebody else's.
    for id in &ids {
        crate::scratch::hang_up(context, id);
    }
    abort::cancel_and_wait(context, &ids)?;
    aliases::write(context)?;
    let released = match (ids.first(), args.all) {
        (Some(id), false) => ReleasedIds::One(id.clone()),
        _ => ReleasedIds::All(ids),
    };
    let answer = Released { released };
    let report = Report::of(&answer, text);
    Ok(if answer.ids().is_empty() {
        report.hint("there was no allocation")
    } else {
        report
    })
}

fn text(answer: &Released) -> String {
    super::lines(answer.ids(), |id| format!("released {id}"))
}

fn only(runs: Vec<RunRecord>) -> Result<RunRecord> {
    let mut held: Vec<RunRecord> = runs.into_iter().filter(aliases::is_allocation).collect();
    match held.len() {
        0 => Err(Error::not_found("there is no allocation").hint("`tow ps` lists runs")),
        1 => Ok(held.remove(0)),
        _ => {
            let names: Vec<String> = held.iter().map(|record| record.id.to_string()).collect();
            Err(Error::new(
                towline_core::ErrorKind::Ambiguous,
                format!("there are {}: {}", names.len(), names.join(", ")),
            )
            .hint("name one, or `--all`"))
        }
    }
}
