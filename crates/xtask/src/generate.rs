//! Generated files: the command reference and the job file's schema, which the program prints, the
//! schema of `--json`, the table of what each kind of cluster offers, and the picture of a session.

use crate::{DEBUG_BINARY, Outcome, cargo, clusters, picture, root, run as run_command};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const VERBS: [&str; 64] = [
    "submit",
    "run",
    "ps",
    "query",
    "qf",
    "qq",
    "qr",
    "logs",
    "why",
    "show",
    "get",
    "abort",
    "resubmit",
    "wait",
    "diff",
    "history",
    "import",
    "init",
    "snapshot ls",
    "snapshot check",
    "snapshot get",
    "snapshot prune",
    "prune",
    "adopt",
    "ssh",
    "port",
    "tunnel add",
    "tunnel open",
    "tunnel close",
    "tunnel ls",
    "tunnel rm",
    "tunnel include",
    "alloc",
    "release",
    "ls",
    "up",
    "down",
    "rm",
    "cp",
    "url",
    "sync",
    "scratch create",
    "scratch restore",
    "scratch backup",
    "scratch auto",
    "scratch ls",
    "scratch check",
    "scratch prune",
    "clusters",
    "nodes",
    "login",
    "logout",
    "roles",
    "roles activate",
    "roles deactivate",
    "config show",
    "config schema",
    "trust",
    "doctor",
    "daemon status",
    "daemon stop",
    "completions",
    "ui",
    "api",
];

pub(crate) fn run() -> Outcome {
    for (path, text) in files()? {
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
        println!("wrote {}", path.display());
    }
    Ok(())
}

/// Fails when a generated file is out of date.
pub(crate) fn check() -> Outcome {
    for (path, text) in files()? {
        if fs::read_to_string(&path).unwrap_or_default() != text {
            return Err(format!(
                "{} is out of date: cargo xtask generate",
                path.display()
            ));
        }
    }
    Ok(())
}

fn files() -> Result<Vec<(PathBuf, String)>, String> {
    // The quickly built program: its help is the same.
    run_command(&mut cargo(&["build", "--package", "towline"]))?;
    let reference = root().join("docs/reference");
    let readme = root().join("README.md");
    Ok(vec![
        (reference.join("cli.md"), commands()?),
        (
            reference.join("job.schema.json"),
            tow(&["config", "schema"])?,
        ),
        (reference.join("json.schema.json"), answers()?),
        (reference.join("api.schema.json"), interface()?),
        (reference.join("openapi.json"), tow(&["api", "--openapi"])?),
        (reference.join("clusters.md"), clusters::page()),
        (readme.clone(), clusters::quoted(&read(&readme)?)?),
        picture::file()?,
    ])
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// The schema of `--json`.
fn answers() -> Result<String, String> {
    let document = towline_wire::report::schema::document();
    let text = serde_json::to_string_pretty(&document).map_err(|error| error.to_string())?;
    Ok(text + "\n")
}

/// The schema of the interface for programs.
fn interface() -> Result<String, String> {
    let document = towline_wire::api::schema::document();
    let text = serde_json::to_string_pretty(&document).map_err(|error| error.to_string())?;
    Ok(text + "\n")
}

fn commands() -> Result<String, String> {
    let mut text = String::from(
        "# Commands\n\nMade from the program's own help by `cargo xtask generate`.\n\n```text\n",
    );
    text += &tow(&["--help"])?;
    text += "```\n";
    for verb in VERBS {
        let words: Vec<&str> = verb.split(' ').chain(["--help"]).collect();
        text += &format!("\n## tow {verb}\n\n```text\n{}```\n", tow(&words)?);
    }
    Ok(text)
}

fn tow(words: &[&str]) -> Result<String, String> {
    let output = Command::new(root().join(DEBUG_BINARY))
        .args(words)
        .env("COLUMNS", "100")
        .output()
        .map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(format!(
            "tow {}: {}",
            words.join(" "),
            String::from_utf8_lossy(&output.stderr)
        ));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text
        .lines()
        .flat_map(|line| [line.trim_end(), "\n"])
        .collect())
}
