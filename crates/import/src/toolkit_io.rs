//! The `io` of a toolkit's submission.

use super::section::{Section, wrong};
use super::{Converted, quoted};
use towline_core::Result;
use towline_core::yaml::{Content, Node};

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
        let name = checked_name(item, &entry, &key, job)?;
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
        mode(&entry, name, job)?;
        converted
            .report
            .mapped(key.as_str(), &item.at, format!("io.{name}"));
        entry.report_unknown(&mut converted.report, "not a known field of an io");
    }
    Ok(())
}

/// The name of an entry, which must be usable as a variable and new in the job.
fn checked_name<'n>(item: &Node, entry: &Section<'n>, key: &str, job: &Node) -> Result<&'n str> {
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
    Ok(name)
}

fn mode(entry: &Section<'_>, name: &str, job: &mut Node) -> Result<()> {
    let at = entry.place("mode");
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
                at,
                format!("`{mode}` is not a mode: ro_mount, download, rw_mount or upload"),
            ));
        }
    };
    job.put(&["io", name, "mode"], Node::scalar(ours, at.clone()));
    if mode == "download" {
        job.put(
            &["io", name, "options"],
            Node::sequence(vec![quoted("download", at)], at.clone()),
        );
    }
    Ok(())
}
