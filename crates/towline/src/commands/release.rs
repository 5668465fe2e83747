//! `tow release`: the end of an allocation, and of nothing else.

use super::{Report, abort};
use crate::aliases;
use crate::context::Context;
use towline_core::record::RunRecord;
use towline_core::state::Phase;
use towline_core::{Error, Result};
use towline_engine::history::{Filter, Target};

/// Let held nodes go: exactly that allocation.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tow release           the one I hold
  tow release 60ce      that one, where I hold several")]
pub(crate) struct Args {
    #[arg(value_name = "RUN")]
    run: Option<String>,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<Report> {
    let history = context.history()?;
    let record = match &args.run {
        Some(text) => match history.find_to_change(text)? {
            Target::Run(record) if aliases::is_allocation(&record) => *record,
            other => return Err(Error::refused(format!("{} is no allocation", other.id())).hint("`tow abort` ends other runs")),
        },
        None => only(history.list(&Filter { phases: vec![Phase::Staging, Phase::Submitting, Phase::Queued, Phase::Running], ..Filter::default() })?)?,
    };
    drop(history);
    abort::abort_and_wait(context, std::slice::from_ref(&record.id))?;
    aliases::write(context)?;
    Ok(Report::new(format!("released {}\n", record.id), &serde_json::json!({ "released": record.id })))
}

fn only(runs: Vec<RunRecord>) -> Result<RunRecord> {
    let mut held: Vec<RunRecord> = runs.into_iter().filter(aliases::is_allocation).collect();
    match held.len() {
        0 => Err(Error::not_found("there is no allocation").hint("`tow ps` lists runs")),
        1 => Ok(held.remove(0)),
        _ => {
            let names: Vec<String> = held.iter().map(|record| record.id.to_string()).collect();
            Err(Error::new(towline_core::ErrorKind::Ambiguous, format!("there are {}: {}", names.len(), names.join(", "))).hint("name one"))
        }
    }
}
