//! `tow scratch ls`: lists workspaces, or the backups of one.

use super::super::Report;
use super::{counted, json, moved, size};
use crate::context::Context;
use crate::output::Paint;
use crate::output::table::Table;
use crate::scratch::{self, Known};
use towline_core::time::human_millis;
use towline_core::{ErrorKind, Result};
use towline_wire::workspace::{Act, BackupRow, BackupStatus, Outcome};

/// List workspaces and the state of their backups; with a name, its backups. Fails if the last
/// backup failed.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tow scratch ls
  tow scratch ls work
  tow scratch ls work --on login      when the node is gone")]
pub(crate) struct Args {
    /// List the backups of this workspace.
    name: Option<String>,
    /// A machine that can read the backups.
    #[arg(long, value_name = "HOST", requires = "name")]
    on: Option<String>,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<Report> {
    let report = match &args.name {
        None => workspaces(context)?,
        Some(name) => backups(
            context,
            &moved(scratch::choose(context, Some(name))?, args.on.as_deref()),
        )?,
    };
    Ok(report)
}

fn ago(moment: Option<towline_core::time::Moment>) -> String {
    moment.map_or_else(
        || "never".to_owned(),
        |moment| {
            format!(
                "{} ago",
                human_millis(towline_host::clock::now().since(moment))
            )
        },
    )
}

fn workspaces(context: &Context) -> Result<Report> {
    let all = scratch::known(context)?;
    let state = context.state()?;
    let mut table = Table::new(&[
        "NAME",
        "ON",
        "PATH",
        "AUTO",
        "LAST GOOD",
        "LAST STORED",
        "STATE",
    ]);
    let (mut rows, mut troubles) = (Vec::new(), Vec::new());
    for Known {
        name, workspace, ..
    } in all.values()
    {
        let status = scratch::read_status(state, name);
        let auto = scratch::auto(state, name);
        let word = state_word(&status);
        let on = workspace
            .on
            .clone()
            .unwrap_or_else(|| "this machine".to_owned());
        let every = auto
            .as_ref()
            .map_or_else(|| "off".to_owned(), |auto| format!("every {}", auto.every));
        let paint = if status.failing.is_some() {
            Paint::Bad
        } else {
            Paint::Plain
        };
        let cells = [
            name.clone(),
            on,
            workspace.path.clone(),
            every,
            ago(status.good),
            ago(status.stored),
        ];
        table.row(
            cells
                .into_iter()
                .map(|cell| (cell, Paint::Plain))
                .chain([(word.to_owned(), paint)])
                .collect(),
        );
        troubles.extend(trouble(name, &status));
        rows.push(serde_json::json!({
            "name": name, "on": workspace.on, "path": workspace.path, "to": workspace.to, "auto": auto.map(|auto| auto.every), "state": word, "status": json::Status::from(&status),
        }));
    }
    let text = if all.is_empty() {
        String::new()
    } else {
        table.render()
    };
    let report = Report::new(text, &serde_json::json!({ "workspaces": rows }));
    Ok(with_troubles(
        if all.is_empty() {
            report.hint("`tow scratch create work --path /scratch/$USER/work` makes one")
        } else {
            report
        },
        troubles,
    ))
}

const fn state_word(status: &BackupStatus) -> &'static str {
    match (&status.failing, &status.good) {
        (Some(_), _) => "failing",
        (None, Some(_)) => "good",
        (None, None) => "no backup",
    }
}

fn trouble(name: &str, status: &BackupStatus) -> Vec<String> {
    let Some(failing) = &status.failing else {
        return Vec::new();
    };
    let long = human_millis(towline_host::clock::now().since(failing.since));
    let mut lines = vec![format!(
        "workspace `{name}`: backups fail, for {long} now ({}): {}",
        counted(failing.times.into(), "time"),
        failing.why
    )];
    lines.extend(failing.hints.iter().cloned());
    lines
}

/// Adds the troubles to the report, and an exit code for scripts.
fn with_troubles(report: Report, troubles: Vec<String>) -> Report {
    if troubles.is_empty() {
        return report;
    }
    troubles
        .into_iter()
        .fold(report.code(ErrorKind::Refused.exit_code()), Report::hint)
}

fn backups(context: &Context, known: &Known) -> Result<Report> {
    let task = scratch::task(context, &known.name, &known.workspace, Act::List)?;
    let rows = match scratch::perform_from_here(context, task)? {
        Outcome::Listed(rows) => rows,
        other => return super::unexpected(&known.name, &other),
    };
    let mut table = Table::new(&["ID", "TAKEN", "AGE", "FILES", "SIZE", "NEW", "FROM"]);
    for row in &rows {
        table.row(
            shown(row)
                .into_iter()
                .map(|cell| (cell, Paint::Plain))
                .collect(),
        );
    }
    let status = scratch::read_status(context.state()?, &known.name);
    let text = if rows.is_empty() {
        String::new()
    } else {
        table.render()
    };
    let report = Report::new(
        text,
        &serde_json::json!({ "workspace": known.name, "backups": json::backups(&rows), "status": json::Status::from(&status) }),
    );
    let report = match rows.first() {
        None => report.hint(format!(
            "`tow scratch backup {}` makes the first",
            known.name
        )),
        Some(_) => report.hint(format!(
            "`tow scratch restore {} --backup ID --path DIR` brings one back beside it",
            known.name
        )),
    };
    Ok(with_troubles(report, trouble(&known.name, &status)))
}

fn shown(row: &BackupRow) -> Vec<String> {
    let age = ago(Some(row.taken));
    if !row.readable {
        return vec![
            row.id.clone(),
            row.taken.to_string(),
            age,
            "?".into(),
            "?".into(),
            "?".into(),
            "cannot be read: `tow scratch check`".into(),
        ];
    }
    let from = format!("{}:{}", row.host, row.folder);
    let doubt = if row.doubtful > 0 {
        format!(" ({} files doubtful)", row.doubtful)
    } else {
        String::new()
    };
    vec![
        row.id.clone(),
        row.taken.to_string(),
        age,
        row.files.to_string(),
        size(row.bytes),
        size(row.stored),
        from + &doubt,
    ]
}
