//! Reaching in: allocations, shells, aliases and ports, wherever the run is now.

use crate::lab::Lab;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;
use towline_testkit::real::slurm::Options;
use towline_testkit::{Output, until};

fn aliases(lab: &Lab) -> PathBuf {
    lab.home.state().ssh().join("config")
}

/// Plain `ssh` by an alias, as an editor would.
fn ssh(lab: &Lab, alias: &str, words: &[&str]) -> Output {
    let mut command = Command::new("ssh");
    command.arg("-F").arg(aliases(lab)).args(["-o", "BatchMode=yes", alias]).args(words).stdin(Stdio::null());
    command.output().unwrap().into()
}

fn host(lab: &Lab, run: &str) -> String {
    lab.tow(["show", run, "--json"]).json()["native"]["hosts"][0].as_str().unwrap_or_default().to_owned()
}

#[test]
fn nodes_are_held_reached_and_released_and_nothing_else_ends() {
    let lab = Lab::own(&Options::default());
    let other = lab.tow(["submit", "--name", "other", "sleep", "1000"]).ok().id();
    let held = lab.tow(["alloc", "-n", "2", "--node", "c2", "--time", "1h", "--json"]).ok().json();
    assert_eq!((&held["hosts"], &held["alias"]), (&serde_json::json!(["c2"]), &"tow-node".into()));
    let id = held["id"].as_str().unwrap();
    assert_eq!(ssh(&lab, "tow-node", &["hostname"]).ok().stdout, "c2\n");
    let inside = lab.tow(["ssh", id, "--", "sh", "-c", "echo $(hostname) $CUDA_VISIBLE_DEVICES $TOW_RUN_ID"]).ok();
    assert_eq!(inside.stdout, format!("c2 0,1 {id}\n"));
    assert_eq!(lab.tow(["release", &other]).code, 123, "that is no allocation");
    lab.tow(["release"]).ok();
    assert_eq!(lab.tow(["show", id, "--json"]).json()["state"], "cancelled");
    assert_eq!(lab.tow(["show", &other, "--json"]).json()["state"], "running");
    // Slurm takes a moment to clear away after it.
    let left = || lab.slurm().exec("login", "alice", ["squeue", "-h", "-u", "alice", "-o", "%j"]).stdout;
    until("exactly that one to be gone", || (left() == format!("{other}\n")).then_some(()));
    assert_ne!(ssh(&lab, "tow-node", &["true"]).code, 0, "the alias leads nowhere now");
    assert_eq!(lab.tow(["release"]).code, 122);
}

/// What a server of one line answers.
fn fetch(port: u16) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
    stream.write_all(b"GET /who HTTP/1.0\r\n\r\n").ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    text.rsplit("\r\n\r\n").next().map(|body| body.trim().to_owned()).filter(|body| !body.is_empty())
}

#[test]
fn an_alias_and_a_port_follow_a_run_to_another_node() {
    let lab = Lab::own(&Options::default());
    lab.home.write("serve.sh", "echo \"$(hostname) $TOW_ATTEMPT\" > who\nexec python3 -m http.server 8888 --bind 0.0.0.0\n");
    let run = lab.tow(["submit", "sh", "serve.sh"]).ok().id();
    lab.until_state(&run, "running");
    until("its host to be known", || Some(host(&lab, &run)).filter(|host| !host.is_empty()));
    let first = host(&lab, &run);
    let port = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
    let connect = "import socket; socket.create_connection(('127.0.0.1', 8888), 2)";
    until("the server to listen", || (lab.tow(["ssh", &run, "--", "python3", "-c", connect]).code == 0).then_some(()));
    let mut forward = lab.home.spawn(["port", &run, "8888", "--local", &port.to_string()]);
    assert_eq!(until("the page", || fetch(port)), format!("{first} 1"));
    let alias = format!("tow-{}", &run[run.len() - 5..]);
    assert_eq!(ssh(&lab, &alias, &["hostname"]).ok().stdout, format!("{first}\n"));

    let job = lab.tow(["show", &run, "--json"]).json()["native"]["id"].as_str().unwrap().to_owned();
    lab.slurm().root("ctl", ["scontrol", "update", &format!("NodeName={first}"), "State=DRAIN", "Reason=test"]).ok();
    lab.slurm().root("ctl", ["scontrol", "requeue", &job]).ok();
    until("attempt 2 elsewhere", || (lab.tow(["show", &run, "--json"]).json()["attempt"] == 2 && host(&lab, &run) != first).then_some(()));
    let second = host(&lab, &run);
    assert_eq!(until("the page of the second node", || fetch(port).filter(|page| *page != format!("{first} 1"))), format!("{second} 2"));
    assert_eq!(ssh(&lab, &alias, &["hostname"]).ok().stdout, format!("{second}\n"), "the same alias");
    forward.kill().unwrap();
    forward.wait().unwrap();
    lab.tow(["abort", &run, "--wait"]).ok();
    let late = lab.tow(["ssh", &run, "--", "true"]);
    assert!(late.code == 123 && late.stderr.contains("has ended"), "{late:?}");
}
