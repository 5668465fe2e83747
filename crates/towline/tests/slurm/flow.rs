//! The life of a run: code, ranks, ends, and what the verbs say of it.

use crate::lab::{Lab, holding, together, until_within};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};
use towline_testkit::until;

#[test]
fn a_command_runs_with_its_code_and_passes_its_code_on() {
    let lab = Lab::shared();
    lab.home.write("train.py", "print('frozen')\n");
    let ran = lab.tow(["run", "sh", "-c", "cat train.py; exit 7"]);
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (7, "print('frozen')\n"),
        "{ran:?}"
    );
}

/// A run may end just after a client has read that it runs; asking for a fresh look is no mistake.
#[test]
fn a_run_that_has_just_ended_can_be_looked_at_anew() {
    let lab = Lab::shared();
    let id = lab.tow(["submit", "true"]).ok().id();
    assert_eq!(lab.ended(&id)["state"], "succeeded");
    let run = towline_core::RunId::try_from(id).unwrap();
    let look = || towline_wire::daemon::Request::Refresh { run: run.clone() };
    towline_client::ask(&lab.home.state(), &look).unwrap();
}

const TELL: &str = "
name: ranks
launch: per_gpu
resources: {nodes: 3, gpus_per_node: 2, time: 5m}
environment:
  setup: ['echo set-up on $(hostname) for node $NODE_RANK']
script: |
  for name in RANK LOCAL_RANK NODE_RANK GROUP_RANK WORLD_SIZE LOCAL_WORLD_SIZE MASTER_ADDR \
      MASTER_PORT OMPI_COMM_WORLD_RANK AZ_BATCH_HOST_LIST CUDA_VISIBLE_DEVICES TOW_ATTEMPT \
          TOW_RUN_ID; do
    eval echo \"$name=\\$$name\"
  done
  echo HOST=$(hostname)
";

#[test]
fn three_nodes_of_two_gpus_have_six_ranks_that_know_each_other() {
    let lab = Lab::shared();
    let id = lab.home.submit_file(TELL, &[]);
    assert_eq!(
        lab.ended(&id)["state"],
        "succeeded",
        "{}",
        lab.tow(["why", &id]).stdout
    );
    let mut told: Vec<BTreeMap<String, String>> = Vec::new();
    for rank in 0..6 {
        let text = lab
            .tow(["logs", &id, "--rank", &rank.to_string()])
            .ok()
            .stdout;
        told.push(
            text.lines()
                .filter_map(|line| line.split_once('='))
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
        );
    }
    let hosts: Vec<&str> = told[0]["AZ_BATCH_HOST_LIST"].split(',').collect();
    assert_eq!(hosts.len(), 3);
    for (rank, of) in told.iter().enumerate() {
        let node = rank / 2;
        let wanted = [
            ("RANK", rank.to_string()),
            ("OMPI_COMM_WORLD_RANK", rank.to_string()),
            ("LOCAL_RANK", (rank % 2).to_string()),
            ("NODE_RANK", node.to_string()),
            ("GROUP_RANK", node.to_string()),
            ("WORLD_SIZE", "6".to_owned()),
            ("LOCAL_WORLD_SIZE", "2".to_owned()),
            ("MASTER_ADDR", hosts[0].to_owned()),
            ("MASTER_PORT", told[0]["MASTER_PORT"].clone()),
            ("AZ_BATCH_HOST_LIST", hosts.join(",")),
            ("HOST", hosts[node].to_owned()),
            ("TOW_ATTEMPT", "1".to_owned()),
            ("TOW_RUN_ID", id.clone()),
        ];
        for (name, value) in wanted {
            assert_eq!(of[name], value, "{name} of rank {rank}: {of:?}");
        }
        let gpus: Vec<u32> = of["CUDA_VISIBLE_DEVICES"]
            .split(',')
            .map(|gpu| gpu.parse().unwrap())
            .collect();
        assert!(
            gpus.len() == 2 && gpus[0] != gpus[1] && gpus.iter().all(|gpu| *gpu < 4),
            "rank {rank}: {gpus:?}"
        );
        assert_eq!(
            of["CUDA_VISIBLE_DEVICES"],
            told[node * 2]["CUDA_VISIBLE_DEVICES"],
            "all ranks of a node see its GPUs"
        );
    }
    for (node, host) in hosts.iter().enumerate() {
        let set_up = lab
            .tow(["logs", &id, "--setup", &node.to_string()])
            .ok()
            .stdout;
        assert_eq!(set_up, format!("set-up on {host} for node {node}\n"));
    }
    let shown = lab.home.show(&id);
    assert_eq!(
        (shown["nodes"].as_u64(), shown["ranks"].as_u64()),
        (Some(3), Some(6)),
        "{shown}"
    );
}

