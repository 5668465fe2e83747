//! `tow tunnel close`: closes tunnels.

use super::{Report, chosen};
use crate::context::Context;
use crate::reach::aliases;
use crate::reach::tunnels;
use std::io::Read;
use std::time::{Duration, Instant};
use towline_core::config::{Cluster, Datastore};
use towline_core::tunnel::{Definition, TunnelRoute};
use towline_core::{Error, Result};
use towline_wire::frame;
use towline_wire::layout::TUNNEL_SOCKET;
use towline_wire::report::tunnel::TunnelsClosed;
use towline_wire::tunnel::{ToTunnel, Wanted};

/// How long a supervisor may take to exit.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(15);

/// Close tunnels: free their ports, and end their processes.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tow tunnel close box
  tow tunnel close --all")]
pub(crate) struct Args {
    /// Tunnels, as `tow tunnel ls` lists them.
    #[arg(value_name = "NAME", required_unless_present = "all")]
    names: Vec<String>,
    /// Close every tunnel that is open, or tries to be.
    #[arg(long, conflicts_with = "names")]
    all: bool,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<Report> {
    let state = context.state()?;
    let open: Vec<String> = tunnels::wanted(state)?
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    let mut known: Vec<String> = open.clone();
    if !args.all {
        known.extend(tunnels::all(context)?.into_keys());
    }
    let names = chosen(&args.names, args.all, known)?;
    for name in &names {
        close(context, name)?;
    }
    let were_closed = names.iter().filter(|name| !open.contains(name));
    let answer = TunnelsClosed {
        already_closed: were_closed.cloned().collect(),
        closed: names,
    };
    let report = Report::of(&answer, text);
    Ok(if answer.closed.is_empty() {
        report.hint("none is open")
    } else {
        report
    })
}

fn text(answer: &TunnelsClosed) -> String {
    let line = |name: &String| {
        if answer.already_closed.contains(name) {
            format!("{name} was closed already\n")
        } else {
            format!("closed {name}\n")
        }
    };
    answer.closed.iter().map(line).collect()
}

/// Not wanted any more, and its supervisor gone with all below it; in this order, so that nobody
/// starts another.
pub(super) fn close(context: &Context, name: &str) -> Result<()> {
    let state = context.state()?;
    let folder = state.tunnel(name);
    let wanted = Wanted::read(&folder.join("wanted"));
    match std::fs::remove_file(folder.join("wanted")) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(Error::from_io(
                format!("tunnel `{name}` cannot be closed"),
                error,
            ));
        }
        _ => {}
    }
    let begun = Instant::now();
    while tunnels::is_supervised(state, name) {
        // It may just be starting, and then finds that it is not wanted; or be leaving.
        if let Ok(mut line) = towline_host::socket::connect(&folder, TUNNEL_SOCKET)
            && frame::write(&mut line, &ToTunnel::Close).is_ok()
        {
            let _ = line.set_read_timeout(Some(CLOSE_TIMEOUT));
            let mut piece = [0; 4096];
            while matches!(line.read(&mut piece), Ok(1..)) {}
        }
        if begun.elapsed() > CLOSE_TIMEOUT {
            return Err(Error::unreachable(format!(
                "the supervisor of tunnel `{name}` does not end"
            ))
            .hint("`tow tunnel ls --json` shows its process"));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    for file in ["status", TUNNEL_SOCKET] {
        let _ = std::fs::remove_file(folder.join(file));
    }
    if let Some(wanted) = wanted {
        let_go(context, name, &wanted.definition);
    }
    let _ = aliases::write(context);
    Ok(())
}

/// Closes the connection to the last hop, unless a cluster, a datastore or another tunnel uses it.
fn let_go(context: &Context, name: &str, definition: &Definition) {
    let TunnelRoute::Hops(hops) = &definition.route else {
        return;
    };
    let (Some(last), Ok(state), Ok(layers)) = (hops.last(), context.state(), context.layers())
    else {
        return;
    };
    let is_same =
        |host: &String, config: &Option<String>| host == last && *config == definition.ssh_config;
    let config = &layers.config;
    let is_login = |cluster: &Cluster| {
        cluster
            .login_host()
            .is_some_and(|(host, config)| is_same(host, config))
    };
    let is_host = |store: &Datastore| {
        store
            .host
            .as_ref()
            .is_some_and(|host| is_same(host, &store.ssh_config))
    };
    let of_others = config.clusters.values().any(is_login)
        || config.datastores.values().any(is_host)
        // Where that is not known it may be.
        || tunnels::wanted(state).map_or(true, |all| {
            all.iter().any(|(other, wanted)| {
                other != name && matches!(&wanted.definition.route, TunnelRoute::Hops(theirs) if theirs == hops) && wanted.definition.ssh_config == definition.ssh_config
            })
        });
    // With several hops the connection is this tunnel's alone.
    if (hops.len() > 1 || !of_others)
        && let Ok(Some(route)) = tunnels::transport(state, name, definition)
    {
        route.let_go();
    }
}
