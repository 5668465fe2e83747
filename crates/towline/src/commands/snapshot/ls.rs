//! `tow snapshot ls`: lists snapshots.

use super::{Report, with_store};
use crate::context::Context;
use crate::output::Paint;
use crate::output::table::Table;
use std::collections::HashMap;
use towline_core::Result;
use towline_core::quantity::Memory;
use towline_core::time::Moment;
use towline_snapshot::root::read_root;
use towline_snapshot::store::{Blob, BlobKind};
use towline_wire::report::snapshot::{Snapshot, Snapshots};

/// List the stored snapshots, newest first, and how many runs each has.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tow snapshot ls
  tow snapshot ls --in research")]
pub(crate) struct Args {
    /// List those in a datastore [default: this machine].
    #[arg(long = "in", value_name = "DATASTORE")]
    store: Option<String>,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<Report> {
    let runs: HashMap<String, usize> = context
        .maybe_history()?
        .map(|history| history.runs_by_snapshot())
        .transpose()?
        .unwrap_or_default();
    let mut rows = with_store(context, args.store.as_deref(), |store| {
        let mut rows = Vec::new();
        for stored in store.list(BlobKind::Root)? {
            let Blob::Root(id) = stored.blob else {
                continue;
            };
            let runs = runs.get(&id.to_string()).copied().unwrap_or(0);
            rows.push(match read_root(store, &id) {
                Ok(root) => Snapshot {
                    id: id.to_string(),
                    name: root.about.name.clone(),
                    taken: Moment(root.about.taken).to_string(),
                    files: root.manifest.files(),
                    bytes: root.manifest.bytes(),
                    runs,
                    damage: None,
                },
                Err(problem) => Snapshot {
                    id: id.to_string(),
                    name: String::new(),
                    taken: String::new(),
                    files: 0,
                    bytes: 0,
                    runs,
                    damage: Some(problem.to_string()),
                },
            });
        }
        Ok(rows)
    })?;
    rows.sort_by(|a, b| b.taken.cmp(&a.taken));
    let answer = Snapshots { snapshots: rows };
    let report = Report::of(&answer, text);
    Ok(if answer.snapshots.is_empty() {
        report.hint("none is kept yet: `tow init` or any submission takes one")
    } else {
        report
    })
}

fn text(answer: &Snapshots) -> String {
    if answer.snapshots.is_empty() {
        return String::new();
    }
    let mut table = Table::new(&["SNAPSHOT", "OF", "TAKEN", "FILES", "SIZE", "RUNS"]);
    for row in &answer.snapshots {
        let name = row.damage.clone().unwrap_or_else(|| row.name.clone());
        let paint = if row.damage.is_some() {
            Paint::Bad
        } else {
            Paint::Plain
        };
        table.row(vec![
            (row.id[..12].to_owned(), Paint::Bold),
            (name, paint),
            (row.taken.clone(), Paint::Plain),
            (row.files.to_string(), Paint::Plain),
            (Memory(row.bytes).to_string(), Paint::Plain),
            (row.runs.to_string(), Paint::Plain),
        ]);
    }
    table.render()
}
