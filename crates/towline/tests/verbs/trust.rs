//! `tow trust`, and the configuration of strangers: what another user or a cloned repository wrote
//! makes `tow` neither run, send nor read anything that its user did not ask for.

use crate::home;
use std::fs;
use std::io::Read;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use towline_testkit::Home;
use towline_testkit::ability::not_run;

/// Runs a command of its own before every job.
fn with_set_up(home: &Home) -> String {
    format!(
        "clusters: {{local: {{kind: local, job: {{environment: {{setup: [\"touch {}\"]}}}}}}}}\n",
        home.path("taken").display()
    )
}

/// Whatever connects tells what it sent first.
fn listener() -> (u16, Receiver<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (tell, heard) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            stream
                .set_read_timeout(Some(Duration::from_secs(2)))
                .unwrap();
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
    for words in [
        &["run", "echo", "hello"][..],
        &["submit", "echo", "hello"],
        &["nodes"],
        &["clusters"],
    ] {
        let refused = home.tow(words);
        assert_eq!(refused.code, 123, "{refused:?}");
        assert!(
            refused.stderr.contains("clusters.local.job.environment")
                && refused.stderr.contains("tow trust"),
            "{refused:?}"
        );
        assert!(refused.stderr.contains("--yes"), "{refused:?}");
    }
    assert!(!home.path("taken").exists());
    let shown = home.tow(["trust"]);
    assert!(
        shown.code == 123 && shown.stderr.contains("touch ") && shown.stderr.contains("--yes"),
        "{shown:?}"
    );
    let told = home.tow(["trust", "--yes"]).ok();
    assert!(
        told.stdout.contains("clusters.local.job.environment") && told.stdout.contains("trusted"),
        "{told:?}"
    );
    home.tow(["run", "echo", "hello"]).ok();
    assert!(home.path("taken").exists(), "now it counts");
    // Another content is another question; the one that was agreed to is not.
    home.write(
        "towline.yaml",
        &with_set_up(&home).replace("touch", "rm -f"),
    );
    assert_eq!(home.tow(["run", "echo", "hello"]).code, 123);
    home.write("towline.yaml", &with_set_up(&home));
    home.tow(["run", "echo", "hello"]).ok();
    home.tow(["trust", "--remove"]).ok();
    assert_eq!(home.tow(["run", "echo", "hello"]).code, 123);
    assert_eq!(home.tow(["trust", "--remove"]).code, 122);
}

/// A store of the user's own, which the repository would have read and written under a name of its
/// choice.
#[test]
fn no_folder_of_a_cloned_repository_leads_to_a_store_of_the_user() {
    let home = home();
    fs::create_dir_all(home.path("nas/private")).unwrap();
    fs::write(home.path("nas/private/diary"), "not theirs").unwrap();
    home.configure(&format!(
        "datastores: {{nas: {{kind: folder, path: {}}}}}\n",
        home.path("nas").display()
    ));
    home.write(
        "towline.yaml",
        "folders: {data: {datastore: nas, path: private}}\n",
    );
    home.write("data/planted", "theirs");
    for words in [
        &["up", "data"][..],
        &["down", "data"],
        &["ls", "data"],
        &["run", "true"],
    ] {
        let refused = home.tow(words);
        assert!(
            refused.code == 123
                && refused.stderr.contains("`folders`")
                && refused.stderr.contains("tow trust"),
            "{words:?}: {refused:?}"
        );
    }
    assert!(
        !home.path("nas/private/planted").exists() && !home.project().join("data/diary").exists()
    );
    home.tow(["trust", "--yes"]).ok();
    home.tow(["down", "data"]).ok();
    assert_eq!(home.read("data/diary"), "not theirs", "now it counts");
}

#[test]
fn what_only_describes_jobs_counts_without_trust() {
    let home = home();
    home.write(
        "towline.yaml",
        "clusters: {local: {kind: local, cpus: 1, job: \
        {tags: [mine], resources: {time: 1h}, code: {ignore: [x]}}}}\n",
    );
    let run = home.tow(["run", "echo", "hello"]).ok();
    assert!(!run.stderr.contains("trust"), "{run:?}");
    assert_eq!(home.show("@")["tags"][0], "mine");
    assert!(
        home.tow(["trust"])
            .ok()
            .stderr
            .contains("only describes jobs")
    );
}

