//! Reaching far clusters: which machine, by which way, and what was learnt of it before.

use crate::context::Context;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use towline_backends::far::FarCluster;
use towline_backends::slurm::backend::SlurmBackend;
use towline_backends::slurm::config::SlurmConfig;
use towline_core::config::{Cluster, ClusterKind};
use towline_core::transport::Transport;
use towline_core::{Error, Result};
use towline_io::far_folder::Way;
use towline_io::machine::{LONGEST_FOLDER, LocalTransport, SshTransport};
use towline_snapshot::digest::Digest;
use towline_wire::cluster::NamedCluster;
use towline_wire::layout::StateFolder;
use towline_wire::line::OwnProgram;
use towline_wire::site::SiteFacts;

/// What a site was found to have counts for this long.
const FACTS_LAST: Duration = Duration::from_secs(600);

/// The way to a cluster that is not this machine. Nothing is asked yet.
pub(crate) fn far(named: &NamedCluster, state: &StateFolder) -> Result<Box<dyn FarCluster>> {
    let NamedCluster { name, cluster, .. } = named;
    match cluster.kind {
        ClusterKind::Slurm => Ok(Box::new(slurm(name, cluster, state)?)),
        ClusterKind::Azureml => Ok(Box::new(crate::azure::backend(named, state)?)),
        kind => Err(Error::refused(format!("cluster `{name}` is of kind `{}`, which this version cannot use yet", kind.word()))),
    }
}

/// The way to a Slurm cluster. Nothing is asked yet.
pub(crate) fn slurm(name: &str, cluster: &Cluster, state: &StateFolder) -> Result<SlurmBackend> {
    let config = SlurmConfig::new(name, cluster)?;
    let transport = transport(&config, state)?;
    let (facts, former) = (known_facts(state, name, &config), stored_facts(state, name).filter(|known| known.of == mark(&config)));
    let former_tiers = former.map(|known| known.site.tiers).unwrap_or_default();
    Ok(SlurmBackend::new(config, transport, own_program(state)?, facts).with_former_tiers(former_tiers))
}

pub(crate) fn home() -> Result<PathBuf> {
    std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute()).ok_or_else(|| Error::refused("HOME is not set"))
}

/// This machine, as one that commands are run on.
pub(crate) fn here() -> Result<Arc<dyn Transport>> {
    Ok(Arc::new(LocalTransport::new(home()?)))
}

fn transport(config: &SlurmConfig, state: &StateFolder) -> Result<Arc<dyn Transport>> {
    match &config.host {
        Some(_) => Ok(Arc::new(ssh(config, state)?)),
        None => here(),
    }
}

/// The way by ssh; an error where the cluster is this machine's own.
pub(crate) fn ssh(config: &SlurmConfig, state: &StateFolder) -> Result<SshTransport> {
    let host = config.host.as_deref().ok_or_else(|| Error::refused(format!("cluster `{}` is reached without ssh", config.name)))?;
    ssh_to(host, config.ssh_config.as_deref(), state)
}

/// A path that may begin with the home.
pub(crate) fn expand(path: &str) -> Result<PathBuf> {
    Ok(match path.strip_prefix("~/") {
        Some(below) => home()?.join(below),
        None => PathBuf::from(path),
    })
}

/// A configuration of ssh as the user wrote it: `~/` is the home, `$USER` the user of this machine.
pub(crate) fn ssh_config_file(path: &str) -> Result<PathBuf> {
    if !path.split('/').any(|part| part == "$USER") {
        return expand(path);
    }
    let user = ["USER", "LOGNAME"].into_iter().find_map(|name| std::env::var(name).ok().filter(|user| !user.is_empty()));
    let user = user.ok_or_else(|| Error::config(format!("`ssh_config: {path}`: USER is not set")).hint("write the path out"))?;
    let parts: Vec<&str> = path.split('/').map(|part| if part == "$USER" { user.as_str() } else { part }).collect();
    expand(&parts.join("/"))
}

pub(crate) fn ssh_to(host: &str, ssh_config: Option<&str>, state: &StateFolder) -> Result<SshTransport> {
    let file = ssh_config.map(ssh_config_file).transpose()?;
    let known_hosts = state.ssh().join("known_hosts");
    towline_host::filesystem::private_folder(&state.ssh())
        .map_err(|error| Error::refused(format!("{} cannot be used", state.ssh().display())).source_error(error))?;
    SshTransport::new(host, file, sockets(state)?, known_hosts)
}

/// The way to a host that has a datastore.
pub(crate) fn way(host: &str, ssh_config: Option<&str>) -> Result<Way> {
    let state = StateFolder::new(towline_engine::surroundings::state_folder()?);
    let transport = ssh_to(host, ssh_config, &state)?;
    transport.connect(std::io::stdin().is_terminal() && std::io::stderr().is_terminal())?;
    Ok(Way { transport: Arc::new(transport), program: own_program(&state)?, stage: ".towline".to_owned() })
}

