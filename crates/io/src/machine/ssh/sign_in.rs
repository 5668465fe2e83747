//! Signing in: the start of a master.

use super::super::group::Group;
use super::super::running::CapturedOutput;
use super::master::end_unseen;
use super::{Host, HostFacts, START_TIMEOUT, failure};
use std::process::{Command, Stdio};
use std::sync::PoisonError;
use std::time::{Duration, Instant};
use towline_core::Result;

/// Options of every master.
const MASTER_OPTIONS: [&str; 4] = [
    "ServerAliveInterval=5",
    "ServerAliveCountMax=3",
    "ClearAllForwardings=yes",
    "LogLevel=INFO",
];

/// A host that wants to ask a person is not tried again without one for this long.
const UNATTENDED_RETRY_PAUSE: Duration = Duration::from_secs(3600);

impl Host {
    /// A host that wanted to ask a person will want to again. Each try counts as a failed login,
    /// and some servers lock a user out after too many. So a sign-in without a person is not
    /// repeated for a while. A user who signs in on a terminal makes the master that is then found
    /// here.
    fn check_unattended(&self, facts: &HostFacts) -> Result<()> {
        let refused = self
            .unattended
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        match refused.filter(|(at, digest, _)| {
            at.elapsed() < UNATTENDED_RETRY_PAUSE && *digest == facts.digest
        }) {
            Some((_, _, stderr)) => Err(self
                .failure(&facts.resolved, std::env::home_dir().as_deref(), false)
                .explain(&stderr)),
            None => Ok(()),
        }
    }

    /// Starts a master. The caller holds the lock.
    pub(super) fn sign_in(&self, facts: &HostFacts, may_ask: bool) -> Result<()> {
        if !may_ask {
            self.check_unattended(facts)?;
        }
        let mut pauses = [1, 2].into_iter();
        loop {
            let Some(stderr) = self.start_master(facts, may_ask)? else {
                return Ok(());
            };
            // For a shared connection ssh hides the stderr of the programs on the way.
            let stderr = if may_ask || facts.resolved.is_direct() {
                Some(stderr)
            } else {
                self.retry_unshared(facts)?
            };
            let crowded = stderr.as_deref().is_none_or(failure::was_dropped_early);
            match (stderr, pauses.next().filter(|_| crowded)) {
                (_, Some(pause)) => std::thread::sleep(Duration::from_secs(pause)),
                (stderr, None) => {
                    let stderr = stderr.unwrap_or_default();
                    if !may_ask && failure::wants_person(&stderr) {
                        *self
                            .unattended
                            .lock()
                            .unwrap_or_else(PoisonError::into_inner) =
                            Some((Instant::now(), facts.digest.clone(), stderr.clone()));
                    }
                    let home = std::env::home_dir();
                    return Err(self
                        .failure(&facts.resolved, home.as_deref(), may_ask)
                        .explain(&stderr));
                }
            }
        }
    }

    /// Starts a master; the stderr of ssh if it could not.
    fn start_master(&self, facts: &HostFacts, may_ask: bool) -> Result<Option<String>> {
        let mut command = self.with_options(facts, may_ask);
        command.args([
            "-M",
            "-N",
            "-f",
            "-S",
            &facts.socket,
            "-o",
            "ControlPersist=1d",
            "--",
            &self.name,
        ]);
        attempt(&mut command, may_ask)
    }

    /// Signs in once more without sharing the connection, so that ssh hides no message.
    fn retry_unshared(&self, facts: &HostFacts) -> Result<Option<String>> {
        let mut command = self.with_options(facts, false);
        command.args([
            "-S",
            "none",
            "-o",
            "ControlMaster=no",
            "-o",
            "ControlPersist=no",
            "--",
            &self.name,
            "exit",
        ]);
        attempt(&mut command, false)
    }

    fn with_options(&self, facts: &HostFacts, may_ask: bool) -> Command {
        let mut command = self.ssh();
        command.args(self.config_args()).arg("-T");
        let remote_command = facts
            .client
            .knows_remote_command()
            .then_some("RemoteCommand=none");
        for option in MASTER_OPTIONS
            .into_iter()
            .chain(remote_command)
            .chain(facts.host_keys.iter().map(String::as_str))
        {
            command.args(["-o", option]);
        }
        command.args(["-o", &format!("ConnectTimeout={}", self.timeout.as_secs())]);
        if !may_ask {
            // A jump host is reached by another ssh, which does not get our options; it must not
            // ask anybody either.
            command
                .args(["-o", "BatchMode=yes"])
                .env("SSH_ASKPASS", "/bin/false")
                .env("SSH_ASKPASS_REQUIRE", "force");
        }
        command
    }
}

fn attempt(command: &mut Command, may_ask: bool) -> Result<Option<String>> {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    // A program that asks reads the terminal, which only our own process group may do.
    let started = if may_ask {
        Group::start_at_terminal(command)
    } else {
        Group::start(command)
    };
    let mut group = started.map_err(|error| failure::not_started(command.get_program(), error))?;
    let stderr = group
        .errors()
        .map(|pipe| CapturedOutput::listen(pipe, may_ask))
        .transpose()
        .map_err(end_unseen)?
        .unwrap_or_default();
    let deadline = (!may_ask).then(|| Instant::now() + START_TIMEOUT);
    Ok(match group.wait_until(deadline).map_err(end_unseen)? {
        Some(0) => None,
        Some(_) => Some(String::from_utf8_lossy(&stderr.wait_for_all()).into_owned()),
        None => Some(format!(
            "{}\nssh: signing in timed out after {START_TIMEOUT:?}",
            String::from_utf8_lossy(&stderr.so_far())
        )),
    })
}
