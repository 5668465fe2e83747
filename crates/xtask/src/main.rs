//! Chores: `cargo xtask install | test [--quick] | lint | generate | picture | soak | mutants`. CI
//! runs exactly these, but for the last two.

#![expect(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a chore talks to whoever started it"
)]

mod clusters;
mod generate;
mod install;
mod lint;
mod mutants;
mod page;
mod picture;
mod quick;
mod soak;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

/// The quickly built binary that `cargo build` makes.
const DEBUG_BINARY: &str = "target/x86_64-unknown-linux-gnu/debug/tow";
/// The shipped binary that `cargo build --release` makes.
const RELEASE_BINARY: &str = "target/x86_64-unknown-linux-gnu/release/tow";

type Outcome = Result<(), String>;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match words.first().map(String::as_str) {
        Some("install") => install::for_tests(),
        Some("test") if words.iter().any(|word| word == "--quick") => quick::run(),
        Some("test") => test(),
        Some("lint") => lint::run(),
        Some("generate") => generate::run(),
        Some("picture") => picture::run(),
        Some("soak") => soak::run(),
        Some("mutants") => mutants::run(&words[1..]),
        _ => Err(
            "cargo xtask install | test [--quick] | lint | generate | picture | soak | mutants"
                .to_owned(),
        ),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}

/// Suites on clusters of hosts. They wait more than they work, so more of them run at once than
/// there are cores.
const WAITING_SUITES: [&str; 6] = [
    "slurm",
    "slurm_once",
    "tunnel",
    "scratch",
    "azureml",
    "azureml_once",
];

/// No suite takes half of it on two idle cores. A suite that takes longer hangs, and the others
/// should still be seen.
const SUITE_TIMEOUT: Duration = Duration::from_secs(15 * 60);

/// Installs the parts that tests need, builds the shipped binary meanwhile, and runs every test
/// against it.
fn test() -> Outcome {
    install::packages()?;
    std::thread::scope(|scope| {
        let parts = scope.spawn(install::parts_for_tests);
        let built = build_release()
            .and_then(|()| run(&mut cargo(&["test", "--workspace", "--no-run"])))
            .and_then(|()| run(cargo(&["test", "--no-run"]).args(quick::SIMULATED)));
        parts
            .join()
            .unwrap_or_else(|_| Err("the installer broke down".to_owned()))
            .and(built)
    })?;
    let mut minutes: Vec<(String, f64)> = Vec::new();
    let mut tests = |name: &str, words: &[&str]| {
        let begun = Instant::now();
        let mut command = cargo(&["test", "--no-fail-fast"]);
        let outcome = run_within(
            SUITE_TIMEOUT,
            command
                .args(words)
                .env("TOW_TEST_BINARY", release_binary())
                .env("TOW_TEST_PARTS", install::parts())
                .env("TOW_SIMULATION_SEEDS", quick::ALL_SEEDS),
        );
        minutes.push((name.to_owned(), begun.elapsed().as_secs_f64() / 60.0));
        outcome
    };
    // All of them, even after one has failed.
    let mut outcomes = vec![
        tests(
            "the other crates",
            &[
                "--workspace",
                "--exclude",
                "towline",
                "--exclude",
                quick::SIMULATION,
            ],
        ),
        tests("the simulated world", &quick::SIMULATED),
        tests("the program's own", &["--package", "towline", "--bins"]),
    ];
    let (waiting, quick): (Vec<String>, Vec<String>) = suites()?
        .into_iter()
        .partition(|suite| WAITING_SUITES.contains(&suite.as_str()));
    for suite in &quick {
        outcomes.push(tests(suite, &["--package", "towline", "--test", suite]));
    }
    let page = std::thread::scope(|scope| {
        let page = scope.spawn(page::check);
        for suite in &waiting {
            outcomes.push(tests(
                suite,
                &[
                    "--package",
                    "towline",
                    "--test",
                    suite,
                    "--",
                    "--test-threads=4",
                ],
            ));
        }
        page.join()
    });
    let page = page.map_err(|_| "the checks of the page broke down".to_owned())?;
    outcomes.push(page.outcome);
    for (suite, minutes) in &minutes {
        println!("{minutes:6.1} min  {suite}");
    }
    println!("{:6.1} min  the page, beside them", page.minutes);
    println!(
        "{:6.1} min  in all",
        minutes.iter().map(|(_, minutes)| minutes).sum::<f64>()
    );
    let failed: Vec<String> = outcomes.into_iter().filter_map(Result::err).collect();
    if failed.is_empty() {
        Ok(())
    } else {
        Err(failed.join("\nxtask: "))
    }
}

/// The suites of the binary: its test files and folders.
fn suites() -> Result<Vec<String>, String> {
    let folder = root().join("crates/towline/tests");
    let entries =
        std::fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let paths = entries.flatten().map(|entry| entry.path()).filter(|path| {
        path.extension().is_some_and(|end| end == "rs") || path.join("main.rs").exists()
    });
    let mut names: Vec<String> = paths
        .filter_map(|path| {
            path.file_stem()
                .and_then(|name| name.to_str())
                .map(str::to_owned)
        })
        .collect();
    names.sort();
    Ok(names)
}

fn build_release() -> Outcome {
    run(&mut cargo(&["build", "--release", "--package", "towline"]))
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .map(Path::to_owned)
        .unwrap_or_default()
}

fn release_binary() -> PathBuf {
    root().join(RELEASE_BINARY)
}

fn cargo(words: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command
        .args(words)
        .current_dir(root())
        .env("PATH", install::path_with_node());
    // The variables that `cargo run` sets for this package would make build scripts of others run
    // again, and rebuild half of the tree.
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_")
            || text.starts_with("CARGO_MANIFEST_")
            || text == "OUT_DIR"
        {
            command.env_remove(&name);
        }
    }
    command
}

/// A program and its arguments.
fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(std::ffi::OsStr::to_string_lossy);
    words.collect::<Vec<_>>().join(" ")
}

/// Runs a program and fails with its name.
fn run(command: &mut Command) -> Outcome {
    let shown = shown(command);
    println!("$ {shown}");
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{shown}: {status}")),
        Err(error) => Err(format!("{shown}: {error}")),
    }
}

/// Runs a program; ends it, with its children, when it takes too long.
fn run_within(limit: Duration, command: &mut Command) -> Outcome {
    let shown = shown(command);
    println!("$ {shown}");
    let failed = |error| format!("{shown}: {error}");
    let mut child = command.spawn().map_err(failed)?;
    let begun = Instant::now();
    loop {
        match child.try_wait().map_err(failed)? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => return Err(format!("{shown}: {status}")),
            None if begun.elapsed() >= limit => break,
            None => std::thread::sleep(Duration::from_millis(50)),
        }
    }
    for pid in with_children(child.id()) {
        let _ = Command::new("kill")
            .args(["-KILL", &pid.to_string()])
            .status();
    }
    child.wait().map_err(failed)?;
    Err(format!(
        "{shown}: not done after {} minutes; the tests above that are said to be running hang",
        limit.as_secs() / 60
    ))
}

/// A process and all its descendants.
fn with_children(pid: u32) -> Vec<u32> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten()
        .flatten();
    let children = threads
        .map(|thread| std::fs::read_to_string(thread.path().join("children")).unwrap_or_default());
    let children: Vec<u32> = children
        .flat_map(|pids| {
            pids.split_ascii_whitespace()
                .filter_map(|pid| pid.parse().ok())
                .collect::<Vec<_>>()
        })
        .collect();
    std::iter::once(pid)
        .chain(children.into_iter().flat_map(with_children))
        .collect()
}
