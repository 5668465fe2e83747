//! The data of a job: the stores that the job file names, as they are configured now. The secrets
//! of their credentials are held apart.

use super::stores::{is_in_file, references, store};
use crate::flow::outside::Outside;
use std::collections::BTreeSet;
use towline_core::config::StoreKind;
use towline_core::job::{IoMode, Job};
use towline_core::redact::SecretSet;
use towline_core::resolve::{CopyPlan, IoPlan};
use towline_core::secret_name::SecretName;
use towline_core::{Error, Result};
use towline_host::program::find_program;

/// Programs that mount a store, the better one first.
pub const MOUNTERS: [&str; 2] = ["blobfuse2", "rclone"];

/// A job's data as the plan has it.
#[derive(Debug, Default)]
pub struct JobData {
    pub io: Vec<IoPlan>,
    pub copy: Option<CopyPlan>,
    pub secrets: SecretSet,
}

/// Looks up all stores of a job. No store is asked yet. Folders and programs of a far cluster are
/// not checked here, because only its nodes have them.
pub(super) fn job_data(outside: &dyn Outside, job: &Job, is_here: bool) -> Result<JobData> {
    let mut data = JobData::default();
    if job.io.is_empty() && job.copy.is_none() {
        return Ok(data);
    }
    let mut variables = BTreeSet::new();
    for (name, io) in &job.io {
        check_name(name)?;
        let store = store(
            outside,
            &format!("`io.{name}`"),
            &io.datastore,
            is_here,
            &mut data.secrets,
        )?;
        let plan = IoPlan {
            name: name.clone(),
            store,
            path: clean(&format!("io.{name}.path"), &io.path)?,
            mode: io.mode,
            options: io.options.clone(),
        };
        if !variables.insert(plan.variable()) {
            return Err(Error::config(format!(
                "two names under `io` give the same variable {}",
                plan.variable()
            ))
            .hint("rename one of them"));
        }
        if is_here {
            check_mount(outside, &plan)?;
        }
        data.io.push(plan);
    }
    if let Some(copy) = &job.copy {
        let store = store(
            outside,
            "`copy`",
            &copy.datastore,
            is_here,
            &mut data.secrets,
        )?;
        let subdirs = copy
            .subdirs
            .iter()
            .map(|subdir| clean("copy.subdirs", subdir))
            .collect::<Result<_>>()?;
        data.copy = Some(CopyPlan {
            store,
            path: clean("copy.path", &copy.path)?,
            subdirs,
        });
    }
    Ok(data)
}

/// The stores of another run. Only the secrets of their credentials are looked up again.
pub(super) fn same_data(
    outside: &dyn Outside,
    io: Vec<IoPlan>,
    copy: Option<CopyPlan>,
) -> Result<JobData> {
    let mut secrets = SecretSet::default();
    for store in io
        .iter()
        .map(|io| &io.store)
        .chain(copy.iter().map(|copy| &copy.store))
    {
        for (key, reference) in references(&store.datastore) {
            // A credential that was sent by value is in a file of this machine.
            let from = reference
                .strip_prefix("keyring:")
                .filter(|file| is_in_file(file))
                .unwrap_or(reference);
            secrets.0.insert(
                SecretName::Datastore(reference.to_owned()),
                outside.secret(&format!("datastore `{}`", store.name), key, from)?,
            );
        }
    }
    Ok(JobData { io, copy, secrets })
}

pub(super) fn check_name(name: &str) -> Result<()> {
    let good = name
        .chars()
        .next()
        .is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    if good {
        Ok(())
    } else {
        Err(Error::config(format!(
            "`io.{name}`: a name has letters, digits, `_` and `-`, and begins with a letter"
        ))
        .about(format!("io.{name}")))
    }
}

/// The path in plain form. `..` is refused.
pub fn clean(key: &str, path: &str) -> Result<String> {
    let parts: Vec<&str> = path
        .split('/')
        .filter(|part| !part.is_empty() && *part != ".")
        .collect();
    if parts.contains(&"..") {
        return Err(
            Error::config(format!("`{key}`: `{path}` climbs out of its datastore")).about(key),
        );
    }
    Ok(parts.join("/"))
}

/// A mount needs a program that mounts; a folder needs none.
fn check_mount(outside: &dyn Outside, plan: &IoPlan) -> Result<()> {
    let kind = &plan.store.datastore.kind;
    if plan.mode != IoMode::Mount || *kind == StoreKind::Folder {
        return Ok(());
    }
    let path = outside.variables().get("PATH").unwrap_or_default();
    let usable = MOUNTERS
        .iter()
        .filter(|program| **program != "blobfuse2" || *kind == StoreKind::AzureBlob);
    if usable
        .clone()
        .any(|program| find_program(program, path).is_some())
    {
        return Ok(());
    }
    let names: Vec<&str> = usable.copied().collect();
    Err(Error::unsupported(format!(
        "`io.{}` is to be mounted, and no program for it was found: {}",
        plan.name,
        names.join(", ")
    ))
    .hint("install it, or use `mode: read` or `mode: write`")
    .about(format!("io.{}.mode", plan.name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_plain_and_stays_below_its_datastore() {
        assert_eq!(clean("io.a", "/a//./b/").expect("plain"), "a/b");
        assert_eq!(clean("io.a", "").expect("plain"), "");
        assert!(clean("io.a", "a/../b").is_err());
    }
}
