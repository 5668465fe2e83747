//! Import on a machine without a keyring: references to the keyring become variables, and so do the
//! commands that store them.

use super::Report;
use towline_core::yaml::{Content, Node};

/// The variable of a datastore's credential: `RESEARCH_SAS`.
fn variable(store: &str, key: &str) -> String {
    let plain = |text: &str| {
        text.to_ascii_uppercase()
            .replace(|c: char| !c.is_ascii_alphanumeric(), "_")
    };
    let name = format!("{}_{}", plain(store), plain(key));
    if name.starts_with(|c: char| c.is_ascii_digit()) {
        format!("STORE_{name}")
    } else {
        name
    }
}

/// Replaces references to the keyring by variables.
pub(super) fn use_variables(config: &mut Node, reports: &mut [Report]) {
    let mut names: Vec<(String, String)> = Vec::new();
    if let Some(stores) = entry(config, "datastores")
        && let Content::Mapping(stores) = &mut stores.content
    {
        for (store, keys) in stores {
            let (Some(store), Some(credential)) =
                (store.text().map(str::to_owned), entry(keys, "credential"))
            else {
                continue;
            };
            let Content::Mapping(references) = &mut credential.content else {
                continue;
            };
            for (key, reference) in references {
                let Some(stored) = reference
                    .text()
                    .and_then(|text| text.strip_prefix("keyring:"))
                    .map(str::to_owned)
                else {
                    continue;
                };
                let name = variable(&store, key.text().unwrap_or_default());
                *reference = Node::scalar(format!("env:{name}"), reference.at.clone());
                names.push((stored, name));
            }
        }
    }
    for report in reports {
        let told = std::mem::take(&mut report.commands);
        report.commands = told
            .into_iter()
            .map(|command| exported(&command, &names))
            .collect();
        if !report.commands.is_empty() {
            report.warn(
                "this machine has no keyring (`secret-tool` is not installed): credentials \
                are taken from variables. `file:PATH`, a file of mode 0600, does as well",
            );
        }
    }
}

/// The command that sets a variable, for one that stores a value.
fn exported(command: &str, names: &[(String, String)]) -> String {
    let stored = |name: &str| {
        command
            .strip_prefix(&Report::store_words(name))
            .map(str::to_owned)
    };
    let of_store = names
        .iter()
        .find_map(|(stored_as, name)| Some((name.clone(), stored(stored_as)?)));
    // A secret of a script has the name of its variable already.
    let of_script = || {
        let name = command
            .split(" towline ")
            .nth(1)?
            .split_whitespace()
            .next()?;
        Some((name.to_owned(), stored(name)?))
    };
    match of_store.or_else(of_script) {
        Some((name, from)) => format!(
            "export {name}=…    # {}",
            from.trim_start_matches("asks for it; ")
        ),
        None => command.to_owned(),
    }
}

fn entry<'n>(node: &'n mut Node, name: &str) -> Option<&'n mut Node> {
    match &mut node.content {
        Content::Mapping(entries) => entries
            .iter_mut()
            .find(|(key, _)| key.text() == Some(name))
            .map(|(_, value)| value),
        _ => None,
    }
}
