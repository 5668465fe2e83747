//! Places and habits that are in the way: talkative shells, odd names, settings of the user's own,
//! ends at bad moments.

use crate::lab::{Lab, until_within};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use towline_testkit::real::slurm::Options;
use towline_testkit::until;

#[test]
fn a_talkative_shell_and_settings_of_the_users_own_change_nothing() {
    let lab = Lab::own(&Options {
        nodes: 2,
        ..Options::default()
    });
    let lines = "echo Welcome to the cluster; printf '\\000\\001tow-site'; echo noise >&2\n\
        export SBATCH_PARTITION=debug SBATCH_TIMELIMIT=1 SBATCH_JOB_NAME=mine \
            SBATCH_OUTPUT=/nowhere/x SBATCH_HOLD=1 SBATCH_ARRAY_INX=1-9 SBATCH_NO_REQUEUE=1\n\
        export SQUEUE_FORMAT=%i SQUEUE_STATES=CG SQUEUE_USERS=bob SACCT_FORMAT=jobid \
            SINFO_FORMAT=%n SLURM_TIME_FORMAT=relative SLURM_CLUSTERS=towtest\n\
        export SBATCH_QOS=premium TZ=Asia/Tokyo\n";
    fs::write(lab.slurm().home("alice").join(".bashrc"), lines).unwrap();
    let place = "/home/alice/a stage (mine) & it's";
    // The character that ends a word of a shell is refused, the rest is not.
    lab.configure(&format!(
        ", partition: main, stage: \"{}\"",
        place.replace("it's", "its")
    ));
    lab.home.write(
        "job.yaml",
        "name: 'odd \"name\" $(x) %j'\nresources: \
        {nodes: 2, time: 20m}\nscript: echo $RANK $WORLD_SIZE $CUDA_VISIBLE_DEVICES $SLURM_JOB_QOS \
            $SLURM_JOB_PARTITION\n",
    );
    let id = lab.tow(["submit", "-f", "job.yaml"]).ok().id();
    let ended = lab.ended(&id);
    assert_eq!(ended["state"], "succeeded", "{ended}");
    assert_eq!(lab.tow(["logs", &id]).ok().stdout, "0 2 standard main\n");
    // The database hears of it a little later.
    let known = || {
        lab.slurm()
            .root(
                "ctl",
                [
                    "sacct",
                    "-a",
                    "-X",
                    "-n",
                    "-P",
                    "-o",
                    "JobName,Timelimit,QOS,Partition",
                ],
            )
            .ok()
            .stdout
    };
    let known = until("it to be in the database", || {
        Some(known()).filter(|known| !known.is_empty())
    });
    assert_eq!(known.trim(), format!("{id}|00:20:00|standard|main"));
    let sweep = lab
        .tow(["submit", "--sweep", "i=1-3", "sh", "-c", "echo ${{i}}"])
        .ok()
        .id();
    for number in 1..=3 {
        let run = format!("{sweep}-{number}");
        assert_eq!(lab.ended(&run)["state"], "succeeded");
        assert_eq!(lab.tow(["logs", &run]).ok().stdout, format!("{number}\n"));
    }
}

#[test]
fn files_with_odd_names_travel() {
    let lab = Lab::shared();
    let names: [&[u8]; 4] = [
        b"with space",
        b"quote'\"$x",
        b"line\nbreak",
        b"not-utf8-\xff\xfe",
    ];
    for name in names {
        fs::write(lab.home.project().join(OsStr::from_bytes(name)), name).unwrap();
    }
    let tool = lab.home.write(
        "bin/tool",
        "#!/bin/sh\nls | wc -l; cat ./*quote* './with space'\n",
    );
    fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).unwrap();
    let ran = lab.tow(["run", "--name", "odd", "bin/tool"]);
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (0, "6\nquote'\"$xwith space"),
        "{ran:?}"
    );
}

#[test]
fn an_abort_right_after_the_submission_leaves_nothing() {
    let lab = Lab::shared();
    let ids: Vec<String> = (0..6)
        .map(|_| {
            lab.tow(["submit", "--name", "brief", "sh", "-c", "sleep 500"])
                .ok()
                .id()
        })
        .collect();
    for id in &ids {
        lab.tow(["abort", id]).ok();
    }
    for id in &ids {
        assert_eq!(lab.ended(id)["state"], "cancelled");
    }
    for id in &ids {
        until("Slurm to be done with it", || {
            lab.jobs_of(id)
                .iter()
                .all(|row| !["PENDING", "RUNNING", "COMPLETING"].contains(&row[3].as_str()))
                .then_some(())
        });
    }
}

