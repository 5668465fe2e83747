//! The quick lane: no root, nothing installed beyond cargo, under two minutes once built.

use crate::{Outcome, cargo, install, root, run as step, suites};
use std::time::Instant;

/// The crate of the simulated world.
pub(crate) const SIMULATION: &str = "towline-simulation";

/// How the simulated world is run in full: built optimised, because it tells thousands of stories.
pub(crate) const SIMULATED: [&str; 3] = ["--release", "--package", SIMULATION];

/// The seeds of the full test command. The quick lane has the first 2,000 of them.
pub(crate) const ALL_SEEDS: &str = "0..20000";

/// Crates whose tests need nothing but cargo.
const CRATES: [&str; 12] = [
    "towline-core",
    "towline-wire",
    "towline-host",
    "towline-engine",
    "towline-import",
    "towline-client",
    "towline-md5",
    "towline-slurm",
    "towline-server",
    "towline-samples",
    "towline-workspace",
    SIMULATION,
];

/// What reads the pages. The other tests of its crate need services.
const TESTKIT: [&str; 3] = ["--package", "towline-testkit", "--lib"];

/// Suites of the program on this machine alone.
const SUITES: [&str; 6] = [
    "structure",
    "verbs",
    "bad_input",
    "golden",
    "exactly_once",
    "console",
];

/// Programs that the tests call, and that a machine with cargo mostly has.
const PROGRAMS: [&str; 3] = ["bash", "git", "python3"];

pub(crate) fn run() -> Outcome {
    let missing: Vec<&str> = PROGRAMS
        .into_iter()
        .filter(|name| !install::is_there(name))
        .collect();
    if !missing.is_empty() {
        return Err(format!("the tests call {}: not found", missing.join(", ")));
    }
    let crates: Vec<&str> = CRATES.iter().flat_map(|name| ["--package", name]).collect();
    let suites: Vec<&str> = SUITES.iter().flat_map(|name| ["--test", name]).collect();
    step(cargo(&["test", "--no-run"]).args(&crates))?;
    step(cargo(&["test", "--no-run"]).args(TESTKIT))?;
    step(cargo(&["test", "--no-run", "--package", "towline"]).args(&suites))?;
    let begun = Instant::now();
    step(cargo(&["test", "--quiet"]).args(&crates))?;
    step(cargo(&["test", "--quiet"]).args(TESTKIT))?;
    step(cargo(&["test", "--quiet", "--package", "towline"]).args(&suites))?;
    println!("quick: {:.0} s", begun.elapsed().as_secs_f64());
    tell_rest()
}

/// Says what was not run, and how it is.
fn tell_rest() -> Outcome {
    let suites: Vec<String> = suites()?
        .into_iter()
        .filter(|suite| !SUITES.contains(&suite.as_str()))
        .collect();
    let mut crates: Vec<String> = std::fs::read_dir(root().join("crates"))
        .map_err(|error| format!("crates: {error}"))?
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|folder| folder != "towline" && folder != "xtask")
        .map(|folder| format!("towline-{folder}"))
        .filter(|name| !CRATES.contains(&name.as_str()))
        .collect();
    crates.push("xtask".to_owned());
    crates.sort();
    println!("not run: the crates {}", crates.join(", "));
    println!("not run: the suites {}", suites.join(", "));
    println!("not run: seeds of the simulated world other than the first 2,000");
    println!("one crate: cargo test -p CRATE; one suite: cargo test -p towline --test SUITE");
    println!("everything, with Slurm, sshd, Azurite and containers, as root: cargo xtask test");
    Ok(())
}
