//! The pages of ACT and qd: every command of theirs, in their order and spelling with `tow` for
//! `a`, in a folder laid out as they say.

use crate::act::Act;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use towline_testkit::page;

/// What `train.py` of a reader may print: who it is, by the variables that the page names.
const TRAIN: &str = r#"echo "$@ rank=$OMPI_COMM_WORLD_RANK/$OMPI_COMM_WORLD_SIZE local=$OMPI_COMM_WORLD_LOCAL_RANK/$OMPI_COMM_WORLD_LOCAL_SIZE node=$NODE_RANK hosts=$AZ_BATCH_HOST_LIST master=$AZ_BATCHAI_JOB_MASTER_NODE_IP ib=$NCCL_IB_DISABLE"
"#;

#[test]
fn job_management_as_the_page_tells_it() {
    let act = Act::new();
    act.home().write(
        "train.py",
        "seq 1 150 | sed 's/^/iter: /'; exec sleep 600\n",
    );
    act.a("init").ok();
    let id = act.a("submit python train.py --data voc20").ok().id();
    act.lab.until_state(&id, "running");
    act.lab.until_logged(&id, "iter: 150");
    // 1. How to query the job status.
    for line in [
        format!("query {id}"),
        format!("q {id}"),
        format!("query {}", &id[id.len() - 5..]),
        format!("q {}", &id[id.len() - 5..]),
    ] {
        let asked = act.a(&line).ok();
        assert!(
            asked.stdout.contains("iter: 51\n")
                && asked.stdout.contains("iter: 150\n")
                && !asked.stdout.contains("iter: 50\n"),
            "{line}: {asked:?}"
        );
        let log = act.home().project().join("assets").join(&id);
        assert!(
            asked
                .stdout
                .contains(&format!("log files:\n  {}", log.display())),
            "{line}: {asked:?}"
        );
        for (name, value) in [
            ("status", "running"),
            ("appID", id.as_str()),
            ("appID-s", &id[id.len() - 5..]),
            ("cluster", "aml"),
            ("cmd", "python train.py --data voc20"),
            ("num_gpu", "4"),
            ("start_time", "20"),
            ("elapsedTime", ""),
        ] {
            let fits = |text: &str| {
                text.split_once(' ').is_some_and(|(known, rest)| {
                    known == name && rest.trim_start().starts_with(value)
                })
            };
            assert!(asked.stdout.lines().any(fits), "{line}: {name}: {asked:?}");
        }
        let here = fs::read_dir(log)
            .unwrap()
            .map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap());
        assert_eq!(
            here.filter(|text| text.ends_with("iter: 150\n")).count(),
            4,
            "the logs of all ranks are here"
        );
    }
    // 3. How to resubmit a job: the existing one is aborted first.
    let again = act.a(&format!("resubmit {id}")).ok().id();
    assert_eq!(act.home().state_of(&id), "cancelled");
    act.lab.until_state(&again, "running");
    let third = act
        .a(&format!("resubmit {}", &again[again.len() - 8..]))
        .ok()
        .id();
    assert_eq!(act.home().state_of(&again), "cancelled");
    act.lab.until_state(&third, "running");
    // 2. How to abort a submitted job: by the end of its id, and by the whole of it.
    act.a(&format!("abort {}", &third[third.len() - 8..])).ok();
    assert_eq!(act.lab.ended(&third)["state"], "cancelled");
    act.lab.until_gone(&third);
    let fourth = act.a("submit python train.py --data voc20").ok().id();
    act.lab.until_state(&fourth, "running");
    act.a(&format!("abort {fourth}")).ok();
    assert_eq!(act.lab.ended(&fourth)["state"], "cancelled");
    // ACT's own limit for its lists.
    for line in ["--max 2 q", "q --max 2", "--max 2 query"] {
        let listed = act.a(&format!("{line} --json")).ok().json();
        assert_eq!(
            listed["runs"].as_array().map(Vec::len),
            Some(2),
            "{line}: {listed}"
        );
    }
}

