//! The quick lane: no root, nothing installed beyond cargo, under two minutes once built.

use crate::{Outcome, cargo, run as step};
use std::time::Instant;

/// The crate of the simulated world.
pub(crate) const SIMULATION: &str = "towline-simulation";

/// How the simulated world is run in full: built optimised, because it tells thousands of stories.
pub(crate) const SIMULATED: [&str; 3] = ["--release", "--package", SIMULATION];

/// The seeds of the full test command. The quick lane has the first 2,000 of them.
pub(crate) const ALL_SEEDS: &str = "0..20000";

/// Crates whose tests need nothing but cargo.
const CRATES: [&str; 11] = [
    "towline-core",
    "towline-wire",
    "towline-host",
    "towline-engine",
    "towline-import",
    "towline-client",
    "towline-slurm",
    "towline-server",
    "towline-samples",
    "towline-workspace",
    SIMULATION,
];

/// Suites of the program on this machine alone.
const SUITES: [&str; 5] = ["structure", "verbs", "bad_input", "golden", "exactly_once"];

pub(crate) fn run() -> Outcome {
    let crates: Vec<&str> = CRATES.iter().flat_map(|name| ["--package", name]).collect();
    let suites: Vec<&str> = SUITES.iter().flat_map(|name| ["--test", name]).collect();
    step(cargo(&["test", "--no-run"]).args(&crates))?;
    step(cargo(&["test", "--no-run", "--package", "towline"]).args(&suites))?;
    let begun = Instant::now();
    step(cargo(&["test", "--quiet"]).args(&crates))?;
    step(cargo(&["test", "--quiet", "--package", "towline"]).args(&suites))?;
    println!("quick: {:.0} s", begun.elapsed().as_secs_f64());
    println!(
        "not run: suites that need Slurm, sshd, Azurite or containers; `cargo xtask test` has all"
    );
    Ok(())
}
