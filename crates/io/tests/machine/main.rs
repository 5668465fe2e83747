//! The two transports, this machine and a real ssh server, keep one contract. The other modules
//! test connections, sign-ins and shells.

mod connection;
mod shells;
mod sign_in;

use std::fs;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;
use towline_core::transport::Transport;
use towline_core::{Error, ErrorKind, quote};
use towline_io::machine::{LocalTransport, SshTransport};
use towline_testkit::real::{PASSPHRASE, Sshd};
use towline_testkit::transport_contract::{self, Stage};
use towline_testkit::{ability, until};

const COMMAND_TIMEOUT: Duration = Duration::from_secs(50);

struct Local {
    transport: LocalTransport,
    folder: TempDir,
}

impl Stage for Local {
    fn transport(&self) -> &dyn Transport {
        &self.transport
    }
    fn folder(&self) -> &str {
        self.folder.path().to_str().expect("text")
    }
}

/// A server, and a transport to it whose master ends with the test.
struct Far {
    transport: SshTransport,
    sshd: Sshd,
    folder: TempDir,
}

impl Far {
    fn start() -> Self {
        Self::start_with("")
    }
    fn start_with(lines: &str) -> Self {
        let (sshd, folder) = (
            Sshd::start_with(lines),
            tempfile::tempdir().expect("a folder"),
        );
        let transport = reach(&sshd.config(), folder.path());
        Self {
            transport,
            sshd,
            folder,
        }
    }
    fn echo(&self, word: &str) -> Result<Vec<u8>, Error> {
        self.transport
            .run(&["echo", word], b"", COMMAND_TIMEOUT)
            .map(|ran| ran.out)
    }
    fn known_hosts(&self) -> PathBuf {
        self.folder.path().join("known_hosts")
    }
    /// The server's configuration for clients, with more lines for the host.
    fn config_with(&self, lines: &str) -> PathBuf {
        let path = self.folder.path().join("more");
        fs::write(
            &path,
            format!(
                "{}{lines}\n",
                fs::read_to_string(self.sshd.config()).expect("a text")
            ),
        )
        .expect("written");
        path
    }
}

impl Drop for Far {
    fn drop(&mut self) {
        self.transport.close();
    }
}

impl Stage for Far {
    fn transport(&self) -> &dyn Transport {
        &self.transport
    }
    fn folder(&self) -> &str {
        self.folder.path().to_str().expect("text")
    }
}

fn reach(config: &Path, folder: &Path) -> SshTransport {
    SshTransport::new(
        "login",
        Some(config.to_owned()),
        folder.join("sockets"),
        folder.join("known_hosts"),
    )
    .expect("a host")
}

fn message_of(error: &Error) -> String {
    format!("{error}\n{}", error.hints().join("\n"))
}

#[test]
fn this_machine_keeps_the_contract() {
    let folder = tempfile::tempdir().expect("a folder");
    transport_contract::check(&Local {
        transport: LocalTransport::new(folder.path()),
        folder,
    });
}

#[test]
fn a_limit_ends_all_that_was_started_here() {
    let folder = tempfile::tempdir().expect("a folder");
    let transport = LocalTransport::new(folder.path());
    transport
        .run(
            &["sh", "-c", "sleep 1000 & echo $! > pid; wait"],
            b"",
            Duration::from_secs(1),
        )
        .expect_err("it takes too long");
    let pid: i32 = fs::read_to_string(folder.path().join("pid"))
        .expect("written")
        .trim()
        .parse()
        .expect("a number");
    until("the group to be gone", || {
        towline_host::process::facts(pid)
            .is_none_or(|facts| facts.zombie)
            .then_some(())
    });
}

#[test]
fn a_host_behind_ssh_keeps_the_contract_with_one_sign_in() {
    let far = Far::start();
    transport_contract::check(&far);
    far.transport.connect(false).expect("it is there");
    assert_eq!(far.sshd.authentications(), 1);
    // Another process of this user shares the connection.
    assert_eq!(
        reach(&far.sshd.config(), far.folder.path())
            .run(&["echo", "second"], b"", COMMAND_TIMEOUT)
            .expect("it runs")
            .out,
        b"second\n"
    );
    assert_eq!(far.sshd.authentications(), 1);
}
