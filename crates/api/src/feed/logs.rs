//! The bytes of logs, from offsets on.

use super::far::FarLogs;
use super::watch::Watch;
use crate::logs::index::open;
use crate::runs::fresh::is_far;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::collections::{BTreeSet, HashMap};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use towline_core::{Error, Result, RunId};
use towline_engine::history::History;
use towline_wire::api::log::LogRef;
use towline_wire::api::stream::{Item, LogFrom, LogPart};
use towline_wire::layout::StateFolder;

/// The bytes of one item at most.
const PART_BYTES: u64 = 128 << 10;

pub(super) struct LogReader {
    state: StateFolder,
    followed: Vec<Followed>,
    far: FarLogs,
    is_prepared: bool,
}

struct Followed {
    log: LogRef,
    path: PathBuf,
    /// Everything before it has been told.
    offset: u64,
}

impl LogReader {
    pub(super) fn new(state: &StateFolder) -> Self {
        Self {
            state: state.clone(),
            followed: Vec::new(),
            far: FarLogs::new(state),
            is_prepared: true,
        }
    }

    /// Follows these logs from now on. One that was followed before goes on where it is.
    pub(super) fn follow(&mut self, wanted: Vec<LogFrom>) {
        let before: HashMap<LogRef, u64> = std::mem::take(&mut self.followed)
            .into_iter()
            .map(|followed| (followed.log, followed.offset))
            .collect();
        for one in wanted {
            let log = one.log();
            let path = crate::logs::file(&self.state, &log);
            let offset = before.get(&log).copied().unwrap_or(one.offset);
            self.followed.push(Followed { log, path, offset });
        }
        self.is_prepared = false;
    }

    /// Notes the runs that ended: the last bytes of a far one are fetched.
    pub(super) fn note(&mut self, items: &[Item]) {
        for item in items {
            if let Item::Runs(changes) = item {
                let ended = changes.runs.iter().filter(|run| run.is_ended());
                ended.for_each(|run| self.far.fetch_rest(&run.id));
            }
        }
    }

    /// Watches the folders of the runs, and has the logs of far runs fetched.
    pub(super) fn prepare(&mut self, watch: &mut Watch) {
        let runs: BTreeSet<&RunId> = self.followed.iter().map(|one| &one.log.run).collect();
        let folders: BTreeSet<PathBuf> = runs.iter().map(|run| self.state.run(run)).collect();
        for folder in &folders {
            watch.watch_run(folder);
        }
        if self.is_prepared {
            return;
        }
        self.is_prepared = true;
        watch.keep_runs(|folder| folders.contains(folder));
        let history = History::open_reader(&self.state.history()).ok().flatten();
        let far = runs.into_iter().filter(|run| {
            let known = history.as_ref().map(|history| is_far(history, run));
            matches!(known, Some(Ok(true)))
        });
        self.far.follow(far.cloned().collect());
    }

    /// New bytes, and whether there are more.
    pub(super) fn read(&mut self) -> Result<(Vec<Item>, bool)> {
        let (mut items, mut has_more) = (Vec::new(), false);
        for followed in &mut self.followed {
            let found = followed.read().map_err(|error| {
                let path = followed.path.display();
                Error::from_io(format!("the log {path} cannot be read"), error)
            })?;
            has_more |= matches!(&found, Some(Item::LogCut { .. }))
                || matches!(&found, Some(Item::Log(part)) if part.length == PART_BYTES);
            items.extend(found);
        }
        Ok((items, has_more))
    }
}

impl Followed {
    fn read(&mut self) -> io::Result<Option<Item>> {
        let Some(file) = open(&self.path)? else {
            return Ok(None);
        };
        let length = file.metadata()?.len();
        if length < self.offset {
            self.offset = length;
            let log = self.log.clone();
            return Ok(Some(Item::LogCut { log, length }));
        }
        let most = (length - self.offset).min(PART_BYTES);
        if most == 0 {
            return Ok(None);
        }
        let mut bytes = vec![0; usize::try_from(most).map_err(io::Error::other)?];
        let count = file.read_at(&mut bytes, self.offset)?;
        bytes.truncate(count);
        if bytes.is_empty() {
            return Ok(None);
        }
        let part = part(self.log.clone(), self.offset, bytes);
        self.offset += part.length;
        Ok(Some(Item::Log(part)))
    }
}

fn part(log: LogRef, offset: u64, bytes: Vec<u8>) -> LogPart {
    let length = bytes.len() as u64;
    let (text, base64) = match String::from_utf8(bytes) {
        Ok(text) => (Some(text), None),
        Err(error) => (None, Some(STANDARD.encode(error.into_bytes()))),
    };
    LogPart {
        log,
        offset,
        length,
        text,
        base64,
    }
}
