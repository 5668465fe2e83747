//! The defaults of jobs on a cluster of ACT: size, launch, image, environment, and ignored files.

use super::act::{Platform, Work};
use super::section::{Section, text, wrong};
use super::{add_secret, quoted, scrub, shell_words, zip};
use towline_core::Result;
use towline_core::yaml::{Node, Position};

/// ACT's own defaults.
const ACT_GPUS_PER_NODE: u32 = 4;
const ACT_SINGULARITY_INSTANCE: &str = "AISupercomputer.ND96amr_A100_v4";

pub(super) fn put(keys: &Section<'_>, platform: Platform, work: &mut Work<'_>) -> Result<()> {
    if keys.get("experiment_name").is_some()
        && let Some(experiment) = keys.text("experiment_name")?
    {
        let at = keys.place("experiment_name");
        work.put(
            "experiment_name",
            at,
            &["job", "experiment"],
            Node::scalar(experiment, at.clone()),
        );
    }
    size(keys, work)?;
    launch(keys, work)?;
    image(keys, work)?;
    environment(keys, work)?;
    tier(keys, platform, work)?;
    ignored(keys, work)?;
    if keys.flag("sleep_if_fail")? == Some(true) {
        let at = keys.place("sleep_if_fail");
        work.put(
            "sleep_if_fail",
            at,
            &["job", "hold_on_failure"],
            Node::scalar("14d", at.clone()),
        );
    }
    Ok(())
}

/// `gpu_per_node`, which `-n` is divided by, and `num_gpu`, the default of `-n`.
fn size(keys: &Section<'_>, work: &mut Work<'_>) -> Result<()> {
    let per_node = keys.number("gpu_per_node")?.unwrap_or(ACT_GPUS_PER_NODE);
    let at = keys.place("gpu_per_node");
    if per_node == 0 {
        return Err(wrong(at, "`gpu_per_node` is at least 1"));
    }
    work.put_or_assume(
        keys,
        "gpu_per_node",
        &["gpus_per_node"],
        &per_node.to_string(),
    );
    let total = keys.number("num_gpu")?.unwrap_or(per_node);
    let at = keys.place("num_gpu");
    if total > per_node && !total.is_multiple_of(per_node) {
        return Err(wrong(
            at,
            format!("`num_gpu`: {total} GPUs do not fill nodes of {per_node}"),
        ));
    }
    let (nodes, gpus) = ((total / per_node).max(1), total.min(per_node));
    if nodes > 1 {
        work.set(
            &["job", "resources", "nodes"],
            Node::scalar(nodes.to_string(), at.clone()),
        );
    }
    work.set(
        &["job", "resources", "gpus_per_node"],
        Node::scalar(gpus.to_string(), at.clone()),
    );
    let place = format!("clusters.{}.job.resources", work.name);
    if keys.get("num_gpu").is_none() {
        work.report.assumed(
            "num_gpu",
            format_args!("{place}.gpus_per_node: {gpus}, one whole node"),
        );
    } else if nodes > 1 {
        work.report.mapped(
            "num_gpu",
            at,
            format!("{place}.nodes: {nodes}, {place}.gpus_per_node: {gpus}"),
        );
    } else {
        work.report.mapped(
            "num_gpu",
            at,
            format!("{place}.gpus_per_node: {gpus}, on one node"),
        );
    }
    Ok(())
}

fn launch(keys: &Section<'_>, work: &mut Work<'_>) -> Result<()> {
    let every_gpu = keys.flag("multi_process")?.unwrap_or(true);
    let ranks = keys
        .number("process_count_per_node")?
        .filter(|ranks| *ranks > 0);
    // Without a GPU there is no rank per GPU; ACT starts one rank then.
    let no_gpu = keys.number("num_gpu")? == Some(0);
    let word = match (every_gpu, ranks) {
        (false, _) => "per_node".to_owned(),
        (true, Some(ranks)) => ranks.to_string(),
        (true, None) if no_gpu => "per_node".to_owned(),
        (true, None) => "per_gpu".to_owned(),
    };
    work.put_or_assume(keys, "multi_process", &["job", "launch"], &word);
    if ranks.is_some() {
        work.report.mapped(
            "process_count_per_node",
            keys.place("process_count_per_node"),
            format!("clusters.{}.job.launch", work.name),
        );
    }
    Ok(())
}

fn image(keys: &Section<'_>, work: &mut Work<'_>) -> Result<()> {
    if let Some(interpreter) = keys.text("interpreter_path")? {
        let at = keys.place("interpreter_path");
        match interpreter {
            "python" => {
                work.report
                    .not_needed("interpreter_path", at, "commands name their own program");
            }
            _ => work.report.not_mapped(
                "interpreter_path",
                at,
                "commands name their own program: write it there",
            ),
        }
    }
    let custom = keys.flag("use_custom_docker")?;
    let Some(docker) = keys.section("docker")? else {
        return Ok(());
    };
    if custom == Some(false) {
        let at = keys.place("use_custom_docker");
        let why = "AML's own estimator does not exist here; the image below `docker` is used";
        work.report.not_mapped("use_custom_docker", at, why);
        work.report.warn_in_place(
            at,
            format!("`use_custom_docker: false` has no effect: {why}"),
        );
    } else if custom.is_some() {
        work.report.not_needed(
            "use_custom_docker",
            keys.place("use_custom_docker"),
            "an image is always your own",
        );
    }
    if let Some(image) = docker.text("image")? {
        let at = docker.place("image");
        let address = docker
            .text("address")?
            .map(|address| address.trim_end_matches('/'));
        let whole = match address {
            Some(address) if !image.starts_with(address) => format!("{address}/{image}"),
            _ => image.to_owned(),
        };
        let whole = docker
            .text("tag")?
            .map_or_else(|| whole.clone(), |tag| format!("{whole}:{tag}"));
        work.put(
            "docker.image",
            at,
            &["job", "environment", "image"],
            Node::scalar(whole, at.clone()),
        );
        for key in ["address", "tag"] {
            work.mapped_too(&docker, key, &["job", "environment", "image"]);
        }
    }
    for key in ["username", "password"] {
        if docker.get(key).is_some() {
            work.report.not_mapped(
                docker.key(key),
                docker.place(key),
                "a login to a registry: it was not copied. Attach the registry to the workspace, \
                    or use its identity",
            );
        }
    }
    docker.report_unknown(work.report, "neither ACT nor Towline knows this key");
    Ok(())
}

