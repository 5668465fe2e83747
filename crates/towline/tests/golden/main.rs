//! What an earlier version left is read by every later one: a state folder with runs of every kind,
//! its snapshots, backups and journals, and what that version said of it. A pair is never made
//! again; a change of a format adds another (`TOW_GOLDEN=NUMBER cargo test -p towline --test
//! golden -- --ignored`).
#![allow(
    clippy::unwrap_used,
    clippy::too_many_lines,
    clippy::disallowed_methods
)]

mod json;
mod questions;
mod shape;

use serde_json::{Map, Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use towline_testkit::{Home, until};

/// The versions of the stored formats that are kept.
const KEPT: [&str; 1] = ["1"];

fn pair(number: &str) -> (PathBuf, PathBuf) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    (
        folder.join(format!("{number}.tar.gz")),
        folder.join(format!("{number}.json")),
    )
}

fn home() -> Home {
    let home = Home::new(env!("CARGO_BIN_EXE_tow")).freezing();
    home.configure("clusters:\n  local: {kind: local, cpus: 2}\n");
    home
}

fn tar(words: &[&str], at: &Path) {
    let status = Command::new("tar")
        .args(words)
        .current_dir(at)
        .status()
        .unwrap();
    assert!(status.success(), "tar {words:?}");
}

/// As long as this lives no daemon comes up: what is there is only looked at.
fn without_daemon(home: &Home) -> fs::File {
    let lock = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .open(home.state().daemon_lock())
        .unwrap();
    until("the daemon to be gone", || {
        towline_host::lock::try_lock(&lock).unwrap().then_some(())
    });
    lock
}

/// What is asked of a version, by the name of what is meant.
fn questions(ids: &Map<String, Value>) -> Vec<Vec<String>> {
    let mut asked: Vec<Vec<String>> = [
        "ps --all --json",
        "history --json",
        "scratch ls --json",
        "scratch ls work --json",
        "scratch check --json",
        "snapshot ls --json",
    ]
    .iter()
    .map(|line| line.split(' ').map(str::to_owned).collect())
    .collect();
    for (name, id) in ids {
        let id = id.as_str().unwrap().to_owned();
        // Why something waits only a daemon knows.
        let is_over = !["queued", "ended_unheard"].contains(&name.as_str());
        let why: &[&[&str]] = if is_over { &[&["why", "--json"]] } else { &[] };
        for words in [
            &["show", "--json"][..],
            &["show", "--events"],
            &["logs"],
            &["history"],
        ]
        .iter()
        .chain(why)
        {
            asked.push(
                words[..1]
                    .iter()
                    .map(|word| (*word).to_owned())
                    .chain([id.clone()])
                    .chain(words[1..].iter().map(|word| (*word).to_owned()))
                    .collect(),
            );
        }
    }
    asked
}

/// The answers, with what differs from place to place taken out.
fn answers(home: &Home, ids: &Map<String, Value>, made_at: &str) -> Map<String, Value> {
    let here = home.path("").display().to_string();
    let host = home
        .state()
        .root()
        .file_name()
        .unwrap()
        .to_string_lossy()
        .into_owned();
    let plain = |text: &str| {
        let text = text
            .replace(&format!("/state/towline/{host}/"), "/state/towline/HOST/")
            .replace("/state/towline/workstation/", "/state/towline/HOST/");
        text.replace(here.trim_end_matches('/'), "ROOT")
            .replace(made_at.trim_end_matches('/'), "ROOT")
    };
    let answer = |words: &Vec<String>| {
        let output = home.tow(words);
        let said = serde_json::from_str(&plain(&output.stdout))
            .unwrap_or_else(|_| Value::String(plain(&output.stdout)));
        (
            words.join(" "),
            json!({ "code": output.code, "said": said }),
        )
    };
    questions(ids).iter().map(answer).collect()
}

/// Everything that an earlier version said is said again. Later versions may say more.
#[track_caller]
fn assert_says(what: &str, then: &Value, now: &Value) {
    match (then, now) {
        (Value::Object(then), Value::Object(now)) => {
            for (key, value) in then {
                assert_says(
                    &format!("{what}.{key}"),
                    value,
                    now.get(key).unwrap_or(&Value::Null),
                );
            }
        }
        (Value::Array(then), Value::Array(now)) => {
            assert_eq!(then.len(), now.len(), "{what}");
            then.iter()
                .zip(now)
                .enumerate()
                .for_each(|(at, (then, now))| assert_says(&format!("{what}[{at}]"), then, now));
        }
        _ => assert_eq!(then, now, "{what}"),
    }
}

