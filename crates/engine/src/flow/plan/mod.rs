//! Makes a plan for one cluster from a job: surveys its code, finds its data, its image and its
//! environment. Nothing is stored or sent.

mod make;
mod notes;

pub use make::{Request, make_plan};

use super::code::{Survey, choose_code};
use super::data;
use super::draft::Origin;
use super::open_cluster::OpenCluster;
use super::outside::Outside;
use notes::{local_notes, missing_script};
use std::path::Path;
use towline_core::cluster::NodeFacts;
use towline_core::job::Job;
use towline_core::plan::Plan;
use towline_core::redact::SecretSet;
use towline_core::resolve::{Surroundings, check};
use towline_core::{Error, Result};
use towline_host::surroundings;

/// A plan with what it needs to be carried out.
#[derive(Debug)]
pub struct Prepared {
    pub plan: Plan,
    pub secrets: SecretSet,
    pub cluster: OpenCluster,
    /// The code to take before anything is sent.
    pub survey: Option<Survey>,
}

/// Whether enough nodes have enough free GPUs and CPUs for it.
pub fn can_start_now(prepared: &Prepared) -> bool {
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

/// Makes the plan. The code is surveyed, not read.
pub fn plan_for(
    outside: &dyn Outside,
    job: Job,
    cluster: &str,
    total_gpus: Option<u32>,
    origin: Origin,
) -> Result<Prepared> {
    let target = outside.cluster(cluster)?;
    let configured_gpus = outside
        .layers()?
        .cluster(cluster)
        .ok()
        .and_then(|cluster| cluster.gpus_per_node);
    let keyring = surroundings::keyring(&job.environment.secrets, &origin.environment);
    if !target.is_here() {
        // The user's own mistakes are reported before a sign-in.
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
        choose_code(outside, &place, &job, (code, target.is_here()), &mut notes)?;
    let data = data::on_cluster(outside, &target, &job, data, &mut frozen)?;
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
        credentials: outside.layers()?.credential_variables(),
    };
    let request = Request {
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
    let planned = make_plan(request, target.cluster.as_ref(), facts);
    // The reason for a refusal may have changed since the cluster was last asked.
    let (mut plan, mut secrets) = match (planned, again) {
        (Err(refused), Some(request)) => match target.facts_now() {
            Ok(facts) => make_plan(request, target.cluster.as_ref(), facts)?,
            Err(_) => return Err(refused),
        },
        (planned, _) => planned?,
    };
    secrets.0.extend(data.secrets.0);
    plan.notes.extend(notes);
    if plan.resubmits.is_none() {
        let missing = missing_script(&plan.resolved.program, &place.workdir);
        plan.notes.extend(missing);
    }
    if target.is_here() {
        plan.notes.extend(local_notes(outside, &plan));
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
        Error::unsupported(format!(
            "the folder {} has a name that is not UTF-8",
            folder.display()
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_needs_a_name_that_is_text() {
        use std::os::unix::ffi::OsStrExt;
        assert_eq!(text_of(Path::new("/a b")).expect("text"), "/a b");
        let odd = Path::new(std::ffi::OsStr::from_bytes(b"/a\xff"));
        assert!(text_of(odd).is_err());
    }
}
