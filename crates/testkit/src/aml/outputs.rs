//! Folders that a job writes into, and their way into the store.

use super::blobs::Blobs;
use super::document::{CONTAINER, Job};
use super::inputs;
use super::life::Life;
use super::node;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The bytes of a file, where it is, and how long and new it was.
pub(super) type Changed = (Vec<u8>, PathBuf, (u64, SystemTime));

#[derive(Debug)]
pub(super) struct Output {
    pub name: String,
    pub folder: PathBuf,
    /// As through a mount, not only at the end.
    pub while_running: bool,
    container: String,
    prefix: String,
    sent: BTreeMap<PathBuf, (u64, SystemTime)>,
}

/// Named outputs, one folder for all nodes as a mount is; and each node's `outputs` and `logs`, which are artifacts of the run.
pub(super) fn all(life: &Life, asked: &Value, attempt: &Path) -> Result<Vec<Output>, String> {
    let mut found = Vec::new();
    for (name, output) in asked["outputs"].as_object().into_iter().flatten() {
        let address = output["uri"].as_str().map(ToOwned::to_owned).or_else(|| life.job(|job| job.output_address(name))).unwrap_or_default();
        let workspaces = life.world.workspaces();
        let place = workspaces.get(&life.scope.key()).and_then(|workspace| inputs::place(&life.world, workspace, &address));
        drop(workspaces);
        let (container, prefix) = place.ok_or_else(|| format!("The output '{name}' ({address}) is nowhere."))?;
        let wanted = asked["properties"][format!("AZURE_ML_OUTPUT_PathOnCompute_{name}")].as_str();
        let folder = wanted.map_or_else(|| attempt.join("outputs").join(name), PathBuf::from);
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let while_running = output["mode"].as_str().is_none_or(|mode| mode == "ReadWriteMount");
        // A mount shows what is there already.
        if while_running {
            inputs::bring_folder(&life.world, &container, &prefix, &folder)?;
        }
        let prefix = format!("{}/", prefix.trim_end_matches('/'));
        let mut output = Output { name: name.clone(), folder, while_running, container, prefix, sent: BTreeMap::new() };
        output.sent = output.files().into_iter().collect();
        found.push(output);
    }
    Ok(found)
}

/// The folders of a node that are artifacts of the run.
pub(super) fn artifacts(job: &str, attempt: &Path, nodes: usize) -> Vec<Output> {
    let pairs = (0..nodes).flat_map(|node| ["outputs", "logs"].map(|name| (node, name)));
    let output = |(node, name): (usize, &str)| Output {
        name: format!("{name}-{node}"),
        folder: node::folder(attempt, node).join(name),
        while_running: true,
        container: CONTAINER.to_owned(),
        prefix: format!("{}{name}/", Job::artifacts(job)),
        sent: BTreeMap::new(),
    };
    pairs.map(output).collect()
}

impl Output {
    /// Every file that is new or has changed, with what is in it.
    pub(super) fn changed(&self) -> Vec<Changed> {
        let new = self.files().into_iter().filter(|(file, facts)| self.sent.get(file) != Some(facts));
        new.filter_map(|(file, facts)| Some((fs::read(&file).ok()?, file, facts))).collect()
    }

    /// Sends what has changed. Where the store fails, it is sent the next time.
    pub(super) fn send(&mut self, blobs: &Blobs, changed: Vec<Changed>) {
        for (bytes, file, facts) in changed {
            let inner = file.strip_prefix(&self.folder).unwrap_or(&file).to_string_lossy().into_owned();
            if blobs.put(&self.container, &format!("{}{inner}", self.prefix), bytes).is_ok() {
                self.sent.insert(file, facts);
            }
        }
    }

    fn files(&self) -> Vec<(PathBuf, (u64, SystemTime))> {
        let (mut found, mut open) = (Vec::new(), vec![self.folder.clone()]);
        while let Some(folder) = open.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                match entry.metadata() {
                    Ok(facts) if facts.is_dir() => open.push(entry.path()),
                    Ok(facts) if facts.is_file() => found.push((entry.path(), (facts.len(), facts.modified().unwrap_or(SystemTime::UNIX_EPOCH)))),
                    _ => {}
                }
            }
        }
        found
    }
}
