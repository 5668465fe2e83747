//! The certificate of a service principal: the private key signs a short assertion, and the key
//! itself goes nowhere.
//!
//! The form is the one that Microsoft documents for the SHA-256 thumbprint: PS256 and `x5t#S256`.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};
use ring::rand::SystemRandom;
use ring::signature::{RSA_PSS_SHA256, RsaKeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use towline_core::redact::Secret;
use towline_core::time::Moment;
use towline_core::{Error, Result};

/// The type of an assertion in a grant.
pub(super) const ASSERTION_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
/// How long an assertion is good for. It is made anew for each token.
const ASSERTION_SECONDS: i64 = 600;

/// The key and the certificate of a PEM file.
pub(super) struct ClientCertificate {
    key: RsaKeyPair,
    /// SHA-256 of the certificate.
    thumbprint: String,
}

impl std::fmt::Debug for ClientCertificate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ClientCertificate")
    }
}

impl ClientCertificate {
    /// Reads a PEM text that has both. No message repeats a part of it.
    pub(super) fn read(at: &str, pem: &Secret) -> Result<Self> {
        let wrong = |why: &str| Error::config(format!("{at}: the client certificate {why}"));
        let bytes = pem.expose().as_bytes();
        if pem.expose().contains("ENCRYPTED") {
            return Err(wrong("has an encrypted key, and nobody can be asked")
                .hint("store it without a passphrase in a file of mode 0600"));
        }
        let certificate = CertificateDer::from_pem_slice(bytes)
            .map_err(|_| wrong("has no part BEGIN CERTIFICATE"))?;
        let key = PrivateKeyDer::from_pem_slice(bytes)
            .map_err(|_| wrong("has no part BEGIN PRIVATE KEY"))?;
        let key = match &key {
            PrivateKeyDer::Pkcs8(key) => RsaKeyPair::from_pkcs8(key.secret_pkcs8_der()),
            PrivateKeyDer::Pkcs1(key) => RsaKeyPair::from_der(key.secret_pkcs1_der()),
            _ => {
                return Err(wrong(
                    "has a key that is not RSA; the login service takes no other",
                ));
            }
        };
        let key = key.map_err(|_| {
            wrong("has a key that is not RSA of 2048 to 4096 bits")
                .hint("the login service takes no other")
        })?;
        let thumbprint = BASE64_URL_SAFE_NO_PAD.encode(digest(&SHA256, &certificate));
        Ok(Self { key, thumbprint })
    }

    /// An assertion for the token service at `audience`.
    pub(super) fn assertion(&self, audience: &str, client: &str, now: Moment) -> Result<Secret> {
        let now = now.seconds();
        let part = |value: &Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
        let header = json!({"alg": "PS256", "typ": "JWT", "x5t#S256": self.thumbprint});
        let claims = json!({
            "aud": audience, "iss": client, "sub": client, "jti": crate::random::token()?,
            "nbf": now, "iat": now, "exp": now + ASSERTION_SECONDS,
        });
        let signed = format!("{}.{}", part(&header), part(&claims));
        let mut signature = vec![0; self.key.public().modulus_len()];
        self.key
            .sign(
                &RSA_PSS_SHA256,
                &SystemRandom::new(),
                signed.as_bytes(),
                &mut signature,
            )
            .map_err(|_| Error::bug("the client certificate cannot sign"))?;
        Ok(Secret::new(format!(
            "{signed}.{}",
            BASE64_URL_SAFE_NO_PAD.encode(signature)
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_file_is_named_and_not_repeated() {
        for (pem, part) in [
            ("canary", "BEGIN CERTIFICATE"),
            (
                "-----BEGIN CERTIFICATE-----\nY2FuYXJ5\n-----END CERTIFICATE-----\n",
                "BEGIN PRIVATE KEY",
            ),
            (
                "-----BEGIN CERTIFICATE-----\nY2FuYXJ5\n-----END CERTIFICATE-----\n-----BEGIN \
                    PRIVATE KEY-----\nY2FuYXJ5\n-----END PRIVATE KEY-----\n",
                "not RSA",
            ),
            (
                "-----BEGIN ENCRYPTED PRIVATE KEY-----\nY2FuYXJ5\n",
                "encrypted key",
            ),
        ] {
            let error = ClientCertificate::read("cluster `c`", &Secret::new(pem)).expect_err(pem);
            let shown = format!("{error} {error:?}");
            assert!(shown.contains(part), "{shown}");
            assert!(!shown.contains("canary") && !shown.contains("Y2FuYXJ5"));
        }
    }
}
