//! Entries are what folding a list of all runs gives.

use super::super::{Entry, Filter, History};
use super::{plan, queued, submit};
use std::collections::BTreeMap;
use towline_core::counts::PhaseCounts;
use towline_core::event::RunEvent;
use towline_core::reason::{Cause, Ending, Outcome};
use towline_core::record::RunRecord;
use towline_core::state::{Phase, RunState, Step, reduce};
use towline_core::time::Moment;

/// An entry in the form in which both ways of making it are compared.
#[derive(Debug, PartialEq)]
struct Row {
    id: String,
    first: String,
    counts: PhaseCounts,
    started: Option<Moment>,
    ended: Option<Moment>,
}

fn rows(history: &History, filter: &Filter) -> Vec<Row> {
    let entries = history.entries(filter).expect("it reads");
    let row = |entry: Entry| match entry {
        Entry::Run(run) => row_of(run.id.to_string(), &[&run]),
        Entry::Sweep(sweep) => Row {
            id: sweep.id.to_string(),
            first: sweep.first.id.to_string(),
            counts: sweep.counts,
            started: sweep.started,
            ended: sweep.ended,
        },
    };
    entries.into_iter().map(row).collect()
}

/// The runs newest first.
fn row_of(id: String, runs: &[&RunRecord]) -> Row {
    Row {
        id,
        first: runs.last().expect("there is one").id.to_string(),
        counts: runs.iter().map(|run| run.state.phase).collect(),
        started: runs.iter().filter_map(|run| run.started).min(),
        ended: runs.iter().filter_map(|run| run.ended).max(),
    }
}

/// The same by reading every run.
fn folded(history: &History, filter: &Filter) -> Vec<Row> {
    let all = Filter {
        limit: None,
        ..filter.clone()
    };
    let runs = history.list(&all).expect("it reads");
    let mut sweeps: BTreeMap<String, Vec<&RunRecord>> = BTreeMap::new();
    for run in &runs {
        if let Some(sweep) = &run.sweep {
            sweeps.entry(sweep.to_string()).or_default().push(run);
        }
    }
    let mut rows = Vec::new();
    for run in &runs {
        let sweep = run.sweep.as_ref().map(ToString::to_string);
        match sweep.map(|id| (sweeps.remove(&id), id)) {
            None => rows.push(row_of(run.id.to_string(), &[run])),
            Some((Some(runs), _)) if runs.len() == 1 => {
                rows.push(row_of(run.id.to_string(), &runs));
            }
            Some((Some(runs), id)) => rows.push(row_of(id, &runs)),
            Some((None, _)) => {}
        }
    }
    rows.truncate(filter.limit.unwrap_or(usize::MAX));
    rows
}

/// Moves a run along, as far as `steps` says.
fn advance(history: &History, key: i64, steps: u32, at: i64) {
    let events = [
        RunEvent::AttemptIntent {
            attempt: 1,
            runner: "r1".into(),
            gpus: Vec::new(),
            durable: false,
        },
        RunEvent::AttemptStarted { attempt: 1 },
        RunEvent::Ended {
            attempt: 1,
            ending: if at % 2 == 0 {
                Ending::success()
            } else {
                Ending::cause(Cause::ExitCode)
            },
        },
    ];
    let mut state: RunState = queued();
    let batch = history.batch(false).expect("a batch begins");
    for (event, step) in events.iter().zip(0..steps) {
        let Ok(Step::Changed(next)) = reduce(&state, event) else {
            panic!("the events follow each other")
        };
        state = *next;
        batch
            .event(key, event, &state, Moment(at + i64::from(step)))
            .expect("it is written");
    }
    batch.commit().expect("it is committed");
}

