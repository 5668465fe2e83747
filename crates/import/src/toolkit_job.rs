//! The names, resources and script of a toolkit's submission.

use super::act_defaults::tier_word;
use super::section::{Section, wrong};
use super::{Converted, ScriptLines, put_script, quoted};
use towline_core::Result;
use towline_core::yaml::{Content, Node};

/// Experiment, job name and identity; the name of the job.
pub(super) fn names(
    keys: &Section<'_>,
    job: &mut Node,
    converted: &mut Converted,
) -> Result<Option<String>> {
    let name = keys.text("job_name")?;
    for (theirs, ours) in [("job_name", "name"), ("name", "experiment")] {
        if let Some(text) = keys.text(theirs)? {
            job.put(&[ours], quoted(text, keys.place(theirs)));
            converted
                .report
                .mapped(keys.key(theirs), keys.place(theirs), ours);
        }
    }
    let identity = keys.text("managed_id")?;
    if let Some(word) = identity.filter(|word| is_no_identity(word)) {
        converted.report.not_needed(
            "experiment.managed_id",
            keys.place("managed_id"),
            format!("`{word}`: no identity is used"),
        );
    } else if let Some(identity) = identity {
        job.put(
            &["identity"],
            quoted(&format!("managed:{identity}"), keys.place("managed_id")),
        );
        converted.report.mapped(
            "experiment.managed_id",
            keys.place("managed_id"),
            "identity",
        );
    }
    Ok(name.map(str::to_owned))
}

/// Whether the text is one of those that the box "Managed ID" writes for "Not used".
fn is_no_identity(word: &str) -> bool {
    ["false", "none", "null", "not used"].contains(&word.trim().to_ascii_lowercase().as_str())
}

pub(super) fn resources(
    keys: &Section<'_>,
    is_itp: bool,
    job: &mut Node,
    converted: &mut Converted,
) -> Result<()> {
    let mut put = |theirs: &str, ours: &str, node: Node| {
        job.put(&["resources", ours], node);
        converted.report.mapped(
            keys.key(theirs),
            keys.place(theirs),
            format!("resources.{ours}"),
        );
    };
    if let Some(nodes) = keys.number("node_count")? {
        let at = keys.place("node_count");
        if nodes == 0 {
            return Err(wrong(at, "`cluster.node_count` is at least 1"));
        }
        put(
            "node_count",
            "nodes",
            Node::scalar(nodes.to_string(), at.clone()),
        );
    }
    if let Some(instance) = keys.text("instance_type")? {
        let at = keys.place("instance_type");
        if is_itp {
            let gpus: u32 = instance
                .parse()
                .map_err(|_| wrong(at, "`cluster.instance_type` of ITP is a number of GPUs"))?;
            put(
                "instance_type",
                "gpus_per_node",
                Node::scalar(gpus.to_string(), at.clone()),
            );
        } else {
            put("instance_type", "instance_type", quoted(instance, at));
            // `ND40_v2g1`: one GPU.
            if let Some(gpus) = instance
                .rsplit_once('g')
                .and_then(|(_, gpus)| gpus.parse::<u32>().ok())
            {
                put(
                    "instance_type",
                    "gpus_per_node",
                    Node::scalar(gpus.to_string(), at.clone()),
                );
            }
        }
    }
    if let Some(tier) = keys.text("sla_tier")? {
        let at = keys.place("sla_tier");
        let word = tier_word(tier, at)?;
        if is_itp {
            converted
                .report
                .not_needed("cluster.sla_tier", at, "ITP has no tiers");
        } else {
            put("sla_tier", "tier", Node::scalar(word, at.clone()));
        }
    }
    let places: Vec<&str> = keys
        .lines("location")?
        .into_iter()
        .filter(|place| !place.is_empty())
        .collect();
    if !places.is_empty() {
        let at = keys.place("location");
        let list = Node::sequence(
            places.iter().map(|place| quoted(place, at)).collect(),
            at.clone(),
        );
        job.put(&["resources", "location"], list);
        converted
            .report
            .mapped("cluster.location", at, "resources.location");
    }
    Ok(())
}

pub(super) fn script(keys: &Section<'_>, job: &mut Node, converted: &mut Converted) -> Result<()> {
    let mut lines = ScriptLines::of(
        keys.lines("script")?
            .into_iter()
            .map(str::to_owned)
            .collect(),
        "`experiment.script`",
    );
    if lines.lines.iter().all(|(_, line)| line.trim().is_empty()) {
        return Err(wrong(
            keys.place("script"),
            "`experiment.script` is missing",
        ));
    }
    let at = keys.place("script").clone();
    if keys.flag("sync_code")? == Some(false)
        && job.get("io").and_then(|io| io.get("workdir")).is_some()
    {
        // No code was uploaded: the job ran the code in the datastore.
        lines.lines.insert(0, (1, "cd ${{workdir}}".to_owned()));
        converted.report.warn(
            "the code was not sent before: the script begins with `cd \
            ${{workdir}}` and runs what lies there. Take the line out to run the code beside this \
                file",
        );
    }
    let whole = lines
        .lines
        .iter()
        .map(|(_, line)| line.as_str())
        .collect::<Vec<_>>()
        .join("\n");
    let names =
        towline_core::template::names(&whole).map_err(|error| wrong(&at, error.message()))?;
    let known = |name: &str| {
        let in_sweep = |label: &str| {
            label
                .trim_matches(['(', ')'])
                .split(',')
                .any(|part| part.trim() == name)
        };
        let is_swept = matches!(job.get("sweep").map(|sweep| &sweep.content), Some(Content::Mapping(axes)) if axes.iter().any(|(key, _)| key.text().is_some_and(in_sweep)));
        is_swept || job.get("io").and_then(|io| io.get(name)).is_some()
    };
    for name in names.iter().filter(|name| !known(name)) {
        converted.report.warn(format!(
            "the script uses ${{{{{name}}}}}, which is neither an io nor \
            a value of the sweep: `tow submit` will refuse it"
        ));
    }
    put_script(converted, job, &["script"], &lines, &at);
    converted.report.mapped("experiment.script", &at, "script");
    converted.report.warn(
        "a line of the script that fails ends the run now; write `set +e` as its first line to go \
            on after a failure",
    );
    Ok(())
}