/// Whether the name can be a shell variable.
pub(super) fn is_variable(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn environment(keys: &Section<'_>, work: &mut Work<'_>) -> Result<()> {
    let Some(env) = keys.section("env")? else {
        return Ok(());
    };
    for (name, value) in env.entries() {
        if !is_variable(name) {
            return Err(wrong(
                env.key_place(name),
                format!(
                    "`env`: `{name}` is not the name of a variable: letters, digits and `_`, no \
                        digit first"
                ),
            ));
        }
        if value.is_null() {
            work.report.empty(env.key(name), env.key_place(name));
            continue;
        }
        let words = text(value, &env.key(name))?;
        if scrub::is_secret(name, words) {
            let mut job = work
                .config
                .get("clusters")
                .and_then(|all| all.get(work.name))
                .and_then(|own| own.get("job"))
                .cloned()
                .unwrap_or_else(|| Node::mapping(value.at.clone()));
            add_secret(&mut job, name, &value.at);
            work.set(&["job"], job);
            work.report.not_mapped(
                env.key(name),
                &value.at,
                format!(
                    "a secret: its value was not copied, only its name to \
                    clusters.{}.job.environment.secrets",
                    work.name
                ),
            );
            work.report
                .store(name, &format!("the value of `{}`", env.key(name)));
        } else {
            work.put(
                &env.key(name),
                &value.at,
                &["job", "environment", "env", name],
                quoted(words, &value.at),
            );
        }
    }
    Ok(())
}

fn tier(keys: &Section<'_>, platform: Platform, work: &mut Work<'_>) -> Result<()> {
    let path = ["job", "resources", "tier"];
    if let Some(evicted) = keys.flag("preemption_allowed")? {
        let at = keys.place("preemption_allowed");
        if evicted {
            work.put(
                "preemption_allowed",
                at,
                &path,
                Node::scalar("basic", at.clone()),
            );
        } else {
            work.report.not_needed(
                "preemption_allowed",
                at,
                "runs are not evicted unless they ask for the tier `basic`",
            );
        }
    }
    let (tier, instance) = (
        keys.text("singularity_sla_tier")?,
        keys.text("singularity_instance_type")?,
    );
    let places = [
        keys.place("singularity_sla_tier"),
        keys.place("singularity_instance_type"),
    ];
    if platform != Platform::Singularity {
        for (key, given, at) in [
            ("singularity_sla_tier", tier, places[0]),
            ("singularity_instance_type", instance, places[1]),
        ] {
            if given.is_some() {
                work.report
                    .not_needed(key, at, "only `platform: singularity` uses it");
            }
        }
        return Ok(());
    }
    let word = tier_word(tier.unwrap_or("Premium"), places[0])?;
    work.put_or_assume(keys, "singularity_sla_tier", &path, word);
    work.put_or_assume(
        keys,
        "singularity_instance_type",
        &["job", "resources", "instance_type"],
        instance.unwrap_or(ACT_SINGULARITY_INSTANCE),
    );
    Ok(())
}

pub(super) fn tier_word(text: &str, at: &Position) -> Result<&'static str> {
    match text.to_ascii_lowercase().as_str() {
        "premium" => Ok("premium"),
        "standard" => Ok("standard"),
        "basic" => Ok("basic"),
        _ => Err(wrong(
            at,
            format!("a tier is Premium, Standard or Basic, not `{text}`"),
        )),
    }
}

fn ignored(keys: &Section<'_>, work: &mut Work<'_>) -> Result<()> {
    let at = keys.place("zip_options");
    let words: Vec<String> = match keys.get("zip_options").and_then(Node::text) {
        // A single text is a line for the shell.
        Some(line) => shell_words::split(line, false)
            .ok_or_else(|| wrong(at, "`zip_options`: a quote is not closed"))?
            .into_iter()
            .map(|(_, word)| word)
            .collect(),
        None => keys
            .lines("zip_options")?
            .into_iter()
            .map(str::to_owned)
            .collect(),
    };
    if words.is_empty() {
        return Ok(());
    }
    let (patterns, others) = zip::split(&words.iter().map(String::as_str).collect::<Vec<_>>());
    if !patterns.is_empty() {
        let rules = patterns
            .iter()
            .map(|pattern| quoted(&zip::ignore_rule(pattern), at))
            .collect();
        work.put(
            "zip_options",
            at,
            &["job", "code", "ignore"],
            Node::sequence(rules, at.clone()),
        );
    }
    for other in others {
        work.report.not_mapped(
            format!("zip_options: {other}"),
            at,
            "nothing is zipped; only exclusions have a meaning",
        );
    }
    Ok(())
}
