//! `tow submit` and `tow run`.

use super::{Report, logs};
use crate::code::{self, LocalStore, Survey, Wish};
use crate::context::{AnyCluster, Context, SlurmCluster, block_on};
use crate::follow::{Followed, View, follow};
use crate::job_data::{job_data, same_data};
use crate::output;
use serde::Serialize;
use std::ffi::OsString;
use std::path::PathBuf;
use towline_backends::local::client;
use towline_core::backend::{Backend, LogSource, NodeFacts, Staged};
use towline_core::command::Program;
use towline_core::job::{Job, Launch, Tier, Words};
use towline_core::plan::Plan;
use towline_core::quantity::{Memory, Span};
use towline_core::redact::SecretSet;
use towline_core::resolve::{CopyPlan, FrozenCode, GitState, IoPlan, Surroundings};
use towline_core::state::RunState;
use towline_core::{Error, Result, RunId};
use towline_engine::flow::CodePlace;
use towline_engine::{flow, surroundings};
use towline_host::crash;
use towline_snapshot::digest::Digest;
use towline_snapshot::store::{Blob, BlobStore};
use towline_wire::daemon::{Limits, PrivateSecrets, Request, Submit};

/// Submit a command; it runs as soon as there is room.
///
/// `tow`'s own options end at the first word of the command. Several words run as they are,
/// without a shell; a single word with blanks or shell characters runs in `sh -c`.
#[derive(Debug, clap::Args, Default)]
#[command(after_help = "Examples:
  tow submit python train.py --lr 0.1
  tow submit -n 1 --time 2h python train.py        one GPU, at most two hours
  tow submit 'make && ./bench | tee out.txt'       one word with blanks: a shell runs it
  tow submit -f job.yaml --dry-run                 what would be sent, and nothing sent
  tow submit --sweep lr=0.1,0.01 --sweep seed=1-3 python train.py --lr '${{lr}}' --seed '${{seed}}'
  tow submit --from @ -n 2                         the latest again, with two GPUs")]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) job: JobArgs,

    /// Show its output as it comes and leave with its exit code, like `tow run`.
    #[arg(long)]
    pub(crate) follow: bool,
}

/// Submit, show its output as it comes, and leave with its exit code.
///
/// Ctrl-C leaves the run alone and tells how to abort it. All options of `tow submit` work.
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
    #[arg(short = 'n', long, value_name = "GPUS")]
    pub(crate) gpus: Option<u32>,
    /// A job file; options here win over it.
    #[arg(short, long, value_name = "JOB.yaml")]
    pub(crate) file: Option<PathBuf>,
    /// Begin from a former run's job.
    #[arg(long, value_name = "RUN", conflicts_with = "file")]
    pub(crate) from: Option<String>,
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
    /// Nodes.
    #[arg(long)]
    pub(crate) nodes: Option<u32>,
    /// CPUs per node.
    #[arg(long)]
    pub(crate) cpus: Option<u32>,
    /// Memory per node, such as 16G.
    #[arg(long)]
    pub(crate) memory: Option<Memory>,
    /// The longest an attempt may take, such as 2h30m.
    #[arg(long)]
    pub(crate) time: Option<Span>,
    /// Ranks: per_node, per_gpu, once, or a number per node.
    #[arg(long)]
    pub(crate) launch: Option<Launch>,
    /// A variable for the job; may be repeated.
    #[arg(long = "env", value_name = "NAME=VALUE")]
    pub(crate) env: Vec<String>,
    /// A variable whose value is held apart as a secret; may be repeated.
    #[arg(long = "secret", value_name = "NAME")]
    pub(crate) secrets: Vec<String>,
    /// Keep the nodes this long for `tow ssh` when a rank fails.
    #[arg(long, value_name = "TIME")]
    pub(crate) hold_on_failure: Option<Span>,
    /// Run in this folder itself instead of a frozen copy of the code.
    #[arg(long)]
    pub(crate) in_place: bool,
    /// Freeze the code however many files it has and however large it is.
    #[arg(long, conflicts_with = "in_place")]
    pub(crate) any_size: bool,
    /// The command and its words.
    #[arg(trailing_var_arg = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}

