//! Lists of runs, a window at a time. The keys of a list are kept while nothing changes, so that a
//! reader who scrolls does not search the history again for each window.

use super::fresh::freshen;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use towline_core::record::RunRecord;
use towline_core::state::Phase;
use towline_core::{Error, Result};
use towline_engine::history::{History, Page, PageFilter, PageRow, WordColumn};
use towline_wire::api::runs::{
    Row, RunsFilter, RunsGet, RunsPage, RunsWindow, RunsWords, Sort, SortKey, SweepRow,
};
use towline_wire::api::stream::Place;
use towline_wire::layout::StateFolder;
use towline_wire::report::{Run, Runs, Time};

const DEFAULT_ROWS: u32 = 100;
const MAX_ROWS: u32 = 1000;
/// How many ids one call may ask for.
const MAX_IDS: usize = 1000;
/// How many lists are kept: one for each open page, or a few.
const MAX_KEPT: usize = 8;
/// The order of a list changes with the time alone if it goes by how long running runs take.
const ORDERED_BY_TIME_FOR: Duration = Duration::from_secs(5);

/// Lists that were asked for lately.
#[derive(Debug, Default)]
pub struct Lists(Mutex<Vec<List>>);

#[derive(Debug)]
struct List {
    question: (RunsFilter, Sort, bool),
    place: Place,
    at: Instant,
    page: Arc<Page>,
}

impl Lists {
    pub fn page(&self, state: &StateFolder, ask: &RunsPage) -> Result<RunsWindow> {
        let filter = page_filter(&ask.filter)?;
        let Some(history) = History::open_reader(&state.history())? else {
            return Ok(RunsWindow {
                total: 0,
                states: towline_core::counts::PhaseCounts::default(),
                rows: Vec::new(),
                cursor: Place::none().to_string(),
            });
        };
        let place = history.place()?;
        let page = self.keys(&history, &filter, ask, &place)?;
        let first = usize::try_from(ask.offset)
            .unwrap_or(usize::MAX)
            .min(page.keys.len());
        let rows = ask.limit.unwrap_or(DEFAULT_ROWS).min(MAX_ROWS) as usize;
        let keys = &page.keys[first..page.keys.len().min(first.saturating_add(rows))];
        let mut rows = history.page_rows(&filter, keys)?;
        freshen(state, &history, rows.iter_mut().map(record))?;
        Ok(RunsWindow {
            total: page.keys.len() as u64,
            states: page.counts,
            rows: rows.iter().map(row).collect(),
            cursor: place.to_string(),
        })
    }

    fn keys(
        &self,
        history: &History,
        filter: &PageFilter,
        ask: &RunsPage,
        place: &Place,
    ) -> Result<Arc<Page>> {
        let question = (ask.filter.clone(), ask.sort, ask.fold);
        let is_current = |list: &List| {
            list.question == question
                && list.place == *place
                && (ask.sort.by != SortKey::Took || list.at.elapsed() < ORDERED_BY_TIME_FOR)
        };
        let kept = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(list) = kept().iter().find(|list| is_current(list)) {
            return Ok(Arc::clone(&list.page));
        }
        let page = history.page(filter, ask.sort, ask.fold, towline_host::clock::now())?;
        let page = Arc::new(page);
        let mut lists = kept();
        lists.retain(|list| list.question != question);
        if lists.len() >= MAX_KEPT {
            lists.remove(0);
        }
        lists.push(List {
            question,
            place: place.clone(),
            at: Instant::now(),
            page: Arc::clone(&page),
        });
        Ok(page)
    }
}

fn record(row: &mut PageRow) -> &mut RunRecord {
    match row {
        PageRow::Run(run) => run,
        PageRow::Sweep(sweep) => &mut sweep.first,
    }
}

fn row(row: &PageRow) -> Row {
    match row {
        PageRow::Run(run) => Row::Run(Box::new(Run::from(&**run))),
        PageRow::Sweep(sweep) => Row::Sweep(Box::new(SweepRow {
            id: sweep.id.clone(),
            states: sweep.counts,
            started: sweep.started.map(Time),
            ended: (sweep.counts.active() == 0)
                .then_some(sweep.ended)
                .flatten()
                .map(Time),
            first: Run::from(&sweep.first),
        })),
    }
}

fn page_filter(filter: &RunsFilter) -> Result<PageFilter> {
    let mut phases = Vec::new();
    for word in &filter.states {
        match (word.as_str(), Phase::from_word(word)) {
            ("active", _) => phases.extend(Phase::ALL.into_iter().filter(|p| !p.is_ended())),
            ("ended", _) => phases.extend(Phase::ALL.into_iter().filter(|p| p.is_ended())),
            (_, Some(phase)) => phases.push(phase),
            (_, None) => {
                let known: Vec<&str> = Phase::ALL.into_iter().map(Phase::word).collect();
                return Err(Error::usage(format!("`{word}` is not a state"))
                    .hint(format!("active, ended, {}", known.join(", "))));
            }
        }
    }
    Ok(PageFilter {
        phases,
        clusters: filter.clusters.clone(),
        experiments: filter.experiments.clone(),
        tags: filter.tags.clone(),
        words: filter.text.split_whitespace().map(str::to_owned).collect(),
        sweep: filter.sweep.clone(),
    })
}

/// Runs by their ids, in the order of the question.
pub fn get(state: &StateFolder, ask: &RunsGet) -> Result<Runs> {
    if ask.ids.len() > MAX_IDS {
        return Err(
            Error::usage(format!("{} runs at once are too many", ask.ids.len()))
                .hint(format!("ask for at most {MAX_IDS} in one call")),
        );
    }
    let Some(history) = History::open_reader(&state.history())? else {
        return Ok(Runs::default());
    };
    let mut runs = Vec::with_capacity(ask.ids.len());
    for id in &ask.ids {
        runs.extend(history.run(id)?);
    }
    freshen(state, &history, runs.iter_mut())?;
    Ok(runs.iter().map(Run::from).collect())
}

/// The words that filters can be set to.
pub fn words(state: &StateFolder) -> Result<RunsWords> {
    let Some(history) = History::open_reader(&state.history())? else {
        return Ok(RunsWords::default());
    };
    Ok(RunsWords {
        clusters: history.words_of(WordColumn::Cluster)?,
        experiments: history.words_of(WordColumn::Experiment)?,
        tags: history.words_of(WordColumn::Tag)?,
    })
}
