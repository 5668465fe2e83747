//! Files about tunnels in the state folder, and the protocol of their supervisors.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use towline_core::time::Moment;
use towline_core::tunnel::Definition;
use towline_core::{Error, ErrorKind};

/// `tow __tunnel STATE NAME`: the supervisor of one tunnel.
pub const TUNNEL_VERB: &str = "__tunnel";
/// `tow __tunnel_command WORD…`: runs a program that a tunnel needs, and ends it when the
/// supervisor ends.
pub const COMMAND_VERB: &str = "__tunnel_command";

/// A tunnel that must be open, with everything needed to open it again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wanted {
    pub definition: Definition,
    /// Since when.
    pub at: Moment,
    /// Variables of the user's shell that the programs of the tunnel need: never a secret.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// For the ssh alias: the user at the far end, and the key files.
    #[serde(default)]
    pub user: Option<String>,
    #[serde(default)]
    pub keys: Vec<String>,
}

impl Wanted {
    /// The variables that are stored: the places of programs, the ssh agent, shared connections,
    /// and the Azure CLI's sign-in.
    pub const VARIABLES: [&str; 4] = [
        "PATH",
        "SSH_AUTH_SOCK",
        "XDG_RUNTIME_DIR",
        "AZURE_CONFIG_DIR",
    ];

    pub fn read(path: &Path) -> Option<Self> {
        serde_json::from_slice(&std::fs::read(path).ok()?).ok()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TunnelState {
    /// Not open yet, without an error so far.
    Connecting,
    /// The far end answers.
    Open,
    /// The far end does not answer, and `reason` says why; the supervisor tries again.
    Failing,
}

impl TunnelState {
    pub const fn word(self) -> &'static str {
        match self {
            Self::Connecting => "connecting",
            Self::Open => "open",
            Self::Failing => "failing",
        }
    }
}

/// The status of a tunnel, as its supervisor last wrote it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TunnelStatus {
    pub state: TunnelState,
    /// When it came into this state.
    pub since: Moment,
    pub port: u16,
    pub pid: u32,
    /// How often it was opened again after a failure.
    #[serde(default)]
    pub reconnects: u32,
    #[serde(default)]
    pub trouble: Option<Trouble>,
}

/// Why it is not open, with the parts of our errors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trouble {
    pub reason: String,
    #[serde(default)]
    pub hints: Vec<String>,
    /// Trying again does not help: the user must do something.
    #[serde(default)]
    pub is_lasting: bool,
    /// The exit code of a command that waits for the tunnel.
    pub code: u8,
    /// The finer word of a refusal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
}

impl From<&Error> for Trouble {
    fn from(error: &Error) -> Self {
        let is_lasting = !matches!(error.kind(), ErrorKind::Unreachable | ErrorKind::Timeout);
        Self {
            reason: error.to_string(),
            hints: error.hints().to_vec(),
            is_lasting,
            code: error.kind().exit_code(),
            refusal: error.kind().refusal().map(str::to_owned),
        }
    }
}

impl From<Trouble> for Error {
    fn from(trouble: Trouble) -> Self {
        let kinds = [
            ErrorKind::Usage,
            ErrorKind::Config,
            ErrorKind::NotFound,
            ErrorKind::Refused,
            ErrorKind::Timeout,
            ErrorKind::Unreachable,
        ];
        let kind = kinds
            .into_iter()
            .find(|kind| kind.exit_code() == trouble.code)
            .unwrap_or(ErrorKind::Bug)
            .with_refusal(trouble.refusal.as_deref());
        trouble
            .hints
            .into_iter()
            .fold(Self::new(kind, trouble.reason), Self::hint)
    }
}

impl TunnelStatus {
    pub fn read(path: &Path) -> Option<Self> {
        serde_json::from_slice(&std::fs::read(path).ok()?).ok()
    }
}

/// A message to a supervisor, on its socket. It answers with its status, and again at every change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToTunnel {
    /// Try now.
    Nudge,
    /// Exit, with all child processes.
    Close,
    /// The daemon exits on request; the supervisor need not start another.
    Goodbye,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trouble_becomes_the_error_it_was() {
        let error = Error::refused("no").hint("yes");
        let again = Error::from(Trouble::from(&error));
        assert_eq!(
            (again.kind(), again.to_string(), again.hints()),
            (ErrorKind::Refused, "no".to_owned(), &["yes".to_owned()][..])
        );
        assert!(
            Trouble::from(&error).is_lasting && !Trouble::from(&Error::unreachable("x")).is_lasting
        );
    }

    #[test]
    fn a_finer_refusal_survives_and_an_older_version_reads_a_plain_one() {
        let json = serde_json::to_value(Trouble::from(&Error::denied("no"))).expect("it encodes");
        assert_eq!(
            (&json["code"], &json["refusal"]),
            (&123.into(), &"denied".into())
        );
        let read: Trouble = serde_json::from_value(json).expect("it is read");
        assert_eq!(Error::from(read).kind(), ErrorKind::Denied);
        let old: Trouble = serde_json::from_str(r#"{"reason":"no","code":123}"#).expect("reads");
        assert_eq!(Error::from(old).kind(), ErrorKind::Refused);
    }

    #[test]
    fn a_status_of_an_older_version_is_read() {
        let old: TunnelStatus =
            serde_json::from_str(r#"{"state":"open","since":5,"port":22222,"pid":7}"#)
                .expect("reads");
        assert_eq!(
            (old.state, old.reconnects, old.trouble),
            (TunnelState::Open, 0, None)
        );
    }
}
