//! `tow trust`, and the configuration of strangers: what another user or a cloned repository wrote makes `tow` neither
//! run, send nor read anything that its user did not ask for.

use crate::home;
use std::fs;
use std::io::Read;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, chown};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use towline_testkit::Home;
use towline_testkit::ability::not_run;

/// Runs a command of its own before every job.
fn with_set_up(home: &Home) -> String {
    format!("clusters: {{local: {{kind: local, job: {{environment: {{setup: [\"touch {}\"]}}}}}}}}\n", home.path("taken").display())
}

/// Whatever connects tells what it sent first.
fn listener() -> (u16, Receiver<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (tell, heard) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
            let mut bytes = vec![0; 16 << 10];
            let count = stream.read(&mut bytes).unwrap_or(0);
            bytes.truncate(count);
            if tell.send(bytes).is_err() {
                return;
            }
        }
    });
    (port, heard)
}

#[test]
fn commands_of_a_cloned_repository_run_only_once_they_are_trusted() {
    let home = home();
    home.write("towline.yaml", &with_set_up(&home));
    for words in [&["run", "echo", "hello"][..], &["submit", "echo", "hello"], &["nodes"], &["clusters"]] {
        let refused = home.tow(words);
        assert_eq!(refused.code, 123, "{refused:?}");
        assert!(refused.stderr.contains("clusters.local.job.environment") && refused.stderr.contains("tow trust"), "{refused:?}");
        assert!(refused.stderr.contains("--yes"), "{refused:?}");
    }
    assert!(!home.path("taken").exists());
    let shown = home.tow(["trust"]);
    assert!(shown.code == 123 && shown.stderr.contains("touch ") && shown.stderr.contains("--yes"), "{shown:?}");
    let told = home.tow(["trust", "--yes"]).ok();
    assert!(told.stdout.contains("clusters.local.job.environment") && told.stdout.contains("trusted"), "{told:?}");
    home.tow(["run", "echo", "hello"]).ok();
    assert!(home.path("taken").exists(), "now it counts");
    // Another content is another question; the one that was agreed to is not.
    home.write("towline.yaml", &with_set_up(&home).replace("touch", "rm -f"));
    assert_eq!(home.tow(["run", "echo", "hello"]).code, 123);
    home.write("towline.yaml", &with_set_up(&home));
    home.tow(["run", "echo", "hello"]).ok();
    home.tow(["trust", "--remove"]).ok();
    assert_eq!(home.tow(["run", "echo", "hello"]).code, 123);
    assert_eq!(home.tow(["trust", "--remove"]).code, 122);
}

#[test]
fn what_only_describes_jobs_counts_without_trust() {
    let home = home();
    home.write("towline.yaml", "clusters: {local: {kind: local, cpus: 1, job: {tags: [mine], resources: {time: 1h}, code: {ignore: [x]}}}}\n");
    let run = home.tow(["run", "echo", "hello"]).ok();
    assert!(!run.stderr.contains("trust"), "{run:?}");
    assert_eq!(home.show("@")["tags"][0], "mine");
    assert!(home.tow(["trust"]).ok().stderr.contains("only describes jobs"));
}

/// A store of the repository's own, whose credentials are references to what is the user's.
#[test]
fn no_reference_of_a_cloned_repository_leads_to_a_secret() {
    let mut home = home();
    let (port, heard) = listener();
    home.set("HF_TOKEN", "canary-of-ann");
    let store = format!(
        "datastores: {{s: {{kind: s3, bucket: x, endpoint: \"http://127.0.0.1:{port}\", credential: {{access_key_id: \"env:HF_TOKEN\", secret_access_key: \"env:HF_TOKEN\"}}}}}}\nfolders: {{data: {{datastore: s, path: x}}}}\n"
    );
    home.write("towline.yaml", &store);
    home.write("data/file", "x");
    let doctor = home.tow(["doctor"]);
    assert!(doctor.code == 123 && doctor.stdout.contains("not trusted"), "{doctor:?}");
    for words in [&["ls", "data"][..], &["up", "data"], &["down", "data"], &["url", "data/file"], &["sync"]] {
        let refused = home.tow(words);
        assert!(refused.code == 123 && refused.stderr.contains("tow trust"), "{refused:?}");
    }
    assert!(heard.try_recv().is_err(), "somebody was called");
    // The guard is what keeps it: with trust the store is asked, and the listener hears who asks.
    home.tow(["trust", "--yes"]).ok();
    home.tow(["doctor"]);
    let sent = heard.recv_timeout(Duration::from_secs(20)).expect("the store is asked now");
    assert!(String::from_utf8_lossy(&sent).contains("canary-of-ann"), "the reference counts now");
}

