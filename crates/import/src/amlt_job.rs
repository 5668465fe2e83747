//! One job of an amlt file.

use super::act_defaults::{is_variable, tier_word};
use super::section::{Section, text, wrong};
use super::{Converted, ScriptLines, add_secret, amlt, amlt_sku, put_script, quoted};
use towline_core::Result;
use towline_core::quantity::Span;
use towline_core::yaml::{Content, Node, Position};

/// The old mount points of datastores, and the `io` that each becomes.
#[derive(Debug, Default)]
pub(super) struct Mounts(Vec<(String, String)>);

impl Mounts {
    pub(super) fn add(&mut self, place: &str, io: &str) {
        self.0
            .push((place.trim_end_matches('/').to_owned(), io.to_owned()));
        // The longest first: `/mnt/data2` is not below `/mnt/data`.
        self.0
            .sort_by_key(|(place, _)| std::cmp::Reverse(place.len()));
    }

    /// The line with each old place replaced by `${{name}}`.
    fn named(&self, line: &str) -> String {
        self.0.iter().fold(line.to_owned(), |line, (place, io)| {
            let mut made = String::new();
            let mut rest = line.as_str();
            while let Some(at) = rest.find(place.as_str()) {
                let after = &rest[at + place.len()..];
                let ends =
                    !after.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-');
                made += &rest[..at];
                made += &if ends {
                    format!("${{{{{io}}}}}")
                } else {
                    place.clone()
                };
                rest = after;
            }
            made + rest
        })
    }
}

/// The line for the shell on the node: amlt writes `$$X` for `$X`, and `$CONFIG_DIR` for the folder of
/// its file.
pub(super) fn shell_line(line: &str) -> String {
    line.replace("$CONFIG_DIR", ".").replace("$$", "$")
}

/// Puts variables into the job, without those that hold a secret.
pub(super) fn variables(
    keys: &Section<'_>,
    job: &mut Node,
    converted: &mut Converted,
) -> Result<()> {
    for (name, value) in keys.entries().filter(|(_, value)| !value.is_null()) {
        if !is_variable(name) {
            return Err(wrong(
                keys.key_place(name),
                format!(
                    "`{name}` is not the name of a variable: letters, digits and `_`, no digit \
                        first"
                ),
            ));
        }
        let words = text(value, &keys.key(name))?;
        if amlt::is_secret(name, words) {
            add_secret(job, name, &value.at);
            converted.report.not_mapped(
                keys.key(name),
                &value.at,
                "a secret: its value was not copied, only its name to environment.secrets",
            );
            converted
                .report
                .store(name, &format!("the value of `{}`", keys.key(name)));
        } else {
            job.put(
                &["environment", "env", name],
                quoted(&shell_line(words), &value.at),
            );
            converted
                .report
                .mapped(keys.key(name), &value.at, format!("environment.env.{name}"));
        }
    }
    Ok(())
}

pub(super) fn job(
    keys: &Section<'_>,
    name: &str,
    mut job: Node,
    mounts: &Mounts,
    converted: &mut Converted,
) -> Result<Node> {
    job.put(&["name"], quoted(name, keys.place("name")));
    if keys.get("name").is_some() {
        converted
            .report
            .mapped(keys.key("name"), keys.place("name"), "name");
    }
    size(keys, &mut job, converted)?;
    launch(keys, &mut job, converted)?;
    identity_and_tier(keys, &mut job, converted)?;
    submit_args(keys, &mut job, converted)?;
    let tags = keys.lines("tags")?;
    if !tags.is_empty() {
        let at = keys.place("tags");
        job.put(
            &["tags"],
            Node::sequence(
                tags.iter()
                    .map(|tag| quoted(&tag.replace(':', "="), at))
                    .collect(),
                at.clone(),
            ),
        );
        converted.report.mapped(keys.key("tags"), at, "tags");
    }
    if keys.get("azml_int").is_some() {
        converted.report.not_needed(
            keys.key("azml_int"),
            keys.place("azml_int"),
            "logs and curves come without it",
        );
    }
    script(keys, &mut job, mounts, converted)?;
    keys.report_unknown(&mut converted.report, "not a known key of a job");
    Ok(job)
}

