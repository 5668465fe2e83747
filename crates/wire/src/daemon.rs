//! The protocol between `tow` and its daemon, on a private unix socket.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use towline_core::RunId;
use towline_core::change::Change;
use towline_core::cluster::Facts;
use towline_core::event::Recorded;
use towline_core::plan::Plan;
use towline_core::redact::{Secret, SecretSet};
use towline_core::secret_name::SecretName;
use towline_core::state::RunState;

/// Raised when an old daemon could misread a new message. `Stop` and `Status` never change.
pub const PROTOCOL: u32 = 1;

/// The first frame of a connection.
#[derive(Debug, Serialize, Deserialize)]
pub struct Hello {
    pub protocol: u32,
    pub version: String,
    pub request: Request,
    /// The client wants a heartbeat every second: an empty frame.
    #[serde(default)]
    pub signs_of_life: bool,
}

impl Hello {
    pub fn new(request: Request) -> Self {
        Self {
            protocol: PROTOCOL,
            version: crate::version::version().to_owned(),
            request,
            signs_of_life: true,
        }
    }
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    Status,
    /// Exit now; runs go on without the daemon.
    Stop,
    Submit(Box<Submit>),
    Cancel {
        runs: Vec<RunId>,
        /// The agent that asks for the user.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
    },
    /// The state of these runs now, then every event, until all have ended.
    Watch {
        runs: Vec<RunId>,
        /// Keep the logs of far runs up to date here meanwhile.
        #[serde(default)]
        logs: bool,
    },
    /// Look at the cluster of a far run now; answered when the result is in the history.
    Refresh {
        run: RunId,
    },
    /// Fetch the new log bytes of a far run.
    BringLogs {
        run: RunId,
    },
    Observe {
        runs: Vec<RunId>,
    },
    /// Why a run is not running yet.
    Explain {
        run: RunId,
    },
    Facts {
        #[serde(default)]
        limits: Limits,
    },
    /// Remove an ended run from the history.
    Forget {
        runs: Vec<RunId>,
        /// Its cluster has deleted its files, or is to keep them.
        #[serde(default)]
        told: bool,
    },
    /// Hold, resume or edit runs that wait.
    Change {
        runs: Vec<RunId>,
        change: Change,
    },
    /// Add tags to runs, and remove others.
    Tag {
        runs: Vec<RunId>,
        #[serde(default)]
        add: Vec<String>,
        #[serde(default)]
        remove: Vec<String>,
    },
    /// The set of automatic backups has changed.
    Workspaces,
    /// Keep a wanted tunnel supervised; replies with its status now and at every change.
    Tunnel {
        name: String,
    },
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Submit {
    pub plan: Plan,
    #[serde(default)]
    pub secrets: PrivateSecrets,
    #[serde(default)]
    pub limits: Limits,
    /// The cluster that it goes to; none for this machine.
    #[serde(default)]
    pub cluster: Option<crate::cluster::NamedCluster>,
}

/// The configured size of this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Limits {
    #[serde(default)]
    pub gpus: Option<u32>,
    #[serde(default)]
    pub cpus: Option<u32>,
    #[serde(default)]
    pub memory: Option<u64>,
}

/// Secrets on their way through the private socket.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PrivateSecrets(pub SecretSet);

impl Serialize for PrivateSecrets {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.0.iter().map(|(name, value)| (name, value.expose())))
    }
}

impl<'de> Deserialize<'de> for PrivateSecrets {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let plain = BTreeMap::<SecretName, String>::deserialize(deserializer)?;
        Ok(Self(SecretSet(
            plain
                .into_iter()
                .map(|(name, value)| (name, Secret::new(value)))
                .collect(),
        )))
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    Status(Status),
    Stopping,
    /// The submission is on disk: from now on the runs will happen.
    Submitted {
        runs: Vec<RunId>,
    },
    /// The cancel is on disk.
    Cancelling {
        runs: Vec<RunId>,
        already_ended: Vec<RunId>,
    },
    /// The state of a watched run when the watch begins.
    State {
        run: RunId,
        state: RunState,
    },
    /// An event of a watched run, and the state after it.
    Event {
        recorded: Recorded,
        state: RunState,
    },
    /// No further event will come: all watched runs have ended.
    WatchEnded,
    Observed {
        observations: Vec<Observation>,
    },
    Explained(Explanation),
    FarExplained(towline_core::cluster::Explanation),
    LogsBrought,
    Refreshed,
    Facts(Facts),
    Forgotten {
        runs: Vec<RunId>,
    },
    /// The change is on disk.
    Changed {
        runs: Vec<RunId>,
        /// The runs that cannot be changed, and why.
        #[serde(default)]
        refused: Vec<(RunId, Refusal)>,
    },
    /// All tags of the runs whose tags changed.
    Tagged {
        runs: Vec<(RunId, Vec<String>)>,
    },
    Tunnel(crate::tunnel::TunnelStatus),
    /// How many workspaces are backed up.
    Workspaces {
        autos: usize,
    },
    Refused(Refusal),
}

