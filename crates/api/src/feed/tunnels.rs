//! How the tunnels are.

use std::collections::BTreeMap;
use std::fs;
use towline_wire::api::stream::{Item, TunnelNews};
use towline_wire::layout::StateFolder;
use towline_wire::report::Time;
use towline_wire::tunnel::{TunnelState, TunnelStatus, Wanted};

pub(super) struct TunnelReader {
    state: StateFolder,
    told: BTreeMap<String, TunnelNews>,
}

impl TunnelReader {
    pub(super) fn new(state: &StateFolder) -> Self {
        Self {
            state: state.clone(),
            told: BTreeMap::new(),
        }
    }

    /// The tunnels that changed since the last call. One that nobody wants open any more is closed.
    pub(super) fn read(&mut self) -> Option<Item> {
        let folder = towline_host::filesystem::entries(&self.state.tunnels());
        let names = folder.unwrap_or_default().into_iter();
        let names = names.filter_map(|entry| entry.file_name().into_string().ok());
        let now: BTreeMap<String, TunnelNews> = names
            .filter_map(|name| Some((name.clone(), self.one(name)?)))
            .collect();
        let gone = self.told.keys().filter(|name| !now.contains_key(*name));
        let mut tunnels: Vec<TunnelNews> = gone.map(|name| closed(name)).collect();
        let changed = now
            .iter()
            .filter(|(name, news)| self.told.get(*name) != Some(*news));
        tunnels.extend(changed.map(|(_, news)| news.clone()));
        self.told = now;
        (!tunnels.is_empty()).then_some(Item::Tunnels { tunnels })
    }

    fn one(&self, name: String) -> Option<TunnelNews> {
        let folder = self.state.tunnel(&name);
        let wanted = Wanted::read(&folder.join("wanted"))?;
        // A supervisor that just begins has written nothing yet.
        let status: Option<TunnelStatus> = fs::read(folder.join("status"))
            .ok()
            .and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let state = status
            .as_ref()
            .map_or(TunnelState::Connecting, |status| status.state);
        let since = status.as_ref().map_or(wanted.at, |status| status.since);
        Some(TunnelNews {
            name,
            state: state.word(),
            port: Some(wanted.definition.port),
            since: Some(Time(since)),
            reason: status
                .and_then(|status| status.trouble)
                .map(|trouble| trouble.reason),
        })
    }
}

fn closed(name: &str) -> TunnelNews {
    TunnelNews {
        name: name.to_owned(),
        state: "closed",
        port: None,
        since: None,
        reason: None,
    }
}
