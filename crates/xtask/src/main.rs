//! Chores: `cargo xtask install | test | lint | generate | soak`. Exactly what CI runs.

#![expect(clippy::print_stderr, clippy::print_stdout, reason = "a chore talks to whoever started it")]

mod generate;
mod install;
mod lint;
mod soak;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Where `cargo build --release` puts the shipped binary.
const SHIPPED: &str = "target/x86_64-unknown-linux-gnu/release/tow";

type Outcome = Result<(), String>;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match words.first().map(String::as_str) {
        Some("install") => install::for_tests(),
        Some("test") => test(),
        Some("lint") => lint::run(),
        Some("generate") => generate::run(),
        Some("soak") => soak::run(),
        _ => Err("cargo xtask install | test | lint | generate | soak".to_owned()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}

/// Suites on clusters of hosts: they wait more than they work, so more of them run at once than there are cores.
const WAITING: [&str; 6] = ["slurm", "slurm_once", "tunnel", "scratch", "azureml", "azureml_once"];

/// Installs what the tests need, builds the shipped binary meanwhile, and runs every test against it.
fn test() -> Outcome {
    install::packages()?;
    std::thread::scope(|scope| {
        let parts = scope.spawn(install::parts_for_tests);
        let built = build_shipped().and_then(|()| run(&mut cargo(&["test", "--workspace", "--no-run"])));
        parts.join().unwrap_or_else(|_| Err("the installer broke down".to_owned())).and(built)
    })?;
    let mut minutes: Vec<(String, f64)> = Vec::new();
    let mut tests = |name: &str, words: &[&str]| {
        let begun = std::time::Instant::now();
        let mut command = cargo(&["test", "--no-fail-fast"]);
        let outcome = run(command.args(words).env("TOW_TEST_BINARY", shipped()).env("TOW_TEST_PARTS", install::parts()));
        minutes.push((name.to_owned(), begun.elapsed().as_secs_f64() / 60.0));
        outcome
    };
    // All of them, also after one has failed.
    let mut outcomes =
        vec![tests("the other crates", &["--workspace", "--exclude", "towline"]), tests("the program's own", &["--package", "towline", "--bins"])];
    let (waiting, quick): (Vec<String>, Vec<String>) = suites()?.into_iter().partition(|suite| WAITING.contains(&suite.as_str()));
    for suite in &quick {
        outcomes.push(tests(suite, &["--package", "towline", "--test", suite]));
    }
    for suite in &waiting {
        outcomes.push(tests(suite, &["--package", "towline", "--test", suite, "--", "--test-threads=4"]));
    }
    for (suite, minutes) in &minutes {
        println!("{minutes:6.1} min  {suite}");
    }
    println!("{:6.1} min  in all", minutes.iter().map(|(_, minutes)| minutes).sum::<f64>());
    outcomes.into_iter().collect()
}

/// The suites of the binary: files and folders beside each other.
fn suites() -> Result<Vec<String>, String> {
    let folder = root().join("crates/towline/tests");
    let entries = std::fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let paths = entries.flatten().map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|end| end == "rs") || path.join("main.rs").exists());
    let mut names: Vec<String> = paths.filter_map(|path| path.file_stem().and_then(|name| name.to_str()).map(str::to_owned)).collect();
    names.sort();
    Ok(names)
}

fn build_shipped() -> Outcome {
    run(&mut cargo(&["build", "--release", "--package", "towline"]))
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).map(Path::to_owned).unwrap_or_default()
}

fn shipped() -> PathBuf {
    root().join(SHIPPED)
}

fn cargo(words: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(words).current_dir(root());
    command
}

/// Runs a program and fails with its name.
fn run(command: &mut Command) -> Outcome {
    let shown = format!("{command:?}");
    println!("$ {shown}");
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{shown}: {status}")),
        Err(error) => Err(format!("{shown}: {error}")),
    }
}