fn parse_tier(text: &str) -> std::result::Result<Tier, String> {
    match text {
        "premium" => Ok(Tier::Premium),
        "standard" => Ok(Tier::Standard),
        "basic" => Ok(Tier::Basic),
        _ => Err("a tier is premium, standard or basic".to_owned()),
    }
}

/// A plan with what it needs to be carried out.
pub(crate) struct Prepared {
    pub(crate) plan: Plan,
    pub(crate) secrets: SecretSet,
    pub(crate) cluster: AnyCluster,
    /// The code to take before anything is sent.
    survey: Option<Survey>,
}

/// What a plan is made from, beside the job.
pub(crate) struct Origin {
    pub(crate) place: CodePlace,
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) resubmits: Option<RunId>,
    pub(crate) code: CodeChoice,
    /// The data of the run that is done again.
    pub(crate) data: Option<(Vec<IoPlan>, Option<CopyPlan>)>,
}

/// Which code a run gets.
pub(crate) enum CodeChoice {
    /// What lies there now.
    Today { any_size: bool },
    /// What another run had.
    SameAs(FrozenCode, Option<GitState>),
    /// None: the run starts in the folder itself.
    InPlace,
}

#[derive(Serialize)]
struct Submitted<'a> {
    id: &'a RunId,
    cluster: &'a str,
    runs: Vec<towline_wire::report::Run>,
}

pub(crate) fn run(context: &Context, args: Args) -> Result<Report> {
    if args.follow {
        return run_and_follow(context, RunArgs { job: args.job });
    }
    let dry_run = args.job.dry_run;
    let mut prepared = prepare(context, args.job)?;
    if dry_run {
        return Ok(dry_run_report(&prepared.plan));
    }
    send(context, &mut prepared)?;
    submitted_report(context, &prepared.plan)
}

fn submitted_report(context: &Context, plan: &Plan) -> Result<Report> {
    let records = if context.json { context.history()?.runs_of(&plan.id)? } else { Vec::new() };
    let summary = Submitted { id: &plan.id, cluster: &plan.cluster, runs: records.iter().map(towline_wire::report::Run::from).collect() };
    let short = plan.id.short();
    let mut report = Report::new(format!("{}\n", plan.id), &summary);
    for note in &plan.notes {
        report = report.hint(note.clone());
    }
    if plan.runs.len() > 1 {
        return Ok(report.hint(format!("{} runs; watch them: tow ps {short}    wait for all: tow wait {short}", plan.runs.len())));
    }
    Ok(report.hint(format!("its output: tow logs -f {short}    end it: tow abort {short}")))
}

fn dry_run_report(plan: &Plan) -> Report {
    let mut text = format!("would submit {} to `{}` ({})\n", plan.id, plan.cluster, plan.kind);
    text += &plan.request.text;
    if plan.runs.iter().any(|run| !run.parameters.is_empty()) {
        text += &format!("runs      {}\n", plan.runs.len());
        for run in plan.runs.iter().take(20) {
            let values: Vec<String> = run.parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
            text += &format!("          {}\n", values.join(" "));
        }
        if plan.runs.len() > 20 {
            text += &format!("          … and {} more\n", plan.runs.len() - 20);
        }
    }
    plan.notes.iter().for_each(|note| text += &format!("note      {note}\n"));
    // The shell's variables are many and the user's own: names are enough.
    let mut shown = serde_json::to_value(plan).unwrap_or_default();
    if let Some(inherited) = shown.pointer_mut("/resolved/inherited") {
        *inherited = plan.resolved.inherited.keys().cloned().collect::<Vec<_>>().into();
    }
    Report { text, json: Some(shown), ..Report::default() }
}

