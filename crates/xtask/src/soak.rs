//! The long campaigns, in full. Their last result is stored in `docs/soak.md`.

use crate::{Outcome, build_release, cargo, install, quick, release_binary, root};
use std::fmt::Write;
use std::fs;
use std::time::Instant;

const CAMPAIGNS: [&str; 11] = [
    "api",
    "exactly_once",
    "full_disk",
    "slurm_once",
    "azureml_once",
    "no_lost_byte",
    "load",
    "transfers",
    "size",
    "tunnel",
    "scratch",
];

/// The texts that mark a line worth keeping.
const FACT_MARKS: [&str; 6] = [
    "none lost",
    "every byte",
    "load: ",
    "size: ",
    "stream: ",
    "described: ",
];

pub(crate) fn run() -> Outcome {
    install::for_tests()?;
    build_release()?;
    let mut report = String::from(
        "# Soak\n\nThe last full run of the long campaigns (`cargo xtask soak`), on the shipped \
            binary. CI runs a seeded tenth.\n\n| campaign | took | result |\n|---|---|---|\n",
    );
    let mut failed = Vec::new();
    report += &simulate(&mut failed)?;
    for campaign in CAMPAIGNS {
        println!("soak: {campaign}");
        let begun = Instant::now();
        let mut command = cargo(&[
            "test",
            "--package",
            "towline",
            "--test",
            campaign,
            "--",
            "--nocapture",
            "--test-threads=1",
        ]);
        let output = command
            .env("TOW_TEST_BINARY", release_binary())
            .env("TOW_SOAK", "1")
            .output()
            .map_err(|error| error.to_string())?;
        let text = String::from_utf8_lossy(&output.stdout);
        print!("{text}");
        if !output.status.success() {
            eprint!("{}", String::from_utf8_lossy(&output.stderr));
            failed.push(campaign);
        }
        let is_fact = |line: &&str| FACT_MARKS.iter().any(|sign| line.contains(sign));
        let facts: Vec<&str> = text
            .lines()
            .filter(is_fact)
            .map(|line| line.rsplit(" ... ").next().unwrap_or(line))
            .collect();
        let result = if output.status.success() {
            facts.join("; ")
        } else {
            "FAILED".to_owned()
        };
        let _ = writeln!(
            report,
            "| {campaign} | {} s | {result} |",
            begun.elapsed().as_secs()
        );
    }
    fs::write(root().join("docs/soak.md"), report).map_err(|error| error.to_string())?;
    if failed.is_empty() {
        Ok(())
    } else {
        Err(format!("failed: {}", failed.join(", ")))
    }
}

/// How many stories of the simulated world one soak tells.
const SIMULATED_STORIES: u64 = 200_000;

/// Tells stories of the simulated world, from the seed where the last soak stopped. Returns the row
/// of the report, which adds up all soaks.
fn simulate(failed: &mut Vec<&'static str>) -> Result<String, String> {
    let first = told_so_far();
    let last = first + SIMULATED_STORIES;
    println!("soak: simulation, seeds {first} to {last}");
    let begun = Instant::now();
    let status = cargo(&["test"])
        .args(quick::SIMULATED)
        .env("TOW_SIMULATION_SEEDS", format!("{first}..{last}"))
        .status()
        .map_err(|error| error.to_string())?;
    let result = if status.success() {
        format!("{SIMULATION_MARK}{last} stories in all; no promise broken")
    } else {
        failed.push("simulation");
        format!("FAILED after {SIMULATION_MARK}{first} stories in all")
    };
    let seconds = begun.elapsed().as_secs();
    Ok(format!("| simulation | {seconds} s | {result} |\n"))
}

/// Stands before the number of stories in the report.
const SIMULATION_MARK: &str = "seeds 0 to ";

/// How many stories earlier soaks told, by their report.
fn told_so_far() -> u64 {
    let report = fs::read_to_string(root().join("docs/soak.md")).unwrap_or_default();
    let behind = report.split(SIMULATION_MARK).nth(1).unwrap_or_default();
    let digits: String = behind.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap_or(0)
}
