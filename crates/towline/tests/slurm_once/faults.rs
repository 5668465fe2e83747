//! What is done, and what goes wrong meanwhile.

use towline_host::crash::FAR_POINTS;
use towline_testkit::campaign::shared_crash_points;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scenario {
    Submit,
    Abort,
    Resubmit,
    Retry,
    /// An attempt whose time is up, and the next.
    Limit,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Client or daemon, at a named point.
    Here(&'static str),
    /// Site or head, at a named point.
    There(&'static str),
    DropConnections,
    KillClient,
    KillDaemon,
    /// All that serve connections beside the scheduler.
    KillSite,
    /// A head or a runner of a node, whoever's it is.
    KillRunner,
}

pub(crate) const AT_RANDOM: [Fault; 5] = [
    Fault::DropConnections,
    Fault::KillClient,
    Fault::KillDaemon,
    Fault::KillSite,
    Fault::KillRunner,
];

impl Fault {
    pub(crate) fn point(self) -> Option<&'static str> {
        match self {
            Self::Here(point) | Self::There(point) => Some(point),
            _ => None,
        }
    }
    pub(crate) fn is_head(self) -> bool {
        self.point().is_some_and(|point| point.starts_with("head."))
    }
}

/// The points that a run on a far cluster passes.
pub(crate) fn points() -> Vec<Fault> {
    let here = shared_crash_points().map(Fault::Here);
    let far = FAR_POINTS.iter().map(|point| {
        if point.starts_with("daemon.") {
            Fault::Here(point)
        } else {
            Fault::There(point)
        }
    });
    here.chain(far).collect()
}

/// Scenarios that pass this point.
pub(crate) fn scenarios(fault: Fault) -> &'static [Scenario] {
    match fault.point() {
        Some(point) if point.starts_with("head.requeue") => &[Scenario::Limit],
        Some(point) if point.contains("requeue") => &[Scenario::Retry],
        Some(point) if point.contains("resubmit") => &[Scenario::Resubmit],
        Some(point) if point.contains("cancel") => &[Scenario::Abort, Scenario::Resubmit],
        Some(_) => &[Scenario::Submit, Scenario::Retry],
        None => &[
            Scenario::Submit,
            Scenario::Abort,
            Scenario::Resubmit,
            Scenario::Retry,
        ],
    }
}
