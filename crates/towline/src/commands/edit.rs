//! `tow edit`: changes the tier, the time limit or the size of queued runs.

use super::{Report, hold};
use crate::context::Context;
use crate::runs::change;
use towline_core::change::{Change, Edit};
use towline_core::job::Tier;
use towline_core::quantity::{Memory, Span};
use towline_core::record::RunRecord;
use towline_core::resolve::{Shape, shape_of};
use towline_core::{Error, Result};
use towline_wire::report::change::Changed;

/// Change the tier, the time limit or the size of runs that wait.
///
/// The run keeps its id and its age. On Slurm the tier and the time limit can be changed, on this
/// machine all; where it cannot be done, `tow resubmit` submits the run again.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tow edit 60ce2fc7 --tier premium
  tow edit @ --time 4h -n 2   at most four hours, two GPUs in all")]
pub(crate) struct Args {
    /// Runs or sweeps: an id, the end of one, or @ for the latest.
    #[arg(value_name = "RUN", required = true)]
    runs: Vec<String>,
    /// premium, standard or basic.
    #[arg(long, value_parser = super::submit::parse_tier)]
    tier: Option<Tier>,
    /// Time limit of an attempt, such as 2h30m.
    #[arg(long)]
    time: Option<Span>,
    /// GPUs in all; nodes = GPUs / GPUs per node.
    #[arg(short = 'n', long, value_name = "GPUS", value_parser = super::count, allow_negative_numbers = true)]
    gpus: Option<u32>,
    /// Number of nodes.
    #[arg(long)]
    nodes: Option<u32>,
    /// CPUs per node.
    #[arg(long)]
    cpus: Option<u32>,
    /// Memory per node, such as 16G.
    #[arg(long)]
    memory: Option<Memory>,
}

impl Args {
    const fn has_size(&self) -> bool {
        self.gpus.is_some() || self.nodes.is_some() || self.cpus.is_some() || self.memory.is_some()
    }
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<Report> {
    if !args.has_size() && args.tier.is_none() && args.time.is_none() {
        return Err(Error::usage("`tow edit`: nothing is to be changed")
            .hint("say what: --tier, --time, -n, --nodes, --cpus or --memory"));
    }
    let runs = change::named(context, &args.runs)?;
    // Runs of different submissions may get different sizes.
    let mut groups: Vec<(Edit, Vec<RunRecord>)> = Vec::new();
    for run in runs {
        let edit = Edit {
            tier: args.tier,
            time: args.time,
            shape: if args.has_size() {
                Some(shape(context, &run, args)?)
            } else {
                None
            },
        };
        match groups.iter_mut().find(|(known, _)| *known == edit) {
            Some((_, runs)) => runs.push(run),
            None => groups.push((edit, vec![run])),
        }
    }
    let mut all = Changed::default();
    for (edit, runs) in groups {
        let changed = change::change(context, &runs, &Change::Edit(Box::new(edit)))?;
        all.changed.extend(changed.changed);
        all.unchanged.extend(changed.unchanged);
    }
    let hint = format!("look at it: tow show {}", args.runs.join(" "));
    Ok(Report::of(&all, |all| hold::text(all, "changed")).hint(hint))
}

/// The new size of a run: what its job asks for, with the options over it.
fn shape(context: &Context, run: &RunRecord, args: &Args) -> Result<Shape> {
    let submission = context.history()?.submission_of(&run.id)?;
    let mut job = submission
        .ok_or_else(|| Error::not_found(format!("the job of {} is not in the history", run.id)))?
        .plan
        .job;
    if let Some(edit) = &run.state.edited {
        edit.apply_to(&mut job.resources);
    }
    if args.gpus.is_some() {
        // `-n` decides the number of nodes, as at the submission.
        job.resources.nodes = None;
    }
    let resources = &mut job.resources;
    resources.nodes = args.nodes.or(resources.nodes);
    resources.cpus_per_node = args.cpus.or(resources.cpus_per_node);
    resources.memory = args.memory.or(resources.memory);
    let cluster = context.cluster(&run.cluster)?;
    let facts = cluster.remembered_facts();
    let facts = facts.map_or_else(|| cluster.facts_now(), Ok)?;
    shape_of(&job, args.gpus, facts.gpus_per_node())
}
