//! Requests to the login service: OAuth 2.0 grants, sent as forms.

use super::token::Token;
use crate::retry::RequestRetry;
use crate::web::{Answer, AskError, NoAnswer, Web};
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{Method, Request};
use serde_json::Value;
use towline_core::redact::Secret;
use towline_core::{Error, ErrorKind, Result};

/// The login service of a tenant: `{authority}/{tenant}/oauth2/v2.0/…`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Login<'a> {
    pub(super) at: &'a str,
    pub(super) web: &'a Web,
    pub(super) authority: &'a str,
    pub(super) tenant: &'a str,
}

/// A refusal of the login service.
#[derive(Debug)]
pub(super) struct Refusal {
    /// The OAuth error code: `invalid_grant`, `authorization_pending`, …
    pub(super) word: String,
    /// One line for people, without secrets.
    message: String,
    /// The service wants to see the user: a second factor, a new consent, a policy.
    pub(super) wants_user: bool,
}

/// Numbers of refusals that only a new sign-in ends: a second factor is missing or has ended, or a
/// policy asks for more.
const WANTS_USER_CODES: [u64; 6] = [50_072, 50_074, 50_076, 50_078, 50_079, 50_158];

fn wants_user(word: &str, json: &Value) -> bool {
    let mut codes = json["error_codes"].as_array().into_iter().flatten();
    word == "interaction_required"
        || json["claims"].is_string()
        || codes.any(|code| {
            code.as_u64()
                .is_some_and(|code| WANTS_USER_CODES.contains(&code))
        })
}

impl Refusal {
    pub(super) fn message(&self) -> &str {
        &self.message
    }

    pub(super) fn error(&self, at: &str, method: &str) -> Error {
        Error::denied(format!(
            "{at}: the login service refuses {method}: {}",
            self.message
        ))
    }
}

impl Login<'_> {
    /// A grant that may be requested twice. No message repeats one of `secrets`.
    pub(super) async fn grant(
        &self,
        fields: &[(&str, &str)],
        secrets: &[&Secret],
    ) -> Result<Result<Value, Refusal>> {
        self.ask("token", fields, secrets, true).await
    }

    /// The address of a service: `token`, `devicecode`.
    pub(super) fn address(&self, what: &str) -> String {
        format!(
            "{}/{}/oauth2/v2.0/{what}",
            self.authority.trim_end_matches('/'),
            escaped(self.tenant)
        )
    }

    pub(super) async fn ask(
        &self,
        what: &str,
        fields: &[(&str, &str)],
        secrets: &[&Secret],
        repeatable: bool,
    ) -> Result<Result<Value, Refusal>> {
        let url = self.address(what);
        secure(&url)?;
        let form = url::form_urlencoded::Serializer::new(String::new())
            .extend_pairs(fields)
            .finish();
        let make = || {
            let builder = Request::builder()
                .method(Method::POST)
                .uri(&url)
                .header(CONTENT_TYPE, "application/x-www-form-urlencoded");
            builder
                .header(ACCEPT, "application/json")
                .body(Bytes::from(form.clone()))
        };
        let answer = self
            .web
            .ask_with(RequestRetry::of_a_call(repeatable), make)
            .await
            .map_err(|error| match error {
                AskError::Unmade(_) => Error::config(format!(
                    "{}: `{}` is no address of a login service",
                    self.at, self.authority
                )),
                AskError::Unanswered(problem) => unreachable(self.at, self.authority, &problem),
            })?;
        let json: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        if answer.status.is_success() {
            return Ok(Ok(json));
        }
        Ok(Err(refusal(&answer, &json, secrets)))
    }

    /// The token in an answer.
    pub(super) fn token(&self, answer: &Value) -> Result<Token> {
        let read = Token::read(answer, towline_host::clock::now());
        read.ok_or_else(|| {
            Error::unreachable(format!(
                "{}: the login service answers without a token",
                self.at
            ))
        })
    }
}

/// An error for an address without TLS: no token or secret is sent there.
pub(crate) fn secure(url: &str) -> Result<()> {
    if url.starts_with("https://") {
        return Ok(());
    }
    let shown = url.split('?').next().unwrap_or_default();
    Err(Error::new(
        ErrorKind::Refused,
        format!("no token is sent to {shown}: it would go unencrypted"),
    )
    .hint("an address must begin with https://"))
}

pub(super) fn unreachable(at: &str, service: &str, problem: &NoAnswer) -> Error {
    let host = service
        .split("://")
        .nth(1)
        .and_then(|rest| rest.split('/').next())
        .unwrap_or(service);
    problem.explain(&format!("{at}: {host}"), host)
}

/// `{"error": "invalid_client", "error_description": "AADSTS7000215: Invalid client secret
/// provided. … Trace ID: …"}`
pub(super) fn refusal(answer: &Answer, json: &Value, secrets: &[&Secret]) -> Refusal {
    let word = json
        .get("error")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    let text = json
        .get("error_description")
        .or_else(|| json.get("message"))
        .or_else(|| json.pointer("/error/message"))
        .and_then(Value::as_str);
    let line = text.unwrap_or_default().lines().next().unwrap_or_default();
    let line = line.split(" Trace ID:").next().unwrap_or_default().trim();
    let mut shown = match (word.as_str(), line) {
        ("", "") => answer.message(),
        (word, "") => word.to_owned(),
        (_, line) => line.chars().filter(|c| !c.is_control()).take(400).collect(),
    };
    for secret in secrets.iter().filter(|secret| !secret.expose().is_empty()) {
        shown = shown.replace(secret.expose(), "…");
    }
    Refusal {
        wants_user: wants_user(&word, json),
        word,
        message: shown,
    }
}

fn escaped(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC)
        .to_string()
        .replace("%2D", "-")
        .replace("%2E", ".")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_refusal_is_one_line_and_repeats_no_secret() {
        let answer = Answer {
            status: http::StatusCode::BAD_REQUEST,
            headers: http::HeaderMap::new(),
            body: Bytes::new(),
            tries: 1,
        };
        let json = json!({"error": "invalid_client", "error_description": "AADSTS7: not canary. \
            Trace ID: 12 Correlation\r\nTimestamp: now"});
        let found = refusal(&answer, &json, &[&Secret::new("canary")]);
        assert_eq!(
            (found.word.as_str(), found.message.as_str()),
            ("invalid_client", "AADSTS7: not ….")
        );
        assert_eq!(
            refusal(&answer, &json!({"error": "invalid_grant"}), &[]).message,
            "invalid_grant"
        );
        assert_eq!(
            refusal(&answer, &Value::Null, &[]).message,
            "400 Bad Request"
        );
    }

    #[test]
    fn nothing_goes_unencrypted() {
        assert!(secure("https://login.microsoftonline.com/t").is_ok());
        let error = secure("http://somewhere/token?secret=canary").expect_err("plain");
        assert!(error.kind() == ErrorKind::Refused && !error.to_string().contains("canary"));
        assert_eq!(escaped("a/b?c-d.e"), "a%2Fb%3Fc-d.e");
    }
}
