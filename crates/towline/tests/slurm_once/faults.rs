//! What is done, and what goes wrong meanwhile.

use towline_host::crash::{FAR_POINTS, POINTS};

/// A small generator, so that a seed gives the same campaign everywhere.
pub(crate) struct Seeded(pub(crate) u64);

impl Seeded {
    pub(crate) fn next(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((self.0 >> 33) % below as u64).unwrap()
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.next(from.len())]
    }
}

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
pub(crate) enum Shape {
    One,
    /// Three runs, which are one array over there.
    Sweep,
    /// Two nodes.
    Gang,
}

impl Shape {
    pub(crate) const fn words(self) -> &'static [&'static str] {
        match self {
            Self::One => &[],
            Self::Sweep => &["--sweep", "seed=1-3"],
            Self::Gang => &["--nodes", "2"],
        }
    }

    /// The runs of a submission.
    pub(crate) fn runs(self, id: &str) -> Vec<String> {
        if self == Self::Sweep { (1..=3).map(|number| format!("{id}-{number}")).collect() } else { vec![id.to_owned()] }
    }
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

pub(crate) const AT_RANDOM: [Fault; 5] = [Fault::DropConnections, Fault::KillClient, Fault::KillDaemon, Fault::KillSite, Fault::KillRunner];

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
    let ours = |point: &&&str| {
        ["client.", "daemon.submit.", "daemon.cancel.", "daemon.ended.committed", "daemon.requeue.committed"].iter().any(|begin| point.starts_with(begin))
    };
    let here = POINTS.iter().filter(ours).map(|point| Fault::Here(point));
    let far = FAR_POINTS.iter().map(|point| if point.starts_with("daemon.") { Fault::Here(point) } else { Fault::There(point) });
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
        None => &[Scenario::Submit, Scenario::Abort, Scenario::Resubmit, Scenario::Retry],
    }
}
