//! What cannot be: said in plain words with the next step, by the documented code, and nothing is
//! left behind.

use crate::lab::{Lab, until_within};
use std::fs;
use std::path::PathBuf;
use towline_testkit::Output;
use towline_testkit::real::slurm::Options;

impl Lab {
    /// Refused with this code; the message holds these words, and neither a job nor a living run is
    /// left.
    #[track_caller]
    fn assert_refused(&self, refused: &Output, code: i32, words: &[&str]) {
        assert_eq!(refused.code, code, "{refused:?}");
        assert!(
            refused.stderr.starts_with("error: ") || refused.stderr.contains("\nerror: "),
            "{refused:?}"
        );
        for word in words {
            assert!(
                refused.stderr.contains(word),
                "no `{word}` in {}",
                refused.stderr
            );
        }
        for leak in ["panicked", "Os {", "os error", "RUST_BACKTRACE"] {
            assert!(!refused.stderr.contains(leak), "{}", refused.stderr);
        }
        let active = self.tow(["ps", "--state", "active", "--json"]).ok().json();
        assert_eq!(active["runs"].as_array().map(Vec::len), Some(0), "{active}");
        for run in self.tow(["ps", "--json"]).ok().json()["runs"]
            .as_array()
            .unwrap()
        {
            let id = run["id"].as_str().unwrap();
            // Slurm remembers some that it refused, as failed.
            let left: Vec<Vec<String>> = self
                .jobs_of(id)
                .into_iter()
                .filter(|row| (row[3].as_str(), row[4].as_str()) != ("FAILED", "BadConstraints"))
                .collect();
            assert_eq!(left, Vec::<Vec<String>>::new());
        }
    }
}

#[test]
fn what_the_cluster_has_not_is_refused_before_it_is_sent() {
    let lab = Lab::shared();
    let submit = |text: &str| {
        lab.home
            .write("job.yaml", &format!("{text}\nscript: echo never\n"));
        lab.tow(["submit", "-f", "job.yaml"])
    };
    lab.assert_refused(
        &submit("resources: {gpus_per_node: 5}"),
        123,
        &["5 GPUs per node", "more than 4", "hint:"],
    );
    lab.assert_refused(
        &submit("resources: {nodes: 4}"),
        123,
        &["4 nodes", "`main` has 3", "hint:"],
    );
    lab.assert_refused(
        &submit("resources: {time: 8d}"),
        123,
        &[
            "8d",
            "`main` allows 7d",
            "--time 7d",
            "retry: {when: [time_limit]}",
        ],
    );
    lab.assert_refused(
        &submit("resources: {cpus_per_node: 9}"),
        123,
        &["9 CPUs", "more than 8", "--cpus"],
    );
    lab.assert_refused(
        &submit("resources: {memory: 100G}"),
        123,
        &["100G", "--memory"],
    );
    lab.assert_refused(
        &submit("resources: {instance_type: h200}"),
        123,
        &["instance_type", "`h200`", "for none", "`-n`"],
    );
    lab.assert_refused(
        &submit("sweep: {i: 1-10001}"),
        123,
        &["10001 runs", "10000", "hint:"],
    );
    lab.assert_refused(
        &lab.tow(["submit", "-n", "5", "true"]),
        123,
        &["5 GPUs do not fill nodes of 4", "4 or 8"],
    );
    lab.configure(", partition: mian");
    lab.assert_refused(
        &submit(""),
        121,
        &["no partition `mian`", "did you mean `main`", "debug"],
    );
    lab.configure(", partition: debug");
    lab.assert_refused(
        &submit("resources: {time: 31m}"),
        123,
        &["31m", "`debug` allows 30m"],
    );
    // An option that is passed on as it is counts: the job does not go to `debug`.
    lab.assert_refused(
        &submit("resources: {time: 8d, native: ['-p main']}"),
        123,
        &["8d", "`main` allows 7d"],
    );
    lab.home.write(
        "job.yaml",
        "resources: {time: 31m, native: ['--partition=main']}\nscript: echo never\n",
    );
    lab.tow(["submit", "--dry-run", "-f", "job.yaml"]).ok();
    lab.configure(", tiers: {premum: {qos: x}}");
    lab.assert_refused(&submit(""), 121, &["premum", "did you mean `premium`"]);
    lab.configure(", stage: \"../x\"");
    lab.assert_refused(&submit(""), 121, &["stage"]);
    assert_eq!(
        lab.tow(["ps", "--json"]).ok().json()["runs"]
            .as_array()
            .map(Vec::len),
        Some(0),
        "nothing was ever submitted"
    );
}

