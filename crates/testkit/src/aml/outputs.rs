//! Folders that a job writes to, and their upload. A mount belongs to one node, as the real one
//! does: a file goes to the store when its writer has closed it, others see it when their cache of
//! the folder is old, and what is removed here is removed there.

use super::blobs::Blobs;
use super::document::{ARTIFACTS_CONTAINER, Job};
use super::inputs;
use super::life::Life;
use super::node;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// Size and modification time of a file.
type Facts = (u64, SystemTime);

/// A file to upload: its output, its path, and its facts when it was found.
pub(super) struct Changed {
    output: usize,
    file: PathBuf,
    facts: Facts,
}

/// When the folders are searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum When {
    /// Processes may write to them meanwhile.
    Running,
    /// The processes are frozen; open files stay open.
    Frozen,
    /// All processes have ended.
    Ended,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A mount: while the job runs, only closed files are uploaded, and changes by others are
    /// downloaded.
    Mount,
    /// Uploaded when the job has ended.
    Upload,
    /// The run's own folders, which the service uploads while they are written.
    Artifacts,
}

#[derive(Debug)]
pub(super) struct Output {
    pub name: String,
    pub node: usize,
    pub folder: PathBuf,
    kind: Kind,
    container: String,
    prefix: String,
    sent: BTreeMap<PathBuf, Facts>,
    /// The version of each blob that was seen last.
    seen: BTreeMap<String, String>,
    refreshed_at: Instant,
}

/// Named outputs of every node. An output with a path of its own is in one place for all nodes of
/// this machine.
pub(super) fn all(
    life: &Life,
    asked: &Value,
    attempt: &Path,
    nodes: usize,
) -> Result<Vec<Output>, String> {
    let mut found = Vec::new();
    for (name, output) in asked["outputs"].as_object().into_iter().flatten() {
        let address = output["uri"]
            .as_str()
            .map(ToOwned::to_owned)
            .or_else(|| life.job(|job| job.output_address(name)))
            .unwrap_or_default();
        let workspaces = life.world.workspaces();
        let place = workspaces
            .get(&life.scope.key())
            .and_then(|workspace| inputs::place(&life.world, workspace, &address));
        drop(workspaces);
        let (container, prefix) =
            place.ok_or_else(|| format!("The output '{name}' ({address}) is nowhere."))?;
        let wanted = asked["properties"][format!("AZURE_ML_OUTPUT_PathOnCompute_{name}")].as_str();
        let kind = if output["mode"]
            .as_str()
            .is_none_or(|mode| mode == "ReadWriteMount")
        {
            Kind::Mount
        } else {
            Kind::Upload
        };
        let prefix = if prefix.trim_matches('/').is_empty() {
            String::new()
        } else {
            format!("{}/", prefix.trim_end_matches('/'))
        };
        for node in 0..if wanted.is_some() { 1 } else { nodes } {
            let folder = wanted.map_or_else(
                || attempt.join(format!("node-{node}/outputs")).join(name),
                PathBuf::from,
            );
            fs::create_dir_all(&folder)
                .and_then(|()| for_everybody(&folder))
                .map_err(|error| format!("{}: {error}", folder.display()))?;
            let mut output = Output::new(name, node, folder, kind, &container, &prefix);
            // A mount shows the present files.
            if kind == Kind::Mount {
                output.refresh(&life.world.blobs, &BTreeSet::new())?;
            }
            found.push(output);
        }
    }
    Ok(found)
}

/// The folders of a node that are artifacts of the run.
pub(super) fn artifacts(job: &str, attempt: &Path, nodes: usize) -> Vec<Output> {
    let pairs = (0..nodes).flat_map(|node| ["outputs", "logs"].map(|name| (node, name)));
    let output = |(node, name): (usize, &str)| {
        Output::new(
            name,
            node,
            node::folder(attempt, node).join(name),
            Kind::Artifacts,
            ARTIFACTS_CONTAINER,
            &format!("{}{name}/", Job::artifacts(job)),
        )
    };
    pairs.map(output).collect()
}

/// The folder of each output on a node, by its name.
pub(super) fn of_node(outputs: &[Output], node: usize) -> BTreeMap<String, String> {
    let is_seen = |output: &&Output| {
        output.node == node
            || !outputs
                .iter()
                .any(|other| other.name == output.name && other.node == node)
    };
    outputs
        .iter()
        .filter(is_seen)
        .map(|output| (output.name.clone(), output.folder.display().to_string()))
        .collect()
}

