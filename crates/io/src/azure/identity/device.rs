//! Signing in on another device: a code is shown, somebody enters it in a browser, and we ask until
//! it is done. What stays is a refresh token, which gives tokens for any resource.

use super::grant::{Login, Refusal};
use super::token::Token;
use serde_json::Value;
use std::time::{Duration, Instant};
use towline_core::redact::Secret;
use towline_core::{Error, Result};

/// The grant type of RFC 8628.
const DEVICE_CODE_GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";
/// Pause between two questions where the service names none.
const DEFAULT_POLL_INTERVAL: Duration = Duration::from_secs(5);
/// RFC 8628 adds this to the pause after `slow_down`.
const SLOW_DOWN_STEP: Duration = Duration::from_secs(5);
/// A code is good for this long where the service does not say.
const DEFAULT_CODE_SECONDS: u64 = 900;

/// A token, and what gives the next one.
#[derive(Debug)]
pub(super) struct Granted {
    pub(super) token: Token,
    pub(super) refresh: Option<Secret>,
}

pub(super) fn scope(resource: &str) -> String {
    format!("{}/.default", resource.trim_end_matches('/'))
}

fn scope_to_stay(resource: &str) -> String {
    format!("{} offline_access", scope(resource))
}

fn granted(login: &Login<'_>, answer: &Value) -> Result<Granted> {
    let refresh = answer
        .get("refresh_token")
        .and_then(Value::as_str)
        .map(Secret::new);
    Ok(Granted {
        token: login.token(answer)?,
        refresh,
    })
}

/// By a refresh token. A refusal means that somebody has to sign in again.
pub(super) async fn renew(
    login: &Login<'_>,
    client: &str,
    resource: &str,
    refresh: &Secret,
) -> Result<Result<Granted, Refusal>> {
    let scope = scope_to_stay(resource);
    let fields = [
        ("grant_type", "refresh_token"),
        ("client_id", client),
        ("scope", &scope),
        ("refresh_token", refresh.expose()),
    ];
    match login.grant(&fields, &[refresh]).await? {
        Ok(answer) => granted(login, &answer).map(Ok),
        Err(refusal) => Ok(Err(refusal)),
    }
}

/// Shows a code and waits for somebody to enter it.
pub(super) async fn ask(
    login: &Login<'_>,
    client: &str,
    resource: &str,
    tell: &(dyn Fn(&str) + Send + Sync),
) -> Result<Granted> {
    let scope = scope_to_stay(resource);
    let begun = Instant::now();
    let answer = login
        .ask(
            "devicecode",
            &[("client_id", client), ("scope", &scope)],
            &[],
            true,
        )
        .await?;
    let answer = answer.map_err(|refusal| {
        refusal
            .error(login.at, "device_code")
            .hint("look at `tenant_id`; some companies do not allow this way")
    })?;
    let text = |name: &str| answer.get(name).and_then(Value::as_str);
    let Some((code, shown)) = text("device_code").map(Secret::new).zip(text("user_code")) else {
        return Err(Error::unreachable(format!(
            "{}: the login service answers without a code",
            login.at
        )));
    };
    let usual = || {
        format!(
            "To sign in, open {} and enter the code {shown}.",
            text("verification_uri").unwrap_or("https://microsoft.com/devicelogin")
        )
    };
    tell(&text("message").map_or_else(usual, |message| {
        message.chars().filter(|c| !c.is_control()).collect()
    }));
    let good_for = Duration::from_secs(
        answer
            .get("expires_in")
            .and_then(Value::as_u64)
            .unwrap_or(DEFAULT_CODE_SECONDS),
    );
    let mut pause = answer
        .get("interval")
        .and_then(Value::as_u64)
        .map_or(DEFAULT_POLL_INTERVAL, Duration::from_secs);
    let fields = [
        ("grant_type", DEVICE_CODE_GRANT),
        ("client_id", client),
        ("device_code", code.expose()),
    ];
    loop {
        tokio::time::sleep(pause).await;
        // The answer to a code is given once: it is not to be lost by asking twice for one.
        let next = match login.ask("token", &fields, &[&code], false).await {
            Ok(Ok(answer)) => return granted(login, &answer),
            Ok(Err(refusal)) => next(&refusal.word, pause),
            Err(error) if error.kind() == towline_core::ErrorKind::Unreachable => {
                Next::Wait(pause + SLOW_DOWN_STEP)
            }
            Err(error) => return Err(error),
        };
        match next {
            Next::Wait(longer) if begun.elapsed() < good_for => pause = longer,
            Next::Wait(_) | Next::Expired => {
                return Err(Error::refused(format!(
                    "{}: nobody entered the code in time",
                    login.at
                ))
                .hint("the same command shows a new one"));
            }
            Next::Declined => {
                return Err(Error::refused(format!(
                    "{}: the sign-in was declined",
                    login.at
                )));
            }
            Next::Refused(word) => {
                return Err(Error::refused(format!(
                    "{}: the login service refuses the code: {word}",
                    login.at
                )));
            }
        }
    }
}

/// What follows an answer that is no token.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    Wait(Duration),
    Expired,
    Declined,
    Refused(String),
}

fn next(word: &str, pause: Duration) -> Next {
    match word {
        "authorization_pending" => Next::Wait(pause),
        "slow_down" => Next::Wait(pause + SLOW_DOWN_STEP),
        "expired_token" | "code_expired" => Next::Expired,
        "authorization_declined" | "access_denied" => Next::Declined,
        other => Next::Refused(if other.is_empty() {
            "it does not say why".to_owned()
        } else {
            other.to_owned()
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_answer_has_its_consequence() {
        let second = Duration::from_secs(1);
        assert_eq!(next("authorization_pending", second), Next::Wait(second));
        assert_eq!(
            next("slow_down", second),
            Next::Wait(Duration::from_secs(6))
        );
        assert_eq!(next("expired_token", second), Next::Expired);
        assert_eq!(next("authorization_declined", second), Next::Declined);
        assert_eq!(
            next("bad_verification_code", second),
            Next::Refused("bad_verification_code".to_owned())
        );
        assert_eq!(
            scope_to_stay("https://ml.azure.com/"),
            "https://ml.azure.com/.default offline_access"
        );
    }
}
