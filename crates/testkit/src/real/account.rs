//! A storage account and its credentials: its key, signatures made with it, and bearer tokens.
//! Signed here from the service's published rules, not by the program's own code.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::hmac;
use std::fmt::Write;
use towline_host::clock;

/// The version of the signing rules. Azurite knows no newer ones; the real service accepts old ones
/// for ever.
const SERVICE_VERSION: &str = "2022-11-02";

#[derive(Debug, Clone)]
pub struct Account {
    pub name: String,
    /// In base64.
    pub key: String,
    /// `http://127.0.0.1:PORT/NAME`
    pub endpoint: String,
}

impl Account {
    /// A signature for the whole account (`sv=…&sig=…`), valid for `seconds` from now; less than 0
    /// is expired.
    pub fn sas(&self, permissions: &str, seconds: i64) -> String {
        let (services, kinds, end) = ("b", "sco", moment(seconds));
        let text = format!(
            "{}\n{permissions}\n{services}\n{kinds}\n\n{end}\n\n\n{SERVICE_VERSION}\n\n",
            self.name
        );
        query(&[
            ("sv", SERVICE_VERSION),
            ("ss", services),
            ("srt", kinds),
            ("sp", permissions),
            ("se", &end),
            ("sig", &self.sign(&text)),
        ])
    }

    /// A signature for one container and its blobs.
    pub fn container_sas(&self, container: &str, permissions: &str, seconds: i64) -> String {
        self.resource_sas("c", container, permissions, seconds)
    }
    /// A signature for one blob.
    pub fn blob_sas(&self, container: &str, blob: &str, permissions: &str, seconds: i64) -> String {
        self.resource_sas("b", &format!("{container}/{blob}"), permissions, seconds)
    }
    fn resource_sas(&self, kind: &str, path: &str, permissions: &str, seconds: i64) -> String {
        let end = moment(seconds);
        let resource = format!("/blob/{}/{path}", self.name);
        let text = format!(
            "{permissions}\n\n{end}\n{resource}\n\n\n\n{SERVICE_VERSION}\n{kind}\n\n\n\n\n\n\n"
        );
        query(&[
            ("sv", SERVICE_VERSION),
            ("sr", kind),
            ("sp", permissions),
            ("se", &end),
            ("sig", &self.sign(&text)),
        ])
    }

    /// A token as Microsoft's login makes them, valid for `seconds` from now. Azurite reads the
    /// claims and cannot check the signature.
    pub fn bearer_token(&self, seconds: i64) -> String {
        let (now, tenant) = (
            clock::now().seconds(),
            "ab1f708d-50f6-404c-a006-d71b2ac7a606",
        );
        let head = serde_json::json!({"typ": "JWT", "alg": "HS256"});
        let claims = serde_json::json!({
            "aud": "https://storage.azure.com",
            "iss": format!("https://sts.windows.net/{tenant}/"),
            "tid": tenant,
            "oid": "23657296-5cd5-45b0-a809-d972a7f4dfe1",
            "iat": now - 3600,
            "nbf": now - 3600,
            "exp": now + seconds,
        });
        let text = [head, claims]
            .map(|part| URL_SAFE_NO_PAD.encode(part.to_string()))
            .join(".");
        format!("{text}.{}", URL_SAFE_NO_PAD.encode("signed by nobody"))
    }

    fn sign(&self, text: &str) -> String {
        let key = STANDARD.decode(&self.key).unwrap();
        STANDARD.encode(hmac::sign(
            &hmac::Key::new(hmac::HMAC_SHA256, &key),
            text.as_bytes(),
        ))
    }
}

/// `2026-11-15T06:48:00Z`
fn moment(seconds_from_now: i64) -> String {
    let mut moment = clock::now();
    moment.0 += seconds_from_now * 1000;
    moment
        .to_string()
        .get(..19)
        .map(|whole| format!("{whole}Z"))
        .unwrap_or_default()
}

fn query(pairs: &[(&str, &str)]) -> String {
    let mut text = String::new();
    for (name, value) in pairs {
        let _ = write!(text, "{}{name}=", if text.is_empty() { "" } else { "&" });
        for byte in value.bytes() {
            let _ = if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
                write!(text, "{}", char::from(byte))
            } else {
                write!(text, "%{byte:02X}")
            };
        }
    }
    text
}
