//! Signing in: the start of a master.

use super::super::group::Group;
use super::super::running::Said;
use super::master::unseen;
use super::{Host, Known, START_TIMEOUT, failure};
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
    /// A host that wanted to ask somebody will want to again. Each try is a failed login in its
    /// books, and some servers shut out who has too many: a try that nobody attends is not repeated
    /// for a while. Whoever signs in on a terminal makes the master that is then found here.
    fn check_unattended(&self, known: &Known) -> Result<()> {
        let refused = self
            .unattended
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        match refused.filter(|(at, digest, _)| {
            at.elapsed() < UNATTENDED_RETRY_PAUSE && *digest == known.digest
        }) {
            Some((_, _, said)) => Err(self
                .failure(&known.resolved, std::env::home_dir().as_deref(), false)
                .explain(&said)),
            None => Ok(()),
        }
    }

    /// Starts a master where there is none; whoever calls holds the lock.
    pub(super) fn sign_in(&self, known: &Known, may_ask: bool) -> Result<()> {
        if !may_ask {
            self.check_unattended(known)?;
        }
        let mut pauses = [1, 2].into_iter();
        loop {
            let Some(said) = self.start_master(known, may_ask)? else {
                return Ok(());
            };
            // Of a connection that is kept, ssh hides what the programs on the way say.
            let said = if may_ask || known.resolved.is_direct() {
                Some(said)
            } else {
                self.explain(known)?
            };
            let crowded = said.as_deref().is_none_or(failure::was_dropped_early);
            match (said, pauses.next().filter(|_| crowded)) {
                (_, Some(pause)) => std::thread::sleep(Duration::from_secs(pause)),
                (said, None) => {
                    let said = said.unwrap_or_default();
                    if !may_ask && failure::wants_person(&said) {
                        *self
                            .unattended
                            .lock()
                            .unwrap_or_else(PoisonError::into_inner) =
                            Some((Instant::now(), known.digest.clone(), said.clone()));
                    }
                    let home = std::env::home_dir();
                    return Err(self
                        .failure(&known.resolved, home.as_deref(), may_ask)
                        .explain(&said));
                }
            }
        }
    }

    /// Gives what ssh said when it could not.
    fn start_master(&self, known: &Known, may_ask: bool) -> Result<Option<String>> {
        let mut command = self.with_options(known, may_ask);
        command.args([
            "-M",
            "-N",
            "-f",
            "-S",
            &known.socket,
            "-o",
            "ControlPersist=1d",
            "--",
            &self.name,
        ]);
        attempt(&mut command, may_ask)
    }

    /// The same once more, with nothing kept and nothing hidden.
    fn explain(&self, known: &Known) -> Result<Option<String>> {
        let mut command = self.with_options(known, false);
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

    fn with_options(&self, known: &Known, may_ask: bool) -> Command {
        let mut command = self.ssh();
        command.args(self.config_words()).arg("-T");
        let remote_command = known
            .client
            .knows_remote_command()
            .then_some("RemoteCommand=none");
        for option in MASTER_OPTIONS
            .into_iter()
            .chain(remote_command)
            .chain(known.host_keys.iter().map(String::as_str))
        {
            command.args(["-o", option]);
        }
        command.args(["-o", &format!("ConnectTimeout={}", self.timeout.as_secs())]);
        if !may_ask {
            // A host on the way is reached by an ssh that our option does not reach; it too must
            // ask nobody.
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
    // Who asks reads the terminal, which only our own group may.
    let started = if may_ask {
        Group::start_at_terminal(command)
    } else {
        Group::start(command)
    };
    let mut group = started.map_err(|error| failure::not_started(command.get_program(), error))?;
    let said = group
        .errors()
        .map(|pipe| Said::listen(pipe, may_ask))
        .transpose()
        .map_err(unseen)?
        .unwrap_or_default();
    let deadline = (!may_ask).then(|| Instant::now() + START_TIMEOUT);
    Ok(match group.wait_until(deadline).map_err(unseen)? {
        Some(0) => None,
        Some(_) => Some(String::from_utf8_lossy(&said.at_last()).into_owned()),
        None => Some(format!(
            "{}\nssh: signing in timed out after {START_TIMEOUT:?}",
            String::from_utf8_lossy(&said.so_far())
        )),
    })
}