#[test]
fn files_of_another_user_are_not_obeyed_wherever_they_lie_above() {
    if !rustix::process::geteuid().is_root() {
        return not_run("a towline.yaml of another user: only root can give files away");
    }
    let home = home();
    let open = home.path("open");
    let own = open.join("ann/work");
    fs::create_dir_all(&own).unwrap();
    fs::set_permissions(&open, fs::Permissions::from_mode(0o1777)).unwrap();
    let theirs = open.join("towline.yaml");
    fs::write(&theirs, format!("default_cluster: nowhere\n{}", with_set_up(&home))).unwrap();
    chown(&theirs, Some(65_534), None).unwrap();
    let run = |words: &[&str]| -> towline_testkit::Output { home.command(words).current_dir(&own).output().unwrap().into() };
    let ran = run(&["run", "echo", "hello"]);
    assert!(ran.code == 0 && ran.stderr.contains("belongs to") && ran.stderr.contains("not obeyed"), "{ran:?}");
    assert!(!home.path("taken").exists());
    let refused = run(&["trust", "--yes"]);
    assert!(refused.code == 123 && refused.stderr.contains("cannot be trusted"), "{refused:?}");
    // Of ours, but where everybody can write.
    chown(&theirs, Some(0), None).unwrap();
    assert!(run(&["run", "echo", "hello"]).stderr.contains("everybody can write"));
    // The user's own configuration, in somebody else's hands.
    home.configure("default_cluster: local\n");
    chown(home.path("config/towline/config.yaml"), Some(65_534), None).unwrap();
    let refused = home.tow(["run", "true"]);
    assert!(refused.code == 123 && refused.stderr.contains("not obeyed"), "{refused:?}");
}

#[test]
fn a_repository_of_another_user_is_no_code_root() {
    if !rustix::process::geteuid().is_root() {
        return not_run("a repository of another user: only root can give files away");
    }
    let home = home().freezing();
    let work = home.project().join("work");
    fs::create_dir_all(home.project().join(".git")).unwrap();
    fs::write(home.project().join("secret.txt"), "not theirs to send").unwrap();
    fs::create_dir_all(&work).unwrap();
    chown(home.project().join(".git"), Some(65_534), None).unwrap();
    let plan: towline_testkit::Output = home.command(["submit", "--dry-run", "true"]).current_dir(&work).output().unwrap().into();
    let plan = plan.ok();
    assert!(plan.stdout.contains(&format!("from {}", work.display())), "{plan:?}");
    assert!(plan.stderr.contains(".git") && plan.stderr.contains("so it is not obeyed"), "{plan:?}");
    // There is no configuration of theirs, so nothing to agree to either.
    let trusted: towline_testkit::Output = home.command(["trust", "--yes"]).current_dir(&work).output().unwrap().into();
    assert!(trusted.ok().stderr.contains("no towline.yaml"));
}

/// A repository that came as an archive has a configuration of its own, which may name programs.
#[test]
fn git_starts_no_program_that_the_repository_names() {
    let home = home().freezing();
    let git = |words: &[&str]| assert!(std::process::Command::new("git").arg("-C").arg(home.project()).args(words).status().unwrap().success());
    home.write("file.txt", "one\n");
    home.write(".gitattributes", "*.txt filter=taken\n");
    git(&["init", "--quiet"]);
    git(&["add", "."]);
    git(&["-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "--quiet", "-m", "x"]);
    let taken = home.path("taken");
    git(&["config", "core.fsmonitor", &format!("touch {}", taken.display())]);
    git(&["config", "filter.taken.clean", &format!("touch {}; cat", taken.display())]);
    home.write("file.txt", "two\n");
    home.tow(["run", "true"]).ok();
    assert!(!taken.exists(), "a program of the repository was started");
    // It is there to be started: by plain git.
    git(&["status", "--short"]);
    assert!(taken.exists());
}

#[test]
fn act_files_of_a_repository_need_trust_too() {
    let home = home();
    home.write("aux_data/aml/aml.yaml", "compute_target: x\naml_config: {subscription_id: s, resource_group: g, workspace_name: w}\n");
    let refused = home.tow(["submit", "true"]);
    assert!(refused.code == 123 && refused.stderr.contains("aux_data/aml") && refused.stderr.contains("tow trust"), "{refused:?}");
    home.tow(["trust", "--yes"]).ok();
    let values = home.tow(["config", "show", "--json"]).ok().json()["values"].as_array().unwrap().clone();
    assert!(values.iter().any(|entry| entry["key"] == "default_cluster" && entry["value"] == "aml"), "{values:?}");
}

#[test]
fn what_import_makes_is_trusted_and_what_was_there_before_is_not() {
    let home = home();
    home.write("old/aml.yaml", "compute_target: x\naml_config: {subscription_id: s, resource_group: g, workspace_name: w}\n");
    home.tow(["import", "act", "old/aml.yaml"]).ok();
    home.tow(["submit", "-c", "local", "true"]).ok();
    // A stranger's file does not become ours by an addition.
    fs::remove_file(home.project().join("towline.yaml")).unwrap();
    home.write("towline.yaml", &with_set_up(&home));
    home.tow(["import", "act", "old/aml.yaml"]).ok();
    assert_eq!(home.tow(["submit", "-c", "local", "true"]).code, 123);
    assert!(!home.path("taken").exists());
}

#[test]
fn who_only_reads_is_warned_and_served() {
    let home = home();
    home.tow(["run", "echo", "hello"]).ok();
    home.write("towline.yaml", &with_set_up(&home));
    for words in [&["logs", "@"][..], &["show", "@"], &["why", "@"], &["wait", "@"], &["config", "show"]] {
        home.tow(words).ok();
    }
    assert!(home.tow(["config", "show"]).ok().stderr.contains("not trusted"));
    assert!(!home.tow(["config", "show"]).ok().stdout.contains("touch"));
    home.trust();
    assert!(home.tow(["config", "show"]).ok().stdout.contains("touch"), "what is trusted is shown");
}
