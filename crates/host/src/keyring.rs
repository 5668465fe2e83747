//! The keyring of the desktop, through `secret-tool`. A secret goes to the program by its stdin, and
//! comes from its stdout; it is never an argument.

use crate::program::{find_program, on_path};
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use towline_core::redact::Secret;

/// The program that reads and writes the keyring.
const KEYRING_PROGRAM: &str = "secret-tool";
/// A locked keyring waits for its user. On a machine without one it would wait for ever.
const KEYRING_TIMEOUT: Duration = Duration::from_secs(15);
/// How often to look whether the program has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// The attribute that all our entries have.
const ATTRIBUTE: &str = "towline";

/// A keyring that can be asked here. Whether it answers is known after the first call.
#[derive(Debug, Clone)]
pub struct Keyring {
    program: PathBuf,
    /// The address of the session's bus, which the daemon's own environment lacks.
    bus: Option<String>,
}

impl Keyring {
    /// `None` if `secret-tool` is in no folder of `path`.
    pub fn find(path: &str, bus: Option<String>) -> Option<Self> {
        let program = find_program(KEYRING_PROGRAM, path)?;
        Some(Self { program, bus })
    }

    /// The keyring of this process; `None` if `secret-tool` is not installed.
    pub fn here() -> Option<Self> {
        let program = on_path(KEYRING_PROGRAM)?;
        Some(Self { program, bus: None })
    }

    /// `None` if the keyring has no such entry. An error means that it does not answer.
    pub fn get(&self, name: &str) -> io::Result<Option<Secret>> {
        let output = self.run(&["lookup", ATTRIBUTE, name], None)?;
        let text = String::from_utf8(output.stdout).map_err(io::Error::other)?;
        match (output.status.success(), text.trim_end_matches('\n')) {
            (true, "") => Ok(None),
            (true, text) => Ok(Some(Secret::new(text))),
            // An entry that is not there is a failure without a word.
            (false, _) if output.stderr.iter().all(u8::is_ascii_whitespace) => Ok(None),
            (false, _) => Err(failure(&output.stderr)),
        }
    }

    /// Stores an entry, in place of one of the same name.
    pub fn put(&self, name: &str, label: &str, secret: &Secret) -> io::Result<()> {
        let label = format!("--label={label}");
        let words = ["store", &label, ATTRIBUTE, name];
        let output = self.run(&words, Some(secret))?;
        if output.status.success() {
            Ok(())
        } else {
            Err(failure(&output.stderr))
        }
    }

    /// Removes an entry. It is no error if there is none.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        let output = self.run(&["clear", ATTRIBUTE, name], None)?;
        if output.status.success() || output.stderr.iter().all(u8::is_ascii_whitespace) {
            Ok(())
        } else {
            Err(failure(&output.stderr))
        }
    }

    fn run(&self, words: &[&str], secret: Option<&Secret>) -> io::Result<Output> {
        let mut command = Command::new(&self.program);
        command
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if let Some(bus) = &self.bus {
            command.env("DBUS_SESSION_BUS_ADDRESS", bus);
        }
        let mut child = command.spawn()?;
        // A program that leaves without reading is told by its exit code.
        if let (Some(mut stdin), Some(secret)) = (child.stdin.take(), secret) {
            let _ = stdin.write_all(secret.expose().as_bytes());
        }
        finish(child)
    }
}

/// Waits for the end. Answers are small, so that no pipe fills up meanwhile.
fn finish(mut child: Child) -> io::Result<Output> {
    let begun = Instant::now();
    let status = loop {
        match child.try_wait()? {
            Some(status) => break status,
            None if begun.elapsed() > KEYRING_TIMEOUT => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    "the keyring does not answer; is it locked?",
                ));
            }
            None => std::thread::sleep(POLL_INTERVAL),
        }
    };
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    if let Some(mut pipe) = child.stdout.take() {
        pipe.read_to_end(&mut stdout)?;
    }
    if let Some(mut pipe) = child.stderr.take() {
        pipe.read_to_end(&mut stderr)?;
    }
    Ok(Output {
        status,
        stdout,
        stderr,
    })
}

fn failure(stderr: &[u8]) -> io::Error {
    let text = String::from_utf8_lossy(stderr);
    let line = text.lines().find(|line| !line.trim().is_empty());
    let shown: String = line
        .unwrap_or("it does not say why")
        .chars()
        .filter(|c| !c.is_control())
        .take(200)
        .collect();
    io::Error::other(format!("the keyring refuses: {shown}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn keyring(folder: &Path, script: &str) -> Keyring {
        // Another process writes the program: a descriptor that is open for writing here could be
        // inherited by a process that another test starts, and then the program cannot be executed.
        let (draft, program) = (folder.join("draft"), folder.join(KEYRING_PROGRAM));
        std::fs::write(&draft, format!("#!/bin/sh\n{script}")).expect("written");
        let mut install = Command::new("install");
        install.args(["-m", "755"]).args([&draft, &program]);
        assert!(install.status().expect("install of coreutils").success());
        Keyring::find(folder.to_str().expect("UTF-8"), None).expect("found")
    }

    #[test]
    fn a_secret_goes_by_stdin_and_comes_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let script = format!(
            "cd {}\necho \"$@\" >>words\ncase $1 in\nstore) cat >entry ;;\nlookup) test -f entry \
                && cat entry ;;\nclear) rm -f entry ;;\nesac\n",
            folder.path().display()
        );
        let keyring = keyring(folder.path(), &script);
        let secret = Secret::new("canary");
        assert_eq!(keyring.get("a").expect("asked"), None);
        keyring.put("a", "Towline", &secret).expect("stored");
        assert_eq!(keyring.get("a").expect("asked"), Some(secret));
        keyring.remove("a").expect("removed");
        assert_eq!(keyring.get("a").expect("asked"), None);
        let words = std::fs::read_to_string(folder.path().join("words")).expect("words");
        assert!(words.contains("lookup towline a") && !words.contains("canary"));
    }

    #[test]
    fn a_keyring_that_does_not_answer_is_an_error() {
        let folder = tempfile::tempdir().expect("a folder");
        let keyring = keyring(
            folder.path(),
            "echo 'Cannot autolaunch D-Bus' >&2; exit 1\n",
        );
        let error = keyring.get("a").expect_err("refused").to_string();
        assert!(error.contains("Cannot autolaunch"), "{error}");
        assert!(keyring.put("a", "l", &Secret::new("s")).is_err());
        assert!(Keyring::find("/nowhere", None).is_none());
    }
}
