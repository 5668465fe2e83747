//! Room in a home over there: what runs leave behind, and what is left of it later.

use crate::lab::Lab;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use towline_testkit::real::slurm::Options;
use towline_testkit::until;

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => found.extend(files(&entry.path())),
            _ => found.push(entry.path()),
        }
    }
    found.sort();
    found
}

fn names(folder: &Path) -> Vec<String> {
    files(folder)
        .iter()
        .map(|file| file.strip_prefix(folder).unwrap().display().to_string())
        .collect()
}

#[test]
fn the_code_of_an_ended_run_takes_no_room_and_can_still_be_had() {
    let lab = Lab::shared();
    for number in 0..30 {
        lab.home.write(
            &format!("package/part{number}.py"),
            &format!("# {number}\n"),
        );
    }
    let large = (0..200_000).fold(String::new(), |text, number| {
        text + &number.to_string() + "\n"
    });
    lab.home.write("package/large.txt", &large);
    lab.home.write("config.yaml", "lr: 1\n");
    lab.home.write("gone.txt", "the run removes it\n");
    lab.home.write("same.txt", "AAAA\n");
    std::os::unix::fs::symlink("package", lab.home.project().join("alias")).unwrap();
    // One file of the code is changed, one is removed, one is changed in its bytes alone, and one
    // is new.
    let script = "echo 'lr: 2' > config.yaml; rm gone.txt; printf 'BBBB\\n' > new; touch -r \
        same.txt new; cat new > same.txt; touch -r new same.txt; \
        rm new; mkdir out; echo 7 > out/result; echo note >> package/notes.txt; ln -s ../alias \
            out/latest";
    let id = lab.tow(["submit", "sh", "-c", script]).ok().id();
    assert_eq!(lab.ended(&id)["state"], "succeeded");
    let code = lab.far(&id).join("code");
    let wanted = [
        "config.yaml",
        "out/latest",
        "out/result",
        "package/notes.txt",
        "same.txt",
    ];
    until("only what it wrote to be there", || {
        (names(&code) == wanted).then_some(())
    });
    assert_eq!(
        fs::read_to_string(code.join("same.txt")).unwrap(),
        "BBBB\n",
        "nothing that it wrote is lost"
    );

    // For whoever asks, the folder is whole.
    lab.tow(["get", &id, ".", "--to", "all"]).ok();
    let all = lab.home.project().join("all");
    assert_eq!(
        fs::read_to_string(all.join("package/large.txt")).unwrap(),
        large
    );
    assert_eq!(
        fs::read_to_string(all.join("package/part7.py")).unwrap(),
        "# 7\n"
    );
    assert_eq!(
        fs::read_to_string(all.join("config.yaml")).unwrap(),
        "lr: 2\n"
    );
    assert_eq!(fs::read_to_string(all.join("out/result")).unwrap(), "7\n");
    assert!(
        !all.join("gone.txt").exists(),
        "what it removed is not there again"
    );
    lab.tow(["get", &id, "package/part3.py", "--to", "one"])
        .ok();
    assert_eq!(
        fs::read_to_string(lab.home.project().join("one/package/part3.py")).unwrap(),
        "# 3\n"
    );
    // By a link of the code, and by one of the run's.
    for path in ["alias/part4.py", "out/latest/part4.py"] {
        lab.tow(["get", &id, path, "--to", "linked"]).ok();
        assert_eq!(
            fs::read_to_string(lab.home.project().join("linked").join(path)).unwrap(),
            "# 4\n",
            "{path}"
        );
    }
    assert_eq!(lab.tow(["get", &id, "gone.txt"]).code, 122);
    assert_eq!(lab.tow(["get", &id, "package/nothing"]).code, 122);
}

