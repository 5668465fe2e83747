//! Exactly what CI lints: format, clippy as errors, licences, bans and sources, documentation, and
//! generated files that are up to date.

use crate::{Outcome, cargo, generate, install, run as step};

pub(crate) fn run() -> Outcome {
    install::cargo_deny()?;
    step(&mut cargo(&["fmt", "--all", "--check"]))?;
    step(&mut cargo(&[
        "clippy",
        "--workspace",
        "--all-targets",
        "--",
        "--deny",
        "warnings",
    ]))?;
    // Advisories need a database from the network; the rest does not.
    step(&mut cargo(&[
        "deny",
        "--offline",
        "check",
        "licenses",
        "bans",
        "sources",
    ]))?;
    step(
        cargo(&[
            "doc",
            "--workspace",
            "--no-deps",
            "--document-private-items",
        ])
        .env("RUSTDOCFLAGS", "--deny warnings"),
    )?;
    generate::check()
}
