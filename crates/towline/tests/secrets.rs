//! Secrets never leak by our hand: the job sees them, and nothing else ever does.
#![allow(
    clippy::unwrap_used,
    clippy::too_many_lines,
    clippy::disallowed_methods
)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use towline_core::RunId;
use towline_core::cluster::LogSource;
use towline_testkit::{Home, exposure, until};

// One of the tests looks through every process of the machine for these two: no other test, which
// runs at the same time, may use them.
const NAMED: &str = "canary-named-7f3a9c";
const INHERITED: &str = "canary-inherited-51d08b";

/// Files below `folder` that hold `needle`. A folder that is not there would be searched in vain.
fn holding(folder: &Path, needle: &str) -> Vec<String> {
    assert!(folder.is_dir(), "{} is no folder", folder.display());
    below(folder, needle)
}

fn below(folder: &Path, needle: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(below(&path, needle));
        } else if fs::read(&path).is_ok_and(|bytes| {
            bytes
                .windows(needle.len())
                .any(|window| window == needle.as_bytes())
        }) {
            found.push(path.display().to_string());
        }
    }
    found
}

/// Words and environment of every process but the job's own; the job's own are given apart.
fn processes_holding(needle: &str) -> (Vec<String>, Vec<String>) {
    let (mut found, mut jobs) = (Vec::new(), Vec::new());
    for pid in towline_host::process::all()
        .into_keys()
        .filter(|pid| u32::try_from(*pid) != Ok(std::process::id()))
    {
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let has = |bytes: &[u8]| {
            bytes
                .windows(needle.len())
                .any(|window| window == needle.as_bytes())
        };
        let is_job = String::from_utf8_lossy(&environment).contains("TOW_RUN_ID=");
        if has(&words) || (has(&environment) && !is_job) {
            found.push(format!("{pid} {}", String::from_utf8_lossy(&words)));
        } else if has(&environment) {
            jobs.push(format!("{pid} {}", String::from_utf8_lossy(&words)));
        }
    }
    (found, jobs)
}

#[test]
fn the_job_sees_them_and_nothing_else_does() {
    let home = Home::new(env!("CARGO_BIN_EXE_tow"))
        .with("MY_NAMED", NAMED)
        .with("WANDB_API_KEY", INHERITED);
    home.write(
        "job.yaml",
        "command: [sh, job.sh]\nenvironment: {secrets: [MY_NAMED]}\n",
    );
    // The job proves that it sees both without printing them, then stays.
    home.write(
        "job.sh",
        "printf %s \"$MY_NAMED$WANDB_API_KEY\" | sha256sum; touch seen; while [ ! \
        -e go ]; do sleep 0.02; done\n",
    );
    let submitted = home.tow(["submit", "-f", "job.yaml"]).ok();
    let id = submitted.id();
    until("the job to run", || {
        home.project().join("seen").exists().then_some(())
    });

    let mut said = format!("{}{}", submitted.stdout, submitted.stderr);
    for words in [
        vec!["show", &id, "--json"],
        vec!["show", &id, "--events"],
        vec!["ps", "--json"],
        vec!["query", &id, "--json"],
        vec!["history", &id],
        vec!["diff", &id, &id, "--json"],
        vec!["submit", "-f", "job.yaml", "--dry-run", "--json"],
        vec!["submit", "-f", "job.yaml", "--dry-run"],
        vec!["config", "show", "--json"],
        vec!["daemon", "status", "--json"],
        vec!["why", &id, "--json"],
        vec!["logs", &id],
    ] {
        let output = home.tow(&words).ok();
        assert!(
            !output.stdout.is_empty() || words[0] == "diff",
            "{words:?} says nothing"
        );
        said += &format!("{words:?}\n{}\n{}\n", output.stdout, output.stderr);
    }
    for needle in [NAMED, INHERITED] {
        assert!(!said.contains(needle), "said aloud: {said}");
        let (others, jobs) = processes_holding(needle);
        assert_eq!(others, Vec::<String>::new());
        assert!(!jobs.is_empty(), "the search does not even find the job");
        // While the run lives, one file holds it, and only we can read that.
        let files = holding(&home.path("state"), needle);
        assert_eq!(files.len(), 1, "{files:?}");
        assert_eq!(
            fs::metadata(&files[0]).unwrap().permissions().mode() & 0o777,
            0o600
        );
    }
    home.write("go", "");
    home.tow(["wait", &id]).ok();
    let expected = std::process::Command::new("sh")
        .args(["-c", &format!("printf %s {NAMED}{INHERITED} | sha256sum")])
        .output()
        .unwrap()
        .stdout;
    assert_eq!(home.tow(["logs", &id]).raw, expected);
    for needle in [NAMED, INHERITED] {
        until("nothing on disk to hold it", || {
            holding(&home.path("state"), needle)
                .is_empty()
                .then_some(())
        });
        assert_eq!(holding(&home.project(), needle), Vec::<String>::new());
    }
}

