//! Why ssh failed, in the words it wrote on stderr, and what to do about it.

use super::super::is_missing;
use super::resolved::Resolved;
use std::ffi::OsStr;
use std::path::Path;
use towline_core::{Error, Result, quote};

/// A sign-in that failed, and what is known of its host.
#[derive(Debug, Clone, Copy)]
pub(super) struct SignInFailure<'a> {
    /// The host as the user writes it.
    pub(super) host: &'a str,
    pub(super) ssh_config: Option<&'a Path>,
    pub(super) resolved: &'a Resolved,
    pub(super) home: Option<&'a Path>,
    pub(super) has_agent: bool,
    /// Whether the user could be asked.
    pub(super) may_ask: bool,
}

/// Whether the host wants an answer that only a person can give.
pub(super) fn wants_person(stderr: &str) -> bool {
    stderr
        .lines()
        .filter(|line| line.contains("Permission denied ("))
        .any(asks_a_person)
}

/// Whether one of these methods of authentication asks a person.
pub(super) fn asks_a_person(methods: &str) -> bool {
    ["password", "keyboard-interactive"]
        .iter()
        .any(|method| methods.contains(method))
}

/// Whether the server dropped the connection before the sign-in began. Servers do so when many
/// connect at once, and trying again helps.
pub(super) fn was_dropped_early(stderr: &str) -> bool {
    let early = [
        "kex_exchange_identification:",
        "Connection reset by",
        "Connection closed by",
    ];
    let other = [
        "Connection refused",
        "timed out",
        "Could not resolve",
        "Permission denied",
        "Host key verification failed",
    ];
    early.iter().any(|sign| stderr.contains(sign))
        && !other.iter().any(|sign| stderr.contains(sign))
}

