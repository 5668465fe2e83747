//! Shared access signatures: reading one to explain a refusal, and making one for others.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use std::time::Duration;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use time::macros::format_description;
use towline_core::redact::Secret;
use towline_core::time::Moment;
use towline_core::{Error, Result};

/// The fields of a signature. The whole is a secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Sas(Vec<(String, String)>);

impl std::fmt::Debug for Sas {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sas(‹secret›)")
    }
}

impl Sas {
    /// Parses a token as users paste it: with a `?`, blanks or a whole URL before it, escaped or
    /// not.
    pub fn parse(secret: &Secret) -> Result<Self> {
        let text = secret.expose().trim().trim_matches('"');
        let text = text.rsplit_once('?').map_or(text, |(_, query)| query);
        // A plus sign belongs to a signature that lost its escaping; it is never a blank.
        let text = text.replace('+', "%2B");
        let pairs: Vec<(String, String)> = url::form_urlencoded::parse(text.as_bytes())
            .into_owned()
            .collect();
        if !pairs
            .iter()
            .any(|(name, value)| name == "sig" && !value.is_empty())
        {
            return Err(Error::config("the SAS holds no signature (`sig=`)")
                .hint("copy the whole token, from `sv=` to the end of `sig=…`"));
        }
        Ok(Self(pairs))
    }
    pub fn pairs(&self) -> Vec<(String, String)> {
        self.0.clone()
    }
    /// The token as a service takes it: escaped, without anything before it.
    pub fn text(&self) -> Secret {
        Secret::new(
            url::form_urlencoded::Serializer::new(String::new())
                .extend_pairs(&self.0)
                .finish(),
        )
    }
    fn get(&self, name: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }
    fn moment(&self, name: &str) -> Option<Moment> {
        parse_moment(self.get(name)?)
    }

    /// The rights of its holder in words: "read, list in the whole container `data` until
    /// 2026-02-01…".
    pub(super) fn allows(&self, container: &str) -> String {
        let permissions: Vec<&str> = self
            .get("sp")
            .unwrap_or_default()
            .chars()
            .map(permission_name)
            .collect();
        let where_to = match (self.get("sr"), self.get("ss")) {
            (Some("b"), _) => "one blob".to_owned(),
            (Some("d"), _) => "one folder".to_owned(),
            (_, Some(_)) => "the whole account".to_owned(),
            _ => format!("the whole container `{container}`"),
        };
        let until = self
            .moment("se")
            .map(|end| format!(" until {end}"))
            .unwrap_or_default();
        let permissions = if permissions.is_empty() {
            "use".to_owned()
        } else {
            permissions.join(", ")
        };
        format!("{permissions} in {where_to}{until}")
    }

    /// Why the service refuses it for a call that needs `permission`, and what to do; `None` if its
    /// fields do not show the reason.
    pub fn diagnose(&self, permission: char, now: Moment) -> Option<(String, String)> {
        if let Some(end) = self.moment("se").filter(|end| *end <= now) {
            return Some((
                format!("its SAS expired at {end}"),
                "make a new SAS and put it where `credential` refers to".to_owned(),
            ));
        }
        if let Some(start) = self.moment("st").filter(|start| *start > now) {
            return Some((
                format!("its SAS is valid only from {start} on"),
                "wait, or make one that starts in the past; is the clock here right?".to_owned(),
            ));
        }
        let permissions = self.get("sp")?;
        // The right to write includes the right to create.
        let holds = |permission: char| {
            permissions.contains(permission) || (permission == 'c' && permissions.contains('w'))
        };
        (!holds(permission)).then(|| {
            let missing = format!(
                "its SAS lacks the permission `{permission}` ({}); it has `sp={permissions}`",
                permission_name(permission)
            );
            (
                missing,
                format!("make a SAS with `{permission}` among its permissions"),
            )
        })
    }
}

/// The name of a permission's letter.
const fn permission_name(permission: char) -> &'static str {
    match permission {
        'r' => "read",
        'a' => "add",
        'c' => "create",
        'w' => "write",
        'd' => "delete",
        'l' => "list",
        't' => "tag",
        'x' => "delete versions",
        'm' => "move",
        'e' => "execute",
        _ => "other",
    }
}

/// Parses a time of a SAS, which may lack seconds or the time of day.
fn parse_moment(text: &str) -> Option<Moment> {
    let text = text.trim();
    let full = match text.len() {
        10 => format!("{text}T00:00:00Z"),
        17 => format!("{}:00Z", text.trim_end_matches('Z')),
        _ => text.to_owned(),
    };
    let moment = OffsetDateTime::parse(&full, &Rfc3339).ok()?;
    i64::try_from(moment.unix_timestamp_nanos() / 1_000_000)
        .ok()
        .map(Moment)
}

