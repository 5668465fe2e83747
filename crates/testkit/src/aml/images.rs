//! Images, as far as they are known here: which names no registry has. Nothing is pulled.

use super::clusters;
use super::life::Life;

/// A virtual cluster has images of its own, which a job names in its bag. As the image of an
/// environment such a name leads to a registry, which does not have it.
pub(super) fn check(life: &Life) -> Result<(), String> {
    let Some((asked, singularity)) = life.job(|job| (job.asked.clone(), job.is_singularity()))
    else {
        return Ok(());
    };
    let Some((name, version)) = asked["environmentId"]
        .as_str()
        .and_then(|id| id.rsplit_once("/environments/")?.1.split_once("/versions/"))
    else {
        return Ok(());
    };
    let workspaces = life.world.workspaces();
    let properties = workspaces.get(&life.scope.key()).and_then(|workspace| {
        workspace
            .assets
            .properties("environments", name, version)
            .cloned()
    });
    drop(workspaces);
    let image = properties
        .as_ref()
        .and_then(|properties| properties["image"].as_str())
        .unwrap_or_default();
    let listed = clusters::images();
    let is_curated = listed["value"]
        .as_array()
        .is_some_and(|all| all.iter().any(|known| known["name"] == image));
    let bags = asked["resources"]["properties"]
        .as_object()
        .into_iter()
        .flat_map(serde_json::Map::values);
    let has_version =
        bags.filter_map(serde_json::Value::as_object)
            .flatten()
            .any(|(key, value)| {
                key.eq_ignore_ascii_case("imageVersion")
                    && value.as_str().is_some_and(|text| !text.is_empty())
            });
    if is_curated && !(singularity && has_version) {
        return Err(format!(
            "Failed to pull image docker.io/{image}: manifest unknown"
        ));
    }
    Ok(())
}
