//! Clients of other authors, to make and to check objects in a store.

use super::parts;
use serde_json::Value;
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::process::{Command, Stdio};

/// The result of a client.
#[derive(Debug, Clone)]
pub struct Said {
    pub good: bool,
    pub stdout: String,
    pub stderr: String,
}

impl Said {
    /// The result; fails the test if the client failed.
    #[track_caller]
    pub fn json(&self) -> Value {
        assert!(self.good, "{self:?}");
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("not JSON ({error}): {self:?}"))
    }
}

/// Runs one of our Python programs with the installed clients. The program comes by standard input,
/// so that nothing is written beside the sources. Its arguments do too, so that a test which
/// searches all processes for secrets does not find those of another test.
#[track_caller]
pub fn python<S: AsRef<OsStr>>(program: &str, words: impl IntoIterator<Item = S>) -> Said {
    let mut command = Command::new(parts::file("python/bin/python"));
    // Only variables that cannot mislead it: no proxies, no credentials.
    command.env_clear().env("PYTHONUTF8", "1").args(["-I", "-"]);
    let words: Vec<String> = words
        .into_iter()
        .map(|word| {
            word.as_ref()
                .to_str()
                .expect("words of tests are UTF-8")
                .to_owned()
        })
        .collect();
    let words = serde_json::to_string(&serde_json::to_string(&words).unwrap()).unwrap();
    let program = format!("import json, sys\nsys.argv[1:] = json.loads({words})\n{program}");
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let _ = child
        .stdin
        .take()
        .map(|mut stdin| stdin.write_all(program.as_bytes()));
    let output = child.wait_with_output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Said {
        good: output.status.success(),
        stdout: text(&output.stdout),
        stderr: text(&output.stderr),
    }
}

/// Microsoft's own client of blobs.
#[derive(Debug, Clone)]
pub struct BlobClient {
    pub(super) options: Vec<OsString>,
}

impl BlobClient {
    /// One of the verbs of `blobs.py`: `get` `put` `sha256` `list` `properties` `blocks` `touch`
    /// `delete` `make-container`.
    #[track_caller]
    pub fn run<S: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = S>) -> Said {
        run(include_str!("blobs.py"), &self.options, words)
    }

    #[track_caller]
    pub fn sha256(&self, container: &str, blob: &str) -> String {
        string(&self.run(["sha256", container, blob]).json())
    }
    /// Names and sizes, in the order of the service.
    #[track_caller]
    pub fn list(&self, container: &str, prefix: &str) -> Vec<(String, u64)> {
        entries(&self.run(["list", container, prefix]).json())
    }
}

/// Amazon's own client of objects.
#[derive(Debug, Clone)]
pub struct ObjectClient {
    pub(super) options: Vec<OsString>,
}

impl ObjectClient {
    /// One of the verbs of `objects.py`: `get` `put` `sha256` `list` `properties` `uploads`
    /// `delete` `make-bucket`.
    #[track_caller]
    pub fn run<S: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = S>) -> Said {
        run(include_str!("objects.py"), &self.options, words)
    }

    #[track_caller]
    pub fn sha256(&self, bucket: &str, key: &str) -> String {
        string(&self.run(["sha256", bucket, key]).json())
    }
    #[track_caller]
    pub fn list(&self, bucket: &str, prefix: &str) -> Vec<(String, u64)> {
        entries(&self.run(["list", bucket, prefix]).json())
    }
}

#[track_caller]
fn run<S: AsRef<OsStr>>(
    program: &str,
    options: &[OsString],
    words: impl IntoIterator<Item = S>,
) -> Said {
    // Words after `--` are never options, whatever a blob is called.
    let words = words.into_iter().map(|word| word.as_ref().to_owned());
    python(
        program,
        options
            .iter()
            .cloned()
            .chain([OsString::from("--")])
            .chain(words),
    )
}

fn string(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[track_caller]
fn entries(value: &Value) -> Vec<(String, u64)> {
    let listed = value
        .as_array()
        .unwrap_or_else(|| panic!("no listing: {value}"));
    listed
        .iter()
        .map(|entry| (string(&entry[0]), entry[1].as_u64().unwrap_or_default()))
        .collect()
}
