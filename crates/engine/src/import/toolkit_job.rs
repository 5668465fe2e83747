//! The parts of a toolkit's submission that become a job.

use super::act_defaults::tier_word;
use super::section::{Section, wrong};
use super::{Converted, Lines, put_script, quoted};
use towline_core::Result;
use towline_core::sweep::Sweep;
use towline_core::yaml::{Content, Node, Position};

/// What a mirror of the code is answered with.
const MIRROR_NOTE: &str = "sync, for `tow sync`; a submission does not need it";

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

/// What the box "Managed ID" writes for "Not used".
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

/// `io` of 2.2.
pub(super) fn io(form: &Section<'_>, job: &mut Node, converted: &mut Converted) -> Result<()> {
    let Some(list) = form.get("io") else {
        return Ok(());
    };
    let Content::Sequence(items) = &list.content else {
        return Err(wrong(&list.at, "`io` must be a list"));
    };
    for (index, item) in items.iter().enumerate() {
        let key = format!("io[{index}]");
        let entry = Section::new(item, &key)?;
        let Some(name) = entry.text("name")? else {
            return Err(wrong(&item.at, format!("`{key}` has no `name`")));
        };
        let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
        if !is_name {
            return Err(wrong(
                entry.place("name"),
                format!(
                    "`{name}`: a name of `io` has letters, digits, `_` and `-`, and begins with a \
                        letter"
                ),
            ));
        }
        if job.get("io").and_then(|io| io.get(name)).is_some() {
            return Err(wrong(
                entry.place("name"),
                format!("`{name}`: two of `io` have this name"),
            ));
        }
        let Some(datastore) = entry.text("datastore")? else {
            return Err(wrong(&item.at, format!("`{key}` has no `datastore`")));
        };
        job.put(
            &["io", name, "datastore"],
            quoted(datastore, entry.place("datastore")),
        );
        if let Some(path) = entry.text("path")? {
            job.put(
                &["io", name, "path"],
                quoted(path.trim_matches('/'), entry.place("path")),
            );
        }
        let mode = entry
            .text("mode")?
            .unwrap_or("rw_mount")
            .to_ascii_lowercase();
        let ours = match mode.as_str() {
            "ro_mount" | "download" | "read" => "read",
            "rw_mount" | "mount" => "mount",
            "upload" | "write" => "write",
            _ => {
                return Err(wrong(
                    entry.place("mode"),
                    format!("`{mode}` is no mode: ro_mount, download, rw_mount or upload"),
                ));
            }
        };
        job.put(
            &["io", name, "mode"],
            Node::scalar(ours, entry.place("mode").clone()),
        );
        if mode == "download" {
            job.put(
                &["io", name, "options"],
                Node::sequence(
                    vec![quoted("download", entry.place("mode"))],
                    entry.place("mode").clone(),
                ),
            );
        }
        converted
            .report
            .mapped(key.as_str(), &item.at, format!("io.{name}"));
        entry.tell_rest(&mut converted.report, "no field of an io that is known");
    }
    Ok(())
}

fn listed(text: &str) -> Vec<&str> {
    text.split([';', '\n'])
        .map(|part| part.trim().trim_end_matches('/'))
        .filter(|part| !part.is_empty())
        .collect()
}

/// Where the code lies, what of it is left out, and data that is copied first.
pub(super) fn code_and_data(
    form: &Section<'_>,
    experiment: &Section<'_>,
    store: Option<&str>,
    job: &mut Node,
    converted: &mut Converted,
) -> Result<()> {
    let synchronization = form.section("synchronization")?;
    for keys in [Some(experiment), synchronization.as_ref()]
        .into_iter()
        .flatten()
    {
        if let Some(ignored) = keys.text("ignore_dir")? {
            put_ignored(keys, &listed(ignored), job, converted);
        }
    }
    if let Some(keys) = &synchronization {
        mirror(keys, job, converted)?;
    }
    sync_code(experiment, store, job, converted)?;
    if let Some(workdir) = experiment
        .text("workdir")?
        .map(|path| path.trim_matches('/'))
    {
        let at = experiment.place("workdir");
        if let Some(store) = store {
            for (key, value) in [("datastore", store), ("path", workdir), ("mode", "mount")] {
                job.put(&["io", "workdir", key], quoted(value, at));
            }
            converted
                .report
                .mapped("experiment.workdir", at, "io.workdir");
            converted.report.warn(
                "the script starts in the code that travels with it; what is to \
                stay in the store goes to ${{workdir}}",
            );
        } else {
            converted.report.not_mapped(
                "experiment.workdir",
                at,
                "there is no `storage` it could lie in",
            );
        }
    }
    copied(experiment, store, job, converted)
}

