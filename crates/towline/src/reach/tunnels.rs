//! Tunnels that are defined, in the configuration or in files of their own, and tunnels that are to
//! be open.

use crate::context::Context;
use crate::output;
use crate::wiring::machines;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;
use towline_core::config::Tunnel;
use towline_core::suggest::did_you_mean;
use towline_core::tunnel::{Definition, FIRST_PORT, TunnelRoute, host_of};
use towline_core::{Error, Result};
use towline_engine::added::{Added, AddedFiles};
use towline_io::machine::{Client, SshTransport};
use towline_io::tunnel as io_tunnel;
use towline_wire::layout::StateFolder;
use towline_wire::tunnel::{TunnelStatus, Wanted};

/// How long a host may take to answer a supervisor, which tries again soon.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(8);

/// A tunnel that the user has defined.
#[derive(Debug, Clone)]
pub(crate) struct Named {
    pub(crate) name: String,
    pub(crate) tunnel: Tunnel,
    /// Its own file, which `tow` may write and remove; none if it is in the configuration.
    pub(crate) file: Option<PathBuf>,
    pub(crate) origin: String,
}

fn unusable(error: io::Error, path: &Path) -> Error {
    Error::from_io(format!("{} cannot be used", path.display()), error)
}

/// The folder for added definitions.
pub(crate) fn files(context: &Context) -> Result<AddedFiles> {
    AddedFiles::new(context.environment(), "tunnels")
}

/// Every definition, by name. A file that cannot be read is left out with a warning.
pub(crate) fn all(context: &Context) -> Result<BTreeMap<String, Named>> {
    let (added, wrong) = files(context)?.load::<Tunnel>();
    for error in wrong {
        output::status(&format!("warning: {error}"));
    }
    let named = |added: Added<Tunnel>| {
        let Added { name, value, file } = added;
        (
            name.clone(),
            Named {
                name,
                tunnel: value,
                origin: file.display().to_string(),
                file: Some(file),
            },
        )
    };
    let mut found: BTreeMap<String, Named> = added.into_iter().map(named).collect();
    let layers = context.layers()?;
    for (name, tunnel) in &layers.config.tunnels {
        let key = format!("tunnels.{name}.to");
        let origin = layers
            .entries()
            .into_iter()
            .find(|entry| entry.key == key)
            .map(|entry| entry.origin)
            .unwrap_or_default();
        found.insert(
            name.clone(),
            Named {
                name: name.clone(),
                tunnel: tunnel.clone(),
                file: None,
                origin,
            },
        );
    }
    Ok(found)
}

/// The definition of that name.
pub(crate) fn find(context: &Context, name: &str) -> Result<Named> {
    let mut all = all(context)?;
    let files = files(context)?;
    match all.remove(name) {
        Some(named) => Ok(named),
        // The file exists, so the error says why it cannot be read.
        None if towline_core::tunnel::check_name(name).is_ok() && files.file(name).exists() => {
            files
                .read::<Tunnel>(name)
                .and_then(|_| Err(unknown(name, all.keys())))
        }
        None => Err(unknown(name, all.keys())),
    }
}

pub(crate) fn unknown<'n>(name: &str, known: impl Iterator<Item = &'n String>) -> Error {
    let known: Vec<&str> = known.map(String::as_str).collect();
    let error = Error::not_found(format!("no tunnel is called `{name}`"));
    error.hint(did_you_mean(name, known.iter().copied()).unwrap_or_else(
        || match known.as_slice() {
            [] => "none is defined yet: tow tunnel add NAME --to HOST --via BASTION".to_owned(),
            known => format!("known: {}", known.join(", ")),
        },
    ))
}

/// The complete definition, with its port.
pub(crate) fn definition(context: &Context, named: &Named) -> Result<Definition> {
    let port = match named.tunnel.port {
        Some(port) => port,
        None => free_port(context, &named.name)?,
    };
    Definition::new(&named.name, &named.tunnel, port).map_err(|error| match named.file {
        Some(_) => error.with("file", &named.origin),
        None => error.with("at", &named.origin),
    })
}