/// Freezes the code, then sends the plan. When this returns, the runs happen.
pub(crate) fn send(context: &Context, prepared: &mut Prepared) -> Result<()> {
    if let AnyCluster::Slurm(cluster) = &prepared.cluster {
        // What cannot be reached now is refused while nothing is written yet.
        crate::machines::connect(&cluster.backend).map_err(|error| error.while_doing(format!("cannot submit to `{}`", prepared.plan.cluster)))?;
    }
    // Held until the history names the snapshot: nobody prunes it in between.
    let _store = match &mut prepared.plan.resolved.code {
        Some(frozen) => Some(freeze(context, frozen, prepared.survey.take(), &prepared.cluster)?),
        None => None,
    };
    crash::pass("client.submit.before");
    let failed = |error: Error| error.while_doing(format!("cannot submit to `{}`", prepared.plan.cluster));
    match &prepared.cluster {
        AnyCluster::Local(backend) => {
            block_on(backend.submit(&prepared.plan, &prepared.secrets, &Staged::default())).map_err(failed)?;
        }
        AnyCluster::Slurm(cluster) => send_far(context, cluster, prepared).map_err(failed)?,
    }
    crash::pass("client.submit.answered");
    Ok(())
}

/// Hands it to the daemon, which carries it over, and waits for the cluster's yes or no.
fn send_far(context: &Context, cluster: &SlurmCluster, prepared: &Prepared) -> Result<()> {
    let submit = || Submit {
        plan: prepared.plan.clone(),
        secrets: PrivateSecrets(prepared.secrets.clone()),
        limits: Limits::default(),
        cluster: Some(cluster.named.clone()),
    };
    client::ask(context.state()?, &|| Request::Submit(Box::new(submit())))?;
    let run = &prepared.plan.runs[0].id;
    crate::far::carried_over(context, run)?;
    // Its alias; that it cannot be written is no reason to fail what was submitted.
    let _ = crate::aliases::write(context);
    Ok(())
}

fn freeze(context: &Context, frozen: &mut FrozenCode, survey: Option<Survey>, cluster: &AnyCluster) -> Result<LocalStore> {
    let store = code::local_store(context.state()?)?;
    match survey {
        Some(survey) => {
            let taken = match cluster {
                AnyCluster::Local(_) => code::take_here(context, survey, &store)?,
                AnyCluster::Slurm(cluster) => code::take_ahead(context, survey, &store, cluster)?,
            };
            frozen.snapshot = Some(taken.id.to_string());
        }
        None => check_kept(frozen, &store)?,
    }
    crash::pass("client.snapshot.taken");
    Ok(store)
}

fn check_kept(frozen: &FrozenCode, store: &LocalStore) -> Result<()> {
    let id = frozen.snapshot.as_deref().and_then(Digest::parse);
    if id.is_some_and(|id| store.store.has(&Blob::Root(id)).unwrap_or(false)) {
        return Ok(());
    }
    Err(Error::refused("the code of that run was pruned").hint("`--latest-code` takes what lies in its folder now"))
}

pub(crate) fn run_and_follow(context: &Context, args: RunArgs) -> Result<Report> {
    if args.job.dry_run {
        return run(context, Args { job: args.job, follow: false });
    }
    let mut prepared = prepare(context, args.job)?;
    let [one] = prepared.plan.runs.as_slice() else {
        return Err(Error::usage("`tow run` shows one run; this is a sweep of several").hint("use `tow submit`, then `tow wait @`"));
    };
    let one = one.clone();
    send(context, &mut prepared)?;
    for note in &prepared.plan.notes {
        output::hint(note);
    }
    let world = prepared.plan.resolved.shape.world();
    let view = View {
        run: one.id.clone(),
        sources: (0..world).map(LogSource::Rank).collect(),
        attempt: 1,
        one_attempt: false,
        grep: None,
        follow: true,
        narrate: !context.json,
    };
    match follow(context, &view, RunState::default())? {
        Followed::Ended(state) => Ok(logs::ended_report(context, &one.id, &state)),
        Followed::Detached | Followed::Shown => Ok(detached(&one.id)),
    }
}

fn detached(id: &RunId) -> Report {
    let short = id.short();
    let words = format!("\ndetached; {id} goes on\n  see it again: tow logs -f {short}    end it: tow abort {short}");
    Report { last_words: Some(words), code: 130, ..Report::default() }
}

impl JobArgs {
    /// A job that only keeps its nodes.
    pub(crate) fn holding(cluster: Option<String>, gpus: Option<u32>) -> Self {
        Self { cluster, gpus, name: Some("alloc".to_owned()), command: vec!["ssh".into()], ..Self::default() }
    }
}