/// `sync_code` of 1.3, which has the button Synchronize too: the code went to the work folder of
/// the store.
fn sync_code(
    experiment: &Section<'_>,
    store: Option<&str>,
    job: &Node,
    converted: &mut Converted,
) -> Result<()> {
    let Some(is_sent) = experiment.flag("sync_code")? else {
        return Ok(());
    };
    let at = experiment.place("sync_code");
    let folder = experiment
        .text("workdir")?
        .map(|path| path.trim_matches('/'))
        .filter(|path| is_sent && !path.is_empty());
    let (Some(folder), Some(store)) = (folder, store) else {
        converted.report.not_needed(
            "experiment.sync_code",
            at,
            "a submission takes a snapshot of the code by itself",
        );
        return Ok(());
    };
    for (key, value) in [("datastore", store), ("path", folder)] {
        converted.config.put(&["sync", key], quoted(value, at));
    }
    put_mirror_ignored(job, converted);
    converted
        .report
        .mapped("experiment.sync_code", at, MIRROR_NOTE);
    Ok(())
}

/// What is left out of the job's code is left out of the mirror.
fn put_mirror_ignored(job: &Node, converted: &mut Converted) {
    if let Some(ignored) = job.get("code").and_then(|code| code.get("ignore")) {
        converted.config.put(&["sync", "ignore"], ignored.clone());
    }
}

fn put_ignored(keys: &Section<'_>, names: &[&str], job: &mut Node, converted: &mut Converted) {
    let at = keys.place("ignore_dir");
    job.put(
        &["code", "ignore"],
        Node::sequence(
            names.iter().map(|name| quoted(name, at)).collect(),
            at.clone(),
        ),
    );
    converted
        .report
        .mapped(keys.key("ignore_dir"), at, "code.ignore");
}

/// `synchronization.target` names an io: there `tow sync` mirrors the code to.
fn mirror(keys: &Section<'_>, job: &Node, converted: &mut Converted) -> Result<()> {
    if let Some(target) = keys.text("target")? {
        let at = keys.place("target");
        match job.get("io").and_then(|io| io.get(target)) {
            Some(io) => {
                for key in ["datastore", "path"] {
                    if let Some(value) = io.get(key) {
                        converted.config.put(&["sync", key], value.clone());
                    }
                }
                put_mirror_ignored(job, converted);
                converted
                    .report
                    .mapped("synchronization.target", at, MIRROR_NOTE);
            }
            None => converted.report.not_mapped(
                "synchronization.target",
                at,
                format!("no io is called `{target}`"),
            ),
        }
    }
    keys.tell_rest(
        &mut converted.report,
        "no field of a synchronization that is known",
    );
    Ok(())
}

fn copied(
    keys: &Section<'_>,
    store: Option<&str>,
    job: &mut Node,
    converted: &mut Converted,
) -> Result<()> {
    let wanted = keys.flag("copy_data")?.unwrap_or(false);
    let (folder, parts) = (keys.text("data_dir")?, keys.text("data_subdir")?);
    let names = ["copy_data", "data_dir", "data_subdir"];
    match (wanted, folder, store) {
        (true, Some(folder), Some(store)) => {
            job.put(
                &["copy", "datastore"],
                quoted(store, keys.place("data_dir")),
            );
            job.put(
                &["copy", "path"],
                quoted(folder.trim_matches('/'), keys.place("data_dir")),
            );
            let parts = listed(parts.unwrap_or_default());
            if !parts.is_empty() {
                let at = keys.place("data_subdir");
                job.put(
                    &["copy", "subdirs"],
                    Node::sequence(
                        parts.iter().map(|part| quoted(part, at)).collect(),
                        at.clone(),
                    ),
                );
            }
            converted
                .report
                .warn("the copied data lies at $TOW_COPY_DIR on the node");
            for key in names.into_iter().filter(|key| keys.get(key).is_some()) {
                converted
                    .report
                    .mapped(keys.key(key), keys.place(key), "copy");
            }
        }
        (true, None, _) => {
            return Err(wrong(
                keys.place("copy_data"),
                "`copy_data` is set, and there is no `data_dir`",
            ));
        }
        (true, Some(_), None) => {
            return Err(wrong(
                keys.place("data_dir"),
                "`copy_data` is set, and there is no `storage` to copy from",
            ));
        }
        (false, ..) => {
            for key in names.into_iter().filter(|key| keys.get(key).is_some()) {
                converted
                    .report
                    .not_needed(keys.key(key), keys.place(key), "no data is copied");
            }
        }
    }
    Ok(())
}

