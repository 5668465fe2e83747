//! The answers of `tow tunnel`.

use super::time::Time;
use schemars::JsonSchema;
use serde::Serialize;
use std::path::PathBuf;

/// A tunnel that was defined.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct TunnelAdded {
    /// Its name.
    pub name: String,
    /// Its port on this machine.
    pub port: u16,
    /// Where it leads: `HOST:PORT`.
    pub to: String,
    /// The hosts or the program on the way.
    pub via: String,
    /// The file that defines it.
    pub file: PathBuf,
}

/// Tunnels that were opened.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct TunnelsOpened {
    /// The tunnels, in the order of the command line.
    pub tunnels: Vec<OpenedTunnel>,
}

/// A tunnel that was opened.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct OpenedTunnel {
    /// Its name.
    pub name: String,
    /// `open`; with `--no-wait` perhaps `connecting` or `failing`.
    pub state: &'static str,
    /// Its port on this machine.
    pub port: u16,
    /// Where it leads: `HOST:PORT`.
    pub to: String,
    /// The name by which ssh reaches what is behind it; null unless that is an ssh server.
    pub alias: Option<String>,
}

/// Tunnels that are closed now.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct TunnelsClosed {
    /// Their names.
    pub closed: Vec<String>,
    /// Those of them that were closed before.
    pub already_closed: Vec<String>,
}

/// Tunnels whose definition was removed.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct TunnelsRemoved {
    /// Their names.
    pub removed: Vec<String>,
}

/// The tunnels that are defined or open.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Tunnels {
    /// The tunnels, by name.
    pub tunnels: Vec<Tunnel>,
}

/// A tunnel, and how it is.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Tunnel {
    /// Its name.
    pub name: String,
    /// `closed`, `connecting`, `open`, `failing`, or `wrong` if its definition is.
    pub state: &'static str,
    /// Its port on this machine; null if it gets one when it is opened.
    pub port: Option<u16>,
    /// Where it leads: `HOST:PORT`.
    pub to: String,
    /// The hosts or the program on the way.
    pub via: String,
    /// When it came into this state; null if it is closed.
    pub since: Option<Time>,
    /// How often it found its way again.
    pub reconnects: u32,
    /// Why it fails, or what is wrong with its definition.
    pub reason: Option<String>,
    /// What to do about it.
    pub hints: Vec<String>,
    /// The name by which ssh reaches what is behind it; null unless that is an ssh server.
    pub alias: Option<String>,
    /// The process that supervises it.
    pub pid: Option<u32>,
    /// Where it is defined.
    pub origin: Option<String>,
}

/// Whether `~/.ssh/config` includes the aliases.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct SshInclude {
    /// The configuration of ssh.
    pub file: PathBuf,
    /// The line that includes them.
    pub line: String,
    /// Whether the file was changed.
    pub changed: bool,
    /// The number of the line that was there before. Absent if there was none, or it was removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found_in_line: Option<usize>,
}
