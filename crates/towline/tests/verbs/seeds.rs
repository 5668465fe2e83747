//! What the pages of the older tools have people type, on this machine: the same lines, with `tow`
//! for `a`.

use super::{ended, home, runs};
use std::fs;
use towline_testkit::{Home, until};

/// A machine with eight GPUs that is two clusters, and programs that the pages start.
fn reader() -> Home {
    let mut home = home();
    let cluster = "{kind: local, cpus: 16, gpus: 8, gpus_per_node: 4}";
    let job = "{kind: local, cpus: 16, gpus: 8, gpus_per_node: 4, job: {launch: per_gpu, \
        experiment: your_alias, resources: {gpus_per_node: 4}, environment: \
            {env: {NCCL_IB_DISABLE: '0'}}}}";
    home.configure(&format!(
        "default_cluster: aml\nclusters:\n  aml: {job}\n  c1: {cluster}\n  c2: {cluster}\n"
    ));
    let programs = home.path("programs");
    fs::create_dir_all(&programs).unwrap();
    for (name, text) in [
        ("nvidia-smi", "#!/bin/sh\necho NVIDIA-SMI\n"),
        (
            "python",
            "#!/bin/sh\n[ \"$1\" != -m ] || shift 2\nexec sh \"$@\"\n",
        ),
    ] {
        towline_testkit::program(&programs.join(name), text);
    }
    home.set("PATH", &format!("{}:/usr/bin:/bin", programs.display()));
    home
}

#[track_caller]
fn typed(home: &Home, line: &str) -> towline_testkit::Output {
    home.tow(line.split(' '))
}

#[test]
fn the_lines_about_jobs_work_here_too() {
    let home = reader();
    home.write(
        "train.py",
        "echo \"$@ rank $OMPI_COMM_WORLD_RANK of $OMPI_COMM_WORLD_SIZE at \
        $AZ_BATCHAI_JOB_MASTER_NODE_IP ib $NCCL_IB_DISABLE\"; [ \"$3\" != stay ] || sleep 600\n",
    );
    typed(&home, "init").ok();
    let smi = ended(&home, &["nvidia-smi"]);
    assert_eq!(home.tow(["logs", &smi]).ok().stdout.trim(), "NVIDIA-SMI");
    let one = ended(&home, &["python", "train.py", "--data", "voc20"]);
    assert!(
        home.tow(["logs", &one, "--rank", "3"])
            .ok()
            .stdout
            .starts_with("--data voc20 rank 3 of 4 at 127."),
        "one process for each GPU of a node"
    );
    let id = typed(&home, "-n 8 submit python train.py --data voc20 stay")
        .ok()
        .id();
    home.wait_for_state(&id, "running");
    until("rank 7 to say so", || {
        home.tow(["logs", &id, "--rank", "7"])
            .stdout
            .contains("rank 7 of 8")
            .then_some(())
    });
    let (short, end) = (id[id.len() - 5..].to_owned(), id[id.len() - 8..].to_owned());
    for line in [
        format!("query {id}"),
        format!("query {short}"),
        format!("q {short}"),
        format!("q {id}"),
    ] {
        let asked = typed(&home, &line).ok();
        for part in ["rank 0 of 8", "log files:", "appID", "running", "num_gpu"] {
            assert!(asked.stdout.contains(part), "{line}: {part}: {asked:?}");
        }
    }
    assert_eq!(
        fs::read_dir(home.project().join("assets").join(&id))
            .unwrap()
            .count(),
        8,
        "the logs of all ranks are in ./assets/ID"
    );
    let again = typed(&home, &format!("resubmit {end}")).ok().id();
    assert_eq!(
        home.state_of(&id),
        "cancelled",
        "the existing one is aborted first"
    );
    let third = typed(&home, &format!("resubmit {again}")).ok().id();
    typed(&home, &format!("abort {}", &third[third.len() - 8..])).ok();
    home.wait_for_state(&third, "cancelled");
    let fourth = typed(&home, "submit sleep 600").ok().id();
    typed(&home, &format!("abort {fourth}")).ok();
    home.wait_for_state(&fourth, "cancelled");
    for (line, cluster) in [("-c c1 submit ls", "c1"), ("-c c2 submit nvidia-smi", "c2")] {
        let id = typed(&home, line).ok().id();
        home.tow(["wait", &id]).ok();
        assert_eq!(home.show(&id)["cluster"], cluster);
    }
    // `-n` behind the verb's first word is the command's own.
    let own = ended(&home, &["echo", "-n", "8"]);
    assert_eq!(home.tow(["logs", &own, "--rank", "0"]).ok().stdout, "8");
}

/// Where qd's page has `mpirun -n 8 python train.py` on one's own machine, and `python -m
/// torch.distributed.launch` as the other way.
#[test]
fn distributed_training_on_this_machine_needs_no_mpirun() {
    let home = reader();
    home.write(
        "train.py",
        "echo \"rank $OMPI_COMM_WORLD_RANK of $OMPI_COMM_WORLD_SIZE, node $NODE_RANK\"\n",
    );
    let ran = typed(&home, "-n 8 run python train.py").ok().stdout;
    let mut lines: Vec<&str> = ran.lines().collect();
    lines.sort_unstable();
    let wanted: Vec<String> = (0..8)
        .map(|rank| format!("[{rank}] rank {rank} of 8, node {}", rank / 4))
        .collect();
    assert_eq!(lines, wanted);
    // A launcher that starts the processes of a node itself is started once on each.
    let ran = typed(
        &home,
        "-n 8 -single run python -m torch.distributed.launch train.py",
    )
    .ok()
    .stdout;
    let mut lines: Vec<&str> = ran.lines().collect();
    lines.sort_unstable();
    assert_eq!(
        lines,
        ["[0] rank 0 of 2, node 0", "[1] rank 1 of 2, node 1"]
    );
}

#[test]
fn lists_take_the_old_limit() {
    let home = home();
    for _ in 0..3 {
        ended(&home, &["true"]);
    }
    for line in [
        "--max 2 q",
        "q --max 2",
        "q --limit 2",
        "--max 2 ps",
        "query -l 2",
    ] {
        assert_eq!(
            home.tow(line.split(' ').chain(["--json"])).ok().json()["runs"]
                .as_array()
                .map(Vec::len),
            Some(2),
            "{line}"
        );
    }
    assert_eq!(runs(&home, &[]).len(), 3);
    let both = home.tow(["q", "@", "--max", "2"]);
    assert_eq!(both.code, 120, "{both:?}");
}

/// The toolkit's *Load*: a former submission, with another value.
#[test]
fn a_former_submission_is_loaded_and_changed() {
    let home = home();
    home.write(
        "job.yaml",
        "name: first\nexperiment: hoi_experiment_v1\nenvironment: \
        {env: {CHECKPOINT: latest}}\nscript: echo $CHECKPOINT\n",
    );
    let id = home.tow(["submit", "-f", "job.yaml"]).ok().id();
    home.tow(["wait", &id]).ok();
    assert!(home.tow(["history"]).ok().stdout.contains("first"));
    let again = home
        .tow(["submit", "--from", &id, "--env", "CHECKPOINT=best"])
        .ok()
        .id();
    home.tow(["wait", &again]).ok();
    assert_eq!(
        (
            home.tow(["logs", &again]).ok().stdout.as_str(),
            home.show(&again)["experiment"].as_str()
        ),
        ("best\n", Some("hoi_experiment_v1"))
    );
}
