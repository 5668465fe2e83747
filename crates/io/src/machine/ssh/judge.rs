//! What ssh's last words mean, and what to do about it.

use super::super::is_missing;
use super::resolved::Resolved;
use std::ffi::OsStr;
use std::path::Path;
use towline_core::{Error, Result};

/// What is known when signing in fails.
#[derive(Debug, Clone, Copy)]
pub(super) struct Case<'a> {
    /// As the user writes it.
    pub(super) host: &'a str,
    pub(super) ssh_config: Option<&'a Path>,
    pub(super) resolved: &'a Resolved,
    pub(super) home: Option<&'a Path>,
    pub(super) has_agent: bool,
    /// Whether the user could be asked.
    pub(super) may_ask: bool,
}

/// The host wants an answer that only a person can give.
pub(super) fn wants_person(said: &str) -> bool {
    said.lines()
        .filter(|line| line.contains("Permission denied ("))
        .any(|line| {
            ["password", "keyboard-interactive"]
                .iter()
                .any(|way| line.contains(way))
        })
}

/// Servers drop some of many who come at once, before they know who it is: trying again helps.
pub(super) fn is_crowded(said: &str) -> bool {
    let early = [
        "kex_exchange_identification:",
        "Connection reset by",
        "Connection closed by",
    ];
    early.iter().any(|sign| said.contains(sign))
        && ![
            "Connection refused",
            "timed out",
            "Could not resolve",
            "Permission denied",
            "Host key verification failed",
        ]
        .iter()
        .any(|sign| said.contains(sign))
}

