//! The artifacts of a run: the same files by the paths of run history and by those of the artifact
//! service.

use super::answer::{Answer, Outcome, good, refusal};
use super::call::Call;
use super::document::{ARTIFACTS_CONTAINER, Job};
use super::ids::Scope;
use super::jobs::seen;
use super::world::World;
use serde_json::{Value, json};

const SIGNATURE_SECONDS: i64 = 3600;

/// `artifacts/ExperimentRun/dcid.RUN/…` of the artifact service. The path follows, or is a
/// parameter.
pub(super) fn route(world: &World, call: &Call, scope: &Scope, words: &[&str]) -> Outcome {
    let found = match words {
        [
            "artifacts",
            kind @ ("contentinfo" | "content" | "metadata"),
            "ExperimentRun",
            container,
            path @ ..,
        ] => Some((vec![*kind], container, path)),
        [
            "artifacts",
            "prefix",
            "contentinfo",
            "ExperimentRun",
            container,
            path @ ..,
        ] => Some((vec!["prefix", "contentinfo"], container, path)),
        ["artifacts", "ExperimentRun", container, kind @ ..] => {
            Some((kind.to_vec(), container, [].as_slice()))
        }
        _ => None,
    };
    let run = found
        .as_ref()
        .and_then(|(_, container, _)| container.strip_prefix("dcid."));
    let (Some((kind, _, path)), Some(run)) = (&found, run) else {
        return Err(refusal(
            404,
            "UserError",
            "There is no such path of the artifact service.",
        ));
    };
    if call.method != "GET" {
        return Err(super::routes::not_allowed());
    }
    seen(world, scope, run, |_| Ok(()))?;
    answer(
        world,
        run,
        kind,
        &if path.is_empty() {
            call.query("path").unwrap_or_default().to_owned()
        } else {
            path.join("/")
        },
    )
}

/// `runs/RUN/artifacts/…` of run history.
pub(super) fn of_run(world: &World, call: &Call, run: &str, words: &[&str]) -> Outcome {
    answer(world, run, words, call.query("path").unwrap_or_default())
}

fn answer(world: &World, run: &str, kind: &[&str], path: &str) -> Outcome {
    let prefix = Job::artifacts(run);
    let broken = |error: String| refusal(500, "ServiceError", &error);
    let all = || {
        world
            .blobs
            .list(ARTIFACTS_CONTAINER, &format!("{prefix}{path}"))
            .map_err(broken)
    };
    let names = || -> Result<Vec<String>, Answer> {
        Ok(all()?
            .into_iter()
            .filter_map(|(name, _)| name.strip_prefix(&prefix).map(ToOwned::to_owned))
            .collect())
    };
    let one = || -> Result<String, Answer> {
        names()?
            .into_iter()
            .find(|name| name == path)
            .ok_or_else(|| missing(run, path))
    };
    match kind {
        [] | ["path"] => good(
            json!({"value": names()?.iter().map(|name| artifact(run, name)).collect::<Vec<_>>(), "continuationToken": null}),
        ),
        ["metadata"] => good(artifact(run, &one()?)),
        ["contentinfo"] => good(content(world, run, &one()?)),
        ["prefix", "contentinfo"] => good(
            json!({"value": names()?.iter().map(|name| content(world, run, name)).collect::<Vec<_>>(), "continuationToken": null}),
        ),
        ["content"] => {
            let bytes = world
                .blobs
                .get(ARTIFACTS_CONTAINER, &format!("{prefix}{path}"))
                .map_err(broken)?;
            Ok(Answer::bytes(200, bytes.ok_or_else(|| missing(run, path))?))
        }
        _ => Err(refusal(
            404,
            "UserError",
            "There is no such path of artifacts.",
        )),
    }
}

fn artifact(run: &str, path: &str) -> Value {
    let container = format!("dcid.{run}");
    json!({
        "artifactId": format!("ExperimentRun/{container}/{path}"), "origin": "ExperimentRun", "container": container, "path": path, "etag": null, "createdTime": null,
        "dataPath": {"dataStoreName": "workspaceartifactstore", "relativePath": format!("ExperimentRun/{container}/{path}")},
    })
}

fn content(world: &World, run: &str, path: &str) -> Value {
    let blob = format!("{}{path}", Job::artifacts(run));
    let signature =
        world
            .blobs
            .account
            .blob_sas(ARTIFACTS_CONTAINER, &blob, "r", SIGNATURE_SECONDS);
    json!({"contentUri": format!("{}?{signature}", world.blobs.address(ARTIFACTS_CONTAINER, &blob)), "origin": "ExperimentRun", "container": format!("dcid.{run}"), "path": path})
}

fn missing(run: &str, path: &str) -> Answer {
    refusal(
        404,
        "UserError",
        &format!("Resource not found: ExperimentRun/dcid.{run}/{path}"),
    )
}
