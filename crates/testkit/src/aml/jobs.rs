//! Jobs by their names: put, get, cancel, delete.

use super::answer::{Answer, Outcome, good, invalid, not_found, user_error};
use super::call::Call;
use super::document::{Job, duration, is_singularity};
use super::ids::Scope;
use super::routes::{not_allowed, nowhere};
use super::workspace::Workspace;
use super::world::World;
use super::{life, update};
use serde_json::{Value, json};
use std::sync::Arc;

pub(super) fn route(world: &Arc<World>, call: &Call, scope: &Scope, words: &[&str]) -> Outcome {
    match (call.method.as_str(), words) {
        ("PUT", [name]) => put(world, call, scope, name),
        ("GET", [name]) => {
            let default_output = world.conditions().default_output;
            seen(world, scope, name, |job| {
                good(job.resource(scope, &world.endpoint, default_output))
            })
        }
        ("DELETE", [name]) => delete(world, scope, name),
        ("POST", [name, "cancel"]) => cancel(world, scope, name),
        ("GET", [name, "cancel"]) => poll_cancel(world, scope, name),
        (_, [_] | [_, "cancel"]) => Err(not_allowed()),
        _ => Err(nowhere()),
    }
}

/// Acts on a job that is visible to reads.
pub(super) fn seen<T>(
    world: &World,
    scope: &Scope,
    name: &str,
    act: impl FnOnce(&mut Job) -> Result<T, Answer>,
) -> Result<T, Answer> {
    let unseen = world.conditions().unseen;
    let found = world.job_of(scope, name, |job| job.is_seen(unseen).then(|| act(job)));
    found
        .flatten()
        .unwrap_or_else(|| Err(not_found(&format!("Job {name} not found."))))
}

fn put(world: &Arc<World>, call: &Call, scope: &Scope, name: &str) -> Outcome {
    let asked = call.properties()?;
    let conditions = world.conditions().clone();
    check_name(name)?;
    check(&asked)?;
    let mut workspaces = world.workspaces();
    let workspace = workspaces.get_mut(&scope.key()).ok_or_else(nowhere)?;
    if let Some(job) = workspace.jobs.get_mut(name) {
        update::apply(job, asked)?;
        return good(job.resource(scope, &world.endpoint, conditions.default_output));
    }
    check_references(workspace, &asked)?;
    let mut job = Job::new(name, asked, &conditions);
    let shown = job.resource(scope, &world.endpoint, conditions.default_output);
    if conditions.asleep {
        job.turn("Queued");
    }
    workspace.jobs.insert(name.to_owned(), job);
    drop(workspaces);
    if !conditions.asleep {
        life::begin(world, scope, name);
    }
    Ok(Answer::json(201, shown))
}

fn check_name(name: &str) -> Result<(), Answer> {
    let fine = name.len() <= 255 && name.starts_with(|letter: char| letter.is_ascii_alphanumeric());
    let letters = name
        .chars()
        .all(|letter| letter.is_ascii_alphanumeric() || "-_.".contains(letter));
    if fine && letters {
        Ok(())
    } else {
        Err(invalid(&format!("The job name '{name}' is invalid.")))
    }
}

/// Checks a job against the published description.
fn check(asked: &Value) -> Result<(), Answer> {
    let Some(kind) = asked["jobType"].as_str() else {
        return Err(invalid("The JobType field is required."));
    };
    if !["Command", "Sweep", "Pipeline", "AutoML", "Spark"].contains(&kind) {
        return Err(invalid(&format!("The job type '{kind}' is unknown.")));
    }
    check_texts(asked)?;
    if kind != "Command" {
        return Ok(());
    }
    for (field, called) in [("command", "Command"), ("environmentId", "EnvironmentId")] {
        if asked[field].as_str().is_none_or(str::is_empty) {
            return Err(invalid(&format!("The {called} field is required.")));
        }
    }
    let resources = &asked["resources"];
    if resources["instanceCount"]
        .as_i64()
        .is_some_and(|many| many < 1)
    {
        return Err(invalid("The field InstanceCount must be at least 1."));
    }
    if resources["shmSize"]
        .as_str()
        .is_some_and(|size| !is_size(size))
    {
        return Err(invalid(
            "The field ShmSize must match the regular expression '\\d+[bBkKmMgG]'.",
        ));
    }
    if asked["limits"]["timeout"]
        .as_str()
        .is_some_and(|text| duration(text).is_none())
    {
        return Err(invalid("The field Timeout is no duration of ISO 8601."));
    }
    for id in ["clientId", "objectId"] {
        if asked["identity"][id]
            .as_str()
            .is_some_and(|text| !is_uuid(text))
        {
            return Err(invalid(&format!("The identity's {id} is no UUID.")));
        }
    }
    if is_singularity(asked) && asked["identity"]["identityType"] == "Managed" {
        return Err(invalid(
            "Managed identity is not supported for virtual cluster jobs.",
        ));
    }
    Ok(())
}