/// A store of the repository's own, whose credentials are references to what is the user's.
#[test]
fn no_reference_of_a_cloned_repository_leads_to_a_secret() {
    let mut home = home();
    let (port, heard) = listener();
    home.set("HF_TOKEN", "canary-of-ann");
    let store = format!(
        "datastores: {{s: {{kind: s3, bucket: x, endpoint: \"http://127.0.0.1:{port}\", \
            credential: {{access_key_id: \"env:HF_TOKEN\", \
                secret_access_key: \"env:HF_TOKEN\"}}}}}}\nfolders: {{data: {{datastore: s, path: \
                    x}}}}\n"
    );
    home.write("towline.yaml", &store);
    home.write("data/file", "x");
    let doctor = home.tow(["doctor"]);
    assert!(
        doctor.code == 123 && doctor.stdout.contains("not trusted"),
        "{doctor:?}"
    );
    for words in [
        &["ls", "data"][..],
        &["up", "data"],
        &["down", "data"],
        &["url", "data/file"],
        &["sync"],
    ] {
        let refused = home.tow(words);
        assert!(
            refused.code == 123 && refused.stderr.contains("tow trust"),
            "{refused:?}"
        );
    }
    assert!(heard.try_recv().is_err(), "somebody was called");
    // The guard is what keeps it: with trust the store is asked, and the listener hears who asks.
    home.tow(["trust", "--yes"]).ok();
    home.tow(["doctor"]);
    let sent = heard
        .recv_timeout(Duration::from_secs(20))
        .expect("the store is asked now");
    assert!(
        String::from_utf8_lossy(&sent).contains("canary-of-ann"),
        "the reference counts now"
    );
}

/// Somebody else.
const NOBODY: u32 = 65_534;

/// Who owns a file, its mode, the mode of its folder, and what is said of it then.
const STRANGE: [(u32, u32, u32, &str); 3] = [
    (NOBODY, 0o644, 0o755, "belongs to"),
    (0, 0o666, 0o755, "can be written by everybody"),
    (0, 0o644, 0o1777, "where everybody can write"),
];

fn give(file: &Path, (owner, mode, folder, _): (u32, u32, u32, &str)) {
    chown(file, Some(owner), None).unwrap();
    fs::set_permissions(file, fs::Permissions::from_mode(mode)).unwrap();
    fs::set_permissions(file.parent().unwrap(), fs::Permissions::from_mode(folder)).unwrap();
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
    let theirs = open.join("towline.yaml");
    fs::write(
        &theirs,
        format!("default_cluster: nowhere\n{}", with_set_up(&home)),
    )
    .unwrap();
    let run = |words: &[&str]| -> towline_testkit::Output {
        home.command(words)
            .current_dir(&own)
            .output()
            .unwrap()
            .into()
    };
    let assert_not_obeyed = |says: &str| {
        let ran = run(&["run", "echo", "hello"]);
        assert!(
            ran.code == 0 && ran.stderr.contains(says) && ran.stderr.contains("not obeyed"),
            "{says}: {ran:?}"
        );
        assert!(!home.path("taken").exists());
        let refused = run(&["trust", "--yes"]);
        assert!(
            refused.code == 123 && refused.stderr.contains("cannot be trusted"),
            "{says}: {refused:?}"
        );
    };
    for strange in STRANGE {
        give(&theirs, strange);
        assert_not_obeyed(strange.3);
    }
    // A link of ours counts with the file that it leads to.
    fs::set_permissions(&open, fs::Permissions::from_mode(0o755)).unwrap();
    let elsewhere = home.path("elsewhere.yaml");
    fs::rename(&theirs, &elsewhere).unwrap();
    chown(&elsewhere, Some(NOBODY), None).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &theirs).unwrap();
    assert_not_obeyed("belongs to");
    // In our own hands it is asked about.
    chown(&elsewhere, Some(0), None).unwrap();
    assert_eq!(run(&["run", "echo", "hello"]).code, 123);
}

#[test]
fn configuration_of_the_user_in_other_hands_is_refused() {
    if !rustix::process::geteuid().is_root() {
        return not_run("a configuration of another user: only root can give files away");
    }
    let home = home();
    home.configure("default_cluster: local\n");
    let own = home.path("config/towline/config.yaml");
    for strange in STRANGE {
        give(&own, strange);
        let refused = home.tow(["run", "true"]);
        assert!(
            refused.code == 123
                && refused.stderr.contains(strange.3)
                && refused.stderr.contains("not obeyed"),
            "{refused:?}"
        );
    }
    give(&own, (0, 0o644, 0o755, ""));
    home.tow(["run", "true"]).ok();
    // The list of what is trusted, too: whoever writes it agrees for the user.
    home.write("towline.yaml", &with_set_up(&home));
    home.tow(["trust", "--yes"]).ok();
    for strange in STRANGE {
        give(&home.path("config/towline/trusted.json"), strange);
        fs::remove_file(&own).unwrap_or_default();
        let refused = home.tow(["run", "true"]);
        assert!(
            refused.code == 123
                && refused.stderr.contains("trusted.json")
                && refused.stderr.contains(strange.3),
            "{refused:?}"
        );
    }
    assert!(!home.path("taken").exists());
}

