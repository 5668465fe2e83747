//! `tow trust`: let this content of a folder's configuration do more than describe jobs.

use super::Report;
use crate::context::Context;
use crate::output;
use crate::wiring::trusting;
use std::path::PathBuf;
use towline_core::{Error, Result};
use towline_engine::layers::{self, Sources, Untrusted};
use towline_engine::trust::Trusted;

/// Let a folder's `towline.yaml`, or ACT's files, do more than describe jobs. Shows what that is,
/// and asks.
///
/// You agree to the present content: if a file changes, `tow` asks again. Files that you make with
/// `tow import` are trusted. A file that another user owns, or that everybody can write, cannot be
/// trusted: copy it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tow trust                 show what this folder's configuration would do, and ask
  tow trust ~/vision --yes  agree to it without being asked
  tow trust --remove        no longer")]
pub(crate) struct Args {
    /// The folder, or one below it.
    #[arg(value_name = "FOLDER")]
    folder: Option<PathBuf>,
    /// Agree without a question.
    #[arg(long)]
    yes: bool,
    /// Withdraw an agreement.
    #[arg(long, conflicts_with = "yes")]
    remove: bool,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<Report> {
    let folder = match &args.folder {
        None => context.folder()?.clone(),
        Some(folder) => context
            .folder()?
            .join(folder)
            .canonicalize()
            .map_err(|error| {
                Error::not_found(format!("there is no folder {}", folder.display()))
                    .source_error(error)
            })?,
    };
    let sources = Sources::find(&folder, context.environment());
    if args.remove {
        return remove(&sources, &folder);
    }
    if let Some((file, why)) = sources.files_of_untrusted_owners().next() {
        return Err(
            Error::refused(format!("{} {why}: it cannot be trusted", file.display()))
                .hint("copy it to a folder of yours, and look at the copy"),
        );
    }
    let untrusted = layers::untrusted(&sources)?;
    if untrusted.is_empty() {
        return Ok(report("", &[], true).hint(nothing_to_trust(&sources)));
    }
    let text: String = untrusted.iter().map(trusting::description).collect();
    if !args.yes {
        output::status(text.trim_end());
        if !output::can_ask() {
            let error = Error::refused("there is no terminal to ask on; nothing was changed");
            return Err(error.hint(format!(
                "agree to it as it is now: tow trust {} --yes",
                untrusted[0].folder.display()
            )));
        }
        if !output::ask("Trust this content?") {
            return Ok(report("", &untrusted, false).hint("nothing was changed"));
        }
    }
    for one in &untrusted {
        trusting::agree(&sources, one)?;
    }
    let folders: Vec<String> = untrusted
        .iter()
        .map(|one| format!("trusted {}\n", one.shown))
        .collect();
    Ok(report(
        &if args.yes {
            text + &folders.concat()
        } else {
            folders.concat()
        },
        &untrusted,
        true,
    ))
}

fn nothing_to_trust(sources: &Sources) -> String {
    match (&sources.project_file, &sources.act) {
        (None, None) => "there is no towline.yaml here or above".to_owned(),
        _ => {
            "all of it counts already: it only describes jobs, or you have agreed to it".to_owned()
        }
    }
}

fn remove(sources: &Sources, folder: &std::path::Path) -> Result<Report> {
    let trusted = Trusted::of(sources.user_folder.as_deref());
    let project = sources.project_file.as_ref().and_then(|file| file.parent());
    let act = sources
        .act
        .as_ref()
        .map(towline_engine::act_layout::ActLayout::root);
    let mut removed = Vec::new();
    for folder in [Some(folder), project, act].into_iter().flatten() {
        if trusted.remove(folder)? {
            removed.push(folder.display().to_string());
        }
    }
    if removed.is_empty() {
        return Err(Error::not_found(format!(
            "{} was not trusted",
            folder.display()
        )));
    }
    let text = format!("no longer trusted: {}\n", removed.join(", "));
    Ok(Report::new(
        text,
        &serde_json::json!({ "removed": removed }),
    ))
}

fn report(text: &str, untrusted: &[Untrusted], trusted: bool) -> Report {
    let key = |found: &towline_engine::privilege::Privilege| serde_json::json!({ "key": found.key, "value": found.value, "meaning": found.meaning });
    let files: Vec<_> =
        untrusted.iter().map(|one| serde_json::json!({ "file": one.shown, "keys": one.privileges.iter().map(key).collect::<Vec<_>>() })).collect();
    Report::new(
        text,
        &serde_json::json!({ "trusted": trusted, "files": files }),
    )
}
