//! `tow tag`: adds tags to runs and removes others.

use super::Report;
use crate::context::Context;
use crate::runs::change;
use towline_core::{Error, Result, RunId};
use towline_wire::daemon::{Reply, Request};
use towline_wire::report::change::{Tagged, TaggedRun};

/// Add tags to runs (`+TAG`) and remove others (`-TAG`).
///
/// Any run can be tagged, at any time. `tow ps --tag TAG` lists the runs with a tag.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tow tag 60ce2fc7 +baseline
  tow tag @ +best -try        of a sweep, every run
  tow ps --tag best")]
pub(crate) struct Args {
    /// Runs or sweeps, then `+TAG` for each tag to add and `-TAG` for each to remove.
    #[arg(
        value_name = "RUN|+TAG|-TAG",
        required = true,
        allow_hyphen_values = true
    )]
    words: Vec<String>,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<Report> {
    let (mut add, mut remove, mut texts) = (Vec::new(), Vec::new(), Vec::new());
    for word in &args.words {
        if let Some(tag) = word.strip_prefix('+') {
            add.push(checked(word, tag)?);
        } else if let Some(tag) = word.strip_prefix('-') {
            remove.push(checked(word, tag)?);
        } else {
            texts.push(word.clone());
        }
    }
    if add.is_empty() && remove.is_empty() {
        return Err(Error::usage("`tow tag`: no tag is named").hint("write +TAG or -TAG"));
    }
    if let Some(both) = add.iter().find(|tag| remove.contains(tag)) {
        return Err(Error::usage(format!("`{both}` is to be added and removed")));
    }
    if texts.is_empty() {
        return Err(Error::usage("`tow tag`: no run is named").hint("@ is the latest"));
    }
    let runs: Vec<RunId> = change::named(context, &texts)?
        .into_iter()
        .map(|run| run.id)
        .collect();
    let request = || Request::Tag {
        runs: runs.clone(),
        add: add.clone(),
        remove: remove.clone(),
    };
    let Reply::Tagged { runs: tagged } = change::ask_daemon(context, &request, change::unwritten)?
    else {
        return Err(Error::bug("the daemon's answer does not match the request"));
    };
    let is_tagged = |run: &RunId| tagged.iter().any(|(id, _)| id == run);
    let answer = Tagged {
        unchanged: runs.iter().filter(|run| !is_tagged(run)).cloned().collect(),
        tagged: tagged
            .iter()
            .map(|(id, tags)| TaggedRun {
                id: id.clone(),
                tags: tags.clone(),
            })
            .collect(),
    };
    Ok(Report::of(&answer, text))
}

/// A tag that can be typed again: not empty, in one line, without a sign or a comma.
fn checked(word: &str, tag: &str) -> Result<String> {
    let is_good = !tag.is_empty()
        && !tag.starts_with(['+', '-'])
        && !tag.contains(|letter: char| letter == ',' || letter.is_control());
    if is_good {
        return Ok(tag.to_owned());
    }
    Err(Error::usage(format!("`{word}` is no tag"))
        .hint("write +TAG or -TAG; a tag has no comma and does not begin with a sign"))
}

fn text(answer: &Tagged) -> String {
    super::lines(&answer.tagged, |run| {
        let tags = if run.tags.is_empty() {
            "no tag".to_owned()
        } else {
            run.tags.join(", ")
        };
        format!("{}: {tags}", run.id)
    }) + &super::lines(&answer.unchanged, |run| format!("{run}: nothing to change"))
}
