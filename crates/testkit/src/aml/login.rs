//! The login service, by OAuth 2.0 and Microsoft's description of their v2.0 endpoints: device
//! codes, refresh tokens, secrets and assertions of applications.

use super::answer::{Answer, Body, Outcome, good, refusal};
use super::assertion;
use super::call::Call;
use super::ids::{TENANT, uuid_of};
use super::world::World;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Audiences of tokens that are not access tokens.
const REFRESH_AUDIENCE: &str = "tow:refresh";
const DEVICE_CODE_AUDIENCE: &str = "tow:device-code";
/// The audience of a workload's assertion.
pub(super) const TOKEN_EXCHANGE_AUDIENCE: &str = "api://AzureADTokenExchange";
const DEVICE_CODE_GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";
const JWT_ASSERTION_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// An application that may sign in by a secret, or by an assertion.
#[derive(Debug, Clone)]
pub struct Principal {
    pub tenant: String,
    pub client: String,
    pub secret: String,
    /// The private key and the certificate of the application, as PEM.
    pub certificate: &'static str,
}

/// Codes and refresh tokens that were redeemed.
#[derive(Debug, Default)]
pub(super) struct Codes(Mutex<Vec<String>>);

impl Codes {
    /// Redeems a code. Returns whether it is the first time.
    fn redeem(&self, code: &str) -> bool {
        let mut redeemed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = !redeemed.iter().any(|known| known == code);
        redeemed.push(code.to_owned());
        is_new
    }
}

struct Form(BTreeMap<String, String>);

impl Form {
    fn read(call: &Call) -> Result<Self, Answer> {
        let is_form = call
            .header("content-type")
            .is_some_and(|kind| kind.starts_with("application/x-www-form-urlencoded"));
        if call.method != "POST" || !is_form {
            return Err(refuse(
                400,
                "invalid_request",
                900_144,
                "The request body must be a form.",
            ));
        }
        Ok(Self(
            url::form_urlencoded::parse(&call.body)
                .into_owned()
                .collect(),
        ))
    }
    fn get(&self, name: &str) -> Result<&str, Answer> {
        let missing = || {
            refuse(
                400,
                "invalid_request",
                900_144,
                &format!("The request body must contain the following parameter: '{name}'."),
            )
        };
        self.0
            .get(name)
            .map(String::as_str)
            .filter(|value| !value.is_empty())
            .ok_or_else(missing)
    }
    /// `https://ml.azure.com` of `https://ml.azure.com/.default offline_access`.
    fn resource(&self) -> Result<&str, Answer> {
        let resource = self
            .get("scope")?
            .split(' ')
            .find_map(|word| word.strip_suffix("/.default"));
        resource.ok_or_else(|| {
            refuse(
                400,
                "invalid_scope",
                70_011,
                "The provided value for the input parameter 'scope' is not valid.",
            )
        })
    }
    fn wants(&self, word: &str) -> bool {
        self.0
            .get("scope")
            .is_some_and(|scope| scope.split(' ').any(|found| found == word))
    }
}

pub(super) fn route(world: &World, call: &Call, tenant: &str, what: &str) -> Outcome {
    if !matches!(tenant, "organizations" | "common") && !tenant.eq_ignore_ascii_case(TENANT) {
        return Err(refuse(
            400,
            "invalid_request",
            90_002,
            &format!("Tenant '{tenant}' not found."),
        ));
    }
    match what {
        "devicecode" => device_code(world, &Form::read(call)?),
        "token" => token(world, &Form::read(call)?, tenant),
        _ => Err(refusal(404, "NotFound", "There is nothing else here.")),
    }
}

/// The document that clients of Microsoft read first.
pub(super) fn discovery(world: &World, tenant: &str) -> Outcome {
    let base = format!("{}/{tenant}", world.endpoint);
    good(json!({
        "token_endpoint": format!("{base}/oauth2/v2.0/token"), "device_authorization_endpoint": format!("{base}/oauth2/v2.0/devicecode"),
        "authorization_endpoint": format!("{base}/oauth2/v2.0/authorize"), "issuer": format!("{}/{TENANT}/v2.0", world.endpoint),
        "response_types_supported": ["code"], "subject_types_supported": ["pairwise"], "id_token_signing_alg_values_supported": ["HS256"],
    }))
}

fn device_code(world: &World, form: &Form) -> Outcome {
    let client = form.get("client_id")?;
    form.resource()?;
    let code = world.tokens.mint_for(DEVICE_CODE_AUDIENCE, 900, client);
    let shown = uuid_of(&code)[..8].to_uppercase();
    let page = "https://microsoft.com/devicelogin";
    good(json!({
        "user_code": shown, "device_code": format!("{code}~{}", form.get("scope")?), "verification_uri": page, "expires_in": 900,
        "interval": world.conditions().device.interval,
        "message": format!("To sign in, use a web browser to open the page {page} and enter the \
            code {shown} to authenticate."),
    }))
}

fn token(world: &World, form: &Form, tenant: &str) -> Outcome {
    let client = form.get("client_id")?;
    match form.get("grant_type")? {
        "client_credentials" => {
            application(world, form, client, tenant)?;
            granted(world, form, client)
        }
        "refresh_token" => {
            refresh(world, form, client)?;
            granted(world, form, client)
        }
        DEVICE_CODE_GRANT => {
            let wrong = || {
                refuse(
                    400,
                    "bad_verification_code",
                    70_018,
                    "The device_code is not recognised.",
                )
            };
            let (code, scope) = form.get("device_code")?.split_once('~').ok_or_else(wrong)?;
            if world
                .tokens
                .claims(code, DEVICE_CODE_AUDIENCE)
                .is_none_or(|claims| claims["appid"] != client)
            {
                return Err(wrong());
            }
            device(world)?;
            if !world.codes.redeem(code) {
                return Err(refuse(
                    400,
                    "invalid_grant",
                    54_005,
                    "The device code was already redeemed.",
                ));
            }
            let asked = Form(BTreeMap::from([("scope".to_owned(), scope.to_owned())]));
            granted(world, &asked, client)
        }
        other => Err(refuse(
            400,
            "unsupported_grant_type",
            70_003,
            &format!("The app requested an unsupported grant type '{other}'."),
        )),
    }
}