#[test]
fn what_every_version_left_is_read_and_gone_on_with() {
    for number in KEPT {
        let (state, said) = pair(number);
        let said: Value = serde_json::from_slice(&fs::read(said).unwrap()).unwrap();
        let ids = said["ids"].as_object().unwrap();
        let home = home();
        // A home like any other names the folder of this host.
        home.tow(["daemon", "status"]).ok();
        home.tow(["run", "true"]).ok();
        home.tow(["daemon", "stop"]).ok();
        let host = home.state().root().to_owned();
        fs::remove_dir_all(home.path("state")).unwrap();
        fs::remove_dir_all(home.path("config")).unwrap();
        tar(&["xzf", state.to_str().unwrap()], &home.path(""));
        fs::rename(home.path("state/towline/workstation"), &host).unwrap();
        // The workspace's backups lie in another place now.
        let made_at = said["made_at"].as_str().unwrap();
        for file in fs::read_dir(home.path("config/towline/workspaces"))
            .unwrap()
            .flatten()
            .map(|entry| entry.path())
        {
            let text = fs::read_to_string(&file).unwrap();
            fs::write(
                &file,
                text.replace(made_at, &home.path("").display().to_string()),
            )
            .unwrap();
        }
        let then = said["answers"].as_object().unwrap();
        assert!(then.len() > 20, "{number}: the pair is empty");
        let nobody = without_daemon(&home);
        for (words, now) in &answers(&home, ids, made_at) {
            assert_says(&format!("{number}: {words}"), &then[words], now);
        }
        drop(nobody);
        // What was under way then comes to its end now, each once.
        for name in ["ended_unheard", "queued"] {
            let id = ids[name].as_str().unwrap();
            home.tow(["wait", id]).ok();
            assert_eq!(home.show(id)["attempt"], 1, "{number}: {name}");
        }
        assert_eq!(
            home.tow(["logs", ids["queued"].as_str().unwrap()])
                .ok()
                .stdout,
            "waited for its turn\n"
        );
        // A plan of then is a plan still, with its code.
        let again = home
            .tow(["resubmit", ids["code"].as_str().unwrap()])
            .ok()
            .id();
        home.tow(["wait", &again]).ok();
        assert_eq!(home.tow(["logs", &again]).ok().stdout, "frozen then\n");
        home.tow([
            "scratch",
            "restore",
            "work",
            "--path",
            home.path("restored").to_str().unwrap(),
        ])
        .ok();
        assert_eq!(
            fs::read_to_string(home.path("restored/notes")).unwrap(),
            "second\n"
        );
    }
}

/// Runs of every kind, a workspace with two backups, a run whose end nobody heard, and one that
/// waits.
fn make(home: &Home) -> Map<String, Value> {
    let mut ids = Map::new();
    let mut keep = |name: &str, id: String| drop(ids.insert(name.to_owned(), id.into()));
    let submit = |words: &[&str]| {
        let id = home.tow([&["submit"], words].concat()).ok().id();
        home.tow(["wait", &id]);
        id
    };
    home.write("say.txt", "frozen then\n");
    keep(
        "code",
        submit(&[
            "--name",
            "code",
            "--tag",
            "kept",
            "--experiment",
            "golden",
            "cat",
            "say.txt",
        ]),
    );
    keep(
        "failed",
        submit(&[
            "sh",
            "-c",
            "echo before; echo 'Traceback (most recent call last):' >&2; echo 'ValueError: no' \
                >&2; exit 3",
        ]),
    );
    home.write(
        "retry.yaml",
        "command: [sh, -c, 'echo try $TOW_ATTEMPT; test $TOW_ATTEMPT -ge \
        2']\nretry: {when: [exit_code], max: 3}\n",
    );
    keep("retried", submit(&["-f", "retry.yaml"]));
    home.write(
        "wide.yaml",
        "resources: {nodes: 2}\nscript: echo rank $RANK of $WORLD_SIZE\n",
    );
    keep("wide", submit(&["-f", "wide.yaml"]));
    let sweep = submit(&["--sweep", "lr=1,2", "sh", "-c", "echo ${{lr}}"]);
    keep("of_sweep", format!("{sweep}-2"));
    let long = home.tow(["submit", "sleep", "600"]).ok().id();
    home.wait_for_state(&long, "running");
    home.tow(["abort", &long, "--wait"]).ok();
    keep("cancelled", long);
    keep("limited", submit(&["--time", "1s", "sleep", "600"]));

    let work = home.path("scratch/work");
    fs::create_dir_all(&work).unwrap();
    fs::write(work.join("notes"), "first\n").unwrap();
    home.tow([
        "scratch",
        "create",
        "work",
        "--path",
        work.to_str().unwrap(),
        "--to",
        home.path("state/backups").to_str().unwrap(),
    ])
    .ok();
    fs::write(work.join("notes"), "second\n").unwrap();
    home.tow(["scratch", "backup"]).ok();

    let go = home.path("go");
    let unheard = home
        .tow([
            "submit",
            "--cpus",
            "2",
            "sh",
            "-c",
            &format!(
                "while [ ! -e {} ]; do sleep 0.05; done; echo unheard",
                go.display()
            ),
        ])
        .ok()
        .id();
    home.wait_for_state(&unheard, "running");
    keep(
        "queued",
        home.tow(["submit", "--cpus", "2", "echo", "waited for its turn"])
            .ok()
            .id(),
    );
    home.kill_daemon();
    // A run that ends without a daemon starts one: not now.
    let _nobody = without_daemon(home);
    fs::write(&go, "").unwrap();
    until("the runner to write down the end", || {
        home.runner_processes().is_empty().then_some(())
    });
    keep("ended_unheard", unheard);
    ids
}

#[test]
#[ignore = "makes a new pair: once for each change of a stored format"]
fn make_a_pair() {
    let number = std::env::var("TOW_GOLDEN").expect("TOW_GOLDEN=NUMBER names the pair");
    let (state, said) = pair(&number);
    assert!(!state.exists(), "a pair is never made again");
    let home = home();
    let ids = make(&home);
    let _nobody = without_daemon(&home);
    let made_at = home.path("").display().to_string();
    assert!(
        home.path("state/towline/workstation").exists(),
        "run it where the host is called `workstation`: unshare --uts"
    );
    tar(
        &[
            "czf",
            state.to_str().unwrap(),
            "--owner=0",
            "--group=0",
            "--exclude=*.sock",
            "--exclude=daemon.log",
            "state",
            "config",
        ],
        &home.path(""),
    );
    let answers = answers(&home, &ids, &made_at);
    fs::write(
        said,
        serde_json::to_string_pretty(
            &json!({ "made_at": made_at, "ids": ids, "answers": answers }),
        )
        .unwrap()
            + "\n",
    )
    .unwrap();
}
