//! The data of a job: from names in the job file to stores as they are configured now, with what
//! their credentials lead to held apart.

use crate::context::Context;
use std::collections::BTreeSet;
use std::path::Path;
use towline_core::config::{Credential, Datastore};
use towline_core::job::{IoMode, Job};
use towline_core::redact::SecretSet;
use towline_core::resolve::{CopyPlan, IoPlan, NamedStore, STORE_SECRET};
use towline_core::suggest::did_you_mean;
use towline_core::{Error, Result};
use towline_host::program::find_program;
use towline_host::surroundings;
use towline_io::credential::Lookup;

/// Programs that mount a store, the better one first.
pub(crate) const MOUNTERS: [&str; 2] = ["blobfuse2", "rclone"];

/// What a plan says of a job's data.
#[derive(Debug, Default)]
pub(crate) struct JobData {
    pub(crate) io: Vec<IoPlan>,
    pub(crate) copy: Option<CopyPlan>,
    pub(crate) secrets: SecretSet,
}

/// Looks everything up. Nothing is asked of any store yet. What only the nodes of a far cluster
/// have, folders and programs, is theirs to find.
pub(crate) fn job_data(context: &Context, job: &Job, is_here: bool) -> Result<JobData> {
    let mut data = JobData::default();
    if job.io.is_empty() && job.copy.is_none() {
        return Ok(data);
    }
    let mut variables = BTreeSet::new();
    for (name, io) in &job.io {
        check_name(name)?;
        let store = store(
            context,
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
            check_mount(context, &plan)?;
        }
        data.io.push(plan);
    }
    if let Some(copy) = &job.copy {
        let store = store(
            context,
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

/// The same stores as another run had; only what their credentials lead to is looked up anew.
pub(crate) fn same_data(
    context: &Context,
    io: Vec<IoPlan>,
    copy: Option<CopyPlan>,
) -> Result<JobData> {
    let mut secrets = SecretSet::default();
    let variables = context.environment();
    let home = surroundings::home();
    let lookup = Lookup {
        variable: &|name| {
            variables
                .iter()
                .find(|(known, _)| known == name)
                .map(|(_, value)| value.clone())
        },
        keyring: &|name| surroundings::keyring(&[name.to_owned()], &[]).remove(name),
        home: home.as_deref(),
        reach: &crate::machines::route,
        notice: &crate::output::warn_once,
    };
    for store in io
        .iter()
        .map(|io| &io.store)
        .chain(copy.iter().map(|copy| &copy.store))
    {
        for (key, reference) in references(&store.datastore) {
            // One that travelled by value is a file of this machine.
            let from = reference
                .strip_prefix("keyring:")
                .filter(|file| is_in_file(file))
                .unwrap_or(reference);
            secrets.0.insert(
                format!("{STORE_SECRET}{reference}"),
                lookup.secret(&format!("datastore `{}`", store.name), key, from)?,
            );
        }
    }
    Ok(JobData { io, copy, secrets })
}

pub(crate) fn check_name(name: &str) -> Result<()> {
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
        )))
    }
}

/// Parts joined by `/`, none of which climbs.
pub(crate) fn clean(key: &str, path: &str) -> Result<String> {
    let parts: Vec<&str> = path
        .split('/')
        .filter(|part| !part.is_empty() && *part != ".")
        .collect();
    if parts.contains(&"..") {
        return Err(Error::config(format!(
            "`{key}`: `{path}` climbs out of its datastore"
        )));
    }
    Ok(parts.join("/"))
}

pub(crate) fn store(
    context: &Context,
    at: &str,
    name: &str,
    is_here: bool,
    secrets: &mut SecretSet,
) -> Result<NamedStore> {
    let mut datastore = configured(context, at, name)?;
    let variables = context.environment();
    let variable = |name: &str| {
        variables
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.clone())
    };
    if datastore.kind == "azure_blob" && datastore.endpoint.is_none() {
        datastore.endpoint = variable("TOW_AZURE_BLOB_ENDPOINT");
    }
    let home = surroundings::home();
    let lookup = Lookup {
        variable: &variable,
        keyring: &|name| surroundings::keyring(&[name.to_owned()], &[]).remove(name),
        home: home.as_deref(),
        reach: &crate::machines::route,
        notice: &crate::output::warn_once,
    };
    if !is_here {
        check_ssh_config(at, name, &datastore)?;
    }
    // Opening finds every mistake that can be found without asking the store.
    if is_here || datastore.kind != "folder" {
        towline_io::open::open(name, &datastore, &lookup)?;
    }
    if !is_here {
        bring_files(name, &mut datastore, &lookup, secrets)?;
    }
    for (key, reference) in references(&datastore) {
        if secrets
            .0
            .contains_key(&format!("{STORE_SECRET}{reference}"))
        {
            continue;
        }
        secrets.0.insert(
            format!("{STORE_SECRET}{reference}"),
            lookup.secret(&format!("datastore `{name}`"), key, reference)?,
        );
    }
    if let Some(home) = &home {
        write_out_home(&mut datastore, home, is_here);
    }
    Ok(NamedStore {
        name: name.to_owned(),
        datastore,
    })
}

