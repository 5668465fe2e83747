//! How the backups of workspaces go.

use std::collections::BTreeMap;
use std::fs;
use towline_wire::api::stream::{Item, WorkspaceNews};
use towline_wire::layout::StateFolder;
use towline_wire::report::Time;
use towline_wire::workspace::BackupStatus;

pub(super) struct WorkspaceReader {
    state: StateFolder,
    told: BTreeMap<String, WorkspaceNews>,
}

impl WorkspaceReader {
    pub(super) fn new(state: &StateFolder) -> Self {
        Self {
            state: state.clone(),
            told: BTreeMap::new(),
        }
    }

    /// The workspaces whose backups changed since the last call.
    pub(super) fn read(&mut self) -> Option<Item> {
        let folder = towline_host::filesystem::entries(&self.state.workspaces());
        let names = folder.unwrap_or_default().into_iter();
        let mut workspaces = Vec::new();
        for name in names.filter_map(|entry| entry.file_name().into_string().ok()) {
            let Some(news) = self.one(&name) else {
                continue;
            };
            if self.told.get(&name) != Some(&news) {
                self.told.insert(name, news.clone());
                workspaces.push(news);
            }
        }
        (!workspaces.is_empty()).then_some(Item::Workspaces { workspaces })
    }

    /// `None` for a file that is being written: its end is another change.
    fn one(&self, name: &str) -> Option<WorkspaceNews> {
        let path = self.state.workspace(name, "status");
        let status: BackupStatus = match fs::read(path) {
            Ok(bytes) => serde_json::from_slice(&bytes).ok()?,
            Err(_) => BackupStatus::default(),
        };
        Some(WorkspaceNews {
            name: name.to_owned(),
            is_automatic: self.state.workspace(name, "auto").exists(),
            began: status.began.map(Time),
            good: status.good.map(Time),
            trouble: status.failing.map(|failing| failing.why),
        })
    }
}