impl SignInFailure<'_> {
    /// The command that lets ssh itself speak to the user.
    pub(super) fn by_hand(&self) -> String {
        match self.ssh_config {
            Some(path) => format!("ssh -F {} {}", path.display(), self.host),
            None => format!("ssh {}", self.host),
        }
    }

    /// The host as the user writes it, with its address where that differs.
    pub(super) fn shown_host(&self) -> String {
        let Resolved {
            host_name, port, ..
        } = self.resolved;
        if host_name.is_empty() || (host_name == self.host && port == "22") {
            format!("`{}`", self.host)
        } else {
            format!("`{}` ({host_name} port {port})", self.host)
        }
    }

    /// The error for what ssh wrote when it could not sign in.
    pub(super) fn explain(&self, stderr: &str) -> Error {
        let has = |sign: &str| stderr.contains(sign);
        if has("REMOTE HOST IDENTIFICATION HAS CHANGED") {
            return self.changed_key(stderr);
        }
        if has("Host key verification failed") || has("host key is known for") {
            return self.unknown_key();
        }
        if has("Permission denied")
            || has("Too many authentication failures")
            || has("No more authentication methods")
        {
            return self.denied(stderr);
        }
        self.network_error(stderr)
            .or_else(|| self.configuration_error(stderr))
            .unwrap_or_else(|| {
                Error::unreachable(format!(
                    "{} cannot be reached: {}",
                    self.shown_host(),
                    main_line(stderr)
                ))
                .hint(format!("try by hand: {}", self.by_hand()))
            })
    }

    fn network_error(&self, stderr: &str) -> Option<Error> {
        let has = |sign: &str| stderr.contains(sign);
        let host = self.shown_host();
        if has("Could not resolve hostname") {
            if has("Temporary failure") {
                return Some(
                    Error::unreachable(format!("the name of {host} cannot be looked up now"))
                        .hint("is this machine on a network, or does it need a VPN?")
                        .blame_network(true),
                );
            }
            let error = Error::config(format!("there is no host called {host}"));
            return Some(error.hint(format!(
                "write it into your ssh configuration (`Host {}`), or give its full name; try: {}",
                self.host,
                self.by_hand()
            )));
        }
        if has("Connection refused") {
            return Some(
                Error::unreachable(format!("{host} refuses connections"))
                    .hint("is its ssh server running, and is the port right?")
                    .with("ssh", main_line(stderr)),
            );
        }
        if has("timed out") || has("No route to host") || has("Network is unreachable") {
            return Some(
                Error::unreachable(format!("{host} does not answer"))
                    .hint("does it need a VPN? is it up?")
                    .blame_network(true)
                    .with("ssh", main_line(stderr)),
            );
        }
        None
    }

    fn configuration_error(&self, stderr: &str) -> Option<Error> {
        let has = |sign: &str| stderr.contains(sign);
        let unowned = stderr
            .lines()
            .find_map(|line| line.split_once("Bad owner or permissions on "))
            .map(|(_, file)| file.trim());
        if let Some(file) = unowned {
            let word = quote::word(file);
            return Some(
                Error::config(format!(
                    "ssh does not use {file}: it is not yours, or others may write to it"
                ))
                .hint(format!(
                    "chmod 600 {word}; if it is somebody else's: sudo chown $USER {word}"
                )),
            );
        }
        if has("Bad configuration option")
            || has("terminating,")
            || has("Can't open user config file")
        {
            return Some(Error::config(format!(
                "ssh does not take its configuration for `{}`: {}",
                self.host,
                main_line(stderr)
            )));
        }
        if has("Unable to negotiate") {
            let error = Error::unsupported(format!(
                "{} and your ssh have no way to talk in common: {}",
                self.shown_host(),
                main_line(stderr)
            ));
            return Some(error.hint(
                "your ssh configuration can allow older ways for this host \
                    (HostKeyAlgorithms, KexAlgorithms)",
            ));
        }
        None
    }

    fn unknown_key(&self) -> Error {
        let host = self.shown_host();
        // Our option about new hosts does not reach a jump host, which ssh reaches by another ssh.
        let who = if self.resolved.is_direct() {
            host
        } else {
            format!("{host}, or a host on the way to it,")
        };
        Error::refused(format!(
            "{who} shows a key that is not known, and your ssh \
                configuration takes no new ones unasked"
        ))
        .hint(format!(
            "compare its fingerprint and take it once by hand: {}",
            self.by_hand()
        ))
    }

    /// ssh names the file and the line of the known key that differs.
    fn changed_key(&self, stderr: &str) -> Error {
        let place = stderr
            .lines()
            .filter(|line| line.starts_with("Offending"))
            .find_map(|line| line.split_once(" key in "))
            .map(|(_, place)| place.trim());
        let (file, line) = place
            .and_then(|place| place.rsplit_once(':'))
            .unwrap_or((place.unwrap_or("known_hosts"), "?"));
        let own = self.resolved.key_name();
        // ssh names the owner of the key: the host itself, or a jump host.
        let mut named = stderr
            .lines()
            .filter_map(|line| {
                line.trim()
                    .strip_prefix("Host key for ")?
                    .split_once(" has changed")
            })
            .map(|(name, _)| name.trim());
        let name = named.next_back().unwrap_or(&own).to_owned();
        let who = if name == own {
            self.shown_host()
        } else {
            format!("`{name}`, a host on the way to `{}`,", self.host)
        };
        Error::refused(format!(
            "{who} shows another host key than the one in {file}, line {line}: \
            it is another machine, or somebody is in between"
        ))
        .hint("ask whoever runs it whether its key was changed")
        .hint(format!(
            "if so, forget the old one: ssh-keygen -f {} -R {}",
            quote::word(file),
            quote::word(&name)
        ))
    }
}

/// The line of stderr that says most.
pub(super) fn main_line(stderr: &str) -> String {
    let lines = || {
        stderr.lines().map(str::trim).filter(|line| {
            !line.is_empty()
                && !line.starts_with("Warning: Permanently added")
                && !line.starts_with('@')
        })
    };
    let first = lines().find(|line| line.starts_with("ssh:") || line.contains(": line "));
    first
        .or_else(|| lines().next_back())
        .unwrap_or("ssh said nothing")
        .to_owned()
}