/// The daemon's knowledge of one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Observation {
    Known {
        state: Box<RunState>,
        native: String,
    },
    /// It does not know the run.
    Gone,
}

/// What the daemon says of itself.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Status {
    /// The version of its program.
    pub version: String,
    /// The version of the protocol that it speaks.
    pub protocol: u32,
    /// Its process.
    pub pid: u32,
    /// When it started, in milliseconds since 1970.
    pub started: towline_core::time::Moment,
    /// The number of runs that wait in its queue.
    pub queued: usize,
    /// The number of runs that it has running.
    pub running: usize,
    /// The number of live runners.
    pub runners: usize,
    /// The memory that it uses.
    pub memory_bytes: u64,
    /// Why nothing can be written at present, such as a full disk. Runs go on; starts and ends
    /// wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}

/// Why a run waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Explanation {
    /// Runs before it in the queue.
    pub ahead: usize,
    /// What is missing now: "1 GPU", "4 CPUs", "16G memory".
    pub waits_for: Vec<String>,
    /// The runs that hold it.
    pub held_by: Vec<RunId>,
    /// The same in one sentence.
    pub text: String,
}

/// A refusal of the daemon, with the parts of our errors.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Refusal {
    pub kind: RefusalKind,
    /// The finer word of [`RefusalKind::Refused`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
    pub message: String,
    #[serde(default)]
    pub hints: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusalKind {
    Refused,
    NotFound,
    /// The daemon is exiting or speaks another protocol; ask the next one.
    Leaving,
    Config,
    /// The service that would know cannot be reached.
    Unreachable,
    Bug,
}

impl From<&towline_core::Error> for Refusal {
    fn from(error: &towline_core::Error) -> Self {
        use towline_core::ErrorKind;
        let kind = match error.kind() {
            kind if kind.is_refusal() => RefusalKind::Refused,
            ErrorKind::NotFound => RefusalKind::NotFound,
            ErrorKind::Config => RefusalKind::Config,
            ErrorKind::Unreachable => RefusalKind::Unreachable,
            _ => RefusalKind::Bug,
        };
        Self {
            kind,
            refusal: error.kind().refusal().map(str::to_owned),
            message: error.to_string(),
            hints: error.hints().to_vec(),
        }
    }
}

impl From<Refusal> for towline_core::Error {
    fn from(refusal: Refusal) -> Self {
        use towline_core::ErrorKind;
        let kind = match refusal.kind {
            RefusalKind::Refused => ErrorKind::Refused.with_refusal(refusal.refusal.as_deref()),
            RefusalKind::NotFound => ErrorKind::NotFound,
            RefusalKind::Leaving | RefusalKind::Unreachable => ErrorKind::Unreachable,
            RefusalKind::Config => ErrorKind::Config,
            RefusalKind::Bug => ErrorKind::Bug,
        };
        refusal
            .hints
            .into_iter()
            .fold(Self::new(kind, refusal.message), Self::hint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use towline_core::{Error, ErrorKind};

    #[test]
    fn a_finer_refusal_survives_and_an_older_version_reads_a_plain_one() {
        for (error, finer) in [
            (Error::denied("no"), "denied"),
            (Error::no_room("no"), "no_room"),
        ] {
            let kind = error.kind();
            let json = serde_json::to_value(Refusal::from(&error)).expect("it encodes");
            assert_eq!(
                (&json["kind"], &json["refusal"]),
                (&"refused".into(), &finer.into())
            );
            let read: Refusal = serde_json::from_value(json).expect("it is read");
            assert_eq!(Error::from(read).kind(), kind);
        }
        let kind = |json: &str| {
            let read: Refusal = serde_json::from_str(json).expect("it is read");
            Error::from(read).kind()
        };
        let old = r#"{"kind":"refused","message":"no"}"#;
        assert_eq!(kind(old), ErrorKind::Refused);
        let newer = r#"{"kind":"refused","refusal":"tired","message":"no"}"#;
        assert_eq!(kind(newer), ErrorKind::Refused);
        let other = r#"{"kind":"config","refusal":"denied","message":"no"}"#;
        assert_eq!(kind(other), ErrorKind::Config);
    }
}
