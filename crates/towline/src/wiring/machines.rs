//! Connections to other machines: which machine, by which route, and with which program.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use towline_core::transport::Transport;
use towline_core::{Error, Result};
use towline_host::surroundings;
use towline_io::far_folder::Route;
use towline_io::machine::{LocalTransport, MAX_SOCKET_FOLDER_BYTES, SshTransport};
use towline_io::packed_program::ProgramPacker;
use towline_snapshot::digest::Digest;
use towline_wire::layout::StateFolder;
use towline_wire::program::OwnProgram;

pub(crate) fn home() -> Result<PathBuf> {
    surroundings::variable_os("HOME")
        .map(PathBuf::from)
        .filter(|home| home.is_absolute())
        .ok_or_else(|| Error::refused("HOME is not set"))
}

/// This machine as a transport.
pub(crate) fn here() -> Result<Arc<dyn Transport>> {
    Ok(Arc::new(LocalTransport::new(home()?)))
}

/// Expands `~/` at the beginning of a path.
pub(crate) fn expand(path: &str) -> Result<PathBuf> {
    Ok(match path.strip_prefix("~/") {
        Some(below) => home()?.join(below),
        None => PathBuf::from(path),
    })
}

/// The path of an ssh configuration: `~/` is the home, `$USER` the user of this machine.
pub(crate) fn ssh_config_file(path: &str) -> Result<PathBuf> {
    if !path.split('/').any(|part| part == "$USER") {
        return expand(path);
    }
    let user = ["USER", "LOGNAME"]
        .into_iter()
        .find_map(|name| surroundings::variable(name).filter(|user| !user.is_empty()));
    let user = user.ok_or_else(|| {
        Error::config(format!("`ssh_config: {path}`: USER is not set")).hint("write the path out")
    })?;
    let parts: Vec<&str> = path
        .split('/')
        .map(|part| if part == "$USER" { user.as_str() } else { part })
        .collect();
    expand(&parts.join("/"))
}

pub(crate) fn ssh_to(
    host: &str,
    ssh_config: Option<&str>,
    state: &StateFolder,
) -> Result<SshTransport> {
    let file = ssh_config.map(ssh_config_file).transpose()?;
    let known_hosts = state.ssh().join("known_hosts");
    towline_host::filesystem::private_folder(&state.ssh()).map_err(|error| {
        Error::from_io(format!("{} cannot be used", state.ssh().display()), error)
    })?;
    SshTransport::new(host, file, sockets(state)?, known_hosts)
}

/// The route to a host that has a datastore.
pub(crate) fn route(host: &str, ssh_config: Option<&str>) -> Result<Route> {
    let state = StateFolder::new(surroundings::state_folder()?);
    let transport = ssh_to(host, ssh_config, &state)?;
    transport.connect(std::io::stdin().is_terminal() && std::io::stderr().is_terminal())?;
    Ok(Route {
        transport: Arc::new(transport),
        program: own_program(&state)?,
        stage: ".towline".to_owned(),
    })
}

/// A folder for control sockets, whose paths must be short: the user's runtime folder, else ours.
fn sockets(state: &StateFolder) -> Result<PathBuf> {
    let own = rustix::process::getuid().as_raw();
    // Two state folders of one user must not share a connection.
    let state_name = Digest::of(state.root().as_os_str().as_encoded_bytes()).short();
    let candidates = surroundings::variable_os("XDG_RUNTIME_DIR")
        .map(|folder| Path::new(&folder).join("towline"))
        .into_iter()
        .chain([
            state.ssh(),
            PathBuf::from(format!("/tmp/towline-{own}-{}", &state_name[..8])),
        ]);
    let fits = |folder: &PathBuf| {
        folder.as_os_str().len() <= MAX_SOCKET_FOLDER_BYTES
            && towline_host::filesystem::private_folder(folder).is_ok()
    };
    let found = candidates.into_iter().find(fits);
    found.ok_or_else(|| {
        Error::refused("there is no folder for the sockets of ssh")
            .hint("set XDG_RUNTIME_DIR to a folder of yours with a short path")
    })
}

/// This program, and the hash of its bytes, which is computed again only if the file has changed.
pub(crate) fn own_program(state: &StateFolder) -> Result<OwnProgram> {
    use std::os::unix::fs::MetadataExt;
    let path = PathBuf::from("/proc/self/exe");
    let failed = |error| Error::bug("this program cannot be read").source_error(error);
    let meta = std::fs::metadata(&path).map_err(failed)?;
    let mark = format!(
        "{} {} {} {} {}",
        meta.dev(),
        meta.ino(),
        meta.size(),
        meta.mtime(),
        meta.mtime_nsec()
    );
    let note = state.root().join("program");
    if let Ok(text) = std::fs::read_to_string(&note)
        && let Some((known, digest)) = text.trim_end().split_once('\n')
        && known == mark
    {
        return Ok(with_packer(path, digest.to_owned(), state));
    }
    let digest = Digest::of(&std::fs::read(&path).map_err(failed)?).to_string();
    let _ = towline_host::filesystem::private_folder(state.root()).and_then(|()| {
        towline_host::once::replace(&note, format!("{mark}\n{digest}\n").as_bytes())
    });
    Ok(with_packer(path, digest, state))
}

fn with_packer(path: PathBuf, digest: String, state: &StateFolder) -> OwnProgram {
    let packer = ProgramPacker {
        path: path.clone(),
        digest: digest.clone(),
        folder: state.packed_program(),
    };
    OwnProgram {
        path,
        digest,
        packer: Some(Arc::new(packer)),
    }
}
