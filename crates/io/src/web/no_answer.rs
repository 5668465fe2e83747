//! Why a service gave no answer, and what to do about it.

use http::StatusCode;
use std::error::Error as _;
use std::time::Duration;
use towline_core::Error;

/// Why there is no answer, in words without addresses and secrets.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct NoAnswer {
    pub message: String,
    pub cause: Cause,
    /// The pause that the service asks for.
    pub after: Option<Duration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// The name of the host cannot be looked up.
    Name,
    /// Nothing accepts connections there.
    Connect,
    Tls,
    /// The connection broke off or timed out.
    Broken,
    /// The service was busy, or failed, at every try.
    Status(StatusCode),
}

/// Why [`super::Web::ask`] gave up.
#[derive(Debug)]
pub enum AskError<E> {
    Unmade(E),
    Unanswered(NoAnswer),
}

pub(super) fn describe(error: &reqwest::Error) -> NoAnswer {
    let mut message = error.to_string();
    let mut source = error.source();
    while let Some(deeper) = source {
        message = deeper.to_string();
        source = deeper.source();
    }
    let lower = message.to_lowercase();
    if lower.contains("no record") || lower.contains("nxdomain") {
        return NoAnswer {
            message: "no host has that name".to_owned(),
            cause: Cause::Name,
            after: None,
        };
    }
    let cause = if error.is_timeout() && error.is_connect() {
        Cause::Connect
    } else if lower.contains("dns")
        || lower.contains("lookup")
        || lower.contains("no connections available")
    {
        Cause::Name
    } else if lower.contains("eof")
        || lower.contains("reset")
        || lower.contains("closed")
        || error.is_timeout()
    {
        // A handshake that breaks off does not show what protocol the host speaks.
        Cause::Broken
    } else if lower.contains("certificate")
        || lower.contains("invalid")
        || lower.contains("corrupt message")
        || lower.contains("alert")
    {
        Cause::Tls
    } else if error.is_connect() {
        Cause::Connect
    } else {
        Cause::Broken
    };
    if error.is_timeout() {
        "it did not answer in time".clone_into(&mut message);
    }
    NoAnswer {
        message,
        cause,
        after: None,
    }
}

impl NoAnswer {
    /// The error for the user: `place` names the service in messages, `host` is what was asked.
    pub fn explain(&self, place: &str, host: &str) -> Error {
        let error = Error::unreachable(format!("{place} cannot be reached: {}", self.message))
            .retry(towline_core::Retry::Exhausted);
        match self.cause {
            Cause::Name => error.blame_network(true).hint(format!(
                "there is no network, or no host is called {host}: \
                look at `account` and `endpoint`; is the VPN on?"
            )),
            Cause::Connect => error.blame_network(true).hint(format!(
                "nothing listens at {host}, or a firewall is in \
                between: is the VPN on?"
            )),
            Cause::Tls if self.message.contains("UnknownIssuer") => error.hint(format!(
                "who vouches for {host} is not known here: SSL_CERT_FILE names \
                    a file of authorities to trust"
            )),
            Cause::Tls => error.hint(format!(
                "{host} does not speak TLS as expected; an `endpoint` \
                that begins with http:// goes without it"
            )),
            Cause::Broken => error.hint("the same command goes on where it stopped"),
            Cause::Status(_) => error.hint(
                "the service is busy or ill; the same command goes on \
                where it stopped",
            ),
        }
    }
}