fn size(keys: &Section<'_>, job: &mut Node, converted: &mut Converted) -> Result<()> {
    let Some(text) = keys.text("sku")? else {
        return Ok(());
    };
    let at = keys.place("sku");
    let sku = amlt_sku::parse(text, at)?;
    let mut put = |key: &str, value: u32| {
        job.put(
            &["resources", key],
            Node::scalar(value.to_string(), at.clone()),
        );
    };
    put("nodes", sku.nodes);
    if sku.gpus > 0 {
        put("gpus_per_node", sku.gpus);
    }
    if let Some(cpus) = sku.cpus {
        put("cpus_per_node", cpus);
    }
    converted.report.mapped(
        keys.key("sku"),
        at,
        "resources.nodes, resources.gpus_per_node or cpus_per_node",
    );
    if !sku.regions.is_empty() {
        job.put(
            &["resources", "location"],
            Node::sequence(
                sku.regions
                    .iter()
                    .map(|region| quoted(region, at))
                    .collect(),
                at.clone(),
            ),
        );
    }
    if !sku.kinds.is_empty() || sku.gpu_memory.is_some() {
        let memory = sku
            .gpu_memory
            .map(|size| format!("{size} GB each"))
            .into_iter();
        let kinds: Vec<String> = sku.kinds.iter().cloned().chain(memory).collect();
        converted.report.warn(format!(
            "`sku: {text}` chose the machine by its GPUs ({}): write its name as \
                `resources.instance_type`; `tow clusters --discover` lists them",
            kinds.join(", ")
        ));
    }
    Ok(())
}

fn launch(keys: &Section<'_>, job: &mut Node, converted: &mut Converted) -> Result<()> {
    let at = keys.place("process_count_per_node");
    let word = match keys.text("process_count_per_node")? {
        None | Some("0") => "once",
        Some("-1") => "per_gpu",
        Some("1") => "per_node",
        Some(number) if number.parse::<u32>().is_ok() => number,
        Some(other) => {
            return Err(wrong(
                at,
                format!("`process_count_per_node: {other}` is not a number"),
            ));
        }
    };
    job.put(&["launch"], Node::scalar(word, at.clone()));
    if keys.get("process_count_per_node").is_some() {
        converted
            .report
            .mapped(keys.key("process_count_per_node"), at, "launch");
    } else {
        converted
            .report
            .assumed(keys.key("process_count_per_node"), "launch: once");
    }
    if keys.get("mpi").is_some() {
        converted.report.not_needed(
            keys.key("mpi"),
            keys.place("mpi"),
            "ranks are started with the variables of Open MPI and torchrun",
        );
    }
    Ok(())
}

/// Identity, tier and priority.
fn identity_and_tier(keys: &Section<'_>, job: &mut Node, converted: &mut Converted) -> Result<()> {
    if let Some(word) = keys.text("identity")? {
        let at = keys.place("identity");
        if word == "managed" {
            converted.report.not_mapped(
                keys.key("identity"),
                at,
                "it does not say which one: write `identity: managed:NAME`",
            );
        } else {
            job.put(&["identity"], Node::scalar(word, at.clone()));
            converted
                .report
                .mapped(keys.key("identity"), at, "identity");
        }
    }
    let tier = match (keys.text("sla_tier")?, keys.flag("preemptible")?) {
        (Some(tier), _) => Some(("sla_tier", tier_word(tier, keys.place("sla_tier"))?)),
        (None, Some(true)) => Some(("preemptible", "basic")),
        (None, Some(false)) => Some(("preemptible", "premium")),
        (None, None) => None,
    };
    if let Some((key, word)) = tier {
        job.put(
            &["resources", "tier"],
            Node::scalar(word, keys.place(key).clone()),
        );
        converted
            .report
            .mapped(keys.key(key), keys.place(key), "resources.tier");
    }
    if let Some(priority) = keys.text("priority")? {
        native(job, &format!("priority={priority}"), keys.place("priority"));
        converted.report.mapped(
            keys.key("priority"),
            keys.place("priority"),
            "resources.native",
        );
    }
    Ok(())
}

