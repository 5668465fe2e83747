//! Runs on far clusters, for verbs: how fresh they are, asking their clusters, fetching logs.

use crate::context::Context;
use crate::output;
use std::time::Duration;
use towline_client as client;
use towline_core::cluster::RunRef;
use towline_core::reason::Outcome;
use towline_core::record::RunRecord;
use towline_core::state::Phase;
use towline_core::time::Moment;
use towline_core::{ErrorKind, Result, RunId};
use towline_engine::flow::waiting;
use towline_engine::history::History;
use towline_wire::cluster::ClusterStatus;
use towline_wire::daemon::{Reply, Request};
use towline_wire::layout::StateFolder;

/// How long to wait for new logs before the local copy is shown.
const LOGS_TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) use towline_api::runs::fresh::{is_far, mark_quiet_cluster as freshness};

/// The places of a far run on its cluster: its folder, and its code if that is stored.
pub(crate) fn places(
    context: &Context,
    history: &History,
    record: &RunRecord,
) -> Result<Option<(String, Option<String>)>> {
    if !is_far(history, &record.id)? {
        return Ok(None);
    }
    // A cluster that the configuration does not name any more has no known place.
    let cluster = context.cluster(&record.cluster).ok();
    Ok(cluster.and_then(|cluster| cluster.run_folder(&record.id)))
}

/// Fetches the new log bytes of a far run. If its cluster cannot be reached, a warning says so, and
/// the local copy is shown.
pub(crate) fn bring_logs(context: &Context, history: &History, run: &RunId) -> Result<()> {
    if !is_far(history, run)? {
        return Ok(());
    }
    let cluster = history
        .run(run)?
        .map(|record| record.cluster)
        .unwrap_or_default();
    match ask_cluster(
        context,
        &cluster,
        &|| Request::BringLogs { run: run.clone() },
        LOGS_TIMEOUT,
    ) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::Unreachable => {
            output::status(&format!(
                "warning: {error}; the lines below were fetched earlier"
            ));
            Ok(())
        }
        Err(error) => Err(error),
    }
}

/// Sends a request that only a run's cluster can answer, and waits at most `limit`. After a moment
/// the user is told what blocks the answer.
pub(crate) fn ask_cluster(
    context: &Context,
    cluster: &str,
    make: &dyn Fn() -> Request,
    limit: Duration,
) -> Result<Reply> {
    let state = context.state()?;
    let begun = towline_host::clock::now();
    let line = || match trouble(state, cluster, begun) {
        Some(why) => format!("waiting for `{cluster}`: {why}"),
        None => format!("waiting for `{cluster}`"),
    };
    let answer = waiting::told(output::status, line, || {
        client::ask_within(state, make, limit)
    });
    answer.map_err(|error| match trouble(state, cluster, begun) {
        Some(why) if error.kind() == ErrorKind::Unreachable => {
            error.while_doing(format!("`{cluster}` does not answer: {why}"))
        }
        _ => error,
    })
}

/// What has kept a cluster from answering since then.
fn trouble(state: &StateFolder, cluster: &str, since: Moment) -> Option<String> {
    let status = ClusterStatus::read(&state.cluster(cluster, "status"))
        .ok()
        .flatten()?;
    status
        .trouble
        .filter(|_| status.at.is_some_and(|at| at >= since))
}

/// Makes the daemon look at a run's cluster now. If the cluster does not answer, the facts stay as
/// old as they are, and every verb says so.
pub(crate) fn look_now(context: &Context, cluster: &str, run: &RunId) -> Result<()> {
    match ask_cluster(
        context,
        cluster,
        &|| Request::Refresh { run: run.clone() },
        LOGS_TIMEOUT,
    ) {
        Err(error) if error.kind() != ErrorKind::Unreachable => Err(error),
        _ => Ok(()),
    }
}

/// The platform's own messages about a run that failed before any rank printed something. Empty if
/// they cannot be read now.
pub(crate) fn last_words(context: &Context, history: &History, record: &RunRecord) -> Vec<String> {
    let has_failed = record.state.phase == Phase::Ended(Outcome::Failed);
    let is_far = is_far(history, &record.id).unwrap_or(false);
    let is_written =
        |log: &crate::runs::logfiles::LogFile| log.path.metadata().is_ok_and(|meta| meta.len() > 0);
    let has_log = |state: &StateFolder| {
        crate::runs::logfiles::list(state, &record.id).is_ok_and(|logs| logs.iter().any(is_written))
    };
    if !has_failed || !is_far || context.state().is_ok_and(has_log) {
        return Vec::new();
    }
    let Ok(cluster) = context.cluster(&record.cluster) else {
        return Vec::new();
    };
    let lines = cluster
        .sign_in()
        .and_then(|()| cluster.platform_log(&RunRef::known(&record.id, &record.state)));
    lines.unwrap_or_default()
}
