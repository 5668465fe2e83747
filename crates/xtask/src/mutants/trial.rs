//! Runs test programs with a mutant chosen.

use super::tree::Program;
use super::weave::CHOICE;
use crate::quick;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The stories that a mutant is tried on which passed the tests of its crate.
const SEEDS: &str = "0..500";

/// A mutant may allocate without end. This is the limit of its address space.
const MEMORY_KIB: u64 = 8 << 20;

/// A test that takes longer than usual by this and by `SLOWDOWN` hangs.
const SLACK: Duration = Duration::from_secs(10);
const SLOWDOWN: u32 = 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Passed,
    Failed,
    TimedOut,
}

/// Test programs with the time that each takes, the quick ones first.
#[derive(Debug)]
pub(super) struct Trial(Vec<(Program, Duration)>);

impl Trial {
    /// Measures the programs without a mutant. All must pass.
    pub(super) fn new(programs: Vec<Program>) -> Result<Self, String> {
        let mut measured = Vec::new();
        for program in programs {
            let begun = Instant::now();
            let limit = Duration::from_secs(600);
            if run(&program, None, limit)? != Verdict::Passed {
                let path = program.path.display();
                return Err(format!("{path} does not pass without a mutant"));
            }
            measured.push((program, begun.elapsed()));
        }
        measured.sort_by_key(|(_, time)| *time);
        Ok(Self(measured))
    }

    /// Runs the tests of a package until one fails.
    pub(super) fn run(&self, package: &str, mutant: usize) -> Result<Verdict, String> {
        for (program, time) in self.0.iter().filter(|(of, _)| of.package == package) {
            let verdict = run(program, Some(mutant), SLACK + *time * SLOWDOWN)?;
            if verdict != Verdict::Passed {
                return Ok(verdict);
            }
        }
        Ok(Verdict::Passed)
    }

    /// The same for programs that were built again, with the times of these.
    pub(super) fn run_built(&self, programs: &[Program], package: &str) -> Result<Verdict, String> {
        let longest = self.0.iter().map(|(_, time)| *time).max();
        let limit = SLACK + longest.unwrap_or_default() * SLOWDOWN;
        for program in programs.iter().filter(|of| of.package == package) {
            let verdict = run(program, None, limit)?;
            if verdict != Verdict::Passed {
                return Ok(verdict);
            }
        }
        Ok(Verdict::Passed)
    }
}

fn run(program: &Program, mutant: Option<usize>, limit: Duration) -> Result<Verdict, String> {
    let failed = |error| format!("{}: {error}", program.path.display());
    let mut command = Command::new("sh");
    command
        .args(["-c", &format!("ulimit -v {MEMORY_KIB}; exec \"$0\" -q")])
        .arg(&program.path)
        .current_dir(&program.folder)
        .env_remove(CHOICE)
        .envs(mutant.map(|number| (CHOICE, number.to_string())))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0);
    if program.package == quick::SIMULATION {
        command.env("TOW_SIMULATION_SEEDS", SEEDS);
    }
    let mut child = command.spawn().map_err(failed)?;
    let begun = Instant::now();
    loop {
        match child.try_wait().map_err(failed)? {
            Some(status) if status.success() => return Ok(Verdict::Passed),
            Some(_) => return Ok(Verdict::Failed),
            None if begun.elapsed() >= limit => break,
            None => std::thread::sleep(Duration::from_millis(10)),
        }
    }
    let group = format!("-{}", child.id());
    let _ = Command::new("kill").args(["-KILL", "--", &group]).status();
    child.wait().map_err(failed)?;
    Ok(Verdict::TimedOut)
}