/// Lines that belong together: one that names an axis, and the lines with more of its values behind
/// it.
fn entries<'l>(
    lines: impl Iterator<Item = (&'l str, &'l Position)>,
) -> Result<Vec<(String, Vec<&'l str>, &'l Position)>> {
    let mut entries: Vec<(String, Vec<&str>, &Position)> = Vec::new();
    for (line, at) in lines.filter(|(line, _)| !line.trim().is_empty()) {
        let split = line
            .split_once(':')
            .filter(|(name, values)| names_an_axis(name.trim()) && !values.starts_with('/'));
        match (split, entries.last_mut()) {
            (Some((name, values)), _) => entries.push((name.trim().to_owned(), vec![values], at)),
            (None, Some((_, values, _))) => values.push(line),
            (None, None) => {
                return Err(wrong(
                    at,
                    format!("`{line}`: a sweep is written `name: v1, v2`"),
                ));
            }
        }
    }
    Ok(entries)
}

/// `name` or `(a, b)`.
fn names_an_axis(text: &str) -> bool {
    let is_name = |name: &str| {
        let name = name.trim();
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c))
    };
    match text
        .strip_prefix('(')
        .and_then(|inner| inner.strip_suffix(')'))
    {
        Some(names) => names.split(',').all(is_name),
        None => is_name(text),
    }
}

/// `name: v1, v2`, `(a,b): (1,2), (3,4)`; commas or lines between values, also right behind the
/// colon.
pub(super) fn sweep(keys: &Section<'_>, job: &mut Node, converted: &mut Converted) -> Result<()> {
    let Some(node) = keys.get("arg_sweep") else {
        return Ok(());
    };
    let texts: Vec<(&str, &Position)> = match &node.content {
        Content::Sequence(items) => items
            .iter()
            .map(|item| {
                Ok((
                    super::section::text(item, "experiment.arg_sweep")?,
                    &item.at,
                ))
            })
            .collect::<Result<_>>()?,
        Content::Scalar { text, .. } => vec![(text.as_str(), &node.at)],
        Content::Mapping(_) => {
            return Err(wrong(
                &node.at,
                "`experiment.arg_sweep` must be a list of texts",
            ));
        }
    };
    let lines = texts
        .iter()
        .flat_map(|(text, at)| text.lines().map(move |line| (line, *at)));
    let mut sweep = Sweep::default();
    for (name, values, at) in entries(lines)? {
        let values: Vec<&str> = values
            .into_iter()
            .map(|part| part.trim().trim_matches(',').trim())
            .filter(|part| !part.is_empty())
            .collect();
        if values.is_empty() {
            return Err(wrong(
                at,
                format!("`{name}:` has no value in `experiment.arg_sweep`"),
            ));
        }
        sweep
            .set(&format!("{name}={}", values.join(",")))
            .map_err(|error| wrong(at, error.message()))?;
    }
    sweep
        .combinations()
        .map_err(|error| wrong(&node.at, error.message()))?;
    for axis in &sweep.0 {
        let values = |choice: &Vec<String>| {
            Node::sequence(
                choice.iter().map(|value| quoted(value, &node.at)).collect(),
                node.at.clone(),
            )
        };
        let (label, choices) = match axis.names.as_slice() {
            [one] => (
                one.clone(),
                axis.choices
                    .iter()
                    .flatten()
                    .map(|value| quoted(value, &node.at))
                    .collect(),
            ),
            many => (
                format!("({})", many.join(", ")),
                axis.choices.iter().map(values).collect(),
            ),
        };
        job.put(&["sweep", &label], Node::sequence(choices, node.at.clone()));
    }
    if !sweep.is_empty() {
        converted
            .report
            .mapped("experiment.arg_sweep", &node.at, "sweep");
    }
    Ok(())
}

pub(super) fn script(keys: &Section<'_>, job: &mut Node, converted: &mut Converted) -> Result<()> {
    let mut lines = Lines::of(
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
        // Nothing was sent: the code that lies in the store is what ran.
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
        "a line of the script that fails ends the run now; write `set +e` as its \
        first line for the old way",
    );
    Ok(())
}
