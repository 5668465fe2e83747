//! Why a run waits and why it failed, in our words and in Slurm's, as the real scheduler tells.

use crate::lab::{Lab, together, until_within};
use std::fs;
use towline_testkit::real::Slurm;
use towline_testkit::real::slurm::Options;
use towline_testkit::until;

impl Lab {
    /// Submits a run that has to wait, with these resources.
    #[track_caller]
    fn waiting(&self, resources: &str) -> String {
        self.home.submit_file(
            &format!("resources: {{{resources}}}\nscript: echo never\n"),
            &[],
        )
    }

    /// Slurm gives this reason, and `tow why` tells it in our words too, with the next step.
    #[track_caller]
    fn assert_why(&self, run: &str, reason: &str, words: &str) {
        let submission = self.home.show(run)["sweep"]
            .as_str()
            .unwrap_or(run)
            .to_owned();
        let has = |row: &Vec<String>| row[4].starts_with(reason);
        until_within(
            60,
            &format!("the reason {reason} in {}", self.queue()),
            || self.jobs_of(&submission).iter().any(has).then_some(()),
        );
        let why = until_within(20, &format!("{reason} in the words of tow why"), || {
            let why = self.tow(["why", run]).ok().stdout;
            why.contains(reason).then_some(why)
        });
        assert!(why.contains(words), "{reason}: no `{words}` in {why}");
        let json = self.tow(["why", run, "--json"]).ok().json();
        assert!(
            json["summary"]
                .as_str()
                .is_some_and(|summary| summary.contains(words) && summary.contains(reason)),
            "{json}"
        );
    }
}

