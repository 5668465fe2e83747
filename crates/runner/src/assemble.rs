//! From a plan to the assignment of one attempt: values filled in, and every path as it is where
//! the attempt will run. The daemon of a machine and the node of a far cluster both use it.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use towline_core::cluster::GpuMake;
use towline_core::config::StoreKind;
use towline_core::job::IoMode;
use towline_core::redact::SecretSet;
use towline_core::resolve::{IoPlan, MappedPlace, Resolved};
use towline_core::secret_name::SecretName;
use towline_core::sweep::Parameters;
use towline_core::template;
use towline_core::{Error, Result, RunId};
use towline_snapshot::digest::Digest;
use towline_wire::runner::{
    Assignment, CodeOrder, ContainerOrder, CopyOrder, DataOrder, IoOrder, Variables,
};

/// The folders of a run on the machine that carries it.
#[derive(Debug, Clone)]
pub struct AttemptFolders {
    /// The run's own folder: logs, code, io.
    pub run: PathBuf,
    /// The content of snapshots.
    pub snapshots: PathBuf,
    /// The folder of its mounts, on the machine's own disk, because other machines do not see them.
    pub mounts: PathBuf,
    /// Datasets that runs share.
    pub copies: PathBuf,
    /// Journals of transfers that may be interrupted.
    pub transfers: PathBuf,
}

/// The request for one attempt.
#[derive(Debug)]
pub struct Wanted<'a> {
    pub run: &'a RunId,
    pub attempt: u32,
    pub parameters: &'a Parameters,
    pub resolved: &'a Resolved,
    pub secrets: &'a SecretSet,
    pub folders: &'a AttemptFolders,
    /// By node; none where the cluster itself assigns GPUs.
    pub gpus: Vec<Vec<u32>>,
    pub gpu_make: GpuMake,
    pub grace_millis: u64,
    pub collect_every: u64,
    pub intent_is_durable: bool,
    pub given: Given<'a>,
}

/// Data that the cluster has put on the node already: we neither download nor collect it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Given<'a> {
    /// The place of each io, by name.
    pub io: &'a [(String, String)],
    /// The place of the copied dataset.
    pub copy: Option<&'a str>,
}

impl<'a> Given<'a> {
    fn place(&self, name: &str) -> Option<&'a str> {
        self.io
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, place)| place.as_str())
    }
}

pub fn assignment(wanted: Wanted<'_>) -> Result<Assignment> {
    let resolved = wanted.resolved;
    let data = data_of(&wanted)?;
    let io = places_of_io(&wanted, data.as_ref());
    let values = template_values(&wanted, &io);
    let fill = |text: &str| fill(text, &values);
    let mut variables = own_variables(resolved, wanted.secrets)?;
    for (name, value) in &resolved.env {
        variables.insert(name.clone(), fill(value)?);
    }
    for (io, place) in &io {
        variables.insert(io.variable(), (*place).to_owned());
    }
    let copy = data
        .as_ref()
        .and_then(|data| data.copy.as_ref())
        .map(|copy| copy.place.as_str());
    if let Some(copy) = wanted.given.copy.or(copy) {
        variables.insert("TOW_COPY_DIR".to_owned(), copy.to_owned());
    }
    let (code, workdir) = code_of(&wanted)?;
    if let Some(code) = &code {
        move_into(&mut variables, code, &workdir);
    }
    Ok(Assignment {
        run: wanted.run.clone(),
        attempt: wanted.attempt,
        shape: resolved.shape.clone(),
        program: resolved.program.try_map(fill)?,
        setup: resolved
            .setup
            .iter()
            .map(|line| fill(line))
            .collect::<Result<_>>()?,
        workdir,
        umask: resolved.umask,
        limits: resolved.limits.clone(),
        variables: Variables(variables),
        container: container_of(&wanted, data.as_ref())?,
        data,
        code,
        gpus: wanted.gpus,
        gpu_make: wanted.gpu_make,
        time: resolved.time.map(|time| time.0),
        hold_on_failure: resolved.hold_on_failure.map(|span| span.0),
        memory: resolved.shape.memory.map(|memory| memory.0),
        grace_millis: wanted.grace_millis,
        intent_is_durable: wanted.intent_is_durable,
        gang: None,
        signals_reach_all: false,
        scripts_hold_tokens: wanted.secrets.0.keys().any(SecretName::is_token),
    })
}

