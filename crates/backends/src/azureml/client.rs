//! Calls to the resource manager and to run history, and what their refusals mean.

use super::config::ML_API;
use serde_json::Value;
use towline_core::cloud::{Audience, Call, Cloud, Reply};
use towline_core::{Error, ErrorKind, Result};

/// How many pages of a list are read at most. More means that the service leads us in circles.
const MAX_PAGES: usize = 2_000;
/// How many calls are made, and their answers held, at once: a sweep may have thousands of jobs.
pub(super) const CALL_BATCH: usize = 64;

/// The URL of a path of the resource manager.
pub(super) fn url(cloud: &dyn Cloud, path: &str) -> String {
    versioned(cloud, path, ML_API)
}

pub(super) fn versioned(cloud: &dyn Cloud, path: &str, version: &str) -> String {
    let mark = if path.contains('?') { '&' } else { '?' };
    format!("{}{path}{mark}api-version={version}", cloud.endpoint())
}

/// A resource; `None` if the service says that it does not exist.
pub(super) fn get(cloud: &dyn Cloud, what: &str, call: &Call) -> Result<Option<Value>> {
    let reply = cloud.call(call)?;
    found(what, &reply)
}

/// The same for an answer that has arrived.
pub(super) fn found(what: &str, reply: &Reply) -> Result<Option<Value>> {
    match reply.status {
        404 => Ok(None),
        _ => good(what, reply).map(Some),
    }
}

/// Whether a 404 is about something above the resource: a subscription, group or workspace that the
/// signed-in user cannot see.
pub(super) fn is_elsewhere(reply: &Reply) -> bool {
    let body = reply.json().unwrap_or(Value::Null);
    let error = body.get("error").unwrap_or(&body);
    match error["code"].as_str().unwrap_or_default() {
        "SubscriptionNotFound" | "ResourceGroupNotFound" | "ParentResourceNotFound" => true,
        "ResourceNotFound" => !error["message"]
            .as_str()
            .unwrap_or_default()
            .contains("/jobs/"),
        _ => false,
    }
}

/// The body of a successful answer.
pub(super) fn good(what: &str, reply: &Reply) -> Result<Value> {
    if !reply.is_good() {
        return Err(refusal(what, reply));
    }
    if reply.body.is_empty() {
        return Ok(Value::Null);
    }
    reply
        .json()
        .ok_or_else(|| Error::unreachable(format!("{what}: the service's answer is not JSON")))
}

/// All items of all pages.
pub(super) fn list(cloud: &dyn Cloud, what: &str, first: Call) -> Result<Vec<Value>> {
    let mut all = Vec::new();
    pages(cloud, what, first, |page| {
        all.extend(page);
        false
    })?;
    Ok(all)
}

/// Reads page by page until `take` has enough, so that thousands of jobs are never in memory at
/// once.
pub(super) fn pages(
    cloud: &dyn Cloud,
    what: &str,
    first: Call,
    mut take: impl FnMut(Vec<Value>) -> bool,
) -> Result<()> {
    let audience = first.audience;
    let mut next = Some(first);
    for _ in 0..MAX_PAGES {
        let Some(call) = next.take() else {
            return Ok(());
        };
        let mut page = good(what, &cloud.call(&call)?)?;
        // An empty page may still have a next one.
        next = next_page(cloud, what, &page, audience)?;
        let items = match page.get_mut("value").map(Value::take) {
            Some(Value::Array(items)) => items,
            _ => Vec::new(),
        };
        if take(items) {
            return Ok(());
        }
    }
    Err(Error::unreachable(format!("{what}: the list has no end")))
}

/// The next page. A link to another host is an error, because we do not follow it and the rest
/// would be missing.
pub(super) fn next_page(
    cloud: &dyn Cloud,
    what: &str,
    page: &Value,
    audience: Audience,
) -> Result<Option<Call>> {
    let Some(link) = page["nextLink"].as_str().filter(|link| !link.is_empty()) else {
        return Ok(None);
    };
    if audience == Audience::Management && !is_below(cloud.endpoint(), link) {
        return Err(Error::unreachable(format!(
            "{what}: the list goes on at another host"
        )));
    }
    Ok(Some(Call::get(link).audience(audience)))
}

