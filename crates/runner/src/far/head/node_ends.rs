//! How an attempt ended on its nodes: their records and leases in the run's folder.

use super::Head;
use crate::far::lease::is_lapsed;
use crate::far::node::{UNCOLLECTED_DETAIL, writes_data};
use crate::far::records;
use crate::gang::{CHECK_INTERVAL, Event};
use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::Instant;
use towline_core::cluster::{Claim, End};
use towline_core::reason::{Cause, Ending};
use towline_wire::stage::{Holder, LEASE_EVERY, Record, StopOrder};

impl Head {
    fn node_end(&self, attempt: u32, node: u32) -> io::Result<Option<End>> {
        match fs::read(self.folder.node_end(attempt, node)) {
            Ok(bytes) => Ok(serde_json::from_slice(&bytes).ok()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn node_ends(&self, attempt: u32, claim: &Claim) -> io::Result<Vec<Option<End>>> {
        let nodes = u32::try_from(claim.hosts.len())
            .unwrap_or(u32::MAX)
            .min(self.order.plan.resolved.shape.nodes);
        (0..nodes)
            .map(|node| self.node_end(attempt, node))
            .collect()
    }

    /// The leases of nodes that have not recorded how the attempt ended there.
    fn leases_without_end(&self, attempt: u32, claim: &Claim) -> io::Result<Vec<PathBuf>> {
        let ends = self.node_ends(attempt, claim)?;
        let silent = (0..)
            .zip(&ends)
            .filter(|(_, end)| end.is_none())
            .map(|(node, _)| self.folder.lease(attempt, Holder::Node(node)));
        Ok(silent.collect())
    }

    /// Nodes that failed or are lost while others go on.
    pub(super) fn failures(&mut self) -> io::Result<Vec<Event>> {
        let Some(current) = &self.current else {
            return Ok(Vec::new());
        };
        if self.order.plan.resolved.shape.nodes <= 1 {
            return Ok(Vec::new());
        }
        let (attempt, claim) = (current.attempt, current.claim.clone());
        let ends = self.node_ends(attempt, &claim)?;
        let failed = ends
            .into_iter()
            .flatten()
            .filter(|end| end.ending.cause.is_some())
            .min_by_key(|end| end.at);
        if let Some(end) = failed {
            return Ok(vec![if end.ending.cause == Some(Cause::ByUser) {
                // The scheduler's signal reached the node before us: the scheduler knows why.
                Event::Signalled
            } else {
                Event::NodeFailed(end.ending)
            }]);
        }
        self.lost_node(attempt, &claim)
    }

    /// A node that had begun and no longer renews its lease.
    fn lost_node(&mut self, attempt: u32, claim: &Claim) -> io::Result<Vec<Event>> {
        if self.leases_checked.elapsed() < LEASE_EVERY {
            return Ok(Vec::new());
        }
        self.leases_checked = Instant::now();
        let claim_file = self.folder.record(attempt, Record::Claim);
        for (node, host) in (0..).zip(&claim.hosts) {
            let lease = self.folder.lease(attempt, Holder::Node(node));
            if self.node_end(attempt, node)?.is_none()
                && lease.exists()
                && is_lapsed(std::slice::from_ref(&lease), &claim_file)?
            {
                return Ok(vec![Event::NodeLost {
                    node,
                    why: format!("its node {host} does not respond any more"),
                    is_gone: true,
                }]);
            }
        }
        Ok(Vec::new())
    }

    /// Stops the runners on other nodes, because `srun` may be killed before them. When this
    /// returns, nothing of the attempt is alive on any node. Returns whether the scheduler has
    /// signalled us meanwhile.
    pub(super) fn stop_silent_nodes(&mut self, attempt: u32, claim: &Claim) -> io::Result<bool> {
        if self.order.plan.resolved.shape.nodes <= 1
            || self.leases_without_end(attempt, claim)?.is_empty()
        {
            return Ok(false);
        }
        let ending = Ending::cause(Cause::NodeFailed).detail("`srun` ended before its nodes did");
        let stop = StopOrder {
            ending,
            at_once: true,
            by_scheduler: false,
        };
        records::make(&self.folder, attempt, Record::Stop, &stop)?;
        let claim_file = self.folder.record(attempt, Record::Claim);
        let mut is_signalled = false;
        loop {
            let silent = self.leases_without_end(attempt, claim)?;
            if silent.is_empty() || is_lapsed(&silent, &claim_file)? {
                return Ok(is_signalled);
            }
            self.signals.wait(CHECK_INTERVAL, &[]);
            is_signalled |= self.signals.is_end();
        }
    }

    /// How the attempt ended on each node. `code` and `error` are those of `srun`.
    pub(super) fn ends(
        &self,
        attempt: u32,
        claim: &Claim,
        code: Option<i32>,
        error: Option<&str>,
    ) -> io::Result<Vec<Event>> {
        let ends = self.node_ends(attempt, claim)?;
        let nobody_collects = writes_data(&self.order) && matches!(ends.first(), Some(None) | None);
        let mut events = Vec::from_iter(
            nobody_collects.then(|| Event::Uncollected(UNCOLLECTED_DETAIL.to_owned())),
        );
        events.extend(ended(&ends, claim, code, error));
        Ok(events)
    }
}

/// The ends of the nodes, the first that failed first, and then those without a record.
fn ended(
    ends: &[Option<End>],
    claim: &Claim,
    code: Option<i32>,
    error: Option<&str>,
) -> Vec<Event> {
    let mut recorded: Vec<(u32, &End)> = (0..)
        .zip(ends)
        .filter_map(|(node, end)| Some((node, end.as_ref()?)))
        .collect();
    recorded.sort_by_key(|(_, end)| end.at);
    let recorded = recorded.into_iter().map(|(node, end)| Event::NodeEnded {
        node,
        ending: end.ending.clone(),
    });
    let silent = (0..).zip(ends).filter(|(_, end)| end.is_none());
    let silent = silent.map(|(node, _): (u32, _)| {
        let host = claim.hosts.get(node as usize).map_or("", String::as_str);
        let how = code.map_or_else(|| "a signal".to_owned(), |code| format!("code {code}"));
        let how = error.map_or(how, |error| format!("srun: {error}"));
        Event::NodeLost {
            node,
            why: format!("node {node} ({host}) recorded no end ({how})"),
            is_gone: false,
        }
    });
    recorded.chain(silent).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gang::ending_after;
    use towline_core::cluster::JobStart;
    use towline_core::time::Moment;

    fn end(at: i64, ending: Ending) -> End {
        End {
            at: Moment(at),
            ending,
        }
    }

    /// The ending of an attempt on two nodes.
    fn combined(ends: &[Option<End>], code: i32, error: Option<&str>) -> Ending {
        let claim = Claim {
            by: JobStart {
                job: "1".into(),
                restarts: 0,
            },
            at: Moment(0),
            hosts: vec!["a".into(), "b".into()],
            port: 1,
        };
        ending_after(2, ended(ends, &claim, Some(code), error))
    }

    #[test]
    fn the_first_node_to_fail_says_how_it_ended() {
        let failed = Ending::cause(Cause::ExitCode);
        assert_eq!(
            combined(
                &[
                    Some(end(5, Ending::success())),
                    Some(end(6, Ending::success()))
                ],
                0,
                None
            ),
            Ending::success()
        );
        assert_eq!(
            combined(
                &[
                    Some(end(9, Ending::cause(Cause::Signal))),
                    Some(end(6, failed.clone()))
                ],
                1,
                None
            ),
            failed
        );
        assert_eq!(
            combined(&[None, Some(end(6, failed.clone()))], 1, None),
            failed,
            "a record says more than none"
        );
        let silent = combined(&[Some(end(5, Ending::success())), None], 137, None);
        assert_eq!(
            (silent.cause, silent.detail.as_deref()),
            (
                Some(Cause::NodeFailed),
                Some("node 1 (b) recorded no end (code 137)")
            )
        );
        let expired = combined(
            &[None, None],
            167,
            Some("Task launch for StepId=7.0 failed on node b: Job credential expired"),
        );
        assert!(expired.detail.is_some_and(
            |detail| detail.contains("Job credential expired") && detail.contains("node 0 (a)")
        ));
    }
}