impl Case<'_> {
    /// What makes ssh itself speak to the user.
    fn by_hand(&self) -> String {
        match self.ssh_config {
            Some(path) => format!("ssh -F {} {}", path.display(), self.host),
            None => format!("ssh {}", self.host),
        }
    }

    fn at(&self) -> String {
        let Resolved {
            host_name, port, ..
        } = self.resolved;
        if host_name.is_empty() || (host_name == self.host && port == "22") {
            String::new()
        } else {
            format!(" ({host_name} port {port})")
        }
    }

    /// The error for what ssh wrote when it could not sign in.
    pub(super) fn judge(&self, said: &str) -> Error {
        let has = |sign: &str| said.contains(sign);
        let host = format!("`{}`{}", self.host, self.at());
        if has("REMOTE HOST IDENTIFICATION HAS CHANGED") {
            return self.changed(said);
        }
        if has("Host key verification failed") || has("host key is known for") {
            // What is said of new hosts does not hold for a host on the way, which ssh reaches by
            // another ssh.
            let who = if self.resolved.is_direct() {
                host
            } else {
                format!("{host}, or a host on the way to it,")
            };
            return Error::refused(format!(
                "{who} shows a key that is not known, and your ssh \
                configuration takes no new ones unasked"
            ))
            .hint(format!(
                "compare its fingerprint and take it once by hand: \
                    {}",
                self.by_hand()
            ));
        }
        if has("Permission denied")
            || has("Too many authentication failures")
            || has("No more authentication methods")
        {
            return self.denied(said);
        }
        if has("Could not resolve hostname") {
            if has("Temporary failure") {
                return Error::unreachable(format!("the name of {host} cannot be looked up now"))
                    .hint("is this machine on a network, or does it need a VPN?");
            }
            let error = Error::config(format!("there is no host called {host}"));
            return error.hint(format!(
                "write it into your ssh configuration (`Host {}`), or give its full name; try: {}",
                self.host,
                self.by_hand()
            ));
        }
        if has("Connection refused") {
            return Error::unreachable(format!("{host} refuses connections"))
                .hint("is its ssh server running, and is the port right?")
                .with("ssh", gist(said));
        }
        if has("timed out") || has("No route to host") || has("Network is unreachable") {
            return Error::unreachable(format!("{host} does not answer"))
                .hint("does it need a VPN? is it up?")
                .with("ssh", gist(said));
        }
        if let Some(file) = said
            .lines()
            .find_map(|line| line.split_once("Bad owner or permissions on "))
            .map(|(_, file)| file.trim())
        {
            let word = super::super::quote::word(file);
            return Error::config(format!(
                "ssh does not use {file}: it is not yours, or others may write to it"
            ))
            .hint(format!(
                "chmod 600 {word}; if it is somebody else's: sudo chown $USER {word}"
            ));
        }
        if has("Bad configuration option")
            || has("terminating,")
            || has("Can't open user config file")
        {
            return Error::config(format!(
                "ssh does not take its configuration for `{}`: {}",
                self.host,
                gist(said)
            ));
        }
        if has("Unable to negotiate") {
            return Error::refused(format!(
                "{host} and your ssh have no way to talk in common: \
                {}",
                gist(said)
            ))
            .hint(
                "your ssh configuration can allow older ways for this host \
                    (HostKeyAlgorithms, KexAlgorithms)",
            );
        }
        Error::unreachable(format!("{host} cannot be reached: {}", gist(said)))
            .hint(format!("try by hand: {}", self.by_hand()))
    }

    /// ssh names the file and the line that the key is not in keeping with.
    fn changed(&self, said: &str) -> Error {
        let place = said
            .lines()
            .filter(|line| line.starts_with("Offending"))
            .find_map(|line| line.split_once(" key in "))
            .map(|(_, place)| place.trim());
        let (file, line) = place
            .and_then(|place| place.rsplit_once(':'))
            .unwrap_or((place.unwrap_or("known_hosts"), "?"));
        let own = self.resolved.key_name();
        // ssh says whose key it is: of the host itself, or of one on the way.
        let mut named = said
            .lines()
            .filter_map(|line| {
                line.trim()
                    .strip_prefix("Host key for ")?
                    .split_once(" has changed")
            })
            .map(|(name, _)| name.trim());
        let name = named.next_back().unwrap_or(&own).to_owned();
        let who = if name == own {
            format!("`{}`{}", self.host, self.at())
        } else {
            format!("`{name}`, a host on the way to `{}`,", self.host)
        };
        Error::refused(format!(
            "{who} shows another host key than the one in {file}, line {line}: \
            it is another machine, or somebody is in between"
        ))
        .hint("ask whoever runs it whether its key was changed")
        .hint(format!(
            "if so, forget the old one: ssh-keygen -f {} -R \
                {}",
            super::super::quote::word(file),
            super::super::quote::word(&name)
        ))
    }

    fn denied(&self, said: &str) -> Error {
        let ways = said
            .lines()
            .filter(|line| line.contains("Permission denied ("))
            .find_map(|line| line.rsplit_once('('))
            .map_or("", |(_, ways)| ways);
        let ways = ways.trim_end_matches(['.', ')', '\r']);
        let asks = ["password", "keyboard-interactive"]
            .iter()
            .any(|way| ways.contains(way));
        let missing: Vec<&str> = said
            .lines()
            .filter_map(|line| line.split_once("no such identity: "))
            .filter_map(|(_, rest)| rest.rsplit_once(": "))
            .map(|(file, _)| file)
            .collect();
        let tried = self.resolved.keys_tried(self.home, self.has_agent);
        if let Some(file) = missing.first().filter(|_| asks && !self.may_ask) {
            let others = if tried.is_empty() {
                String::new()
            } else {
                format!(" (other keys were tried: {})", tried.join(", "))
            };
            let error = Error::config(format!(
                "the key {file} that your ssh configuration names is not there{others}, and \
                    without it `{}`{} asks for a password or a second factor",
                self.host,
                self.at()
            ));
            return error
                .hint(format!(
                    "put the key there, or make one: ssh-keygen -t ed25519 -f {}",
                    super::super::quote::word(file)
                ))
                .hint(format!(
                    "then have the public half of it (the file that ends in .pub) let in at `{}`",
                    self.host
                ));
        }
        if asks && !self.may_ask {
            let error = Error::refused(format!(
                "`{}`{} wants to ask for a password or a second factor, and nobody can be asked \
                    here",
                self.host,
                self.at()
            ));
            return error
                .hint(
                    "run `tow clusters`, or for a tunnel `tow tunnel open`, on a terminal once: \
                    the connection is then kept for a day",
                )
                .hint("or let a key in that needs no question");
        }
        if tried.is_empty() {
            let what = missing.first().map_or_else(
                || "you have no key for ssh".to_owned(),
                |file| format!("the key {file} is not there"),
            );
            let error = Error::config(format!(
                "{what}, and `{}`{} wants one",
                self.host,
                self.at()
            ));
            return error
                .hint(format!(
                    "make one: ssh-keygen -t ed25519{}",
                    missing
                        .first()
                        .map(|file| format!(" -f {}", super::super::quote::word(file)))
                        .unwrap_or_default()
                ))
                .hint(format!(
                    "then have the public half of it (the file that ends in .pub) let in at `{}`",
                    self.host
                ));
        }
        let error = Error::refused(format!(
            "`{}`{} does not let you in (keys tried: {})",
            self.host,
            self.at(),
            tried.join(", ")
        ));
        if said.contains("Too many authentication failures") {
            return error.hint(format!(
                "too many keys were tried: write `IdentityFile` and `IdentitiesOnly \
                    yes` for `Host {}` into your ssh configuration",
                self.host
            ));
        }
        let error = error
            .hint(format!(
                "your public key has to be known there: add it at `{}`, or where its \
                keys are managed",
                self.host
            ))
            .hint(format!("try by hand: {}", self.by_hand()))
            .hint("what your agent holds: ssh-add -l; a key with a passphrase has to be there");
        if ways.is_empty() {
            error
        } else {
            error.with("it takes", ways)
        }
    }
}