/// The datastore of that name as it is configured, with no credential that a run does not need.
fn configured(context: &Context, at: &str, name: &str) -> Result<Datastore> {
    let config = &context.layers()?.config;
    let Some(datastore) = config.datastores.get(name) else {
        let known: Vec<&str> = config.datastores.keys().map(String::as_str).collect();
        let hint =
            did_you_mean(name, known.iter().copied()).unwrap_or_else(|| match known.as_slice() {
                [] => "write one under `datastores:` in towline.yaml: nas: \
                {kind: folder, path: /mnt/nas}"
                    .to_owned(),
                known => format!("known: {}", known.join(", ")),
            });
        return Err(Error::config(format!("{at}: no datastore is called `{name}`")).hint(hint));
    };
    let mut datastore = datastore.clone();
    if let Some(Credential::Map(map)) = &mut datastore.credential
        && map.contains_key("sas")
    {
        // It only signs addresses for `tow url`: a run gets no more than it needs.
        map.remove("account_key");
    }
    Ok(datastore)
}

/// An `ssh_config` is a file of this machine: the nodes of another cluster do not have it.
fn check_ssh_config(at: &str, name: &str, datastore: &Datastore) -> Result<()> {
    if let Some(file) = datastore
        .ssh_config
        .as_ref()
        .filter(|_| datastore.kind == "ssh_folder")
    {
        return Err(Error::refused(format!(
            "{at}: datastore `{name}` is reached with `ssh_config: \
            {file}`, a file of this machine that no node has"
        ))
        .hint(
            "name `host` as the nodes of the cluster reach it, without `ssh_config`; keys \
                and names are then those of your home there",
        )
        .hint("or copy the data first with `tow cp`, to a store that the cluster has"));
    }
    Ok(())
}

/// Writes `~/` out, as this user's home.
fn write_out_home(datastore: &mut Datastore, home: &Path, is_here: bool) {
    if let Some(Credential::Map(map)) = &mut datastore.credential {
        // Whoever carries the data has no home of ours.
        for value in map.values_mut() {
            for kind in ["file:", "yaml:"] {
                if let Some(below) = value
                    .strip_prefix(kind)
                    .and_then(|path| path.strip_prefix("~/"))
                {
                    *value = format!("{kind}{}", home.join(below).display());
                }
            }
        }
    }
    if is_here
        && datastore.kind == "folder"
        && let Some(path) = &datastore.path
        && let Some(below) = path.strip_prefix("~/")
    {
        datastore.path = Some(home.join(below).display().to_string());
    }
}

/// Credentials in files of this machine travel by value, among the secrets.
fn bring_files(
    name: &str,
    datastore: &mut Datastore,
    lookup: &Lookup<'_>,
    secrets: &mut SecretSet,
) -> Result<()> {
    let Some(Credential::Map(map)) = &mut datastore.credential else {
        return Ok(());
    };
    for (key, value) in map.iter_mut().filter(|(_, value)| is_in_file(value)) {
        let secret = lookup.secret(&format!("datastore `{name}`"), key, value)?;
        *value = format!("keyring:{value}");
        secrets.0.insert(format!("{STORE_SECRET}{value}"), secret);
    }
    Ok(())
}

/// Whether a reference leads to a file of this machine.
fn is_in_file(reference: &str) -> bool {
    reference.starts_with("file:") || reference.starts_with("yaml:")
}

/// References of a credential that lead somewhere only this process sees.
fn references(datastore: &Datastore) -> Vec<(&str, &str)> {
    let Some(Credential::Map(map)) = &datastore.credential else {
        return Vec::new();
    };
    let is_reference = |value: &str| value.starts_with("env:") || value.starts_with("keyring:");
    map.iter()
        .filter(|(_, value)| is_reference(value))
        .map(|(key, value)| (key.as_str(), value.as_str()))
        .collect()
}

/// A mount needs a program that mounts; a folder needs none.
fn check_mount(context: &Context, plan: &IoPlan) -> Result<()> {
    let kind = plan.store.datastore.kind.as_str();
    if plan.mode != IoMode::Mount || kind == "folder" {
        return Ok(());
    }
    let path = context
        .environment()
        .iter()
        .find(|(name, _)| name == "PATH")
        .map_or("", |(_, path)| path.as_str());
    let usable = MOUNTERS
        .iter()
        .filter(|program| **program != "blobfuse2" || kind == "azure_blob");
    if usable
        .clone()
        .any(|program| find_program(program, path).is_some())
    {
        return Ok(());
    }
    let names: Vec<&str> = usable.copied().collect();
    Err(Error::refused(format!(
        "`io.{}` is to be mounted, and no program for it was found: {}",
        plan.name,
        names.join(", ")
    ))
    .hint("install it, or use `mode: read` or `mode: write`"))
}
