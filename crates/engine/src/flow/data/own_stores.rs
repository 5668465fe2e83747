//! The data of a job on a cluster that has datastores of its own, or mounts folders by itself.

use super::folders::placing;
use super::job::{self, JobData, check_name, clean};
use crate::flow::OpenCluster;
use crate::flow::outside::Outside;
use std::collections::{BTreeMap, BTreeSet};
use towline_core::Result;
use towline_core::config::{Config, Datastore, StoreKind};
use towline_core::job::{Io, IoMode, Job};
use towline_core::resolve::{CopyPlan, FrozenCode, IoPlan, MappedPlace, NamedStore};

/// The data of a job there: in stores of the configuration, in stores that only the cluster knows,
/// and mapped folders. These are mounted and linked into the code, so every run has `./data`.
pub(super) fn job_data(
    outside: &dyn Outside,
    cluster: &OpenCluster,
    job: &Job,
    code: &mut Option<FrozenCode>,
) -> Result<JobData> {
    let config = &outside.layers()?.config;
    let caps = cluster.caps();
    let own_kind = caps.own_datastores;
    let is_unknown = |name: &str| own_kind.is_some() && !config.datastores.contains_key(name);
    let own_store = |name: &str| own_store(name, own_kind.cloned().unwrap_or_default());
    let mut known = job.clone();
    known.io.retain(|_, io| !is_unknown(&io.datastore));
    if let Some(code) = code.as_mut().filter(|_| caps.mounts_folders) {
        code.mapped = mapped(config, cluster.name(), &mut known)?;
    }
    let copy = known.copy.take_if(|copy| is_unknown(&copy.datastore));
    let mut data = job::job_data(outside, &known, false)?;
    for (name, io) in job.io.iter().filter(|(_, io)| is_unknown(&io.datastore)) {
        check_name(name)?;
        let path = clean(&format!("io.{name}.path"), &io.path)?;
        data.io.push(IoPlan {
            name: name.clone(),
            store: own_store(&io.datastore),
            path,
            mode: io.mode,
            options: io.options.clone(),
        });
    }
    if let Some(copy) = copy {
        let subdirs = copy
            .subdirs
            .iter()
            .map(|subdir| clean("copy.subdirs", subdir))
            .collect::<Result<_>>()?;
        data.copy = Some(CopyPlan {
            store: own_store(&copy.datastore),
            path: clean("copy.path", &copy.path)?,
            subdirs,
        });
    }
    Ok(data)
}

/// The data that a run had on another cluster. Mapped folders, which were links there, are mounted.
/// Mounts of another such cluster stay as they are.
pub(super) fn with_folders(
    outside: &dyn Outside,
    cluster: &OpenCluster,
    mut data: JobData,
    code: &mut Option<FrozenCode>,
) -> Result<JobData> {
    let has_mounts = |code: &FrozenCode| code.mapped.values().any(MappedPlace::is_io);
    if !cluster.caps().mounts_folders || code.as_ref().is_none_or(has_mounts) {
        return Ok(data);
    }
    let more = job_data(outside, cluster, &Job::default(), code)?;
    let own: BTreeSet<String> = data.io.iter().map(|io| io.name.clone()).collect();
    data.io
        .extend(more.io.into_iter().filter(|io| !own.contains(&io.name)));
    data.secrets.0.extend(more.secrets.0);
    Ok(data)
}

/// A store by the name that only the cluster knows.
fn own_store(name: &str, kind: StoreKind) -> NamedStore {
    NamedStore {
        name: name.to_owned(),
        datastore: Datastore {
            kind,
            ..Datastore::default()
        },
    }
}

/// Adds a mount for each mapped folder. Returns the mount of each folder.
fn mapped(config: &Config, cluster: &str, job: &mut Job) -> Result<BTreeMap<String, MappedPlace>> {
    let there = config.clusters.get(cluster);
    let usual = config
        .folders
        .keys()
        .filter(|name| there.is_none_or(|there| !there.lacks_folder(name)));
    let names: BTreeSet<&String> = usual
        .chain(there.into_iter().flat_map(|there| there.folders.keys()))
        .collect();
    let mut places = BTreeMap::new();
    for folder in names {
        let letters: String = folder
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
            .collect();
        let name = if letters.starts_with(|c: char| c.is_ascii_alphabetic()) {
            letters
        } else {
            format!("folder_{letters}")
        };
        if !job.io.contains_key(&name) {
            let (datastore, path) = placing(config, Some(cluster), folder)?;
            job.io.insert(
                name.clone(),
                Io {
                    datastore,
                    path,
                    mode: IoMode::Mount,
                    options: Vec::new(),
                },
            );
        }
        places.insert(folder.clone(), MappedPlace::Io(name));
    }
    Ok(places)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_of_the_cluster_keeps_its_kind() {
        for kind in [StoreKind::AzureBlob, StoreKind::Folder] {
            let store = own_store("data", kind.clone());
            assert_eq!((store.name.as_str(), store.datastore.kind), ("data", kind));
        }
    }
}