pub(crate) fn one_waiting_run_of_an_array_is_aborted_and_the_others_go_on() {
    let lab = Lab::shared();
    let text = "name: part\nresources: {native: [--hold]}\nsweep: {i: 1-3}\nscript: echo ${{i}}\n";
    let sweep = lab.home.submit_file(text, &[]);
    let id = |number: u32| format!("{sweep}-{number}");
    lab.until_state(&id(2), "queued");
    lab.tow(["abort", &id(2)]).ok();
    assert_eq!(lab.ended(&id(2))["state"], "cancelled");
    assert_eq!(lab.home.state_of(&id(1)), "queued");
    let array = lab.jobs_of(&sweep)[0][1].clone();
    lab.slurm()
        .exec("login", "alice", ["scontrol", "release", &array])
        .ok();
    for number in [1, 3] {
        assert_eq!(lab.ended(&id(number))["state"], "succeeded");
        assert_eq!(
            lab.tow(["logs", &id(number)]).ok().stdout,
            format!("{number}\n")
        );
    }
    assert!(
        !lab.far(&id(2)).join("attempt-1.claim").exists()
            && lab.far(&id(1)).join("attempt-1.claim").exists()
    );
}

#[test]
fn what_a_rank_leaves_behind_ends_with_the_run() {
    let lab = Lab::shared();
    let ran = lab.tow([
        "run",
        "--name",
        "leaver",
        "sh",
        "-c",
        "setsid sleep 4321 >/dev/null 2>&1 & echo left",
    ]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "left\n"), "{ran:?}");
    for host in ["c1", "c2", "c3"] {
        // It leaves with 1 where it finds nobody, and with more where it cannot look.
        let left = lab.slurm().root(host, ["pgrep", "-f", "sleep 4321"]);
        assert_eq!((left.code, left.stdout.as_str()), (1, ""), "on {host}");
    }
}

#[test]
fn nodes_are_held_after_a_failure_and_let_go() {
    let lab = Lab::shared();
    let id = lab
        .tow([
            "submit",
            "--name",
            "held",
            "--hold-on-failure",
            "1h",
            "sh",
            "-c",
            "exit 4",
        ])
        .ok()
        .id();
    until_within(60, "it to be held", || {
        (!lab.home.show(&id)["held_until"].is_null()).then_some(())
    });
    assert!(
        lab.jobs_of(&id).iter().any(|row| row[3] == "RUNNING"),
        "its nodes are kept"
    );
    let why = lab.tow(["why", &id]).ok().stdout;
    assert!(why.contains("tow ssh"), "{why}");
    lab.tow(["abort", &id]).ok();
    let ended = lab.ended(&id);
    assert_eq!(
        (ended["state"].as_str(), ended["exit_code"].as_i64()),
        (Some("failed"), Some(4)),
        "how it failed counts: {ended}"
    );
    until("its nodes to be let go", || {
        lab.jobs_of(&id)
            .iter()
            .all(|row| row[3] != "RUNNING")
            .then_some(())
    });
}

#[test]
fn a_controller_that_is_away_is_not_an_ending() {
    let lab = Lab::own(&Options {
        nodes: 1,
        ..Options::default()
    });
    let running = lab.home.submit_file(
        "script: |\n  until [ -e ~/goes ]; do sleep 0.1; done\n  echo done\n",
        &[],
    );
    lab.until_state(&running, "running");
    lab.slurm().kill_service("ctl", "slurmctld");
    fs::write(lab.slurm().home("alice").join("goes"), "").unwrap();
    // Its own word counts, whoever is away.
    assert_eq!(lab.ended(&running)["state"], "succeeded");
    assert_eq!(lab.tow(["logs", &running]).ok().stdout, "done\n");
    // What is submitted now waits for the controller, or is said not to be known.
    let mut waiting = lab
        .home
        .spawn(["submit", "--name", "patient", "echo", "late"]);
    until_within(40, "it to be in the history", || {
        (lab.tow(["ps", "--json"]).ok().json()["runs"]
            .as_array()
            .unwrap()
            .len()
            == 2)
            .then_some(())
    });
    lab.slurm().start_service("ctl", "slurmctld");
    let _ = waiting.wait();
    let id = lab.home.show("@")["id"].as_str().unwrap().to_owned();
    assert_eq!(lab.ended(&id)["state"], "succeeded");
    assert_eq!(lab.tow(["logs", &id]).ok().stdout, "late\n");
    assert_eq!(lab.jobs_of(&id).len(), 1, "once: {}", lab.queue());
}

