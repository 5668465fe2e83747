//! `cargo xtask mutants`: how many small changes of the pure modules the tests notice.
//!
//! cargo-mutants lists the changes. All of a sample are built at once, and each is tried with the
//! tests of its crate. One that passes them is tried in the simulated world. Results are kept in
//! `target/mutants/`, so that a later call goes on.

mod sample;
mod tree;
mod trial;
mod weave;

use crate::{Outcome, cargo, quick, root};
use sample::{MODULES, Mutant};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use tree::Tree;
use trial::{Trial, Verdict};

const DEFAULT_SEED: u64 = 1;
const DEFAULT_SAMPLE: usize = 600;

#[derive(Debug)]
struct Options {
    seed: u64,
    sample: usize,
    /// This part of so many.
    shard: (usize, usize),
    /// Tries mutants again that no test noticed.
    again: bool,
}

impl Options {
    fn read(words: &[String]) -> Result<Self, String> {
        let usage = "cargo xtask mutants [--seed N] [--sample N] [--shard K/N] [--again]";
        let mut options = Self {
            seed: DEFAULT_SEED,
            sample: DEFAULT_SAMPLE,
            shard: (0, 1),
            again: false,
        };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            if word == "--again" {
                options.again = true;
                continue;
            }
            let value = words.next().ok_or(usage)?;
            match word.as_str() {
                "--seed" => options.seed = value.parse().map_err(|_| usage)?,
                "--sample" => options.sample = value.parse().map_err(|_| usage)?,
                "--shard" => {
                    let (part, of) = value.split_once('/').ok_or(usage)?;
                    let of: usize = of.parse().map_err(|_| usage)?;
                    let part: usize = part.parse().map_err(|_| usage)?;
                    if part >= of {
                        return Err(
                            "shards are counted from 0: --shard 0/4 is the first of four"
                                .to_owned(),
                        );
                    }
                    options.shard = (part, of);
                }
                _ => return Err(usage.to_owned()),
            }
        }
        Ok(options)
    }
}

pub(crate) fn run(words: &[String]) -> Outcome {
    let options = Options::read(words)?;
    let sample = sample::draw(list()?, options.sample, options.seed);
    let results = Results::open()?;
    let done = results.outcomes();
    let is_to_do = |(number, mutant): &(usize, &Mutant)| {
        let is_open = match done.get(&mutant.name).map(String::as_str) {
            None => true,
            Some(outcome) => options.again && outcome == "missed",
        };
        is_open && number % options.shard.1 == options.shard.0
    };
    let to_do: Vec<(usize, &Mutant)> = sample.iter().enumerate().filter(is_to_do).collect();
    println!("{} mutants, {} to try", sample.len(), to_do.len());
    if !to_do.is_empty() {
        try_all(&to_do, &results)?;
    }
    report(&sample, &results.outcomes());
    Ok(())
}

/// Asks cargo-mutants for all mutants.
fn list() -> Result<Vec<Mutant>, String> {
    let mut command = cargo(&["mutants", "--list", "--json"]);
    for (_, path) in MODULES {
        let is_folder = path.ends_with('/');
        let pattern = if is_folder {
            format!("{path}**")
        } else {
            path.to_owned()
        };
        command.args(["--file", &pattern]);
    }
    let output = command.output().map_err(|error| error.to_string())?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{text}\ncargo install --locked cargo-mutants"));
    }
    sample::read_list(&output.stdout)
}

fn folder() -> PathBuf {
    root().join("target/mutants")
}

