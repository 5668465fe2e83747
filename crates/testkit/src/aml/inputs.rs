//! Downloads code and inputs from the store to folders before a job runs.

use super::datastores;
use super::life::Life;
use super::workspace::Workspace;
use super::world::World;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// The tree of the job's code version; an empty folder if it has none.
pub(super) fn bring_code(life: &Life, asked: &Value, folder: &Path) -> Result<PathBuf, String> {
    fs::create_dir_all(folder).map_err(|error| error.to_string())?;
    let Some(id) = asked["codeId"].as_str() else {
        return Ok(folder.to_owned());
    };
    let missing = || format!("The code '{id}' of the job was not found.");
    let (container, path) = with_workspace(life, |workspace| {
        let (name, version) = versioned(id, "codes")?;
        let address = workspace.assets.properties("codes", name, version)?["codeUri"]
            .as_str()?
            .to_owned();
        place(&life.world, workspace, &address)
    })
    .flatten()
    .ok_or_else(missing)?;
    let brought = bring_folder(&life.world, &container, &path, folder)?;
    if brought == 0 {
        Err(format!("The code '{id}' of the job is empty."))
    } else {
        Ok(folder.to_owned())
    }
}

/// The value of every input in the command: a path, or the value itself.
pub(super) fn bring_all(
    life: &Life,
    asked: &Value,
    folder: &Path,
) -> Result<BTreeMap<String, String>, String> {
    let mut found = BTreeMap::new();
    for (name, input) in asked["inputs"].as_object().into_iter().flatten() {
        let kind = input["jobInputType"].as_str().unwrap_or_default();
        if kind == "literal" {
            found.insert(
                name.clone(),
                input["value"].as_str().unwrap_or_default().to_owned(),
            );
            continue;
        }
        let address = input["uri"].as_str().unwrap_or_default();
        if input["mode"] == "Direct" {
            found.insert(name.clone(), address.to_owned());
            continue;
        }
        let missing = || format!("The input '{name}' ({address}) was not found.");
        let (container, path) =
            with_workspace(life, |workspace| resolve(&life.world, workspace, address))
                .flatten()
                .ok_or_else(missing)?;
        let target = folder.join(name);
        fs::create_dir_all(&target).map_err(|error| error.to_string())?;
        let shown = if kind == "uri_file" {
            let file = target.join(path.rsplit('/').next().unwrap_or("file"));
            let bytes = life
                .world
                .blobs
                .get(&container, &path)?
                .ok_or_else(missing)?;
            fs::write(&file, bytes).map_err(|error| error.to_string())?;
            file
        } else {
            bring_folder(&life.world, &container, &path, &target)?;
            target
        };
        found.insert(name.clone(), shown.display().to_string());
    }
    Ok(found)
}

fn with_workspace<T>(life: &Life, act: impl FnOnce(&Workspace) -> T) -> Option<T> {
    life.world.workspaces().get(&life.scope.key()).map(act)
}

/// The address of data, which may be given by an asset.
fn resolve(world: &World, workspace: &Workspace, address: &str) -> Option<(String, String)> {
    let asset = address
        .strip_prefix("azureml:")
        .filter(|rest| !rest.starts_with("//"));
    let named = asset
        .and_then(|rest| rest.split_once(':'))
        .or_else(|| versioned(asset.unwrap_or(address), "data"));
    if let Some((name, version)) = named.filter(|_| !address.contains("://")) {
        let address = workspace.assets.properties("data", name, version)?["dataUri"].as_str()?;
        return place(world, workspace, address);
    }
    place(world, workspace, address)
}

/// Container and path of an address of either kind.
pub(super) fn place(
    world: &World,
    workspace: &Workspace,
    address: &str,
) -> Option<(String, String)> {
    datastores::place(workspace, address).or_else(|| world.blobs.place(address))
}

/// Name and version at the end of an id.
fn versioned<'a>(id: &'a str, kind: &str) -> Option<(&'a str, &'a str)> {
    let (_, rest) = id.rsplit_once(&format!("/{kind}/"))?;
    rest.split_once("/versions/")
}

/// Downloads a folder; the number of files.
pub(super) fn bring_folder(
    world: &World,
    container: &str,
    path: &str,
    folder: &Path,
) -> Result<usize, String> {
    let prefix = if path.is_empty() {
        String::new()
    } else {
        format!("{}/", path.trim_end_matches('/'))
    };
    let mut many = 0;
    for (name, _) in world.blobs.list(container, &prefix)? {
        let inner = Path::new(&name[prefix.len()..]);
        // A folder's own marker, or a name that leads outside.
        if name.ends_with('/')
            || !inner
                .components()
                .all(|part| matches!(part, Component::Normal(_)))
        {
            continue;
        }
        let target = folder.join(inner);
        let bytes = world.blobs.get(container, &name)?.unwrap_or_default();
        let write = || {
            fs::create_dir_all(target.parent().unwrap_or(folder))
                .and_then(|()| fs::write(&target, &bytes))
        };
        write().map_err(|error| format!("{}: {error}", target.display()))?;
        many += 1;
    }
    Ok(many)
}
