//! `tow snapshot check`: reads all stored content again.

use super::{Report, alone, find, with_store};
use crate::context::Context;
use crate::output::progress::Bar;
use towline_core::quantity::Memory;
use towline_core::{ErrorKind, Result};
use towline_snapshot::check::{Checked, check, repair};
use towline_snapshot::progress::Progress;
use towline_snapshot::store::{Blob, BlobStore};
use towline_wire::report::snapshot::{SnapshotDamage, SnapshotsChecked, TouchedSnapshot};

/// Read all stored content again, and report damage and the files that it affects.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tow snapshot check
  tow snapshot check 3f2a9c     only what that one needs")]
pub(crate) struct Args {
    /// Check only these [default: all].
    #[arg(value_name = "SNAPSHOT")]
    snapshots: Vec<String>,
    /// Check those in a datastore [default: this machine].
    #[arg(long = "in", value_name = "DATASTORE")]
    store: Option<String>,
    /// Drop damaged content and the snapshots that need it: the next submission stores it again.
    #[arg(long)]
    repair: bool,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<Report> {
    let progress = Progress::default();
    let work = |store: &dyn BlobStore| {
        let chosen = args
            .snapshots
            .iter()
            .map(|text| find(store, text).map(Blob::Root))
            .collect::<Result<Vec<Blob>>>()?;
        let only = (!chosen.is_empty()).then_some(chosen.as_slice());
        let checked =
            Bar::new("check").watch(|| progress.read(), || check(store, only, &progress))?;
        let dropped = if args.repair {
            repair(store, &checked, towline_host::clock::now().0)?
        } else {
            Vec::new()
        };
        Ok((checked, dropped))
    };
    let (checked, dropped) = match &args.store {
        None if args.repair => work(&alone(context)?.store)?,
        name => with_store(context, name.as_deref(), work)?,
    };
    let is_whole = checked.damage.is_empty();
    let report = report(checked);
    Ok(match (is_whole, args.repair) {
        (true, _) => report,
        (false, false) => {
            report.hint("--repair drops damaged content; the next submission stores it again")
        }
        (false, true) => report.code(0).hint(format!(
            "{} snapshots dropped; the next submission from their folders stores them again",
            dropped.len()
        )),
    })
}

fn report(checked: Checked) -> Report {
    let touched = |(root, files): (Blob, Vec<String>)| TouchedSnapshot {
        snapshot: root.digest().to_string(),
        files,
    };
    let damage = checked.damage.into_iter().map(|damage| SnapshotDamage {
        what: damage.what,
        how: damage.how,
        touches: damage.touches.into_iter().map(touched).collect(),
    });
    let damage: Vec<SnapshotDamage> = damage.collect();
    let answer = SnapshotsChecked {
        ok: damage.is_empty(),
        snapshots: checked.snapshots,
        packs: checked.packs,
        bytes: checked.bytes,
        damage,
    };
    let report = Report::of(&answer, text);
    if answer.ok {
        report.hint("all is as it was stored")
    } else {
        report.code(ErrorKind::Refused.exit_code())
    }
}

fn text(answer: &SnapshotsChecked) -> String {
    let mut text = format!(
        "{} snapshots, {} packs, {} read\n",
        answer.snapshots,
        answer.packs,
        Memory(answer.bytes)
    );
    for damage in &answer.damage {
        text += &format!("damaged: {}: {}\n", damage.what, damage.how);
        for touched in &damage.touches {
            let files = if touched.files.is_empty() {
                "all of it".to_owned()
            } else {
                shown(&touched.files)
            };
            text += &format!("  touches {} {files}\n", &touched.snapshot[..12]);
        }
    }
    text
}

fn shown(files: &[String]) -> String {
    let first = files
        .iter()
        .take(10)
        .cloned()
        .collect::<Vec<_>>()
        .join(", ");
    if files.len() > 10 {
        format!("{first} and {} more", files.len() - 10)
    } else {
        first
    }
}
