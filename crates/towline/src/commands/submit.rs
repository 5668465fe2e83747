//! `tow submit` and `tow run`.

pub(crate) mod after;
pub(crate) mod check;
pub(super) mod machines;

use super::{Report, logs};
use crate::context::Context;
use crate::output;
use crate::runs::follow::{Followed, Label, View, follow};
use crate::wiring::agent;
use std::ffi::OsString;
use std::path::PathBuf;
use towline_core::cluster::LogSource;
use towline_core::command::Program;
use towline_core::config;
use towline_core::job::{Job, Launch, OneOrMany, Tier};
use towline_core::plan::{self, Plan};
use towline_core::quantity::{Memory, Span};
use towline_core::resolve::Resolved;
use towline_core::state::RunState;
use towline_core::{Error, Result, RunId};
use towline_engine::flow;
use towline_engine::flow::send;
use towline_engine::flow::{CodeChoice, Origin, Prepared, can_start_now, plan_for, with_defaults};
use towline_wire::report::Run;
use towline_wire::report::submit::{DryRun, Submitted};

/// Submit a command; it runs as soon as there is room.
///
/// `tow`'s own options end at the first word of the command. Several words run as they are, without
/// a shell; a single word with blanks or shell characters runs in `sh -c`.
#[derive(Debug, clap::Args, Default)]
#[command(after_help = "Examples:
  tow submit python train.py --lr 0.1
  tow submit -n 1 --time 2h python train.py        one GPU, at most two hours
  tow submit --instance-type ND96amrs_A100_v4 -n 8 python train.py    on machines of that kind
  tow submit 'make && ./bench | tee out.txt'       one word with blanks: a shell runs it
  tow submit -f job.yaml --dry-run                 what would be sent, and nothing sent
  tow submit --sweep lr=0.1,0.01 --sweep seed=1-3 python train.py --lr '${{lr}}' --seed '${{seed}}'
  tow submit --from @ -n 2                         the latest again, with two GPUs
  tow submit --native=--partition=gpu python x.py  an option of the cluster's own
  tow submit --after @ python evaluate.py          once the latest has succeeded")]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) job: JobArgs,

    /// Show its output as it comes and exit with its exit code, like `tow run`.
    #[arg(long)]
    pub(crate) follow: bool,
}

/// Submit, show the output, and exit with the run's exit code.
///
/// The output is shown as it comes. Ctrl-C leaves the run alone and prints how to abort it. All
/// options of `tow submit` work.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tow run echo hello
  tow run -n 1 python train.py
  tow run -f job.yaml")]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) job: JobArgs,
}

