//! A run's node as a machine: one of our aliases, pinned to the run's present node, so that a
//! connection to an earlier node is not reused.

use crate::context::Context;
use crate::reach;
use crate::reach::aliases;
use crate::wiring::machines;
use towline_core::transport::Transport;
use towline_core::{Error, ErrorKind, Result, RunId};
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
    let (login_host, host) = reach::through(context, &record.id, 0)?;
    let login = login_host.login()?;
    let name = format!("tow-{}.{host}", record.id.short());
    let text = format!(
        "Host {name}\n{}",
        aliases::lines(context, &format!("tow-{}", record.id.short()), &login)?
    );
    let file = state.ssh().join(format!("{name}.config"));
    let failed = |error| Error::from_io(format!("{} cannot be written", file.display()), error);
    towline_host::filesystem::private_folder(&state.ssh()).map_err(failed)?;
    towline_host::once::replace(&file, text.as_bytes()).map_err(failed)?;
    machines::ssh_to(&name, file.to_str(), state)
}

/// Whether the alias is in the file; entries of ended runs do not count.
fn is_listed(context: &Context, alias: &str) -> Result<bool> {
    aliases::write(context)?;
    let text = std::fs::read_to_string(aliases::file(context)?).unwrap_or_default();
    Ok(text.lines().any(|line| {
        line.trim()
            .strip_prefix("Host ")
            .is_some_and(|names| names.split_whitespace().any(|name| name == alias))
    }))
}

/// Closes the connections to the nodes of a run that is about to release them.
pub(crate) fn hang_up(context: &Context, run: &RunId) {
    let Ok(state) = context.state() else { return };
    let begin = format!("tow-{}.", run.short());
    for entry in std::fs::read_dir(state.ssh())
        .into_iter()
        .flatten()
        .flatten()
    {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(host) = name
            .strip_suffix(".config")
            .filter(|name| name.starts_with(&begin))
        else {
            continue;
        };
        if let Ok(machine) = machines::ssh_to(host, entry.path().to_str(), state) {
            machine.close();
        }
        let _ = std::fs::remove_file(entry.path());
    }
}
