//! Secrets never leak by our hand: the job sees them, and nothing else ever does.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;
use towline_testkit::{Home, until};

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
        } else if fs::read(&path).is_ok_and(|bytes| bytes.windows(needle.len()).any(|window| window == needle.as_bytes())) {
            found.push(path.display().to_string());
        }
    }
    found
}

/// Words and environment of every process but the job's own; the job's own are given apart.
fn processes_holding(needle: &str) -> (Vec<String>, Vec<String>) {
    let (mut found, mut jobs) = (Vec::new(), Vec::new());
    for pid in towline_host::process::all().into_keys().filter(|pid| u32::try_from(*pid) != Ok(std::process::id())) {
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let has = |bytes: &[u8]| bytes.windows(needle.len()).any(|window| window == needle.as_bytes());
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
    let home = Home::new(env!("CARGO_BIN_EXE_tow")).with("MY_NAMED", NAMED).with("WANDB_API_KEY", INHERITED);
    home.write("job.yaml", "command: [sh, job.sh]\nenvironment: {secrets: [MY_NAMED]}\n");
    // The job proves that it sees both without printing them, then stays.
    home.write("job.sh", "printf %s \"$MY_NAMED$WANDB_API_KEY\" | sha256sum; touch seen; while [ ! -e go ]; do sleep 0.02; done\n");
    let submitted = home.tow(["submit", "-f", "job.yaml"]).ok();
    let id = submitted.id();
    until("the job to run", || home.project().join("seen").exists().then_some(()));

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
        assert!(!output.stdout.is_empty() || words[0] == "diff", "{words:?} says nothing");
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
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(fs::metadata(&files[0]).unwrap().permissions().mode() & 0o777, 0o600);
    }
    home.write("go", "");
    home.tow(["wait", &id]).ok();
    let expected = std::process::Command::new("sh").args(["-c", &format!("printf %s {NAMED}{INHERITED} | sha256sum")]).output().unwrap().stdout;
    assert_eq!(home.tow(["logs", &id]).raw, expected);
    for needle in [NAMED, INHERITED] {
        until("nothing on disk to hold it", || holding(&home.path("state"), needle).is_empty().then_some(()));
        assert_eq!(holding(&home.project(), needle), Vec::<String>::new());
    }
}

#[test]
fn after_a_crash_the_next_daemon_sweeps_up() {
    let home = Home::new(env!("CARGO_BIN_EXE_tow")).with("HF_TOKEN", INHERITED);
    let id = home.tow(["submit", "sh", "-c", "touch seen; while [ ! -e go ]; do sleep 0.02; done"]).ok().id();
    until("the job to run", || home.project().join("seen").exists().then_some(()));
    assert_eq!(holding(&home.path("state"), INHERITED).len(), 1, "it is kept while the job runs");
    assert!(home.kill_daemon());
    home.write("go", "");
    // The ending runner starts the next daemon, which records the end and drops the secret.
    home.wait_for_state(&id, "succeeded");
    until("nothing on disk to hold it", || holding(&home.path("state"), INHERITED).is_empty().then_some(()));
}

#[test]
fn a_resubmission_reads_them_anew_and_is_refused_without() {
    let mut home = Home::new(env!("CARGO_BIN_EXE_tow")).with("MY_NAMED", NAMED);
    let id = home.tow(["submit", "--secret", "MY_NAMED", "sh", "-c", "test -n \"$MY_NAMED\""]).ok().id();
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

/// Somebody pastes a token into a script, a command or a variable: the job has it, exactly as it was written.
#[test]
fn a_token_in_a_script_command_or_variable_is_a_secret_of_the_run() {
    let (token, other) = (token(), "hunter-22-password");
    let home = Home::new(env!("CARGO_BIN_EXE_tow")).freezing();
    home.write("seen.sh", "printf '%s|' \"$@\" \"$PAT\" \"$DB_PASSWORD\" | sha256sum\n");
    let job = format!(
        "environment: {{env: {{DB_PASSWORD: {other}, MAX_TOKENS: '512'}}}}\nscript: |\n  export PAT={token}\n  sh seen.sh 'https://{token}@example.com/x'\n  echo $MAX_TOKENS\n"
    );
    // The file itself is the user's and stays where it is; no code travels from this folder to the state.
    fs::write(home.path("job.yaml"), &job).unwrap();
    let file = home.path("job.yaml").display().to_string();
    let submitted = home.tow(["submit", "-f", &file]).ok();
    let id = submitted.id();
    assert!(submitted.stderr.contains("shown as `***`"), "{submitted:?}");
    home.tow(["wait", &id]).ok();
    let seen = home.tow(["logs", &id]).ok().stdout;
    let expected =
        std::process::Command::new("sh").args(["-c", &format!("printf '%s|' 'https://{token}@example.com/x' {token} {other} | sha256sum")]).output().unwrap();
    assert_eq!(seen, format!("{}512\n", String::from_utf8_lossy(&expected.stdout)), "the job has all of it");
    let words = home.tow(["submit", "git", "clone", &format!("https://{token}@127.0.0.1:9/x"), "--password", other]).ok();
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
    assert!(ps.contains("git clone 'https://***@127.0.0.1:9/x' --password '***'"), "{ps}");
    for canary in [token.as_str(), other] {
        assert!(!said.contains(canary), "{said}");
        // Not even in what is kept of the run's own output: it printed a digest. git prints the address it was given.
        let files: Vec<String> = holding(&home.path("state"), canary).into_iter().filter(|file| !file.contains(&format!("/{}/", words.id()))).collect();
        assert_eq!(files, Vec::<String>::new());
    }
    // The guard is awake: what is no token is found by the same search.
    assert!(!holding(&home.path("state"), "seen.sh").is_empty());
    // What was not kept cannot be used again.
    let again = home.tow(["resubmit", &id]);
    assert!(again.code == 123 && again.stderr.contains("--secret"), "{again:?}");
}

/// What the configuration names as a credential is one, whatever it is called; standard names of tools too.
#[test]
fn variables_that_the_configuration_or_their_tools_name_are_held_apart() {
    let home = Home::new(env!("CARGO_BIN_EXE_tow")).with("AZ_ONE", "canary-of-the-store").with("MYSQL_PWD", "canary-of-mysql").with("PLAIN", "plain-value");
    home.configure("datastores:\n  s: {kind: azure_blob, account: a, container: c, credential: {account_key: env:AZ_ONE}}\n");
    // The command itself is in the history: it names neither of them.
    let id = home.tow(["submit", "sh", "-c", "printf %s \"$AZ_ONE$MYSQL_PWD\" | sha256sum"]).ok().id();
    home.tow(["wait", &id]).ok();
    let expected = std::process::Command::new("sh").args(["-c", "printf %s canary-of-the-storecanary-of-mysql | sha256sum"]).output().unwrap();
    assert_eq!(home.tow(["logs", &id]).ok().raw, expected.stdout, "the job has both");
    for canary in ["canary-of-the-store", "canary-of-mysql"] {
        assert_eq!(holding(&home.path("state"), canary), Vec::<String>::new());
    }
    assert!(!holding(&home.path("state"), "plain-value").is_empty(), "the search finds what is kept");
}