#[test]
fn one_failing_node_ends_the_others_and_is_named() {
    let lab = Lab::shared();
    let id = lab.home.submit_file(
        "resources: {nodes: 3}\nscript: |\n  if [ $RANK = 2 ]; then exit 9; fi\n  sleep 500\n",
        &[],
    );
    let ended = lab.ended(&id);
    assert_eq!(
        (
            ended["state"].as_str(),
            ended["exit_code"].as_i64(),
            ended["reason"].as_str()
        ),
        (Some("failed"), Some(9), Some("exit_code")),
        "{ended}"
    );
    let why = lab.tow(["why", &id, "--json"]).ok().json();
    assert_eq!(why["first_failing_rank"], 2, "{why}");
    assert_eq!(lab.tow(["wait", &id]).code, 9);
}

#[test]
fn set_up_that_fails_is_the_end_and_its_words_are_kept() {
    let lab = Lab::shared();
    let id = lab.home.submit_file(
        "environment: {setup: ['echo no such package >&2; exit 3']}\nscript: echo never\n",
        &[],
    );
    let ended = lab.ended(&id);
    assert_eq!(
        (ended["state"].as_str(), ended["reason"].as_str()),
        (Some("failed"), Some("set_up")),
        "{ended}"
    );
    assert_eq!(
        lab.tow(["logs", &id, "--setup"]).ok().stdout,
        "no such package\n"
    );
    assert_eq!(lab.tow(["logs", &id]).ok().stdout, "");
}

#[test]
fn codes_and_signals_are_passed_on() {
    let lab = Lab::shared();
    let ends = [
        ("true", 0, "succeeded", None),
        ("exit 120", 120, "failed", Some("exit_code")),
        ("kill -9 $$", 137, "failed", Some("signal")),
    ];
    for (script, code, state, reason) in ends {
        let ran = lab.tow(["run", "sh", "-c", script]);
        assert_eq!(ran.code, code, "{ran:?}");
        let shown = lab.home.show("@");
        assert_eq!(
            (shown["state"].as_str(), shown["reason"].as_str()),
            (Some(state), reason),
            "{shown}"
        );
    }
}

#[test]
fn words_arrive_as_they_were_given() {
    let lab = Lab::shared();
    let words = [
        "a b",
        "",
        "$HOME",
        "'\"\\",
        "line\nbreak",
        "*",
        "-x",
        "#SBATCH --nodes=9",
        "%j ünï",
    ];
    let ran = lab.tow(["run", "printf", "[%s]"].into_iter().chain(words));
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(ran.stdout, words.map(|word| format!("[{word}]")).concat());
}

#[test]
fn the_job_has_what_its_file_names_and_not_what_the_laptop_had() {
    let lab = Lab::shared();
    let ran = lab
        .home
        .command([
            "run",
            "--env",
            "NAMED=is there",
            "sh",
            "-c",
            "echo \"$NAMED|$UNNAMED|$HOME|$(id -un)\"",
        ])
        .env("UNNAMED", "leak")
        .output()
        .unwrap();
    assert_eq!(
        String::from_utf8_lossy(&ran.stdout),
        "is there||/home/alice|alice\n",
        "{ran:?}"
    );
}

