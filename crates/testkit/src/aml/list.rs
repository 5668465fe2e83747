//! Lists of jobs, page by page.

use super::answer::{Outcome, good};
use super::call::Call;
use super::document::Job;
use super::ids::Scope;
use super::routes::{not_allowed, nowhere};
use super::world::World;
use serde_json::{Value, json};

pub(super) fn jobs(world: &World, call: &Call, scope: &Scope) -> Outcome {
    if call.method != "GET" {
        return Err(not_allowed());
    }
    let (page, default_output, unseen, empty) = {
        let mut conditions = world.conditions();
        let empty = conditions.empty_pages > 0;
        conditions.empty_pages = conditions.empty_pages.saturating_sub(1);
        (
            conditions.page,
            conditions.default_output,
            conditions.unseen,
            empty,
        )
    };
    let workspaces = world.workspaces();
    let workspace = workspaces.get(&scope.key()).ok_or_else(nowhere)?;
    let mut found: Vec<&Job> = workspace
        .jobs
        .values()
        .filter(|job| job.is_seen(unseen) && fits(job, call))
        .collect();
    found.sort_by_key(|job| std::cmp::Reverse(job.number));
    let skip = call
        .query("$skip")
        .or_else(|| call.query("$skipToken"))
        .and_then(|text| text.parse().ok())
        .unwrap_or(0);
    let many = if empty {
        0
    } else {
        call.number("$top").unwrap_or(page).clamp(1, page)
    };
    let shown: Vec<Value> = found
        .iter()
        .skip(skip)
        .take(many)
        .map(|job| job.resource(scope, &world.endpoint, default_output))
        .collect();
    let next = skip + shown.len();
    let mut answer = json!({"value": shown});
    if next < found.len() {
        answer["nextLink"] = json!(format!(
            "{}{}",
            world.endpoint,
            continued(&call.target, next)
        ));
    }
    good(answer)
}

/// The address of the next page.
fn continued(target: &str, skip: usize) -> String {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let is_skip = |word: &str| {
        ["$skip=", "%24skip="]
            .iter()
            .any(|name| word.to_lowercase().starts_with(name))
    };
    let words: Vec<&str> = query
        .split('&')
        .filter(|word| !word.is_empty() && !is_skip(word))
        .collect();
    format!("{path}?{}&$skip={skip}", words.join("&"))
}

fn fits(job: &Job, call: &Call) -> bool {
    let archived = job.asked["isArchived"] == true;
    let view = match call.query("listViewType").unwrap_or("ActiveOnly") {
        "All" => true,
        "ArchivedOnly" => archived,
        _ => !archived,
    };
    // `tag=name` or `tag=name=value`; the same for properties.
    let has = |field: &str, wanted: &str| {
        let (name, value) = wanted
            .split_once('=')
            .map_or((wanted, None), |(name, value)| (name, Some(value)));
        job.asked[field]
            .get(name)
            .is_some_and(|found| value.is_none_or(|value| found == value))
    };
    let kind = call
        .query("jobType")
        .is_none_or(|kind| job.text("jobType").eq_ignore_ascii_case(kind));
    let tag = call.query("tag").is_none_or(|tag| has("tags", tag));
    let property = call
        .query("properties")
        .is_none_or(|wanted| wanted.split(',').all(|wanted| has("properties", wanted)));
    view && kind && tag && property
}
