//! `tow ps --watch`: the table, written again where it stands, until Ctrl-C.
//!
//! Nothing of the terminal is changed that would have to be restored.

use super::{Args, Report, once};
use crate::context::Context;
use crate::output::{self, Paint, columns};
use std::thread::sleep;
use std::time::Duration;
use towline_core::{Error, Result};

/// How long a table stands.
const PAUSE: Duration = Duration::from_secs(1);

pub(super) fn watch(context: &Context, args: &Args) -> Result<Report> {
    if context.json {
        return Err(Error::usage("`--watch` is for people: it has no --json")
            .hint("every change, for programs: tow api --stdio"));
    }
    if !output::stdout_knows_escapes() {
        return Err(Error::usage("`--watch` needs a terminal")
            .hint("the runs of this moment: tow ps; every change: tow api --stdio"));
    }
    output::screen_begins()?;
    loop {
        let report = once(context, args)?;
        output::screen(&lines(&report))?;
        sleep(PAUSE);
    }
}

/// The table and what is said below it.
fn lines(report: &Report) -> Vec<String> {
    let colour = output::stdout_has_colour();
    let table = report.text.lines().map(str::to_owned);
    let width = output::width().unwrap_or(usize::MAX);
    let hints = report.hints.iter().map(|hint| {
        let line = columns::cut(&format!("  {hint}"), width);
        output::paint(Paint::Quiet, &line, colour)
    });
    table.chain(hints).collect()
}