#[test]
fn pending_reasons_of_the_real_scheduler_are_explained() {
    let conf = [
        "Licenses=matlab:1",
        "PartitionName=tight Nodes=c1 MaxTime=10 MaxNodes=1 State=UP",
        "PartitionName=off Nodes=c1 MaxTime=60 State=DOWN",
    ];
    let lab = Lab::own(&Options {
        cpus: 4,
        conf: conf.map(Into::into).into(),
        ..Options::default()
    });
    let slurm = lab.slurm();
    for line in [
        "add qos qjobs MaxJobsPerUser=0",
        "add qos qgpus MaxTRESPerUser=gres/gpu=1",
        "add qos qwall MaxWall=5",
        "add qos qcpus MaxTRESPerUser=cpu=1",
        "add qos qnodes MaxTRESPerJob=node=1",
        "add qos qgroup GrpTRES=cpu=1",
        "add account poor GrpTRES=cpu=1",
        "add account few",
        "add user alice account=poor",
        "add user alice account=few MaxJobs=0",
        "modify user alice set qos=basic,standard,premium,qjobs,qgpus,qwall,qcpus,qnodes,qgroup",
    ] {
        slurm.sacctmgr(line);
    }
    let licensed = lab.occupant("bob", &["--licenses=matlab", "-t", "30"]);
    let never = lab.occupant("carol", &["--hold"]);
    let blocked = lab.occupant("carol", &["--hold"]);
    lab.cancel(&never);
    lab.scontrol("update nodename=c2 state=drain reason=broken");
    lab.scontrol(
        "create reservation reservationname=later starttime=now+1hour duration=60 \
        users=alice nodes=c3 flags=ignore_jobs",
    );
    let cases: Vec<(String, &str, &str)> = vec![
        ("native: [--hold]".into(), "JobHeldUser", "it is on hold"),
        (
            "native: [--begin=now+1hour]".into(),
            "BeginTime",
            "not start before a set time",
        ),
        (
            format!("native: ['--dependency=afterok:{blocked}']"),
            "Dependency",
            "waits for another job",
        ),
        (
            format!("native: ['--dependency=afterok:{never}']"),
            "DependencyNeverSatisfied",
            "in a way that it does not wait for",
        ),
        (
            "native: [--qos=qjobs]".into(),
            "QOSMaxJobsPerUserLimit",
            "its QOS allows one user only so many running jobs",
        ),
        (
            "gpus_per_node: 2, native: [--qos=qgpus]".into(),
            "QOSMaxGRESPerUser",
            "its QOS allows one user only so many GPUs",
        ),
        (
            "time: 10m, native: [--qos=qwall]".into(),
            "QOSMaxWallDurationPerJobLimit",
            "its QOS allows one job only so much time",
        ),
        (
            "cpus_per_node: 2, native: [--qos=qcpus]".into(),
            "QOSMaxCpuPerUserLimit",
            "its QOS allows one user only so many CPUs",
        ),
        (
            "nodes: 2, native: [--qos=qnodes]".into(),
            "QOSMaxNodePerJobLimit",
            "its QOS allows one job only so many nodes",
        ),
        (
            "cpus_per_node: 2, native: [--qos=qgroup]".into(),
            "QOSGrpCpuLimit",
            "its QOS allows all jobs together only so many CPUs",
        ),
        (
            "cpus_per_node: 2, account: poor".into(),
            "AssocGrpCpuLimit",
            "your account allows all jobs together only so many CPUs",
        ),
        (
            "account: few".into(),
            "AssocMaxJobsLimit",
            "your account allows one user only so many running jobs",
        ),
        (
            "native: [--partition=off, '--time=5']".into(),
            "PartitionDown",
            "its partition is down",
        ),
        (
            "native: [--partition=tight, '--time=60']".into(),
            "PartitionTimeLimit",
            "longer than its partition allows",
        ),
        (
            "native: [--partition=tight, '--nodes=2', '--time=5']".into(),
            "PartitionNodeLimit",
            "more nodes than its partition allows",
        ),
        (
            "native: [--nodelist=c2]".into(),
            "ReqNodeNotAvail",
            "down, drained or reserved: c2",
        ),
        (
            "native: [--licenses=matlab]".into(),
            "Licenses",
            "waits for a licence",
        ),
        (
            "native: [--reservation=later]".into(),
            "Reservation",
            "waits for its reservation to begin",
        ),
    ];
    let runs: Vec<String> = cases
        .iter()
        .map(|(resources, ..)| lab.waiting(resources))
        .collect();
    let admin = lab.waiting("native: [--begin=now+1hour]");
    lab.scontrol(&format!("hold {}", lab.job_of(&admin)));
    for (run, (_, reason, words)) in runs.iter().zip(&cases) {
        lab.assert_why(run, reason, words);
        assert_eq!(lab.home.state_of(run), "queued");
    }
    lab.assert_why(&admin, "JobHeldAdmin", "held by the site's staff");
    let why = lab.tow(["why", &runs[0]]).ok().stdout;
    assert!(why.contains("`tow resume` lets it go"), "{why}");
    // All of them can be given up.
    let given_up = |runs: &[&str]| {
        lab.tow(["abort"].into_iter().chain(runs.iter().copied()))
            .ok();
        until_within(60, "all of them to be gone", || {
            slurm
                .root("login", ["squeue", "-h", "-u", "alice"])
                .ok()
                .stdout
                .is_empty()
                .then_some(())
        });
    };
    given_up(
        &runs
            .iter()
            .map(String::as_str)
            .chain([admin.as_str()])
            .collect::<Vec<_>>(),
    );
    lab.cancel(&licensed);
    lab.scontrol("delete reservationname=later");
    lab.scontrol("update nodename=c2 state=resume");
    // All nodes are taken: two by somebody, one by a sweep whose runs come one after the other.
    lab.occupant(
        "bob",
        &["--exclusive", "--nodelist=c1,c2", "-N2", "-t", "60"],
    );
    let sweep = "resources: {cpus_per_node: 4, native: [--nodelist=c3, '--array=1-3%1']}\nsweep: \
        {i: 1-3}\nscript: sleep 600 ${{i}}\n";
    let sweep = lab.home.submit_file(sweep, &[]);
    let first = format!("{sweep}-1");
    lab.until_state(&first, "running");
    lab.assert_why(
        &format!("{sweep}-2"),
        "JobArrayTaskLimit",
        "sweep's runs are active",
    );
    let idle = || {
        slurm
            .root(
                "login",
                ["sinfo", "-h", "-N", "-p", "main", "-t", "idle", "-o", "%N"],
            )
            .ok()
            .stdout
    };
    until("all nodes to be taken", || idle().is_empty().then_some(()));
    let resources = lab.waiting("cpus_per_node: 4");
    lab.assert_why(
        &resources,
        "Resources",
        "waits for nodes, GPUs, CPUs or memory",
    );
    let priority = lab.waiting("cpus_per_node: 4, time: 2h");
    lab.assert_why(
        &priority,
        "Priority",
        "jobs of higher priority are ahead of it",
    );
    given_up(&[&sweep, &resources, &priority]);
}