/// Each io with its place on the node: first those that we download or mount, then those that the
/// cluster has put there.
fn places_of_io<'a>(
    wanted: &Wanted<'a>,
    data: Option<&'a DataOrder>,
) -> Vec<(&'a IoPlan, &'a str)> {
    let given = |io: &'a IoPlan| Some((io, wanted.given.place(&io.name)?));
    data.into_iter()
        .flat_map(|data| &data.io)
        .map(|order| (&order.io, order.place.as_str()))
        .chain(wanted.resolved.io.iter().filter_map(given))
        .collect()
}

/// The values that `${{name}}` may stand for: sweep parameters, places of io, tokens.
fn template_values<'a>(
    wanted: &Wanted<'a>,
    io: &[(&'a IoPlan, &'a str)],
) -> Vec<(Cow<'a, str>, &'a str)> {
    let parameters = wanted
        .parameters
        .iter()
        .map(|(name, value)| (Cow::Borrowed(name.as_str()), value.as_str()));
    let tokens = wanted
        .secrets
        .0
        .iter()
        .filter(|(name, _)| name.is_token())
        .map(|(name, value)| (Cow::Owned(name.to_string()), value.expose()));
    let io = io
        .iter()
        .map(|(io, place)| (Cow::Borrowed(io.name.as_str()), *place));
    parameters.chain(io).chain(tokens).collect()
}

