//! `tow ls`: lists the content of a datastore.

use super::Report;
use crate::context::Context;
use crate::data::stores::{self, Location, Stores, below_root};
use crate::output::Paint;
use crate::output::table::Table;
use towline_core::Result;
use towline_core::quantity::Size;
use towline_core::time::Moment;
use towline_engine::project;
use towline_io::data::{Object, UnsupportedEntry};
use towline_io::transfer::{Found as StoreFound, StorePath, find, nothing_at};
use towline_wire::report::Time;
use towline_wire::report::ls::{
    ConfiguredFolder, ConfiguredStore, ConfiguredStores, Listing, StoredObject,
};

/// List files in a datastore.
///
/// Without a path, the configured folders and datastores.
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
struct Found {
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
    let Some(found) = stores::drive(look(&location, args))? else {
        return Ok(crate::data::transfers::interrupted());
    };
    Ok(report(&location, &found))
}

async fn look(location: &Location, args: &Args) -> Result<Found> {
    let store_path = &location.store_path;
    if args.prefix && !store_path.path.is_empty() {
        return beginning(store_path, args.deep).await;
    }
    match find(store_path).await? {
        Some(StoreFound::Object(object)) => Ok(Found {
            objects: vec![object],
            below: store_path.prefix(),
            ..Found::default()
        }),
        Some(StoreFound::Folder(_)) => level(store_path, &store_path.prefix(), args.deep).await,
        // The root of a store may be empty.
        None if store_path.path.is_empty() => Ok(Found::default()),
        None => match beginning(store_path, args.deep).await? {
            found if found.is_empty() => Err(nothing_at(store_path).await),
            found => Ok(Found {
                is_guess: true,
                ..found
            }),
        },
    }
}

/// Everything below `prefix`, or one level of it.
async fn level(store_path: &StorePath, prefix: &str, deep: bool) -> Result<Found> {
    let mut found = Found {
        below: prefix.to_owned(),
        ..Found::default()
    };
    let mut next = None;
    loop {
        let page = store_path.store.list(prefix, deep, next.as_deref()).await?;
        found.folders.extend(page.folders);
        found.objects.extend(page.objects);
        found.unsupported.extend(page.unsupported);
        match page.next {
            Some(token) => next = Some(token),
            None => break,
        }
    }
    // A folder and its mark may come on two pages.
    found.folders.sort();
    found.folders.dedup();
    Ok(found)
}

/// What lies beside the path and begins with its last part.
async fn beginning(store_path: &StorePath, deep: bool) -> Result<Found> {
    let (parent, start) = store_path
        .path
        .rfind('/')
        .map_or(("", store_path.path.as_str()), |at| {
            store_path.path.split_at(at + 1)
        });
    let mut found = level(store_path, parent, deep).await?;
    found.folders.retain(|folder| folder.starts_with(start));
    found
        .objects
        .retain(|object| object.key.as_str().starts_with(&store_path.path));
    found
        .unsupported
        .retain(|odd| odd.name.starts_with(&store_path.path));
    Ok(found)
}

impl Found {
    fn is_empty(&self) -> bool {
        self.folders.is_empty() && self.objects.is_empty()
    }
}

fn report(location: &Location, found: &Found) -> Report {
    let answer = answer(location, found);
    let mut report = Report::of(&answer, text);
    if found.is_guess {
        report = report.hint(format!(
            "nothing has the whole name `{}`; these names begin with it",
            answer.path
        ));
    }
    for odd in &found.unsupported {
        report = report.hint(format!("not shown {}: {}", odd.name, odd.why));
    }
    let folders = if answer.folders.is_empty() {
        String::new()
    } else {
        format!("{} folder(s), ", answer.folders.len())
    };
    let bytes: u64 = answer.objects.iter().map(|object| object.size).sum();
    report.hint(format!(
        "{folders}{} file(s), {} in {}",
        answer.objects.len(),
        Size(bytes),
        answer.store
    ))
}

fn answer(location: &Location, found: &Found) -> Listing {
    let name = |object: &Object| {
        object
            .key
            .as_str()
            .strip_prefix(&found.below)
            .unwrap_or(object.key.name())
            .to_owned()
    };
    let changed = |object: &Object| {
        let (seconds, nanos) = object.modified()?;
        Some(Time(Moment(seconds * 1000 + i64::from(nanos / 1_000_000))))
    };
    let objects = found.objects.iter().map(|object| StoredObject {
        name: name(object),
        size: object.size,
        changed: changed(object),
    });
    Listing {
        path: location.shown.clone(),
        store: location.store_path.store.place(),
        folders: found.folders.clone(),
        objects: objects.collect(),
    }
}

fn text(answer: &Listing) -> String {
    let folders = answer.folders.iter();
    let mut rows: Vec<(String, String, String)> = folders
        .map(|folder| (format!("{folder}/"), String::new(), String::new()))
        .collect();
    rows.extend(answer.objects.iter().map(|object| {
        let changed = object
            .changed
            .map(|changed| crate::output::local_time::shown(changed.0));
        (
            object.name.clone(),
            Size(object.size).to_string(),
            changed.unwrap_or_default(),
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
    table.render()
}

fn configured(context: &Context) -> Result<Report> {
    let config = &context.layers()?.config;
    let folders = config
        .folders
        .iter()
        .map(|(name, folder)| ConfiguredFolder {
            name: name.clone(),
            datastore: folder.datastore.clone(),
            path: folder.path.clone(),
        });
    let datastores = config.datastores.iter().map(|(name, store)| {
        let parts = [&store.account, &store.container, &store.bucket, &store.path];
        let parts: Vec<&str> = parts.into_iter().flatten().map(String::as_str).collect();
        ConfiguredStore {
            name: name.clone(),
            kind: store.kind.to_string(),
            place: parts.join("/"),
        }
    });
    let answer = ConfiguredStores {
        folders: folders.collect(),
        datastores: datastores.collect(),
    };
    let report = Report::of(&answer, configured_text);
    Ok(if report.text.is_empty() {
        report.hint(
            "no datastore is configured; begin with `datastores: {nas: {kind: folder, \
            path: /mnt/nas}}` in towline.yaml",
        )
    } else {
        report
    })
}

fn configured_text(answer: &ConfiguredStores) -> String {
    if answer.folders.is_empty() && answer.datastores.is_empty() {
        return String::new();
    }
    let mut table = Table::new(&["NAME", "DATASTORE", "PATH"]);
    for folder in &answer.folders {
        table.row(vec![
            (format!("{}/", folder.name), Paint::Bold),
            (folder.datastore.clone(), Paint::Plain),
            (folder.path.clone(), Paint::Quiet),
        ]);
    }
    for store in &answer.datastores {
        table.row(vec![
            (format!("{}:", store.name), Paint::Bold),
            (store.kind.clone(), Paint::Plain),
            (store.place.clone(), Paint::Quiet),
        ]);
    }
    table.render()
}
