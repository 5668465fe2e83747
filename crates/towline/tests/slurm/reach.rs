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
    command
        .arg("-F")
        .arg(aliases(lab))
        .args(["-o", "BatchMode=yes", alias])
        .args(words)
        .stdin(Stdio::null());
    command.output().unwrap().into()
}

fn host(lab: &Lab, run: &str) -> String {
    lab.tow(["show", run, "--json"]).json()["native"]["hosts"][0]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

#[test]
fn nodes_are_held_reached_and_released_and_nothing_else_ends() {
    let lab = Lab::own(&Options::default());
    let other = lab
        .tow(["submit", "--name", "other", "sleep", "1000"])
        .ok()
        .id();
    let held = lab
        .tow(["alloc", "-n", "2", "--node", "c2", "--time", "1h", "--json"])
        .ok()
        .json();
    assert_eq!(
        (&held["hosts"], &held["alias"]),
        (&serde_json::json!(["c2"]), &"tow-node".into())
    );
    let id = held["id"].as_str().unwrap();
    assert_eq!(ssh(&lab, "tow-node", &["hostname"]).ok().stdout, "c2\n");
    let inside = lab
        .tow([
            "ssh",
            id,
            "--",
            "sh",
            "-c",
            "echo $(hostname) $CUDA_VISIBLE_DEVICES $TOW_RUN_ID",
        ])
        .ok();
    assert_eq!(inside.stdout, format!("c2 0,1 {id}\n"));
    assert_eq!(
        lab.tow(["release", &other]).code,
        123,
        "that is no allocation"
    );
    let keys = ssh(&lab, "tow-node", &["true"]).ok().stderr;
    assert!(!keys.contains("no such identity"), "{keys}");
    // A node that is gone is told within seconds, not when a connection to it has timed out.
    lab.slurm().cut("c2");
    let begun = std::time::Instant::now();
    let dead = ssh(&lab, "tow-node", &["true"]);
    assert!(
        dead.code != 0 && dead.stderr.contains("c2 does not answer"),
        "{dead:?}"
    );
    assert!(
        begun.elapsed() < Duration::from_secs(60),
        "{:?}",
        begun.elapsed()
    );
    lab.slurm().heal("c2");
    until("the node to be back", || {
        (ssh(&lab, "tow-node", &["true"]).code == 0).then_some(())
    });
    lab.tow(["release"]).ok();
    assert_eq!(lab.tow(["show", id, "--json"]).json()["state"], "cancelled");
    assert_eq!(
        lab.tow(["show", &other, "--json"]).json()["state"],
        "running"
    );
    // Slurm takes a moment to clear away after it.
    let left = || {
        lab.slurm()
            .exec(
                "login",
                "alice",
                ["squeue", "-h", "-u", "alice", "-o", "%j"],
            )
            .stdout
    };
    until("exactly that one to be gone", || {
        (left() == format!("{other}\n")).then_some(())
    });
    assert_ne!(
        ssh(&lab, "tow-node", &["true"]).code,
        0,
        "the alias leads nowhere now"
    );
    assert_eq!(lab.tow(["release"]).code, 122);
}

/// What a server of one line answers.
fn fetch(port: u16) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
    stream.write_all(b"GET /who HTTP/1.0\r\n\r\n").ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    text.rsplit("\r\n\r\n")
        .next()
        .map(|body| body.trim().to_owned())
        .filter(|body| !body.is_empty())
}

#[test]
fn an_alias_and_a_port_follow_a_run_to_another_node() {
    let lab = Lab::own(&Options::default());
    lab.home.write(
        "serve.sh",
        "echo \"$(hostname) $TOW_ATTEMPT\" > who\nexec python3 -m \
        http.server 8888 --bind 0.0.0.0\n",
    );
    let run = lab.tow(["submit", "sh", "serve.sh"]).ok().id();
    lab.until_state(&run, "running");
    until("its host to be known", || {
        Some(host(&lab, &run)).filter(|host| !host.is_empty())
    });
    let first = host(&lab, &run);
    let port = std::net::TcpListener::bind(("127.0.0.1", 0))
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let connect = "import socket; socket.create_connection(('127.0.0.1', 8888), 2)";
    until("the server to listen", || {
        (lab.tow(["ssh", &run, "--", "python3", "-c", connect]).code == 0).then_some(())
    });
    let mut forward = lab
        .home
        .spawn(["port", &run, "8888", "--local", &port.to_string()]);
    assert_eq!(until("the page", || fetch(port)), format!("{first} 1"));
    let alias = format!("tow-{}", &run[run.len() - 5..]);
    assert_eq!(
        ssh(&lab, &alias, &["hostname"]).ok().stdout,
        format!("{first}\n")
    );

    let job = lab.tow(["show", &run, "--json"]).json()["native"]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    lab.slurm()
        .root(
            "ctl",
            [
                "scontrol",
                "update",
                &format!("NodeName={first}"),
                "State=DRAIN",
                "Reason=test",
            ],
        )
        .ok();
    lab.slurm().root("ctl", ["scontrol", "requeue", &job]).ok();
    until("attempt 2 elsewhere", || {
        (lab.tow(["show", &run, "--json"]).json()["attempt"] == 2 && host(&lab, &run) != first)
            .then_some(())
    });
    let second = host(&lab, &run);
    assert_eq!(
        until("the page of the second node", || fetch(port)
            .filter(|page| *page != format!("{first} 1"))),
        format!("{second} 2")
    );
    assert_eq!(
        ssh(&lab, &alias, &["hostname"]).ok().stdout,
        format!("{second}\n"),
        "the same alias"
    );
    forward.kill().unwrap();
    forward.wait().unwrap();
    lab.tow(["abort", &run, "--wait"]).ok();
    let late = lab.tow(["ssh", &run, "--", "true"]);
    assert!(
        late.code == 123 && late.stderr.contains("has ended"),
        "{late:?}"
    );
}