/// Single runs and sweeps of several sizes, in all states, on two clusters; of some sweeps the
/// oldest or newest runs are gone.
fn history() -> History {
    let history = History::in_memory();
    let mut random = 7_u32;
    let mut next = |below: u32| {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (random >> 8) % below
    };
    for number in 0..60 {
        let size = [1, 1, 2, 3, 30][next(5) as usize];
        let mut plan = plan("train", 0xabc0_0000 + number, size);
        plan.cluster = ["local", "lab"][next(2) as usize].into();
        plan.job.experiment = (next(3) == 0).then(|| "hoi".to_owned());
        plan.job.tags = if next(3) == 0 {
            vec!["a b".into(), "c".into()]
        } else {
            Vec::new()
        };
        let keys = submit(&history, &plan).expect("it is new");
        let most = next(4) + 1;
        for (key, run) in keys.iter().zip(&plan.runs) {
            advance(
                &history,
                *key,
                next(most),
                1_000 * i64::from(next(500)) + i64::from(next(2)),
            );
            if next(6) == 0 {
                let batch = history.batch(false).expect("a batch begins");
                batch.forget(&run.id).expect("it is written");
                batch.commit().expect("it is committed");
            }
        }
    }
    history
}

fn filters() -> Vec<Filter> {
    let failed = Phase::Ended(Outcome::Failed);
    let succeeded = Phase::Ended(Outcome::Succeeded);
    let mut filters = Vec::new();
    for phases in [
        vec![],
        vec![failed],
        vec![Phase::Queued, Phase::Running],
        vec![succeeded, failed, Phase::Queued],
        vec![Phase::Ended(Outcome::Lost)],
    ] {
        for (cluster, experiment, tag) in [
            (None, None, None),
            (Some("lab"), None, None),
            (None, Some("hoi"), None),
            (Some("local"), Some("hoi"), Some("a b")),
            (Some("nowhere"), None, None),
        ] {
            for limit in [None, Some(0), Some(1), Some(7)] {
                filters.push(Filter {
                    phases: phases.clone(),
                    cluster: cluster.map(str::to_owned),
                    experiment: experiment.map(str::to_owned),
                    tag: tag.map(str::to_owned),
                    limit,
                    ..Filter::default()
                });
            }
        }
    }
    filters
}

#[test]
fn entries_are_what_folding_all_runs_gives() {
    let history = history();
    let mut sweeps = 0;
    for filter in filters() {
        let (ours, expected) = (rows(&history, &filter), folded(&history, &filter));
        assert_eq!(ours, expected, "{filter:?}");
        sweeps += ours.iter().filter(|row| row.counts.total() > 1).count();
    }
    assert!(sweeps > 100, "{sweeps} sweeps are too few to show anything");
}

#[test]
fn a_history_without_the_indexes_gives_the_same() {
    let history = history();
    let with: Vec<_> = filters().iter().map(|one| rows(&history, one)).collect();
    history
        .connection
        .execute_batch("DROP INDEX runs_sweep_started; DROP INDEX runs_sweep_ended")
        .expect("they were there");
    let without: Vec<_> = filters().iter().map(|one| rows(&history, one)).collect();
    assert_eq!(with, without);
}

#[test]
fn runs_that_have_a_runner_can_be_brought_up_to_date() {
    let history = History::in_memory();
    let plan = plan("train", 0xabcd_0001, 5);
    let keys = submit(&history, &plan).expect("it is new");
    let active = |history: &History| -> Vec<i64> {
        let entries = history.entries(&Filter::default()).expect("it reads");
        let [Entry::Sweep(sweep)] = entries.as_slice() else {
            panic!("one sweep, not {entries:?}")
        };
        sweep.active.iter().map(|run| run.sequence).collect()
    };
    assert_eq!(active(&history), [keys[0]], "one stands for all that wait");
    advance(&history, keys[0], 3, 10);
    advance(&history, keys[1], 2, 20);
    advance(&history, keys[2], 1, 30);
    assert_eq!(active(&history), [keys[1], keys[2]]);
    for key in &keys[1..] {
        advance(&history, *key, 3, 40);
    }
    assert!(active(&history).is_empty(), "all have ended");
}