/// The first port that is free on this machine and in all other definitions.
pub(crate) fn free_port(context: &Context, name: &str) -> Result<u16> {
    let mut taken: Vec<u16> = all(context)?
        .values()
        .filter(|named| named.name != name)
        .filter_map(|named| named.tunnel.port)
        .collect();
    taken.extend(
        wanted(context.state()?)?
            .into_iter()
            .filter(|(known, _)| known != name)
            .map(|(_, wanted)| wanted.definition.port),
    );
    let is_free = |port: &u16| !taken.contains(port) && io_tunnel::try_port(*port).is_ok();
    (FIRST_PORT..u16::MAX)
        .find(is_free)
        .ok_or_else(|| Error::refused("no port of this machine is free"))
}

/// Writes a definition under a new name.
pub(crate) fn add(context: &Context, name: &str, tunnel: &Tunnel) -> Result<PathBuf> {
    let files = files(context)?;
    files
        .create(name, tunnel)?
        .ok_or_else(|| exists(name, &files.file(name).display().to_string()))
}

pub(crate) fn exists(name: &str, origin: &str) -> Error {
    Error::conflict(format!("tunnel `{name}` exists already ({origin})")).hint(format!(
        "choose another name, or remove it first: tow tunnel rm {name}"
    ))
}

/// The tunnels that are to be open, by name.
pub(crate) fn wanted(state: &StateFolder) -> Result<Vec<(String, Wanted)>> {
    let folder = state.tunnels();
    let entries = towline_host::filesystem::entries(&folder);
    let entries = entries.map_err(|error| {
        Error::from_io(
            format!(
                "{} cannot be read; without it tow does not know which tunnels are open",
                folder.display()
            ),
            error,
        )
    })?;
    let mut found: Vec<(String, Wanted)> = entries
        .into_iter()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            Some((name, Wanted::read(&entry.path().join("wanted"))?))
        })
        .collect();
    found.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(found)
}

/// Whether its supervisor is alive.
pub(crate) fn is_supervised(state: &StateFolder, name: &str) -> bool {
    towline_host::lock::is_held(&state.tunnel(name).join("lock")).unwrap_or(false)
}

/// The status that its supervisor last wrote.
pub(crate) fn status(state: &StateFolder, name: &str) -> Option<TunnelStatus> {
    is_supervised(state, name).then(|| TunnelStatus::read(&state.tunnel(name).join("status")))?
}

/// The transport to the last hop; `None` if the tunnel uses a program.
pub(crate) fn transport(
    state: &StateFolder,
    name: &str,
    definition: &Definition,
) -> Result<Option<SshTransport>> {
    let TunnelRoute::Hops(hops) = &definition.route else {
        return Ok(None);
    };
    let Some((last, before)) = hops.split_last() else {
        return Err(Error::bug("the tunnel has no hop"));
    };
    if before.is_empty() {
        return machines::ssh_to(last, definition.ssh_config.as_deref(), state).map(Some);
    }
    let folder = state.tunnel(name);
    towline_host::filesystem::private_folder(&folder).map_err(|error| unusable(error, &folder))?;
    let file = folder.join("ssh_config");
    let text = hops_config(
        last,
        before,
        &own_config(definition)?,
        &state.ssh().join("known_hosts"),
        Client::installed(),
    )?;
    if std::fs::read(&file).is_ok_and(|known| known == text.as_bytes()) {
        return machines::ssh_to(last, file.to_str(), state).map(Some);
    }
    towline_host::once::replace(&file, text.as_bytes()).map_err(|error| unusable(error, &file))?;
    machines::ssh_to(last, file.to_str(), state).map(Some)
}

