//! From a job to a plan for one cluster: its code looked at, its data, image and surroundings
//! found. Nothing is sent, and nothing is kept yet.

use crate::code::{self, Survey, Wish};
use crate::context::{AnyCluster, Context};
use crate::job_data::{job_data, same_data};
use crate::sending::check_kept;
use towline_core::cluster::NodeFacts;
use towline_core::job::{Job, Launch};
use towline_core::plan::Plan;
use towline_core::redact::SecretSet;
use towline_core::resolve::{CopyPlan, FrozenCode, GitState, IoPlan, MOUNTED, Surroundings, check};
use towline_core::{Error, Result, RunId};
use towline_engine::flow::CodePlace;
use towline_engine::{flow, surroundings};

/// A plan with what it needs to be carried out.
pub(crate) struct Prepared {
    pub(crate) plan: Plan,
    pub(crate) secrets: SecretSet,
    pub(crate) cluster: AnyCluster,
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
pub(crate) fn can_start_now(context: &Context, prepared: &Prepared) -> bool {
    let shape = &prepared.plan.resolved.shape;
    let Ok(facts) = prepared.cluster.facts(context) else {
        return false;
    };
    let nodes = if prepared.cluster.is_here() {
        1
    } else {
        shape.nodes
    };
    let (gpus, cpus) = if prepared.cluster.is_here() {
        (shape.total_gpus(), 1)
    } else {
        (shape.gpus_per_node, shape.cpus_per_node.unwrap_or(1))
    };
    let fits = |node: &&NodeFacts| {
        let free = node
            .gpus
            .iter()
            .filter(|gpu| gpu.run.is_none() && gpu.busy_with.is_none())
            .count();
        free >= gpus as usize && node.cpus.saturating_sub(node.cpus_used) >= cpus
    };
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
    let Origin {
        place,
        environment,
        resubmits,
        code,
        data,
    } = origin;
    if !target.is_here() {
        // Mistakes of one's own are told before anybody has to sign in.
        let gpus = context
            .layers()?
            .cluster(cluster)
            .ok()
            .and_then(|cluster| cluster.gpus_per_node);
        let keyring = surroundings::keyring(&job.environment.secrets, &environment);
        check(
            &job,
            total_gpus,
            gpus,
            &Surroundings {
                environment: environment.clone(),
                keyring,
                ..Surroundings::default()
            },
        )?;
    }
    let facts = target.quick_facts(context)?;
    let mut notes = Vec::new();
    let (survey, mut frozen, git) =
        choose_code(context, &place, &job, (code, target.is_here()), &mut notes)?;
    let data = match (&target, data) {
        (AnyCluster::Azure(_), Some((io, copy))) => crate::azure::with_folders(
            context,
            cluster,
            same_data(context, io, copy)?,
            &mut frozen,
        )?,
        (_, Some((io, copy))) => same_data(context, io, copy)?,
        (AnyCluster::Azure(_), None) => {
            crate::azure::job_data(context, cluster, &job, &mut frozen)?
        }
        (_, None) => job_data(context, &job, target.is_here())?,
    };
    if let (false, Some(frozen)) = (matches!(target, AnyCluster::Azure(_)), &mut frozen) {
        // Mounts of another kind of cluster mean nothing here.
        frozen.mapped.retain(|_, place| !place.starts_with(MOUNTED));
    }
    let around = Surroundings {
        git,
        code: frozen,
        io: data.io,
        copy: data.copy,
        container: match &target {
            AnyCluster::Local(_) => {
                crate::image::container(&job, &facts, &environment, &place.workdir)?
            }
            // The service itself puts the job into its image.
            AnyCluster::Azure(_) => None,
            AnyCluster::Slurm(_) if job.environment.image.is_none() => None,
            AnyCluster::Slurm(far) => crate::image::far_container(
                &job,
                &facts,
                cluster,
                &crate::machines::facts(context, &far.backend, false)?.runtimes,
            )?,
        },
        keyring: surroundings::keyring(&job.environment.secrets, &environment),
        environment,
        workdir: place
            .workdir
            .into_os_string()
            .into_string()
            .map_err(|folder| {
                Error::refused(format!(
                    "the folder {} has a name that is not UTF-8",
                    folder.to_string_lossy()
                ))
            })?,
        umask: surroundings::umask(),
        limits: Some(towline_host::limits::own()),
        inherit: target.is_here(),
        credentials: context.layers()?.credential_variables(),
    };
    let mut random = [0; 4];
    getrandom::fill(&mut random).map_err(|_| Error::bug("the system gives no random numbers"))?;
    let machine = match &target {
        AnyCluster::Azure(far) => crate::azure::gpus(context, &far.backend, &job)?,
        _ => None,
    };
    let gpus_per_node =
        machine.or_else(|| context.layers().ok()?.cluster(cluster).ok()?.gpus_per_node);
    let epoch_seconds = towline_host::clock::now().seconds();
    let request = flow::Request {
        job,
        total_gpus,
        gpus_per_node,
        around,
        epoch_seconds,
        random: u32::from_le_bytes(random),
        resubmits,
    };
    let (mut plan, mut secrets) = flow::make_plan(request, target.backend(), &facts)?;
    secrets.0.extend(data.secrets.0);
    plan.notes.extend(notes);
    if target.is_here() {
        plan.notes.extend(local_notes(context, &plan));
    }
    if let AnyCluster::Azure(far) = &target {
        plan.notes.extend(far.backend.notes(&plan));
    }
    Ok(Prepared {
        plan,
        secrets,
        cluster: target,
        survey,
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
    let odd = context.odd_variables();
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
        CodeChoice::InPlace => return Ok((None, None, surroundings::git_around(&place.root))),
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
        return Ok((None, None, surroundings::git_around(&place.root)));
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
    let Some(mut git) = surroundings::git_around(&place.root) else {
        return Ok((code::survey(context, place, wish)?, None));
    };
    let survey = std::thread::scope(|scope| {
        let asked =
            std::thread::Builder::new().spawn_scoped(scope, || surroundings::is_dirty(&place.root));
        let survey = code::survey(context, place, wish);
        git.dirty = match asked {
            Ok(asked) => asked.join().ok().flatten(),
            Err(_) => surroundings::is_dirty(&place.root),
        };
        survey
    })?;
    Ok((survey, Some(git)))
}
