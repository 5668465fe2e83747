//! Notes of a plan: keys of the job that have no effect on its cluster, and other surprises.

use crate::flow::outside::Outside;
use std::path::Path;
use towline_core::cluster::Cluster;
use towline_core::command::Program;
use towline_core::job::Job;
use towline_core::plan::Plan;
use towline_core::resolve::Shape;
use towline_core::suggest::did_you_mean;

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

/// How many names of a folder are compared with a script that is not there.
const MAX_NAMES_COMPARED: usize = 2_000;

/// The note for a script that is not in the start folder, where a file of nearly that name is.
pub(super) fn missing_script(program: &Program, workdir: &Path) -> Option<String> {
    let Program::Argv(words) = program else {
        return None;
    };
    let is_script = |word: &&String| {
        let path = Path::new(word);
        let ending = path.extension().and_then(|ending| ending.to_str());
        matches!(ending, Some("py" | "sh")) && path.is_relative()
    };
    let script = words.iter().find(is_script)?;
    let path = workdir.join(script);
    if script.contains("${{") || path.symlink_metadata().is_ok() {
        return None;
    }
    let wanted = path.file_name()?.to_str()?;
    let names: Vec<String> = std::fs::read_dir(path.parent()?)
        .ok()?
        .flatten()
        .take(MAX_NAMES_COMPARED)
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    let suggestion = did_you_mean(wanted, names.iter().map(String::as_str))?;
    Some(format!(
        "there is no {script} where it starts: {suggestion}"
    ))
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