#[test]
fn secrets_reach_the_job_and_nothing_else() {
    let mut lab = Lab::shared();
    let canary = format!("canary-{}-{}", std::process::id(), "b7f3a1");
    lab.home.set("CANARY", &canary);
    let text = "name: secret\nenvironment: \
        {secrets: [CANARY], setup: ['printf %s \"$CANARY\" | wc -c']}\nscript: |\n  printf \
            %s \"$CANARY\" | md5sum\n  touch ~/secret-runs\n  until [ -e ~/secret-goes ]; do sleep \
                0.1; done\n";
    let id = lab.home.submit_file(text, &[]);
    Lab::until_exists(&lab.slurm().home("alice").join("secret-runs"));
    // While it runs it is in one file that nobody else can read.
    let kept = lab.stage().join("submissions").join(&id).join("secrets");
    assert_eq!(
        holding(&lab.slurm().home("alice"), canary.as_bytes()),
        std::slice::from_ref(&kept)
    );
    assert_eq!(
        fs::metadata(&kept).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let words: Vec<String> = fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| fs::read(entry.path().join("cmdline")).ok())
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .filter(|words| words.contains(&canary))
        .collect();
    assert_eq!(words, Vec::<String>::new(), "in the words of a process");
    let job = lab.job_of(&id);
    for words in [
        vec!["scontrol", "show", "job", "-dd", &job],
        vec!["sacct", "-j", &job, "--env-vars"],
        vec!["sacct", "-j", &job, "-B"],
    ] {
        let said = lab.slurm().root("ctl", words).ok();
        assert!(!said.stdout.contains(&canary), "{said:?}");
    }
    fs::write(lab.slurm().home("alice").join("secret-goes"), "").unwrap();
    assert_eq!(lab.ended(&id)["state"], "succeeded");
    let sum = std::process::Command::new("sh")
        .args(["-c", "printf %s \"$CANARY\" | md5sum"])
        .env("CANARY", &canary)
        .output()
        .unwrap();
    assert_eq!(lab.tow(["logs", &id]).ok().raw, sum.stdout);
    assert_eq!(
        lab.tow(["logs", &id, "--setup"]).ok().stdout.trim(),
        canary.len().to_string()
    );
    lab.home.unset("CANARY");
    until("the secrets to be gone over there", || {
        holding(&lab.slurm().home("alice"), canary.as_bytes())
            .is_empty()
            .then_some(())
    });
    assert_eq!(
        holding(&lab.home.path("state"), canary.as_bytes()),
        Vec::<std::path::PathBuf>::new()
    );
    for host in ["c1", "c2", "c3", "login"] {
        // What is put there on purpose is found, and nothing else.
        let planted = format!("/tmp/{canary}");
        lab.slurm()
            .root(
                host,
                ["sh", "-c", &format!("printf %s {canary} > {planted}")],
            )
            .ok();
        let left = lab
            .slurm()
            .root(host, ["grep", "-rlF", &canary, "/tmp", "/run", "/var"])
            .stdout;
        assert_eq!(left.trim(), planted, "on {host}");
        lab.slurm().root(host, ["rm", &planted]).ok();
    }
    // A resubmission reads them anew, and there is none now.
    let again = lab.tow(["resubmit", &id]);
    assert!(again.code == 121 || again.code == 123, "{again:?}");
    assert!(again.stderr.contains("CANARY"), "{again:?}");
}

#[test]
fn secrets_of_an_aborted_run_are_gone_too() {
    let mut lab = Lab::shared();
    let canary = format!("canary-{}-{}", std::process::id(), "c04d");
    lab.home.set("CANARY", &canary);
    // Before it starts, and while it runs.
    let held = lab.home.submit_file(
        "environment: {secrets: [CANARY]}\nresources: {native: [--hold]}\nscript: sleep 500\n",
        &[],
    );
    let running = lab
        .home
        .submit_file("environment: {secrets: [CANARY]}\nscript: sleep 500\n", &[]);
    lab.until_state(&running, "running");
    assert_eq!(
        holding(&lab.slurm().home("alice"), canary.as_bytes()).len(),
        2,
        "they are kept while they are needed"
    );
    lab.tow(["abort", &held, &running]).ok();
    for id in [&held, &running] {
        assert_eq!(lab.ended(id)["state"], "cancelled");
    }
    until_within(30, "the secrets to be gone", || {
        holding(&lab.slurm().home("alice"), canary.as_bytes())
            .is_empty()
            .then_some(())
    });
}

