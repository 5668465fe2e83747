//! The runner inside a container: runs the same attempt with the image's programs. It reads the
//! attempt from stdin, and leaves its ending in the run's folder.

use crate::attempt::{Attempt, Change};
use crate::end_signal::{EndSignal, SignalSender};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use towline_core::reason::Ending;
use towline_wire::runner::{Assignment, Stop};

pub const INNER_VERB: &str = "__inner";

/// The file of an attempt's ending for the runner outside. Nodes that share the folder have one
/// each.
pub(crate) fn ending_file(folder: &Path, assignment: &Assignment) -> PathBuf {
    let node = assignment
        .gang
        .as_ref()
        .map_or_else(String::new, |place| format!(".node-{}", place.node));
    folder.join(format!("attempt-{}{node}.ending", assignment.attempt))
}

pub fn inner_main(folder: &Path) -> io::Result<()> {
    towline_host::process::become_subreaper()?;
    let mut assignment: Assignment =
        serde_json::from_reader(io::stdin().lock()).map_err(io::Error::other)?;
    // Variables of the image count, unless the job sets them.
    for (name, value) in std::env::vars_os() {
        if let (Ok(name), Ok(value)) = (name.into_string(), value.into_string()) {
            assignment.variables.0.entry(name).or_insert(value);
        }
    }
    let null = fs::File::open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    let file = ending_file(folder, &assignment);
    let ending = carry(assignment, folder)?;
    let part = file.with_extension("ending-part");
    fs::write(
        &part,
        serde_json::to_vec(&ending).map_err(io::Error::other)?,
    )?;
    fs::rename(part, file)
}

/// Runs the attempt to its end; SIGTERM ends it early, with its grace.
fn carry(assignment: Assignment, folder: &Path) -> io::Result<Ending> {
    let mut word = EndSignal::new()?;
    let signals_reach_all = assignment.signals_reach_all;
    let mut attempt = Attempt::new(assignment, folder, "inner");
    let mut change = attempt.begin();
    while change != Change::Done {
        match word.wait(Some(&attempt), Duration::MAX)? {
            Some(SignalSender::Other) if signals_reach_all => attempt.stop_signalled(Stop::ByUser),
            Some(_) => attempt.stop(Stop::ByUser),
            None => {}
        }
        change = attempt.wake();
    }
    Ok(attempt.ending())
}