/// Checks a refresh token.
fn refresh(world: &World, form: &Form, client: &str) -> Result<(), Answer> {
    let token = form.get("refresh_token")?;
    let is_good = world
        .tokens
        .claims(token, REFRESH_AUDIENCE)
        .is_some_and(|claims| claims["appid"] == client);
    let device = world.conditions().device.clone();
    let is_used = device.good_once && is_good && !world.codes.redeem(token);
    if !is_good || is_used || device.ended {
        return Err(refuse(
            400,
            "invalid_grant",
            700_082,
            "The refresh token has expired due to inactivity.",
        ));
    }
    if device.wants_factor.as_deref() == Some(form.resource()?) {
        let message = "Due to a configuration change made by your administrator, or because you \
            moved to a new location, you must use multi-factor authentication to access \
                '797f4846-ba00-4fd7-ba43-dac1f8f63013'.";
        let mut answer = refuse(400, "invalid_grant", 50_076, message);
        if let Body::Json(body) = &mut answer.body {
            body["suberror"] = json!("basic_action");
            body["claims"] = json!("{\"access_token\":{\"capolids\":{\"essential\":true}}}");
        }
        return Err(answer);
    }
    Ok(())
}

/// The state of the person at the browser.
fn device(world: &World) -> Result<(), Answer> {
    let device = &mut world.conditions().device;
    if device.slow_downs > 0 {
        device.slow_downs -= 1;
        return Err(refuse(400, "slow_down", 70_017, "Polling too often."));
    }
    if device.pending > 0 {
        device.pending -= 1;
        return Err(refuse(
            400,
            "authorization_pending",
            70_016,
            "OAuth 2.0 device flow error. Authorization is pending. Continue polling.",
        ));
    }
    device.refusal.as_ref().map_or(Ok(()), |word| {
        Err(refuse(
            400,
            word,
            70_019,
            "The verification code has ended.",
        ))
    })
}

fn application(world: &World, form: &Form, client: &str, tenant: &str) -> Result<(), Answer> {
    let known = world.tokens.principal();
    if client != known.client {
        return Err(refuse(
            400,
            "unauthorized_client",
            700_016,
            &format!("Application with identifier '{client}' was not found in the directory."),
        ));
    }
    if let Ok(kind) = form.get("client_assertion_type") {
        // The header of one by a certificate names the certificate.
        let assertion = form.get("client_assertion")?;
        if kind == JWT_ASSERTION_TYPE && assertion::names_certificate(assertion) {
            let checked = assertion::check(world, tenant, client, assertion);
            return checked
                .map_err(|(number, message)| refuse(401, "invalid_client", number, message));
        }
        let is_good = kind == JWT_ASSERTION_TYPE
            && world
                .tokens
                .claims(form.get("client_assertion")?, TOKEN_EXCHANGE_AUDIENCE)
                .is_some();
        let message = "No matching federated identity record found for presented assertion.";
        return if is_good {
            Ok(())
        } else {
            Err(refuse(401, "invalid_client", 700_213, message))
        };
    }
    let message = "Invalid client secret provided. Ensure the secret being sent in the request is \
        the client secret value, not the client secret ID.";
    if form.get("client_secret")? == known.secret {
        Ok(())
    } else {
        Err(refuse(401, "invalid_client", 7_000_215, message))
    }
}

fn granted(world: &World, asked: &Form, client: &str) -> Outcome {
    let resource = asked.resource()?;
    let lifetime = world.conditions().token_lifetime;
    let mut body = json!({
        "token_type": "Bearer", "expires_in": lifetime, "ext_expires_in": lifetime, "access_token": world.tokens.mint_for(resource, lifetime, client),
    });
    if asked.wants("offline_access") {
        body["scope"] = json!(format!("{resource}/.default"));
        body["refresh_token"] = json!(world.tokens.mint_for(
            REFRESH_AUDIENCE,
            90 * 24 * 3600,
            client
        ));
    }
    // The identity, for clients that keep accounts.
    if asked.wants("openid") {
        let now = towline_host::clock::now().seconds();
        let who = json!({
            "aud": client, "iss": format!("{}/{TENANT}/v2.0", world.endpoint), "iat": now - 60, "nbf": now - 60, "exp": now + 3600, "ver": "2.0",
            "tid": TENANT, "oid": uuid_of(client), "sub": uuid_of(client), "preferred_username": "tow@example.com", "name": "Tow",
        });
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        body["id_token"] = json!(format!(
            "{}.{}.",
            part(&json!({"typ": "JWT", "alg": "none"})),
            part(&who)
        ));
        body["client_info"] = json!(part(&json!({"uid": uuid_of(client), "utid": TENANT})));
    }
    good(body)
}

fn refuse(status: u16, word: &str, number: u32, message: &str) -> Answer {
    let id = uuid_of(message);
    let description = format!(
        "AADSTS{number}: {message} Trace ID: {id} Correlation ID: {id} Timestamp: 2026-01-01 \
            00:00:00Z"
    );
    Answer::json(
        status,
        json!({"error": word, "error_description": description, "error_codes": [number], "timestamp": "2026-01-01 00:00:00Z", "trace_id": id, "correlation_id": id}),
    )
}
