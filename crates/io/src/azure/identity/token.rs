//! A token, and when to replace it.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use towline_core::redact::Secret;
use towline_core::time::Moment;

/// A token is replaced this long before its end.
const RENEW_EARLY_MILLIS: i64 = 5 * 60 * 1000;
/// A token whose end is unknown is used for this long.
const UNKNOWN_LIFETIME_MILLIS: i64 = 5 * 60 * 1000;

#[derive(Debug, Clone)]
pub(super) struct Token {
    pub(super) secret: Secret,
    ends: Moment,
    renew: Moment,
}

impl Token {
    /// A token with a short life is replaced after half of it.
    pub(super) fn new(secret: Secret, ends: Moment, now: Moment) -> Self {
        let half = now.0 + (ends.0 - now.0) / 2;
        Self {
            secret,
            ends,
            renew: Moment(half.max(ends.0 - RENEW_EARLY_MILLIS)),
        }
    }

    /// Reads the answer of a token service: `access_token` with `expires_on` or `expires_in`, as
    /// text or number.
    pub(super) fn read(answer: &Value, now: Moment) -> Option<Self> {
        Self::named(answer, "access_token", now)
    }

    /// The same, with the token under another name.
    pub(super) fn named(answer: &Value, name: &str, now: Moment) -> Option<Self> {
        let text = answer.get(name)?.as_str().filter(|text| !text.is_empty())?;
        let number = |name: &str| {
            answer.get(name).and_then(|value| {
                value
                    .as_i64()
                    .or_else(|| value.as_str()?.trim().parse().ok())
            })
        };
        let ends = number("expires_on")
            .or_else(|| number("expires_in").map(|seconds| now.seconds() + seconds))
            .or_else(|| claimed_end(text));
        let ends = ends.map_or(Moment(now.0 + UNKNOWN_LIFETIME_MILLIS), |seconds| {
            Moment(seconds.saturating_mul(1000))
        });
        Some(Self::new(Secret::new(text), ends, now))
    }

    pub(super) fn is_fresh(&self, now: Moment) -> bool {
        now < self.renew
    }
    /// Whether it may still be used if there is no other.
    pub(super) fn is_good(&self, now: Moment) -> bool {
        now < self.ends
    }

    /// For a private file only.
    pub(super) fn to_private(&self) -> Value {
        json!({"version": 1, "token": self.secret.expose(), "ends": self.ends, "renew": self.renew})
    }
    pub(super) fn from_private(value: &Value) -> Option<Self> {
        let moment = |name: &str| value.get(name)?.as_i64().map(Moment);
        let is_ours = value.get("version")? == 1;
        let secret = Secret::new(value.get("token")?.as_str()?);
        is_ours.then_some(Self {
            secret,
            ends: moment("ends")?,
            renew: moment("renew")?,
        })
    }
}

/// The end that a JWT itself names, in seconds since 1970. Azure CLI before 2.54 names it in local
/// time only.
fn claimed_end(token: &str) -> Option<i64> {
    read_claims(token)?.get("exp")?.as_i64()
}

/// The claims of a JWT. Its signature is not checked here; only the service can do that.
pub(super) fn read_claims(token: &str) -> Option<Value> {
    let claims = BASE64_URL_SAFE_NO_PAD
        .decode(token.split('.').nth(1)?.trim_end_matches('='))
        .ok()?;
    serde_json::from_slice(&claims).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Moment = Moment(1_000_000_000_000);

    fn kept_for(answer: &Value) -> i64 {
        let token = Token::read(answer, NOW).expect("a token");
        assert!(
            token.is_fresh(Moment(token.renew.0 - 1))
                && !token.is_fresh(token.renew)
                && token.is_good(token.renew)
        );
        (token.renew.0 - NOW.0) / 1000
    }

    #[test]
    fn it_is_replaced_five_minutes_before_its_end() {
        let end = NOW.seconds() + 3600;
        assert_eq!(
            kept_for(&json!({"access_token": "t", "expires_on": end})),
            3300
        );
        assert_eq!(
            kept_for(&json!({"access_token": "t", "expires_on": end.to_string()})),
            3300
        );
        assert_eq!(
            kept_for(&json!({"access_token": "t", "expires_in": "3600"})),
            3300
        );
        assert_eq!(
            kept_for(&json!({"access_token": "t", "expires_in": 60})),
            30
        );
        let claims = BASE64_URL_SAFE_NO_PAD.encode(json!({"exp": end}).to_string());
        assert_eq!(
            kept_for(
                &json!({"access_token": format!("h.{claims}.s"), "expiresOn": "2026-01-01 \
                    01:00:00.000000"})
            ),
            3300
        );
        assert_eq!(kept_for(&json!({"access_token": "opaque"})), 150);
        for nothing in [
            json!({}),
            json!({"access_token": ""}),
            json!({"access_token": 1}),
        ] {
            assert!(Token::read(&nothing, NOW).is_none());
        }
    }

    #[test]
    fn it_reads_back_and_does_not_show() {
        let token = Token::read(&json!({"access_token": "canary", "expires_in": 60}), NOW)
            .expect("a token");
        assert!(!format!("{token:?}").contains("canary"));
        let again = Token::from_private(&token.to_private()).expect("ours");
        assert_eq!(
            (again.secret, again.ends, again.renew),
            (token.secret, token.ends, token.renew)
        );
        assert!(
            Token::from_private(&json!({"version": 2, "token": "t", "ends": 1, "renew": 1}))
                .is_none()
        );
    }
}