#[test]
fn what_a_link_out_of_the_run_leads_to_is_not_brought() {
    let lab = Lab::shared();
    let id = lab
        .tow([
            "submit",
            "ln -s /etc out; ln -s /etc/passwd file; mkdir real; echo in > \
        real/x; ln -s real inner",
        ])
        .ok()
        .id();
    assert_eq!(lab.ended(&id)["state"], "succeeded");
    for path in ["out", "out/passwd", "file"] {
        let refused = lab.tow(["get", &id, path]);
        assert_eq!(
            (refused.code, refused.stdout.as_str()),
            (123, ""),
            "{path}: {refused:?}"
        );
        assert!(
            refused.stderr.contains("outside the run's folder"),
            "{path}: {refused:?}"
        );
    }
    lab.tow(["get", &id, "inner/x"]).ok();
    assert_eq!(lab.home.read(&format!("assets/{id}/inner/x")), "in\n");
    // Nor is anything written here through a link that an earlier copy left.
    let outside = lab.home.path(&format!("outside-{id}"));
    fs::create_dir(&outside).unwrap();
    symlink(
        &outside,
        lab.home.project().join(format!("assets/{id}/real")),
    )
    .unwrap();
    for path in ["real", "real/x"] {
        let refused = lab.tow(["get", &id, path]);
        assert!(
            refused.code == 123 && refused.stderr.contains("is a link that leads out of"),
            "{path}: {refused:?}"
        );
    }
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
}

/// A site whose commands only a login shell finds: they lie in a folder that `/etc/profile.d` or a
/// module puts on the path.
#[test]
fn slurm_in_the_path_of_a_login_shell_alone_is_found_and_remembered() {
    let lab = Lab::own(&Options {
        nodes: 2,
        ..Options::default()
    });
    let home = lab.slurm().home("alice");
    // Everything but Slurm.
    let lay = "mkdir -p plain slurm; for f in /usr/bin/* /bin/*; do b=${f##*/}; case $b in \
        sbatch|squeue|scontrol|sinfo|sacct|srun|scancel|sacctmgr|sshare|salloc|sprio|sattach|sbcast|sstat|sdiag|strigger|sreport|scrontab) ln -sf $f slurm/$b;; \
        *) ln -sf $f plain/$b;; esac; done";
    lab.slurm()
        .exec("login", "alice", ["sh", "-c", &format!("cd; {lay}")])
        .ok();
    let plain = "export PATH=/home/alice/plain\n";
    for file in [".bashrc", ".profile"] {
        fs::write(home.join(file), plain).unwrap();
    }
    let refused = lab.tow(["submit", "true"]);
    assert!(
        refused.code == 123
            && refused.stderr.contains("no `s")
            && refused.stderr.contains("slurm_bin"),
        "{refused:?}"
    );
    lab.tow(["daemon", "stop"]).ok();
    fs::write(
        home.join(".bash_profile"),
        "echo Welcome; echo run >> /home/alice/asked; export \
        PATH=/home/alice/plain:/home/alice/slurm\n",
    )
    .unwrap();
    // Several nodes: `srun` is found on the first of them.
    let ran = lab
        .tow(["run", "--nodes", "2", "sh", "-c", "echo $RANK"])
        .ok();
    let mut lines: Vec<&str> = ran.stdout.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["[0] 0", "[1] 1"]);
    let held = lab.tow(["submit", "sleep", "1000"]).ok().id();
    lab.until_state(&held, "running");
    assert_eq!(
        lab.tow(["ssh", &held, "--", "echo", "inside"]).ok().stdout,
        "inside\n"
    );
    lab.tow(["daemon", "stop"]).ok();
    lab.tow(["abort", &held, "--wait"]).ok();
    assert_eq!(
        fs::read_to_string(home.join("asked"))
            .unwrap()
            .lines()
            .count(),
        1,
        "a login shell is asked once"
    );
    // Or the user says where they are.
    fs::remove_file(home.join(".bash_profile")).unwrap();
    fs::remove_file(lab.stage().join("slurm-environment")).unwrap();
    lab.configure(", slurm_bin: /home/alice/slurm");
    assert_eq!(lab.tow(["run", "echo", "named"]).ok().stdout, "named\n");
}

#[test]
fn a_suspended_job_is_shown_as_such() {
    let lab = Lab::own(&Options {
        nodes: 1,
        ..Options::default()
    });
    let id = lab.tow(["submit", "sleep", "1000"]).ok().id();
    lab.until_state(&id, "running");
    lab.scontrol(&format!("suspend {}", lab.job_of(&id)));
    until_within(60, "it to be shown", || {
        lab.tow(["ps"])
            .stdout
            .contains("running (suspended)")
            .then_some(())
    });
    lab.scontrol(&format!("resume {}", lab.job_of(&id)));
    until_within(60, "it to run on", || {
        (!lab.tow(["ps"]).stdout.contains("suspended")).then_some(())
    });
}