/// From options to a plan: the job file or a former run, then the options over it.
pub(crate) fn prepare(context: &Context, args: JobArgs) -> Result<Prepared> {
    prepare_with(context, args, |_| {})
}

/// The same, with something changed in the job that no option says.
pub(crate) fn prepare_with(context: &Context, args: JobArgs, change: impl FnOnce(&mut Job)) -> Result<Prepared> {
    let mut job = base_job(context, &args)?;
    let total_gpus = args.gpus;
    let cluster_option = args.cluster.clone();
    let (in_place, any_size) = (args.in_place, args.any_size);
    overlay(&mut job, args)?;
    change(&mut job);
    if let Some(cluster) = &cluster_option {
        job.cluster = Words::One(cluster.clone());
    }
    let candidates = match job.cluster.as_slice() {
        [] => vec![context.layers()?.default_cluster().to_owned()],
        names => names.to_vec(),
    };
    let is_choice = candidates.len() > 1;
    // The first that can start it now; else the first that can start it at all.
    let (mut refusal, mut patient) = (None, None);
    for cluster in &candidates {
        match prepare_on(context, job.clone(), cluster, total_gpus, in_place, any_size) {
            Ok(prepared) if !is_choice || can_start_now(context, &prepared) => return Ok(prepared),
            Ok(prepared) => drop(patient.get_or_insert(prepared)),
            Err(error) => drop(refusal.get_or_insert(error)),
        }
    }
    match (patient, refusal) {
        (Some(prepared), _) => Ok(prepared),
        (None, Some(error)) => Err(error),
        (None, None) => Err(Error::bug("no cluster was tried")),
    }
}

fn prepare_on(context: &Context, job: Job, cluster: &str, total_gpus: Option<u32>, in_place: bool, any_size: bool) -> Result<Prepared> {
    let place = flow::code_place(&job, context.folder()?)?;
    let here = context.cluster(cluster)?.is_here();
    if in_place && !here {
        return Err(Error::refused(format!("`--in-place`: this folder is not on cluster `{cluster}`")).hint("leave it out: the code is brought there"));
    }
    let holds_only = job.tags.iter().any(|tag| tag == crate::aliases::ALLOCATION);
    let code = if holds_only || here && (in_place || context.layers()?.config.in_place) { CodeChoice::InPlace } else { CodeChoice::Today { any_size } };
    let origin = Origin { place, environment: context.environment().to_vec(), resubmits: None, code, data: None };
    plan_for(context, job, cluster, total_gpus, origin)
}

/// Whether as many nodes as it asks for have what it asks for free.
fn can_start_now(context: &Context, prepared: &Prepared) -> bool {
    let shape = &prepared.plan.resolved.shape;
    let Ok(facts) = prepared.cluster.facts(context) else { return false };
    let nodes = if prepared.cluster.is_here() { 1 } else { shape.nodes };
    let (gpus, cpus) = if prepared.cluster.is_here() { (shape.total_gpus(), 1) } else { (shape.gpus_per_node, shape.cpus_per_node.unwrap_or(1)) };
    let fits = |node: &&NodeFacts| {
        let free = node.gpus.iter().filter(|gpu| gpu.run.is_none() && gpu.busy_with.is_none()).count();
        free >= gpus as usize && node.cpus.saturating_sub(node.cpus_used) >= cpus
    };
    facts.nodes.iter().filter(fits).count() >= nodes as usize
}