/// A folder for control sockets, whose paths must be short: the user's own for such things, else ours.
fn sockets(state: &StateFolder) -> Result<PathBuf> {
    let own = rustix::process::getuid().as_raw();
    // Two histories of one user are two users of a host, each with its own connection.
    let state_name = Digest::of(state.root().as_os_str().as_encoded_bytes()).short();
    let candidates = std::env::var_os("XDG_RUNTIME_DIR")
        .map(|folder| Path::new(&folder).join("towline"))
        .into_iter()
        .chain([state.ssh(), PathBuf::from(format!("/tmp/towline-{own}-{}", &state_name[..8]))]);
    let fits = |folder: &PathBuf| folder.as_os_str().len() <= LONGEST_FOLDER && towline_host::filesystem::private_folder(folder).is_ok();
    let found = candidates.into_iter().find(fits);
    found.ok_or_else(|| Error::refused("there is no folder for the sockets of ssh").hint("set XDG_RUNTIME_DIR to a folder of yours with a short path"))
}

/// This program, and the hash of its bytes: read again only when the file is another.
pub(crate) fn own_program(state: &StateFolder) -> Result<OwnProgram> {
    use std::os::unix::fs::MetadataExt;
    let path = PathBuf::from("/proc/self/exe");
    let failed = |error| Error::bug("this program cannot be read").source_error(error);
    let meta = std::fs::metadata(&path).map_err(failed)?;
    let mark = format!("{} {} {} {} {}", meta.dev(), meta.ino(), meta.size(), meta.mtime(), meta.mtime_nsec());
    let note = state.root().join("program");
    if let Ok(text) = std::fs::read_to_string(&note)
        && let Some((known, digest)) = text.trim_end().split_once('\n')
        && known == mark
    {
        return Ok(OwnProgram { path, digest: digest.to_owned() });
    }
    let digest = Digest::of(&std::fs::read(&path).map_err(failed)?).to_string();
    let _ = towline_host::filesystem::private_folder(state.root()).and_then(|()| towline_host::once::replace(&note, format!("{mark}\n{digest}\n").as_bytes()));
    Ok(OwnProgram { path, digest })
}

#[derive(serde::Serialize, serde::Deserialize)]
pub(crate) struct KnownFacts {
    /// Of the host and stage they were asked of.
    of: String,
    site: SiteFacts,
}

fn mark(config: &SlurmConfig) -> String {
    format!("{:?} {:?} {} {:?}", config.host, config.ssh_config, config.stage, config.bin)
}

fn stored_facts(state: &StateFolder, name: &str) -> Option<KnownFacts> {
    serde_json::from_slice(&std::fs::read(state.cluster(name, "facts")).ok()?).ok()
}

fn known_facts(state: &StateFolder, name: &str, config: &SlurmConfig) -> Option<SiteFacts> {
    let path = state.cluster(name, "facts");
    let age = std::fs::metadata(&path).ok()?.modified().ok()?.elapsed().ok()?;
    let known = stored_facts(state, name)?;
    (age < FACTS_LAST && known.of == mark(config)).then_some(known.site)
}

/// The stage folder of a cluster, as it was last found.
pub(crate) fn known_stage(state: &StateFolder, name: &str) -> Option<String> {
    stored_facts(state, name).map(|known| known.site.stage)
}

/// What a site has, kept for the next call.
pub(crate) fn keep_facts(state: &StateFolder, backend: &SlurmBackend, site: &SiteFacts) {
    let known = KnownFacts { of: mark(backend.config()), site: site.clone() };
    let _ = towline_host::filesystem::private_folder(&state.clusters())
        .and_then(|()| serde_json::to_vec(&known).map_err(std::io::Error::other))
        .and_then(|bytes| towline_host::once::replace(&state.cluster(&backend.config().name, "facts"), &bytes));
}

/// Signs in where that is needed, asking the user if there is a terminal.
pub(crate) fn connect(backend: &dyn FarCluster) -> Result<()> {
    // Whoever is asked something on the terminal is not to be talked over.
    if std::io::stdin().is_terminal() && std::io::stderr().is_terminal() {
        return backend.connect(true);
    }
    waited_for(backend, || backend.connect(false))
}

/// Asks a cluster something itself; what keeps it from answering is told after a moment.
pub(crate) fn waited_for<T>(backend: &dyn FarCluster, ask: impl FnOnce() -> T) -> T {
    let line = || match backend.trouble() {
        Some(error) => format!("waiting for `{}`: {error}", backend.name()),
        None => format!("waiting for `{}`", backend.name()),
    };
    crate::waiting::told(line, ask)
}

/// What the site has: known, or asked now.
pub(crate) fn facts(context: &Context, backend: &SlurmBackend, anew: bool) -> Result<SiteFacts> {
    if anew {
        connect(backend)?;
        let site = waited_for(backend, || backend.look())?;
        keep_facts(context.state()?, backend, &site);
        return Ok(site);
    }
    match known_facts(context.state()?, &backend.config().name, backend.config()) {
        Some(site) => Ok(site),
        None => facts(context, backend, true),
    }
}
