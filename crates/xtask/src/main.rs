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

/// Installs what the tests need, builds the shipped binary, and runs every test against it.
fn test() -> Outcome {
    install::for_tests()?;
    build_shipped()?;
    let mut command = cargo(&["test", "--workspace", "--no-fail-fast"]);
    command.env("TOW_TEST_BINARY", shipped()).env("TOW_TEST_PARTS", install::parts());
    run(&mut command)
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