fn fill(text: &str, values: &[(Cow<'_, str>, &str)]) -> Result<String> {
    let value_of = |wanted: &str| {
        values
            .iter()
            .find(|(name, _)| *name == wanted)
            .map(|(_, value)| *value)
    };
    let known: Vec<&str> = values.iter().map(|(name, _)| name.as_ref()).collect();
    template::fill(text, value_of, &known)
}

/// The submitter's variables and the secrets among them.
fn own_variables(resolved: &Resolved, secrets: &SecretSet) -> Result<BTreeMap<String, String>> {
    // The submitter's variables, PATH among them, have no meaning inside an image.
    let mut variables: BTreeMap<String, String> = if resolved.container.is_some() {
        BTreeMap::new()
    } else {
        resolved.inherited.clone()
    };
    if let Some(missing) = resolved
        .secrets
        .iter()
        .find(|name| !secrets.0.contains_key(*name))
    {
        return Err(Error::refused(format!(
            "the value of the secret `{missing}` is gone; submit again"
        )));
    }
    let own = secrets
        .0
        .iter()
        .filter_map(|(name, value)| Some((name.variable()?.to_owned(), value.expose().to_owned())));
    variables.extend(own);
    Ok(variables)
}

fn text(path: PathBuf) -> Result<String> {
    path.into_os_string().into_string().map_err(|path| {
        Error::unsupported(format!(
            "{} has a name that is not UTF-8",
            path.to_string_lossy()
        ))
    })
}

/// The code to lay out, and the folder where the run starts: in its own tree, or in the submitter's
/// folder itself.
fn code_of(wanted: &Wanted<'_>) -> Result<(Option<CodeOrder>, String)> {
    let Some(code) = &wanted.resolved.code else {
        return Ok((None, wanted.resolved.workdir.clone()));
    };
    let target = wanted.folders.run.join("code");
    let order = CodeOrder {
        snapshot: code
            .snapshot
            .clone()
            .ok_or_else(|| Error::bug("the plan names no snapshot"))?,
        store: text(wanted.folders.snapshots.clone())?,
        target: text(target.clone())?,
        root: code.root.clone(),
        links: code.links.clone(),
        mapped: code
            .mapped
            .iter()
            .filter_map(|(name, place)| Some((name.clone(), place_of(place, &wanted.given)?)))
            .collect(),
    };
    // An empty part would leave a slash at the end.
    let workdir = if code.workdir.is_empty() {
        target
    } else {
        target.join(&code.workdir)
    };
    Ok((Some(order), text(workdir)?))
}

/// The place of a mapped folder; none if it is an io that the cluster has not put there.
fn place_of(mapped: &MappedPlace, given: &Given<'_>) -> Option<String> {
    match mapped {
        MappedPlace::Io(name) => given.place(name).map(str::to_owned),
        MappedPlace::Path(path) => Some(path.clone()),
    }
}

/// The data to download, mount and collect for a run, and its places.
fn data_of(wanted: &Wanted<'_>) -> Result<Option<DataOrder>> {
    let resolved = wanted.resolved;
    let io: Vec<&IoPlan> = resolved
        .io
        .iter()
        .filter(|io| wanted.given.place(&io.name).is_none())
        .collect();
    let copy = resolved
        .copy
        .as_ref()
        .filter(|_| wanted.given.copy.is_none());
    if io.is_empty() && copy.is_none() {
        return Ok(None);
    }
    let folder = |mode: IoMode| {
        if mode == IoMode::Mount {
            wanted.folders.mounts.clone()
        } else {
            wanted.folders.run.join("io")
        }
    };
    let order = |io: &IoPlan| {
        Ok(IoOrder {
            io: io.clone(),
            place: text(folder(io.mode).join(&io.name))?,
        })
    };
    let copy = copy.map(|copy| {
        let name = serde_json::to_vec(&(&copy.store, &copy.path)).unwrap_or_default();
        Ok::<_, Error>(CopyOrder {
            copy: copy.clone(),
            place: text(wanted.folders.copies.join(Digest::of(&name).short()))?,
        })
    });
    let stores = wanted.secrets.0.iter().filter_map(|(name, value)| {
        Some((name.reference()?.to_owned(), value.expose().to_owned()))
    });
    Ok(Some(DataOrder {
        io: io.into_iter().map(order).collect::<Result<_>>()?,
        copy: copy.transpose()?,
        secrets: Variables(stores.collect()),
        journals: text(wanted.folders.transfers.clone())?,
        collect_every: wanted.collect_every,
        only_collect: false,
    }))
}

/// The container of a run. Inside, a run sees its own folder, its code, and the targets of links.
fn container_of(wanted: &Wanted<'_>, data: Option<&DataOrder>) -> Result<Option<ContainerOrder>> {
    let resolved = wanted.resolved;
    let Some(container) = &resolved.container else {
        return Ok(None);
    };
    let own = text(wanted.folders.run.clone())?;
    let code = resolved
        .code
        .as_ref()
        .map_or_else(|| resolved.workdir.clone(), |code| code.root.clone());
    let folders = data
        .iter()
        .flat_map(|data| &data.io)
        .filter(|order| order.io.store.datastore.kind == StoreKind::Folder);
    let copy = data
        .and_then(|data| data.copy.as_ref())
        .map(|copy| copy.place.clone());
    let mapped = resolved
        .code
        .iter()
        .flat_map(|code| code.mapped.values())
        .filter_map(|place| place.path().map(str::to_owned));
    // The submitter's folder may be gone by now; frozen code does not need it.
    let elsewhere = folders
        .filter_map(|order| order.io.store.datastore.path.clone())
        .chain([code])
        .chain(mapped)
        .filter(|folder| Path::new(folder).is_dir());
    let binds: BTreeSet<String> = [own].into_iter().chain(elsewhere).chain(copy).collect();
    Ok(Some(ContainerOrder {
        container: container.clone(),
        binds: binds.into_iter().collect(),
        variables: Variables(resolved.inherited.clone()),
    }))
}

/// Replaces the submitter's folder by the run's in variables that name it.
fn move_into(variables: &mut BTreeMap<String, String>, code: &CodeOrder, workdir: &str) {
    if variables.contains_key("PWD") {
        variables.insert("PWD".to_owned(), workdir.to_owned());
    }
    variables.remove("OLDPWD");
    // Python must import the frozen modules, not those that the submitter has now.
    if let Some(path) = variables.get_mut("PYTHONPATH") {
        let moved = |entry: &str| match Path::new(entry).strip_prefix(&code.root) {
            Ok(below) if Path::new(entry).is_absolute() => Path::new(&code.target)
                .join(below)
                .to_string_lossy()
                .trim_end_matches('/')
                .to_owned(),
            _ => entry.to_owned(),
        };
        *path = path.split(':').map(moved).collect::<Vec<_>>().join(":");
    }
}