/// Whatever the umask of the shell is: no other user comes into what is kept, and secrets, logs and
/// the history are closed by themselves.
#[test]
fn nobody_else_can_look_into_what_is_kept() {
    let home = Home::new(env!("CARGO_BIN_EXE_tow")).with("MY_NAMED", "a value of another test");
    let submitted = home
        .tow_with_open_umask([
            "submit",
            "--secret",
            "MY_NAMED",
            "echo said; touch seen; while [ ! -e go ]; do sleep 0.02; done",
        ])
        .ok();
    let id = RunId::try_from(submitted.id()).unwrap();
    until("the job to run", || {
        home.project().join("seen").exists().then_some(())
    });
    assert_eq!(
        exposure::open_folders(&home.path("state/towline")),
        Vec::<PathBuf>::new()
    );
    let state = home.state();
    for file in [
        state.secret(&id),
        state.history(),
        state.log(&id, 1, LogSource::Rank(0)),
        state.daemon_log(),
    ] {
        assert_eq!(exposure::mode(&file), Some(0o600), "{}", file.display());
    }
    home.write("go", "");
    home.tow(["wait", id.as_str()]).ok();
    // What somebody opened is closed again by the next that works with it.
    home.tow(["daemon", "stop"]).ok();
    fs::set_permissions(state.root(), fs::Permissions::from_mode(0o777)).unwrap();
    home.tow(["run", "true"]).ok();
    assert_eq!(exposure::mode(state.root()), Some(0o700));
}

#[test]
fn after_a_crash_the_next_daemon_sweeps_up() {
    let secret = "canary-after-a-crash-0c71e2";
    let home = Home::new(env!("CARGO_BIN_EXE_tow")).with("HF_TOKEN", secret);
    let id = home
        .tow([
            "submit",
            "sh",
            "-c",
            "touch seen; while [ ! -e go ]; do sleep 0.02; done",
        ])
        .ok()
        .id();
    until("the job to run", || {
        home.project().join("seen").exists().then_some(())
    });
    assert_eq!(
        holding(&home.path("state"), secret).len(),
        1,
        "it is kept while the job runs"
    );
    assert!(home.kill_daemon());
    home.write("go", "");
    // The ending runner starts the next daemon, which records the end and drops the secret.
    home.wait_for_state(&id, "succeeded");
    until("nothing on disk to hold it", || {
        holding(&home.path("state"), secret)
            .is_empty()
            .then_some(())
    });
}

#[test]
fn a_resubmission_reads_them_anew_and_is_refused_without() {
    let mut home = Home::new(env!("CARGO_BIN_EXE_tow")).with("MY_NAMED", "a value of another test");
    let id = home
        .tow([
            "submit",
            "--secret",
            "MY_NAMED",
            "sh",
            "-c",
            "test -n \"$MY_NAMED\"",
        ])
        .ok()
        .id();
    home.tow(["wait", &id]).ok();
    home.unset("MY_NAMED");
    let refused = home.tow(["resubmit", &id]);
    assert_eq!(refused.code, 123);
    assert!(refused.stderr.contains("MY_NAMED"), "{}", refused.stderr);
    home.set("MY_NAMED", "another");
    let again = home.tow(["resubmit", &id]).ok().id();
    home.tow(["wait", &again]).ok();
}

/// Looks like a token of a service, and is none.
fn token() -> String {
    ["github", "pat", "11ABCDEFG0123456789abcdef"].join("_")
}

/// Somebody pastes a token into a script, a command or a variable: the job has it, exactly as it
/// was written.
#[test]
fn a_token_in_a_script_command_or_variable_is_a_secret_of_the_run() {
    let (token, other) = (token(), "hunter-22-password");
    let home = Home::new(env!("CARGO_BIN_EXE_tow")).freezing();
    home.write(
        "seen.sh",
        "printf '%s|' \"$@\" \"$PAT\" \"$DB_PASSWORD\" | sha256sum\n",
    );
    let job = format!(
        "environment: {{env: {{DB_PASSWORD: {other}, MAX_TOKENS: '512'}}}}\nscript: |\n  export \
            PAT={token}\n  sh seen.sh 'https://{token}@example.com/x'\n  echo $MAX_TOKENS\n"
    );
    // The file itself is the user's and stays where it is; no code travels from this folder to the
    // state.
    fs::write(home.path("job.yaml"), &job).unwrap();
    let file = home.path("job.yaml").display().to_string();
    let submitted = home.tow(["submit", "-f", &file]).ok();
    let id = submitted.id();
    assert!(submitted.stderr.contains("shown as `***`"), "{submitted:?}");
    home.tow(["wait", &id]).ok();
    let seen = home.tow(["logs", &id]).ok().stdout;
    let expected = std::process::Command::new("sh")
        .args([
            "-c",
            &format!("printf '%s|' 'https://{token}@example.com/x' {token} {other} | sha256sum"),
        ])
        .output()
        .unwrap();
    assert_eq!(
        seen,
        format!("{}512\n", String::from_utf8_lossy(&expected.stdout)),
        "the job has all of it"
    );
    let words = home
        .tow([
            "submit",
            "git",
            "clone",
            &format!("https://{token}@127.0.0.1:9/x"),
            "--password",
            other,
        ])
        .ok();
    home.tow(["wait", &words.id()]);
    let mut said = format!("{submitted:?}{words:?}");
    for words in [
        vec!["show", &id],
        vec!["show", &id, "--json"],
        vec!["show", &id, "--events"],
        vec!["ps", "--json"],
        vec!["ps"],
        vec!["history", &id],
        vec!["submit", "-f", &file, "--dry-run"],
        vec!["submit", "-f", &file, "--dry-run", "--json"],
    ] {
        let output = home.tow(words).ok();
        said += &(output.stdout + &output.stderr);
    }
    let ps = home.tow(["ps"]).ok().stdout;
    assert!(
        ps.contains("git clone 'https://***@127.0.0.1:9/x' --password '***'"),
        "{ps}"
    );
    for canary in [token.as_str(), other] {
        assert!(!said.contains(canary), "{said}");
        // Not even in what is kept of the run's own output: it printed a digest. git prints the
        // address it was given.
        let files: Vec<String> = holding(&home.path("state"), canary)
            .into_iter()
            .filter(|file| !file.contains(&format!("/{}/", words.id())))
            .collect();
        assert_eq!(files, Vec::<String>::new());
    }
    // The guard is awake: what is no token is found by the same search.
    assert!(!holding(&home.path("state"), "seen.sh").is_empty());
    // What was not kept cannot be used again.
    let again = home.tow(["resubmit", &id]);
    assert!(
        again.code == 123 && again.stderr.contains("--secret"),
        "{again:?}"
    );
}

