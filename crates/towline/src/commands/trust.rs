//! `tow trust`: let this content of a folder's configuration do more than describe jobs.

use super::Report;
use crate::context::Context;
use crate::output;
use crate::wiring::trusting;
use std::path::PathBuf;
use towline_core::{Error, Result};
use towline_engine::layers::{self, Sources, Untrusted};
use towline_engine::trust::Trusted;
use towline_wire::report::trust::{Trust, TrustRemoved};

/// Let a folder's `towline.yaml` do more than describe jobs.
///
/// Also for ACT's files. Shows what that is, and asks. You agree to the present content: if a file
/// changes, `tow` asks again. Files that you make with `tow import` are trusted. A file that
/// another user owns, or that everybody can write, cannot be trusted: copy it.
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
        let report = Report::of(&answer(&[], true), |_| String::new());
        return Ok(report.hint(nothing_to_trust(&sources)));
    }
    if !args.yes {
        let description: String = untrusted.iter().map(trusting::description).collect();
        output::status(description.trim_end());
        if !output::can_ask() {
            let error = Error::refused("there is no terminal to ask on; nothing was changed");
            return Err(error.hint(format!(
                "agree to it as it is now: tow trust {} --yes",
                untrusted[0].folder.display()
            )));
        }
        if !output::ask("Trust this content?") {
            let report = Report::of(&answer(&untrusted, false), |_| String::new());
            return Ok(report.hint("nothing was changed"));
        }
    }
    for one in &untrusted {
        trusting::agree(&sources, one)?;
    }
    // Whoever was asked has seen what it does.
    let text = if args.yes { text } else { trusted_files };
    Ok(Report::of(&answer(&untrusted, true), text))
}

fn text(answer: &Trust) -> String {
    let described: String = answer
        .files
        .iter()
        .map(trusting::file_description)
        .collect();
    described + &trusted_files(answer)
}

fn trusted_files(answer: &Trust) -> String {
    super::lines(&answer.files, |file| format!("trusted {}", file.file))
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
    Ok(Report::of(&TrustRemoved { removed }, |answer| {
        format!("no longer trusted: {}\n", answer.removed.join(", "))
    }))
}

fn answer(untrusted: &[Untrusted], trusted: bool) -> Trust {
    Trust {
        trusted,
        files: untrusted.iter().map(trusting::privileged).collect(),
    }
}