/// An error unless ssh takes `host` for the name of a host and nothing else.
pub(super) fn check_host(host: &str) -> Result<()> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_@:%[]/+".contains(&byte);
    if host.is_empty() || host.starts_with('-') || !host.bytes().all(is_plain) {
        return Err(Error::config(format!("`{host}` is not the name of a host"))
            .hint("a name of your ssh configuration, or USER@HOST"));
    }
    Ok(())
}

/// The error for an `ssh` that is missing or cannot be started.
pub(super) fn not_started(program: &OsStr, error: std::io::Error) -> Error {
    if is_missing(program, &error) {
        return Error::config("the program `ssh` is not on this machine")
            .hint("install OpenSSH's client: apt install openssh-client");
    }
    Error::config("`ssh` cannot be started").source_error(error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use towline_core::ErrorKind;

    fn explained(stderr: &str, may_ask: bool) -> (ErrorKind, String) {
        let resolved = Resolved::parse(
            "hostname 10.0.0.1\nport 2200\nidentityfile /bin/sh\nidentityagent none\n",
        );
        let failure = SignInFailure {
            host: "login",
            ssh_config: None,
            resolved: &resolved,
            home: None,
            has_agent: false,
            may_ask,
        };
        let error = failure.explain(stderr);
        (
            error.kind(),
            format!("{error} / {}", error.hints().join(" / ")),
        )
    }

    #[test]
    fn each_failure_says_what_to_do() {
        let cases = [
            (
                "me@h: Permission denied (publickey).\r\n",
                ErrorKind::Denied,
                "keys tried: /bin/sh",
            ),
            (
                "me@h: Permission denied (publickey,password).",
                ErrorKind::Denied,
                "tow clusters",
            ),
            (
                "Received disconnect from h: 2: Too many authentication failures",
                ErrorKind::Denied,
                "IdentitiesOnly",
            ),
            (
                "ssh: Could not resolve hostname login: Name or service not known",
                ErrorKind::Config,
                "no host called",
            ),
            (
                "ssh: Could not resolve hostname login: Temporary failure in name resolution",
                ErrorKind::Unreachable,
                "network",
            ),
            (
                "ssh: connect to host h port 22: Connection refused",
                ErrorKind::Unreachable,
                "refuses connections",
            ),
            (
                "ssh: connect to host h port 22: Connection timed out",
                ErrorKind::Unreachable,
                "VPN",
            ),
            (
                "ssh: connect to host h port 22: No route to host",
                ErrorKind::Unreachable,
                "does not answer",
            ),
            (
                "/x/config: line 3: Bad configuration option: foo\n/x/config: terminating, 1 bad \
                    configuration options",
                ErrorKind::Config,
                "line 3",
            ),
            (
                "Bad owner or permissions on /home/me/.ssh/config\r\n",
                ErrorKind::Config,
                "/home/me/.ssh/config: it is not yours, or others may write to it / chmod 600 \
                    /home/me/.ssh/config",
            ),
            (
                "Unable to negotiate with h port 22: no matching host key type found.",
                ErrorKind::Unsupported,
                "older ways",
            ),
            (
                "No ED25519 host key is known for h and you have requested strict checking.\nHost \
                    key verification failed.",
                ErrorKind::Refused,
                "by hand: ssh login",
            ),
            ("something new", ErrorKind::Unreachable, "something new"),
            ("", ErrorKind::Unreachable, "said nothing"),
        ];
        for (stderr, kind, words) in cases {
            let (found, text) = explained(stderr, false);
            assert_eq!(found, kind, "{stderr}: {text}");
            assert!(text.contains(words), "{stderr}: {text}");
        }
        assert!(
            !explained("me@h: Permission denied (publickey,password).", true)
                .1
                .contains("tow clusters"),
            "the user was asked"
        );
    }

    #[test]
    fn a_missing_key_differs_from_a_refused_one() {
        let resolved =
            Resolved::parse("hostname h\nport 22\nidentityfile /nowhere/key\nidentityagent none\n");
        let failure = SignInFailure {
            host: "login",
            ssh_config: None,
            resolved: &resolved,
            home: None,
            has_agent: false,
            may_ask: false,
        };
        let error = failure.explain(
            "no such identity: /nowhere/key: No such file or directory\nme@h: \
            Permission denied (publickey).\n",
        );
        assert_eq!(error.kind(), ErrorKind::Config);
        assert_eq!(
            error.to_string(),
            "the key /nowhere/key is not there, and `login` (h port 22) wants one"
        );
        assert_eq!(
            error.hints()[0],
            "make one: ssh-keygen -t ed25519 -f /nowhere/key"
        );
        assert!(
            failure
                .explain("me@h: Permission denied (publickey).")
                .to_string()
                .starts_with("you have no key for ssh")
        );
        // Also where the server would ask a person for something else then.
        let error = failure.explain(
            "no such identity: /nowhere/key: No such file or directory\nme@h: \
            Permission denied (publickey,keyboard-interactive).\n",
        );
        assert_eq!(error.kind(), ErrorKind::Config);
        assert!(
            error.to_string().starts_with(
                "the key /nowhere/key that your ssh configuration \
            names is not there, and without it `login`"
            ),
            "{error}"
        );
    }

    #[test]
    fn a_changed_key_is_named_with_its_line() {
        let stderr = "@@@@@@@@@@@\n@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nOffending \
            ED25519 key in /state/known hosts:3\nHost key verification failed.\n";
        let (kind, text) = explained(stderr, true);
        assert_eq!(kind, ErrorKind::Refused);
        assert!(text.contains("/state/known hosts, line 3"), "{text}");
        assert!(
            text.contains("ssh-keygen -f '/state/known hosts' -R '[10.0.0.1]:2200'"),
            "{text}"
        );
        let own = format!(
            "{stderr}Host key for [10.0.0.1]:2200 has changed and you have requested strict \
                checking.\n"
        );
        assert!(
            explained(&own, true)
                .1
                .starts_with("`login` (10.0.0.1 port 2200) shows another host key"),
            "{}",
            explained(&own, true).1
        );
        let bastion = explained(
            &format!(
                "{stderr}Host key for [gate.example.org]:22022 has changed and \
            you have requested strict checking.\n"
            ),
            true,
        )
        .1;
        assert!(
            bastion.starts_with(
                "`[gate.example.org]:22022`, a host on the way to `login`, shows another host key"
            ),
            "{bastion}"
        );
        assert!(
            bastion.contains("-R '[gate.example.org]:22022'") && !bastion.contains("10.0.0.1"),
            "{bastion}"
        );
    }

    #[test]
    fn hosts_are_names_only() {
        for good in [
            "login",
            "me@login.example.org",
            "ssh://me@h:22",
            "10.0.0.1",
            "me@fe80::1%eth0",
        ] {
            assert!(check_host(good).is_ok(), "{good}");
        }
        for bad in ["", "-oProxyCommand=x", "a b", "a;b", "a\nb", "$(x)", "a'b"] {
            assert!(check_host(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_host_that_wants_a_person_differs_from_one_that_refuses_the_key() {
        assert!(wants_person(
            "Banner (password)\nme@h: Permission denied (publickey,password).\r\n"
        ));
        assert!(wants_person(
            "me@h: Permission denied (publickey,keyboard-interactive)."
        ));
        for other in [
            "me@h: Permission denied (publickey).",
            "ssh: connect to host h port 22: Connection refused",
            "your password has expired",
            "",
        ] {
            assert!(!wants_person(other), "{other}");
        }
    }

    #[test]
    fn an_early_drop_differs_from_a_refusal() {
        assert!(was_dropped_early(
            "kex_exchange_identification: read: Connection reset by peer\nConnection reset by \
                10.0.0.1 port 22"
        ));
        assert!(!was_dropped_early(
            "ssh: connect to host bastion port 22: Connection \
                refused\nkex_exchange_identification: Connection closed by remote host"
        ));
    }
}
