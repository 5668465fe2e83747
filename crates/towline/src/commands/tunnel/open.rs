//! `tow tunnel open`: opens tunnels.

use super::{Report, alias, chosen, close, next_steps};
use crate::commands::lines;
use crate::context::Context;
use crate::output;
use crate::reach::aliases;
use crate::reach::tunnels::{self, Named};
use crate::wiring::machines;
use std::time::{Duration, Instant};
use towline_client::{self as client, Heard};
use towline_core::transport::Transport;
use towline_core::tunnel::{Definition, TunnelRoute};
use towline_core::{Error, ErrorKind, Result, network};
use towline_wire::daemon::{Reply, Request};
use towline_wire::report::tunnel::{OpenedTunnel, TunnelsOpened};
use towline_wire::tunnel::{TunnelState, TunnelStatus, Wanted};

/// How long to wait for a tunnel to open.
const OPEN_TIMEOUT: Duration = Duration::from_secs(30);

/// Open tunnels, and keep them open until they are closed.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tow tunnel open box
  tow tunnel open --all --no-wait")]
pub(crate) struct Args {
    /// Tunnels, as `tow tunnel ls` lists them.
    #[arg(value_name = "NAME", required_unless_present = "all")]
    names: Vec<String>,
    /// Open every tunnel that is defined.
    #[arg(long, conflicts_with = "names")]
    all: bool,
    /// Return at once, without waiting until they work.
    #[arg(long)]
    no_wait: bool,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<Report> {
    let known = tunnels::all(context)?;
    let names = chosen(&args.names, args.all, known.keys().cloned().collect()).map_err(
        |error| match args.names.as_slice() {
            [name] => tunnels::find(context, name).err().unwrap_or(error),
            _ => error,
        },
    )?;
    let named: Vec<Named> = names
        .iter()
        .filter_map(|name| known.get(name).cloned())
        .collect();
    if named.is_empty() {
        return Err(Error::not_found("no tunnel is defined yet")
            .hint("tow tunnel add NAME --to HOST --via BASTION"));
    }
    open_all(context, &named, !args.no_wait)
}

/// Opens tunnels one after the other. A failure of one does not stop the others.
pub(super) fn open_all(context: &Context, all: &[Named], wait: bool) -> Result<Report> {
    let mut opened = Vec::new();
    let mut failed: Option<Error> = None;
    let mut last = None;
    for named in all {
        match open(context, named, wait) {
            Ok((definition, state)) => {
                let alias = alias(&named.name, &definition);
                opened.push(OpenedTunnel {
                    name: named.name.clone(),
                    state: state.word(),
                    port: definition.port,
                    to: definition.to.to_string(),
                    alias,
                });
                last = Some((named.name.clone(), definition));
            }
            Err(error) => {
                let error = error.while_doing(format!("tunnel `{}`", named.name));
                if let Some(before) = failed.replace(error) {
                    crate::diagnose::report(&before, context.json);
                }
            }
        }
    }
    let answer = TunnelsOpened { tunnels: opened };
    if let Some(error) = failed {
        if !answer.tunnels.is_empty() && !context.json {
            output::text(&text(&answer))?;
        }
        return Err(error);
    }
    let mut report = Report::of(&answer, text);
    if !wait {
        report = report.hint("whether they work: tow tunnel ls");
    }
    match last {
        Some((name, definition)) if answer.tunnels.len() == 1 => {
            next_steps(context, report, &name, &definition)
        }
        _ => Ok(report),
    }
}

fn text(answer: &TunnelsOpened) -> String {
    lines(&answer.tunnels, |row| {
        format!("{}  127.0.0.1:{}", row.name, row.port)
    })
}

fn open(context: &Context, named: &Named, wait: bool) -> Result<(Definition, TunnelState)> {
    let state = context.state()?;
    let folder = state.tunnel(&named.name);
    let before = Wanted::read(&folder.join("wanted"));
    let definition = match (&before, named.tunnel.port) {
        // Its port is its own while it is open.
        (Some(before), None) => {
            Definition::new(&named.name, &named.tunnel, before.definition.port)?
        }
        _ => tunnels::definition(context, named)?,
    };
    if let Some(before) = &before
        && before.definition != definition
    {
        return Err(
            Error::conflict("it is open with another definition").hint(format!(
                "tow tunnel close {0} && tow tunnel open {0}",
                named.name
            )),
        );
    }
    towline_host::filesystem::private_folder(&state.tunnels())
        .and_then(|()| towline_host::filesystem::private_folder(&folder))
        .map_err(|error| Error::from_io(format!("{} cannot be used", folder.display()), error))?;
    // The port first: a supervisor has its lock before it has the port.
    if let Err(error) = towline_io::tunnel::try_port(definition.port)
        && !tunnels::is_supervised(state, &named.name)
    {
        return Err(error);
    }
    let trouble = sign_in(context, &named.name, &definition)?;
    let wanted = Wanted {
        at: before
            .as_ref()
            .map_or_else(towline_host::clock::now, |before| before.at),
        ..wanted(context, &definition)?
    };
    let bytes = serde_json::to_vec(&wanted)
        .map_err(|error| Error::bug("a tunnel cannot be written").source_error(error))?;
    towline_host::once::replace(&folder.join("wanted"), &bytes)
        .map_err(|error| Error::from_io("the tunnel cannot be stored", error))?;
    let _ = aliases::write(context);
    let outcome = follow(
        context,
        &named.name,
        if wait { trouble } else { None },
        wait,
    );
    match outcome {
        Ok(state) => Ok((definition, state)),
        Err(error) if is_lasting(&error) && before.is_none() => {
            // Nothing is left of what cannot be.
            close::close(context, &named.name)?;
            Err(error)
        }
        Err(error) => Err(error.hint(format!(
            "tow keeps trying; its state: tow tunnel ls    give it up: tow tunnel close {}",
            named.name
        ))),
    }
}

fn is_lasting(error: &Error) -> bool {
    !matches!(error.kind(), ErrorKind::Unreachable | ErrorKind::Timeout)
}

/// Signs in with the terminal, if there is one, because the supervisor cannot ask. Returns a
/// temporary failure.
fn sign_in(context: &Context, name: &str, definition: &Definition) -> Result<Option<Error>> {
    if let TunnelRoute::Command(words) = &definition.route {
        towline_io::tunnel::check_program(words.first().map_or("", String::as_str))?;
        return Ok(None);
    }
    let Some(route) = tunnels::transport(context.state()?, name, definition)? else {
        return Ok(None);
    };
    match route.connect(output::can_ask()) {
        Ok(()) => Ok(None),
        Err(error) if is_lasting(&error) => Err(error),
        Err(error) => Ok(Some(error)),
    }
}

fn wanted(context: &Context, definition: &Definition) -> Result<Wanted> {
    // It is kept on disk, where a password of a proxy has no place.
    let is_route = |name: &str, value: &str| {
        network::VARIABLES.contains(&name) && !network::holds_password(value)
    };
    let is_wanted = |(name, value): &&(String, String)| {
        Wanted::VARIABLES.contains(&name.as_str()) || is_route(name, value)
    };
    let environment = context
        .environment()
        .iter()
        .filter(is_wanted)
        .cloned()
        .collect();
    let route = if definition.is_for_ssh() {
        machines::ssh_to(
            &definition.to.host,
            definition.ssh_config.as_deref(),
            context.state()?,
        )
        .and_then(|far| far.login())
        .ok()
    } else {
        None
    };
    let user = definition
        .user
        .clone()
        .or_else(|| route.as_ref().map(|route| route.user.clone()));
    let keys = route.map(|route| route.keys).unwrap_or_default();
    Ok(Wanted {
        definition: definition.clone(),
        at: towline_host::clock::now(),
        environment,
        user,
        keys,
    })
}

/// Has the daemon supervise it, and waits until it is open or cannot be.
fn follow(
    context: &Context,
    name: &str,
    mut trouble: Option<Error>,
    wait: bool,
) -> Result<TunnelState> {
    let begun = Instant::now();
    let limit = if trouble.is_some() {
        Duration::ZERO
    } else {
        OPEN_TIMEOUT
    };
    loop {
        let (first, mut conversation) = client::ask(context.state()?, &|| Request::Tunnel {
            name: name.to_owned(),
        })?;
        let status = state_of(first)?;
        if status.state == TunnelState::Open || !wait {
            return Ok(status.state);
        }
        // What was wrong before it was asked for again does not count.
        loop {
            let left = limit
                .saturating_sub(begun.elapsed())
                .max(Duration::from_millis(1));
            match conversation.hear(Some(Instant::now() + left))? {
                Heard::Reply(reply) => {
                    let status = state_of(*reply)?;
                    if status.state == TunnelState::Open {
                        return Ok(status.state);
                    }
                    if let Some(found) = status.trouble {
                        let is_lasting = found.is_lasting && status.state == TunnelState::Failing;
                        trouble = Some(Error::from(found));
                        if is_lasting {
                            break;
                        }
                    }
                }
                Heard::HungUp | Heard::NotYet => break,
            }
        }
        if begun.elapsed() >= limit || trouble.as_ref().is_some_and(is_lasting) {
            let late = || {
                Error::new(
                    ErrorKind::Unreachable,
                    format!("it is not open after {} s", limit.as_secs()),
                )
            };
            return Err(trouble.unwrap_or_else(late));
        }
    }
}

fn state_of(reply: Reply) -> Result<TunnelStatus> {
    match reply {
        Reply::Tunnel(status) => Ok(status),
        Reply::Refused(refusal) => Err(refusal.into()),
        _ => Err(Error::bug("the daemon's answer does not match the request")),
    }
}