#[test]
fn act_files_of_another_user_are_not_obeyed() {
    if !rustix::process::geteuid().is_root() {
        return not_run("files of ACT of another user: only root can give files away");
    }
    let home = home();
    home.write(
        "aux_data/aml/aml.yaml",
        "compute_target: x\naml_config: \
        {subscription_id: s, resource_group: g, workspace_name: w}\n",
    );
    home.tow(["trust", "--yes"]).ok();
    let folder = home.project().join("aux_data/aml");
    let clusters = || home.tow(["clusters", "--json"]);
    assert!(clusters().stdout.contains("azureml"), "{:?}", clusters());
    // One file of theirs in a folder of ours: it is the default cluster, so nothing can be done.
    chown(folder.join("aml.yaml"), Some(NOBODY), None).unwrap();
    let refused = home.tow(["submit", "true"]);
    assert!(
        refused.code != 0
            && refused.stderr.contains("belongs to")
            && refused.stderr.contains("not obeyed"),
        "{refused:?}"
    );
    // Their folder: all of it is passed over.
    chown(folder.join("aml.yaml"), Some(0), None).unwrap();
    chown(&folder, Some(NOBODY), None).unwrap();
    let passed_over = home.tow(["run", "true"]).ok();
    assert!(
        passed_over.stderr.contains("belongs to") && passed_over.stderr.contains("not obeyed"),
        "{passed_over:?}"
    );
    assert!(!clusters().stdout.contains("azureml"), "{:?}", clusters());
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
    fs::write(
        home.project().join(".git/HEAD"),
        format!("{}\n", "a".repeat(40)),
    )
    .unwrap();
    fs::create_dir_all(&work).unwrap();
    let run = |words: &[&str]| -> towline_testkit::Output {
        home.command(words)
            .current_dir(&work)
            .output()
            .unwrap()
            .into()
    };
    let plan = run(&["submit", "--dry-run", "true"]);
    assert!(
        plan.stdout
            .contains(&format!("from {}\n", home.project().display())),
        "of ours it is one: {plan:?}"
    );
    chown(home.project().join(".git"), Some(NOBODY), None).unwrap();
    let plan = run(&["submit", "--dry-run", "true"]).ok();
    assert!(
        plan.stdout.contains(&format!("from {}", work.display())),
        "{plan:?}"
    );
    assert!(
        plan.stderr.contains(".git") && plan.stderr.contains("so it is not obeyed"),
        "{plan:?}"
    );
    // There is no configuration of theirs, so nothing to agree to either.
    assert!(
        run(&["trust", "--yes"])
            .ok()
            .stderr
            .contains("no towline.yaml")
    );
    let id = run(&["submit", "true"]).ok().id();
    assert_eq!(
        home.show(&id)["commit"],
        serde_json::Value::Null,
        "nor is its commit that of the run"
    );
}