#[test]
fn out_of_memory_is_told_on_one_node_and_on_several() {
    let options = Options {
        nodes: 2,
        cgroup: true,
        ..Options::default()
    };
    if let Err(why) = Slurm::check(&options) {
        towline_testkit::ability::not_run(&format!("out of memory on Slurm: {why}"));
        return;
    }
    let lab = Lab::own(&options);
    let eat = "import os,time\nif os.environ['RANK'] == str(int(os.environ['WORLD_SIZE']) - 1): x \
        = bytearray(600 << 20)\ntime.sleep(0 if os.environ['WORLD_SIZE'] == '1' else 500)\n";
    lab.home.write("eat.py", eat);
    for nodes in ["1", "2"] {
        let ran = lab
            .tow([
                "submit", "--name", "eater", "--nodes", nodes, "--memory", "200M", "python3",
                "eat.py",
            ])
            .ok();
        let id = ran.id();
        let ended = lab.ended(&id);
        assert_eq!(
            (ended["state"].as_str(), ended["reason"].as_str()),
            (Some("failed"), Some("out_of_memory")),
            "{nodes} nodes: {ended}"
        );
        let why = lab.tow(["why", &id]).ok().stdout;
        assert!(why.contains("--memory"), "{why}");
    }
    lab.assert_no_jobs();
}

#[test]
fn jobs_that_die_without_a_word_are_settled() {
    together(&[
        a_job_whose_head_is_killed_ends_with_the_cause_and_nothing_alive,
        a_job_that_its_node_cannot_start_says_so,
        crate::refusals::a_stage_that_nodes_do_not_share_is_told,
    ]);
}

fn a_job_whose_head_is_killed_ends_with_the_cause_and_nothing_alive() {
    let lab = Lab::own(&Options {
        nodes: 1,
        ..Options::default()
    });
    let id = lab
        .home
        .submit_file("script: |\n  echo begins\n  sleep 500\n", &[]);
    Lab::until_text(&lab.far(&id).join("attempt-1.rank-0.log"));
    lab.slurm().root("c1", ["pkill", "-9", "-f", "__head"]).ok();
    let ended = lab.ended(&id);
    assert_eq!(ended["state"], "failed", "{ended}");
    assert!(
        matches!(ended["reason"].as_str(), Some("signal" | "node_failed")),
        "{ended}"
    );
    assert_eq!(lab.tow(["logs", &id]).ok().stdout, "begins\n");
    let why = lab.tow(["why", &id]).ok().stdout;
    assert!(
        why.contains("signal 9") || why.contains("SIGKILL") || why.contains("died without a word"),
        "{why}"
    );
    // It leaves with 1 where it finds nobody, and with more where it cannot look.
    until("everything of it to be gone", || {
        (lab.slurm()
            .root("c1", ["pgrep", "-f", "sleep 500|__node"])
            .code
            == 1)
            .then_some(())
    });
    assert!(!lab.far(&id).join("attempt-2.claim").exists());
}

#[test]
fn what_slurm_has_not_said_yet_is_not_made_up() {
    let lab = Lab::shared();
    for _ in 0..3 {
        let id = lab.home.submit_file("script: sleep 100\n", &[]);
        let why = lab.tow(["why", &id]).ok();
        assert!(
            !why.stdout.contains("nothing") && !why.stderr.contains("cannot be reached now"),
            "{why:?}"
        );
        let told = [
            "has not said yet why it waits",
            "has given it nodes",
            "it is running",
            "job ",
        ];
        assert!(
            told.iter().any(|words| why.stdout.contains(words)),
            "{why:?}"
        );
    }
}

#[test]
fn a_program_that_is_not_there_is_told() {
    let lab = Lab::shared();
    let id = lab
        .tow(["submit", "--name", "missing", "no-such-program", "x"])
        .ok()
        .id();
    let ended = lab.ended(&id);
    assert_eq!(
        (ended["state"].as_str(), ended["reason"].as_str()),
        (Some("failed"), Some("not_started")),
        "{ended}"
    );
    let why = lab.tow(["why", &id]).ok().stdout;
    assert!(why.contains("no-such-program"), "{why}");
}

fn a_job_that_its_node_cannot_start_says_so() {
    let lab = Lab::own(&Options {
        nodes: 1,
        ..Options::default()
    });
    let id = lab
        .home
        .submit_file("resources: {native: [--hold]}\nscript: echo never\n", &[]);
    let job = lab.job_of(&id);
    // The folder that the job begins in is gone from the node by the time it starts.
    lab.slurm()
        .root("c1", ["mount", "-t", "tmpfs", "none", "/home"])
        .ok();
    lab.scontrol(&format!("release {job}"));
    let ended = lab.ended(&id);
    assert_eq!(
        (ended["state"].as_str(), ended["reason"].as_str()),
        (Some("failed"), Some("not_started")),
        "{ended}"
    );
    let why = lab.tow(["why", &id]).ok().stdout;
    assert!(why.contains("before anything of it began"), "{why}");
    assert!(
        why.contains("`stage`")
            && why.contains("that its login host and its nodes share")
            && !why.contains("named above"),
        "{why}"
    );
    assert!(fs::read_dir(lab.far(&id)).is_ok_and(|entries| {
        entries
            .flatten()
            .all(|entry| !entry.file_name().to_string_lossy().contains("claim"))
    }));
}
