//! `tow get`: files from where a run was.

use super::{ended, home};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use towline_testkit::Home;

fn all_files(folder: PathBuf) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.path().is_dir() {
                folders.push(entry.path());
            } else {
                files.push(entry.path());
            }
        }
    }
    files.sort();
    files
}

fn with_results() -> (Home, String) {
    let home = home();
    let id = ended(
        &home,
        &[
            "mkdir -p out/deep && echo last > out/last.pt && echo deep > out/deep/x && echo 'with \
                space' > 'a b'",
        ],
    );
    (home, id)
}

#[test]
fn files_and_folders_keep_their_paths() {
    let (home, id) = with_results();
    let output = home.tow(["get", &id, "out", "a b"]).ok();
    let to = home.project().join("assets").join(&id);
    assert_eq!(
        fs::read_to_string(to.join("out/last.pt")).unwrap(),
        "last\n"
    );
    assert_eq!(fs::read_to_string(to.join("out/deep/x")).unwrap(), "deep\n");
    assert_eq!(fs::read_to_string(to.join("a b")).unwrap(), "with space\n");
    let mut printed: Vec<PathBuf> = output.stdout.lines().map(PathBuf::from).collect();
    printed.sort();
    assert_eq!(printed, all_files(to), "stdout is the list of files");
    assert_eq!(output.stderr, "");
}

#[test]
fn another_folder_and_json() {
    let (home, id) = with_results();
    let output = home
        .tow(["get", &id, "out/last.pt", "--to", "results", "--json"])
        .ok();
    let file = home.project().join("results/out/last.pt");
    assert_eq!(fs::read_to_string(&file).unwrap(), "last\n");
    assert_eq!(output.json()["files"], serde_json::json!([file]));
    assert!(!home.project().join("assets").exists());
}

#[test]
fn from_another_folder() {
    let (home, id) = with_results();
    fs::create_dir(home.path("elsewhere")).unwrap();
    let output = home
        .command(["get", &id, "out/last.pt"])
        .current_dir(home.path("elsewhere"))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(
        home.path("elsewhere")
            .join("assets")
            .join(&id)
            .join("out/last.pt")
            .exists()
    );
}

#[test]
fn what_is_not_there_stops_all_of_it() {
    let (home, id) = with_results();
    let output = home.tow(["get", &id, "out", "not-there"]);
    assert_eq!((output.code, output.stdout.as_str()), (122, ""));
    assert!(output.stderr.contains("not-there"), "{}", output.stderr);
    assert!(
        !home.project().join("assets").exists(),
        "nothing was copied"
    );
}

#[test]
fn only_below_the_run_s_folder() {
    let (home, id) = with_results();
    fs::write(home.path("outside"), "x").unwrap();
    // The last lies in the run's folder, but its copy would lie outside the target.
    for path in [
        "../outside",
        "/etc/hostname",
        "out/../../outside",
        "../project/out/last.pt",
    ] {
        let output = home.tow(["get", &id, path]);
        assert_eq!((output.code, output.stdout.as_str()), (123, ""), "{path}");
    }
    assert!(!home.project().join("assets").exists());
}

#[test]
fn the_whole_folder_does_not_hold_its_own_copy() {
    let (home, id) = with_results();
    home.tow(["query", &id]).ok();
    for _ in 0..2 {
        home.tow(["get", &id, "."]).ok();
    }
    let to = home.project().join("assets").join(&id);
    assert_eq!(
        fs::read_to_string(to.join("out/last.pt")).unwrap(),
        "last\n"
    );
    let nested: Vec<PathBuf> = all_files(to.clone())
        .into_iter()
        .filter(|file| {
            file.strip_prefix(&to)
                .unwrap()
                .starts_with(format!("assets/{id}"))
        })
        .collect();
    assert_eq!(nested, Vec::<PathBuf>::new(), "copied into itself");
}

#[test]
fn a_file_is_never_its_own_copy() {
    let (home, id) = with_results();
    let output = home.tow(["get", &id, "out/last.pt", "--to", "."]);
    assert_eq!((output.code, output.stdout.as_str()), (123, ""));
    assert_eq!(home.read("out/last.pt"), "last\n");
}

#[test]
fn a_link_out_of_the_run_s_folder_is_refused_and_one_within_is_followed() {
    let home = home();
    fs::write(home.path("outside"), "secret").unwrap();
    let outside = home.path("outside").display().to_string();
    let line = format!(
        "mkdir real held && ln -s {outside} held/leak && echo in > real/x && ln -s real inner && \
            ln -s {outside} out && ln -s {} folder && ln -s nowhere broken",
        home.path("").display()
    );
    let id = ended(&home, &[&line]);
    for (path, part) in [
        ("out", "outside the run's folder"),
        ("folder/outside", "outside the run's folder"),
        ("broken", "leads nowhere"),
    ] {
        let output = home.tow(["get", &id, path]);
        assert_eq!(
            (output.code, output.stdout.as_str()),
            (123, ""),
            "{path}: {output:?}"
        );
        assert!(output.stderr.contains(part), "{path}: {output:?}");
    }
    assert!(
        !home.project().join("assets").exists(),
        "nothing was copied"
    );
    // Of a folder, a link is copied as a link, and nothing of what it leads to.
    home.tow(["get", &id, "held"]).ok();
    let copied = home.project().join("assets").join(&id).join("held");
    assert_eq!(
        fs::read_link(copied.join("leak")).unwrap(),
        home.path("outside")
    );
    assert!(all_files(copied).iter().all(|file| file.is_symlink()));
    home.tow(["get", &id, "inner/x"]).ok();
    assert_eq!(
        fs::read_to_string(home.project().join("assets").join(&id).join("inner/x")).unwrap(),
        "in\n"
    );
}

