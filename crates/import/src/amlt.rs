//! A file of amlt (Amulet): its target, environment and storage, and each of its jobs as a job file.

use super::amlt_job::{self, Mounts};
use super::amlt_search::search;
use super::amlt_target::target;
use super::section::{Section, wrong};
use super::{Converted, ScriptLines, put_script, quoted, scrub};
use std::path::Path;
use towline_core::Result;
use towline_core::yaml::{Content, Node};

pub(super) fn convert(file: &Path, tree: &Node) -> Result<Converted> {
    let form = Section::new(tree, "")?;
    let mut converted = Converted::new(&file.display().to_string());
    if form.get("jobs").is_none() && form.get("search").is_none() {
        return Err(wrong(
            &tree.at,
            "there is neither `jobs` nor `search`: this is not a file of amlt",
        ));
    }
    let mut base = Node::mapping(tree.at.clone());
    target(&form, &mut base, &mut converted)?;
    environment(&form, &mut base, &mut converted)?;
    code(&form, &mut base, &mut converted)?;
    let mounts = storage(&form, &mut base, &mut converted)?;
    defaults(&form, &mut base, &mut converted)?;
    if let Some(text) = form.text("description")? {
        converted.report.not_needed(
            "description",
            form.place("description"),
            format!("`{}`: a job has a name and an experiment", first_line(text)),
        );
    }
    for key in ["data", "requires"]
        .into_iter()
        .filter(|key| form.get(key).is_some())
    {
        converted.report.not_mapped(
            key,
            form.place(key),
            "bring data once with `tow up`, and name its place under `io`",
        );
    }
    jobs(&form, &base, &mounts, &mut converted)?;
    form.report_unknown(&mut converted.report, "not a known key of amlt");
    Ok(converted)
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

fn environment(form: &Section<'_>, base: &mut Node, converted: &mut Converted) -> Result<()> {
    let Some(keys) = form.section("environment")? else {
        return Ok(());
    };
    if let Some(image) = keys.text("image")? {
        let at = keys.place("image");
        let registry = keys
            .text("registry")?
            .filter(|registry| !image.starts_with(registry));
        let whole = registry.map_or_else(
            || image.to_owned(),
            |registry| format!("{}/{image}", registry.trim_end_matches('/')),
        );
        base.put(&["environment", "image"], quoted(&whole, at));
        converted
            .report
            .mapped("environment.image", at, "environment.image");
    }
    if keys.get("registry").is_some() {
        converted.report.mapped(
            "environment.registry",
            keys.place("registry"),
            "environment.image",
        );
    }
    if keys.get("username").is_some() {
        converted.report.not_mapped(
            "environment.username",
            keys.place("username"),
            "a private registry is read with the workspace's own rights",
        );
    }
    let mut lines = Vec::new();
    for key in ["image_setup", "setup"] {
        let before = lines.len();
        lines.extend(keys.lines(key)?.into_iter().map(amlt_job::shell_line));
        if lines.len() > before {
            converted
                .report
                .mapped(keys.key(key), keys.place(key), "environment.setup");
        }
    }
    if keys.get("image_setup").is_some() {
        converted.report.warn(
            "`environment.image_setup` was done once, as root, and kept in the \
            image: as `environment.setup` it runs on every node before each start. Build an image \
                of your own where it takes long",
        );
    }
    if !lines.is_empty() {
        let at = keys.place("setup").clone();
        put_script(
            converted,
            base,
            &["environment", "setup"],
            &ScriptLines::of(lines, "`environment.setup`"),
            &at,
        );
    }
    for key in ["conda_yaml_file", "skip_conda_packages_on_sing"]
        .into_iter()
        .filter(|key| keys.get(key).is_some())
    {
        converted.report.not_mapped(
            keys.key(key),
            keys.place(key),
            "write `conda env update -f FILE` as a line of `environment.setup`",
        );
    }
    if let Some(env) = keys.section("env")? {
        amlt_job::variables(&env, base, converted)?;
    }
    keys.report_unknown(&mut converted.report, "not a known key of an environment");
    Ok(())
}

fn code(form: &Section<'_>, base: &mut Node, converted: &mut Converted) -> Result<()> {
    let Some(keys) = form.section("code")? else {
        return Ok(());
    };
    if let Some(folder) = keys.text("local_dir")? {
        let at = keys.place("local_dir");
        let below = folder.replace("$CONFIG_DIR", ".");
        if below.trim_matches(['.', '/']).is_empty() && !below.contains("..") {
            converted.report.not_needed(
                "code.local_dir",
                at,
                "the code is the folder of the project",
            );
        } else {
            base.put(&["code", "root"], quoted(&below, at));
            converted.report.mapped("code.local_dir", at, "code.root");
            converted.report.warn(format!(
                "`code.root` is `{below}`, as it was seen from the \
                folder of the file: look whether that is right from here"
            ));
        }
    }
    let ignored = keys.lines("ignore")?;
    if !ignored.is_empty() {
        let at = keys.place("ignore");
        base.put(
            &["code", "ignore"],
            Node::sequence(
                ignored.iter().map(|name| quoted(name, at)).collect(),
                at.clone(),
            ),
        );
        converted.report.mapped("code.ignore", at, "code.ignore");
    }
    keys.report_unknown(&mut converted.report, "not a known key of code");
    Ok(())
}

/// Each storage becomes a mounted `io` of every job. Commands name it by `${{…}}` instead of its old
/// path.
fn storage(form: &Section<'_>, base: &mut Node, converted: &mut Converted) -> Result<Mounts> {
    let mut mounts = Mounts::default();
    let Some(all) = form.section("storage")? else {
        return Ok(mounts);
    };
    for (id, value) in all.entries() {
        let keys = Section::new(value, &all.key(id))?;
        let name: String = id
            .chars()
            .map(|c| {
                if c.is_ascii_alphanumeric() || c == '_' {
                    c
                } else {
                    '_'
                }
            })
            .collect();
        let (account, container) = (
            keys.text("storage_account_name")?,
            keys.text("container_name")?,
        );
        let store = match (account, container, keys.text("datastore_name")?) {
            (Some(account), Some(container), _) => {
                for (key, word) in [
                    ("kind", "azure_blob"),
                    ("account", account),
                    ("container", container),
                    ("credential", "azure_cli"),
                ] {
                    converted.config.put(
                        &["datastores", id, key],
                        Node::scalar(word, value.at.clone()),
                    );
                }
                id.to_owned()
            }
            (_, _, Some(known)) => known.to_owned(),
            _ => {
                converted.report.not_mapped(
                    all.key(id),
                    &value.at,
                    "only blob containers can be reached; a file share cannot",
                );
                continue;
            }
        };
        for (key, word) in [("datastore", store.as_str()), ("mode", "mount")] {
            base.put(&["io", &name, key], quoted(word, &value.at));
        }
        converted.report.mapped(
            all.key(id),
            &value.at,
            format!("io.{name}, datastore `{store}`"),
        );
        mounts.add(
            &keys
                .text("mount_dir")?
                .map_or_else(|| format!("/mnt/{id}"), str::to_owned),
            &name,
        );
        for (key, why) in [
            ("is_output", "it is mounted for writing in any case"),
            ("local_dir", "`tow up` and `tow down` take a path here"),
            ("mount_options", "write `options` under its `io`"),
        ] {
            if keys.get(key).is_some() {
                converted
                    .report
                    .not_needed(keys.key(key), keys.place(key), why);
            }
        }
        keys.report_unknown(&mut converted.report, "not a known key of a storage");
    }
    Ok(mounts)
}

fn defaults(form: &Section<'_>, base: &mut Node, converted: &mut Converted) -> Result<()> {
    let Some(keys) = form.section("env_defaults")? else {
        return Ok(());
    };
    amlt_job::variables(&keys, base, converted)
}

fn jobs(form: &Section<'_>, base: &Node, mounts: &Mounts, converted: &mut Converted) -> Result<()> {
    if let Some(keys) = form.section("search")? {
        search(&keys, base, mounts, converted)?;
    }
    let Some(list) = form.get("jobs") else {
        return Ok(());
    };
    let Content::Sequence(items) = &list.content else {
        return Err(wrong(&list.at, "`jobs` must be a list"));
    };
    for (index, item) in items.iter().enumerate() {
        let keys = Section::new(item, &format!("jobs[{index}]"))?;
        let name = keys
            .text("name")?
            .map_or_else(|| format!("job-{}", index + 1), str::to_owned);
        let job = amlt_job::job(&keys, &name, base.clone(), mounts, converted)?;
        converted.jobs.push((name, job));
    }
    if items.is_empty() && converted.jobs.is_empty() {
        return Err(wrong(&list.at, "`jobs` is empty"));
    }
    Ok(())
}

/// Whether a variable holds a secret, which must not be copied.
pub(super) fn is_secret(name: &str, value: &str) -> bool {
    scrub::is_secret(name, value)
}