#[derive(Debug, clap::Args, Default)]
pub(crate) struct JobArgs {
    /// The cluster to run on [default: the configured one, else this machine].
    #[arg(short, long, value_name = "CLUSTER")]
    pub(crate) cluster: Option<String>,
    /// GPUs in all; nodes = GPUs / GPUs per node.
    #[arg(short = 'n', long, value_name = "GPUS", value_parser = super::count, allow_negative_numbers = true)]
    pub(crate) gpus: Option<u32>,
    /// A job file, `-` for standard input; options here win over it.
    #[arg(short, long, value_name = "JOB.yaml")]
    pub(crate) file: Option<PathBuf>,
    /// Start from a former run's job, with today's code; `tow resubmit` uses the run's own code.
    #[arg(long, value_name = "RUN", conflicts_with = "file")]
    pub(crate) from: Option<String>,
    /// Begin only when these runs have succeeded; RUN:ended, RUN:failed for other conditions.
    #[arg(long, value_name = "RUN[,RUN]", value_delimiter = ',')]
    pub(crate) after: Vec<String>,
    /// Print what would be sent and send nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Values to try, one run each: `lr=0.1,0.01`, `seed=1-3`, `(bs,acc)=(8,4),(16,2)`.
    #[arg(long, value_name = "K=V1,V2")]
    pub(crate) sweep: Vec<String>,
    /// The run's name [default: the program's].
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// The experiment it belongs to.
    #[arg(long)]
    pub(crate) experiment: Option<String>,
    /// A tag; may be repeated.
    #[arg(long = "tag", value_name = "TAG")]
    pub(crate) tags: Vec<String>,
    /// premium, standard or basic.
    #[arg(long, value_parser = parse_tier)]
    pub(crate) tier: Option<Tier>,
    /// Number of nodes.
    #[arg(long)]
    pub(crate) nodes: Option<u32>,
    /// Kind of machine, in the cluster's own word: ND96amrs_A100_v4; on Slurm h200, or a feature.
    #[arg(long, value_name = "TYPE")]
    pub(crate) instance_type: Option<String>,
    /// CPUs per node.
    #[arg(long)]
    pub(crate) cpus: Option<u32>,
    /// Memory per node, such as 16G.
    #[arg(long)]
    pub(crate) memory: Option<Memory>,
    /// Time limit of an attempt, such as 2h30m.
    #[arg(long)]
    pub(crate) time: Option<Span>,
    /// Number of ranks: per_node, per_gpu, once, or a number per node.
    #[arg(long)]
    pub(crate) launch: Option<Launch>,
    /// An option for the cluster's scheduler, passed on as it is; may be repeated.
    #[arg(long, value_name = "OPTION", allow_hyphen_values = true)]
    pub(crate) native: Vec<String>,
    /// A variable for the job; may be repeated.
    #[arg(long = "env", value_name = "NAME=VALUE")]
    pub(crate) env: Vec<String>,
    /// A variable whose value is stored apart as a secret; may be repeated.
    #[arg(long = "secret", value_name = "NAME")]
    pub(crate) secrets: Vec<String>,
    /// Hold the nodes this long for `tow ssh` if a rank fails.
    #[arg(long, value_name = "TIME")]
    pub(crate) hold_on_failure: Option<Span>,
    /// Run in this folder itself instead of a snapshot of the code.
    #[arg(long)]
    pub(crate) in_place: bool,
    /// Take a snapshot of any number of files and any size.
    #[arg(long, conflicts_with = "in_place")]
    pub(crate) any_size: bool,
    /// The command and its arguments.
    #[arg(trailing_var_arg = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}

pub(super) fn parse_tier(text: &str) -> std::result::Result<Tier, String> {
    match text {
        "premium" => Ok(Tier::Premium),
        "standard" => Ok(Tier::Standard),
        "basic" => Ok(Tier::Basic),
        _ => Err("a tier is premium, standard or basic".to_owned()),
    }
}

pub(crate) fn run(context: &Context, args: Args) -> Result<Report> {
    if args.follow {
        return run_and_follow(context, RunArgs { job: args.job });
    }
    let dry_run = args.job.dry_run;
    let mut prepared = prepare(context, args.job)?;
    let admission = agent::admit(context, &mut prepared.plan)?;
    if dry_run {
        return Ok(Report::of(&DryRun::from(&prepared.plan), planned));
    }
    send(context, &mut prepared)?;
    drop(admission);
    submitted_report(context, &prepared.plan)
}

fn submitted_report(context: &Context, plan: &Plan) -> Result<Report> {
    let mut records = if context.json {
        context.history()?.runs_of(&plan.id)?
    } else {
        Vec::new()
    };
    if !plan.is_here() {
        let state = context.state()?;
        for record in &mut records {
            crate::runs::far::freshness(state, record);
        }
    }
    let answer = Submitted {
        id: plan.id.clone(),
        cluster: plan.cluster.clone(),
        runs: records.iter().map(Run::from).collect(),
    };
    let short = plan.id.short();
    let mut report = Report::of(&answer, |answer| format!("{}\n", answer.id))
        .done(format!("{} is submitted all the same", plan.id));
    for note in &plan.notes {
        report = report.hint(note.clone());
    }
    if plan.runs.len() > 1 {
        return Ok(report.hint(format!(
            "{} runs; watch them: tow ps {short}    wait for all: tow wait {short}",
            plan.runs.len()
        )));
    }
    if !plan.after.is_empty() {
        report = report.hint(after::hint(plan));
    }
    let look = if plan.job.holds_for_ssh() {
        format!("when it runs: tow ssh {short}")
    } else {
        format!("its output: tow logs -f {short}")
    };
    Ok(report.hint(format!("{look}    end it: tow abort {short}")))
}

/// What would be sent.
fn planned(answer: &DryRun) -> String {
    let DryRun {
        id, cluster, kind, ..
    } = answer;
    let is_here = config::is_this_machine(kind);
    let mut text = format!("would submit {id} to `{cluster}` ({kind})\n");
    text += &if is_here {
        answer.request.text.clone()
    } else {
        description(&answer.resolved.resolved)
    };
    if answer.runs.iter().any(|run| !run.parameters.is_empty()) {
        text += &format!("runs      {}\n", answer.runs.len());
        for run in answer.runs.iter().take(20) {
            let values: Vec<String> = run
                .parameters
                .iter()
                .map(|(name, value)| format!("{name}={value}"))
                .collect();
            text += &format!("          {}\n", values.join(" "));
        }
        if answer.runs.len() > 20 {
            text += &format!("          … and {} more\n", answer.runs.len() - 20);
        }
    }
    for before in &answer.after {
        text += &format!("after     {} has {}\n", before.run, before.when.word());
    }
    for note in &answer.notes {
        text += &format!("note      {note}\n");
    }
    if !is_here {
        // What is sent there, as it is.
        text += &format!("\n{}", answer.request.text);
    }
    text
}

/// A request in the words of another scheduler does not say all that travels.
fn description(resolved: &Resolved) -> String {
    let shape = &resolved.shape;
    let cpus = shape
        .cpus_per_node
        .unwrap_or_else(|| shape.ranks_on(0).max(1));
    let takes = plan::takes(
        cpus,
        shape.gpus_per_node,
        shape.memory.map_or(0, |memory| memory.0),
    );
    let takes = if shape.nodes > 1 {
        format!("{takes} on each of {} nodes", shape.nodes)
    } else {
        takes
    };
    plan::describe(resolved, &takes, false)
}

pub(crate) fn run_and_follow(context: &Context, args: RunArgs) -> Result<Report> {
    if args.job.dry_run {
        return run(
            context,
            Args {
                job: args.job,
                follow: false,
            },
        );
    }
    let mut prepared = prepare(context, args.job)?;
    let [one] = prepared.plan.runs.as_slice() else {
        return Err(
            Error::usage("`tow run` shows one run; this is a sweep of several")
                .hint("use `tow submit`, then `tow logs -f @` or `tow wait @`"),
        );
    };
    let one = one.clone();
    let admission = agent::admit(context, &mut prepared.plan)?;
    send(context, &mut prepared)?;
    drop(admission);
    for note in &prepared.plan.notes {
        output::hint(note);
    }
    output::set_parting_words(goes_on("the reader of its output is gone", &one.id));
    let world = prepared.plan.resolved.shape.world();
    let view = View {
        run: one.id.clone(),
        sources: (0..world).map(LogSource::Rank).collect(),
        attempt: 1,
        one_attempt: false,
        grep: None,
        tail: None,
        follow: true,
        narrate: !context.json,
        label: Label::None,
    };
    match follow(context, &view, RunState::default())? {
        Followed::Ended(state) => Ok(logs::ended_report(context, &one.id, &state)),
        Followed::Detached | Followed::Shown => Ok(detached(&one.id)),
    }
}

fn detached(id: &RunId) -> Report {
    Report {
        last_words: Some(goes_on("\ndetached", id)),
        code: 130,
        ..Report::default()
    }
}

fn goes_on(why: &str, id: &RunId) -> String {
    let short = id.short();
    format!("{why}; {id} goes on\n  see it again: tow logs -f {short}    end it: tow abort {short}")
}

impl JobArgs {
    /// The arguments of a job that only holds its nodes.
    pub(crate) fn holding(cluster: Option<String>, gpus: Option<u32>) -> Self {
        Self {
            cluster,
            gpus,
            name: Some("alloc".to_owned()),
            command: vec!["ssh".into()],
            ..Self::default()
        }
    }
}

/// Makes a plan from options: the job file or a former run, then the options over it.
pub(crate) fn prepare(context: &Context, args: JobArgs) -> Result<Prepared> {
    if !args.dry_run && args.command.iter().any(|word| word == "--dry-run") {
        output::hint(
            "`--dry-run` after the program belongs to the program; before it, tow submits nothing",
        );
    }
    prepare_with(context, args, |_| {})
}

/// The same, with a change of the job for which there is no option.
pub(crate) fn prepare_with(
    context: &Context,
    args: JobArgs,
    change: impl FnOnce(&mut Job),
) -> Result<Prepared> {
    let mut job = base_job(context, &args)?;
    let before = after::runs_before(context, &args.after)?;
    let total_gpus = args.gpus;
    let (cluster_option, machine) = (args.cluster.clone(), args.instance_type.clone());
    let (in_place, any_size) = (args.in_place, args.any_size);
    overlay(&mut job, args)?;
    change(&mut job);
    agent::check(&job)?;
    if let Some(cluster) = &cluster_option {
        job.cluster = OneOrMany::One(cluster.clone());
    }
    let candidates = match job.cluster.as_slice() {
        [] => vec![context.layers()?.default_cluster().to_owned()],
        names => names.to_vec(),
    };
    let is_choice = candidates.len() > 1;
    // One that cannot take it is passed over; one that does not exist is a slip.
    for cluster in &candidates {
        context.layers()?.cluster(cluster)?;
    }
    // The first that can start it now; else the first that can start it at all.
    let (mut refusal, mut fallback) = (None, None);
    for cluster in &candidates {
        let can_choose = machines::check_choice(context, cluster, machine.as_deref());
        let planned = can_choose.and_then(|()| {
            prepare_on(
                context,
                job.clone(),
                cluster,
                total_gpus,
                in_place,
                any_size,
            )
        });
        let planned = planned.map(|mut prepared| {
            prepared.plan.after.clone_from(&before);
            prepared
        });
        match planned {
            Ok(prepared) if !is_choice || can_start_now(&prepared) => return Ok(prepared),
            Ok(prepared) => drop(fallback.get_or_insert(prepared)),
            Err(error) => drop(refusal.get_or_insert(error)),
        }
    }
    match (fallback, refusal) {
        (Some(prepared), _) => Ok(prepared),
        (None, Some(error)) => Err(error),
        (None, None) => Err(Error::bug("no cluster was tried")),
    }
}

fn prepare_on(
    context: &Context,
    job: Job,
    cluster: &str,
    total_gpus: Option<u32>,
    in_place: bool,
    any_size: bool,
) -> Result<Prepared> {
    let job = with_defaults(context.layers()?, job, cluster, total_gpus);
    let place = flow::code_place(&job, context.folder()?)?;
    let here = context.cluster(cluster)?.is_here();
    if in_place && !here {
        return Err(Error::refused(format!(
            "`--in-place`: this folder is not on cluster `{cluster}`"
        ))
        .hint("leave it out: tow copies the code there"));
    }
    let holds_only = job
        .tags
        .iter()
        .any(|tag| tag == crate::reach::aliases::ALLOCATION);
    let code = if holds_only || here && (in_place || context.layers()?.config.in_place) {
        CodeChoice::InPlace
    } else {
        CodeChoice::Today { any_size }
    };
    let origin = Origin {
        place,
        environment: context.environment().to_vec(),
        resubmits: None,
        code,
        data: None,
    };
    plan_for(context, job, cluster, total_gpus, origin)
}

fn base_job(context: &Context, args: &JobArgs) -> Result<Job> {
    if let Some(file) = &args.file {
        return flow::read_job(file);
    }
    let Some(from) = &args.from else {
        return Ok(Job::default());
    };
    let history = context.history()?;
    let target = history.find_to_read(from)?;
    let submission = history
        .submission_of(&target.runs()[0].id)?
        .ok_or_else(|| Error::not_found(format!("the job of {from} is not in the history")))?;
    Ok(submission.plan.job)
}

fn overlay(job: &mut Job, args: JobArgs) -> Result<()> {
    let words = args
        .command
        .into_iter()
        .map(crate::text)
        .collect::<Result<Vec<_>>>()?;
    if words.as_slice() == ["ssh"] {
        // A job that only keeps its nodes, for `tow ssh`.
        job.command = Job::only_for_ssh();
        job.script = None;
        job.name.get_or_insert_with(|| "ssh".into());
    } else if let Some(program) = Program::from_words(&words) {
        program.into_job(job);
    }
    fn set<T>(place: &mut Option<T>, value: Option<T>) {
        if value.is_some() {
            *place = value;
        }
    }
    set(&mut job.name, args.name);
    set(&mut job.experiment, args.experiment);
    set(&mut job.launch, args.launch);
    set(&mut job.hold_on_failure, args.hold_on_failure);
    set(&mut job.resources.tier, args.tier);
    set(&mut job.resources.nodes, args.nodes);
    set(&mut job.resources.instance_type, args.instance_type);
    set(&mut job.resources.cpus_per_node, args.cpus);
    set(&mut job.resources.memory, args.memory);
    set(&mut job.resources.time, args.time);
    job.resources.native.extend(args.native);
    job.tags.extend(args.tags);
    for pair in args.env {
        let (name, value) = pair.split_once('=').ok_or_else(|| {
            Error::usage(format!("--env `{pair}`: there is no `=`")).hint("write --env NAME=VALUE")
        })?;
        job.environment
            .env
            .insert(name.to_owned(), value.to_owned());
    }
    job.environment.secrets.extend(args.secrets);
    job.sweep.set_all(&args.sweep)
}
