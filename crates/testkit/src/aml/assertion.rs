//! Assertions of an application that are signed with the key of its certificate, by Microsoft's
//! description: PS256 with the SHA-256 of the certificate, or the older RS256 with its SHA-1.

use super::world::World;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, SHA256, digest};
use ring::signature::{
    RSA_PKCS1_2048_8192_SHA256, RSA_PSS_2048_8192_SHA256, RsaKeyPair, UnparsedPublicKey,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::Value;
use std::process::Command;
use std::sync::OnceLock;
use towline_host::clock;

/// Private key and certificate of the application, made anew for this process. Nothing but this
/// emulator knows them.
pub(super) fn principal_pem() -> &'static str {
    static PEM: OnceLock<String> = OnceLock::new();
    PEM.get_or_init(|| {
        let words = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=towline-test \
            -keyout /dev/stdout -out /dev/stdout";
        let made = Command::new("openssl")
            .args(words.split_whitespace())
            .output();
        let made = made.expect("openssl is installed");
        assert!(
            made.status.success(),
            "{}",
            String::from_utf8_lossy(&made.stderr)
        );
        String::from_utf8(made.stdout).expect("PEM is text")
    })
}

/// How far clocks may differ.
const SKEW_SECONDS: i64 = 300;

/// The number and the message of a refusal.
pub(super) type Refused = (u32, &'static str);

/// Whether the header of an assertion names a certificate.
pub(super) fn names_certificate(assertion: &str) -> bool {
    let header = assertion.split('.').next().unwrap_or_default();
    let header = URL_SAFE_NO_PAD.decode(header).unwrap_or_default();
    let header: Value = serde_json::from_slice(&header).unwrap_or_default();
    ["x5t#S256", "x5t"]
        .iter()
        .any(|name| header[*name].is_string())
}

/// Checks an assertion of the application `client` for the token service of `tenant`.
pub(super) fn check(
    world: &World,
    tenant: &str,
    client: &str,
    assertion: &str,
) -> Result<(), Refused> {
    let broken = (50_027, "JWT token is invalid or malformed.");
    let parts: Vec<&str> = assertion.split('.').collect();
    let [header, claims, signature] = parts.as_slice() else {
        return Err(broken);
    };
    let decoded = |part: &str| URL_SAFE_NO_PAD.decode(part).map_err(|_| broken);
    let json = |part: &str| -> Result<Value, Refused> {
        serde_json::from_slice(&decoded(part)?).map_err(|_| broken)
    };
    let (head, body) = (json(header)?, json(claims)?);
    let certificate =
        CertificateDer::from_pem_slice(principal_pem().as_bytes()).map_err(|_| broken)?;
    // Microsoft's library pads it.
    let is = |name: &str, algorithm| {
        let named = head[name].as_str().unwrap_or_default();
        named.trim_end_matches('=') == URL_SAFE_NO_PAD.encode(digest(algorithm, &certificate))
    };
    let unknown = (
        700_027,
        "The certificate with identifier used to sign the client assertion is not registered on \
            application.",
    );
    let key = match head["alg"].as_str() {
        Some("PS256") if is("x5t#S256", &SHA256) => {
            UnparsedPublicKey::new(&RSA_PSS_2048_8192_SHA256, public_key())
        }
        Some("RS256") if is("x5t", &SHA1_FOR_LEGACY_USE_ONLY) => {
            UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, public_key())
        }
        _ => return Err(unknown),
    };
    let signed = format!("{header}.{claims}");
    if key.verify(signed.as_bytes(), &decoded(signature)?).is_err() {
        return Err((700_027, "The signature of the client assertion is invalid."));
    }
    let now = clock::now().seconds();
    // A time may have a fraction.
    let number = |name: &str| whole_seconds(&body[name]);
    let is_timely = number("exp").is_some_and(|end| end + SKEW_SECONDS > now)
        && number("nbf").is_none_or(|begin| begin - SKEW_SECONDS < now);
    if !is_timely {
        return Err((
            700_024,
            "Client assertion is not within its valid time range.",
        ));
    }
    let audience = format!("{}/{tenant}/oauth2/v2.0/token", world.endpoint);
    let is_ours = body["iss"] == client && body["sub"] == client && body["jti"].is_string();
    if is_ours && body["aud"] == audience.as_str() {
        Ok(())
    } else {
        Err((
            50_013,
            "Assertion failed audience, issuer or subject validation.",
        ))
    }
}

fn public_key() -> Vec<u8> {
    let key = PrivateKeyDer::from_pem_slice(principal_pem().as_bytes()).unwrap();
    let pair = RsaKeyPair::from_pkcs8(key.secret_der()).unwrap();
    pair.public().as_ref().to_vec()
}

/// A time of a claim, which may be written with a fraction.
fn whole_seconds(claim: &Value) -> Option<i64> {
    let text = claim.as_number()?.to_string();
    text.split('.').next()?.parse().ok()
}
