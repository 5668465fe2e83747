//! Notes of a plan: keys of the job that have no effect on its cluster, and other surprises.

use crate::flow::outside::Outside;
use towline_core::cluster::Cluster;
use towline_core::job::Job;
use towline_core::plan::Plan;
use towline_core::resolve::Shape;

/// The note for a plan whose tokens were taken out.
pub(super) const TOKENS_NOTE: &str = "what looks like a token in its command or variables travels \
    as a secret, and is shown as `***`";

/// The note for a job without GPUs on a cluster that has some.
pub(super) fn unused_gpus(
    shape: &Shape,
    gpus_per_node: u32,
    cluster: &dyn Cluster,
) -> Option<String> {
    let has_none = shape.gpus_per_node == 0 && gpus_per_node > 0;
    (has_none && !cluster.caps().whole_nodes).then(|| {
        format!(
            "no GPU was asked for; this cluster has {gpus_per_node} per node: `-n 1` asks for one, \
            `-n 0` says that none is wanted"
        )
    })
}

/// Notes about keys of the job that have no meaning on this cluster.
pub(super) fn unused_options(job: &Job, cluster: &dyn Cluster) -> Vec<String> {
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

/// Notes about wishes of a run that this machine does not fulfil.
pub(super) fn local_notes(outside: &dyn Outside, plan: &Plan) -> Vec<String> {
    let mut notes = Vec::new();
    if plan.resolved.shape.memory.is_some() && !outside.limits_memory() {
        notes.push(
            "its memory is counted and not limited: control groups are not yours to make on \
            this machine"
                .to_owned(),
        );
    }
    let odd = &outside.variables().not_utf8;
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
