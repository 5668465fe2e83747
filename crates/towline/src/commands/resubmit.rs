//! `tow resubmit`: submits a run again.

mod order;

use super::submit::after::hint as order_hint;
use super::submit::machines::check_choice;
use super::{Report, abort};
use crate::context::Context;
use crate::output;
use crate::runs::freshen::freshen;
use std::path::PathBuf;
use towline_core::change::Edit;
use towline_core::counts::PhaseCounts;
use towline_core::job::{Job, Tier};
use towline_core::plan::Plan;
use towline_core::reason::Outcome;
use towline_core::record::RunRecord;
use towline_core::resolve::Resolved;
use towline_core::secret_name::SecretName;
use towline_core::state::Phase;
use towline_core::sweep::{Axis, Sweep};
use towline_core::{Error, Result, RunId};
use towline_engine::flow::CodePlace;
use towline_engine::flow::code;
use towline_engine::flow::{CodeChoice, Origin, Prepared, plan_for, with_defaults};
use towline_engine::flow::{reach, send};
use towline_engine::history::{History, Target};
use towline_host::crash;
use towline_wire::report::resubmit::{Repeat, Resubmitted};

/// Submit the same job again, with the code it had.
///
/// Command, code, data, size and environment are the same; the old run is aborted first. For a
/// sweep, the runs that failed, were cancelled or are lost are submitted again, as one new sweep.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tow resubmit 60ce2fc7
  tow resubmit @ -n 4            with four GPUs
  tow resubmit @ --latest-code   with what lies in its folder now
  tow resubmit 60ce --to lab     on another cluster
  tow resubmit @ --tier premium  where nobody evicts it
  tow resubmit @ --instance-type ND96isr_H100_v5    on other machines
  tow resubmit 60ce 91ab         two, in the order that the old ones had (`--after`)
  tow resubmit 60ce --failed     of a sweep, what failed and not what you cancelled
  tow resubmit 60ce --all        of a sweep, every run")]
