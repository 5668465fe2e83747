//! From a job to a plan for one cluster: its code looked at, its data, image and surroundings
//! found. Nothing is sent, and nothing is kept yet.

use crate::context::Context;
use crate::sending::check_kept;
use std::path::Path;
use towline_core::cluster::NodeFacts;
use towline_core::job::{Job, Launch};
use towline_core::plan::Plan;
use towline_core::redact::SecretSet;
use towline_core::resolve::{CopyPlan, FrozenCode, GitState, IoPlan, Surroundings, check};
use towline_core::{Error, Result, RunId};
use towline_engine::flow::CodePlace;
use towline_engine::flow::OpenCluster;
use towline_engine::flow::code::{self, Survey, Wish};
use towline_engine::{flow, project};
use towline_host::surroundings;

/// A plan with what it needs to be carried out.
pub(crate) struct Prepared {
    pub(crate) plan: Plan,
    pub(crate) secrets: SecretSet,
    pub(crate) cluster: OpenCluster,
    /// The code to take before anything is sent.
    pub(crate) survey: Option<Survey>,
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

/// Whether as many nodes as it asks for have what it asks for free.
pub(crate) fn can_start_now(prepared: &Prepared) -> bool {
    let shape = &prepared.plan.resolved.shape;
    let Ok(facts) = prepared.cluster.facts_now() else {
        return false;
    };
    // All nodes of a run on this machine are this machine.
    let (nodes, gpus, cpus) = if prepared.cluster.is_here() {
        (1, shape.total_gpus(), 1)
    } else {
        let cpus = shape.cpus_per_node.unwrap_or(1);
        (shape.nodes, shape.gpus_per_node, cpus)
    };
    let fits = |node: &&NodeFacts| node.free_gpus() >= u64::from(gpus) && node.free_cpus() >= cpus;
    facts.nodes.iter().filter(fits).count() >= nodes as usize
}

/// The job over what jobs have on that cluster. What the job or the command line says counts.
pub(crate) fn with_defaults(
    context: &Context,
    job: Job,
    cluster: &str,
    total_gpus: Option<u32>,
) -> Result<Job> {
    let Some(usual) = context
        .layers()?
        .cluster(cluster)
        .ok()
        .and_then(|cluster| cluster.job)
    else {
        return Ok(job);
    };
    let mut usual = *usual;
    if total_gpus.is_some() {
        // `-n` says how many; the usual number of nodes is not asked for then.
        usual.resources.nodes = None;
    }
    let own = job.launch;
    let mut job = job.over(&usual);
    let none = total_gpus.or(job.resources.gpus_per_node).unwrap_or(0) == 0;
    if own.is_none() && none && job.launch == Some(Launch::PerGpu) {
        // One rank per GPU is the cluster's habit, not this job's wish.
        job.launch = None;
    }
    Ok(job)
}

/// Makes the plan; the code is only looked at.
pub(crate) fn plan_for(
    context: &Context,
    job: Job,
    cluster: &str,
    total_gpus: Option<u32>,
    origin: Origin,
) -> Result<Prepared> {
    let target = context.cluster(cluster)?;
    let configured_gpus = context
        .layers()?
        .cluster(cluster)
        .ok()
        .and_then(|cluster| cluster.gpus_per_node);
    let keyring = surroundings::keyring(&job.environment.secrets, &origin.environment);
    if !target.is_here() {
        // Mistakes of one's own are told before anybody has to sign in.
        let around = Surroundings {
            environment: origin.environment.clone(),
            keyring: keyring.clone(),
            ..Surroundings::default()
        };
        check(&job, total_gpus, configured_gpus, &around)?;
    }
    let remembered = target.remembered_facts();
    let may_be_old = remembered.is_some() && !target.is_here();
    let facts = remembered.map_or_else(|| target.facts_now(), Ok)?;
    let mut notes = Vec::new();
    let Origin {
        place,
        environment,
        resubmits,
        code,
        data,
    } = origin;
    let (survey, mut frozen, git) =
        choose_code(context, &place, &job, (code, target.is_here()), &mut notes)?;
    let data = flow::data::on_cluster(context, &target, &job, data, &mut frozen)?;
    let around = Surroundings {
        git,
        code: frozen,
        io: data.io,
        copy: data.copy,
        container: None,
        keyring,
        environment,
        workdir: text_of(&place.workdir)?,
        umask: surroundings::umask(),
        limits: Some(towline_host::limits::own()),
        inherit: target.is_here(),
        credentials: context.layers()?.credential_variables(),
    };
    let request = flow::Request {
        job,
        total_gpus,
        gpus_per_node: configured_gpus,
        around,
        epoch_seconds: towline_host::clock::now().seconds(),
        random: random()?,
        resubmits,
        home: surroundings::home(),
    };
    let again = may_be_old.then(|| request.clone());
    let planned = flow::make_plan(request, target.cluster.as_ref(), facts);
    // What a job was refused for may have changed since the cluster was last asked.
    let (mut plan, mut secrets) = match (planned, again) {
        (Err(refused), Some(request)) => match target.facts_now() {
            Ok(facts) => flow::make_plan(request, target.cluster.as_ref(), facts)?,
            Err(_) => return Err(refused),
        },
        (planned, _) => planned?,
    };
    secrets.0.extend(data.secrets.0);
    plan.notes.extend(notes);
    if target.is_here() {
        plan.notes.extend(local_notes(context, &plan));
    }
    Ok(Prepared {
        plan,
        secrets,
        cluster: target,
        survey,
    })
}

fn random() -> Result<u32> {
    let mut random = [0; 4];
    getrandom::fill(&mut random).map_err(|_| Error::bug("the system gives no random numbers"))?;
    Ok(u32::from_le_bytes(random))
}

fn text_of(folder: &Path) -> Result<String> {
    folder.to_str().map(ToOwned::to_owned).ok_or_else(|| {
        Error::refused(format!(
            "the folder {} has a name that is not UTF-8",
            folder.display()
        ))
    })
}

/// What this machine does not do with a run that asks for it.
fn local_notes(context: &Context, plan: &Plan) -> Vec<String> {
    let mut notes = Vec::new();
    if plan.resolved.shape.memory.is_some() && !towline_runner::memory_is_enforced() {
        notes.push(
            "its memory is counted and not limited: control groups are not yours to make on \
            this machine"
                .to_owned(),
        );
    }
    let odd = &context.variables().not_utf8;
    if let (Some(first), true) = (odd.first(), plan.resolved.container.is_none()) {
        let more = if odd.len() > 1 {
            format!(" and {} more", odd.len() - 1)
        } else {
            String::new()
        };
        notes.push(format!(
            "the variable `{first}`{more} of this shell is not UTF-8 text, and the \
            run does not have it"
        ));
    }
    notes
}

/// What is to be taken, what the plan says of it, and git's word.
type Chosen = (Option<Survey>, Option<FrozenCode>, Option<GitState>);

fn choose_code(
    context: &Context,
    place: &CodePlace,
    job: &Job,
    (code, is_here): (CodeChoice, bool),
    notes: &mut Vec<String>,
) -> Result<Chosen> {
    let any_size = match code {
        CodeChoice::Today { any_size } => any_size,
        CodeChoice::InPlace => return Ok((None, None, project::git_around(&place.root))),
        CodeChoice::SameAs(frozen, git) => {
            check_kept(&frozen, &code::local_store(context.state()?)?)?;
            return Ok((None, Some(frozen), git));
        }
    };
    if let Some(why) = code::stays(place) {
        notes.push(if is_here {
            format!("{why}, the run starts in place")
        } else {
            why
        });
        return Ok((None, None, project::git_around(&place.root)));
    }
    let (survey, git) = look_around(
        context,
        place,
        &Wish {
            ignore: &job.code.ignore,
            large: any_size,
        },
    )?;
    let frozen = survey.frozen()?;
    notes.extend(survey.unlinked());
    notes.extend(survey.withheld());
    Ok((Some(survey), Some(frozen), git))
}

/// The tree and git's word on it, side by side: neither waits for the other.
fn look_around(
    context: &Context,
    place: &CodePlace,
    wish: &Wish<'_>,
) -> Result<(Survey, Option<GitState>)> {
    let Some(mut git) = project::git_around(&place.root) else {
        return Ok((
            code::survey(context.layers()?, context.state()?, place, wish)?,
            None,
        ));
    };
    let survey = std::thread::scope(|scope| {
        let asked =
            std::thread::Builder::new().spawn_scoped(scope, || project::is_dirty(&place.root));
        let survey = code::survey(context.layers()?, context.state()?, place, wish);
        git.dirty = match asked {
            Ok(asked) => asked.join().ok().flatten(),
            Err(_) => project::is_dirty(&place.root),
        };
        survey
    })?;
    Ok((survey, Some(git)))
}