/// A folder of the code that a run moved away and left a link to is not the run's: nothing in it is
/// touched.
#[test]
fn nothing_is_removed_behind_a_link() {
    let lab = Lab::shared();
    lab.home.write("data/a.txt", "precious\n");
    lab.home.write(
        "link.sh",
        "rm -rf \"$HOME/moved\"; mv data \"$HOME/moved\"; ln -s \"$HOME/moved\" data\n",
    );
    let id = lab.tow(["submit", "sh", "link.sh"]).ok().id();
    assert_eq!(lab.ended(&id)["state"], "succeeded");
    until("its code to be gone", || {
        (!lab.far(&id).join("code/link.sh").exists()).then_some(())
    });
    assert_eq!(
        fs::read_to_string(lab.slurm().home("alice").join("moved/a.txt")).unwrap(),
        "precious\n"
    );
    fs::remove_dir_all(lab.slurm().home("alice").join("moved")).unwrap();
}

#[test]
fn retries_have_their_code_and_a_killed_run_leaves_none() {
    let lab = Lab::own(&Options {
        nodes: 1,
        ..Options::default()
    });
    lab.home
        .write("train.sh", "test $TOW_ATTEMPT = 2 || exit 3\n");
    let id = lab.home.submit_file(
        "retry: {when: [exit_code], max: 2}\nscript: sh train.sh\n",
        &[],
    );
    assert_eq!(
        lab.ended(&id)["state"],
        "succeeded",
        "the second attempt had its code"
    );
    until("its code to be gone", || {
        (!lab.far(&id).join("code/train.sh").exists()).then_some(())
    });
    // Killed without a word: the next site sees to it.
    let killed = lab.tow(["submit", "sleep", "1000"]).ok().id();
    lab.until_state(&killed, "running");
    lab.slurm().root("c1", ["pkill", "-KILL", "-f", "__head"]);
    lab.ended(&killed);
    assert!(lab.far(&killed).join("code/train.sh").exists());
    lab.tow(["daemon", "stop"]).ok();
    let next = lab.tow(["submit", "sleep", "1000"]).ok().id();
    until("the next site to remove it", || {
        (!lab.far(&killed).join("code/train.sh").exists()).then_some(())
    });
    lab.until_state(&next, "running");
    assert!(
        lab.far(&next).join("code/train.sh").exists(),
        "what runs has its code"
    );
}

/// Until a prune of runs that ended a second ago would take it.
fn until_old(lab: &Lab, run: &str) {
    until("it to be old enough", || {
        lab.tow(["prune", "--older-than", "1s"])
            .stdout
            .contains(run)
            .then_some(())
    });
}

#[test]
fn snapshots_that_no_submission_names_go() {
    let lab = Lab::own(&Options {
        nodes: 1,
        ..Options::default()
    });
    lab.home.write("old.txt", "of an old run\n");
    let old = lab.tow(["submit", "true"]).ok().id();
    lab.ended(&old);
    lab.home.write("old.txt", "of a new run\n");
    let kept = lab
        .home
        .submit_file("resources: {native: [--hold]}\nscript: cat old.txt\n", &[]);
    let store = lab.stage().join("snapshots");
    assert_eq!(files(&store.join("snapshots")).len(), 2);
    let age = |path: &Path| {
        let file = fs::File::open(path).unwrap();
        file.set_modified(
            file.metadata().unwrap().modified().unwrap() - Duration::from_secs(3 * 86_400),
        )
        .unwrap();
    };
    for path in files(&store) {
        age(&path);
    }
    until_old(&lab, &old);
    let pruned = lab.tow(["prune", "--older-than", "1s", "--yes"]).ok();
    assert!(pruned.stdout.contains(&old), "{pruned:?}");
    until("the snapshot of the old run to go", || {
        (files(&store.join("snapshots")).len() == 1).then_some(())
    });
    let job = lab.job_of(&kept);
    lab.scontrol(&format!("release {job}"));
    lab.ended(&kept);
    assert_eq!(
        lab.tow(["logs", &kept]).ok().stdout,
        "of a new run\n",
        "what a submission names stays"
    );
    // The same code again is brought again.
    lab.home.write("old.txt", "of an old run\n");
    assert_eq!(
        lab.tow(["run", "cat", "old.txt"]).ok().stdout,
        "of an old run\n"
    );
}

