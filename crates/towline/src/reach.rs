//! Where a run is now, for those who want in: a shell, a port, an alias. Asked anew each time, so
//! that a run that was started again elsewhere is found there.

use crate::context::{AnyCluster, Context, SlurmCluster};
use std::time::Duration;
use towline_core::record::RunRecord;
use towline_core::state::Phase;
use towline_core::{Error, Result, RunId};
use towline_wire::daemon::Request;

/// How long a cluster may take to be looked at.
const LOOKS: Duration = Duration::from_secs(60);

/// A running run on a far cluster.
pub(crate) struct Reached {
    pub(crate) cluster: Box<SlurmCluster>,
    /// The scheduler's id of the job that carries it now.
    pub(crate) job: String,
    /// By node.
    pub(crate) hosts: Vec<String>,
}

/// The job and the hosts of a run, or why there are none.
pub(crate) fn reach(context: &Context, run: &RunId) -> Result<Reached> {
    let record = current(context, run)?;
    let cluster = match context.cluster(&record.cluster)? {
        AnyCluster::Slurm(cluster) => cluster,
        AnyCluster::Local(_) => {
            return Err(Error::refused(format!("{run} is on this machine"))
                .hint("its ports are at localhost"));
        }
        AnyCluster::Azure(_) => {
            let error = Error::refused(format!(
                "{run} is on Azure ML, which lets nobody in but by ssh"
            ));
            return Err(error.hint(
                "`tow submit ssh`, then `tow ssh RUN`; its page in the portal \
                has other services of an interactive job",
            ));
        }
    };
    let short = run.short();
    let refuse = |why: String, hint: String| Err(Error::refused(why).hint(hint));
    match record.state.phase {
        Phase::Ended(_) => refuse(
            format!("{run} has ended ({})", record.state.phase.word()),
            format!("`tow submit ssh` or `tow alloc` keeps nodes; its files: tow get {short} PATH"),
        ),
        Phase::Running => {
            let job = record
                .state
                .runner
                .as_deref()
                .and_then(|runner| runner.strip_prefix("job "))
                .map(str::to_owned);
            let hosts = record
                .state
                .native
                .as_ref()
                .map(|native| native.hosts.clone())
                .unwrap_or_default();
            match job {
                Some(job) if !hosts.is_empty() => Ok(Reached {
                    cluster,
                    job,
                    hosts,
                }),
                _ => refuse(
                    format!("where {run} runs is not known yet"),
                    "try again in a moment".to_owned(),
                ),
            }
        }
        _ => refuse(
            format!("{run} does not run yet ({})", record.state.phase.word()),
            format!("what it waits for: tow why {short}"),
        ),
    }
}

/// The record after the cluster was looked at once more.
fn current(context: &Context, run: &RunId) -> Result<RunRecord> {
    let cluster = context
        .history()?
        .run(run)?
        .map(|record| record.cluster)
        .unwrap_or_default();
    match crate::far::ask_cluster(
        context,
        &cluster,
        &|| Request::Refresh { run: run.clone() },
        LOOKS,
    ) {
        // It has ended, and is nobody's any more.
        Err(error) if error.kind() == towline_core::ErrorKind::NotFound => {}
        answer => drop(answer?),
    }
    let history = context.history()?;
    history
        .run(run)?
        .ok_or_else(|| Error::not_found(format!("no run is called `{run}`")))
}

/// The node of a rank.
pub(crate) fn host_of<'h>(record: &RunRecord, hosts: &'h [String], rank: u32) -> Result<&'h str> {
    let per_node = (record.world / record.nodes.max(1)).max(1);
    let node = usize::try_from(rank / per_node).unwrap_or(usize::MAX);
    hosts.get(node).map(String::as_str).ok_or_else(|| {
        Error::not_found(format!("{} has no rank {rank}", record.id))
            .hint(format!("ranks 0 to {}", record.world.saturating_sub(1)))
    })
}
