//! What is done, and what goes wrong meanwhile.

use towline_host::crash::{AZUREML_POINTS, FAR_POINTS};
use towline_testkit::aml::{Trouble, When};
use towline_testkit::campaign::shared_crash_points;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scenario {
    Submit,
    /// With a secret, which is in the vault until the run is over.
    Secret,
    Abort,
    Resubmit,
    /// Attempts that fail, and the third that does not.
    Retry,
    /// The nodes of the first attempt are taken away.
    Preempt,
    /// Another machine of the user takes the run into its history.
    Adopt,
}

impl Scenario {
    /// Its runs end when the user says so.
    pub(crate) const fn is_long(self) -> bool {
        matches!(self, Self::Abort | Self::Resubmit)
    }
    pub(crate) const fn file(self) -> &'static str {
        match self {
            Self::Submit | Self::Adopt => "quick.yaml",
            Self::Secret => "secret.yaml",
            Self::Abort | Self::Resubmit => "long.yaml",
            Self::Retry => "third.yaml",
            Self::Preempt => "once.yaml",
        }
    }
}

pub(crate) const ALL: [Scenario; 7] = [
    Scenario::Submit,
    Scenario::Secret,
    Scenario::Abort,
    Scenario::Resubmit,
    Scenario::Retry,
    Scenario::Preempt,
    Scenario::Adopt,
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Client or daemon, at a named point.
    Here(&'static str),
    /// A runner, at a named point.
    There(&'static str),
    /// A call to the service.
    Call {
        method: String,
        part: String,
        trouble: Trouble,
        when: When,
    },
    /// A call to the blob service.
    Blob {
        method: &'static str,
        part: &'static str,
        what: &'static str,
    },
    /// What was put is not seen by reads for a while.
    Unseen,
    /// Tokens expire while they are used.
    Expired,
    KillClient,
    KillDaemon,
    /// A guard or a runner of a node, whoever's it is.
    KillCrew,
}

impl Fault {
    pub(crate) const fn point(&self) -> Option<&'static str> {
        match self {
            Self::Here(point) | Self::There(point) => Some(point),
            _ => None,
        }
    }
    pub(crate) const fn is_there(&self) -> bool {
        matches!(self, Self::There(_))
    }
}

pub(crate) const AT_RANDOM: [Fault; 3] = [Fault::KillClient, Fault::KillDaemon, Fault::KillCrew];

/// Calls to the blob service on the way, by what their paths hold.
const BLOBS: [(&str, &str); 8] = [
    ("HEAD", "/snapshots/"),
    ("PUT", "/snapshots/"),
    ("HEAD", "/bin/tow-"),
    ("PUT", "/bin/tow-"),
    ("PUT", "/submissions/"),
    ("PUT", "/cancel"),
    ("GET", "comp=list"),
    ("GET", "/news/"),
];

pub(crate) fn blobs() -> Vec<Fault> {
    BLOBS
        .iter()
        .flat_map(|(method, part)| {
            ["cut", "lost", "busy"].map(|what| Fault::Blob { method, part, what })
        })
        .collect()
}

/// Every trouble that a call may have.
pub(crate) fn troubles(method: &str, part: &str) -> Vec<Fault> {
    let status = |status, retry_after| Trouble::Status {
        status,
        retry_after,
    };
    let mut found = vec![
        (Trouble::Cut, When::Before),
        (Trouble::Cut, When::After),
        (status(500, None), When::Before),
        (status(500, None), When::After),
        (status(429, Some(1)), When::Before),
    ];
    if method == "PUT" && part == "/jobs/" {
        found.extend([
            (status(409, None), When::Before),
            (status(409, None), When::After),
            (status(412, None), When::After),
        ]);
    }
    found
        .into_iter()
        .map(|(trouble, when)| Fault::Call {
            method: method.to_owned(),
            part: part.to_owned(),
            trouble,
            when,
        })
        .collect()
}

/// The points that a run on Azure ML passes.
pub(crate) fn points() -> Vec<Fault> {
    let far = FAR_POINTS
        .iter()
        .filter(|point| point.starts_with("daemon."))
        .chain(AZUREML_POINTS);
    shared_crash_points()
        .chain(far.copied())
        .map(|point| {
            if point.starts_with("crew.") {
                Fault::There(point)
            } else {
                Fault::Here(point)
            }
        })
        .collect()
}

/// Scenarios that meet this fault.
pub(crate) fn scenarios(fault: &Fault) -> &'static [Scenario] {
    let part = match fault {
        Fault::Call { part, .. } => part.as_str(),
        Fault::Blob { part, .. } => part,
        _ => fault.point().unwrap_or_default(),
    };
    match fault {
        _ if part.contains("secrets") => &[Scenario::Secret],
        _ if part.contains("requeue") => &[Scenario::Retry],
        _ if part.contains("resubmit") => &[Scenario::Resubmit],
        _ if part.contains("cancel") => &[Scenario::Abort, Scenario::Resubmit],
        Fault::There(_) => &[
            Scenario::Submit,
            Scenario::Secret,
            Scenario::Retry,
            Scenario::Preempt,
        ],
        Fault::Call { .. } | Fault::Blob { .. } | Fault::Here(_) => &[
            Scenario::Submit,
            Scenario::Secret,
            Scenario::Retry,
            Scenario::Resubmit,
        ],
        _ => &ALL,
    }
}
