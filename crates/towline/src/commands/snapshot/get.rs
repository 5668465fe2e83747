//! `tow snapshot get`: writes a snapshot as a folder.

use super::{Report, find, with_store};
use crate::context::Context;
use crate::output::progress::Bar;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use towline_core::quantity::Memory;
use towline_core::{Error, Result};
use towline_snapshot::layout::lay_out;
use towline_snapshot::progress::Progress;
use towline_snapshot::root::read_root;
use towline_wire::report::snapshot::SnapshotFolder;

/// Write a snapshot as a folder, every byte verified.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tow snapshot get 3f2a9c old-code
  tow snapshot get 3f2a9c old-code --in research")]
pub(crate) struct Args {
    /// The snapshot, as `tow snapshot ls` lists it, or a unique part of its id.
    #[arg(value_name = "SNAPSHOT")]
    snapshot: String,
    /// The folder to make; it must not exist.
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
    /// Get it from a datastore [default: this machine].
    #[arg(long = "in", alias = "from", value_name = "DATASTORE")]
    store: Option<String>,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<Report> {
    let target = context.folder()?.join(&args.folder);
    if target.symlink_metadata().is_ok() {
        return Err(
            Error::conflict(format!("{} exists already", target.display()))
                .hint("name a folder that does not exist"),
        );
    }
    let progress = Progress::default();
    let (id, files, bytes) = with_store(context, args.store.as_deref(), |store| {
        let id = find(store, &args.snapshot)?;
        let root = read_root(store, &id)?;
        Bar::new("layout").watch(
            || progress.read(),
            || lay_out(&root, store, &target, &progress, &AtomicBool::new(false)),
        )?;
        Ok((id, root.manifest.files(), root.manifest.bytes()))
    })?;
    let answer = SnapshotFolder {
        id: id.to_string(),
        folder: target.display().to_string(),
        files,
        bytes,
    };
    Ok(Report::of(&answer, |answer| format!("{}\n", answer.folder))
        .hint(format!("{files} files, {}", Memory(bytes))))
}
