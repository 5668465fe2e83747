//! The long campaigns, in full. Their last result is stored in `docs/soak.md`.

use crate::{Outcome, build_release, cargo, install, release_binary, root};
use std::fmt::Write;
use std::fs;
use std::time::Instant;

const CAMPAIGNS: [&str; 10] = [
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
const FACT_MARKS: [&str; 4] = ["none lost", "every byte", "load: ", "size: "];

pub(crate) fn run() -> Outcome {
    install::for_tests()?;
    build_release()?;
    let mut report = String::from(
        "# Soak\n\nThe last full run of the long campaigns (`cargo xtask soak`), on the shipped \
            binary. CI runs a seeded tenth.\n\n| campaign | took | result |\n|---|---|---|\n",
    );
    let mut failed = Vec::new();
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
