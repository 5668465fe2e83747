//! The master process, which holds the connection to a host: how it is found, and how others use
//! it.

use super::super::running::Running;
use super::resolved::{Resolved, option_path};
use super::{Client, Host, HostFacts, failure};
use std::fs::File;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};
use towline_core::transport::Ran;
use towline_core::{Error, Result};
use towline_host::{filesystem, lock};

/// Our `ProxyCommand` prints this when ssh would open a connection of its own because there is no
/// master.
pub(super) const NO_MASTER: &str = "tow-no-master";

/// How long a question to a program of this machine may take.
const LOCAL_TIMEOUT: Duration = Duration::from_secs(30);
/// How long another `tow` may take to sign in while we wait; it may be asking its user.
const SIGN_IN_LOCK_TIMEOUT: Duration = Duration::from_secs(90);
/// A master notices within this time that its network is gone: after three keepalives, five seconds
/// apart, and some more.
const PROBE_TIMEOUT: Duration = Duration::from_secs(25);

impl Host {
    /// The facts of the host; found out once, and again if `fresh`.
    pub(super) fn facts(&self, fresh: bool) -> Result<Arc<HostFacts>> {
        if let (Some(facts), false) = (&*self.facts.lock().expect("no panic while held"), fresh) {
            return Ok(facts.clone());
        }
        let ran = ask(self
            .ssh()
            .args(self.config_args())
            .args(["-T", "-G", "--", &self.name]))?;
        if !ran.is_good() {
            return Err(self
                .failure(&Resolved::default(), None, false)
                .explain(&String::from_utf8_lossy(&ran.err)));
        }
        let resolved = Resolved::parse(&String::from_utf8_lossy(&ran.out));
        let digest = resolved.digest(&self.name, self.ssh_config.as_deref());
        let socket = option_path(&self.sockets.join(&digest))?;
        let client = Client::ask(&self.program);
        let host_keys = resolved.host_key_options(&self.known_hosts, client)?;
        let facts = Arc::new(HostFacts {
            resolved,
            client,
            digest,
            socket,
            host_keys,
        });
        *self.facts.lock().expect("no panic while held") = Some(facts.clone());
        Ok(facts)
    }

    /// A master runs for long, so it starts in `/` and keeps no other folder busy.
    pub(super) fn ssh(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.current_dir("/");
        command
    }

    /// An `ssh` that uses the master and nothing else. It reads no configuration: most of that was
    /// for the connection, and some of it (forwardings, commands) is not for us.
    pub(super) fn through(&self, facts: &HostFacts) -> Command {
        let mut command = self.ssh();
        command.args([
            "-F",
            "/dev/null",
            "-S",
            &facts.socket,
            "-T",
            "-o",
            "ControlMaster=no",
            "-o",
            "LogLevel=ERROR",
        ]);
        // Without a master, or when the server takes no more sessions, ssh would silently connect
        // anew. The inner shell keeps its stdout open, because ssh kills it once that is closed,
        // even before the message is out.
        command.args(["-o", &format!("ProxyCommand=sh -c 'echo {NO_MASTER} >&2'")]);
        command
    }

    pub(super) fn control(&self, facts: &HostFacts, order: &str) -> Result<Ran> {
        self.control_within(facts, order, LOCAL_TIMEOUT)
    }

    pub(super) fn control_within(
        &self,
        facts: &HostFacts,
        order: &str,
        limit: Duration,
    ) -> Result<Ran> {
        ask_within(
            self.ssh().args([
                "-F",
                "/dev/null",
                "-S",
                &facts.socket,
                "-T",
                "-O",
                order,
                "--",
                &self.name,
            ]),
            limit,
        )
    }

    /// Makes sure of a master whose host answers.
    pub(super) fn connect(&self, may_ask: bool) -> Result<()> {
        if !self.ensure_master(may_ask)? {
            return Ok(());
        }
        // After this machine has slept, the master may not know yet that its connection is dead. It
        // ends once it notices.
        if self.answers(Instant::now() + PROBE_TIMEOUT)? {
            return Ok(());
        }
        self.ensure_master(may_ask).map(drop)
    }

    /// Makes sure of a master; whether there was one already.
    pub(super) fn ensure_master(&self, may_ask: bool) -> Result<bool> {
        let unusable = |error| {
            Error::config(format!(
                "{} cannot be used for the sockets of ssh",
                self.sockets.display()
            ))
            .source_error(error)
        };
        filesystem::private_folder(&self.sockets).map_err(unusable)?;
        if let Some(folder) = self.known_hosts.parent() {
            // A host that cannot be written down would be new every time.
            let unusable = |error| {
                Error::config(format!("{} cannot be made", folder.display())).source_error(error)
            };
            std::fs::create_dir_all(folder).map_err(unusable)?;
        }
        let mut facts = self.facts(false)?;
        loop {
            // One process signs in at a time; the others then find the master.
            let _lock = self.lock_sign_in(&facts, may_ask)?;
            if self.control(&facts, "check")?.is_good() {
                return Ok(true);
            }
            // The configuration may have changed since it was read.
            let again = self.facts(true)?;
            if again.digest == facts.digest {
                // A killed master leaves its socket behind, and ssh would not replace it.
                let _ = std::fs::remove_file(self.sockets.join(&again.digest));
                return self.sign_in(&again, may_ask).map(|()| false);
            }
            facts = again;
        }
    }

    fn lock_sign_in(&self, facts: &HostFacts, may_ask: bool) -> Result<File> {
        let path = self.sockets.join(format!("{}.lock", facts.digest));
        let failed = |error| {
            Error::config(format!("{} cannot be locked", path.display())).source_error(error)
        };
        let file = File::options()
            .create(true)
            .append(true)
            .open(&path)
            .map_err(failed)?;
        if may_ask {
            lock::lock_alone(&file).map_err(failed)?;
            return Ok(file);
        }
        let begun = Instant::now();
        while !lock::try_lock(&file).map_err(failed)? {
            if begun.elapsed() > SIGN_IN_LOCK_TIMEOUT {
                return Err(Error::unreachable(format!(
                    "another tow is still signing in to `{}`",
                    self.name
                ))
                .hint("it may be asking for a password on its terminal"));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(file)
    }
}

/// A short question to a program of this machine.
fn ask(command: &mut Command) -> Result<Ran> {
    ask_within(command, LOCAL_TIMEOUT)
}

fn ask_within(command: &mut Command, limit: Duration) -> Result<Ran> {
    let mut running = Running::start(command)
        .map_err(|error| failure::not_started(command.get_program(), error))?;
    let ran = running
        .finish(&[], Instant::now() + limit)
        .map_err(end_unseen)?;
    ran.ok_or_else(|| Error::unreachable(format!("ssh did not answer within {limit:?}")))
}

pub(super) fn end_unseen(error: std::io::Error) -> Error {
    Error::unreachable("the end of ssh was not seen").source_error(error)
}
