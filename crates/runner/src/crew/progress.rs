//! The progress of an attempt on all nodes. The first cause to end it counts.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use towline_core::reason::Ending;

#[derive(Debug)]
pub(super) struct Progress {
    /// Nodes where processes of it may be alive.
    open: BTreeSet<u32>,
    has_started: bool,
    why: Option<Ending>,
    /// Since when it is being stopped.
    since: Option<Instant>,
}

impl Progress {
    pub(super) fn new(nodes: u32) -> Self {
        Self {
            open: (0..nodes).collect(),
            has_started: false,
            why: None,
            since: None,
        }
    }

    /// Marks it as started. Returns whether it was not before.
    pub(super) const fn started(&mut self) -> bool {
        !std::mem::replace(&mut self.has_started, true)
    }

    pub(super) fn is_open(&self, node: u32) -> bool {
        self.open.contains(&node)
    }

    /// Whether only this node still has processes of it.
    pub(super) fn is_open_here_alone(&self) -> bool {
        self.open.iter().all(|node| *node == 0)
    }

    pub(super) fn is_over(&self) -> bool {
        self.open.is_empty()
    }

    pub(super) const fn is_stopping(&self) -> bool {
        self.why.is_some()
    }

    /// Stops it, for this reason. Returns whether the others must be told.
    pub(super) fn stop(&mut self, ending: Ending) -> bool {
        let is_first = self.why.is_none();
        if is_first {
            self.why = Some(ending);
            self.since = Some(Instant::now());
        }
        is_first
    }

    /// Marks it as ended on a node.
    pub(super) fn ended(&mut self, node: u32) {
        self.open.remove(&node);
    }

    /// Other nodes that should have reported their end by now.
    pub(super) fn late(&self, limit: Duration) -> Vec<u32> {
        let is_late = self.since.is_some_and(|since| since.elapsed() >= limit);
        self.open
            .iter()
            .copied()
            .filter(|node| is_late && *node > 0)
            .collect()
    }

    pub(super) fn ending(self) -> Ending {
        self.why.unwrap_or_else(Ending::success)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use towline_core::reason::Cause;

    #[test]
    fn the_first_cause_counts_and_the_last_node_ends_it() {
        let mut progress = Progress::new(3);
        assert!(progress.started() && !progress.started());
        progress.ended(0);
        assert!(progress.stop(Ending::cause(Cause::ExitCode)));
        assert!(
            !progress.stop(Ending::cause(Cause::Preempted)),
            "all know already"
        );
        assert_eq!(progress.late(Duration::ZERO), [1, 2]);
        assert!(progress.late(Duration::from_secs(60)).is_empty());
        progress.ended(1);
        assert!(!progress.is_over() && progress.is_open(2));
        progress.ended(2);
        assert!(progress.is_over());
        assert_eq!(progress.ending(), Ending::cause(Cause::ExitCode));
    }
}
