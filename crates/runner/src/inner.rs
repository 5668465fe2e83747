//! The runner inside a container: the same attempt, carried where the image's programs are. It
//! takes the attempt from stdin, and leaves its ending in the run's folder.

use crate::attempt::{Attempt, Change};
use rustix::event::{PollFd, PollFlags, poll};
use std::fs;
use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use towline_core::reason::Ending;
use towline_wire::runner::{Assignment, Stop};

pub const INNER_VERB: &str = "__inner";

/// Where the ending of an attempt is left for the runner outside.
pub(crate) fn ending_file(folder: &Path, attempt: u32) -> PathBuf {
    folder.join(format!("attempt-{attempt}.ending"))
}

pub fn inner_main(folder: &Path) -> io::Result<()> {
    towline_host::process::become_subreaper()?;
    let mut assignment: Assignment = serde_json::from_reader(io::stdin().lock()).map_err(io::Error::other)?;
    // What the image sets counts, unless the job says otherwise.
    for (name, value) in std::env::vars_os() {
        if let (Ok(name), Ok(value)) = (name.into_string(), value.into_string()) {
            assignment.variables.0.entry(name).or_insert(value);
        }
    }
    let null = fs::File::open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    let attempt = assignment.attempt;
    let ending = carry(assignment, folder)?;
    let file = ending_file(folder, attempt);
    let part = file.with_extension("ending-part");
    fs::write(&part, serde_json::to_vec(&ending).map_err(io::Error::other)?)?;
    fs::rename(part, file)
}

/// The attempt to its end; SIGTERM ends it early, with its grace.
fn carry(assignment: Assignment, folder: &Path) -> io::Result<Ending> {
    let (mut heard, tell) = UnixStream::pair()?;
    heard.set_nonblocking(true)?;
    signal_hook::low_level::pipe::register(signal_hook::consts::SIGTERM, tell)?;
    let mut attempt = Attempt::new(assignment, folder, "inner");
    let mut change = attempt.begin();
    while change != Change::Done {
        let timeout = crate::carry::timespec(attempt.timeout());
        let mut descriptors = vec![PollFd::new(&heard, PollFlags::IN)];
        descriptors.extend(attempt.watches().map(|watch| PollFd::from_borrowed_fd(watch, PollFlags::IN)));
        match poll(&mut descriptors, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        drop(descriptors);
        if heard.read(&mut [0; 8]).is_ok_and(|count| count > 0) {
            attempt.stop(Stop::ByUser);
        }
        change = attempt.wake();
    }
    Ok(attempt.ending())
}