#[test]
fn submission_as_the_page_tells_it() {
    let act = Act::new();
    act.home().write("train.py", TRAIN);
    act.home().write("src/CMC/left/out", "");
    act.home().write("src/py-faster-rcnn/left/out", "");
    act.home().write("src/kept", "");
    act.a("init").ok();
    let (id, record) = act.submitted("submit nvidia-smi");
    assert_eq!(record["state"], "succeeded", "{record}");
    assert_eq!(
        act.lines(&id, 4).iter().collect::<BTreeSet<_>>().len(),
        4,
        "one for each GPU of a node"
    );
    let (id, record) = act.submitted("submit python train.py --data voc20");
    assert_eq!(
        (record["state"].as_str(), record["cluster"].as_str()),
        (Some("succeeded"), Some("aml")),
        "{record}"
    );
    let lines = act.lines(&id, 4);
    for (rank, line) in lines.iter().enumerate() {
        assert!(
            line.starts_with(&format!(
                "--data voc20 rank={rank}/4 local={rank}/4 node=0 hosts=127."
            )) && line.ends_with("ib=0"),
            "{line}"
        );
    }
    let put = act.lab.put(&id);
    assert!(
        put["computeId"]
            .as_str()
            .unwrap()
            .ends_with("/computes/NC24RSV3"),
        "{put:#}"
    );
    assert_eq!(
        (&put["experimentName"], &put["resources"]["instanceCount"]),
        (&"experiment_name".into(), &1.into()),
        "{put:#}"
    );
    let environment = put["environmentId"]
        .as_str()
        .unwrap()
        .split("/workspaces/towline/")
        .nth(1)
        .unwrap();
    assert_eq!(
        act.aml().ask("GET", environment, None).1["properties"]["image"],
        "amsword/setup:py36pt16"
    );
    // `-n 8` behind the command is the command's own.
    let (id, record) = act.submitted("submit python train.py --data voc20 -n 8");
    assert_eq!(
        (record["state"].as_str(), record["nodes"].as_u64()),
        (Some("succeeded"), Some(1)),
        "{record}"
    );
    assert!(
        act.lines(&id, 4)[3].starts_with("--data voc20 -n 8 rank=3/4 "),
        "{record}"
    );
    // Eight GPUs are two nodes of four.
    let (id, record) = act.submitted("-n 8 submit python train.py --data voc20");
    assert_eq!(record["state"], "succeeded", "{record}");
    let lines = act.lines(&id, 8);
    let hosts: BTreeSet<&str> = lines
        .iter()
        .map(|line| {
            line.split("hosts=")
                .nth(1)
                .unwrap()
                .split(' ')
                .next()
                .unwrap()
        })
        .collect();
    let two: Vec<&str> = hosts.iter().flat_map(|list| list.split(',')).collect();
    assert!(
        hosts.len() == 1 && two.len() == 2 && two[0] != two[1],
        "{hosts:?}"
    );
    for (rank, line) in lines.iter().enumerate() {
        let wanted = format!(
            "--data voc20 rank={rank}/8 local={}/4 node={} hosts={} master={} ib=0",
            rank % 4,
            rank / 4,
            two.join(","),
            two[0]
        );
        assert_eq!(*line, wanted);
    }
    // `multi_process: false`: still two nodes, and one process on each.
    act.cluster(
        "aml",
        "vigeastblob",
        &[("multi_process: True", "multi_process: False")],
    );
    let (id, _) = act.submitted("-n 8 submit python train.py --data voc20");
    for (rank, line) in act.lines(&id, 2).iter().enumerate() {
        assert!(
            line.contains(&format!("rank={rank}/2 local=0/1 node={rank} ")),
            "{line}"
        );
    }
    let refused = act.a("-n 6 submit python train.py --data voc20");
    assert!(
        refused.code != 0 && refused.stderr.contains('6') && refused.stderr.contains("nodes of 4"),
        "{refused:?}"
    );
    // 5. How to switch among multiple clusters.
    let (id, record) = act.submitted("-c c1 submit ls");
    assert_eq!(record["cluster"], "c1");
    let listed = act.lines(&id, 1);
    assert!(
        ["data", "output", "src", "train.py"]
            .iter()
            .all(|name| listed.iter().any(|line| line == name)),
        "{listed:?}"
    );
    assert_eq!(act.submitted("-c c2 submit nvidia-smi").1["cluster"], "c2");
    // qd's alias that names the file.
    let named = act
        .home()
        .command(["submit", "ls"])
        .env("AML_CONFIG_PATH", "aux_data/aml/c2.yaml")
        .output()
        .unwrap();
    let named = String::from_utf8_lossy(&named.stdout).trim().to_owned();
    assert_eq!(act.lab.ended(&named)["cluster"], "c2");
    let (id, _) = act.submitted("-c c1 submit ls src");
    assert_eq!(
        act.lines(&id, 1),
        ["kept"],
        "zip_options leave out what they say"
    );
}