#[test]
fn a_stage_folder_that_was_removed_is_made_again() {
    let lab = Lab::own(&Options {
        nodes: 1,
        ..Options::default()
    });
    lab.home.write("a.txt", "here\n");
    let (lost, cancelled) = (
        lab.tow(["submit", "sleep", "1000"]).ok().id(),
        lab.tow(["submit", "sleep", "1000"]).ok().id(),
    );
    lab.until_state(&lost, "running");
    lab.until_state(&cancelled, "running");
    fs::remove_dir_all(lab.stage()).unwrap();
    lab.tow(["abort", &cancelled]).ok();
    assert_eq!(
        lab.tow(["run", "cat", "a.txt"]).ok().stdout,
        "here\n",
        "the next submission goes through"
    );
    assert_eq!(lab.ended(&cancelled)["state"], "cancelled");
    assert_eq!(
        lab.ended(&lost)["state"],
        "lost",
        "nobody will ever know how it ended"
    );
    lab.assert_no_jobs();
}

#[test]
fn runs_of_a_cluster_that_cannot_be_reached_stay_unless_they_are_abandoned() {
    let lab = Lab::shared();
    let id = lab.tow(["submit", "true"]).ok().id();
    lab.ended(&id);
    let config = lab.home.path("nowhere_config");
    fs::write(&config, "Host login\n  HostName 127.0.0.1\n  Port 1\n").unwrap();
    lab.configure_host("login", &config, "");
    until_old(&lab, &id);
    let pruned = lab.tow(["prune", "--older-than", "1s", "--yes"]).ok();
    assert!(
        pruned.stderr.contains("`lab` cannot be told") && pruned.stderr.contains("--abandon"),
        "{pruned:?}"
    );
    assert_eq!(lab.home.state_of(&id), "succeeded", "it is still known");
    assert!(lab.far(&id).exists());
    let abandoned = lab
        .tow(["prune", "--older-than", "1s", "--yes", "--abandon"])
        .ok();
    assert!(
        abandoned.stdout.contains(&id) && abandoned.stderr.contains("stays there"),
        "{abandoned:?}"
    );
    assert_eq!(lab.tow(["show", &id]).code, 122);
}

/// Of uploads that were cut off, and of a controller that was killed and came back with what it had
/// written down before.
#[test]
fn what_nobody_wants_any_more_goes_when_the_cluster_is_next_looked_at() {
    let lab = Lab::own(&Options {
        nodes: 1,
        gpus: 0,
        ..Options::default()
    });
    let id = lab.tow(["submit", "true"]).ok().id();
    lab.ended(&id);
    let folder = lab.stage().join("bin");
    let program = fs::read_dir(&folder)
        .unwrap()
        .flatten()
        .map(|entry| entry.path())
        .next()
        .unwrap();
    let (cut, coming) = (folder.join(".tow-cut"), folder.join(".tow-coming"));
    for part in [&cut, &coming] {
        fs::copy(&program, part).unwrap();
    }
    let days_ago =
        fs::metadata(&cut).unwrap().modified().unwrap() - Duration::from_secs(3 * 86_400);
    fs::File::options()
        .write(true)
        .open(&cut)
        .unwrap()
        .set_modified(days_ago)
        .unwrap();
    let (unwanted, own) = (
        lab.occupant("alice", &["--hold", "--job-name", &id]),
        lab.occupant("alice", &["--hold", "--job-name", "own"]),
    );
    assert!(
        lab.jobs_of(&id)
            .iter()
            .any(|row| row[0] == unwanted && row[3] == "PENDING"),
        "{}",
        lab.queue()
    );
    lab.tow(["daemon", "stop"]).ok();
    lab.tow(["run", "true"]).ok();
    until("what was cut off to be gone", || {
        (!cut.exists()).then_some(())
    });
    let waits = |name: &str, job: &str| {
        lab.jobs_of(name)
            .iter()
            .any(|row| row[0] == job && row[3] == "PENDING")
    };
    until("the job of an ended run to be gone", || {
        (!waits(&id, &unwanted)).then_some(())
    });
    assert!(coming.exists(), "an upload under way is not cut off");
    assert!(
        waits("own", &own),
        "a job that is none of ours stays: {}",
        lab.queue()
    );
}
