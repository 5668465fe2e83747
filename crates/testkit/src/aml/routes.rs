//! Which part of the emulator answers which path. Paths of the resource manager ignore case.

use super::answer::{Answer, Outcome, good, refusal};
use super::call::Call;
use super::faults::{self, When};
use super::ids::{PROVIDER, Scope};
use super::world::World;
use super::{
    artifacts, assets, clusters, codes, computes, datastores, history, jobs, list, login, metadata,
    roles, signed, vault, workspace,
};
use std::sync::Arc;

/// Injects faults before or after the work, and records every answer.
pub(super) fn serve(world: &Arc<World>, call: &Call) -> Option<Answer> {
    let trouble = world.faults.take(call);
    let answer = match trouble {
        Some((trouble, When::Before)) => faults::answer(trouble),
        Some((trouble, When::After)) => {
            let _ = route(world, call);
            faults::answer(trouble)
        }
        None => Some(route(world, call).unwrap_or_else(|refusal| refusal)),
    };
    let bodies = !world.conditions().asleep;
    world.recorder.add(call, answer.as_ref(), bodies);
    answer
}

/// The answer of a storage account's firewall to every address outside.
fn firewall() -> Answer {
    const FIREWALL_REFUSAL: &str = "<?xml version=\"1.0\" \
        encoding=\"utf-8\"?><Error><Code>AuthorizationFailure</Code>\
        <Message>This request is not authorized to perform this \
            operation.\nRequestId:0\nTime:0</Message></Error>";
    Answer::bytes(403, FIREWALL_REFUSAL.into()).with("x-ms-error-code", "AuthorizationFailure")
}

/// The answer to a token whose user has shown too little, as continuous access evaluation has it.
fn challenge(endpoint: &str) -> Answer {
    const CLAIMS: &str =
        "eyJhY2Nlc3NfdG9rZW4iOnsiYWNycyI6eyJlc3NlbnRpYWwiOnRydWUsInZhbHVlcyI6WyJwMSJdfX19";
    let header = format!(
        "Bearer realm=\"\", authorization_uri=\"{endpoint}/common/oauth2/authorize\", \
            error=\"insufficient_claims\", claims=\"{CLAIMS}\""
    );
    let message = "Resource was disallowed by policy. Reasons: multi-factor authentication.";
    refusal(401, "RequestDisallowedByAzure", message).with("WWW-Authenticate", header)
}

fn route(world: &Arc<World>, call: &Call) -> Outcome {
    if call
        .header("host")
        .is_some_and(|host| host.starts_with(&format!("{}.blob.", world.blobs.account.name)))
    {
        let passed_on = || {
            world
                .blobs
                .pass_on(call)
                .map_err(|error| refusal(502, "BadGateway", &error))
        };
        return if world.conditions().firewalled {
            Err(firewall())
        } else {
            passed_on()
        };
    }
    let words: Vec<&str> = call.path.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["metadata", "endpoints"] => metadata::endpoints(world, call),
        ["discovery", ..] => good(metadata::discovery(world)),
        [tenant, "oauth2", "v2.0", what] => login::route(world, call, tenant, what),
        [tenant, "v2.0", ".well-known", "openid-configuration"] => login::discovery(world, tenant),
        ["signed", rest @ ..] => signed::route(world, call, rest),
        ["history", "v1.0", rest @ ..] => {
            world.tokens.check_workspace(call)?;
            let (scope, rest) = scoped(rest).ok_or_else(nowhere)?;
            history::route(world, call, &scope, rest)
        }
        ["artifact", "v2.0", rest @ ..] => {
            world.tokens.check_workspace(call)?;
            let (scope, rest) = scoped(rest).ok_or_else(nowhere)?;
            artifacts::route(world, call, &scope, rest)
        }
        ["secrets", rest @ ..] => {
            world.tokens.check_vault(call)?;
            vault::route(world, call, rest)
        }
        words => {
            world.tokens.check_management(call)?;
            if world.conditions().insufficient_claims {
                return Err(challenge(&world.endpoint));
            }
            version(call)?;
            management(world, call, words)
        }
    }
}

fn management(world: &Arc<World>, call: &Call, words: &[&str]) -> Outcome {
    let lower: Vec<String> = words.iter().map(|word| word.to_lowercase()).collect();
    let lower: Vec<&str> = lower.iter().map(String::as_str).collect();
    if let Some(outcome) = roles::route(world, call, words)
        .or_else(|| outside_workspaces(world, call, &lower))
        .or_else(|| other_services(world, call, &lower, &words.join("/")))
    {
        return outcome;
    }
    in_workspace(world, call, words)
}