#[test]
fn files_of_a_run_come_back() {
    let lab = Lab::shared();
    lab.home.write(
        "sub/train.sh",
        "mkdir -p out/deep; printf 'a\\000b' > out/deep/model.bin; echo 1 > 'out/with space'; ln \
            -s deep out/link; chmod 700 out/deep/model.bin\n",
    );
    let id = lab.home.submit_file(
        "name: files\ncode: {workdir: sub}\nscript: sh train.sh\n",
        &[],
    );
    assert_eq!(lab.ended(&id)["state"], "succeeded");
    lab.tow(["get", &id, "out", "--to", "got"]).ok();
    assert_eq!(
        fs::read(lab.home.project().join("got/out/deep/model.bin")).unwrap(),
        b"a\0b"
    );
    assert_eq!(
        fs::metadata(lab.home.project().join("got/out/deep/model.bin"))
            .unwrap()
            .permissions()
            .mode()
            & 0o777,
        0o700
    );
    assert_eq!(lab.home.read("got/out/with space"), "1\n");
    assert_eq!(
        fs::read_link(lab.home.project().join("got/out/link"))
            .unwrap()
            .to_str(),
        Some("deep")
    );
    let none = lab.tow(["get", &id, "nothing"]);
    assert_eq!(none.code, 122, "{none:?}");
    // Out of the run's folder leads no way.
    for path in [
        "../../../.ssh/authorized_keys",
        "/etc/passwd",
        "out/../../../../../.ssh",
    ] {
        let refused = lab.tow(["get", &id, path, "--to", "stolen"]);
        assert!(
            matches!(refused.code, 120 | 122 | 123) && !lab.home.project().join("stolen").exists(),
            "{path}: {refused:?}"
        );
    }
    let shown = lab.tow(["show", &id]).ok().stdout;
    assert!(
        shown.contains("/home/alice/.towline/runs/"),
        "where it lies: {shown}"
    );
    let queried = lab.tow(["query", &id]).ok();
    assert!(
        lab.home
            .project()
            .join(format!("assets/{id}/attempt-1.rank-0.log"))
            .exists(),
        "{queried:?}"
    );
    let listed = lab.tow(["ps", "--json", "--cluster", "lab"]).ok().json();
    assert_eq!(listed["runs"][0]["id"], id.as_str());
    assert_eq!(listed["runs"][0]["cluster"], "lab");
}

#[test]
fn a_resubmission_has_the_code_that_was_submitted() {
    let lab = Lab::shared();
    lab.home.write("train.sh", "echo first\n");
    let id = lab
        .tow(["submit", "--name", "frozen", "sh", "train.sh"])
        .ok()
        .id();
    // Changed before it can have started, and again after.
    lab.home.write("train.sh", "echo second\n");
    assert_eq!(lab.ended(&id)["state"], "succeeded");
    assert_eq!(lab.tow(["logs", &id]).ok().stdout, "first\n");
    let again = lab.tow(["resubmit", &id]).ok().id();
    lab.ended(&again);
    assert_eq!(lab.tow(["logs", &again]).ok().stdout, "first\n");
    let latest = lab.tow(["resubmit", &id, "--latest-code"]).ok().id();
    lab.ended(&latest);
    assert_eq!(lab.tow(["logs", &latest]).ok().stdout, "second\n");
    let same = lab.tow(["diff", &id, &again]).ok().stdout;
    assert!(!same.contains("second"), "{same}");
    let different = lab.tow(["diff", &id, &latest]).ok().stdout;
    assert!(
        different.contains("-echo first") && different.contains("+echo second"),
        "{different}"
    );
    // The same tree on another cluster, and back.
    let here = lab.tow(["resubmit", &id, "--to", "local"]).ok().id();
    lab.ended(&here);
    assert_eq!(lab.tow(["logs", &here]).ok().stdout, "first\n");
    let back = lab.tow(["resubmit", &here, "--to", "lab"]).ok().id();
    lab.ended(&back);
    assert_eq!(lab.tow(["logs", &back]).ok().stdout, "first\n");
    assert_eq!(lab.home.show(&back)["cluster"], "lab");
}

#[test]
fn an_abort_reaches_ranks_that_do_not_want_to_end() {
    let lab = Lab::shared();
    let id = lab.home.submit_file(
        "resources: {nodes: 2}\nscript: |\n  trap 'echo told' \
        TERM\n  echo $$ \n  while :; do sleep 0.2; done\n",
        &[],
    );
    let log = lab.far(&id).join("attempt-1.rank-1.log");
    Lab::until_text(&log);
    Lab::until_text(&lab.far(&id).join("attempt-1.rank-0.log"));
    let alive = |host: &str| {
        lab.slurm()
            .root(
                host,
                [
                    "sh",
                    "-c",
                    &format!("grep -lz TOW_RUN_ID={id} /proc/[0-9]*/environ 2>/dev/null"),
                ],
            )
            .stdout
    };
    assert_eq!(
        ["c1", "c2", "c3"]
            .iter()
            .filter(|host| !alive(host).is_empty())
            .count(),
        2,
        "what runs is seen on its two nodes"
    );
    lab.tow(["abort", &id]).ok();
    let ended = lab.ended(&id);
    assert_eq!(
        (ended["state"].as_str(), ended["exit_code"].as_i64()),
        (Some("cancelled"), Some(143)),
        "{ended}"
    );
    assert!(
        fs::read_to_string(&log).unwrap().contains("told"),
        "it had its grace"
    );
    assert_eq!(lab.tow(["wait", &id]).code, 143);
    let job = lab.job_of(&id);
    until("Slurm to be done with it", || {
        lab.slurm()
            .root("login", ["squeue", "-h", "-j", &job])
            .stdout
            .is_empty()
            .then_some(())
    });
    for host in ["c1", "c2", "c3"] {
        assert_eq!(alive(host), "", "something of it lives on {host}");
    }
}

