//! `tow snapshot prune`: drops snapshots, after showing a plan.

use super::{Report, alone, with_store};
use crate::context::Context;
use std::collections::HashMap;
use towline_core::Result;
use towline_core::quantity::{Memory, Span};
use towline_snapshot::digest::Digest;
use towline_snapshot::prune::{Policy, PrunePlan, carry_out, plan};
use towline_snapshot::store::{Blob, BlobStore};
use towline_wire::report::snapshot::SnapshotsPruned;

/// How long unneeded content stays in a store that others use.
const DELETION_GRACE_MILLIS: i64 = 24 * 3_600_000;

/// Drop snapshots that no run needs, with their content. Shows the plan; `--yes` carries it out.
///
/// Snapshots of runs in the history stay: `tow prune` removes old runs.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tow snapshot prune                      what would go: taken more than 7 days ago, needed by no \
      run
  tow snapshot prune --older-than 1d --yes
  tow snapshot prune --in research --older-than 90d")]
pub(crate) struct Args {
    /// Only snapshots that were taken longer ago than this.
    #[arg(long, default_value = "7d", value_name = "TIME")]
    older_than: Span,
    /// Drop those in a datastore, where others may need snapshots that we do not know of [default:
    /// this machine].
    #[arg(long = "in", value_name = "DATASTORE")]
    store: Option<String>,
    /// Only show the plan, as without `--yes`.
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
    /// Carry out the plan.
    #[arg(long)]
    yes: bool,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<Report> {
    match &args.store {
        None => {
            let alone = alone(context)?;
            if args.yes {
                alone.store.clear_incoming();
            }
            prune(context, args, &alone.store, None)
        }
        Some(name) => with_store(context, Some(name), |store| {
            prune(context, args, store, Some(DELETION_GRACE_MILLIS))
        }),
    }
}

fn prune(
    context: &Context,
    args: &Args,
    store: &dyn BlobStore,
    grace: Option<i64>,
) -> Result<Report> {
    let needed: HashMap<String, usize> = context
        .maybe_history()?
        .map(|history| history.runs_by_snapshot())
        .transpose()?
        .unwrap_or_default();
    let now = towline_host::clock::now().0;
    let before = now - i64::try_from(args.older_than.0 * 1000).unwrap_or(i64::MAX);
    let keep = |root: &Blob, stored: Option<i64>| {
        needed.contains_key(&root.digest().to_string())
            || stored.is_none_or(|stored| stored >= before)
    };
    let policy = Policy {
        keep: &keep,
        grace,
        now,
    };
    let plan = plan(store, &policy)?;
    if args.yes {
        carry_out(store, &plan, &policy)?;
    }
    Ok(report(&plan, args.yes, grace.is_some()))
}

fn report(plan: &PrunePlan, done: bool, shared: bool) -> Report {
    let names = |rows: &[(Digest, u64)]| {
        rows.iter()
            .map(|(id, _)| id.to_string())
            .collect::<Vec<_>>()
    };
    let roots = plan.snapshots.iter();
    let answer = SnapshotsPruned {
        snapshots: roots.map(|(root, _)| root.digest().to_string()).collect(),
        packs: names(&plan.packs),
        doomed: names(&plan.newly_listed),
        kept: plan.kept,
        bytes: plan.frees(),
        done,
    };
    if plan.is_empty() {
        return Report::of(&answer, |_| String::new())
            .hint(format!("nothing to drop; {} kept", plan.kept));
    }
    let report = Report::of(&answer, |answer| text(answer, shared));
    if done {
        report
    } else {
        report.hint("nothing was changed; --yes carries it out")
    }
}

fn text(answer: &SnapshotsPruned, shared: bool) -> String {
    let verb = if answer.done { "dropped" } else { "would drop" };
    let mut text = format!(
        "{verb} {} snapshots and {} packs, {}; {} kept\n",
        answer.snapshots.len(),
        answer.packs.len(),
        Memory(answer.bytes),
        answer.kept
    );
    for id in answer.snapshots.iter().take(20) {
        text += &format!("  {}\n", &id[..12]);
    }
    if answer.snapshots.len() > 20 {
        text += &format!("  … and {} more\n", answer.snapshots.len() - 20);
    }
    if shared && !answer.doomed.is_empty() {
        text += &format!(
            "{} packs are marked; a prune a day from now deletes them, unless something needs \
                them by then\n",
            answer.doomed.len()
        );
    }
    text
}