pub(crate) struct Args {
    /// Runs or sweeps: an id, the end of one, or @ for the latest.
    #[arg(value_name = "RUN", required = true)]
    runs: Vec<String>,
    /// Submit to another cluster.
    #[arg(long, value_name = "CLUSTER")]
    to: Option<String>,
    /// Use today's code instead of the run's.
    #[arg(long)]
    latest_code: bool,
    /// GPUs in all.
    #[arg(short = 'n', long, value_name = "GPUS", value_parser = super::count, allow_negative_numbers = true)]
    gpus: Option<u32>,
    /// Use another tier: basic, standard or premium.
    #[arg(long, value_name = "TIER", value_parser = super::submit::parse_tier)]
    tier: Option<Tier>,
    /// Use another kind of machine, in the cluster's own word.
    #[arg(long, value_name = "TYPE")]
    instance_type: Option<String>,
    #[command(flatten)]
    order: order::OrderArgs,
    /// Only runs that failed or are lost, not those that were cancelled.
    #[arg(long, conflicts_with = "all")]
    failed: bool,
    /// For a sweep: every run, also those that succeeded or have not ended.
    #[arg(long)]
    all: bool,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<Report> {
    let history = context.history()?;
    let mut targets = args
        .runs
        .iter()
        .map(|text| history.find_to_change(text))
        .collect::<Result<Vec<_>>>()?;
    // A run can only wait for an older one, so the older one has its new id first.
    targets.sort_by_key(|target| target.runs().iter().map(|run| run.created).min());
    let mut prepared = Vec::new();
    // Every plan is made before any old run is touched: a refusal changes nothing.
    for target in targets {
        let again = prepare(context, args, &history, target, &prepared)?;
        prepared.push(again);
    }
    let (mut rows, mut orders) = (Vec::new(), Vec::new());
    for Again {
        target,
        runs,
        mut new,
    } in prepared
    {
        let active: Vec<RunId> = runs
            .iter()
            .filter(|run| !run.state.phase.is_ended())
            .map(|run| run.id.clone())
            .collect();
        if !active.is_empty() {
            abort::cancel_and_wait(context, &active)?;
        }
        crash::pass("client.resubmit.cancelled");
        send(context, &mut new)?;
        if !new.plan.after.is_empty() {
            orders.push(format!(
                "{}: {}",
                new.plan.id.short(),
                order_hint(&new.plan)
            ));
        }
        rows.push(Repeat {
            from: target.id().clone(),
            id: new.plan.id.clone(),
            runs: new.plan.runs.iter().map(|run| run.id.clone()).collect(),
        });
    }
    let hint = match rows.last() {
        Some(row) if row.runs.len() > 1 => format!("watch them: tow ps {}", row.id.short()),
        Some(row) => format!("its output: tow logs -f {}", row.id.short()),
        None => String::new(),
    };
    let ids: Vec<&str> = rows.iter().map(|row| row.id.as_str()).collect();
    let done = format!("submitted all the same: {}", ids.join(" "));
    let answer = Resubmitted { resubmitted: rows };
    let report = Report::of(&answer, text).done(done);
    let report = orders.into_iter().fold(report, Report::hint);
    Ok(report.hint(hint))
}

fn text(answer: &Resubmitted) -> String {
    super::lines(&answer.resubmitted, |row| row.id.to_string())
}

/// A run or sweep to submit again: the chosen runs, and the plan of the new ones.
struct Again {
    target: Target,
    runs: Vec<RunRecord>,
    new: Prepared,
}

/// Makes the plan. The old runs are not touched yet.
fn prepare(
    context: &Context,
    args: &Args,
    history: &History,
    target: Target,
    others: &[Again],
) -> Result<Again> {
    let again = chosen(context, history, &target, args)?;
    let submission = history.submission_of(&again[0].id)?.ok_or_else(|| {
        Error::not_found(format!("the job of {} is not in the history", target.id()))
    })?;
    let plan = submission.plan;
    if let Some(native) = plan.foreign() {
        return Err(Error::refused(format!(
            "{} was submitted by another tool, as {native}: its \
                code and its data were never here",
            target.id()
        ))
        .hint("submit it once with `tow submit`; from then on it can be done again"));
    }
    let mut job: Job = plan.job.clone();
    job.sweep = sweep_of(&again);
    if let Some(edit) = common_edit(&again) {
        edit.apply_to(&mut job.resources);
    }
    if matches!(target, Target::Run(_)) {
        // One run of a sweep keeps its values and its name.
        job.name.get_or_insert_with(|| again[0].name.clone());
    }
    let cluster = args.to.clone().unwrap_or_else(|| plan.cluster.clone());
    if args.to.is_some() {
        job.cluster = towline_core::job::OneOrMany::One(cluster.clone());
    }
    if cluster != plan.cluster {
        job = move_job(context, job, (&plan.cluster, &cluster), args.gpus, &target)?;
    }
    if let Some(tier) = args.tier {
        job.resources.tier = Some(tier);
    }
    check_choice(context, &cluster, args.instance_type.as_deref())?;
    if args.instance_type.is_some() {
        job.resources.instance_type.clone_from(&args.instance_type);
    }
    let origin = origin_for(context, args, &target, &plan, &cluster)?;
    let after = args.order.runs_before(context, history, &plan, others)?;
    let mut new = plan_for(context, job, &cluster, args.gpus, origin)?;
    new.plan.after = after;
    reach(&new)?;
    Ok(Again {
        target,
        runs: again,
        new,
    })
}

/// The job for another cluster. The defaults of the old cluster are already part of the job; those
/// of the new one fill the gaps.
fn move_job(
    context: &Context,
    mut job: Job,
    (old, new): (&str, &str),
    gpus: Option<u32>,
    target: &Target,
) -> Result<Job> {
    let sweep = std::mem::take(&mut job.sweep);
    leave(context, &mut job, old)?;
    if let Some(machine) = &job.resources.instance_type
        && context.cluster(new)?.caps().fixed_machines
    {
        output::hint(&format!(
            "`{new}` has machines of its own: `instance_type: {machine}` of {} is left \
                        out",
            target.id()
        ));
        job.resources.instance_type = None;
    }
    job = with_defaults(context.layers()?, job, new, gpus);
    job.sweep = sweep;
    Ok(job)
}

/// The source of the new run's code. Code without a snapshot cannot go to another cluster.
fn origin_for(
    context: &Context,
    args: &Args,
    target: &Target,
    plan: &Plan,
    cluster: &str,
) -> Result<Origin> {
    let mut origin = origin(context, target, &plan.resolved, args.latest_code)?;
    if matches!(origin.code, CodeChoice::InPlace)
        && plan.is_here()
        && !context.cluster(cluster)?.is_here()
        && code::stays(&origin.place).is_none()
    {
        if !args.latest_code {
            return Err(Error::refused(format!(
                "{} ran in its folder itself: there is no frozen code of it that could travel \
                        to `{cluster}`",
                target.id()
            ))
            .hint("`--latest-code` takes what lies in its folder now"));
        }
        origin.code = CodeChoice::Today { any_size: true };
    }
    Ok(origin)
}

/// Removes native options that the job has only because all jobs of the old cluster have them.
fn leave(context: &Context, job: &mut Job, old: &str) -> Result<()> {
    let Some(usual) = context
        .layers()?
        .cluster(old)
        .ok()
        .and_then(|cluster| cluster.job)
    else {
        return Ok(());
    };
    let (own, usual) = (&mut job.resources, &usual.resources);
    if own.instance_type == usual.instance_type {
        own.instance_type = None;
    }
    if own.location == usual.location {
        own.location = towline_core::job::OneOrMany::None;
    }
    if own.account == usual.account {
        own.account = None;
    }
    if own.native == usual.native {
        own.native.clear();
    }
    Ok(())
}

/// The source of the same code: its snapshot, or the present content of its folder.
fn origin(
    context: &Context,
    target: &Target,
    resolved: &Resolved,
    latest_code: bool,
) -> Result<Origin> {
    let environment = same_environment(context, resolved)?;
    let (root, code) = match &resolved.code {
        Some(code) if latest_code => (
            PathBuf::from(&code.root),
            CodeChoice::Today { any_size: true },
        ),
        Some(code) => (
            PathBuf::from(&code.root),
            CodeChoice::SameAs(code.clone(), resolved.git.clone()),
        ),
        None => (PathBuf::from(&resolved.workdir), CodeChoice::InPlace),
    };
    let workdir = PathBuf::from(&resolved.workdir);
    let needs_folder = !matches!(code, CodeChoice::SameAs(..));
    if needs_folder && !workdir.is_dir() {
        return Err(Error::refused(format!(
            "the folder of {} is gone: {}",
            target.id(),
            workdir.display()
        ))
        .hint("submit it from another folder with `tow submit --from`"));
    }
    Ok(Origin {
        place: CodePlace { root, workdir },
        environment,
        resubmits: Some(target.id().clone()),
        code,
        data: Some((resolved.io.clone(), resolved.copy.clone())),
    })
}

/// The environment of the first submission. Secrets were not stored, so they are read again.
fn same_environment(context: &Context, resolved: &Resolved) -> Result<Vec<(String, String)>> {
    if resolved.secrets.iter().any(SecretName::is_token) {
        return Err(towline_core::token::not_kept());
    }
    let names: Vec<String> = resolved.secrets.iter().map(ToString::to_string).collect();
    let mut environment: Vec<(String, String)> = resolved.inherited.clone().into_iter().collect();
    let keyring = towline_host::surroundings::keyring(&names, context.environment());
    for name in names {
        let here = context
            .environment()
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, value)| value.clone());
        let value = here
            .or_else(|| keyring.get(&name).map(|value| value.expose().to_owned()))
            .ok_or_else(|| {
                Error::refused(format!("the secret `{name}` has no value here"))
                    .hint(format!("it is never kept: export {name}=… and try again"))
            })?;
        environment.push((name, value));
    }
    Ok(environment)
}