#[test]
fn what_sbatch_refuses_is_told_in_plain_words() {
    let lab = Lab::shared();
    let submit = |text: &str| {
        lab.home
            .write("job.yaml", &format!("{text}\nscript: echo never\n"));
        lab.tow(["submit", "-f", "job.yaml"])
    };
    lab.assert_refused(
        &submit("resources: {native: [--partition=mian]}"),
        121,
        &["no partition `mian`", "did you mean `main`"],
    );
    lab.assert_refused(
        &submit("resources: {account: nobody}"),
        121,
        &["account", "nobody"],
    );
    lab.assert_refused(&submit("resources: {native: [--qos=nope]}"), 121, &["QOS"]);
    lab.assert_refused(
        &submit("resources: {native: [--frobnicate]}"),
        121,
        &["frobnicate", "resources.native"],
    );
    lab.assert_refused(
        &submit("resources: {native: [--constraint=nowhere]}"),
        121,
        &["feature"],
    );
    lab.assert_refused(
        &submit("resources: {native: ['--gres=gpu:h200:9']}"),
        123,
        &["GPUs", "tow nodes"],
    );
    lab.assert_refused(
        &submit("resources: {native: [--nodelist=c99]}"),
        121,
        &["node that does not exist", "tow nodes"],
    );
    lab.assert_refused(
        &submit("resources: {native: [--licenses=matlab]}"),
        121,
        &["licence"],
    );
    lab.assert_refused(
        &submit("resources: {native: [--reservation=none]}"),
        123,
        &["reservation"],
    );
    lab.configure(", tiers: {standard: {qos: nope}}");
    lab.assert_refused(&submit(""), 121, &["QOS `nope`", "hint:"]);
    // The same again in `tow run`, which would follow it.
    lab.assert_refused(&lab.tow(["run", "true"]), 121, &["QOS"]);
    // What it said stays with the run.
    let runs = lab.tow(["ps", "--json"]).ok().json();
    assert!(
        !runs["runs"].as_array().unwrap().is_empty(),
        "those that sbatch has refused"
    );
    for run in runs["runs"].as_array().unwrap() {
        assert_eq!(
            (run["state"].as_str(), run["reason"].as_str()),
            (Some("failed"), Some("rejected")),
            "{run}"
        );
    }
}

#[test]
fn a_limit_on_submissions_is_told_and_leaves_no_secret() {
    let mut lab = Lab::own(&Options {
        nodes: 1,
        ..Options::default()
    });
    lab.home.set("CANARY", "canary-in-a-refused-run");
    lab.slurm()
        .sacctmgr("modify user alice set MaxSubmitJobs=1");
    let held = lab
        .home
        .submit_file("resources: {native: [--hold]}\nscript: echo held\n", &[]);
    lab.home.write(
        "job.yaml",
        "environment: {secrets: [CANARY]}\nscript: echo never\n",
    );
    let refused = lab.tow(["submit", "-f", "job.yaml"]);
    assert_eq!(refused.code, 123, "{refused:?}");
    assert!(
        refused.stderr.contains("wait for some of your jobs to end"),
        "{refused:?}"
    );
    assert_eq!(
        crate::lab::holding(&lab.slurm().home("alice"), b"canary-in-a-refused-run"),
        Vec::<PathBuf>::new()
    );
    assert_eq!(
        crate::lab::holding(&lab.home.path("state"), b"canary-in-a-refused-run"),
        Vec::<PathBuf>::new()
    );
    assert_eq!(lab.home.state_of(&held), "queued", "the other is as it was");
    lab.tow(["abort", &held]).ok();
    lab.ended(&held);
}

