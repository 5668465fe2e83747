//! The code and the copied data of a toolkit's submission.

use super::section::{Section, wrong};
use super::{Converted, quoted};
use towline_core::Result;
use towline_core::yaml::Node;

/// The report's text for keys that become `sync`.
const MIRROR_NOTE: &str = "sync, for `tow sync`; a submission does not need it";

/// The parts of a list that the toolkit separates by `;` or lines.
fn listed(text: &str) -> Vec<&str> {
    text.split([';', '\n'])
        .map(|part| part.trim().trim_end_matches('/'))
        .filter(|part| !part.is_empty())
        .collect()
}

/// The ignored folders, the mirror and the work folder of the code, and the data that is copied
/// before the start.
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

/// `sync_code` of 1.3, which also has the button Synchronize: it uploaded the code to the work
/// folder of the datastore.
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

/// Copies the job's `code.ignore` to `sync.ignore`, so that a mirror has the same files as a job.
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

/// `synchronization.target` names an io: `tow sync` mirrors the code to its place.
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
    keys.report_unknown(
        &mut converted.report,
        "not a known field of a synchronization",
    );
    Ok(())
}

/// `copy_data`, with its folder and subfolders.
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
