//! Asks whether a project's configuration may do more than describe jobs.

use crate::output;
use towline_core::{Error, Result};
use towline_engine::layers::{Sources, Untrusted};
use towline_engine::trust::Trusted;
use towline_wire::report::trust::{PrivilegedFile, PrivilegedKey};

/// How many privileged keys are shown at most.
const SHOWN_KEYS: usize = 30;

/// One line: the keys without effect, and how to trust them.
pub(crate) fn summary(untrusted: &Untrusted) -> String {
    format!(
        "{} is not trusted, so {} do not count; look at it: tow trust {}",
        untrusted.shown,
        keys(untrusted),
        untrusted.folder.display()
    )
}

fn keys(untrusted: &Untrusted) -> String {
    let first: Vec<String> = untrusted
        .privileges
        .iter()
        .take(3)
        .map(|privilege| format!("`{}`", privilege.key))
        .collect();
    let more = untrusted.privileges.len().saturating_sub(3);
    if more > 0 {
        format!("{} and {more} more keys", first.join(", "))
    } else {
        first.join(", ")
    }
}

/// The file, and its keys that do more than describe jobs.
pub(crate) fn privileged(untrusted: &Untrusted) -> PrivilegedFile {
    let keys = untrusted.privileges.iter().map(|found| PrivilegedKey {
        key: found.key.clone(),
        value: found.value.clone(),
        meaning: found.meaning.to_string(),
    });
    PrivilegedFile {
        file: untrusted.shown.clone(),
        keys: keys.collect(),
    }
}

/// What trusting it would allow, line by line.
pub(crate) fn description(untrusted: &Untrusted) -> String {
    file_description(&privileged(untrusted))
}

/// What trusting the file would allow, line by line.
pub(crate) fn file_description(file: &PrivilegedFile) -> String {
    let mut text = format!("{} does more than describe jobs:\n", file.file);
    let shown = file.keys.iter().take(SHOWN_KEYS);
    let widths = shown.clone().map(|key| key.key.chars().count());
    let widest = widths.max().unwrap_or(0);
    for PrivilegedKey {
        key,
        value,
        meaning,
    } in shown
    {
        text += &format!("  {key:<widest$}  {meaning}: {value}\n");
    }
    if file.keys.len() > SHOWN_KEYS {
        text += &format!("  … and {} more keys\n", file.keys.len() - SHOWN_KEYS);
    }
    text
}

/// Asks the user, if there is one. Without a yes nothing is done.
pub(crate) fn ask(sources: &Sources, all: &[Untrusted]) -> Result<()> {
    for untrusted in all {
        if !output::can_ask() {
            let folder = untrusted.folder.display();
            return Err(Error::refused(format!(
                "{} is not trusted: it sets {}, which does more than describe jobs",
                untrusted.shown,
                keys(untrusted)
            ))
            .hint(format!("see what it would do: tow trust {folder}"))
            .hint(format!(
                "agree to it as it is now: tow trust {folder} --yes"
            )));
        }
        output::status(description(untrusted).trim_end());
        if !output::ask("Trust this content?") {
            return Err(Error::refused(format!(
                "{} is not trusted; nothing was done",
                untrusted.shown
            )));
        }
        agree(sources, untrusted)?;
    }
    Ok(())
}

/// Records that the user agreed to this content.
pub(crate) fn agree(sources: &Sources, untrusted: &Untrusted) -> Result<()> {
    Trusted::of(sources.user_folder.as_deref()).add(
        &untrusted.folder,
        untrusted.holding,
        &untrusted.digest,
    )
}