/// While it runs, the token is in a script that only its owner reads, and in no argument of ours;
/// afterwards it is nowhere.
#[test]
fn a_token_in_a_script_is_in_no_process_list_and_in_no_file_that_stays() {
    // Not the token of another test, whose processes are in the list too.
    let token = ["glpat", "9876543210abcdefABCD"].join("-");
    let home = Home::new(env!("CARGO_BIN_EXE_tow"));
    let script = format!(
        "export PAT={token}\nprintf %s $PAT | sha256sum\ntouch seen; while [ ! -e go ]; do sleep \
            0.02; done\n"
    );
    fs::write(home.path("job.yaml"), serde_json::json!({ "script": script, "environment": {"setup": [format!("true {token}")]} }).to_string()).unwrap();
    let id = home
        .tow_with_open_umask(["submit", "-f", home.path("job.yaml").to_str().unwrap()])
        .ok()
        .id();
    until("the job to run", || {
        home.project().join("seen").exists().then_some(())
    });
    assert_eq!(processes_holding(&token).0, Vec::<String>::new());
    let files = holding(&home.path("state"), &token);
    assert!(
        !files.is_empty(),
        "the shell that runs it reads it from a file"
    );
    for file in &files {
        assert_eq!(
            exposure::mode(Path::new(file)).map(|mode| mode & 0o077),
            Some(0),
            "{file}"
        );
    }
    home.write("go", "");
    home.tow(["wait", &id]).ok();
    until("nothing on disk to hold it", || {
        holding(&home.path("state"), &token)
            .is_empty()
            .then_some(())
    });
}

/// What the configuration names as a credential is one, whatever it is called; standard names of
/// tools too, and what looks like a token.
#[test]
fn variables_that_the_configuration_or_their_tools_name_are_held_apart() {
    let token = token();
    let canaries = [
        ("AZ_ONE", "canary-of-the-store"),
        ("MYSQL_PWD", "canary-of-mysql"),
        ("ORDINARY", token.as_str()),
    ];
    let home = canaries
        .iter()
        .fold(
            Home::new(env!("CARGO_BIN_EXE_tow")),
            |home, (name, value)| home.with(name, value),
        )
        .with("PLAIN", "plain-value");
    home.configure(
        "datastores:\n  s: \
        {kind: azure_blob, account: a, container: c, credential: {account_key: env:AZ_ONE}}\n",
    );
    let id = home
        .tow([
            "submit",
            "sh",
            "-c",
            "printf %s \"$AZ_ONE$MYSQL_PWD$ORDINARY\" | sha256sum",
        ])
        .ok()
        .id();
    home.tow(["wait", &id]).ok();
    let all: String = canaries.iter().map(|(_, value)| *value).collect();
    let expected = std::process::Command::new("sh")
        .args(["-c", &format!("printf %s {all} | sha256sum")])
        .output()
        .unwrap()
        .stdout;
    assert_eq!(
        home.tow(["logs", &id]).ok().raw,
        expected,
        "the job has them"
    );
    assert!(
        !holding(&home.path("state"), "plain-value").is_empty(),
        "the search finds what is kept"
    );
    for (name, canary) in canaries {
        until(
            &format!(
                "no file to hold {name}: {:?}",
                holding(&home.path("state"), canary)
            ),
            || {
                holding(&home.path("state"), canary)
                    .is_empty()
                    .then_some(())
            },
        );
    }
}