fn native(job: &mut Node, word: &str, at: &Position) {
    let mut words: Vec<Node> = match job
        .get("resources")
        .and_then(|resources| resources.get("native"))
        .map(|node| &node.content)
    {
        Some(Content::Sequence(words)) => words.clone(),
        _ => Vec::new(),
    };
    words.push(quoted(word, at));
    job.put(&["resources", "native"], Node::sequence(words, at.clone()));
}

fn submit_args(keys: &Section<'_>, job: &mut Node, converted: &mut Converted) -> Result<()> {
    let Some(args) = keys.section("submit_args")? else {
        return Ok(());
    };
    if let Some(env) = args.section("env")? {
        variables(&env, job, converted)?;
    }
    if let Some(most) = args.number("max_attempts")? {
        let at = args.place("max_attempts");
        job.put(
            &["retry", "when"],
            Node::sequence(vec![Node::scalar("node_failed", at.clone())], at.clone()),
        );
        job.put(
            &["retry", "max"],
            Node::scalar(most.max(1).to_string(), at.clone()),
        );
        converted
            .report
            .mapped(args.key("max_attempts"), at, "retry");
    }
    if let Some(seconds) = args.number("max_run_duration_seconds")? {
        let at = args.place("max_run_duration_seconds");
        job.put(
            &["resources", "time"],
            Node::scalar(Span(seconds.into()).to_string(), at.clone()),
        );
        converted
            .report
            .mapped(args.key("max_run_duration_seconds"), at, "resources.time");
    }
    if let Some(container) = args.section("container_args")? {
        if let Some(size) = container.text("shm_size")? {
            native(
                job,
                &format!("shm_size={size}"),
                container.place("shm_size"),
            );
            converted.report.mapped(
                container.key("shm_size"),
                container.place("shm_size"),
                "resources.native",
            );
        }
        container.report_unknown(&mut converted.report, "not a known option of a container");
    }
    args.report_unknown(&mut converted.report, "not a known key of submit_args");
    Ok(())
}

fn script(
    keys: &Section<'_>,
    job: &mut Node,
    mounts: &Mounts,
    converted: &mut Converted,
) -> Result<()> {
    let given = keys.lines("command")?;
    let at = keys.place("command").clone();
    if given.iter().all(|line| line.trim().is_empty()) {
        return Err(wrong(&at, format!("`{}` is missing", keys.key("command"))));
    }
    // amlt filled in variables at submission; now the shell on the node does.
    if let Some(line) = given.iter().find(|line| {
        line.replace("$$", "")
            .replace("$CONFIG_DIR", "")
            .contains('$')
    }) {
        converted.report.warn(format!(
            "`{line}`: a `$NAME` was filled in at submission; now the shell on the node does. \
                Write what is not set there under `environment.env`"
        ));
    }
    let lines: Vec<String> = given
        .iter()
        .map(|line| mounts.named(&shell_line(line)))
        .collect();
    if lines.iter().any(|line| line.contains("AMLT_OUTPUT_DIR")) {
        let place = if job.get("io").and_then(|io| io.get("output")).is_some() {
            "${{output}}"
        } else {
            "outputs"
        };
        job.put(
            &["environment", "env", "AMLT_OUTPUT_DIR"],
            quoted(place, &at),
        );
    }
    put_script(
        converted,
        job,
        &["script"],
        &ScriptLines::of(lines, &keys.key("command")),
        &at,
    );
    converted.report.mapped(keys.key("command"), &at, "script");
    Ok(())
}