/// Whether a link stays below an endpoint. No token goes to another host whose name begins the
/// same. Letter case and the default port make no difference.
pub(super) fn is_below(endpoint: &str, link: &str) -> bool {
    let host = |address: &str| {
        let (scheme, rest) = address.split_once("://")?;
        let host = rest.split(['/', '?', '#']).next()?.to_ascii_lowercase();
        let scheme = scheme.to_ascii_lowercase();
        let usual = if scheme == "http" { ":80" } else { ":443" };
        Some((scheme, host.strip_suffix(usual).unwrap_or(&host).to_owned()))
    };
    host(endpoint).is_some() && host(endpoint) == host(link)
}

/// The service's refusal as an error. A status means the same for all calls.
pub(super) fn refusal(what: &str, reply: &Reply) -> Error {
    let body = reply.json().unwrap_or(Value::Null);
    let error = body.get("error").unwrap_or(&body);
    let code = error["code"].as_str().unwrap_or_default();
    let said = error["message"].as_str().map_or_else(
        || format!("status {}", reply.status),
        |text| text.trim().to_owned(),
    );
    let kind = match reply.status {
        404 => ErrorKind::NotFound,
        408 | 429 | 500..=599 => ErrorKind::Unreachable,
        status => ErrorKind::refusal_of_status(status),
    };
    let text = if code.is_empty() || said.contains(code) {
        format!("{what}: {said}")
    } else {
        format!("{what}: {said} ({code})")
    };
    let told = Error::new(kind, text);
    match (reply.status, code) {
        (401, _) => told.hint(
            "sign in again: az login; if the subscription belongs to another tenant, name it: \
                `credential: {tenant_id: …}`",
        ),
        (403, _) => told.hint(
            "ask the owner of the workspace for a role that allows it, such as AzureML Data \
                Scientist; a role from PIM must be active (`tow roles`)",
        ),
        (404, "ResourceNotFound" | "ResourceGroupNotFound" | "SubscriptionNotFound") => told.hint(
            "check `subscription`, `resource_group` and `workspace` of the cluster; `tow \
                clusters --discover` lists what you may use",
        ),
        _ => told,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_what_the_service_said() {
        let reply = |status, body: &str| Reply {
            status,
            body: body.as_bytes().to_vec(),
            ..Reply::default()
        };
        let error = refusal(
            "the job",
            &reply(
                400,
                r#"{"error": {"code": "UserError", "message": "The Command field is required."}}"#,
            ),
        );
        assert_eq!(
            (error.to_string().as_str(), error.kind()),
            (
                "the job: The Command field is required. (UserError)",
                ErrorKind::Refused
            )
        );
        assert_eq!(
            refusal("x", &reply(503, "busy")).kind(),
            ErrorKind::Unreachable
        );
        assert_eq!(refusal("x", &reply(404, "{}")).kind(), ErrorKind::NotFound);
        for status in [401, 403] {
            let denied = refusal("x", &reply(status, "{}"));
            assert_eq!(denied.kind(), ErrorKind::Denied, "{status}");
        }
        assert!(!refusal("x", &reply(403, "{}")).hints().is_empty());
        let missing = |code: &str, message: &str| {
            is_elsewhere(&reply(
                404,
                &serde_json::json!({"error": {"code": code, "message": message}}).to_string(),
            ))
        };
        assert!(
            missing("SubscriptionNotFound", "")
                && missing(
                    "ResourceNotFound",
                    "The Resource '…/workspaces/w' under resource group 'g' was not found."
                )
        );
        assert!(
            !missing("UserError", "Run r was not found")
                && !missing("ResourceNotFound", "…/workspaces/w/jobs/r was not found")
        );
        assert!(
            is_below("https://a.b", "https://A.B:443/x?y")
                && !is_below("https://a.b", "http://a.b/x")
                && !is_below("https://a.b", "https://a.b:444/x")
        );
        assert!(
            is_below("https://a.b", "https://a.b/x")
                && !is_below("https://a.b", "https://a.b.evil/x")
                && !is_below("https://a.b", "https://a.b@evil/")
        );
    }
}