fn try_all(to_do: &[(usize, &Mutant)], results: &Results) -> Outcome {
    let mut tree = Tree::copy(folder().join("tree"))?;
    let mut packages: BTreeSet<&str> = to_do.iter().map(|(_, of)| of.package.as_str()).collect();
    packages.insert(quick::SIMULATION);
    let programs = tree.build_all(to_do, &packages)?;
    for (number, mutant) in to_do {
        if tree.unviable.contains(number) {
            results.add(mutant, "unviable", "")?;
        }
    }
    let trial = Trial::new(programs)?;
    for (number, mutant) in to_do {
        if tree.unviable.contains(number) || tree.alone.contains(number) {
            continue;
        }
        let try_with = |package: &str| trial.run(package, *number);
        try_one(mutant, try_with, results)?;
    }
    for (number, mutant) in to_do {
        if !tree.alone.contains(number) {
            continue;
        }
        tree.put_alone(mutant)?;
        let packages = BTreeSet::from([mutant.package.as_str(), quick::SIMULATION]);
        match tree.build(&packages)? {
            None => results.add(mutant, "unviable", "")?,
            Some(programs) => {
                let try_with = |package: &str| trial.run_built(&programs, package);
                try_one(mutant, try_with, results)?;
            }
        }
        tree.put_back(mutant)?;
    }
    Ok(())
}

fn try_one(
    mutant: &Mutant,
    try_with: impl Fn(&str) -> Result<Verdict, String>,
    results: &Results,
) -> Outcome {
    for package in [mutant.package.as_str(), quick::SIMULATION] {
        match try_with(package)? {
            Verdict::Passed => {}
            Verdict::Failed => return results.add(mutant, "caught", package),
            Verdict::TimedOut => return results.add(mutant, "timeout", package),
        }
    }
    results.add(mutant, "missed", "")
}

/// The file of results: a line of JSON for each mutant. The last line of a mutant counts.
#[derive(Debug)]
struct Results(PathBuf);

impl Results {
    fn open() -> Result<Self, String> {
        let folder = folder();
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        Ok(Self(folder.join("results.jsonl")))
    }

    fn add(&self, mutant: &Mutant, outcome: &str, by: &str) -> Outcome {
        println!("{outcome:8} {}", mutant.name);
        let line = json!({"mutant": mutant.name, "outcome": outcome, "by": by});
        let failed = |error| format!("{}: {error}", self.0.display());
        let mut options = OpenOptions::new();
        let mut file = options
            .create(true)
            .append(true)
            .open(&self.0)
            .map_err(failed)?;
        writeln!(file, "{line}").map_err(failed)
    }

    fn outcomes(&self) -> BTreeMap<String, String> {
        let text = fs::read_to_string(&self.0).unwrap_or_default();
        let read = |line: &str| {
            let value: Value = serde_json::from_str(line).ok()?;
            let text = |name: &str| Some(value.get(name)?.as_str()?.to_owned());
            Some((text("mutant")?, text("outcome")?))
        };
        text.lines().filter_map(read).collect()
    }
}

/// Prints the figures of each module, and the mutants that nothing noticed.
fn report(sample: &[Mutant], outcomes: &BTreeMap<String, String>) {
    let outcome_of = |mutant: &Mutant| outcomes.get(&mutant.name).map(String::as_str);
    println!("\n| module | caught | missed | timeouts | unviable | to try | rate |");
    println!("|---|---|---|---|---|---|---|");
    let names = MODULES.iter().map(|(name, _)| *name);
    for module in names.chain(["all"]) {
        let of: Vec<&Mutant> = sample
            .iter()
            .filter(|mutant| module == "all" || mutant.module == module)
            .collect();
        let count =
            |outcome: Option<&str>| of.iter().filter(|of| outcome_of(of) == outcome).count();
        let (caught, missed) = (count(Some("caught")), count(Some("missed")));
        let (timeouts, unviable) = (count(Some("timeout")), count(Some("unviable")));
        let viable = (caught + timeouts + missed).max(1);
        let thousandths = (caught + timeouts) * 1000 / viable;
        println!(
            "| {module} | {caught} | {missed} | {timeouts} | {unviable} | {} | {}.{} % |",
            count(None),
            thousandths / 10,
            thousandths % 10
        );
    }
    println!();
    for mutant in sample.iter().filter(|of| outcome_of(of) == Some("missed")) {
        println!("missed {}", mutant.name);
    }
}
