//! `tow rm`: removes exactly the named paths from their datastore.

use super::Report;
use crate::context::Context;
use crate::data::stores::{self, Stores};
use crate::data::transfers;
use crate::output;
use towline_core::quantity::Size;
use towline_core::{Error, Result};
use towline_io::transfer::remove::{Removal, find, remove};
use towline_io::transfer::{StorePath, nothing_at};
use towline_wire::report::rm::Removed;

/// Remove files or folders from their datastore, by whole names.
///
/// Local files stay.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tow rm data/coco --dry-run   what would go; data/coco2017 is another name
  tow rm data/coco             asks first
  tow rm data/coco --yes       does not ask")]
pub(crate) struct Args {
    /// Paths below a folder of the configuration, or STORE:PATH.
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<String>,
    /// The cluster or datastore to remove from.
    #[arg(short, long, value_name = "CLUSTER")]
    cluster: Option<String>,
    /// Show what would be removed, and remove nothing.
    #[arg(long)]
    dry_run: bool,
    /// Do not ask.
    #[arg(long)]
    yes: bool,
}

/// One of the paths, and what lies there.
struct Found {
    shown: String,
    path: StorePath,
    chosen: Removal,
}

/// All that would go.
fn total(answer: &Removed) -> String {
    let folders = if answer.folders > 0 {
        format!(", and {} folder marker(s)", answer.folders)
    } else {
        String::new()
    };
    format!("{} file(s), {}{folders}", answer.files, Size(answer.bytes))
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<Report> {
    let Some(found) = find_all(context, args)? else {
        return Ok(transfers::interrupted());
    };
    let mut answer = Removed {
        paths: args.paths.clone(),
        files: found.iter().map(|one| one.chosen.keys.len()).sum(),
        folders: found.iter().map(|one| one.chosen.marks.len()).sum(),
        bytes: found.iter().map(|one| one.chosen.bytes).sum(),
        done: false,
        would_remove: args.dry_run.then(|| names(&found)),
    };
    let total = total(&answer);
    if args.dry_run {
        return Ok(Report::of(&answer, text).hint(format!("would remove {total}")));
    }
    if !args.yes {
        match ask(&found, &total)? {
            Some(true) => {}
            Some(false) => return Ok(Report::of(&answer, text).hint("nothing was removed")),
            None => return Ok(transfers::interrupted()),
        }
    }
    for one in &found {
        if stores::drive(remove(&one.path, &one.chosen.keys, &one.chosen.marks))?.is_none() {
            return Ok(transfers::interrupted());
        }
    }
    answer.done = true;
    let mut report = Report::of(&answer, text);
    for name in found.iter().flat_map(|one| &one.chosen.unsupported) {
        report = report.hint(format!("{name} stays: it cannot be named"));
    }
    Ok(report.hint(format!("removed {total}")))
}

/// Every name that would go, one a line.
fn text(answer: &Removed) -> String {
    super::lines(answer.would_remove.iter().flatten(), String::clone)
}

/// What lies at each path; nothing if the user interrupts it.
fn find_all(context: &Context, args: &Args) -> Result<Option<Vec<Found>>> {
    let stores = Stores::new(context);
    let locations = args
        .paths
        .iter()
        .map(|path| stores.location(args.cluster.as_deref(), path))
        .collect::<Result<Vec<_>>>()?;
    let mut found = Vec::new();
    for location in locations {
        let look = async {
            let chosen = find(&location.store_path).await?;
            if chosen.is_empty() {
                Err(nothing_at(&location.store_path).await)
            } else {
                Ok(chosen)
            }
        };
        let Some(chosen) = stores::drive(look)? else {
            return Ok(None);
        };
        found.push(Found {
            shown: location.shown,
            path: location.store_path,
            chosen,
        });
    }
    Ok(Some(found))
}

/// Every name that would go.
fn names(found: &[Found]) -> Vec<String> {
    let keys = found.iter().flat_map(|one| &one.chosen.keys);
    let marks = found.iter().flat_map(|one| &one.chosen.marks);
    keys.map(ToString::to_string)
        .chain(marks.map(|mark| format!("{}/", mark.folder)))
        .collect()
}

/// Shows what would go, and asks; nothing if the user interrupts it.
fn ask(found: &[Found], total: &str) -> Result<Option<bool>> {
    for Found { path, chosen, .. } in found {
        output::status(&format!(
            "{} file(s), {} in {}",
            chosen.keys.len(),
            Size(chosen.bytes),
            path.store.place()
        ));
        chosen
            .keys
            .iter()
            .take(5)
            .for_each(|key| output::status(&format!("  {key}")));
    }
    let names = found
        .iter()
        .map(|one| one.shown.as_str())
        .collect::<Vec<_>>()
        .join(", ");
    if !output::can_ask() {
        return Err(Error::refused(format!(
            "removing {names} ({total}) needs a yes, and there is no terminal to ask on"
        ))
        .hint("add --yes"));
    }
    stores::ask(&format!("remove {names}: {total}?"))
}