/// A job may put a link where a folder was, or a folder where a link was, between two copies.
#[test]
fn nothing_is_written_through_a_link_that_an_earlier_copy_left() {
    let (home, id) = with_results();
    home.tow(["get", &id, "a b"]).ok();
    let (outside, to) = (
        home.path("outside"),
        home.project().join("assets").join(&id),
    );
    fs::create_dir(&outside).unwrap();
    symlink(&outside, to.join("out")).unwrap();
    for path in ["out/last.pt", "out"] {
        let refused = home.tow(["get", &id, path]);
        assert!(
            refused.code == 123 && refused.stderr.contains("is a link that leads out of"),
            "{path}: {refused:?}"
        );
    }
    assert_eq!(all_files(outside), Vec::<PathBuf>::new());
    // One that stays inside is followed.
    fs::remove_file(to.join("out")).unwrap();
    fs::create_dir(to.join("other")).unwrap();
    symlink("other", to.join("out")).unwrap();
    home.tow(["get", &id, "out/last.pt"]).ok();
    assert_eq!(
        fs::read_to_string(to.join("other/last.pt")).unwrap(),
        "last\n"
    );
}

#[test]
fn a_file_that_does_not_fit_leaves_nothing_under_its_name() {
    let home = home();
    let id = ended(
        &home,
        &["dd if=/dev/zero of=big bs=1M count=3 2>/dev/null; echo small > small"],
    );
    fs::create_dir(home.project().join("tiny")).unwrap();
    let command = home.command(["get", &id, "small", "big", "--to", "tiny"]);
    let mut shell = std::process::Command::new("unshare");
    shell.args([
        "-m",
        "sh",
        "-c",
        "mount -t tmpfs -o size=1m tmpfs tiny || exit 99; printf old > tiny/big; \"$0\" \"$@\"; \
            echo \"code $?\"; cat tiny/small; cat tiny/big; ls -A tiny",
    ]);
    shell
        .arg(command.get_program())
        .args(command.get_args())
        .current_dir(home.project())
        .env_clear();
    shell.envs(
        command
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    let output: towline_testkit::Output = shell.output().unwrap().into();
    if output.code == 99 || output.stderr.contains("Operation not permitted") {
        return towline_testkit::ability::not_run("a full disk: nothing can be mounted here");
    }
    assert_eq!(
        output
            .stdout
            .lines()
            .skip_while(|line| !line.starts_with("code"))
            .collect::<Vec<_>>(),
        ["code 123", "small", "oldbig", "small"],
        "{output:?}"
    );
}

#[test]
fn of_a_sweep_each_runs_files_come_to_a_folder_of_their_own() {
    let home = home().freezing();
    home.write(
        "job.yaml",
        "name: tune\nsweep: {lr: [1, 2, 3]}\nscript: test ${{lr}} = 3 || echo ${{lr}} > metrics\n",
    );
    let sweep = home.tow(["submit", "-f", "job.yaml"]).ok().id();
    home.tow(["wait", &sweep]).ok();
    let got = home.tow(["get", &sweep, "metrics", "--to", "all"]);
    // One has no such file: it is named, and the others come all the same.
    assert!(
        got.code == 122
            && got
                .stderr
                .contains(&format!("{sweep}-3: the run has no metrics")),
        "{got:?}"
    );
    assert_eq!(got.stdout.lines().count(), 2, "{got:?}");
    for number in ["1", "2"] {
        assert_eq!(
            home.read(&format!("all/{sweep}-{number}/metrics")),
            format!("{number}\n")
        );
    }
    home.tow(["get", &format!("{sweep}-1"), "metrics"]).ok();
    assert_eq!(home.read(&format!("assets/{sweep}-1/metrics")), "1\n");
}

#[test]
fn without_a_path_it_says_what_is_there() {
    let (home, id) = with_results();
    let listed = home.tow(["get", &id]).ok();
    assert_eq!(listed.stdout, "     11B  a b\n          out/\n");
    assert!(listed.stderr.contains("tow get"), "{}", listed.stderr);
    let entries = home.tow(["get", &id, "--json"]).ok().json()["entries"].clone();
    assert_eq!(entries[0]["path"], "a b");
    assert_eq!(entries[0]["bytes"], 11);
    assert_eq!(entries[1]["is_folder"], true);
    assert!(
        !home.project().join("assets").exists(),
        "nothing was copied"
    );
    let sweep = home.tow(["submit", "--sweep", "a=1-2", "echo", "${{a}}"]);
    let refused = home.tow(["get", &sweep.ok().id()]);
    assert_eq!(refused.code, 122, "{refused:?}");
}