/// As a client of OpenSSH 7.4 does: what it does not know it refuses, wherever it stands. Real ssh
/// is behind it.
const OLD_SSH: &str = r#"#!/bin/sh
refuse() { echo "$1: line 1: Bad configuration option: $2" >&2; echo "$1: terminating, 1 bad configuration options" >&2; exit 255; }
file=""; last=""
for word in "$@"; do
  case $last in
    -F) file=$word;;
    -o) case $word in
      RemoteCommand*|KnownHostsCommand*) refuse "command-line" "$word";;
      *accept-new*) echo "command-line line 0: unsupported option \"accept-new\"." >&2; exit 255;;
      esac;;
  esac
  [ "$word" = -V ] && { echo "OpenSSH_7.4p1, OpenSSL 1.0.2k-fips  26 Jan 2017" >&2; exit 0; }
  last=$word
done
if [ -f "$file" ]; then
  for one in "$file" $(sed -n 's/^Include "\(.*\)"$/\1/p' "$file"); do
    for option in KnownHostsCommand RemoteCommand accept-new; do
      grep -qi "$option" "$one" 2>/dev/null && refuse "$one" "$option"
    done
  done
fi
exec REAL "$@"
"#;

#[test]
fn an_old_client_of_openssh_is_told_no_more_than_it_knows() {
    let mut lab = Lab::shared();
    let find = Command::new("sh")
        .args(["-c", "command -v ssh"])
        .output()
        .unwrap();
    let real = String::from_utf8_lossy(&find.stdout).trim().to_owned();
    let program = lab.home.path("old/ssh");
    std::fs::create_dir_all(program.parent().unwrap()).unwrap();
    towline_testkit::program(&program, OLD_SSH.replace("REAL", &real));
    lab.home.set(
        "PATH",
        &format!(
            "{}:{}",
            program.parent().unwrap().display(),
            std::env::var("PATH").unwrap()
        ),
    );
    // The state folder has a name once something was asked.
    lab.tow(["clusters"]).ok();
    // As a user has it: the aliases are included at the top.
    let own = std::fs::read_to_string(lab.slurm().ssh_config()).unwrap();
    let config = lab.home.path("user_config");
    std::fs::write(
        &config,
        format!("Include \"{}\"\n{own}", aliases(&lab).display()),
    )
    .unwrap();
    lab.configure_host("login", &config, "");
    let held = lab.tow(["alloc", "--json"]).ok().json();
    let alias = |words: &[&str]| -> Output {
        let mut command = Command::new(&program);
        command
            .arg("-F")
            .arg(&config)
            .args(["-o", "BatchMode=yes", "tow-node"])
            .args(words)
            .stdin(Stdio::null());
        command.output().unwrap().into()
    };
    assert_eq!(
        alias(&["hostname"]).ok().stdout.trim(),
        held["hosts"][0].as_str().unwrap()
    );
    assert_eq!(
        lab.tow(["ssh", held["id"].as_str().unwrap(), "--", "hostname"])
            .ok()
            .stdout
            .trim(),
        held["hosts"][0].as_str().unwrap()
    );
    // A node that shows another key than its login host sees is never taken: that is asked for each
    // time, and not remembered.
    let text = std::fs::read_to_string(aliases(&lab)).unwrap();
    assert!(
        text.contains("StrictHostKeyChecking yes") && !text.contains("StrictHostKeyChecking no"),
        "{text}"
    );
    lab.tow(["release", "--all"]).ok();
    assert_eq!(lab.tow(["run", "echo", "still"]).ok().stdout, "still\n");
}

#[test]
fn allocations_that_wait_are_asked_about_and_all_are_released() {
    let lab = Lab::own(&Options {
        nodes: 1,
        ..Options::default()
    });
    let first = lab.tow(["alloc", "-n", "4", "--json"]).ok().json()["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let mut waiting = lab.home.command(["alloc", "-n", "4"]);
    let child = waiting
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let second = until("the second to wait", || {
        let runs = lab.tow(["ps", "--state", "queued", "--json"]).json();
        runs["runs"][0]["id"].as_str().map(str::to_owned)
    });
    rustix::process::kill_process(
        rustix::process::Pid::from_child(&child),
        rustix::process::Signal::INT,
    )
    .unwrap();
    let left: Output = child.wait_with_output().unwrap().into();
    assert_eq!(left.code, 130, "{left:?}");
    assert!(
        left.stderr.contains(&format!(
            "{second} stays queued and holds its nodes once they are granted"
        )) && left.stderr.contains("tow release"),
        "{left:?}"
    );
    assert_eq!(lab.tow(["release"]).code, 122, "there are two");
    let released = lab.tow(["release", "--all", "--json"]).ok().json();
    let mut ids: Vec<&str> = released["released"]
        .as_array()
        .unwrap()
        .iter()
        .map(|id| id.as_str().unwrap())
        .collect();
    ids.sort_unstable();
    let mut wanted = [first.as_str(), second.as_str()];
    wanted.sort_unstable();
    assert_eq!(ids, wanted);
    assert_eq!(
        lab.tow(["ps", "--state", "active", "--json"]).json()["runs"],
        serde_json::json!([])
    );
}