/// Checks the characters of an experiment's name, and the published lengths of texts.
fn check_texts(asked: &Value) -> Result<(), Answer> {
    let experiment = asked["experimentName"].as_str().unwrap_or("Default");
    let letters = experiment
        .chars()
        .all(|letter| letter.is_ascii_alphanumeric() || "-_".contains(letter));
    if !letters
        || experiment.len() > 255
        || !experiment.starts_with(|letter: char| letter.is_ascii_alphanumeric())
    {
        return Err(invalid(&format!(
            "The experiment name '{experiment}' is invalid. It must be 1-255 characters long, \
                start with a letter or number, and hold letters, numbers, underscores and dashes."
        )));
    }
    for (field, most) in [("description", 5_000), ("displayName", 256)] {
        if asked[field]
            .as_str()
            .is_some_and(|text| text.chars().count() > most)
        {
            return Err(invalid(&format!(
                "The field {field} must be a string with a maximum length of {most}."
            )));
        }
    }
    for field in ["tags", "properties"] {
        let Some(entries) = asked[field].as_object() else {
            continue;
        };
        let is_long = |(name, value): (&String, &Value)| {
            name.chars().count() > 100
                || value
                    .as_str()
                    .is_some_and(|value| value.chars().count() > 1_000)
        };
        if entries.len() > 50 || entries.iter().any(is_long) || entries.contains_key("") {
            return Err(invalid(&format!(
                "The {field} exceed the limits: 50 of them, 100 characters for a key, 1000 for a \
                    value."
            )));
        }
    }
    Ok(())
}

fn is_size(text: &str) -> bool {
    let digits = text.strip_suffix(['b', 'B', 'k', 'K', 'm', 'M', 'g', 'G']);
    digits.is_some_and(|digits| {
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    })
}

fn is_uuid(text: &str) -> bool {
    let lengths: Vec<usize> = text.split('-').map(str::len).collect();
    lengths == [8, 4, 4, 4, 12]
        && text
            .bytes()
            .all(|byte| byte == b'-' || byte.is_ascii_hexdigit())
}

/// Checks that everything exists which a job names by an id of this workspace.
fn check_references(workspace: &Workspace, asked: &Value) -> Result<(), Answer> {
    let own = format!("{}/", workspace.scope.key());
    for field in ["codeId", "environmentId", "computeId"] {
        let id = asked[field].as_str().unwrap_or_default();
        // Scopes ignore case, names do not.
        if !id.to_lowercase().starts_with(&own) {
            continue;
        }
        let words: Vec<&str> = id[own.len()..].split('/').collect();
        let there = match words.as_slice() {
            [kind @ ("codes" | "environments"), name, "versions", version] => {
                workspace.assets.has(kind, name, version)
            }
            ["computes", name] => workspace.computes.contains_key(*name),
            _ => true,
        };
        if !there {
            let inner = json!({"code": "NotFound", "innerError": null});
            return Err(user_error(
                400,
                &format!("The {field} '{id}' of the job was not found."),
                &inner,
            ));
        }
    }
    Ok(())
}

/// Starts a cancellation, which is done when the processes are gone; a poll has another address.
fn cancel(world: &World, scope: &Scope, name: &str) -> Outcome {
    let done = seen(world, scope, name, |job| {
        if !job.is_final() {
            job.cancelled = true;
            job.turn(if job.asleep {
                "Canceled"
            } else {
                "CancelRequested"
            });
        }
        Ok(job.is_final())
    })?;
    if done {
        return Ok(Answer::empty(200));
    }
    let location = format!(
        "{}{}/jobs/{name}/cancel?api-version=2024-04-01",
        world.endpoint,
        scope.id()
    );
    Ok(accepted(world).with("Location", location))
}

fn poll_cancel(world: &World, scope: &Scope, name: &str) -> Outcome {
    let waits = seen(world, scope, name, |job| {
        let waits = job.cancel_polls > 0 || !job.is_final();
        job.cancel_polls = job.cancel_polls.saturating_sub(1);
        Ok(waits)
    })?;
    Ok(if waits {
        accepted(world)
    } else {
        Answer::empty(200)
    })
}

fn accepted(world: &World) -> Answer {
    let answer = Answer::empty(202);
    match world.conditions().poll_after {
        Some(seconds) => answer.with("Retry-After", seconds.to_string()),
        None => answer,
    }
}

/// Only a job that has ended can be deleted.
fn delete(world: &World, scope: &Scope, name: &str) -> Outcome {
    let mut workspaces = world.workspaces();
    let workspace = workspaces.get_mut(&scope.key()).ok_or_else(nowhere)?;
    match workspace.jobs.get(name) {
        None => Ok(Answer::empty(204)),
        Some(job) if !job.is_final() => Err(user_error(
            409,
            &format!("Job {name} is not in a final state."),
            &json!({"code": "Conflict"}),
        )),
        Some(_) => {
            workspace.jobs.remove(name);
            Ok(Answer::empty(200))
        }
    }
}