/// The configuration files that ssh would read by itself.
fn own_config(definition: &Definition) -> Result<Vec<PathBuf>> {
    Ok(match &definition.ssh_config {
        Some(file) => vec![machines::ssh_config_file(file)?],
        None => vec![
            machines::home()?.join(".ssh/config"),
            PathBuf::from("/etc/ssh/ssh_config"),
        ],
    })
}

/// An ssh configuration in which the last hop is reached through the others. ssh uses the first
/// value of an option. So our hops come before the user's files, and our rules for new hosts after
/// them.
fn hops_config(
    last: &str,
    before: &[String],
    own: &[PathBuf],
    known_hosts: &Path,
    client: Client,
) -> Result<String> {
    let mut text = format!(
        "# Written by tow; changes are lost.\nHost {}\n  ProxyJump {}\n",
        host_of(last),
        before.join(",")
    );
    text += "Match all\n  ServerAliveInterval 5\n  ServerAliveCountMax 3\n";
    for file in own {
        let _ = writeln!(text, "Include {}", quoted(file)?);
    }
    let _ = writeln!(
        text,
        "Match all\n  UserKnownHostsFile {} ~/.ssh/known_hosts ~/.ssh/known_hosts2",
        quoted(known_hosts)?
    );
    if client.takes_new_hosts() {
        text += "  StrictHostKeyChecking accept-new\n";
    }
    Ok(text)
}

/// Quotes a path for an ssh configuration, where some characters are special.
pub(crate) fn quoted(path: &Path) -> Result<String> {
    let refused = || {
        Error::config(format!(
            "ssh cannot be told of {}: its path has one of \" \\ $ % * ? [ in it, or is not text",
            path.display()
        ))
    };
    let text = path
        .to_str()
        .filter(|text| !text.contains(['"', '\\', '$', '%', '*', '?', '[', '\n', '\r']))
        .ok_or_else(refused)?;
    Ok(format!("\"{text}\""))
}

/// `tow __tunnel STATE NAME`: supervises a tunnel until it is closed.
pub(crate) fn supervisor_main(state: &str, name: &str) -> io::Result<()> {
    let state = StateFolder::new(state);
    towline_core::tunnel::check_name(name).map_err(io::Error::other)?;
    let first = control_line();
    let folder = state.clone();
    io_tunnel::supervise(&state, name, first, |wanted| {
        let (definition, name) = (wanted.definition.clone(), name.to_owned());
        Box::new(move || {
            let route = transport(&folder, &name, &definition)?
                .ok_or_else(|| Error::bug("there is no hop"))?;
            Ok(route.with_timeout(CONNECT_TIMEOUT))
        })
    })
}

/// The connection to the process that started us, if stdin is a socket. Our children must not
/// inherit it.
fn control_line() -> Option<UnixStream> {
    use rustix::fs::FileType;
    let stat = rustix::fs::fstat(rustix::stdio::stdin()).ok()?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::Socket {
        return None;
    }
    let line = UnixStream::from(rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3).ok()?);
    let _ = line.set_nonblocking(false);
    let null = std::fs::File::open("/dev/null").ok()?;
    let _ = rustix::stdio::dup2_stdin(&null);
    Some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hops_come_first_and_the_users_words_after() {
        let text = hops_config(
            "me@login",
            &["bastion".into(), "b@second".into()],
            &["/home/m e/.ssh/config".into()],
            Path::new("/s/known"),
            Client::NEWEST,
        )
        .expect("fine");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[1..3], ["Host login", "  ProxyJump bastion,b@second"]);
        assert_eq!(lines[6], "Include \"/home/m e/.ssh/config\"");
        assert!(text.contains("accept-new"));
        let old = hops_config(
            "login",
            &["bastion".into()],
            &[],
            Path::new("/s/known"),
            Client::of("OpenSSH_7.4p1, OpenSSL 1.0.2k-fips"),
        )
        .expect("fine");
        assert!(!old.contains("accept-new"), "{old}");
        assert!(quoted(Path::new("/a*b")).is_err() && quoted(Path::new("/a%b")).is_err());
    }
}