/// Makes the plan; the code is only looked at.
pub(crate) fn plan_for(context: &Context, job: Job, cluster: &str, total_gpus: Option<u32>, origin: Origin) -> Result<Prepared> {
    let target = context.cluster(cluster)?;
    let facts = target.quick_facts(context)?;
    let Origin { place, environment, resubmits, code, data } = origin;
    let mut notes = Vec::new();
    let (survey, frozen, git) = choose_code(context, &place, &job, code, &mut notes)?;
    let data = match data {
        Some((io, copy)) => same_data(context, io, copy)?,
        None => job_data(context, &job, target.is_here())?,
    };
    let around = Surroundings {
        git,
        code: frozen,
        io: data.io,
        copy: data.copy,
        container: if target.is_here() { crate::image::container(&job, &facts, &environment, &place.workdir)? } else { None },
        keyring: surroundings::keyring(&job.environment.secrets, &environment),
        environment,
        workdir: place
            .workdir
            .into_os_string()
            .into_string()
            .map_err(|folder| Error::refused(format!("the folder {} has a name that is not UTF-8", folder.to_string_lossy())))?,
        umask: surroundings::umask(),
        inherit: target.is_here(),
    };
    let mut random = [0; 4];
    getrandom::fill(&mut random).map_err(|_| Error::bug("the system gives no random numbers"))?;
    let request = flow::Request { job, total_gpus, around, epoch_seconds: towline_host::clock::now().seconds(), random: u32::from_le_bytes(random), resubmits };
    let (mut plan, mut secrets) = flow::make_plan(request, target.backend(), &facts)?;
    secrets.0.extend(data.secrets.0);
    plan.notes.extend(notes);
    Ok(Prepared { plan, secrets, cluster: target, survey })
}

/// What is to be taken, what the plan says of it, and git's word.
type Chosen = (Option<Survey>, Option<FrozenCode>, Option<GitState>);

fn choose_code(context: &Context, place: &CodePlace, job: &Job, code: CodeChoice, notes: &mut Vec<String>) -> Result<Chosen> {
    let any_size = match code {
        CodeChoice::Today { any_size } => any_size,
        CodeChoice::InPlace => return Ok((None, None, surroundings::git_around(&place.root))),
        CodeChoice::SameAs(frozen, git) => {
            check_kept(&frozen, &code::local_store(context.state()?)?)?;
            return Ok((None, Some(frozen), git));
        }
    };
    if let Some(why) = code::stays(place) {
        notes.push(why);
        return Ok((None, None, surroundings::git_around(&place.root)));
    }
    let (survey, git) = look_around(context, place, &Wish { ignore: &job.code.ignore, large: any_size })?;
    let frozen = survey.frozen()?;
    notes.extend(survey.unlinked());
    Ok((Some(survey), Some(frozen), git))
}

/// The tree and git's word on it, side by side: neither waits for the other.
fn look_around(context: &Context, place: &CodePlace, wish: &Wish<'_>) -> Result<(Survey, Option<GitState>)> {
    let Some(mut git) = surroundings::git_around(&place.root) else { return Ok((code::survey(context, place, wish)?, None)) };
    let survey = std::thread::scope(|scope| {
        let asked = scope.spawn(|| surroundings::is_dirty(&place.root));
        let survey = code::survey(context, place, wish);
        git.dirty = asked.join().ok().flatten();
        survey
    })?;
    Ok((survey, Some(git)))
}

fn base_job(context: &Context, args: &JobArgs) -> Result<Job> {
    if let Some(file) = &args.file {
        return flow::read_job(file);
    }
    let Some(from) = &args.from else { return Ok(Job::default()) };
    let history = context.history()?;
    let target = history.find_to_read(from)?;
    let submission = history.submission_of(&target.runs()[0].id)?.ok_or_else(|| Error::not_found(format!("the job of {from} is not in the history")))?;
    Ok(submission.plan.job)
}

fn overlay(job: &mut Job, args: JobArgs) -> Result<()> {
    let words = args.command.into_iter().map(crate::text).collect::<Result<Vec<_>>>()?;
    if words.as_slice() == ["ssh"] {
        // A job that only keeps its nodes, for `tow ssh`.
        job.command = Words::Many(vec!["sleep".into(), "infinity".into()]);
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
    set(&mut job.resources.cpus_per_node, args.cpus);
    set(&mut job.resources.memory, args.memory);
    set(&mut job.resources.time, args.time);
    job.tags.extend(args.tags);
    for pair in args.env {
        let (name, value) = pair.split_once('=').ok_or_else(|| Error::usage(format!("--env `{pair}`: there is no `=`")).hint("write --env NAME=VALUE"))?;
        job.environment.env.insert(name.to_owned(), value.to_owned());
    }
    job.environment.secrets.extend(args.secrets);
    for axis in &args.sweep {
        job.sweep.set(axis)?;
    }
    Ok(())
}
