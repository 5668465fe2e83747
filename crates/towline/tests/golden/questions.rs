//! The questions whose answers `json.json` keeps the shapes of, in one home from an empty folder to
//! its last run.

use super::json::{Asked, Shapes};
use std::fs;
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;
use towline_testkit::{Home, until};

/// The project is a repository with one commit.
fn git(home: &Home) {
    let identity = [
        "-c",
        "user.name=alice",
        "-c",
        "user.email=alice@example.com",
    ];
    for words in [
        &["init", "-q"][..],
        &["add", "."],
        &["commit", "-q", "-m", "first"],
    ] {
        let mut git = Command::new("git");
        git.args(identity).args(words).current_dir(home.project());
        assert!(git.status().unwrap().success(), "git {words:?}");
    }
}

pub(crate) fn ask_everything() -> Shapes {
    // A variable of this name is held apart as a secret.
    let home = Home::new(env!("CARGO_BIN_EXE_tow"))
        .freezing()
        .with("MY_TOKEN", "not-a-secret");
    let nas = home.path("nas");
    fs::create_dir(&nas).unwrap();
    home.configure(&format!(
        "clusters:\n  local: {{kind: local, cpus: 4, gpus: 2}}\n\
         datastores:\n  nas: {{kind: folder, path: {}}}\n\
         folders:\n  data: {{datastore: nas, path: alice/data}}\n\
         sync: {{datastore: nas, path: alice/code}}\n",
        nas.display()
    ));
    home.write("say.txt", "said\n");
    git(&home);
    let mut asked = Asked {
        home,
        shapes: Shapes::new(),
    };
    ask_runs(&mut asked);
    ask_failures(&mut asked);
    ask_queue(&mut asked);
    ask_data(&mut asked);
    ask_scratch(&mut asked);
    ask_tunnels(&mut asked);
    ask_settings(&mut asked);
    ask_leftovers(&mut asked);
    asked.shapes
}

const JOB: &str = "name: full\nexperiment: e\ncluster: local\ntags: [kept]\n\
    resources: {nodes: 2, cpus_per_node: 1, memory: 64M, time: 1h, tier: basic}\nlaunch: per_node\n\
    environment: {setup: ['true'], env: {A: b}}\ncode: {root: ., ignore: ['*.log']}\n\
    io: {in: {datastore: nas, path: x, mode: read}}\n\
    copy: {datastore: nas, path: y, subdirs: [z]}\n\
    retry: {when: [exit_code], max: 2}\nhold_on_failure: 1m\nsweep: {lr: [1, 2]}\n\
    script: echo ${{lr}}\n";

fn ask_runs(asked: &mut Asked) {
    asked.home.write("full.yaml", JOB);
    asked.ask(
        "submit --dry-run",
        &["submit", "--dry-run", "-f", "full.yaml"],
    );
    let words = [
        "--name",
        "one",
        "--tag",
        "kept",
        "--experiment",
        "e",
        "--time",
        "1h",
        "cat",
    ];
    let sent = asked.ask("submit", &[&["submit"], &words[..], &["say.txt"]].concat());
    let one = sent["id"].as_str().unwrap().to_owned();
    asked.ask("wait", &["wait", &one]);
    let sweep = ["submit", "--sweep", "lr=1,2", "sh", "-c", "echo ${{lr}}"];
    let sweep = asked.ask("submit --sweep", &sweep)["id"]
        .as_str()
        .unwrap()
        .to_owned();
    asked.home.tow(["wait", &sweep]).ok();
    asked.ask("run", &["run", "sh", "-c", "echo out; echo err >&2"]);
    asked.home.write("say.txt", "said again\n");
    let words = [
        "--name",
        "other",
        "--env",
        "A=b",
        "sh",
        "-c",
        "cat say.txt; echo x > made",
    ];
    let other = asked.submit(&words);
    asked.ask("ps", &["ps", "--all"]);
    asked.ask("query", &["query"]);
    asked.ask("query RUN", &["query", &one]);
    asked.ask("show", &["show", &one]);
    asked.ask("show of a sweep's run", &["show", &format!("{sweep}-2")]);
    asked.ask("show --events", &["show", &one, "--events"]);
    asked.ask("show of a sweep", &["show", &sweep, "--events"]);
    asked.ask("query of a sweep", &["query", &sweep]);
    asked.ask("logs", &["logs", &one]);
    asked.ask("logs -f", &["logs", "-f", &one]);
    asked.ask("logs of a sweep", &["logs", &sweep]);
    asked.ask("logs -f of a sweep", &["logs", "-f", &sweep]);
    asked.ask("history", &["history"]);
    asked.ask("history RUN", &["history", &one]);
    asked.ask("diff", &["diff", &one, &other]);
    asked.ask("get", &["get", &other, "made", "--to", "got"]);
    let again = asked.ask("resubmit", &["resubmit", &one]);
    let again = again["resubmitted"][0]["id"].as_str().unwrap().to_owned();
    asked.home.tow(["wait", &again]).ok();
    asked.ask("show of a run done again", &["show", &again]);
}