/// The clock of a file system has steps. A file that is newer than this may have been written
/// during the search.
const FILE_CLOCK_STEP: Duration = Duration::from_millis(10);

/// Uploads changed files in the order of their writing, so that a later file is never there before
/// an earlier one.
pub(super) fn send_changed(outputs: &mut [Output], blobs: &Blobs, when: When) {
    let now = Duration::from_millis(u64::try_from(towline_host::clock::now().0).unwrap_or(0));
    let before = SystemTime::UNIX_EPOCH + now.saturating_sub(FILE_CLOCK_STEP);
    let mut changed: Vec<Changed> = Vec::new();
    for (number, output) in outputs
        .iter()
        .enumerate()
        .filter(|(_, output)| when == When::Ended || output.kind != Kind::Upload)
    {
        changed.extend(output.changed().into_iter().map(|(file, facts)| Changed {
            output: number,
            file,
            facts,
        }));
    }
    changed.retain(|changed| when != When::Running || changed.facts.1 < before);
    if !changed.is_empty() {
        let open = written_to(outputs);
        changed.sort_by_key(|changed| (changed.facts.1, std::cmp::Reverse(changed.output)));
        for changed in changed {
            let output = &mut outputs[changed.output];
            // A file that is still being written is invisible to others, however long it takes.
            if (output.kind == Kind::Artifacts || !open.contains(&changed.file))
                && !output.send(blobs, &changed)
            {
                // Its writer would not have gone on to the later files.
                break;
            }
        }
    }
    outputs
        .iter_mut()
        .filter(|output| output.kind == Kind::Mount)
        .for_each(|output| output.remove_gone(blobs));
}

/// Downloads the changes of others, if the cache is older than this.
pub(super) fn refresh_old(outputs: &mut [Output], blobs: &Blobs, cache: Duration) {
    let is_old =
        |output: &Output| output.kind == Kind::Mount && output.refreshed_at.elapsed() >= cache;
    if outputs.iter().any(is_old) {
        let open = written_to(outputs);
        for output in outputs.iter_mut().filter(|output| is_old(output)) {
            let _ = output.refresh(blobs, &open);
        }
    }
}

impl Output {
    fn new(
        name: &str,
        node: usize,
        folder: PathBuf,
        kind: Kind,
        container: &str,
        prefix: &str,
    ) -> Self {
        let (name, container, prefix) = (name.to_owned(), container.to_owned(), prefix.to_owned());
        Self {
            name,
            node,
            folder,
            kind,
            container,
            prefix,
            sent: BTreeMap::new(),
            seen: BTreeMap::new(),
            refreshed_at: Instant::now(),
        }
    }

    /// Every file that is new or has changed.
    fn changed(&self) -> Vec<(PathBuf, Facts)> {
        self.files()
            .into_iter()
            .filter(|(file, facts)| self.sent.get(file) != Some(facts))
            .collect()
    }

    /// Uploads a file. If the store fails, or another process writes to the file meanwhile, the
    /// next call uploads it. `false` if the store failed.
    fn send(&mut self, blobs: &Blobs, changed: &Changed) -> bool {
        let Ok(bytes) = fs::read(&changed.file) else {
            return true;
        };
        if facts(&changed.file) != Some(changed.facts) {
            return true;
        }
        let blob = self.blob(&changed.file);
        let is_stored = blobs.put(&self.container, &blob, bytes).is_ok();
        if is_stored {
            self.sent.insert(changed.file.clone(), changed.facts);
        }
        is_stored
    }

    fn remove_gone(&mut self, blobs: &Blobs) {
        let gone: Vec<PathBuf> = self
            .sent
            .keys()
            .filter(|file| !file.exists())
            .cloned()
            .collect();
        for file in gone {
            if blobs.delete(&self.container, &self.blob(&file)).is_ok() {
                self.sent.remove(&file);
            }
        }
    }

