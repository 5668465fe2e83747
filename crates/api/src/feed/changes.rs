//! What happens to runs, read from the history.

use crate::runs::fresh::mark_quiet_cluster;
use towline_core::Result;
use towline_engine::history::{Changes as HistoryChanges, History};
use towline_wire::api::stream::{Changes, Item, Place};
use towline_wire::layout::StateFolder;
use towline_wire::report::Run;

/// At most this many events are told in one item.
const MAX_EVENTS: usize = 500;

pub(super) struct ChangeReader {
    state: StateFolder,
    history: Option<History>,
    /// Everything up to here has been told.
    place: Option<Place>,
    is_wanted: bool,
}

impl ChangeReader {
    pub(super) fn new(state: &StateFolder, since: Option<Place>, is_wanted: bool) -> Self {
        Self {
            state: state.clone(),
            history: None,
            place: since,
            is_wanted,
        }
    }

    /// The first item, which names the stream and says where it begins.
    pub(super) fn begin(&mut self, stream: &str) -> Result<Vec<Item>> {
        self.open()?;
        let begin = match (&self.place, &self.history) {
            (Some(place), _) => place.clone(),
            (None, Some(history)) => history.place()?,
            (None, None) => Place::none(),
        };
        let cursor = begin.to_string();
        self.place = Some(begin);
        Ok(vec![Item::Begun {
            stream: stream.to_owned(),
            cursor,
        }])
    }

    fn open(&mut self) -> Result<Option<&History>> {
        if self.history.is_none() {
            self.history = History::open_reader(&self.state.history())?;
        }
        Ok(self.history.as_ref())
    }

    /// What happened since the last call, and whether there is more.
    pub(super) fn read(&mut self) -> Result<(Vec<Item>, bool)> {
        if !self.is_wanted {
            return Ok((Vec::new(), false));
        }
        let since = self.place.clone().unwrap_or_else(Place::none);
        let Some(history) = self.open()? else {
            return Ok((Vec::new(), false));
        };
        let now = history.place()?;
        let since = since.in_history(&now.history);
        if since == now {
            self.place = Some(now);
            return Ok((Vec::new(), false));
        }
        let Some(changes) = history.changes(&since, MAX_EVENTS)? else {
            self.place = Some(now.clone());
            let cursor = now.to_string();
            return Ok((vec![Item::Reset { cursor }], false));
        };
        self.place = Some(changes.place.clone());
        let has_more = changes.has_more;
        Ok((vec![Item::Runs(self.told(changes))], has_more))
    }

    fn told(&self, mut changes: HistoryChanges) -> Changes {
        for run in &mut changes.runs {
            if run.state.native.is_some() && !run.state.phase.is_ended() {
                mark_quiet_cluster(&self.state, run);
            }
        }
        Changes {
            cursor: changes.place.to_string(),
            events: changes.events,
            runs: changes.runs.iter().map(Run::from).collect(),
            removed: changes.removed,
        }
    }

    /// Whether runs may be going on. Unknown counts as no.
    pub(super) fn has_active_runs(&mut self) -> bool {
        let history = self.open().ok().flatten();
        history.is_some_and(|history| history.has_active().unwrap_or(false))
    }
}
