//! `tow scratch ls`: lists workspaces, or the backups of one.

use super::super::Report;
use super::{counted, moved, size};
use crate::context::Context;
use crate::output::Paint;
use crate::output::table::Table;
use crate::scratch::{self, Known};
use towline_core::time::human_millis;
use towline_core::{ErrorKind, Result};
use towline_wire::report::Time;
use towline_wire::report::scratch::{Backup, BackupStatus, Backups, WorkspaceRow, Workspaces};
use towline_wire::workspace::{Act, Outcome};

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

fn ago(time: Option<Time>) -> String {
    time.map_or_else(|| "never".to_owned(), |time| format!("{} ago", age(time)))
}

fn age(time: Time) -> String {
    human_millis(towline_host::clock::now().since(time.0))
}

fn workspaces(context: &Context) -> Result<Report> {
    let state = context.state()?;
    let known = scratch::known(context)?;
    let rows = known.into_values().map(
        |Known {
             name, workspace, ..
         }| {
            let status = BackupStatus::from(&scratch::read_status(state, &name));
            WorkspaceRow {
                auto: scratch::auto(state, &name).map(|auto| auto.every),
                name,
                on: workspace.on,
                path: workspace.path,
                to: workspace.to,
                state: state_word(&status),
                status,
            }
        },
    );
    let answer = Workspaces {
        workspaces: rows.collect(),
    };
    let report = Report::of(&answer, text);
    let report = if answer.workspaces.is_empty() {
        report.hint("`tow scratch create work --path /scratch/$USER/work` makes one")
    } else {
        report
    };
    let troubles = answer.workspaces.iter();
    let troubles = troubles.flat_map(|row| trouble(&row.name, &row.status));
    Ok(with_troubles(report, troubles.collect()))
}

fn text(answer: &Workspaces) -> String {
    if answer.workspaces.is_empty() {
        return String::new();
    }
    let mut table = Table::new(&[
        "NAME",
        "ON",
        "PATH",
        "AUTO",
        "LAST GOOD",
        "LAST STORED",
        "STATE",
    ]);
    for row in &answer.workspaces {
        let on = row.on.as_deref().unwrap_or("this machine");
        let every = row
            .auto
            .map_or_else(|| "off".to_owned(), |every| format!("every {every}"));
        let paint = if row.status.failing.is_some() {
            Paint::Bad
        } else {
            Paint::Plain
        };
        let cells = [
            row.name.clone(),
            on.to_owned(),
            row.path.clone(),
            every,
            ago(row.status.good),
            ago(row.status.stored),
        ];
        let cells = cells.into_iter().map(|cell| (cell, Paint::Plain));
        table.row(cells.chain([(row.state.to_owned(), paint)]).collect());
    }
    table.render()
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
    let long = age(failing.since);
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
    let status = scratch::read_status(context.state()?, &known.name);
    let answer = Backups {
        workspace: known.name.clone(),
        backups: rows.iter().map(Backup::from).collect(),
        status: BackupStatus::from(&status),
    };
    let name = &answer.workspace;
    let report = Report::of(&answer, backups_text).hint(if answer.backups.is_empty() {
        format!("`tow scratch backup {name}` makes the first")
    } else {
        format!("`tow scratch restore {name} --backup ID --path DIR` brings one back beside it")
    });
    Ok(with_troubles(report, trouble(name, &answer.status)))
}

fn backups_text(answer: &Backups) -> String {
    if answer.backups.is_empty() {
        return String::new();
    }
    let mut table = Table::new(&["ID", "TAKEN", "AGE", "FILES", "SIZE", "NEW", "FROM"]);
    for backup in &answer.backups {
        let cells = shown(backup).into_iter();
        table.row(cells.map(|cell| (cell, Paint::Plain)).collect());
    }
    table.render()
}

fn shown(row: &Backup) -> Vec<String> {
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
