//! `tow tunnel ls`: lists tunnels.

use super::{Report, alias};
use crate::context::Context;
use crate::output::Paint;
use crate::output::table::Table;
use crate::reach::tunnels;
use serde::Serialize;
use std::collections::BTreeMap;
use towline_client as client;
use towline_core::Result;
use towline_core::time::human_millis;
use towline_core::tunnel::Definition;
use towline_wire::tunnel::{TunnelState, Wanted};

/// List the defined tunnels, and the state of those that are to be open.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tow tunnel ls
  tow tunnel ls --json")]
pub(crate) struct Args {}

#[derive(Serialize)]
struct Row {
    name: String,
    state: &'static str,
    port: Option<u16>,
    to: String,
    via: String,
    /// When it came into this state.
    since: Option<String>,
    reconnects: u32,
    reason: Option<String>,
    hints: Vec<String>,
    alias: Option<String>,
    pid: Option<u32>,
    /// Where it is defined.
    origin: Option<String>,
    #[serde(skip)]
    for_how_long: String,
}

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
    let mut rows: BTreeMap<String, Row> = BTreeMap::new();
    for (name, named) in tunnels::all(context)? {
        let definition =
            Definition::new(&name, &named.tunnel, named.tunnel.port.unwrap_or(u16::MAX));
        let reason = definition.as_ref().err().map(ToString::to_string);
        let shown = definition.as_ref().ok();
        let row = Row {
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
            for_how_long: String::new(),
            reason,
            name: name.clone(),
        };
        rows.insert(name, row);
    }
    for (name, wanted) in &wanted {
        let origin = rows.remove(name).and_then(|row| row.origin);
        rows.insert(name.clone(), row(context, name, wanted, origin)?);
    }
    let rows: Vec<Row> = rows.into_values().collect();
    let report = Report::new(table(&rows), &serde_json::json!({ "tunnels": rows }));
    let hints: Vec<String> = rows
        .iter()
        .flat_map(|row| row.hints.iter().map(|hint| format!("{}: {hint}", row.name)))
        .collect();
    let report = hints.into_iter().fold(report, Report::hint);
    Ok(if rows.is_empty() {
        report.hint("none is defined yet: tow tunnel add NAME --to HOST --via BASTION")
    } else {
        report
    })
}

/// The row of a tunnel that is to be open.
fn row(context: &Context, name: &str, wanted: &Wanted, origin: Option<String>) -> Result<Row> {
    let status = tunnels::status(context.state()?, name);
    let since = status.as_ref().map_or(wanted.at, |status| status.since);
    let trouble = status.as_ref().and_then(|status| status.trouble.clone());
    Ok(Row {
        name: name.to_owned(),
        state: status
            .as_ref()
            .map_or(TunnelState::Connecting, |status| status.state)
            .word(),
        port: Some(wanted.definition.port),
        to: wanted.definition.to.to_string(),
        via: wanted.definition.shown_route(),
        since: Some(since.to_string()),
        reconnects: status.as_ref().map_or(0, |status| status.reconnects),
        reason: trouble.as_ref().map(|trouble| trouble.reason.clone()),
        hints: trouble.map(|trouble| trouble.hints).unwrap_or_default(),
        alias: alias(name, &wanted.definition),
        pid: status.map(|status| status.pid),
        origin,
        for_how_long: human_millis(towline_host::clock::now().since(since)),
    })
}

fn table(rows: &[Row]) -> String {
    if rows.is_empty() {
        return String::new();
    }
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
    for row in rows {
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
        table.row(vec![
            (row.name.clone(), Paint::Bold),
            (row.state.to_owned(), paint),
            (row.for_how_long.clone(), Paint::Plain),
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