fn ask_failures(asked: &mut Asked) {
    let text = "def f():\n    raise ValueError('no')\nf()\n";
    asked.home.write("fail.py", text);
    let failed = asked.submit(&["python3", "fail.py"]);
    asked.ask("why", &["why", &failed]);
    let plain = asked.submit(&["sh", "-c", "echo before; exit 3"]);
    asked.ask("why without an error", &["why", &plain]);
    let sweep = asked.submit(&["--sweep", "code=3,4", "sh", "-c", "exit ${{code}}"]);
    asked.ask("why of a sweep", &["why", &sweep]);
    asked.ask("show of a failed run", &["show", &failed]);
    asked.ask("error", &["show", "nosuch-1-00000001"]);
    let hold = "hold_on_failure: 10m\nenvironment: {setup: [echo ready]}\nscript: exit 3\n";
    let held = asked.home.submit_file(hold, &[]);
    until("its nodes to be held", || {
        asked.home.show(&held)["held_until"]
            .is_string()
            .then_some(())
    });
    asked.ask("show of a held run", &["show", &held]);
    asked.ask("logs --setup", &["logs", &held, "--setup"]);
    asked.home.tow(["abort", &held, "--wait"]).ok();
}

fn ask_queue(asked: &mut Asked) {
    let holder = asked
        .home
        .tow(["submit", "-n", "1", "--cpus", "4", "sleep", "600"])
        .ok()
        .id();
    asked.home.wait_for_state(&holder, "running");
    let waiting = asked.home.tow(["submit", "--cpus", "4", "true"]).ok().id();
    asked.ask("why of a run that waits", &["why", &waiting]);
    asked.ask("nodes", &["nodes"]);
    asked.ask("clusters", &["clusters"]);
    asked.ask("daemon status", &["daemon", "status"]);
    let words = ["abort", &waiting, &holder];
    asked.ask("abort", &words);
    until("the end of both", || {
        let ended = |id: &str| asked.home.state_of(id) == "cancelled";
        (ended(&waiting) && ended(&holder)).then_some(())
    });
    let ended = asked.submit(&["true"]);
    asked.ask("abort of an ended run", &["abort", &ended]);
    asked.ask("alloc", &["alloc", "--cpus", "1", "--time", "1h"]);
    asked.ask("release", &["release"]);
}

fn ask_data(asked: &mut Asked) {
    asked.home.write("data/a.txt", "a\n");
    asked.home.write("data/below/b.txt", "b\n");
    asked.ask("up --dry-run", &["up", "data", "--dry-run"]);
    asked.ask("up", &["up", "data"]);
    fs::remove_file(asked.home.project().join("data/a.txt")).unwrap();
    asked.ask("down", &["down", "data"]);
    asked.ask("ls", &["ls"]);
    asked.ask("ls PATH", &["ls", "data"]);
    asked.home.write("data/only-here", "x\n");
    fs::write(asked.home.path("nas/alice/data/only-there"), "y\n").unwrap();
    let socket = UnixListener::bind(asked.home.project().join("data/socket")).unwrap();
    asked.ask(
        "up --delete --dry-run",
        &["up", "data", "--delete", "--dry-run"],
    );
    drop(socket);
    fs::remove_file(asked.home.project().join("data/socket")).unwrap();
    asked.ask("cp", &["cp", "nas:alice/data", "nas:alice/copy"]);
    asked.ask("url", &["url", "data/a.txt"]);
    asked.ask("sync", &["sync"]);
    asked.ask("rm --dry-run", &["rm", "nas:alice/copy", "--dry-run"]);
    asked.ask("rm", &["rm", "nas:alice/copy", "--yes"]);
}