/// What it is, and what sets it: in a `.git`, for a program.
type Trap = (&'static str, fn(&Path, &str));

/// Ways in which a repository that came as an archive has `git status` start a program.
const TRAPS: [Trap; 7] = [
    ("a monitor", |git, program| {
        append(
            &git.join("config"),
            &format!("[core]\n\tfsmonitor = {program}\n"),
        );
    }),
    ("a filter", |git, program| {
        append(
            &git.join("config"),
            &format!("[filter \"trap\"]\n\tclean = {program}\n"),
        );
    }),
    ("a filter behind another section", |git, program| {
        append(
            &git.join("config"),
            &format!("[core][Filter \"trap\"]\n\tclean = {program}\n"),
        );
    }),
    ("a filter in a file that is included", |git, program| {
        append(&git.join("config"), "[include]\n\tpath = more\n");
        append(
            &git.join("more"),
            &format!("[filter \"trap\"]\n\tclean = {program}\n"),
        );
    }),
    ("a filter of the worktree", |git, program| {
        append(
            &git.join("config"),
            "[extensions]\n\tworktreeConfig = true\n",
        );
        append(
            &git.join("config.worktree"),
            &format!("[filter \"trap\"]\n\tclean = {program}\n"),
        );
    }),
    ("a hook", |git, program| {
        fs::create_dir_all(git.join("hooks")).unwrap();
        towline_testkit::program(
            &git.join("hooks/post-index-change"),
            format!("#!/bin/sh\n{program}\n"),
        );
    }),
    ("a remote that has what is missing", |git, program| {
        let text = format!(
            "[extensions]\n\tpartialClone = origin\n[remote \"origin\"]\n\tpromisor = true\n\turl \
                = /\n\tuploadpack = {program}\n"
        );
        append(&git.join("config"), &text);
        // Every object: the commit, its folder and its files.
        fs::remove_dir_all(git.join("objects")).unwrap();
        fs::create_dir(git.join("objects")).unwrap();
    }),
];

fn append(file: &Path, text: &str) {
    fs::write(file, fs::read_to_string(file).unwrap_or_default() + text).unwrap();
}

#[test]
fn git_starts_no_program_that_the_repository_names() {
    for (what, set) in TRAPS {
        // The code root is the repository, a folder of it, or a folder whose own `.git` is none, so
        // that git would search above it.
        for below in ["", "below", "hollow"] {
            let home = home().freezing();
            let git = |words: &[&str]| {
                std::process::Command::new("git")
                    .arg("-C")
                    .arg(home.project())
                    .args(words)
                    .output()
                    .unwrap()
            };
            let taken = home.path("taken");
            let trap = home.path("trap");
            // A filter, which gets no words, gives the file back.
            towline_testkit::program(
                &trap,
                format!(
                    "#!/bin/sh\ntouch {}\n[ $# -gt 0 ] || cat\n",
                    taken.display()
                ),
            );
            for name in ["changed.txt", "same.txt", "below/towline.yaml"] {
                home.write(
                    name,
                    if name.ends_with("yaml") {
                        "in_place: false\n"
                    } else {
                        "one\n"
                    },
                );
            }
            home.write(".gitattributes", "*.txt filter=trap\n");
            for words in [
                &["init", "--quiet"][..],
                &["add", "."],
                &[
                    "-c",
                    "user.name=a",
                    "-c",
                    "user.email=a@example.com",
                    "commit",
                    "-qm",
                    "x",
                ],
            ] {
                assert!(git(words).status.success());
            }
            set(&home.project().join(".git"), trap.to_str().unwrap());
            home.write("hollow/.git/HEAD", &format!("{}\n", "a".repeat(40)));
            home.write("changed.txt", "two\n");
            fs::remove_file(home.project().join("same.txt")).unwrap();
            home.write("same.txt", "one\n");
            let ran: towline_testkit::Output = home
                .command(["run", "true"])
                .current_dir(home.project().join(below))
                .output()
                .unwrap()
                .into();
            ran.ok();
            assert!(
                !taken.exists(),
                "{what}: a program of the repository was started"
            );
            // The trap is one: plain git falls into it.
            git(&["status"]);
            assert!(taken.exists(), "{what}: it starts nothing anyway");
        }
    }
}

#[test]
fn act_files_of_a_repository_need_trust_too() {
    let home = home();
    home.write(
        "aux_data/aml/aml.yaml",
        "compute_target: x\naml_config: \
        {subscription_id: s, resource_group: g, workspace_name: w}\n",
    );
    let refused = home.tow(["submit", "true"]);
    assert!(
        refused.code == 123
            && refused.stderr.contains("aux_data/aml")
            && refused.stderr.contains("tow trust"),
        "{refused:?}"
    );
    home.tow(["trust", "--yes"]).ok();
    let values = home.tow(["config", "show", "--json"]).ok().json()["values"]
        .as_array()
        .unwrap()
        .clone();
    assert!(
        values
            .iter()
            .any(|entry| entry["key"] == "default_cluster" && entry["value"] == "aml"),
        "{values:?}"
    );
}

#[test]
fn what_import_makes_is_trusted_and_what_was_there_before_is_not() {
    let home = home();
    home.write(
        "old/aml.yaml",
        "compute_target: x\naml_config: \
        {subscription_id: s, resource_group: g, workspace_name: w}\n",
    );
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
    for words in [
        &["logs", "@"][..],
        &["show", "@"],
        &["why", "@"],
        &["wait", "@"],
        &["config", "show"],
    ] {
        home.tow(words).ok();
    }
    assert!(
        home.tow(["config", "show"])
            .ok()
            .stderr
            .contains("not trusted")
    );
    assert!(!home.tow(["config", "show"]).ok().stdout.contains("touch"));
    home.trust();
    assert!(
        home.tow(["config", "show"]).ok().stdout.contains("touch"),
        "what is trusted is shown"
    );
}
