//! Which workspaces there are: those of the configuration, and those that `tow scratch create`
//! made, each in a small file of its own beside it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use towline_core::suggest::did_you_mean;
use towline_core::workspace::{MIN_BACKUP_INTERVAL, Workspace};
use towline_core::{Error, Result};

/// A workspace and its file.
#[derive(Debug, Clone)]
pub struct Known {
    pub name: String,
    pub workspace: Workspace,
    /// Its own file; `None` for one of the configuration.
    pub file: Option<PathBuf>,
}

/// Refuses a text that cannot be the name of a workspace.
pub fn check_name(name: &str) -> Result<()> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !name.is_empty() && name.len() <= 60 && name.chars().all(fits) && !name.starts_with('-') {
        return Ok(());
    }
    Err(Error::usage(format!("`{name}` is no name for a workspace"))
        .hint("letters, digits, `-` and `_`: work"))
}

/// Refuses a definition that cannot work. `at` says in errors where it is written.
pub fn check(at: &str, workspace: &Workspace) -> Result<()> {
    if workspace.path.trim().is_empty() {
        return Err(Error::config(format!("{at}: a workspace needs a `path`"))
            .hint("path: /scratch/$USER/work"));
    }
    if let Some(every) = workspace.every.filter(|every| *every < MIN_BACKUP_INTERVAL) {
        return Err(Error::config(format!(
            "{at}: every {every} is too often; {MIN_BACKUP_INTERVAL} is the least"
        )));
    }
    Ok(())
}

/// All of them, by name: those that were made, and those of the configuration. One of the
/// configuration counts before a file of the same name.
pub fn known(
    made: Vec<Known>,
    configured: &BTreeMap<String, Workspace>,
) -> Result<BTreeMap<String, Known>> {
    let mut all = BTreeMap::new();
    for known in made {
        let file = known.file.as_deref().map(Path::display);
        let at = file.map_or_else(|| known.name.clone(), |file| file.to_string());
        check(&at, &known.workspace)?;
        all.insert(known.name.clone(), known);
    }
    for (name, workspace) in configured {
        check_name(name).map_err(|error| Error::config(error.to_string()))?;
        check(&format!("workspace `{name}`"), workspace)?;
        all.insert(
            name.clone(),
            Known {
                name: name.clone(),
                workspace: workspace.clone(),
                file: None,
            },
        );
    }
    Ok(all)
}

/// The named one, or the only one.
pub fn choose(mut all: BTreeMap<String, Known>, name: Option<&str>) -> Result<Known> {
    let list = |all: &BTreeMap<String, Known>| all.keys().cloned().collect::<Vec<_>>().join(", ");
    let none = "`tow scratch create work --path /scratch/$USER/work` makes one";
    match name {
        Some(name) => all.remove(name).ok_or_else(|| {
            let hint = did_you_mean(name, all.keys().map(String::as_str));
            let hint = hint.unwrap_or_else(|| {
                if all.is_empty() {
                    none.to_owned()
                } else {
                    format!("known: {}", list(&all))
                }
            });
            Error::not_found(format!("no workspace is called `{name}`")).hint(hint)
        }),
        None if all.len() == 1 => Ok(all.into_values().next().expect("one is there")),
        None if all.is_empty() => Err(Error::not_found("there is no workspace yet").hint(none)),
        None => Err(Error::usage("which workspace?").hint(format!("name one of {}", list(&all)))),
    }
}

/// Refuses a name that is taken.
pub fn expect_new(all: &BTreeMap<String, Known>, name: &str) -> Result<()> {
    match all.get(name) {
        None => Ok(()),
        Some(Known { file, .. }) => {
            let place = file.as_ref().map_or_else(
                || "your configuration".to_owned(),
                |file| file.display().to_string(),
            );
            Err(
                Error::conflict(format!("there is a workspace `{name}` already, in {place}"))
                    .hint(format!(
                        "`tow scratch restore {name}` brings it onto a fresh machine"
                    ))
                    .hint(format!("`tow scratch ls {name}` shows its backups")),
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(name: &str, path: &str) -> Known {
        Known {
            name: name.to_owned(),
            workspace: Workspace {
                path: path.to_owned(),
                ..Workspace::default()
            },
            file: Some(PathBuf::from(format!("/config/{name}.yaml"))),
        }
    }

    #[test]
    fn the_configuration_counts_before_a_file() {
        let configured = BTreeMap::from([("work".to_owned(), made("work", "/fast").workspace)]);
        let files = vec![made("work", "/slow"), made("more", "/more")];
        let all = known(files, &configured).expect("both are good");
        assert_eq!(all.keys().collect::<Vec<_>>(), ["more", "work"]);
        assert_eq!(
            (all["work"].workspace.path.as_str(), &all["work"].file),
            ("/fast", &None)
        );
    }

    #[test]
    fn the_only_one_needs_no_name() {
        let one = known(vec![made("work", "/fast")], &BTreeMap::new()).expect("good");
        assert_eq!(choose(one.clone(), None).expect("chosen").name, "work");
        let error = choose(one.clone(), Some("wrk")).expect_err("no such name");
        assert!(error.hints()[0].contains("work"), "{error}");
        assert!(expect_new(&one, "work").is_err() && expect_new(&one, "other").is_ok());
        assert!(choose(BTreeMap::new(), None).is_err());
    }

    #[test]
    fn a_file_without_a_path_is_refused_with_its_place() {
        let error = known(vec![made("work", " ")], &BTreeMap::new()).expect_err("no path");
        assert!(error.to_string().contains("/config/work.yaml"), "{error}");
    }
}
