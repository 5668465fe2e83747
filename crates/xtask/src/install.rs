//! What tests and lints need beside a Rust toolchain, from Debian and crates.io.

use crate::{Outcome, run};
use std::process::{Command, Stdio};

/// A program that must be there, and the Debian package that has it.
const FOR_TESTS: [(&str, &str); 5] = [("python3", "python3"), ("bash", "bash"), ("flock", "util-linux"), ("unshare", "util-linux"), ("setsid", "util-linux")];

pub(crate) fn for_tests() -> Outcome {
    let mut packages: Vec<&str> = FOR_TESTS.iter().filter(|(program, _)| !is_there(program)).map(|(_, package)| *package).collect();
    packages.dedup();
    if packages.is_empty() {
        return Ok(());
    }
    let apt = |words: &[&str]| {
        let root = Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout.starts_with(b"0"));
        let mut command = if root { Command::new("apt-get") } else { Command::new("sudo") };
        if !root {
            command.arg("apt-get");
        }
        command.args(["-o", "DPkg::Lock::Timeout=300", "-y", "-q"]).args(words).env("DEBIAN_FRONTEND", "noninteractive");
        run(&mut command)
    };
    apt(&["update"])?;
    apt(&[&["install", "--no-install-recommends"], packages.as_slice()].concat())
}

/// `cargo deny`, built from crates.io where it is missing.
pub(crate) fn cargo_deny() -> Outcome {
    if Command::new("cargo").args(["deny", "--version"]).stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success()) {
        return Ok(());
    }
    // Built outside the workspace: its settings (static, one target) are not for a tool.
    run(Command::new("cargo").args(["install", "cargo-deny", "--locked"]).current_dir("/"))
}

fn is_there(program: &str) -> bool {
    std::env::var_os("PATH").is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join(program).is_file()))
}