fn ask_scratch(asked: &mut Asked) {
    let (work, to) = (asked.home.path("scratch/work"), asked.home.path("backups"));
    fs::create_dir_all(&work).unwrap();
    fs::write(work.join("notes"), "first\n").unwrap();
    let (work_path, to) = (work.display().to_string(), to.display().to_string());
    let create = [
        "scratch", "create", "work", "--path", &work_path, "--to", &to,
    ];
    asked.ask("scratch create", &create);
    fs::write(work.join("notes"), "second\n").unwrap();
    asked.ask("scratch backup", &["scratch", "backup"]);
    asked.ask("scratch ls", &["scratch", "ls"]);
    asked.ask("scratch ls NAME", &["scratch", "ls", "work"]);
    asked.ask("scratch check", &["scratch", "check"]);
    asked.ask("scratch auto", &["scratch", "auto", "--every", "10m"]);
    asked.ask("scratch auto --off", &["scratch", "auto", "--off"]);
    asked.ask("scratch restore where it is", &["scratch", "restore"]);
    let restored = asked.home.path("restored").display().to_string();
    asked.ask(
        "scratch restore",
        &["scratch", "restore", "work", "--path", &restored],
    );
    let few = [
        "--keep-last",
        "1",
        "--keep-hourly",
        "0",
        "--keep-daily",
        "0",
        "--keep-weekly",
        "0",
    ];
    let prune = [&["scratch", "prune"], &few[..]].concat();
    asked.ask("scratch prune", &prune);
    damage(&asked.home.path("backups/packs"));
    asked.ask("scratch check of damage", &["scratch", "check"]);
}

/// Changes the bytes of every file below the folder.
fn damage(folder: &Path) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            damage(&path);
        } else {
            // It may not be written to, but it may be replaced.
            fs::remove_file(&path).unwrap();
            fs::write(&path, "damaged").unwrap();
        }
    }
}

fn ask_tunnels(asked: &mut Asked) {
    // A program that is its own far end: it listens, and connections stay open.
    let page = ["-m", "http.server", "--bind", "127.0.0.1", "{port}"];
    let own = TcpListener::bind("127.0.0.1:0").unwrap();
    let own_port = own.local_addr().unwrap().port().to_string();
    drop(own);
    let words = [
        "tunnel",
        "add",
        "box",
        "--port",
        &own_port,
        "--to",
        "vm1:8888",
        "--via-command",
        "--",
        "python3",
    ];
    asked.ask("tunnel add", &[&words[..], &page].concat());
    asked.ask("tunnel open", &["tunnel", "open", "box"]);
    asked.ask("tunnel ls", &["tunnel", "ls"]);
    asked.ask("tunnel include", &["tunnel", "include", "--yes"]);
    asked.ask("tunnel close", &["tunnel", "close", "box"]);
    asked.ask("tunnel rm", &["tunnel", "rm", "box"]);
}

fn ask_settings(asked: &mut Asked) {
    asked.ask("config show", &["config", "show"]);
    asked.ask("config show --origin", &["config", "show", "--origin"]);
    asked.ask("doctor", &["doctor"]);
    asked.ask("init", &["init"]);
    asked.ask("init --explain", &["init", "--explain"]);
    let other = asked.home.path("project/other");
    fs::create_dir(&other).unwrap();
    asked.home.write(
        "other/towline.yaml",
        "clusters: {local: {kind: local, job: {environment: {setup: ['true']}}}}\n",
    );
    let other = other.display().to_string();
    asked.ask("trust", &["trust", &other, "--yes"]);
    asked.ask("trust --remove", &["trust", &other, "--remove"]);
    asked.home.write(
        "job.sh",
        "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --made-up=3\nsrun true\n",
    );
    asked.ask("import", &["import", "sbatch", "job.sh", "--dry-run"]);
}

fn ask_leftovers(asked: &mut Asked) {
    asked.ask("snapshot ls", &["snapshot", "ls"]);
    asked.ask("snapshot check", &["snapshot", "check"]);
    let run = asked.submit(&["cat", "say.txt"]);
    let shown = asked.home.show(&run);
    let id = shown["snapshot"].as_str().unwrap().to_owned();
    let target = asked.home.path("code").display().to_string();
    asked.ask("snapshot get", &["snapshot", "get", &id, &target]);
    let prune = ["prune", "--older-than", "1s", "--json"];
    until("a run that is old enough", || {
        let found = asked.home.tow(prune).json();
        (!found["runs"].as_array()?.is_empty()).then_some(())
    });
    asked.ask("prune", &["prune", "--older-than", "1s"]);
    asked.ask(
        "prune --yes",
        &["prune", "--older-than", "1s", "--keep", "1", "--yes"],
    );
    asked.ask(
        "snapshot prune",
        &["snapshot", "prune", "--older-than", "1s"],
    );
    damage(&asked.home.state().snapshots().join("packs"));
    asked.ask("snapshot check of damage", &["snapshot", "check"]);
    asked.ask("daemon stop", &["daemon", "stop"]);
}
