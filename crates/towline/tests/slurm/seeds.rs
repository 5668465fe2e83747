//! What the pages of the older tools have people type, on Slurm: the same lines, with `tow` for
//! `a`, and the settings that the helper for scratch space passed to `salloc`.

use crate::lab::Lab;
use towline_testkit::until;

#[test]
fn the_lines_about_jobs_work_on_slurm() {
    let lab = Lab::shared();
    lab.configure(
        ", gpus_per_node: 2, job: {launch: per_gpu, resources: {gpus_per_node: 2, time: \
        10m}, environment: {env: {NCCL_IB_DISABLE: '0'}}}",
    );
    let typed = |line: &str| lab.tow(line.split(' '));
    lab.home.write(
        "train.py",
        "echo \"$@ rank $OMPI_COMM_WORLD_RANK of $OMPI_COMM_WORLD_SIZE ib \
        $NCCL_IB_DISABLE\"; [ \"$3\" != stay ] || sleep 600\n",
    );
    typed("init").ok();
    let one = typed("-n 4 submit sh train.py --data voc20").ok().id();
    assert_eq!(lab.ended(&one)["state"], "succeeded");
    assert_eq!(
        lab.tow(["logs", &one, "--rank", "3"]).ok().stdout,
        "--data voc20 rank 3 of 4 ib 0\n"
    );
    let id = typed("submit sh train.py --data voc20 stay").ok().id();
    lab.until_state(&id, "running");
    until("rank 0 to speak", || {
        lab.tow(["logs", &id])
            .stdout
            .contains("rank 0 of 2")
            .then_some(())
    });
    for line in [format!("query {id}"), format!("q {}", &id[id.len() - 5..])] {
        let asked = typed(&line).ok();
        assert!(
            asked.stdout.contains("rank 0 of 2")
                && asked.stdout.contains("log files:")
                && asked.stdout.contains("running"),
            "{line}: {asked:?}"
        );
    }
    let again = typed(&format!("resubmit {}", &id[id.len() - 8..]))
        .ok()
        .id();
    assert_eq!(
        lab.home.state_of(&id),
        "cancelled",
        "the existing one is aborted first"
    );
    typed(&format!("abort {again}")).ok();
    lab.until_state(&again, "cancelled");
    let refused = typed("-n 3 submit ls");
    assert!(
        refused.code == 123 && refused.stderr.contains("nodes of 2"),
        "{refused:?}"
    );
}

/// The helper asked for one node by number, its partition, shared, many tasks, GPUs, and two weeks.
#[test]
fn an_allocation_has_what_the_settings_say() {
    let lab = Lab::shared();
    let settings = |time: &str, partition: &str| {
        lab.configure(&format!(
            ", partition: debug, job: {{resources: {{cpus_per_node: 4, time: {time}, native: \
                ['--oversubscribe', '--partition={partition}']}}}}"
        ));
    };
    settings("6d", "main");
    let held = lab
        .tow(["alloc", "-n", "2", "--node", "c2", "--json"])
        .ok()
        .json();
    assert_eq!(held["hosts"], serde_json::json!(["c2"]), "{held}");
    let id = held["id"].as_str().unwrap();
    let job = lab
        .slurm()
        .root(
            "login",
            ["squeue", "-h", "-n", id, "-o", "%P|%C|%l|%b|%h|%T"],
        )
        .ok()
        .stdout;
    assert_eq!(job.trim(), "main|4|6-00:00:00|gres:gpu:2|YES|RUNNING");
    // `sinfo`, and who has it.
    let nodes = lab.tow(["nodes", "--json"]).ok().json();
    let names: Vec<&str> = nodes["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|node| node["name"].as_str())
        .collect();
    assert_eq!(names, ["c1", "c2", "c3"], "{nodes}");
    let gpus = nodes["nodes"][1]["gpus"].as_array().unwrap();
    // Another test may have the other two; Slurm does not say then which are whose.
    let is_alone = nodes["nodes"][1]["users"].as_array().unwrap().len() == 1;
    let names_it = |gpu: &&serde_json::Value| {
        let both = gpu["busy_with"].as_str().unwrap_or_default();
        gpu["run"] == id || both.contains(id)
    };
    assert_eq!(
        gpus.iter().filter(names_it).count(),
        if is_alone { 2 } else { 4 },
        "{nodes}"
    );
    lab.tow(["release", id]).ok();
    // The same by options, which count over the settings.
    let wide = lab
        .tow("alloc --nodes 2 --cpus 2 --memory 300M --time 90m --json".split(' '))
        .ok()
        .json();
    let id = wide["id"].as_str().unwrap();
    let job = lab
        .slurm()
        .root("login", ["squeue", "-h", "-n", id, "-o", "%D|%C|%m|%l|%T"])
        .ok()
        .stdout;
    assert_eq!(
        (job.trim(), wide["hosts"].as_array().map(Vec::len)),
        ("2|4|300M|1:30:00|RUNNING", Some(2)),
        "{wide}"
    );
    lab.tow(["release", id]).ok();
    // The scheduler's own options of one call count beside those of the settings.
    let own = lab
        .tow(["alloc", "--native", "--comment=of-one-call", "--json"])
        .ok()
        .json();
    let id = own["id"].as_str().unwrap();
    let job = lab
        .slurm()
        .root("login", ["squeue", "-h", "-n", id, "-o", "%k|%P|%h"])
        .ok()
        .stdout;
    assert_eq!(job.trim(), "of-one-call|main|YES", "{own}");
    lab.tow(["release", id]).ok();
    // What the partition does not allow is refused, by the partition that counts.
    settings("14d", "main");
    let refused = lab.tow(["alloc", "-n", "2"]);
    assert!(
        refused.code == 123 && refused.stderr.contains("`main` allows 7d"),
        "{refused:?}"
    );
    settings("20m", "mian");
    let unknown = lab.tow(["alloc"]);
    assert!(
        unknown.code == 121 && unknown.stderr.contains("did you mean `main`"),
        "{unknown:?}"
    );
}
