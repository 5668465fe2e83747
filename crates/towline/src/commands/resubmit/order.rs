//! The runs that a resubmission waits for.

use super::Again;
use crate::commands::submit::after::{check, runs_before};
use crate::context::Context;
use towline_core::after::After;
use towline_core::plan::Plan;
use towline_core::{Result, RunId};
use towline_engine::history::History;

/// Options that change the order of runs.
#[derive(Debug, clap::Args)]
pub(super) struct OrderArgs {
    /// Begin after other runs than the old one did: RUN, RUN:failed or RUN:ended.
    #[arg(
        long,
        value_name = "RUN",
        value_delimiter = ',',
        conflicts_with = "now"
    )]
    after: Vec<String>,
    /// Wait for no run, even if the old one did.
    #[arg(long)]
    now: bool,
}

impl OrderArgs {
    /// The runs that the new one waits for. `again` are those that the same call submits again:
    /// their new runs take the places of the old ones.
    pub(super) fn runs_before(
        &self,
        context: &Context,
        history: &History,
        old: &Plan,
        again: &[Again],
    ) -> Result<Vec<After>> {
        if self.now {
            return Ok(Vec::new());
        }
        if !self.after.is_empty() {
            return runs_before(context, &self.after);
        }
        let mut all = Vec::new();
        for before in &old.after {
            let new = again.iter().find_map(|again| again.new_id_of(&before.run));
            if let Some(run) = new {
                let when = before.when;
                all.push(After { run, when });
                continue;
            }
            check(context, history, before).map_err(|error| {
                error.hint(format!(
                    "`--after RUN` names another run to wait for, `--now` waits for none; \
                        `tow resubmit {} {}` submits both again in this order",
                    before.run.short(),
                    old.id.short()
                ))
            })?;
            all.push(before.clone());
        }
        Ok(all)
    }
}

impl Again {
    /// The id that the whole of `old` has now.
    fn new_id_of(&self, old: &RunId) -> Option<RunId> {
        (self.target.id() == old).then(|| self.new.plan.id.clone())
    }
}
