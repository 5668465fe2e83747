//! Why a host did not let us in, and what to do about it.

use super::failure::{SignInFailure, asks_a_person};
use towline_core::{Error, quote};

impl SignInFailure<'_> {
    pub(super) fn denied(&self, stderr: &str) -> Error {
        let methods = stderr
            .lines()
            .filter(|line| line.contains("Permission denied ("))
            .find_map(|line| line.rsplit_once('('))
            .map_or("", |(_, methods)| methods)
            .trim_end_matches(['.', ')', '\r']);
        let missing_key = stderr
            .lines()
            .filter_map(|line| line.split_once("no such identity: "))
            .filter_map(|(_, rest)| rest.rsplit_once(": "))
            .map(|(file, _)| file)
            .next();
        let tried = self.resolved.keys_tried(self.home, self.has_agent);
        let nobody_to_ask = asks_a_person(methods) && !self.may_ask;
        match missing_key {
            Some(file) if nobody_to_ask => self.missing_key(file, &tried),
            None if nobody_to_ask => self.needs_person(),
            _ if tried.is_empty() => self.no_key(missing_key),
            _ => self.refused_keys(stderr, &tried, methods),
        }
    }

    /// The configured key is missing, and the host would ask a person instead.
    fn missing_key(&self, file: &str, tried: &[String]) -> Error {
        let others = if tried.is_empty() {
            String::new()
        } else {
            format!(" (other keys were tried: {})", tried.join(", "))
        };
        Error::config(format!(
            "the key {file} that your ssh configuration names is not there{others}, and \
                without it {} asks for a password or a second factor",
            self.shown_host()
        ))
        .hint(format!(
            "put the key there, or make one: ssh-keygen -t ed25519 -f {}",
            quote::word(file)
        ))
        .hint(self.public_half_hint())
    }

    fn needs_person(&self) -> Error {
        Error::denied(format!(
            "{} wants to ask for a password or a second factor, and nobody can be asked here",
            self.shown_host()
        ))
        .hint(
            "run `tow clusters`, or for a tunnel `tow tunnel open`, on a terminal once: \
            the connection is then kept for a day",
        )
        .hint("or let a key in that needs no question")
    }

    fn no_key(&self, missing: Option<&str>) -> Error {
        let what = missing.map_or_else(
            || "you have no key for ssh".to_owned(),
            |file| format!("the key {file} is not there"),
        );
        let file = missing
            .map(|file| format!(" -f {}", quote::word(file)))
            .unwrap_or_default();
        Error::config(format!("{what}, and {} wants one", self.shown_host()))
            .hint(format!("make one: ssh-keygen -t ed25519{file}"))
            .hint(self.public_half_hint())
    }

    fn public_half_hint(&self) -> String {
        format!(
            "then have the public half of it (the file that ends in .pub) let in at `{}`",
            self.host
        )
    }

    fn refused_keys(&self, stderr: &str, tried: &[String], methods: &str) -> Error {
        let error = Error::denied(format!(
            "{} does not let you in (keys tried: {})",
            self.shown_host(),
            tried.join(", ")
        ));
        if stderr.contains("Too many authentication failures") {
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
        if methods.is_empty() {
            error
        } else {
            error.with("it takes", methods)
        }
    }
}