    /// Downloads what differs in the store, and removes what is gone there. Local changes stay.
    fn refresh(&mut self, blobs: &Blobs, open: &BTreeSet<PathBuf>) -> Result<(), String> {
        self.refreshed_at = Instant::now();
        let listed = blobs.list_marked(&self.container, &self.prefix)?;
        let mut there = BTreeSet::new();
        for (name, mark) in listed {
            let inner = name[self.prefix.len()..].to_owned();
            // A folder's own marker, or a name that leads outside.
            if inner.is_empty()
                || inner.ends_with('/')
                || !Path::new(&inner)
                    .components()
                    .all(|part| matches!(part, Component::Normal(_)))
            {
                continue;
            }
            let file = self.folder.join(&inner);
            there.insert(file.clone());
            let is_ours = facts(&file).is_some() && facts(&file) != self.sent.get(&file).copied();
            if self.seen.get(&inner) == Some(&mark)
                || is_ours
                || open.contains(&file)
                || (facts(&file).is_none() && self.sent.contains_key(&file))
            {
                continue;
            }
            let Some(bytes) = blobs.get(&self.container, &name)? else {
                continue;
            };
            if fs::read(&file).ok().as_ref() != Some(&bytes) {
                self.place(&file, &bytes)
                    .map_err(|error| format!("{}: {error}", file.display()))?;
            }
            self.seen.insert(inner, mark);
            self.sent.extend(facts(&file).map(|facts| (file, facts)));
        }
        let gone: Vec<PathBuf> = self
            .sent
            .keys()
            .filter(|file| !there.contains(*file) && facts(file) == self.sent.get(*file).copied())
            .cloned()
            .collect();
        for file in gone {
            let _ = fs::remove_file(&file);
            self.sent.remove(&file);
        }
        Ok(())
    }

    /// Replaces a file. A process that has the old one open goes on reading it.
    fn place(&self, file: &Path, bytes: &[u8]) -> std::io::Result<()> {
        let parent = file.parent().unwrap_or(&self.folder);
        fs::create_dir_all(parent)?;
        parent
            .ancestors()
            .take_while(|folder| folder.starts_with(&self.folder))
            .try_for_each(for_everybody)?;
        let draft = self.folder.with_extension("brought");
        fs::write(&draft, bytes)?;
        for_everybody(&draft)?;
        fs::rename(&draft, file)
    }

    fn blob(&self, file: &Path) -> String {
        format!(
            "{}{}",
            self.prefix,
            file.strip_prefix(&self.folder)
                .unwrap_or(file)
                .to_string_lossy()
        )
    }

    fn files(&self) -> Vec<(PathBuf, Facts)> {
        let (mut found, mut open) = (Vec::new(), vec![self.folder.clone()]);
        while let Some(folder) = open.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() => open.push(entry.path()),
                    Ok(kind) if kind.is_file() => {
                        found.extend(facts(&entry.path()).map(|facts| (entry.path(), facts)));
                    }
                    _ => {}
                }
            }
        }
        found
    }
}

/// Makes a path writable for everybody, because a mount does not check users.
fn for_everybody(path: &Path) -> std::io::Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(0o777))
}

fn facts(file: &Path) -> Option<Facts> {
    let meta = fs::symlink_metadata(file)
        .ok()
        .filter(fs::Metadata::is_file)?;
    Some((
        meta.len(),
        meta.modified().unwrap_or(SystemTime::UNIX_EPOCH),
    ))
}

/// Files of these folders that some process has open for writing.
fn written_to(outputs: &[Output]) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    for pid in towline_host::process::all().into_keys() {
        for entry in fs::read_dir(format!("/proc/{pid}/fd"))
            .into_iter()
            .flatten()
            .flatten()
        {
            let Ok(file) = fs::read_link(entry.path()) else {
                continue;
            };
            if !outputs
                .iter()
                .any(|output| output.kind != Kind::Artifacts && file.starts_with(&output.folder))
            {
                continue;
            }
            let number = entry.file_name();
            let described =
                fs::read_to_string(format!("/proc/{pid}/fdinfo/{}", number.to_string_lossy()))
                    .unwrap_or_default();
            let flags = described
                .lines()
                .find_map(|line| line.strip_prefix("flags:"))
                .and_then(|text| u32::from_str_radix(text.trim(), 8).ok());
            // The two lowest bits tell how it was opened: 0 is for reading.
            if flags.is_some_and(|flags| flags & 3 != 0) {
                found.insert(file);
            }
        }
    }
    found
}
