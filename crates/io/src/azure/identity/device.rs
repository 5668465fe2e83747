//! Signing in on another device: a code is shown, somebody enters it in a browser, and we ask until
//! it is done. The refresh token that we get gives tokens for any resource.

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
/// The page that takes codes where the service names none.
const DEFAULT_VERIFICATION_PAGE: &str = "https://microsoft.com/devicelogin";
/// How often to look whether the user has stopped.
const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// A code is good for this long where the service does not say.
const DEFAULT_CODE_SECONDS: u64 = 900;

/// A token, and the refresh token that gives the next one.
#[derive(Debug)]
pub(super) struct Granted {
    pub(super) token: Token,
    pub(super) refresh: Option<Secret>,
}

pub(super) fn scope(resource: &str) -> String {
    format!("{}/.default", resource.trim_end_matches('/'))
}

fn scope_with_refresh(resource: &str) -> String {
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

/// A new token by a refresh token. A refusal means that somebody has to sign in again.
pub(super) async fn renew(
    login: &Login<'_>,
    client: &str,
    resource: &str,
    refresh: &Secret,
) -> Result<Result<Granted, Refusal>> {
    let scope = scope_with_refresh(resource);
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

/// A code that somebody has to enter in a browser.
#[derive(Debug, Clone)]
pub struct DevicePrompt {
    /// The page that takes the code.
    pub address: String,
    pub code: String,
    /// One line that has both.
    pub message: String,
    pub good_for: Duration,
}

/// The user who signs in.
#[derive(Clone, Copy)]
pub struct Watcher<'a> {
    /// Shows the code.
    pub show: &'a (dyn Fn(&DevicePrompt) + Send + Sync),
    /// Whether the user has stopped the sign-in.
    pub is_stopped: &'a (dyn Fn() -> bool + Send + Sync),
}

impl std::fmt::Debug for Watcher<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Watcher")
    }
}

/// Shows a code and waits for somebody to enter it. `None` if the user stops it.
pub(super) async fn ask(
    login: &Login<'_>,
    client: &str,
    resource: &str,
    watcher: &Watcher<'_>,
) -> Result<Option<Granted>> {
    let scope = scope_with_refresh(resource);
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
    let code = DeviceCode::read(&answer).ok_or_else(|| {
        Error::unreachable(format!(
            "{}: the login service answers without a code",
            login.at
        ))
    })?;
    (watcher.show)(&code.prompt);
    wait_for_grant(login, client, &code, begun, watcher.is_stopped).await
}

struct DeviceCode {
    code: Secret,
    prompt: DevicePrompt,
    poll_interval: Duration,
}

impl DeviceCode {
    fn read(answer: &Value) -> Option<Self> {
        let text = |name: &str| answer.get(name).and_then(Value::as_str);
        let number = |name: &str| answer.get(name).and_then(Value::as_u64);
        let plain = |text: &str| text.chars().filter(|c| !c.is_control()).collect::<String>();
        let (code, shown) = (text("device_code")?, plain(text("user_code")?));
        let address = plain(text("verification_uri").unwrap_or(DEFAULT_VERIFICATION_PAGE));
        let own_message = || format!("To sign in, open {address} and enter the code {shown}.");
        let message = text("message").map_or_else(own_message, plain);
        let good_for = Duration::from_secs(number("expires_in").unwrap_or(DEFAULT_CODE_SECONDS));
        Some(Self {
            code: Secret::new(code),
            prompt: DevicePrompt {
                address,
                code: shown,
                message,
                good_for,
            },
            poll_interval: number("interval").map_or(DEFAULT_POLL_INTERVAL, Duration::from_secs),
        })
    }
}

/// Sleeps, unless the user stops. Returns whether the user has stopped.
async fn sleep_or_stop(pause: Duration, is_stopped: &(dyn Fn() -> bool + Send + Sync)) -> bool {
    let begun = Instant::now();
    loop {
        if is_stopped() {
            return true;
        }
        let left = pause.saturating_sub(begun.elapsed());
        if left.is_zero() {
            return false;
        }
        tokio::time::sleep(left.min(STOP_CHECK_INTERVAL)).await;
    }
}

async fn wait_for_grant(
    login: &Login<'_>,
    client: &str,
    code: &DeviceCode,
    begun: Instant,
    is_stopped: &(dyn Fn() -> bool + Send + Sync),
) -> Result<Option<Granted>> {
    let refused = |why: &str| Error::denied(format!("{}: {why}", login.at));
    let fields = [
        ("grant_type", DEVICE_CODE_GRANT),
        ("client_id", client),
        ("device_code", code.code.expose()),
    ];
    let mut pause = code.poll_interval;
    loop {
        if sleep_or_stop(pause, is_stopped).await {
            return Ok(None);
        }
        // The service grants a code once. A repeated question could lose that answer.
        let next = match login.ask("token", &fields, &[&code.code], false).await {
            Ok(Ok(answer)) => return granted(login, &answer).map(Some),
            Ok(Err(refusal)) => next(&refusal.word, pause),
            Err(error) if error.kind() == towline_core::ErrorKind::Unreachable => {
                Next::Wait(pause + SLOW_DOWN_STEP)
            }
            Err(error) => return Err(error),
        };
        match next {
            Next::Wait(longer) if begun.elapsed() < code.prompt.good_for => pause = longer,
            Next::Wait(_) | Next::Expired => {
                return Err(refused("nobody entered the code in time")
                    .hint("the same command shows a new one"));
            }
            Next::Declined => return Err(refused("the sign-in was declined")),
            Next::Refused(word) => {
                return Err(refused(&format!(
                    "the login service refuses the code: {word}"
                )));
            }
        }
    }
}

/// The next step after an answer without a token.
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
            scope_with_refresh("https://ml.azure.com/"),
            "https://ml.azure.com/.default offline_access"
        );
    }
}
