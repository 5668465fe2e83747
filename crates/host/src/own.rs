//! Starting this program again, as a child that does one verb.

use std::ffi::OsStr;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// Starts this program with these words. Its three streams are pipes, so it asks nobody anything.
/// The variable tells it to report progress as JSON. `agent` is whom it acts for, if not the user
/// alone.
pub fn start(words: &[impl AsRef<OsStr>], agent: Option<&str>) -> io::Result<Child> {
    Command::new("/proc/self/exe")
        .arg0("tow")
        .args(words)
        .env(PROGRESS_VARIABLE, "json")
        .envs(agent.map(|agent| (AGENT_VARIABLE, agent)))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
}

/// Set to `json`, it makes a verb report its progress as lines of JSON on stderr.
pub const PROGRESS_VARIABLE: &str = "TOW_PROGRESS";

/// The name of the agent that a verb acts for. Such a verb may do only what the user allows agents.
pub const AGENT_VARIABLE: &str = "TOW_AGENT";

/// Opens an address in the user's browser. Nobody waits for it.
pub fn open_browser(address: &str) -> io::Result<()> {
    Command::new("xdg-open")
        .arg(address)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .map(drop)
}