/// The line of ssh's words that says most.
pub(super) fn gist(said: &str) -> String {
    let lines = || {
        said.lines().map(str::trim).filter(|line| {
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

/// A name of a host that ssh takes for nothing else.
pub(super) fn check_host(host: &str) -> Result<()> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_@:%[]/+".contains(&byte);
    if host.is_empty() || host.starts_with('-') || !host.bytes().all(is_plain) {
        return Err(Error::config(format!("`{host}` is not the name of a host"))
            .hint("a name of your ssh configuration, or USER@HOST"));
    }
    Ok(())
}

/// The program is not there, or cannot be started.
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

    fn judged(said: &str, may_ask: bool) -> (ErrorKind, String) {
        let resolved = Resolved::parse(
            "hostname 10.0.0.1\nport 2200\nidentityfile /bin/sh\nidentityagent none\n",
        );
        let case = Case {
            host: "login",
            ssh_config: None,
            resolved: &resolved,
            home: None,
            has_agent: false,
            may_ask,
        };
        let error = case.judge(said);
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
                ErrorKind::Refused,
                "keys tried: /bin/sh",
            ),
            (
                "me@h: Permission denied (publickey,password).",
                ErrorKind::Refused,
                "tow clusters",
            ),
            (
                "Received disconnect from h: 2: Too many authentication failures",
                ErrorKind::Refused,
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
                ErrorKind::Refused,
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
        for (said, kind, words) in cases {
            let (judged, text) = judged(said, false);
            assert_eq!(judged, kind, "{said}: {text}");
            assert!(text.contains(words), "{said}: {text}");
        }
        assert!(
            !judged("me@h: Permission denied (publickey,password).", true)
                .1
                .contains("tow clusters"),
            "the user was asked"
        );
    }

    #[test]
    fn a_key_that_is_not_there_is_told_from_one_that_is_not_taken() {
        let resolved =
            Resolved::parse("hostname h\nport 22\nidentityfile /nowhere/key\nidentityagent none\n");
        let case = Case {
            host: "login",
            ssh_config: None,
            resolved: &resolved,
            home: None,
            has_agent: false,
            may_ask: false,
        };
        let error = case.judge(
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
            case.judge("me@h: Permission denied (publickey).")
                .to_string()
                .starts_with("you have no key for ssh")
        );
        // Also where the server would ask a person for something else then.
        let error = case.judge(
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
        let said = "@@@@@@@@@@@\n@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nOffending \
            ED25519 key in /state/known hosts:3\nHost key verification failed.\n";
        let (kind, text) = judged(said, true);
        assert_eq!(kind, ErrorKind::Refused);
        assert!(text.contains("/state/known hosts, line 3"), "{text}");
        assert!(
            text.contains("ssh-keygen -f '/state/known hosts' -R '[10.0.0.1]:2200'"),
            "{text}"
        );
        let own = format!(
            "{said}Host key for [10.0.0.1]:2200 has changed and you have requested strict \
                checking.\n"
        );
        assert!(
            judged(&own, true)
                .1
                .starts_with("`login` (10.0.0.1 port 2200) shows another host key"),
            "{}",
            judged(&own, true).1
        );
        let bastion = judged(
            &format!(
                "{said}Host key for [gate.example.org]:22022 has changed and \
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
    fn a_host_that_wants_a_person_is_told_from_one_that_does_not_know_the_key() {
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
    fn a_crowd_is_told_from_a_closed_door() {
        assert!(is_crowded(
            "kex_exchange_identification: read: Connection reset by peer\nConnection reset by \
                10.0.0.1 port 22"
        ));
        assert!(!is_crowded(
            "ssh: connect to host bastion port 22: Connection \
                refused\nkex_exchange_identification: Connection closed by remote host"
        ));
    }
}
