//! A run's node as a machine: an alias of ours, pinned to where the run is now, so that a connection
//! that was made for another node is not taken for one to this.

use crate::context::Context;
use crate::{aliases, machines, reach};
use std::fmt::Write as _;
use towline_core::{Error, ErrorKind, Result};
use towline_io::machine::SshTransport;

pub(super) fn machine(context: &Context, alias: &str) -> Result<SshTransport> {
    let state = context.state()?;
    let record = match aliases::find(context, alias) {
        Ok(record) => record,
        // A tunnel has an alias too, which always leads to the same place.
        Err(error) if error.kind() == ErrorKind::NotFound && is_listed(context, alias)? => {
            return machines::ssh_to(alias, aliases::file(context)?.to_str(), state);
        }
        Err(error) => return Err(error),
    };
    let reached = reach::reach(context, &record.id)?;
    let host = reach::host_of(&record, &reached.hosts, 0)?;
    let way = machines::ssh(reached.cluster.backend.config(), state)?.way_in()?;
    let name = format!("tow-{}.{host}", record.id.short());
    let own = std::env::current_exe().map_err(|error| Error::bug("this program has no place").source_error(error))?;
    let (own, root, run) = (own.display(), state.root().display(), format!("tow-{}", record.id.short()));
    let mut text = format!("Host {name}\n  User {}\n", way.user);
    for key in &way.keys {
        let _ = writeln!(text, "  IdentityFile \"{key}\"");
    }
    let _ = writeln!(text, "  ProxyCommand \"{own}\" {} \"{root}\" {run} %p", aliases::CONNECT_VERB);
    let _ = writeln!(text, "  KnownHostsCommand \"{own}\" {} \"{root}\" {run} %H", aliases::HOST_KEY_VERB);
    text += "  UserKnownHostsFile /dev/null\n  GlobalKnownHostsFile /dev/null\n  StrictHostKeyChecking yes\n  CheckHostIP no\n";
    let file = state.ssh().join(format!("{name}.config"));
    let failed = |error| Error::refused(format!("{} cannot be written", file.display())).source_error(error);
    towline_host::filesystem::private_folder(&state.ssh()).map_err(failed)?;
    towline_host::once::replace(&file, text.as_bytes()).map_err(failed)?;
    machines::ssh_to(&name, file.to_str(), state)
}

/// What runs that have ended left in the file does not count.
fn is_listed(context: &Context, alias: &str) -> Result<bool> {
    aliases::write(context)?;
    let text = std::fs::read_to_string(aliases::file(context)?).unwrap_or_default();
    Ok(text.lines().any(|line| line.trim().strip_prefix("Host ").is_some_and(|names| names.split_whitespace().any(|name| name == alias))))
}