#[test]
fn a_run_that_waits_is_aborted_without_a_start() {
    let lab = Lab::shared();
    let id = lab
        .home
        .submit_file("resources: {native: [--hold]}\nscript: echo never\n", &[]);
    lab.until_state(&id, "queued");
    let doctor = lab.tow(["doctor"]).stdout;
    assert!(
        doctor
            .lines()
            .any(|line| line.starts_with("daemon ") && line.ends_with(", 1 queued, 0 running")),
        "runs of all clusters count: {doctor}"
    );
    let begun = Instant::now();
    lab.tow(["abort", "--wait", &id]).ok();
    assert!(
        begun.elapsed() < Duration::from_secs(10),
        "its end is told after {:?}",
        begun.elapsed()
    );
    let ended = lab.ended(&id);
    assert_eq!(
        (ended["state"].as_str(), ended["attempt"].as_u64()),
        (Some("cancelled"), Some(0)),
        "{ended}"
    );
    let jobs = lab.jobs_of(&id);
    assert!(jobs.len() == 1 && jobs[0][3] == "CANCELLED", "{jobs:?}");
}

#[test]
fn cancels_of_what_waits_are_seen() {
    together(&[
        a_cancel_on_the_cluster_is_seen,
        crate::hostile::one_waiting_run_of_an_array_is_aborted_and_the_others_go_on,
    ]);
}

fn a_cancel_on_the_cluster_is_seen() {
    let lab = Lab::shared();
    let id = lab.home.submit_file("script: sleep 500\n", &[]);
    lab.until_state(&id, "running");
    lab.slurm()
        .exec("login", "alice", ["scancel", &lab.job_of(&id)])
        .ok();
    let ended = lab.ended(&id);
    assert_eq!(ended["state"], "cancelled", "{ended}");
    let held = lab
        .home
        .submit_file("resources: {native: [--hold]}\nscript: echo never\n", &[]);
    lab.until_state(&held, "queued");
    lab.slurm()
        .exec("login", "alice", ["scancel", &lab.job_of(&held)])
        .ok();
    let begun = Instant::now();
    assert_eq!(lab.ended(&held)["state"], "cancelled");
    // At the next question; nothing that had no node is waited for.
    assert!(
        begun.elapsed() < Duration::from_secs(15),
        "told after {:?}",
        begun.elapsed()
    );
}

#[test]
fn a_plan_is_shown_and_nothing_is_sent() {
    let lab = Lab::shared();
    lab.home.write(
        "job.yaml",
        "resources: {location: [eastus], instance_type: h200}\ncommand: 'true'\n",
    );
    let shown = lab
        .tow([
            "submit",
            "--dry-run",
            "--name",
            "dry-run-only",
            "-n",
            "2",
            "--time",
            "90s",
            "-f",
            "job.yaml",
        ])
        .ok();
    let (told, script) = shown
        .stdout
        .split_once("\n#!/bin/sh\n")
        .expect("a script after the rest");
    for line in [
        "#SBATCH --gres=gpu:h200:2",
        "#SBATCH --time=00:02:00",
        "#SBATCH --qos=standard",
    ] {
        assert!(script.contains(line), "{line} in {script}");
    }
    assert!(
        script
            .trim_end()
            .ends_with(shown.stdout.split_whitespace().nth(2).unwrap()),
        "nothing follows the script: {script}"
    );
    let size = format!("code      1 file, 69 from {}", lab.home.project().display());
    for line in [
        "to `lab` (slurm)",
        "starts    true",
        &size,
        "takes     1 CPU, 2 GPUs",
        "at most   1m30s",
        "`lab` has no use for `resources.location`\n",
    ] {
        assert!(told.contains(line), "{line} in {told}");
    }
    assert!(!lab.queue().contains("dry-run-only"));
    assert_eq!(
        lab.tow(["ps", "--json"]).ok().json()["runs"]
            .as_array()
            .unwrap()
            .len(),
        0
    );
}
