//! `tow rm`: exactly what is named goes from its datastore.

use super::Report;
use crate::context::Context;
use crate::stores::{self, Stores};
use crate::{output, transfers};
use serde_json::json;
use towline_core::quantity::Size;
use towline_core::{Error, Result};
use towline_io::transfer::remove::{Removal, find, remove};
use towline_io::transfer::{StorePath, nothing_at};

/// Remove files or folders from their datastore, by whole names. What is here stays.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tow rm data/coco --dry-run   what would go; data/coco2017 is another name
  tow rm data/coco             asks first
  tow rm data/coco --yes       does not ask")]
pub(crate) struct Args {
    /// Paths below a folder of the configuration, or STORE:PATH.
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<String>,
    /// The cluster, or datastore, to remove from.
    #[arg(short, long, value_name = "CLUSTER")]
    cluster: Option<String>,
    /// Say what would go, and remove nothing.
    #[arg(long)]
    dry_run: bool,
    /// Do not ask.
    #[arg(long)]
    yes: bool,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<Report> {
    let stores = Stores::new(context);
    let locations = args
        .paths
        .iter()
        .map(|path| stores.location(args.cluster.as_deref(), path))
        .collect::<Result<Vec<_>>>()?;
    let mut found: Vec<(String, StorePath, Removal)> = Vec::new();
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
            return Ok(transfers::interrupted());
        };
        found.push((location.shown, location.store_path, chosen));
    }
    let (files, bytes) = found.iter().fold((0, 0), |(files, bytes), (_, _, chosen)| {
        (files + chosen.keys.len(), bytes + chosen.bytes)
    });
    let folders: usize = found.iter().map(|(_, _, chosen)| chosen.marks.len()).sum();
    let all = format!(
        "{files} file(s), {}{}",
        Size(bytes),
        if folders > 0 {
            format!(", and {folders} folder marker(s)")
        } else {
            String::new()
        }
    );
    let names = found
        .iter()
        .map(|(shown, _, _)| shown.as_str())
        .collect::<Vec<_>>()
        .join(", ");
    let value = |done: bool| json!({ "paths": args.paths, "files": files, "folders": folders, "bytes": bytes, "done": done });
    if args.dry_run {
        let mut text = String::new();
        for key in found.iter().flat_map(|(_, _, chosen)| &chosen.keys) {
            text += &format!("{key}\n");
        }
        for mark in found.iter().flat_map(|(_, _, chosen)| &chosen.marks) {
            text += &format!("{}/\n", mark.folder);
        }
        return Ok(Report::new(text, &value(false)).hint(format!("would remove {all}")));
    }
    if !args.yes {
        for (_, store_path, chosen) in &found {
            output::status(&format!(
                "{} file(s), {} in {}",
                chosen.keys.len(),
                Size(chosen.bytes),
                store_path.store.place()
            ));
            chosen
                .keys
                .iter()
                .take(5)
                .for_each(|key| output::status(&format!("  {key}")));
        }
        if !output::can_ask() {
            return Err(Error::refused(format!(
                "removing {names} ({all}) needs a yes, and there is nobody to ask"
            ))
            .hint("add --yes"));
        }
        match stores::ask(&format!("remove {names}: {all}?"))? {
            Some(true) => {}
            Some(false) => return Ok(Report::new("", &value(false)).hint("nothing was removed")),
            None => return Ok(transfers::interrupted()),
        }
    }
    for (_, store_path, chosen) in &found {
        if stores::drive(remove(store_path, &chosen.keys, &chosen.marks))?.is_none() {
            return Ok(transfers::interrupted());
        }
    }
    let mut report = Report::new("", &value(true));
    for name in found.iter().flat_map(|(_, _, chosen)| &chosen.unsupported) {
        report = report.hint(format!("{name} stays: it cannot be named"));
    }
    Ok(report.hint(format!("removed {all}")))
}
