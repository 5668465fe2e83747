//! The first requests of a client: the cloud's endpoints, subscriptions, tokens of a managed
//! identity.

use super::answer::{Answer, Outcome, good, refusal};
use super::call::Call;
use super::ids::{SUBSCRIPTION, TENANT, uuid_of};
use super::world::World;
use serde_json::{Value, json};
use std::sync::Arc;
use towline_host::clock;

/// The cloud's endpoints, as `az cloud register` and the clients of Python read them.
pub(super) fn endpoints(world: &World, call: &Call) -> Outcome {
    let base = &world.endpoint;
    let cloud = json!({
        "name": "TowCloud",
        "portal": base, "resourceManager": base, "graph": base, "graphAudience": base, "batch": base, "media": base,
        "sqlManagement": base, "gallery": base, "activeDirectoryDataLake": base, "vmImageAliasDoc": base, "microsoftGraphResourceId": base,
        "authentication": {"loginEndpoint": base, "audiences": [base], "tenant": "common", "identityProvider": "AAD"},
        "suffixes": {
            "storage": world.blobs.suffix(), "keyVaultDns": "vault.localhost", "sqlServerHostname": "sql.localhost",
            "azureDataLakeStoreFileSystem": "store.localhost", "azureDataLakeAnalyticsCatalogAndJob": "analytics.localhost", "acrLoginServer": "acr.localhost",
        },
    });
    // Older forms of the request want a list.
    let listed = call
        .query("api-version")
        .is_some_and(|version| version < "2022");
    good(if listed { json!([cloud]) } else { cloud })
}

pub(super) fn subscriptions() -> Value {
    json!({"value": [{
        "id": format!("/subscriptions/{SUBSCRIPTION}"), "subscriptionId": SUBSCRIPTION, "tenantId": TENANT, "displayName": "Towline tests",
        "state": "Enabled", "authorizationSource": "RoleBased", "managedByTenants": [],
        "subscriptionPolicies": {"locationPlacementId": "Public_2014-09-01", "quotaId": "PayAsYouGo_2014-09-01", "spendingLimit": "Off"},
    }], "count": {"type": "Total", "value": 1}})
}

pub(super) fn tenants() -> Value {
    json!({"value": [{"id": format!("/tenants/{TENANT}"), "tenantId": TENANT, "displayName": "Towline", "tenantCategory": "Home"}]})
}

/// The addresses of a workspace's own services.
pub(super) fn discovery(world: &World) -> Value {
    let base = &world.endpoint;
    let names = [
        "api",
        "history",
        "experimentation",
        "catalog",
        "modelmanagement",
        "pipelines",
        "studio",
    ];
    Value::Object(
        names
            .into_iter()
            .map(|name| (name.to_owned(), json!(base)))
            .collect(),
    )
}

/// The identity endpoint of a node: tokens for processes that know its secret.
pub(super) fn identity(world: &Arc<World>, call: &Call) -> Option<Answer> {
    let trouble = world.faults.take(call);
    let answer = trouble.map_or_else(
        || Some(token(world, call).unwrap_or_else(|refusal| refusal)),
        |(trouble, _)| super::faults::answer(trouble),
    );
    world.recorder.add(call, answer.as_ref(), true);
    answer
}

fn token(world: &World, call: &Call) -> Outcome {
    if call.path.join("/") != "msi/token" || call.method != "GET" {
        return Err(refusal(404, "NotFound", "There is nothing else here."));
    }
    // A compute of Azure ML has the older form.
    let header = if call.query("api-version") == Some("2017-09-01") {
        "secret"
    } else {
        "x-identity-header"
    };
    if !call
        .header(header)
        .is_some_and(|secret| world.tokens.knows(secret))
    {
        return Err(refusal(
            401,
            "Unauthorized",
            "The X-IDENTITY-HEADER is missing or wrong.",
        ));
    }
    let Some(resource) = call.query("resource") else {
        return Err(refusal(
            400,
            "invalid_request",
            "Required query variable 'resource' is missing.",
        ));
    };
    let lifetime = world.conditions().token_lifetime;
    let client = call
        .query("client_id")
        .or_else(|| call.query("clientid"))
        .map_or_else(|| uuid_of("client"), ToOwned::to_owned);
    good(json!({
        "access_token": world.tokens.mint_for(resource, lifetime, &client),
        "expires_on": (clock::now().seconds() + lifetime).to_string(),
        "resource": resource, "token_type": "Bearer", "client_id": client,
    }))
}
