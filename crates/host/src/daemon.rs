//! Starting the daemon: one way for whoever needs one.

use crate::own::{AGENT_VARIABLE, PROGRESS_VARIABLE};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use towline_core::network;
use towline_core::redact::looks_like_credential;

/// The variables that a daemon keeps, beside those that say how the network is reached.
const KEPT_VARIABLES: [&str; 10] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "LANG",
    "TZ",
    "XDG_STATE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_RUNTIME_DIR",
    "LD_LIBRARY_PATH",
];

/// A command that becomes the daemon of a state folder. It gets no secret of a job: the environment
/// of whoever starts it is left out, apart from what a daemon needs.
pub fn command(state_root: &Path) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command
        .arg0("tow")
        .args(["daemon", "run", "--state"])
        .arg(state_root)
        .current_dir("/")
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let kept = std::env::vars_os().filter(|(name, _)| is_kept(&name.to_string_lossy()));
    command.envs(kept);
    command
}

/// Variables of the verb that starts it. The daemon serves everybody's.
const OF_ONE_VERB: [&str; 2] = [PROGRESS_VARIABLE, AGENT_VARIABLE];

/// A proxy may have a password, and is kept: nobody else reads the environment of our process.
fn is_kept(name: &str) -> bool {
    KEPT_VARIABLES.contains(&name)
        || network::VARIABLES.contains(&name)
        || (name.starts_with("TOW_")
            && !OF_ONE_VERB.contains(&name)
            && !looks_like_credential(name))
}

#[cfg(test)]
mod tests {
    use super::is_kept;

    #[test]
    fn no_secret_of_a_job_is_kept() {
        for name in ["PATH", "HTTPS_PROXY", "TOW_CRASH_AT", "XDG_STATE_HOME"] {
            assert!(is_kept(name), "{name}");
        }
        for name in [
            "GITHUB_PAT",
            "TOW_STORE_PASSWORD",
            "AWS_SECRET_ACCESS_KEY",
            "EDITOR",
            "TOW_PROGRESS",
        ] {
            assert!(!is_kept(name), "{name}");
        }
    }
}
