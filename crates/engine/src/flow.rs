//! The flow, up to the point where something changes: a job becomes a plan.

use std::path::{Path, PathBuf};
use towline_core::cluster::{Asked, Cluster, Draft, Facts};
use towline_core::job::{Job, OneOrMany};
use towline_core::plan::{PLAN_VERSION, Plan, plan_runs};
use towline_core::redact::SecretSet;
use towline_core::resolve::{Shape, Surroundings, resolve};
use towline_core::{Error, Result, RunId, yaml};

/// Reads a job file; `-` is standard input.
pub fn read_job(file: &Path) -> Result<Job> {
    let node = if file == Path::new("-") {
        crate::layers::read_yaml_from(std::io::stdin().lock(), "standard input")?
    } else {
        crate::layers::read_yaml(file)?
    };
    yaml::decode(&node).map_err(|problem| {
        let is_of_amlt = node.get("target").is_some() && node.get("jobs").is_some();
        let hint = is_of_amlt.then(|| {
            format!(
                "this looks like a file of amlt: `tow import amlt {}` makes job files of it",
                file.display()
            )
        });
        Error::from(problem).maybe_hint(hint)
    })
}

/// The facts that the plan is made from, besides the job.
#[derive(Debug, Clone)]
pub struct Request {
    pub job: Job,
    /// `-n`: GPUs in all.
    pub total_gpus: Option<u32>,
    /// GPUs of one node as configured. They count more than what the cluster reports.
    pub gpus_per_node: Option<u32>,
    pub around: Surroundings,
    /// Now, in seconds since 1970, and randomness for the id.
    pub epoch_seconds: i64,
    pub random: u32,
    pub resubmits: Option<RunId>,
    /// The submitter's home.
    pub home: Option<PathBuf>,
}

/// The job resolved against one cluster: everything that will be sent, and nothing sent yet.
pub fn make_plan(
    request: Request,
    cluster: &dyn Cluster,
    facts: Facts,
) -> Result<(Plan, SecretSet)> {
    let Request {
        job,
        total_gpus,
        gpus_per_node,
        mut around,
        epoch_seconds,
        random,
        resubmits,
        home,
    } = request;
    check_caps(&job, cluster)?;
    let fit = cluster.fit(Draft {
        job,
        facts,
        environment: &around.environment,
        workdir: Path::new(&around.workdir),
        home: home.as_deref(),
    })?;
    let (mut job, facts, mut notes) = (fit.job, fit.facts, fit.notes);
    around.container = fit.container;
    let tokens = towline_core::token::take_out(&mut job)?;
    let gpus_per_node = fit
        .gpus_per_node
        .or(gpus_per_node)
        .unwrap_or_else(|| facts.gpus_per_node());
    let (mut resolved, mut secrets) = resolve(&job, total_gpus, gpus_per_node, around)?;
    resolved.secrets.extend(tokens.names());
    let has_tokens = !tokens.is_empty();
    secrets.0.extend(tokens.0);
    // Options of the command line become part of the job, so that a resubmission has the same size
    // and place.
    if total_gpus.is_some() {
        job.resources.gpus_per_node = Some(resolved.shape.gpus_per_node);
        job.resources.nodes = (resolved.shape.nodes > 1).then_some(resolved.shape.nodes);
    }
    if job.cluster.is_empty() {
        job.cluster = OneOrMany::One(cluster.name().to_owned());
    }
    let name = job
        .name
        .clone()
        .unwrap_or_else(|| resolved.program.default_name());
    let id = RunId::new(&name_without_values(&name), epoch_seconds, random);
    let runs = plan_runs(&id, &name, &job.sweep.combinations()?)?;
    let asked = Asked {
        id: &id,
        runs: &runs,
        job: &job,
        resolved: &resolved,
    };
    let request = cluster.render(&asked, &facts)?;
    if has_tokens {
        notes.push(TOKENS_NOTE.to_owned());
    }
    let unused = unused_gpus(&resolved.shape, gpus_per_node, cluster);
    notes.extend(unused.filter(|_| total_gpus.is_none()));
    notes.extend(unused_options(&job, cluster));
    let mut plan = Plan {
        version: PLAN_VERSION,
        id,
        cluster: cluster.name().to_owned(),
        kind: cluster.kind().to_owned(),
        runs,
        job,
        resolved,
        request,
        notes,
        resubmits,
        adopted: None,
        made: None,
    };
    plan.notes.extend(cluster.notes(&plan, &facts));
    Ok((plan, secrets))
}

/// The note for a plan whose tokens were taken out.
const TOKENS_NOTE: &str = "what looks like a token in its command or variables travels as a \
    secret, and is shown as `***`";

/// The note for a job without GPUs on a cluster that has some.
fn unused_gpus(shape: &Shape, gpus_per_node: u32, cluster: &dyn Cluster) -> Option<String> {
    let has_none = shape.gpus_per_node == 0 && gpus_per_node > 0;
    (has_none && !cluster.caps().whole_nodes).then(|| {
        format!(
            "no GPU was asked for; this cluster has {gpus_per_node} per node: `-n 1` asks for one, \
            `-n 0` says that none is wanted"
        )
    })
}

