//! As much of Key Vault as a job needs: secrets by name.

use super::answer::{Outcome, good, refusal};
use super::call::Call;
use super::world::World;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use towline_host::clock;

#[derive(Debug, Default)]
pub(super) struct Vault(Mutex<BTreeMap<String, Value>>);

impl Vault {
    pub(super) fn names(&self) -> Vec<String> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .keys()
            .cloned()
            .collect()
    }
}

/// The vault itself, as the resource manager shows it.
pub(super) fn get(world: &World, call: &Call, name: &str) -> Outcome {
    if call.method != "GET" {
        return Err(super::routes::not_allowed());
    }
    good(
        json!({"id": call.target.split('?').next(), "name": name, "type": "Microsoft.KeyVault/vaults", "properties": {"vaultUri": format!("{}/", world.endpoint)}}),
    )
}

pub(super) fn route(world: &World, call: &Call, words: &[&str]) -> Outcome {
    if call.query("api-version").is_none() {
        return Err(refusal(
            400,
            "BadParameter",
            "api-version must be specified",
        ));
    }
    let mut secrets = world.vault.0.lock().unwrap_or_else(PoisonError::into_inner);
    match (call.method.as_str(), words) {
        ("PUT", [name]) => {
            let value = call.json()?["value"].clone();
            if !value.is_string() {
                return Err(refusal(
                    400,
                    "BadParameter",
                    "The property 'value' is missing.",
                ));
            }
            let now = clock::now().seconds();
            let id = format!("{}/secrets/{name}/{:032x}", world.endpoint, now);
            let secret = json!({"value": value, "id": id, "attributes": {"enabled": true, "created": now, "updated": now, "recoveryLevel": "Purgeable"}});
            secrets.insert((*name).to_owned(), secret.clone());
            good(secret)
        }
        ("GET", [name] | [name, _]) => {
            let missing = || {
                refusal(
                    404,
                    "SecretNotFound",
                    &format!("A secret with (name/id) {name} was not found in this key vault."),
                )
            };
            good(secrets.get(*name).cloned().ok_or_else(missing)?)
        }
        ("DELETE", [name]) => {
            let missing = || {
                refusal(
                    404,
                    "SecretNotFound",
                    &format!("A secret with (name/id) {name} was not found in this key vault."),
                )
            };
            good(secrets.remove(*name).ok_or_else(missing)?)
        }
        _ => Err(refusal(
            405,
            "MethodNotAllowed",
            "Only secrets are kept here.",
        )),
    }
}
