//! The version of OpenSSH's client. A client refuses to run with an option that it does not know,
//! so an old one gets fewer options.

use super::super::running::Running;
use std::ffi::OsStr;
use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// How long `ssh -V` may take.
const VERSION_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Client {
    major: u32,
    minor: u32,
}

impl Client {
    /// A client that does not tell its version counts as this one.
    pub const NEWEST: Self = Self {
        major: u32::MAX,
        minor: 0,
    };

    /// Parses the output of `ssh -V`: `OpenSSH_8.0p1, OpenSSL 1.1.1k`.
    pub fn of(version: &str) -> Self {
        let version = version
            .split_once("OpenSSH_")
            .map(|(_, rest)| rest.trim_start_matches("for_Windows_"));
        let number = |text: &str| {
            text.split(|sign: char| !sign.is_ascii_digit())
                .next()
                .and_then(|digits| digits.parse().ok())
        };
        let parts = version.and_then(|version| version.split_once('.'));
        match parts.map(|(major, minor)| (number(major), number(minor))) {
            Some((Some(major), Some(minor))) => Self { major, minor },
            _ => Self::NEWEST,
        }
    }

    /// The `ssh` on the path; it is run once.
    pub fn installed() -> Self {
        static INSTALLED: OnceLock<Client> = OnceLock::new();
        *INSTALLED.get_or_init(|| Self::ask(OsStr::new("ssh")))
    }

    pub(super) fn ask(program: &OsStr) -> Self {
        let mut command = Command::new(program);
        command.arg("-V").current_dir("/");
        let ran = Running::start(&mut command)
            .and_then(|mut running| running.finish(&[], Instant::now() + VERSION_TIMEOUT));
        ran.ok().flatten().map_or(Self::NEWEST, |ran| {
            Self::of(&format!(
                "{}{}",
                String::from_utf8_lossy(&ran.err),
                String::from_utf8_lossy(&ran.out)
            ))
        })
    }

    /// `StrictHostKeyChecking=accept-new`, since 7.6.
    pub const fn takes_new_hosts(self) -> bool {
        self.is_since(7, 6)
    }

    /// `RemoteCommand`, since 7.6.
    pub(super) const fn knows_remote_command(self) -> bool {
        self.is_since(7, 6)
    }

    const fn is_since(self, major: u32, minor: u32) -> bool {
        self.major > major || (self.major == major && self.minor >= minor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_real_clients_are_parsed() {
        let cases = [
            ("OpenSSH_7.4p1, OpenSSL 1.0.2k-fips  26 Jan 2017\n", (7, 4)),
            ("OpenSSH_8.0p1, OpenSSL 1.1.1k  FIPS 25 Mar 2021", (8, 0)),
            ("OpenSSH_8.2p1 Ubuntu-4ubuntu0.11, OpenSSL 1.1.1f", (8, 2)),
            ("OpenSSH_9.2p1 Debian-2+deb12u10, OpenSSL 3.0.19", (9, 2)),
            ("OpenSSH_for_Windows_8.1p1, LibreSSL 3.0.2", (8, 1)),
            ("OpenSSH_10.0p2, OpenSSL 3.5", (10, 0)),
        ];
        for (version, (major, minor)) in cases {
            assert_eq!(Client::of(version), Client { major, minor }, "{version}");
        }
        for other in ["", "Sun_SSH_2.4", "OpenSSH_", "OpenSSH_x.y"] {
            assert_eq!(Client::of(other), Client::NEWEST, "{other}");
        }
        assert!(
            !Client::of(cases[0].0).takes_new_hosts() && Client::of(cases[1].0).takes_new_hosts()
        );
    }
}
