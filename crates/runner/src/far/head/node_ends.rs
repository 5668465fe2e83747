//! How an attempt ended on its nodes, and its ending as a whole.

use super::{CHECK_INTERVAL, Head};
use crate::far::lease::is_lapsed;
use crate::far::node::{UNCOLLECTED_DETAIL, writes_data};
use crate::far::records;
use std::fs;
use std::io;
use std::path::PathBuf;
use towline_core::cluster::{Claim, End};
use towline_core::reason::{Cause, Ending};
use towline_wire::stage::{Holder, Record, StopOrder};

impl Head {
    pub(super) fn node_end(&self, attempt: u32, node: u32) -> io::Result<Option<End>> {
        match fs::read(self.folder.node_end(attempt, node)) {
            Ok(bytes) => Ok(serde_json::from_slice(&bytes).ok()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(super) fn node_ends(&self, attempt: u32, claim: &Claim) -> io::Result<Vec<Option<End>>> {
        let nodes = u32::try_from(claim.hosts.len())
            .unwrap_or(u32::MAX)
            .min(self.order.plan.resolved.shape.nodes);
        (0..nodes)
            .map(|node| self.node_end(attempt, node))
            .collect()
    }

    /// The leases of nodes that have not written how it ended there.
    pub(super) fn leases_without_end(
        &self,
        attempt: u32,
        claim: &Claim,
    ) -> io::Result<Vec<PathBuf>> {
        let ends = self.node_ends(attempt, claim)?;
        let silent = (0..)
            .zip(&ends)
            .filter(|(_, end)| end.is_none())
            .map(|(node, _)| self.folder.lease(attempt, Holder::Node(node)));
        Ok(silent.collect())
    }

    /// Stops the runners on other nodes, because `srun` may be killed before them. When this
    /// returns, nothing of the attempt is alive on any node.
    pub(super) fn stop_silent_nodes(&mut self, attempt: u32, claim: &Claim) -> io::Result<()> {
        if self.order.plan.resolved.shape.nodes <= 1
            || self.leases_without_end(attempt, claim)?.is_empty()
        {
            return Ok(());
        }
        let ending = Ending::cause(Cause::NodeFailed).detail("`srun` ended before its nodes did");
        records::make(
            &self.folder,
            attempt,
            Record::Stop,
            &StopOrder {
                ending,
                at_once: true,
                by_scheduler: false,
            },
        )?;
        let claim_file = self.folder.record(attempt, Record::Claim);
        loop {
            let silent = self.leases_without_end(attempt, claim)?;
            if silent.is_empty() || is_lapsed(&silent, &claim_file)? {
                return Ok(());
            }
            self.signals.wait(CHECK_INTERVAL);
            self.leaving |= self.signals.is_end();
        }
    }

    /// Why something that the run wrote has not reached its datastore, if it has not.
    pub(super) fn uncollected(&self, ends: &[Option<End>]) -> Option<String> {
        let reported = ends
            .iter()
            .flatten()
            .find_map(|end| end.ending.uncollected.clone());
        let nobody_collected =
            writes_data(&self.order) && matches!(ends.first(), Some(None) | None);
        reported.or_else(|| nobody_collected.then(|| UNCOLLECTED_DETAIL.to_owned()))
    }
}

/// The ending of an attempt, from those of its nodes. `code` and `error` are what `srun` ended
/// with.
pub(super) fn combined(
    ends: &[Option<End>],
    claim: &Claim,
    code: Option<i32>,
    error: Option<&str>,
) -> Ending {
    let failed = ends
        .iter()
        .flatten()
        .filter(|end| end.ending.cause.is_some())
        .min_by_key(|end| end.at);
    if let Some(end) = failed {
        return end.ending.clone();
    }
    match ends.iter().position(Option::is_none) {
        None => Ending::success(),
        Some(node) => {
            let host = claim.hosts.get(node).map_or("", String::as_str);
            let how = code.map_or_else(|| "a signal".to_owned(), |code| format!("code {code}"));
            let how = error.map_or(how, |error| format!("srun: {error}"));
            Ending::cause(Cause::NodeFailed)
                .detail(format!("node {node} ({host}) recorded no end ({how})"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use towline_core::cluster::JobStart;
    use towline_core::time::Moment;

    #[test]
    fn the_first_node_to_fail_says_how_it_ended() {
        let claim = Claim {
            by: JobStart {
                job: "1".into(),
                restarts: 0,
            },
            at: Moment(0),
            hosts: vec!["a".into(), "b".into()],
            port: 1,
        };
        let end = |at, ending| {
            Some(End {
                at: Moment(at),
                ending,
            })
        };
        let failed = Ending::cause(Cause::ExitCode);
        assert_eq!(
            combined(
                &[end(5, Ending::success()), end(6, Ending::success())],
                &claim,
                Some(0),
                None
            ),
            Ending::success()
        );
        assert_eq!(
            combined(
                &[end(9, Ending::cause(Cause::Signal)), end(6, failed.clone())],
                &claim,
                Some(1),
                None
            ),
            failed
        );
        let silent = combined(&[end(5, Ending::success()), None], &claim, Some(137), None);
        assert_eq!(
            (silent.cause, silent.detail.as_deref()),
            (
                Some(Cause::NodeFailed),
                Some("node 1 (b) recorded no end (code 137)")
            )
        );
        let expired = combined(
            &[None, None],
            &claim,
            Some(167),
            Some("Task launch for StepId=7.0 failed on node b: Job credential expired"),
        );
        assert!(expired.detail.is_some_and(
            |detail| detail.contains("Job credential expired") && detail.contains("node 0 (a)")
        ));
    }
}
