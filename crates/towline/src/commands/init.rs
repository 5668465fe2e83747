//! `tow init`: takes and uploads the snapshot ahead of time.

use super::Report;
use crate::context::Context;
use crate::data::stores::{Stores, remote_store};
use crate::output::table::Table;
use crate::output::{self, Paint};
use towline_core::job::Job;
use towline_core::quantity::Memory;
use towline_core::{Error, Result};
use towline_engine::flow;
use towline_engine::flow::code::{self, Survey, Wish};
use towline_engine::flow::with_defaults;
use towline_snapshot::take::Taken;
use towline_wire::report::init::{Explained, FolderSize, Initialised, LeftOut};

/// Take a snapshot of the code now, ahead of a submission.
///
/// The next submission then has nothing left to upload. If the cluster is another machine or a
/// service, the snapshot is uploaded there too.
///
/// A submission takes its own snapshot in any case; queued runs keep theirs.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tow init                     into this machine's store, and to the default cluster
  tow init -c lab              to another cluster
  tow init --to research       into a datastore
  tow init --explain           what would travel, what not, and why")]
pub(crate) struct Args {
    /// A datastore to store it in [default: this machine].
    #[arg(long, value_name = "DATASTORE[:PATH]")]
    to: Option<String>,
    /// Upload it for this cluster [default: the configured one].
    #[arg(short, long, conflicts_with = "to")]
    cluster: Option<String>,
    /// Show what is left out and why, and take no snapshot.
    #[arg(long)]
    explain: bool,
    /// Allow any number of files and any size.
    #[arg(long)]
    any_size: bool,
    /// A pattern to leave out, as in `.gitignore`; may be repeated.
    #[arg(long = "ignore", value_name = "PATTERN")]
    ignore: Vec<String>,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<Report> {
    let place = flow::code_place(&Job::default(), context.folder()?)?;
    if let Some(why) = code::stays(&place) {
        return Err(Error::refused(why).hint("begin in a project's folder"));
    }
    // What is too large is to be explained, too.
    let cluster = args.cluster.as_deref().map_or_else(
        || Ok(context.layers()?.default_cluster().to_owned()),
        |name| Ok::<_, Error>(name.to_owned()),
    )?;
    let usual = with_defaults(context.layers()?, Job::default(), &cluster, None)
        .code
        .ignore;
    let ignore = [usual, args.ignore.clone()].concat();
    let wish = Wish {
        ignore: &ignore,
        large: args.any_size || args.explain,
    };
    let survey = code::survey(context.layers()?, context.state()?, &place, &wish)?;
    if args.explain {
        return Ok(explain(&survey));
    }
    let root = survey.root.display().to_string();
    let taken = match &args.to {
        None => {
            // Held until it is sent: a prune cannot come in between.
            let store = code::local_store(context.state()?)?;
            let taken = code::take_here(context, survey, &store)?;
            match send(context, &cluster, &taken) {
                Err(error) if args.cluster.is_none() => output::status(&format!(
                    "warning: not uploaded to `{cluster}`: {error}; a submission uploads it"
                )),
                outcome => outcome?,
            }
            taken
        }
        Some(name) => {
            let store = remote_store(&Stores::new(context), name)?;
            let index = store.index(context.state()?);
            code::take(context, survey, &store, index)?
        }
    };
    Ok(made(root, &taken))
}

/// Uploads the snapshot to the cluster, unless that is this machine.
fn send(context: &Context, cluster: &str, taken: &Taken) -> Result<()> {
    let target = context.cluster(cluster)?;
    if target.is_here() {
        return Ok(());
    }
    target.sign_in()?;
    towline_server::bring_code(target.cluster.as_ref(), context.state()?, taken.id)
}

fn made(root: String, taken: &Taken) -> Report {
    let answer = Initialised {
        id: taken.id.to_string(),
        root,
        files: taken.files,
        bytes: taken.bytes,
        read: taken.read,
        stored: taken.stored,
        was_there: taken.was_there,
        left_out: taken.left_out.len(),
    };
    let what = if answer.was_there {
        "unchanged".to_owned()
    } else {
        format!(
            "{} read, {} stored",
            answer.read,
            output::size(answer.stored)
        )
    };
    let left = if answer.left_out == 0 {
        String::new()
    } else {
        format!(
            "; {} left out, `tow init --explain` says why",
            answer.left_out
        )
    };
    let hint = format!(
        "{} files, {}: {what}{left}",
        answer.files,
        output::size(answer.bytes)
    );
    Report::of(&answer, |answer| format!("{}\n", answer.id)).hint(hint)
}

fn explain(survey: &Survey) -> Report {
    let walked = &survey.walked;
    let left_out = walked.left_out.iter().map(|left| LeftOut {
        path: format!(
            "{}{}",
            String::from_utf8_lossy(&left.path),
            if left.is_folder { "/" } else { "" }
        ),
        why: left.why.to_string(),
        linked: left.is_linked(),
    });
    let largest = walked.largest().into_iter().take(5);
    let answer = Explained {
        root: survey.root.display().to_string(),
        files: walked.files(),
        bytes: walked.bytes(),
        largest: largest
            .map(|(files, bytes, name)| FolderSize { name, files, bytes })
            .collect(),
        left_out: left_out.collect(),
    };
    Report::of(&answer, explained)
}

fn explained(answer: &Explained) -> String {
    let mut text = format!(
        "{}: {} files, {} travel\n",
        answer.root,
        answer.files,
        output::size(answer.bytes)
    );
    for FolderSize { name, files, bytes } in &answer.largest {
        text += &format!(
            "  {name:<24} {files:>7} files {:>9}\n",
            Memory(*bytes).to_string()
        );
    }
    if answer.left_out.is_empty() {
        return text;
    }
    let mut table = Table::new(&["LEFT OUT", "WHY", "LOCAL RUN"]);
    for row in &answer.left_out {
        let local = if row.linked { "linked" } else { "without" };
        table.row(vec![
            (row.path.clone(), Paint::Bold),
            (row.why.clone(), Paint::Plain),
            (local.to_owned(), Paint::Quiet),
        ]);
    }
    text + &table.render()
}