/// No conda environment, no SDK, no azcopy, no zip: the pages' first lines have no counterpart
/// because nothing of it is started.
#[test]
fn nothing_is_installed_before_the_first_submission() {
    let mut act = Act::new();
    let empty = act.home().path("no programs");
    fs::create_dir(&empty).unwrap();
    act.lab.home.set("PATH", empty.to_str().unwrap());
    act.home().write("data/voc20/train.tsv", "a picture\n");
    act.home().write(
        "train.py",
        "cat data/voc20/train.tsv; echo done > output/model-$RANK\n",
    );
    act.a("init").ok();
    act.a("u data/voc20").ok();
    let (id, record) = act.submitted("submit python train.py");
    assert_eq!(
        (record["state"].as_str(), act.lines(&id, 1)),
        (Some("succeeded"), vec!["a picture".to_owned()]),
        "{record}"
    );
    act.a(&format!("q {id}")).ok();
    act.a("d output").ok();
    assert_eq!(act.home().read("output/model-3"), "done\n");
}

/// `alias a=…`, as the pages set it, with `tow` in the place of their program.
#[test]
fn the_aliases_of_the_pages_lead_here() {
    let act = Act::new();
    for (alias, cluster) in [
        ("alias a='tow '", "aml"),
        ("alias a='AML_CONFIG_PATH=aux_data/aml/c2.yaml tow '", "c2"),
    ] {
        let typed = |line: &str| {
            page::run(
                act.home(),
                Path::new("/dev/null"),
                &format!("shopt -s expand_aliases\n{alias}\n{line}\n"),
            )
        };
        let id = typed("a -n 4 submit nvidia-smi").ok().id();
        let record = act.lab.ended(&id);
        assert_eq!(
            (record["state"].as_str(), record["cluster"].as_str()),
            (Some("succeeded"), Some(cluster)),
            "{record}"
        );
        assert!(
            typed(&format!("a q {}", &id[id.len() - 5..]))
                .ok()
                .stdout
                .contains("NVIDIA-SMI of rank 0"),
            "{alias}"
        );
    }
}

#[test]
fn code_is_what_it_was_when_it_was_submitted_and_init_sends_it_ahead() {
    let act = Act::new();
    act.home().write("train.py", "echo first\n");
    act.a("init").ok();
    let stage = act
        .aml()
        .blobs(&act.aml().container(), "towline/alice/snapshots/")
        .len();
    assert!(stage > 0, "init has sent it");
    act.a("-c c1 init").ok();
    assert_eq!(
        act.aml()
            .blobs(&act.aml().container(), "towline/alice/snapshots/")
            .len(),
        stage,
        "once for both"
    );
    let (id, _) = act.submitted("submit python train.py");
    act.home().write("train.py", "echo second\n");
    let (again, _) = act.submitted(&format!("resubmit {id}"));
    let (new, _) = act.submitted("submit python train.py");
    assert_eq!(
        (act.lines(&id, 1), act.lines(&again, 1), act.lines(&new, 1)),
        (
            vec!["first".into()],
            vec!["first".into()],
            vec!["second".into()]
        )
    );
}