#[test]
fn a_host_that_cannot_be_reached_is_told_apart_by_its_cause() {
    let lab = Lab::shared();
    let config = fs::read_to_string(lab.slurm().ssh_config()).unwrap();
    let folder = lab.slurm().folder().join("ssh");
    let other = |name: &str, text: &str| {
        let path = lab.home.path(name);
        fs::write(&path, text).unwrap();
        path
    };
    let tried = |host: &str, config: &PathBuf| {
        lab.configure_host(host, config, "");
        lab.tow(["submit", "true"])
    };
    let key = lab.home.path("wrong_key");
    assert!(
        std::process::Command::new("ssh-keygen")
            .args(["-q", "-t", "ed25519", "-N", "", "-f"])
            .arg(&key)
            .status()
            .unwrap()
            .success()
    );
    let wrong = other(
        "wrong_key_config",
        &config.replace(
            &folder.join("id_ed25519").display().to_string(),
            &key.display().to_string(),
        ),
    );
    lab.assert_refused(
        &tried("direct", &wrong),
        123,
        &["does not let you in", "wrong_key", "hint:"],
    );
    lab.assert_refused(
        &tried("login", &wrong),
        123,
        &["does not let you in", "hint:"],
    );

    let known = fs::read_to_string(folder.join("known_hosts")).unwrap();
    let (bastion, login) = (
        known.lines().find(|line| line.contains("bastion")).unwrap(),
        known.lines().find(|line| line.contains("login")).unwrap(),
    );
    let key_of = |line: &str| line.split_once(' ').unwrap().1.to_owned();
    let swapped = known.replace(&key_of(login), &key_of(bastion));
    let file = other("changed_known_hosts", &swapped);
    let changed = other(
        "changed_config",
        &config.replace(
            &folder.join("known_hosts").display().to_string(),
            &file.display().to_string(),
        ),
    );
    lab.assert_refused(
        &tried("direct", &changed),
        123,
        &["another host key", "ssh-keygen", "changed_known_hosts"],
    );

    let file = other("empty_known_hosts", "");
    let unknown = other(
        "unknown_config",
        &config.replace(
            &folder.join("known_hosts").display().to_string(),
            &file.display().to_string(),
        ),
    );
    lab.assert_refused(
        &tried("direct", &unknown),
        123,
        &["a key that is not known", "fingerprint"],
    );

    let real = lab.slurm().ssh_config();
    lab.assert_refused(
        &tried("no-such-host.invalid", &real),
        121,
        &["no host called `no-such-host.invalid`", "ssh configuration"],
    );
    let closed = other(
        "closed_config",
        &config.replace(&format!("Port {}", lab.slurm().port() + 1), "Port 1"),
    );
    lab.assert_refused(
        &tried("direct", &closed),
        125,
        &["refuses connections", "hint:"],
    );
    lab.assert_refused(
        &tried("login", &lab.home.path("no-config")),
        121,
        &["no-config"],
    );
}

#[test]
fn a_host_without_slurm_is_told() {
    let lab = Lab::own(&Options {
        nodes: 1,
        accounting: false,
        ..Options::default()
    });
    lab.slurm()
        .root(
            "bastion",
            [
                "sh",
                "-c",
                "rm /usr/bin/sbatch /usr/bin/scontrol /usr/bin/squeue /usr/bin/sinfo",
            ],
        )
        .ok();
    lab.configure_host("bastion", &lab.slurm().ssh_config(), "");
    lab.assert_refused(
        &lab.tow(["submit", "true"]),
        123,
        &["there is no `scontrol` on bastion", "`host`", "PATH"],
    );
    // Only `sbatch` is missing, which shows when it is too late to be checked before.
    lab.slurm().root("login", ["rm", "/usr/bin/sbatch"]).ok();
    lab.configure("");
    lab.assert_refused(
        &lab.tow(["submit", "true"]),
        123,
        &["there is no `sbatch` on ", "`host`"],
    );
}

#[test]
fn a_stage_that_cannot_be_used_is_told() {
    let lab = Lab::own(&Options {
        nodes: 1,
        ..Options::default()
    });
    let mount = |name: &str, options: &str| {
        let place = format!("/home/alice/{name}");
        lab.slurm().exec("login", "alice", ["mkdir", &place]).ok();
        lab.slurm()
            .root(
                "login",
                [
                    "mount",
                    "-t",
                    "tmpfs",
                    "-o",
                    &format!("{options},uid=20001,gid=20001,mode=0700"),
                    "none",
                    &place,
                ],
            )
            .ok();
    };
    let submit = |stage: &str| {
        lab.configure(&format!(", stage: {stage}"));
        lab.tow(["submit", "sh", "-c", "true"])
    };
    mount("tiny", "size=1m");
    lab.assert_refused(
        &submit("~/tiny/towline"),
        123,
        &["tiny/towline", "No space left", "hint:"],
    );
    mount("noexec", "noexec,size=100m");
    lab.assert_refused(&submit("~/noexec/towline"), 123, &["noexec"]);
    lab.slurm()
        .exec("login", "alice", ["mkdir", "-m", "500", "readonly"])
        .ok();
    lab.assert_refused(
        &submit("~/readonly/towline"),
        123,
        &["readonly/towline", "`stage`"],
    );
    lab.slurm().exec("login", "alice", ["touch", "file"]).ok();
    lab.assert_refused(&submit("~/file"), 123, &["file", "`stage`"]);
    // Room for the program, and not for the code.
    let size = fs::metadata(lab.home.binary()).unwrap().len() >> 20;
    mount("small", &format!("size={}m", size + 4));
    let noise = (0..2_000_000u64).flat_map(|number| {
        (number
            .wrapping_mul(number)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            >> 13)
            .to_le_bytes()
    });
    fs::write(
        lab.home.project().join("large.bin"),
        noise.collect::<Vec<u8>>(),
    )
    .unwrap();
    lab.assert_refused(
        &submit("~/small/towline"),
        123,
        &["no room left", "`stage`"],
    );
    lab.assert_no_jobs();
}