/// The runs to submit again: of a sweep, those that did not end well, unless all are wanted.
fn chosen(
    context: &Context,
    history: &History,
    target: &Target,
    args: &Args,
) -> Result<Vec<RunRecord>> {
    let is_sweep = matches!(target, Target::Sweep(..));
    let mut runs = target.runs().to_vec();
    freshen(context, history, &mut runs)?;
    if args.all || !(is_sweep || args.failed) {
        return Ok(runs);
    }
    let counts: PhaseCounts = runs.iter().map(|run| run.state.phase).collect();
    runs.retain(|run| match run.state.phase {
        Phase::Ended(Outcome::Failed | Outcome::Lost) => true,
        Phase::Ended(Outcome::Cancelled) => !args.failed,
        _ => false,
    });
    if !runs.is_empty() {
        return Ok(runs);
    }
    let id = target.id();
    Err(if is_sweep {
        Error::refused(format!("no run of {id} failed: {counts}"))
            .hint("`--all` does every run again")
    } else {
        Error::refused(format!("{id} has not failed: {counts}"))
            .hint("without `--failed` it is done again all the same")
    })
}

/// What the user changed of all of them since their submission.
fn common_edit(runs: &[RunRecord]) -> Option<&Edit> {
    let first = runs.first()?.state.edited.as_deref()?;
    let is_same = |run: &RunRecord| run.state.edited.as_deref() == Some(first);
    runs.iter().all(is_same).then_some(first)
}

/// The combinations to run again, as a sweep of one axis: rows of values that change together.
fn sweep_of(runs: &[RunRecord]) -> Sweep {
    let names: Vec<String> = runs[0]
        .parameters
        .iter()
        .map(|(name, _)| name.clone())
        .collect();
    if names.is_empty() {
        return Sweep::default();
    }
    let choices = runs
        .iter()
        .map(|run| {
            run.parameters
                .iter()
                .map(|(_, value)| value.clone())
                .collect()
        })
        .collect();
    Sweep(vec![Axis { names, choices }])
}