/// Notes about keys of the job that have no meaning on this cluster.
fn unused_options(job: &Job, cluster: &dyn Cluster) -> Vec<String> {
    let resources = &job.resources;
    let caps = cluster.caps();
    let given = [
        (
            "instance_type",
            resources.instance_type.is_some(),
            caps.native_options,
        ),
        ("location", !resources.location.is_empty(), caps.locations),
        ("account", resources.account.is_some(), caps.native_options),
        // With an image they are for the container runtime.
        (
            "native",
            !resources.native.is_empty() && job.environment.image.is_none(),
            caps.native_options,
        ),
    ];
    let unused: Vec<&str> = given
        .into_iter()
        .filter(|(_, is_given, is_used)| *is_given && !is_used)
        .map(|(word, ..)| word)
        .collect();
    let mut notes = Vec::new();
    if !unused.is_empty() {
        notes.push(format!(
            "cluster `{}` has no use for `resources.{}`",
            cluster.name(),
            unused.join("`, `resources.")
        ));
    }
    let texts = || {
        job.script
            .iter()
            .chain(job.command.as_slice())
            .chain(&job.name)
            .chain(&job.environment.setup)
            .chain(job.environment.env.values())
    };
    for name in job.sweep.names() {
        if !texts().any(|text| {
            towline_core::template::names(text).is_ok_and(|names| names.contains(&name))
        }) {
            notes.push(format!(
                "nothing uses the sweep value `{name}`: write ${{{{{name}}}}} where it belongs"
            ));
        }
    }
    notes
}

/// A sweep's id does not hold one run's values: `train-${{lr}}` gives `train`.
fn name_without_values(name: &str) -> String {
    let mut plain = String::new();
    let mut rest = name;
    while let Some(at) = rest.find("${{") {
        plain.push_str(&rest[..at]);
        plain.push('-');
        rest = rest[at..]
            .find("}}")
            .map_or("", |end| &rest[at + end + 2..]);
    }
    plain + rest
}

/// Refuses, with the reason, what the cluster cannot do, before anything is made.
fn check_caps(job: &Job, cluster: &dyn Cluster) -> Result<()> {
    let caps = cluster.caps();
    let refuse = |what: &str| {
        Err(Error::refused(format!(
            "cluster `{}` cannot give a run {what}",
            cluster.name()
        )))
    };
    if !job.io.is_empty() && !caps.io {
        return refuse("`io`: datastores are not supported there yet");
    }
    if job.copy.is_some() && !caps.io {
        return refuse("`copy`: datastores are not supported there yet");
    }
    if job.environment.image.is_some() && !caps.containers {
        return refuse("an `image`: containers are not supported there yet");
    }
    if job
        .identity
        .as_deref()
        .is_some_and(|identity| identity != "none")
        && !caps.identity
    {
        return refuse("an `identity`");
    }
    Ok(())
}

/// The root of a job's code, and the folder where its commands start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodePlace {
    pub root: PathBuf,
    /// The root or a folder below it; absolute.
    pub workdir: PathBuf,
}

/// `code.root`, else the code root around `current`; `code.workdir` below it, else `current`.
pub fn code_place(job: &Job, current: &Path) -> Result<CodePlace> {
    let root = match &job.code.root {
        Some(root) => current.join(root),
        None => crate::project::code_root(current),
    };
    let workdir = match &job.code.workdir {
        Some(workdir) => {
            let below = Path::new(workdir);
            if below.is_absolute()
                || below
                    .components()
                    .any(|part| part == std::path::Component::ParentDir)
            {
                return Err(Error::config(format!(
                    "`code.workdir` is a folder below the code root, not `{workdir}`"
                )));
            }
            root.join(below)
        }
        None if job.code.root.is_some() => root.clone(),
        None => current.to_owned(),
    };
    Ok(CodePlace {
        root: real_folder(&root)?,
        workdir: real_folder(&workdir)?,
    })
}

fn real_folder(folder: &Path) -> Result<PathBuf> {
    if !folder.is_dir() {
        return Err(
            Error::config(format!("the folder {} does not exist", folder.display()))
                .hint("see `code.root` and `code.workdir` in the job file"),
        );
    }
    folder.canonicalize().map_err(|error| {
        Error::config(format!("the folder {} cannot be used", folder.display())).source_error(error)
    })
}

/// Why this folder is not sent as code: it is the home, or the root of the file system.
pub fn too_wide(root: &Path, home: Option<&Path>) -> Option<&'static str> {
    let home = home.and_then(|home| home.canonicalize().ok());
    match home {
        _ if root == Path::new("/") => Some("the root of the file system"),
        Some(home) if root == home => Some("your home folder"),
        Some(home) if home.starts_with(root) => Some("a folder that holds your home folder"),
        _ => None,
    }
}