pub(crate) fn a_stage_that_nodes_do_not_share_is_told() {
    let lab = Lab::own(&Options {
        nodes: 1,
        ..Options::default()
    });
    lab.configure(", stage: /tmp/towline");
    let submitted = lab.tow(["submit", "--name", "unshared", "true"]);
    if submitted.code == 0 {
        let id = submitted.id();
        let ended = until_within(90, "its end", || {
            Some(lab.home.show(&id)).filter(|shown| !shown["ended"].is_null())
        });
        assert_eq!(
            (ended["state"].as_str(), ended["reason"].as_str()),
            (Some("failed"), Some("not_started")),
            "{ended}"
        );
        let why = lab.tow(["why", &id]).ok().stdout;
        assert!(why.contains("stage") && why.contains("share"), "{why}");
    } else {
        lab.assert_refused(&submitted, 123, &["stage", "share"]);
    }
    lab.assert_no_jobs();
}

#[test]
fn an_id_that_nobody_knows_cannot_be_adopted() {
    let lab = Lab::shared();
    for id in [
        "nosuch-1-2",
        "nosuch-1794752932-9c3ab6ce",
        "nosuch-1794752932-9c3ab6ce-3",
    ] {
        let refused = lab.tow(["adopt", id]);
        assert!(
            refused.code == 122 && refused.stderr.contains(id),
            "{refused:?}"
        );
    }
}

#[test]
fn a_store_that_only_this_machine_can_reach_is_refused_in_the_plan() {
    let lab = Lab::shared();
    let stores = "datastores:\n  far: \
        {kind: ssh_folder, host: login, ssh_config: ~/.ssh/other, path: /data}\n  nas: \
            {kind: folder, path: ~/nas}\n";
    lab.home.configure(&format!(
        "default_cluster: lab\nclusters:\n  lab: {{kind: slurm, host: login, ssh_config: \
            {}}}\n{stores}",
        lab.slurm().ssh_config().display()
    ));
    lab.home.write(
        "job.yaml",
        "io: {x: {datastore: far, path: a, mode: read}}\nscript: echo never\n",
    );
    let refused = lab.tow(["submit", "-f", "job.yaml", "--dry-run"]);
    assert!(
        refused.code == 123
            && refused.stderr.contains("`ssh_config: ~/.ssh/other`")
            && refused.stderr.contains("no node has"),
        "{refused:?}"
    );
    // A home means that of the node.
    fs::create_dir_all(lab.slurm().home("alice").join("nas/b")).unwrap();
    fs::write(lab.slurm().home("alice").join("nas/b/f"), "of the nas\n").unwrap();
    lab.home.write(
        "job.yaml",
        "io: {x: {datastore: nas, path: b, mode: read}}\nscript: cat ${{x}}/f\n",
    );
    assert_eq!(
        lab.tow(["run", "-f", "job.yaml"]).ok().stdout,
        "of the nas\n"
    );
    // Nor is it wrong because this machine has no such folder.
    let doctor = lab.tow(["doctor"]);
    let line = doctor
        .stdout
        .lines()
        .find(|line| line.starts_with("store nas"))
        .unwrap_or_default();
    assert!(line.contains("ok") && line.contains("`lab`"), "{doctor:?}");
}

/// What a tier is hardly ever changes: it is known from before.
#[test]
fn a_tier_can_be_asked_for_while_the_accounting_is_away() {
    let lab = Lab::own(&Options {
        nodes: 1,
        gpus: 0,
        ..Options::default()
    });
    let id = lab.tow(["submit", "--tier", "premium", "true"]).ok().id();
    assert_eq!(lab.ended(&id)["state"], "succeeded");
    lab.slurm().kill_service("ctl", "slurmdbd");
    // The next daemon asks the cluster anew what it has.
    lab.tow(["daemon", "stop"]).ok();
    let id = lab
        .tow(["submit", "--tier", "premium", "sleep", "600"])
        .ok()
        .id();
    let job = lab.job_of(&id);
    let qos = lab
        .slurm()
        .root("login", ["squeue", "-h", "-j", &job, "-o", "%q"])
        .ok()
        .stdout;
    assert_eq!(qos.trim(), "premium");
    lab.tow(["abort", &id]).ok();
}
