//! `tow ls`: lists the content of a datastore.

use super::Report;
use crate::context::Context;
use crate::data::stores::{self, Location, Stores, below_root};
use crate::output::Paint;
use crate::output::table::Table;
use serde_json::json;
use towline_core::Result;
use towline_core::quantity::Size;
use towline_core::time::Moment;
use towline_engine::project;
use towline_io::data::{Object, UnsupportedEntry};
use towline_io::transfer::{Found, StorePath, find, nothing_at};

/// List the content of a datastore at a path; without a path, the configured folders and
/// datastores.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tow ls
  tow ls data/voc20
  tow ls data/voc                what begins so, where nothing has that whole name
  tow ls data/voc --prefix       what begins so, in any case
  tow ls research:alice --deep")]
pub(crate) struct Args {
    /// A path below a folder of the configuration, or STORE:PATH.
    #[arg(value_name = "PATH")]
    path: Option<String>,
    /// The cluster or datastore to list.
    #[arg(short, long, value_name = "CLUSTER")]
    cluster: Option<String>,
    /// List everything below, not one level.
    #[arg(short, long, alias = "recursive")]
    deep: bool,
    /// List names that begin with PATH, not only those below it.
    #[arg(long)]
    prefix: bool,
}

/// What is at the path.
#[derive(Debug, Default)]
struct Listing {
    folders: Vec<String>,
    objects: Vec<Object>,
    unsupported: Vec<UnsupportedEntry>,
    /// What names are shown without: the folder that was listed, ending in `/`.
    below: String,
    /// Whether they only begin with the path, because nothing has it as its whole name.
    is_guess: bool,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<Report> {
    let stores = Stores::new(context);
    let below = below_root(
        &project::code_root(context.folder()?),
        context.folder()?,
        ".",
    )?;
    let path = match &args.path {
        None if below.is_empty() => {
            // A cluster, or a datastore.
            if let Some(name) = args.cluster.as_deref().filter(|name| {
                !context
                    .layers()
                    .is_ok_and(|layers| layers.config.datastores.contains_key(*name))
            }) {
                context.check_cluster(name)?;
            }
            return configured(context);
        }
        None => ".",
        Some(path) => path,
    };
    let location = stores.location(args.cluster.as_deref(), path)?;
    let Some(listing) = stores::drive(look(&location, args))? else {
        return Ok(crate::data::transfers::interrupted());
    };
    Ok(report(&location, &listing))
}

async fn look(location: &Location, args: &Args) -> Result<Listing> {
    let store_path = &location.store_path;
    if args.prefix && !store_path.path.is_empty() {
        return beginning(store_path, args.deep).await;
    }
    match find(store_path).await? {
        Some(Found::Object(object)) => Ok(Listing {
            objects: vec![object],
            below: store_path.prefix(),
            ..Listing::default()
        }),
        Some(Found::Folder(_)) => level(store_path, &store_path.prefix(), args.deep).await,
        // The root of a store may be empty.
        None if store_path.path.is_empty() => Ok(Listing::default()),
        None => match beginning(store_path, args.deep).await? {
            listing if listing.is_empty() => Err(nothing_at(store_path).await),
            listing => Ok(Listing {
                is_guess: true,
                ..listing
            }),
        },
    }
}

/// Everything below `prefix`, or one level of it.
async fn level(store_path: &StorePath, prefix: &str, deep: bool) -> Result<Listing> {
    let mut listing = Listing {
        below: prefix.to_owned(),
        ..Listing::default()
    };
    let mut next = None;
    loop {
        let page = store_path.store.list(prefix, deep, next.as_deref()).await?;
        listing.folders.extend(page.folders);
        listing.objects.extend(page.objects);
        listing.unsupported.extend(page.unsupported);
        match page.next {
            Some(token) => next = Some(token),
            None => break,
        }
    }
    // A folder and its mark may come on two pages.
    listing.folders.sort();
    listing.folders.dedup();
    Ok(listing)
}

/// The names beside the path that begin with its last part.
async fn beginning(store_path: &StorePath, deep: bool) -> Result<Listing> {
    let (parent, start) = store_path
        .path
        .rfind('/')
        .map_or(("", store_path.path.as_str()), |at| {
            store_path.path.split_at(at + 1)
        });
    let mut listing = level(store_path, parent, deep).await?;
    listing.folders.retain(|folder| folder.starts_with(start));
    listing
        .objects
        .retain(|object| object.key.as_str().starts_with(&store_path.path));
    listing
        .unsupported
        .retain(|odd| odd.name.starts_with(&store_path.path));
    Ok(listing)
}

impl Listing {
    fn is_empty(&self) -> bool {
        self.folders.is_empty() && self.objects.is_empty()
    }
}

fn report(location: &Location, listing: &Listing) -> Report {
    let name = |object: &Object| {
        object
            .key
            .as_str()
            .strip_prefix(&listing.below)
            .unwrap_or(object.key.name())
            .to_owned()
    };
    let changed = |object: &Object| {
        object
            .modified()
            .map(|(seconds, nanos)| Moment(seconds * 1000 + i64::from(nanos / 1_000_000)))
    };
    let mut rows: Vec<(String, String, String)> = listing
        .folders
        .iter()
        .map(|folder| (format!("{folder}/"), String::new(), String::new()))
        .collect();
    let second = crate::output::local_time::shown;
    rows.extend(listing.objects.iter().map(|object| {
        (
            name(object),
            Size(object.size).to_string(),
            changed(object).map(second).unwrap_or_default(),
        )
    }));
    rows.sort();
    let mut table = Table::new(&["SIZE", "CHANGED", "NAME"]);
    for (name, size, changed) in rows {
        let paint = if name.ends_with('/') {
            Paint::Bold
        } else {
            Paint::Plain
        };
        table.row(vec![
            (size, Paint::Plain),
            (changed, Paint::Quiet),
            (name, paint),
        ]);
    }
    let objects: Vec<_> = listing
        .objects
        .iter()
        .map(|object| json!({ "name": name(object), "size": object.size, "changed": changed(object).map(|moment| moment.to_string()) }))
        .collect();
    let bytes: u64 = listing.objects.iter().map(|object| object.size).sum();
    let value = json!({ "path": location.shown, "store": location.store_path.store.place(), "folders": listing.folders, "objects": objects });
    let mut report = Report::new(table.render(), &value);
    if listing.is_guess {
        report = report.hint(format!(
            "nothing has the whole name `{}`; these names begin with it",
            location.shown
        ));
    }
    for odd in &listing.unsupported {
        report = report.hint(format!("not shown {}: {}", odd.name, odd.why));
    }
    let folders = if listing.folders.is_empty() {
        String::new()
    } else {
        format!("{} folder(s), ", listing.folders.len())
    };
    report.hint(format!(
        "{folders}{} file(s), {} in {}",
        objects.len(),
        Size(bytes),
        location.store_path.store.place()
    ))
}

fn configured(context: &Context) -> Result<Report> {
    let config = &context.layers()?.config;
    let mut table = Table::new(&["NAME", "DATASTORE", "PATH"]);
    for (name, folder) in &config.folders {
        table.row(vec![
            (format!("{name}/"), Paint::Bold),
            (folder.datastore.clone(), Paint::Plain),
            (folder.path.clone(), Paint::Quiet),
        ]);
    }
    for (name, store) in &config.datastores {
        let place = [&store.account, &store.container, &store.bucket, &store.path]
            .into_iter()
            .flatten()
            .cloned()
            .collect::<Vec<_>>()
            .join("/");
        table.row(vec![
            (format!("{name}:"), Paint::Bold),
            (store.kind.clone(), Paint::Plain),
            (place, Paint::Quiet),
        ]);
    }
    let folders: Vec<_> = config.folders.iter().map(|(name, folder)| json!({ "name": name, "datastore": folder.datastore, "path": folder.path })).collect();
    let names: Vec<_> = config
        .datastores
        .iter()
        .map(|(name, store)| json!({ "name": name, "kind": store.kind }))
        .collect();
    let is_empty = config.folders.is_empty() && config.datastores.is_empty();
    let report = Report::new(
        if is_empty {
            String::new()
        } else {
            table.render()
        },
        &json!({ "folders": folders, "datastores": names }),
    );
    Ok(if is_empty {
        report.hint(
            "no datastore is configured; begin with `datastores: {nas: {kind: folder, \
            path: /mnt/nas}}` in towline.yaml",
        )
    } else {
        report
    })
}
