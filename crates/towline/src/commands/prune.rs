//! `tow prune`: removes old runs, after showing a plan.

use super::Report;
use crate::context::Context;
use crate::output;
use crate::output::local_time;
use crate::output::progress::Bar;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use towline_backends::local::forget;
use towline_core::cluster::RunRef;
use towline_core::quantity::{Memory, Span};
use towline_core::state::Phase;
use towline_core::time::Moment;
use towline_core::{Result, RunId};
use towline_engine::history::{Filter, History, PruneRow};
use towline_wire::layout::StateFolder;
use towline_wire::report::Time;
use towline_wire::report::prune::{OldRun, Pruned};

/// Remove old ended runs with their logs and code; a plan first.
///
/// Shows the plan; `--yes` carries it out.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tow prune                              what would go: ended more than 30 days ago
  tow prune --older-than 7d --keep 100   but never the newest hundred
  tow prune --older-than 7d --yes        do it")]
pub(crate) struct Args {
    /// Only runs that ended longer ago than this.
    #[arg(long, default_value = "30d", value_name = "TIME")]
    older_than: Span,
    /// Keep this many of the newest runs, whatever their age.
    #[arg(long, default_value_t = 0, value_name = "N")]
    keep: usize,
    /// Also drop runs here whose cluster cannot be reached; their files stay there.
    #[arg(long)]
    abandon: bool,
    /// Carry out the plan.
    #[arg(long)]
    yes: bool,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<Report> {
    let nothing = || Report::of(&Pruned::default(), text).hint("nothing is that old");
    let Some(history) = context.maybe_history()? else {
        return Ok(nothing());
    };
    let now = towline_host::clock::now();
    let before = Moment(now.0 - i64::try_from(args.older_than.0 * 1000).unwrap_or(i64::MAX));
    let mut rows = history.prunable(before, args.keep)?;
    let state = context.state()?;
    if args.keep == 0 && is_full(state) {
        rows.extend(unwritten(context, &history, before)?);
    }
    if args.yes {
        remove_orphans(state, &history)?;
    }
    if rows.is_empty() {
        return Ok(nothing());
    }
    let mut far = far_runs(&history, &rows)?;
    let kept = if args.yes {
        unreachable(context, &history, &far, args.abandon)
    } else {
        HashSet::new()
    };
    let rows: Vec<_> = rows
        .into_iter()
        .filter(|row| !kept.contains(&row.id))
        .collect();
    far.retain(|_, runs| runs.iter().any(|run| !kept.contains(run)));
    if rows.is_empty() {
        let answer = Pruned {
            done: true,
            kept: Some(kept.into_iter().collect()),
            ..Pruned::default()
        };
        return Ok(Report::of(&answer, text).hint("nothing was removed"));
    }
    let total = rows.len() as u64;
    let (sized, gone) = (AtomicU64::new(0), AtomicU64::new(0));
    let sizes = rows
        .iter()
        .map(|row| size(&state.run(&row.id)))
        .inspect(|_| {
            sized.fetch_add(1, Ordering::Relaxed);
        });
    let bytes: u64 = Bar::new("looking at runs").watch_count(&sized, total, || sizes.sum());
    let runs: Vec<RunId> = rows.iter().map(|row| row.id.clone()).collect();
    if args.yes {
        drop(history);
        make_room(state, &runs);
        Bar::new("removing runs").watch_count(&gone, total, || remove(state, &runs, &gone))?;
    }
    let details = rows.into_iter().map(|row| OldRun {
        sweep: (row.submission != row.id).then_some(row.submission),
        id: row.id,
        ended: Time(row.ended),
    });
    let answer = Pruned {
        runs,
        bytes,
        done: args.yes,
        kept: Some(kept.into_iter().collect()),
        details: details.collect(),
        clusters: far.into_keys().collect(),
    };
    let report = Report::of(&answer, text);
    Ok(if args.yes {
        report
    } else {
        report.hint("nothing was changed; --yes carries it out")
    })
}

fn text(answer: &Pruned) -> String {
    if answer.runs.is_empty() {
        return String::new();
    }
    let verb = if answer.done {
        "removed"
    } else {
        "would remove"
    };
    let mut text = format!(
        "{verb} {} run(s), {}\n",
        answer.runs.len(),
        Memory(answer.bytes)
    );
    let lines = lines(&answer.details);
    for line in lines.iter().take(SHOWN_LINES) {
        text += &format!("  {line}\n");
    }
    if lines.len() > SHOWN_LINES {
        text += &format!("  … and {} more\n", lines.len() - SHOWN_LINES);
    }
    if !answer.clusters.is_empty() {
        let names = answer.clusters.iter().map(|name| format!("`{name}`"));
        text += &format!(
            "with what {} keeps of them: jobs, logs and results; what was adopted stays there\n",
            names.collect::<Vec<_>>().join(", ")
        );
    }
    text
}

/// How many runs and sweeps the plan names.
const SHOWN_LINES: usize = 20;

/// One line for each run; the runs of a sweep have one together.
fn lines(runs: &[OldRun]) -> Vec<String> {
    let mut groups: Vec<(&RunId, Vec<&OldRun>)> = Vec::new();
    for run in runs {
        let id = run.sweep.as_ref().unwrap_or(&run.id);
        match groups.last_mut() {
            // The runs of a sweep follow each other.
            Some((known, group)) if *known == id => group.push(run),
            _ => groups.push((id, vec![run])),
        }
    }
    let line = |(id, group): &(&RunId, Vec<&OldRun>)| match group.as_slice() {
        [run] => format!("{}  ended {}", run.id, local_time::shown(run.ended.0)),
        several => {
            let last = several.iter().map(|run| run.ended).max();
            let last = last.map(|ended| local_time::shown(ended.0));
            format!(
                "{id}  {} runs of a sweep, the last ended {}",
                several.len(),
                last.unwrap_or_default()
            )
        }
    };
    groups.iter().map(line).collect()
}

/// The runs that clusters keep something of, by cluster; what was adopted is not ours to drop
/// there.
fn far_runs(history: &History, rows: &[PruneRow]) -> Result<BTreeMap<String, Vec<RunId>>> {
    let mut clusters: HashMap<&RunId, Option<String>> = HashMap::new();
    let mut far: BTreeMap<String, Vec<RunId>> = BTreeMap::new();
    for row in rows {
        if !clusters.contains_key(&row.submission) {
            let plan = history
                .submission(&row.submission)?
                .map(|submission| submission.plan);
            clusters.insert(
                &row.submission,
                plan.filter(|plan| !plan.is_here() && plan.adopted.is_none())
                    .map(|plan| plan.cluster),
            );
        }
        if let Some(Some(cluster)) = clusters.get(&row.submission) {
            far.entry(cluster.clone()).or_default().push(row.id.clone());
        }
    }
    Ok(far)
}

/// The runs that stay because their cluster cannot be reached: if they were forgotten here, their
/// files there would have no owner.
fn unreachable(
    context: &Context,
    history: &History,
    far: &BTreeMap<String, Vec<RunId>>,
    abandon: bool,
) -> HashSet<RunId> {
    let mut kept = HashSet::new();
    for (name, runs) in far {
        let Err(error) = drop_there(context, history, name, runs) else {
            continue;
        };
        let what = if abandon {
            "what it keeps of them stays there"
        } else {
            "its runs stay; `--abandon` drops them here alone"
        };
        output::status(&format!(
            "warning: `{name}` cannot be told to drop {} run(s): {error}; {what}",
            runs.len()
        ));
        if !abandon {
            kept.extend(runs.iter().cloned());
        }
    }
    kept
}

fn drop_there(context: &Context, history: &History, name: &str, runs: &[RunId]) -> Result<()> {
    let cluster = context.cluster(name)?;
    if cluster.is_here() {
        return Ok(());
    }
    cluster.sign_in()?;
    let far = runs.iter().map(|run| {
        Ok(history.run(run)?.map_or_else(
            || RunRef::of(run),
            |record| RunRef::known(run, &record.state),
        ))
    });
    cluster.forget(&far.collect::<Result<Vec<_>>>()?)
}

/// Removes folders first if the disk is full, because the history cannot be changed until there is
/// room.
fn make_room(state: &StateFolder, ended: &[RunId]) {
    for run in ended {
        if !is_full(state) {
            return;
        }
        let _ = towline_host::filesystem::remove_tree(&state.run(run));
    }
}

fn is_full(state: &StateFolder) -> bool {
    towline_host::filesystem::room(state.root()).is_ok_and(|room| room.is_full())
}

/// Runs that have ended by their runners' journals, while the full disk keeps their end out of the
/// history. One of them may be what fills the disk.
fn unwritten(context: &Context, history: &History, before: Moment) -> Result<Vec<PruneRow>> {
    let phases = vec![Phase::Queued, Phase::Running];
    let mut records = history.list(&Filter {
        phases,
        ..Filter::default()
    })?;
    crate::runs::freshen::freshen(context, history, &mut records)?;
    let old = records
        .into_iter()
        .filter(|record| record.state.phase.is_ended());
    Ok(old
        .filter_map(|record| {
            Some(PruneRow {
                key: record.sequence,
                submission: record.sweep.unwrap_or_else(|| record.id.clone()),
                id: record.id,
                ended: record.ended.filter(|ended| *ended < before)?,
            })
        })
        .collect())
}

/// How many runs one message to the daemon removes, because other clients wait meanwhile.
const PRUNE_BATCH: usize = 500;

fn remove(state: &StateFolder, runs: &[RunId], gone: &AtomicU64) -> Result<()> {
    for part in runs.chunks(PRUNE_BATCH) {
        forget(state, part)?;
        gone.fetch_add(part.len() as u64, Ordering::Relaxed);
    }
    Ok(())
}

/// Removes folders of runs that are not in the history: an earlier prune could not remove them.
fn remove_orphans(state: &StateFolder, history: &History) -> Result<()> {
    for entry in fs::read_dir(state.runs()).into_iter().flatten().flatten() {
        let Some(run) = entry
            .file_name()
            .into_string()
            .ok()
            .and_then(|name| RunId::try_from(name).ok())
        else {
            continue;
        };
        if !history.knows(&run)? {
            let _ = towline_host::filesystem::remove_tree(&entry.path());
        }
    }
    Ok(())
}

/// The size of a run's folder. Links do not count.
fn size(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(meta) if meta.is_dir() => size(&entry.path()),
            Ok(meta) if meta.is_file() => meta.len(),
            _ => 0,
        })
        .sum()
}
