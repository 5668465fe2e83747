//! The transfers that are under way, by whichever process of this user.

use std::collections::BTreeMap;
use std::fs;
use towline_wire::api::stream::{Item, TransferNews};
use towline_wire::layout::StateFolder;
use towline_wire::report::Time;
use towline_wire::transfer::{self, STATUS_SUFFIX};

pub(super) struct TransferReader {
    state: StateFolder,
    told: BTreeMap<String, TransferNews>,
}

impl TransferReader {
    pub(super) fn new(state: &StateFolder) -> Self {
        Self {
            state: state.clone(),
            told: BTreeMap::new(),
        }
    }

    /// The transfers that began, went on or ended since the last call.
    pub(super) fn read(&mut self) -> Option<Item> {
        let folder = towline_host::filesystem::entries(&self.state.transfers());
        let ids = folder.unwrap_or_default().into_iter().filter_map(|entry| {
            let name = entry.file_name();
            Some(name.to_str()?.strip_suffix(STATUS_SUFFIX)?.to_owned())
        });
        let now: BTreeMap<String, TransferNews> = ids
            .filter_map(|id| Some((id.clone(), self.one(id)?)))
            .collect();
        let gone = self.told.keys().filter(|id| !now.contains_key(*id));
        let over: Vec<String> = gone.cloned().collect();
        let changed = now
            .iter()
            .filter(|(id, news)| self.told.get(*id) != Some(*news));
        let transfers: Vec<TransferNews> = changed.map(|(_, news)| news.clone()).collect();
        self.told = now;
        let is_new = !transfers.is_empty() || !over.is_empty();
        is_new.then_some(Item::Transfers { transfers, over })
    }

    fn one(&self, id: String) -> Option<TransferNews> {
        let path = self.state.transfer_status(&id);
        // A process that was killed left its file behind.
        if !towline_host::lock::is_held(&path).unwrap_or(false) {
            return None;
        }
        let Some(status) = transfer::read(&fs::read(&path).ok()?) else {
            // It is being written: what was told before still holds.
            return self.told.get(&id).cloned();
        };
        Some(TransferNews {
            id,
            path: status.path,
            direction: status.direction,
            began: Time(status.began),
            progress: status.progress,
        })
    }
}