#[test]
fn data_and_output_are_the_mapped_folders_in_every_run() {
    let act = Act::new();
    act.home().write("data/voc20/train.tsv", "a picture\n");
    // 6. Data management.
    act.a("u data/voc20").ok();
    assert!(act.a("ls data/voc20").ok().stdout.contains("train.tsv"));
    assert_eq!(
        act.aml()
            .blob("vigeastblob", "path/to/data/voc20/train.tsv")
            .as_deref(),
        Some("a picture\n")
    );
    act.home().write(
        "train.py",
        "ls data; cat data/$1/train.tsv; echo of rank $RANK > \
        output/model-$RANK; echo more > data/$1/cache-$RANK\n",
    );
    let (id, record) = act.submitted("submit python train.py voc20");
    assert_eq!(
        record["state"],
        "succeeded",
        "{record} {:?}",
        act.lines(&id, 4)
    );
    assert_eq!(act.lines(&id, 4)[..2], ["voc20", "a picture"]);
    for rank in 0..4 {
        assert_eq!(
            act.aml()
                .blob("vigeastblob", &format!("path/to/output/model-{rank}")),
            Some(format!("of rank {rank}\n"))
        );
        assert!(
            act.aml()
                .blob("vigeastblob", &format!("path/to/data/voc20/cache-{rank}"))
                .is_some()
        );
    }
    act.a("d output").ok();
    assert_eq!(act.home().read("output/model-3"), "of rank 3\n");
    // What was brought down is not code: the next run sees the store's.
    let (id, _) = act.submitted("submit ls output");
    assert_eq!(
        act.lines(&id, 1),
        ["model-0", "model-1", "model-2", "model-3"]
    );
    act.aml()
        .put_blob("vigeastblob", "path/to/data/coco/x", "there");
    act.a("d data/coco").ok();
    assert_eq!(act.home().read("data/coco/x"), "there");
    act.a("rm data/coco --yes").ok();
    assert_eq!(act.aml().blob("vigeastblob", "path/to/data/coco/x"), None);
    // What was tried on this machine sees the store's folders there.
    act.home().write("data/only-here", "");
    let here = act.a("-c local submit ls data").ok().id();
    act.a(&format!("wait {here}")).ok();
    let (there, _) = act.submitted(&format!("resubmit {here} --to aml"));
    assert_eq!(act.lines(&there, 1), ["voc20"]);
    // From the blob of one cluster to that of another.
    act.aml()
        .put_blob("vigblob", "path/to/data/voc20/theirs", "west");
    act.a("-c eu -f we3v32 u data/voc20").ok();
    assert_eq!(
        act.aml()
            .blob("vigeastblob", "path/to/data/voc20/theirs")
            .as_deref(),
        Some("west")
    );
}

/// Each file of ACT names all folders of its cluster: nothing of the default one's is mounted
/// elsewhere.
#[test]
fn a_cluster_has_the_folders_of_its_own_file() {
    let act = Act::new();
    let output = "   output_folder:\n       azure_blob_config_file: \
        ./aux_data/configs/vigblob_account.yaml # the blob account information\n       path: \
            path/to/output # this folder will be as $ROOT/output\n";
    act.cluster("k8", "vigblob", &[(output, "")]);
    let own = format!(
        "{{kind: azureml, endpoint: '{}', credential: managed_identity}}",
        act.lab.aml.endpoint()
    );
    act.home()
        .configure(&format!("clusters:\n  aml: {own}\n  k8: {own}\n"));
    let mounted = |line: &str| act.a(line).ok().stdout.contains("path/to/output");
    assert!(mounted("submit --dry-run ls"), "the default cluster has it");
    assert!(
        !mounted("-c k8 submit --dry-run ls"),
        "its own file does not name it"
    );
    let listed = act.a("-c k8 ls output");
    assert!(
        listed.code == 122
            && listed
                .stderr
                .contains("cluster `k8` has no folder `output`"),
        "{listed:?}"
    );
    act.home().write(
        "towline.yaml",
        "folders: {extra: {datastore: vigblob, path: more}}\n",
    );
    act.home().trust();
    assert!(
        act.a("-c k8 submit --dry-run ls")
            .ok()
            .stdout
            .contains("paths/more"),
        "what is named for all counts"
    );
}

#[test]
fn an_itp_cluster_of_the_page_works_the_same() {
    let act = Act::new();
    act.home().write("train.py", TRAIN);
    act.cluster(
        "c1",
        "vigeastblob",
        &[
            ("aks_compute: false", "aks_compute: true"),
            ("compute_target: NC24RSV3", "compute_target: k8s"),
        ],
    );
    let (id, record) = act.submitted("-c c1 -n 8 submit python train.py");
    assert_eq!(record["state"], "succeeded", "{record}");
    for (rank, line) in act.lines(&id, 8).iter().enumerate() {
        assert!(
            line.contains(&format!(
                "rank={rank}/8 local={}/4 node={}",
                rank % 4,
                rank / 4
            )),
            "{line}"
        );
    }
    let body = act.lab.put(&id);
    assert_eq!(
        (&body["experimentName"], &body["resources"]["instanceCount"]),
        (&"experiment_name".into(), &2.into()),
        "{body}"
    );
    assert_eq!(
        body["resources"]["properties"]["itp"]["resource_configuration"]["gpu_count"], 4,
        "{body}"
    );
}