/// The query of a signature that lets anybody read one blob, made with the account's key.
pub(super) fn sign_read(
    key: &Secret,
    account: &str,
    container: &str,
    blob: &str,
    valid: Duration,
) -> Result<Vec<(String, String)>> {
    sign(
        key,
        &format!("/blob/{account}/{container}/{blob}"),
        "b",
        "r",
        valid,
    )
}

/// A signature for everything in one container, for a program that takes no other credential.
pub fn sign_container(
    key: &Secret,
    account: &str,
    container: &str,
    valid: Duration,
) -> Result<Secret> {
    let pairs = sign(
        key,
        &format!("/blob/{account}/{container}"),
        "c",
        "racwdl",
        valid,
    )?;
    Ok(Secret::new(
        url::form_urlencoded::Serializer::new(String::new())
            .extend_pairs(pairs)
            .finish(),
    ))
}

fn sign(
    key: &Secret,
    resource: &str,
    kind: &str,
    permissions: &str,
    valid: Duration,
) -> Result<Vec<(String, String)>> {
    const SAS_VERSION: &str = "2020-12-06";
    let key = BASE64_STANDARD
        .decode(key.expose().trim())
        .map_err(|_| Error::config("the account key is not base64"))?;
    let second = format_description!("[year]-[month]-[day]T[hour]:[minute]:[second]Z");
    let at = |seconds: i64| {
        OffsetDateTime::from_unix_timestamp(seconds)
            .ok()
            .and_then(|moment| moment.format(&second).ok())
            .unwrap_or_default()
    };
    let now = towline_host::clock::now().seconds();
    // The token must be valid at once even if our clock is ahead of the service's.
    let (start, end) = (
        at(now - 900),
        at(now.saturating_add_unsigned(valid.as_secs())),
    );
    let fields = [
        permissions,
        &start,
        &end,
        resource,
        "",
        "",
        "",
        SAS_VERSION,
        kind,
        "",
        "",
        "",
        "",
        "",
        "",
        "",
    ];
    let signature = ring::hmac::sign(
        &ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &key),
        fields.join("\n").as_bytes(),
    );
    let pairs = [
        ("sv", SAS_VERSION),
        ("sp", permissions),
        ("st", &start),
        ("se", &end),
        ("sr", kind),
        ("sig", &BASE64_STANDARD.encode(signature)),
    ];
    Ok(pairs
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAS_TOKEN: &str =
        "sv=2021-08-06&sp=rl&st=2026-01-01T00:00:00Z&se=2026-02-01T00:00Z&sr=c&sig=ab%2Bc%2F%3D";

    fn sas(text: &str) -> Sas {
        Sas::parse(&Secret::new(text)).expect("a SAS")
    }

    #[test]
    fn every_form_of_pasting_gives_the_same_token() {
        for text in [
            format!("?{SAS_TOKEN}"),
            format!("  {SAS_TOKEN}\n"),
            format!("https://a.blob.core.windows.net/c?{SAS_TOKEN}"),
            SAS_TOKEN.replace("%2B", "+"),
        ] {
            assert_eq!(sas(&text), sas(SAS_TOKEN), "{text}");
        }
        assert_eq!(sas(SAS_TOKEN).get("sig"), Some("ab+c/="));
        assert!(
            Sas::parse(&Secret::new("canary"))
                .is_err_and(|error| !error.to_string().contains("canary"))
        );
        assert!(!format!("{:?}", sas(SAS_TOKEN)).contains("ab+c"));
    }

    #[test]
    fn the_reason_of_a_refusal_is_named() {
        let at = |text: &str| parse_moment(text).expect("a moment");
        let inside = at("2026-01-15T12:00:00Z");
        assert_eq!(sas(SAS_TOKEN).diagnose('r', inside), None);
        assert!(
            sas(SAS_TOKEN)
                .diagnose('w', inside)
                .expect("missing")
                .0
                .contains("`w` (write)")
        );
        assert!(
            sas(SAS_TOKEN)
                .diagnose('r', at("2026-03-01"))
                .expect("expired")
                .0
                .contains("expired at 2026-02-01T00:00:00")
        );
        assert!(
            sas(SAS_TOKEN)
                .diagnose('r', at("2025-12-31T23:59:59Z"))
                .expect("early")
                .0
                .contains("2026-01-01")
        );
        assert_eq!(
            sas(&SAS_TOKEN.replace("sp=rl", "sp=w")).diagnose('c', inside),
            None
        );
        assert_eq!(
            sas(SAS_TOKEN).allows("data"),
            "read, list in the whole container `data` until 2026-02-01T00:00:00.000Z"
        );
    }
}
