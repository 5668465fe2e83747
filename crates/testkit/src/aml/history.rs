//! Run history: the outcome of a run, by the paths that clients use.

use super::answer::{Answer, Outcome, good, refusal};
use super::call::Call;
use super::document::Job;
use super::ids::Scope;
use super::jobs::seen;
use super::routes::not_allowed;
use super::update::merge;
use super::world::World;
use super::{artifacts, details};
use serde_json::{Value, json};
use towline_host::clock;

pub(super) fn route(world: &World, call: &Call, scope: &Scope, words: &[&str]) -> Outcome {
    // With or without the experiment: the run's name is enough.
    let words = match words {
        ["experiments" | "experimentids", _, rest @ ..] => rest,
        words => words,
    };
    match (call.method.as_str(), words) {
        ("POST", ["rundata"]) => {
            let asked = call.json()?;
            let name = asked["runId"].as_str().unwrap_or_default();
            let run = run(world, scope, name, |job| Ok(details::run(job)))?;
            good(json!({"runMetadata": run, "runDefinition": null, "jobSpecification": null}))
        }
        ("GET", ["runs", name]) => good(run(world, scope, name, |job| Ok(details::run(job)))?),
        ("PATCH", ["runs", name]) => patch(world, call, scope, name),
        ("GET", ["runs", name, "details"]) => {
            run(world, scope, name, |_| Ok(()))?;
            let logs =
                details::logs(world, name).map_err(|error| refusal(500, "ServiceError", &error))?;
            good(run(world, scope, name, |job| {
                Ok(details::details(job, &logs))
            })?)
        }
        ("GET", ["runs", name, "serviceinstances", node]) => {
            good(run(world, scope, name, |job| {
                Ok(details::services(job, node))
            })?)
        }
        ("GET", ["runs", name, "artifacts", rest @ ..]) => {
            run(world, scope, name, |_| Ok(()))?;
            artifacts::of_run(world, call, name, rest)
        }
        (_, ["rundata"] | ["runs", ..]) => Err(not_allowed()),
        _ => Err(refusal(
            404,
            "UserError",
            "There is no such path of run history.",
        )),
    }
}

/// The same as for jobs, with run history's own refusal if there is none.
fn run<T>(
    world: &World,
    scope: &Scope,
    name: &str,
    act: impl FnOnce(&mut Job) -> Result<T, Answer>,
) -> Result<T, Answer> {
    seen(world, scope, name, act).map_err(|answer| {
        if answer.status == 404 {
            missing(name)
        } else {
            answer
        }
    })
}

fn missing(name: &str) -> Answer {
    Answer::json(
        404,
        json!({"error": {"code": "UserError", "message": format!("Run {name} was not \
            found"), "innerError": {"code": "NotFoundError"}}, "statusCode": 404}),
    )
}

/// Names and tags are added and replaced; `hidden` is what the resource manager calls archived.
fn patch(world: &World, call: &Call, scope: &Scope, name: &str) -> Outcome {
    let Value::Object(asked) = call.json()? else {
        return Err(not_allowed());
    };
    good(run(world, scope, name, |job| {
        for (field, value) in asked {
            match field.as_str() {
                _ if value.is_null() => {}
                "displayName" | "description" => job.asked[field.as_str()] = value,
                "tags" | "properties" => merge(&mut job.asked[field.as_str()], value),
                "hidden" => job.asked["isArchived"] = value,
                _ => {}
            }
        }
        job.changed = clock::now();
        Ok(details::run(job))
    })?)
}
