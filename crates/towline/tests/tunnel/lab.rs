//! A user here, hosts there, and what is alive of the user's.

use serde_json::Value;
use std::fs;
use std::io::Read;
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use towline_host::process;
use towline_testkit::real::Slurm;
use towline_testkit::real::slurm::Options;
use towline_testkit::{Home, Output, until};

/// A user with nothing but `tow` and ssh.
pub(crate) fn home() -> Home {
    Home::new(env!("CARGO_BIN_EXE_tow"))
}

/// Hosts without anything that takes long to start.
pub(crate) fn hosts() -> Slurm {
    Slurm::start(&Options {
        nodes: 1,
        gpus: 0,
        accounting: false,
        ..Options::default()
    })
}

/// A port that nobody has now.
pub(crate) fn free_port() -> u16 {
    std::net::TcpListener::bind(("127.0.0.1", 0))
        .unwrap()
        .local_addr()
        .unwrap()
        .port()
}

/// The first words of an ssh server behind a port, if it has any.
pub(crate) fn banner(port: u16) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream
        .set_read_timeout(Some(Duration::from_millis(1500)))
        .ok()?;
    let mut first = [0; 64];
    let count = stream.read(&mut first).ok()?;
    Some(String::from_utf8_lossy(&first[..count]).into_owned())
        .filter(|text| text.starts_with("SSH-"))
}

pub(crate) fn rows(home: &Home) -> Vec<Value> {
    home.tow(["tunnel", "ls", "--json"]).ok().json()["tunnels"]
        .as_array()
        .unwrap()
        .clone()
}

pub(crate) fn row(home: &Home, name: &str) -> Value {
    let found: Vec<Value> = rows(home)
        .into_iter()
        .filter(|row| row["name"] == name)
        .collect();
    assert_eq!(found.len(), 1, "{found:?}");
    found[0].clone()
}

#[track_caller]
pub(crate) fn until_state(home: &Home, name: &str, state: &str) -> Value {
    until(
        &format!("{name} to be {state}: {}", row(home, name)),
        || Some(row(home, name)).filter(|row| row["state"] == state),
    )
}

/// Plain `ssh` by an alias, as an editor would.
pub(crate) fn ssh(home: &Home, alias: &str, words: &[&str]) -> Output {
    ssh_command(home, alias, words)
        .stdin(Stdio::null())
        .output()
        .unwrap()
        .into()
}

pub(crate) fn ssh_command(home: &Home, alias: &str, words: &[&str]) -> Command {
    let mut command = Command::new("ssh");
    command
        .arg("-F")
        .arg(home.state().ssh().join("config"))
        .args(["-o", "BatchMode=yes", alias])
        .args(words);
    command
}

/// A session of the user through an alias that gives back every line.
pub(crate) fn echo(home: &Home, alias: &str) -> Child {
    ssh_command(home, alias, &["cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Every living process of this home: pid and words.
pub(crate) fn alive(home: &Home) -> Vec<(i32, String)> {
    let mark = format!("HOME={}", home.path("home").display());
    let is_ours = |pid: &i32| {
        fs::read(format!("/proc/{pid}/environ")).is_ok_and(|bytes| {
            bytes
                .split(|byte| *byte == 0)
                .any(|entry| entry == mark.as_bytes())
        })
    };
    let words = |pid: i32| {
        fs::read_to_string(format!("/proc/{pid}/cmdline"))
            .unwrap_or_default()
            .replace('\0', " ")
    };
    let living = process::all()
        .into_iter()
        .filter(|(_, facts)| !facts.zombie)
        .map(|(pid, _)| pid);
    living
        .filter(is_ours)
        .map(|pid| (pid, words(pid)))
        .filter(|(_, words)| !words.is_empty())
        .collect()
}

pub(crate) fn supervisors(home: &Home) -> Vec<i32> {
    alive(home)
        .into_iter()
        .filter(|(_, words)| words.contains(" __tunnel "))
        .map(|(pid, _)| pid)
        .collect()
}

/// Nothing of tunnels is alive: no supervisor, no ssh, no program on the way.
#[track_caller]
pub(crate) fn nothing_is_left(home: &Home) {
    let strays = || -> Vec<(i32, String)> {
        let of_daemon = |words: &str| {
            words.contains("daemon run") || words.contains("__guard") || words.contains("__runner")
        };
        alive(home)
            .into_iter()
            .filter(|(_, words)| !of_daemon(words))
            .collect()
    };
    until(&format!("nothing to be left of {:?}", strays()), || {
        strays().is_empty().then_some(())
    });
}

#[track_caller]
pub(crate) fn assert_says(output: &Output, code: i32, words: &[&str]) {
    assert_eq!(output.code, code, "{output:?}");
    for word in words {
        assert!(
            output.stderr.contains(word),
            "`{word}` is not in: {output:?}"
        );
    }
}

/// An ssh configuration with changes.
pub(crate) fn changed_config(
    home: &Home,
    original: &Path,
    name: &str,
    change: impl Fn(String) -> String,
) -> String {
    let path = home.path(name);
    fs::write(&path, change(fs::read_to_string(original).unwrap())).unwrap();
    path.display().to_string()
}
