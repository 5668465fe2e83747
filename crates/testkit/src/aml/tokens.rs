//! Tokens as Microsoft's login makes them, issued and checked here.

use super::answer::{Answer, unauthorized};
use super::call::Call;
use super::ids::{SUBSCRIPTION, TENANT, uuid_of};
use super::login::Principal;
use super::server::Server;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use serde_json::{Value, json};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use towline_host::clock;

/// The audiences of the resource manager.
const MANAGEMENT_AUDIENCES: [&str; 2] = [
    "https://management.azure.com",
    "https://management.core.windows.net",
];
/// The audience of the workspace's own services.
const WORKSPACE_AUDIENCE: &str = "https://ml.azure.com";
/// The audience of this cloud's vaults, whose host suffix the metadata gives.
const OWN_VAULT_AUDIENCE: &str = "https://vault.localhost";
/// The client id of the Azure CLI, which requests device codes.
const AZURE_CLI_CLIENT_ID: &str = "04b07795-8ddb-461a-bbee-02f9e1bf7b46";
const VAULT_AUDIENCE: &str = "https://vault.azure.net";

/// A number that makes every token unique, also within one second.
fn unique() -> u64 {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    NUMBER.fetch_add(1, Ordering::Relaxed)
}

pub(super) struct Tokens {
    endpoint: String,
    identity: String,
    secret: String,
    key: hmac::Key,
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.identity)
    }
}

impl Tokens {
    pub(super) fn new(server: &Server) -> Self {
        let random = ring::rand::SystemRandom::new();
        let key = hmac::Key::generate(hmac::HMAC_SHA256, &random).unwrap();
        let secret = uuid_of(&URL_SAFE_NO_PAD.encode(hmac::sign(&key, b"identity")));
        Self {
            endpoint: server.endpoint(),
            identity: format!("{}/msi/token", server.plain_endpoint()),
            secret,
            key,
        }
    }

    pub(super) fn identity(&self) -> [(String, String); 2] {
        [
            ("IDENTITY_ENDPOINT".to_owned(), self.identity.clone()),
            ("IDENTITY_HEADER".to_owned(), self.secret.clone()),
        ]
    }
    pub(super) fn knows(&self, secret: &str) -> bool {
        secret == self.secret
    }

    pub(super) fn principal(&self) -> Principal {
        Principal {
            tenant: TENANT.to_owned(),
            client: uuid_of("principal"),
            secret: format!("s3cr3t~{}", uuid_of(&self.secret)),
            certificate: super::assertion::principal_pem(),
        }
    }
    /// The claims of a valid token for that audience.
    pub(super) fn claims(&self, token: &str, audience: &str) -> Option<Value> {
        self.read(token).filter(|claims| {
            claims["aud"] == audience
                && claims["exp"].as_i64().unwrap_or(0) > clock::now().seconds()
        })
    }

    pub(super) fn mint(&self, audience: &str, seconds: i64) -> String {
        self.mint_for(audience, seconds, &uuid_of("client"))
    }
    /// For the identity of a client id.
    pub(super) fn mint_for(&self, audience: &str, seconds: i64, client: &str) -> String {
        let now = clock::now().seconds();
        let identity = format!(
            "/subscriptions/{SUBSCRIPTION}/resourcegroups/towtests/providers/Microsoft.ManagedIdentity/userAssignedIdentities/tow"
        );
        let mut claims = json!({
            "aud": audience, "iss": format!("https://sts.windows.net/{TENANT}/"), "tid": TENANT, "oid": uuid_of(client), "sub": uuid_of(client),
            "appid": client, "uti": unique(), "idtyp": "app", "iat": now - 300, "nbf": now - 300, "exp": now + seconds, "ver": "1.0",
        });
        // A person has a name, a managed identity its id, an application neither.
        match client {
            AZURE_CLI_CLIENT_ID => claims["upn"] = json!("alice@example.com"),
            client if client == self.principal().client => {}
            _ => claims["xms_mirid"] = json!(identity),
        }
        let text = [json!({"typ": "JWT", "alg": "HS256"}), claims]
            .map(|part| URL_SAFE_NO_PAD.encode(part.to_string()))
            .join(".");
        let signature = URL_SAFE_NO_PAD.encode(hmac::sign(&self.key, text.as_bytes()));
        format!("{text}.{signature}")
    }

    /// Checks a call of the resource manager.
    pub(super) fn check_management(&self, call: &Call) -> Result<(), Answer> {
        self.check(call, |audience| {
            audience == self.endpoint || MANAGEMENT_AUDIENCES.contains(&audience)
        })
    }
    /// Checks a call of run history or artifacts, which accept both kinds.
    pub(super) fn check_workspace(&self, call: &Call) -> Result<(), Answer> {
        self.check(call, |audience| {
            audience == self.endpoint
                || audience == WORKSPACE_AUDIENCE
                || MANAGEMENT_AUDIENCES.contains(&audience)
        })
    }
    pub(super) fn check_vault(&self, call: &Call) -> Result<(), Answer> {
        let challenge = format!(
            "Bearer authorization=\"{}/{TENANT}\", resource=\"{VAULT_AUDIENCE}\"",
            self.endpoint
        );
        self.check(call, |audience| {
            audience == VAULT_AUDIENCE || audience == OWN_VAULT_AUDIENCE
        })
        .map_err(|mut answer| {
            answer
                .headers
                .retain(|(name, _)| name != "WWW-Authenticate");
            answer.with("WWW-Authenticate", challenge)
        })
    }

    fn check(&self, call: &Call, fits: impl Fn(&str) -> bool) -> Result<(), Answer> {
        let refuse = |code: &str, message: &str| Err(unauthorized(&self.endpoint, code, message));
        let Some(token) = call
            .header("authorization")
            .and_then(|value| value.strip_prefix("Bearer "))
        else {
            return refuse(
                "AuthenticationFailed",
                "Authentication failed. The 'Authorization' header is missing.",
            );
        };
        let Some(claims) = self.read(token) else {
            return refuse("InvalidAuthenticationToken", "The access token is invalid.");
        };
        if claims["exp"].as_i64().unwrap_or(0) <= clock::now().seconds() {
            return refuse(
                "ExpiredAuthenticationToken",
                "The access token expiry is in the past.",
            );
        }
        let audience = claims["aud"]
            .as_str()
            .unwrap_or_default()
            .trim_end_matches('/');
        if fits(audience) {
            Ok(())
        } else {
            refuse(
                "InvalidAuthenticationTokenAudience",
                "The access token has been obtained for wrong audience or resource.",
            )
        }
    }

    /// The claims of a token.
    fn read(&self, token: &str) -> Option<Value> {
        let (text, signature) = token.rsplit_once('.')?;
        hmac::verify(
            &self.key,
            text.as_bytes(),
            &URL_SAFE_NO_PAD.decode(signature).ok()?,
        )
        .ok()?;
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text.split('.').nth(1)?).ok()?).ok()
    }
}
