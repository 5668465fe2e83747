//! `tow tunnel ls`: lists tunnels.

use super::{Report, alias};
use crate::context::Context;
use crate::output::Paint;
use crate::output::table::Table;
use crate::reach::tunnels;
use std::collections::BTreeMap;
use towline_client as client;
use towline_core::Result;
use towline_core::time::human_millis;
use towline_core::tunnel::Definition;
use towline_wire::report::Time;
use towline_wire::report::tunnel::{Tunnel, Tunnels};
use towline_wire::tunnel::{TunnelState, Wanted};

/// List the defined tunnels, and the state of those that are to be open.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tow tunnel ls
  tow tunnel ls --json")]
pub(crate) struct Args {}

pub(crate) fn run(context: &Context, _: &Args) -> Result<Report> {
    let state = context.state()?;
    let wanted: BTreeMap<String, Wanted> = tunnels::wanted(state)?.into_iter().collect();
    if wanted
        .keys()
        .any(|name| !tunnels::is_supervised(state, name))
    {
        // After a restart of the machine nobody else may have needed it yet.
        client::nudge(state);
    }
    let mut rows: BTreeMap<String, Tunnel> = BTreeMap::new();
    for (name, named) in tunnels::all(context)? {
        let definition =
            Definition::new(&name, &named.tunnel, named.tunnel.port.unwrap_or(u16::MAX));
        let reason = definition.as_ref().err().map(ToString::to_string);
        let shown = definition.as_ref().ok();
        let row = Tunnel {
            state: if reason.is_some() { "wrong" } else { "closed" },
            port: named.tunnel.port,
            to: shown.map_or_else(
                || named.tunnel.to.clone(),
                |definition| definition.to.to_string(),
            ),
            via: shown.map(Definition::shown_route).unwrap_or_default(),
            since: None,
            reconnects: 0,
            hints: Vec::new(),
            alias: shown.and_then(|definition| alias(&name, definition)),
            pid: None,
            origin: Some(named.origin),
            reason,
            name: name.clone(),
        };
        rows.insert(name, row);
    }
    for (name, wanted) in &wanted {
        let origin = rows.remove(name).and_then(|row| row.origin);
        rows.insert(name.clone(), row(context, name, wanted, origin)?);
    }
    let answer = Tunnels {
        tunnels: rows.into_values().collect(),
    };
    let hints = answer.tunnels.iter().flat_map(|tunnel| {
        let hints = tunnel.hints.iter();
        hints.map(|hint| format!("{}: {hint}", tunnel.name))
    });
    let report = hints.fold(Report::of(&answer, text), Report::hint);
    Ok(if answer.tunnels.is_empty() {
        report.hint("none is defined yet: tow tunnel add NAME --to HOST --via BASTION")
    } else {
        report
    })
}

/// One that is to be open.
fn row(context: &Context, name: &str, wanted: &Wanted, origin: Option<String>) -> Result<Tunnel> {
    let status = tunnels::status(context.state()?, name);
    let since = status.as_ref().map_or(wanted.at, |status| status.since);
    let trouble = status.as_ref().and_then(|status| status.trouble.clone());
    Ok(Tunnel {
        name: name.to_owned(),
        state: status
            .as_ref()
            .map_or(TunnelState::Connecting, |status| status.state)
            .word(),
        port: Some(wanted.definition.port),
        to: wanted.definition.to.to_string(),
        via: wanted.definition.shown_route(),
        since: Some(Time(since)),
        reconnects: status.as_ref().map_or(0, |status| status.reconnects),
        reason: trouble.as_ref().map(|trouble| trouble.reason.clone()),
        hints: trouble.map(|trouble| trouble.hints).unwrap_or_default(),
        alias: alias(name, &wanted.definition),
        pid: status.map(|status| status.pid),
        origin,
    })
}

fn text(answer: &Tunnels) -> String {
    if answer.tunnels.is_empty() {
        return String::new();
    }
    let now = towline_host::clock::now();
    let mut table = Table::new(&[
        "NAME",
        "STATE",
        "FOR",
        "PORT",
        "TO",
        "VIA",
        "RECONNECTS",
        "WHY",
    ]);
    for row in &answer.tunnels {
        let paint = match row.state {
            "open" => Paint::Good,
            "failing" | "wrong" => Paint::Bad,
            "connecting" => Paint::Waiting,
            _ => Paint::Quiet,
        };
        let reconnects = if row.since.is_some() {
            row.reconnects.to_string()
        } else {
            String::new()
        };
        let age = row.since.map(|since| human_millis(now.since(since.0)));
        table.row(vec![
            (row.name.clone(), Paint::Bold),
            (row.state.to_owned(), paint),
            (age.unwrap_or_default(), Paint::Plain),
            (
                row.port.map(|port| port.to_string()).unwrap_or_default(),
                Paint::Plain,
            ),
            (row.to.clone(), Paint::Plain),
            (row.via.clone(), Paint::Plain),
            (reconnects, Paint::Plain),
            (row.reason.clone().unwrap_or_default(), Paint::Plain),
        ]);
    }
    table.render()
}
