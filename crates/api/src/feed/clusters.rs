//! How the far clusters answer.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;
use towline_core::time::Moment;
use towline_wire::api::stream::{ClusterNews, Item};
use towline_wire::cluster::ClusterStatus;
use towline_wire::layout::StateFolder;
use towline_wire::report::Time;

pub(super) struct ClusterReader {
    state: StateFolder,
    told: BTreeMap<String, ClusterNews>,
}

impl ClusterReader {
    pub(super) fn new(state: &StateFolder) -> Self {
        Self {
            state: state.clone(),
            told: BTreeMap::new(),
        }
    }

    /// The clusters whose answers changed since the last call.
    pub(super) fn read(&mut self) -> Option<Item> {
        let mut clusters = Vec::new();
        for (name, file) in self.files() {
            // A file that cannot be read now is read again at its next change.
            let Ok(Some(status)) = ClusterStatus::read(&file) else {
                continue;
            };
            let news = ClusterNews {
                name: name.clone(),
                seen: status.seen.map(Time),
                trouble: status.trouble,
                facts: changed(&self.state.cluster(&name, "facts")),
            };
            if self.told.get(&name) != Some(&news) {
                self.told.insert(name, news.clone());
                clusters.push(news);
            }
        }
        (!clusters.is_empty()).then_some(Item::Clusters { clusters })
    }

    fn files(&self) -> Vec<(String, PathBuf)> {
        let entries = towline_host::filesystem::entries(&self.state.clusters());
        let entries = entries.unwrap_or_default().into_iter();
        entries
            .filter_map(|entry| {
                let name = entry.file_name();
                let cluster = StateFolder::cluster_of(name.to_str()?, "status")?;
                Some((cluster, entry.path()))
            })
            .collect()
    }
}

/// When a file was last written; `None` if it is not there.
fn changed(path: &Path) -> Option<Time> {
    let metadata = towline_host::filesystem::metadata_if_there(path).ok()??;
    let since = metadata.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    Some(Time(Moment(i64::try_from(since.as_millis()).ok()?)))
}