/// Resources of the machine learning service outside workspaces, and lists of workspaces.
fn outside_workspaces(world: &Arc<World>, call: &Call, words: &[&str]) -> Option<Outcome> {
    Some(match words {
        ["subscriptions"] => good(metadata::subscriptions()),
        ["tenants"] => good(metadata::tenants()),
        ["providers", "microsoft.resourcegraph", "resources"] => clusters::query(world, call),
        [
            "subscriptions",
            subscription,
            "providers",
            "microsoft.machinelearningservices",
            "workspaces",
        ] => good(workspace::list(world, subscription, None)),
        [
            "subscriptions",
            subscription,
            "resourcegroups",
            group,
            "providers",
            "microsoft.machinelearningservices",
            "workspaces",
        ] => good(workspace::list(world, subscription, Some(group))),
        [
            "subscriptions",
            _,
            "providers",
            "microsoft.machinelearningservices",
            "locations",
            location,
            "instancetypeseries",
        ] => good(clusters::instance_types(location)),
        [
            "subscriptions",
            _,
            "providers",
            "microsoft.machinelearningservices",
            "locations",
            _,
            "vmsizes",
        ] => good(computes::sizes()),
        _ => return None,
    })
}

/// Resources of other services: vaults, identities, images, virtual clusters.
fn other_services(world: &Arc<World>, call: &Call, words: &[&str], path: &str) -> Option<Outcome> {
    Some(match words {
        [
            "subscriptions",
            _,
            "resourcegroups",
            _,
            "providers",
            "microsoft.keyvault",
            "vaults",
            name,
        ] => vault::get(world, call, name),
        [
            "subscriptions",
            _,
            "resourcegroups",
            _,
            "providers",
            "microsoft.managedidentity",
            "userassignedidentities",
            name,
        ] => good(workspace::identity(path, name)),
        [
            "subscriptions",
            subscription,
            "providers",
            "microsoft.managedidentity",
            "userassignedidentities",
        ] => good(workspace::identities(subscription)),
        ["subscriptions", .., "microsoft.singularity", "images"] => good(clusters::images()),
        [
            "subscriptions",
            subscription,
            "resourcegroups",
            group,
            "providers",
            "microsoft.machinelearningservices",
            "virtualclusters",
            name,
        ] => clusters::get(world, call, subscription, group, name),
        _ => return None,
    })
}

/// A workspace itself, and everything in it.
fn in_workspace(world: &Arc<World>, call: &Call, words: &[&str]) -> Outcome {
    let (scope, rest) = scoped(words).ok_or_else(nowhere)?;
    match (call.method.as_str(), rest) {
        ("PUT", []) => return workspace::put(world, call, &scope),
        _ if !world.workspaces().contains_key(&scope.key()) => {
            return Err(workspace::missing(&scope));
        }
        ("GET", []) => return good(workspace::get(world, &scope)),
        _ => {}
    }
    match rest {
        ["codes", name, "versions", version, "startPendingUpload"] => {
            codes::start_upload(world, call, &scope, name, version)
        }
        ["codes" | "environments" | "data", ..] => assets::route(world, call, &scope, rest),
        ["datastores", rest @ ..] => datastores::route(world, call, &scope, rest),
        ["computes", rest @ ..] => computes::route(world, call, &scope, rest),
        ["jobs"] => list::jobs(world, call, &scope),
        ["jobs", rest @ ..] => jobs::route(world, call, &scope, rest),
        ["listStorageAccountKeys"] => {
            good(serde_json::json!({"userStorageKey": world.blobs.account.key}))
        }
        _ => Err(nowhere()),
    }
}

/// The workspace at the beginning of a path, and the rest of the path.
fn scoped<'a, 'b>(words: &'a [&'b str]) -> Option<(Scope, &'a [&'b str])> {
    let is = |at: usize, word: &str| {
        words
            .get(at)
            .is_some_and(|found| found.eq_ignore_ascii_case(word))
    };
    let fits = is(0, "subscriptions")
        && is(2, "resourceGroups")
        && is(4, "providers")
        && is(5, PROVIDER)
        && is(6, "workspaces");
    let name = |at: usize| words.get(at).map(|word| (*word).to_owned());
    let scope = Scope {
        subscription: name(1)?,
        group: name(3)?,
        workspace: name(7)?,
    };
    fits.then(|| (scope, words.get(8..).unwrap_or_default()))
}

/// `2024-04-01`, or with `-preview`.
fn version(call: &Call) -> Result<(), Answer> {
    let Some(text) = call.query("api-version") else {
        return Err(refusal(
            400,
            "MissingApiVersionParameter",
            "The api-version query parameter (?api-version=) is required for all requests.",
        ));
    };
    let date = text.strip_suffix("-preview").unwrap_or(text);
    let digits = |text: &str, many: usize| {
        text.len() == many && text.bytes().all(|byte| byte.is_ascii_digit())
    };
    let good = matches!(date.split('-').collect::<Vec<_>>().as_slice(), [year, month, day] if digits(year, 4) && digits(month, 2) && digits(day, 2));
    let message =
        format!("The api-version '{text}' is invalid. The supported versions are '2024-04-01'.");
    if good {
        Ok(())
    } else {
        Err(refusal(400, "InvalidApiVersionParameter", &message))
    }
}

pub(super) fn nowhere() -> Answer {
    refusal(
        404,
        "InvalidResourceType",
        "The resource type could not be found in the namespace \
            'Microsoft.MachineLearningServices'.",
    )
}
pub(super) fn not_allowed() -> Answer {
    refusal(
        405,
        "MethodNotAllowed",
        "The HTTP method is not supported at scope 'Microsoft.MachineLearningServices'.",
    )
}
