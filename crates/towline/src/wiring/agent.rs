//! What a verb may do for an agent. The variable `TOW_AGENT` says that it acts for one: `tow mcp`
//! sets it for every verb that it calls.

use crate::cli::Verb;
use crate::context::Context;
use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use towline_core::agents::{Allowance, GpuTime, check_job, name_of, reserved};
use towline_core::job::Job;
use towline_core::plan::Plan;
use towline_core::time::Moment;
use towline_core::{Error, Result, RunId};
use towline_engine::history::History;
use towline_host::own::AGENT_VARIABLE;
use towline_host::{clock, lock, surroundings};

const MILLISECONDS_PER_DAY: i64 = 24 * 3600 * 1000;

/// The agent that this process acts for.
pub(crate) fn name() -> Option<String> {
    let value = surroundings::variable_os(AGENT_VARIABLE)?;
    Some(name_of(&value.to_string_lossy()))
}

/// Refuses a verb that no agent may use, and every verb if the user allows agents nothing.
pub(crate) fn check_verb(context: &Context, verb: &Verb) -> Result<()> {
    let Some(agent) = name() else {
        return Ok(());
    };
    if !verb.is_for_agents() {
        let error = Error::refused(format!("an agent (`{agent}`) may not use this verb"));
        return Err(error.hint(
            "agents may use submit, run, abort, ps, show, query, logs, why, wait and clusters",
        ));
    }
    context.layers()?.config.agents.allowance().map(drop)
}

/// Refuses a job that no agent may submit.
pub(crate) fn check(job: &Job) -> Result<()> {
    name().map_or(Ok(()), |_| check_job(job))
}

/// What is allowed, and what the agents' runs have taken of it.
pub(crate) fn allowance(context: &Context) -> Result<(Allowance, GpuTime)> {
    let allowance = context.layers()?.config.agents.allowance()?;
    let since = clock::now().0 - i64::from(allowance.days) * MILLISECONDS_PER_DAY;
    let taken = match context.maybe_history()? {
        Some(history) => history.taken_by_agents(Moment(since))?,
        None => GpuTime::default(),
    };
    Ok((allowance, taken))
}

/// Lets an agent's plan in, if its budget is enough, and records whose it is. Until the file is
/// dropped, no other submission of an agent is let in: two at once cannot have the same rest.
pub(crate) fn admit(context: &Context, plan: &mut Plan) -> Result<Option<File>> {
    let Some(agent) = name() else {
        return Ok(None);
    };
    let path = context.state()?.agents_lock();
    let failed = |error| Error::from_io(format!("{} cannot be locked", path.display()), error);
    if let Some(folder) = path.parent() {
        towline_host::filesystem::private_folder(folder).map_err(failed)?;
    }
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(&path)
        .map_err(failed)?;
    lock::lock_alone(&file).map_err(failed)?;
    let (allowance, taken) = allowance(context)?;
    allowance.check_plan(plan, taken)?;
    let takes = reserved(plan)?;
    let left = allowance.budget.minus(taken.plus(takes));
    plan.notes.push(format!(
        "it reserves {takes}; then {left} of {} in {} days are left for agents",
        allowance.budget, allowance.days
    ));
    plan.agent = Some(agent);
    Ok(Some(file))
}

/// Refuses to end runs that are not the agent's own.
pub(crate) fn check_own(history: &History, runs: &[RunId]) -> Result<()> {
    let Some(agent) = name() else {
        return Ok(());
    };
    for run in runs {
        if history.agent_of(run)?.as_deref() != Some(agent.as_str()) {
            return Err(
                Error::refused(format!("{run} was not submitted by `{agent}`"))
                    .hint("an agent may abort only its own runs"),
            );
        }
    }
    Ok(())
}
