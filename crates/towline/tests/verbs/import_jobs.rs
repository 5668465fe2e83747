//! `tow import toolkit` and `sbatch`: job files, field by field; and what is wrong with a file of
//! any tool.

use super::home;
use super::import::{CANARY, assert_values, everything, home_with_keyring, keys};
use towline_core::job::{Image, IoMode, Job, Launch, Tier};
use towline_engine::flow::read_job;
use towline_testkit::Home;
use towline_testkit::page::TOOLKIT_SCRIPT;

fn read(home: &Home, name: &str) -> Job {
    read_job(&home.project().join(name)).unwrap()
}

#[test]
fn the_toolkits_newer_form_is_read_whole() {
    let home = home();
    let script: Vec<&str> = TOOLKIT_SCRIPT.lines().collect();
    let form = serde_json::json!({
        "cluster": {"workspace": "ws", "virtual_cluster": "msrresrchvc", "instance_type": "ND40rs_v2", "node_count": 4, "sla_tier": "Standard", "location": ["eastus", "westus2"]},
        "io": [
            {"name": "blobmnt_fzy", "datastore": "research", "path": "/alice/work/", "mode": "rw_mount"},
            {"name": "in", "datastore": "research", "path": "in", "mode": "ro_mount"},
            {"name": "got", "datastore": "research", "path": "got", "mode": "download"},
            {"name": "out", "datastore": "research", "path": "out", "mode": "upload"}
        ],
        "synchronization": {"target": "out", "ignore_dir": "data;output/"},
        "environment": {"image": "amlt-sing/acpt-torch2.7"},
        "experiment": {"name": "hoi_experiment_v1", "job_name": "hoi_training_run1", "managed_id": "/subscriptions/s/uami", "script": script,
            "arg_sweep": ["lr: 0.1, 0.01", "(bs,acc): (8,4), (16,2)", "seed: 2-4", ""]}
    });
    home.write(
        "submit_jobs.json",
        &serde_json::to_string_pretty(&form).unwrap(),
    );
    let output = home
        .tow(["import", "toolkit", "submit_jobs.json", "--json"])
        .ok();
    let report = &output.json()["reports"][0];
    assert!(keys(report, "not_mapped").is_empty(), "{report}");
    let job = read(&home, "hoi_training_run1.tow.yaml");
    assert_eq!(
        (job.name.as_deref(), job.experiment.as_deref()),
        (Some("hoi_training_run1"), Some("hoi_experiment_v1"))
    );
    assert_eq!(job.cluster.as_slice(), ["msrresrchvc"]);
    assert_eq!(
        (
            job.resources.nodes,
            job.resources.instance_type.as_deref(),
            job.resources.tier
        ),
        (Some(4), Some("ND40rs_v2"), Some(Tier::Standard))
    );
    assert_eq!(job.resources.location.as_slice(), ["eastus", "westus2"]);
    let modes: Vec<(&str, IoMode, &str, bool)> = job
        .io
        .iter()
        .map(|(name, io)| {
            (
                name.as_str(),
                io.mode,
                io.path.as_str(),
                io.options.is_empty(),
            )
        })
        .collect();
    assert_eq!(
        modes,
        [
            ("blobmnt_fzy", IoMode::Mount, "alice/work", true),
            ("got", IoMode::Read, "got", false),
            ("in", IoMode::Read, "in", true),
            ("out", IoMode::Write, "out", true)
        ]
    );
    assert_eq!(
        job.environment.image,
        Some(Image::Any("amlt-sing/acpt-torch2.7".into()))
    );
    assert_eq!(
        job.identity.as_deref(),
        Some("managed:/subscriptions/s/uami")
    );
    assert_eq!(job.code.ignore, ["data", "output"]);
    assert_eq!(job.sweep.combinations().unwrap().len(), 12);
    let written = job.script.unwrap();
    assert!(
        written.starts_with("PAT=\"$PAT\"\n\ncd /tmp\ngit clone https://$PAT@github.com/")
            && written.contains("ln -s ${{blobmnt_fzy}} blobmnt\n"),
        "{written}"
    );
    assert!(
        written.ends_with("sh scripts/shell/train.sh\n")
            && written.contains("export CHECKPOINT=latest"),
        "{written}"
    );
    assert_eq!(job.environment.secrets, ["PAT"]);
    assert!(
        !home
            .read("hoi_training_run1.tow.yaml")
            .contains("github_pat_")
            && !output.stdout.contains("github_pat_")
    );
    assert!(
        report["warnings"]
            .as_array()
            .unwrap()
            .iter()
            .any(|warning| warning.as_str().unwrap().contains("environment.secrets")),
        "{report}"
    );
    assert_values(
        &home,
        &[
            ("clusters.msrresrchvc.kind", "azureml"),
            ("clusters.msrresrchvc.workspace", "ws"),
            ("sync.datastore", "research"),
            ("sync.path", "out"),
            ("sync.ignore", "[data, output]"),
        ],
    );
}

#[test]
fn the_toolkits_older_form_is_read_whole() {
    let home = home_with_keyring();
    let form = serde_json::json!({
        "cluster": {"virtual_cluster": "itplabrr1cl1", "instance_type": "8", "node_count": "2", "sla_tier": "Basic"},
        "storage": {"datastore_name": "research", "container_name": "box", "account_name": "acct", "account_key": CANARY, "sas_token": format!("https://acct.blob.core.windows.net/box?sv=1&sig={CANARY}")},
        "environment": {"docker_image": "AzureML-pytorch", "setup_script": "pip install -r \
            requirements.txt\n\nexport HF_TOKEN=hf_0123456789abcdefgh\n"},
        "experiment": {"name": "exp", "job_name": "job one", "workdir": "alice/code", "copy_data": true, "sync_code": true, "data_dir": "alice/data", "data_subdir": "voc20;coco", "ignore_dir": "data;logs", "script": ["python a.py", "python b.py"]}
    });
    home.write("old.json", &form.to_string());
    let output = home.tow(["import", "toolkit", "old.json", "--json"]).ok();
    assert!(
        !output.stdout.contains(CANARY) && !output.stdout.contains("hf_0123"),
        "{output:?}"
    );
    let job = read(&home, "job-one.tow.yaml");
    assert_eq!(
        (
            job.resources.nodes,
            job.resources.gpus_per_node,
            job.resources.tier
        ),
        (Some(2), Some(8), None)
    );
    assert_eq!(
        job.environment.setup,
        [
            "pip install -r requirements.txt",
            "export HF_TOKEN=\"$HF_TOKEN\""
        ]
    );
    assert_eq!(job.environment.secrets, ["HF_TOKEN"]);
    let copy = job.copy.unwrap();
    assert_eq!(
        (
            copy.datastore.as_str(),
            copy.path.as_str(),
            copy.subdirs.as_slice()
        ),
        (
            "research",
            "alice/data",
            ["voc20".to_owned(), "coco".to_owned()].as_slice()
        )
    );
    assert_eq!(
        (job.io["workdir"].path.as_str(), job.io["workdir"].mode),
        ("alice/code", IoMode::Mount)
    );
    assert_eq!(job.code.ignore, ["data", "logs"]);
    assert_eq!(job.script.as_deref(), Some("python a.py\npython b.py\n"));
    assert_values(
        &home,
        &[
            ("clusters.itplabrr1cl1.compute", "itplabrr1cl1"),
            ("datastores.research.account", "acct"),
            ("datastores.research.container", "box"),
            ("datastores.research.credential.sas", "keyring:research"),
            ("sync.datastore", "research"),
            ("sync.path", "alice/code"),
            ("sync.ignore", "[data, logs]"),
        ],
    );
    let kept = everything(&home, "none").replace(&form.to_string(), "");
    assert!(kept.contains("keyring:research") && !kept.contains(CANARY));
}

/// Modes, tiers and machines as the pages spell them, not as the form's files do.
#[test]
fn the_words_of_the_toolkits_pages_are_taken_as_they_stand_there() {
    let home = home();
    for (tier, ours) in [
        ("Premium", Tier::Premium),
        ("Standard", Tier::Standard),
        ("Basic", Tier::Basic),
    ] {
        let io = |name: &str, mode: &str| serde_json::json!({"name": name, "datastore": "research", "path": name, "mode": mode});
        let form = serde_json::json!({
            "cluster": {"workspace": "ws", "virtual_cluster": "msroctovc", "instance_type": "ND40_v2g1", "node_count": 1, "sla_tier": tier},
            "io": [io("environment", "Read"), io("results", "Write"), io("blobmnt_fzy", "Mount"), io("copied", "Download")],
            "experiment": {"name": "hoi_experiment_v1", "job_name": "hoi_training_run1", "script": ["true"]}
        });
        home.write("submit_jobs.json", &form.to_string());
        home.tow(["import", "toolkit", "submit_jobs.json", "--force"])
            .ok();
        let job = read(&home, "hoi_training_run1.tow.yaml");
        let resources = &job.resources;
        assert_eq!(
            (
                resources.tier,
                resources.instance_type.as_deref(),
                resources.gpus_per_node
            ),
            (Some(ours), Some("ND40_v2g1"), Some(1))
        );
        assert!(
            resources.location.as_slice().is_empty(),
            "no location is the default one: {resources:?}"
        );
        let modes: Vec<(&str, IoMode, &[String])> = job
            .io
            .iter()
            .map(|(name, io)| (name.as_str(), io.mode, io.options.as_slice()))
            .collect();
        let download = ["download".to_owned()];
        assert_eq!(
            modes,
            [
                ("blobmnt_fzy", IoMode::Mount, &[][..]),
                ("copied", IoMode::Read, &download[..]),
                ("environment", IoMode::Read, &[][..]),
                ("results", IoMode::Write, &[][..])
            ]
        );
    }
}

#[test]
fn a_batch_script_becomes_a_job() {
    let home = home();
    home.write(
        "train.sbatch",
        &format!(
            "#!/bin/bash\n#SBATCH -J train --nodes=2\n#SBATCH --gres=gpu:a100:4   # four\n#SBATCH \
                --ntasks-per-node 4\n#SBATCH -c 8\n#SBATCH --mem=64G\n#SBATCH -t \
                    1-12:00:00\n#SBATCH -p gpu -A lab --qos=premium\n#SBATCH \
                        --array=1-7:3%2\n#SBATCH -o out-%j.txt\n#SBATCH \
                            --export=ALL,A=1,WANDB_API_KEY={CANARY}\n#SBATCH -D sub/dir\n#SBATCH \
                                --exclusive --constraint=\"a b\"\n\nmodule load cuda\nsrun python \
                                    train.py $SLURM_ARRAY_TASK_ID '${{{{x}}}}'\n"
        ),
    );
    let output = home
        .tow(["import", "sbatch", "train.sbatch", "--json"])
        .ok();
    assert!(!output.stdout.contains(CANARY), "{output:?}");
    let job = read(&home, "train.tow.yaml");
    let resources = &job.resources;
    assert_eq!(
        (
            resources.nodes,
            resources.gpus_per_node,
            resources.cpus_per_node
        ),
        (Some(2), Some(4), Some(32))
    );
    assert_eq!(
        (
            resources.memory.unwrap().to_string().as_str(),
            resources.time.unwrap().to_string().as_str()
        ),
        ("64G", "1d12h")
    );
    assert_eq!(
        (
            resources.account.as_deref(),
            resources.tier,
            resources.instance_type.as_deref()
        ),
        (Some("lab"), Some(Tier::Premium), Some("a100"))
    );
    assert_eq!(
        resources.native,
        [
            "--partition=gpu",
            "--exclusive",
            "--constraint='a b'",
            "--ntasks-per-node=4",
            "--cpus-per-task=8"
        ]
    );
    assert_eq!(
        (job.launch, job.code.workdir.as_deref()),
        (Some(Launch::Once), Some("sub/dir"))
    );
    assert_eq!(job.sweep.combinations().unwrap().len(), 3);
    assert_eq!(
        (
            job.environment.env["A"].as_str(),
            job.environment.env["SLURM_ARRAY_TASK_ID"].as_str()
        ),
        ("1", "${{task}}")
    );
    assert_eq!(job.environment.secrets, ["WANDB_API_KEY"]);
    assert_eq!(
        job.script.as_deref(),
        Some(
            "#!/bin/bash\n\nmodule load cuda\nsrun python train.py $SLURM_ARRAY_TASK_ID '$${{x}}'\n"
        )
    );
    let report = &output.json()["reports"][0];
    let lost = keys(report, "not_mapped");
    assert_eq!(
        lost,
        ["--array: %2", "--export: ALL", "--export: WANDB_API_KEY"]
    );
    assert_eq!(keys(report, "not_needed"), ["--output"]);
}

#[test]
fn what_was_made_from_a_batch_script_runs() {
    let home = home();
    home.write(
        "small.sh",
        "#!/bin/sh\n#SBATCH -J small\n#SBATCH \
        --array=4,6\nmissing-command\necho task $SLURM_ARRAY_TASK_ID\n",
    );
    home.tow(["import", "sbatch", "small.sh"]).ok();
    let id = home.tow(["submit", "-f", "small.tow.yaml"]).ok().id();
    home.tow(["wait", &id]).ok();
    let said: Vec<String> = super::ids(&super::runs(&home, &[&id]))
        .iter()
        .map(|run| home.tow(["logs", run]).ok().stdout)
        .collect();
    assert!(
        said.iter().any(|log| log.ends_with("task 4\n"))
            && said.iter().any(|log| log.ends_with("task 6\n")),
        "{said:?}"
    );
}

#[test]
fn a_malformed_file_is_named_with_line_and_column_and_nothing_is_written() {
    let home = home();
    let table: &[(&str, &str, &str)] = &[
        ("act", "x: [1", ":"),
        ("act", "", ":1:1: it is empty"),
        ("toolkit", "{}", ":1:1: it is empty"),
        (
            "act",
            "env: {\"bad name\": 1}\n",
            ":1:7: `env`: `bad name` is not the name",
        ),
        (
            "act",
            "{\"subscription_id\": \"s\"}",
            ":1:2: this is the file that names a workspace",
        ),
        (
            "act",
            "account_name: a\n",
            ":1:1: this is a storage account",
        ),
        ("act", "colour: red\n", ":1:1: no key here is one of ACT's"),
        ("act", "docker: {<<: x}\n", ":1:14: `<<` takes a mapping"),
        ("act", "- a\n- b\n", ":1:1: expected a mapping"),
        ("act", "a: 1\na: 2\n", ":2:1: `a` is given twice"),
        (
            "act",
            "compute_target: !!python/object/apply:os.system ['touch pwned']\n",
            ":1:17: a value with the tag `!!python/object/apply:os.system`",
        ),
        (
            "act",
            "a: 1\nenv: !!python/object:x.Y {}\n",
            ":2:6: a value with the tag",
        ),
        (
            "act",
            "docker: !Custom {image: x}\n",
            ":1:9: a value with the tag `!Custom`",
        ),
        (
            "act",
            "compute_target: [a]\n",
            ":1:17: `compute_target` must be a text",
        ),
        (
            "act",
            "platform: moon\n",
            ":1:11: `platform` is aml, itp or singularity",
        ),
        (
            "act",
            "multi_process: perhaps\n",
            ":1:16: `multi_process` must be true or false",
        ),
        (
            "act",
            "gpu_per_node: many\n",
            ":1:15: `gpu_per_node` must be a whole number",
        ),
        (
            "act",
            "gpu_per_node: 0\n",
            ":1:15: `gpu_per_node` is at least 1",
        ),
        (
            "act",
            "num_gpu: 6\n",
            ":1:10: `num_gpu`: 6 GPUs do not fill",
        ),
        ("act", "docker: x\n", ":1:9: `docker` must be a mapping"),
        ("act", "env: [a]\n", ":1:6: `env` must be a mapping"),
        (
            "act",
            "aml_config: nowhere.json\n",
            ":1:13: `aml_config`: there is no file",
        ),
        (
            "act",
            "config_param: {data_folder: {azure_blob_config_file: no.yaml, path: x}}\n",
            ":1:54: `config_param.data_folder.azure_blob_config_file`: there is no file",
        ),
        (
            "act",
            "config_param: {data_folder: x}\n",
            ":1:29: `config_param.data_folder` is a path alone",
        ),
        (
            "act",
            "_base_: none.yaml\n",
            ":1:9: `_base_`: there is no file",
        ),
        ("act", "a: 1\n_base_: bad\n", ":2:9: `_base_` leads back"),
        (
            "act",
            "platform: singularity\nsingularity_sla_tier: Gold\n",
            ":2:23: a tier is",
        ),
        (
            "qd",
            "vc: a\ncluster: b\nblob_mount_info: x\nconfig_param: {}\n",
            ":3:18: `blob_mount_info` must be a list",
        ),
        ("toolkit", "{\"cluster\": {}", ":"),
        (
            "toolkit",
            "{\"cluster\": {}}",
            ":1:1: there is no `experiment`",
        ),
        (
            "toolkit",
            "{\"experiment\": {\"name\": \"x\"}}",
            ":1:16: `experiment.script` is missing",
        ),
        (
            "toolkit",
            "{\"experiment\": {\"script\": [\"x\"]}, \"io\": {}}",
            ":1:41: `io` must be a list",
        ),
        (
            "toolkit",
            "{\"experiment\": {\"script\": \
                [\"x\"]},\n \"io\": [{\"name\": \"a\", \"datastore\": \"b\", \"mode\": \"fly\"}]}",
            ":2:49: `fly` is not a mode",
        ),
        (
            "toolkit",
            "{\"experiment\": {\"script\": [\"x\"], \"arg_sweep\": [\"lr 0.1\"]}}",
            ":1:48: `lr 0.1`: a sweep is written",
        ),
        (
            "toolkit",
            "{\"experiment\": {\"script\": \
                [\"x\"]}, \"cluster\": {\"virtual_cluster\": \"v\", \"sla_tier\": \"Gold\"}}",
            ":1:83: a tier is",
        ),
        (
            "toolkit",
            "{\"experiment\": {\"script\": \
                [\"x\"]}, \"cluster\": {\"virtual_cluster\": \"v\", \"node_count\": -1}}",
            ":1:85: `cluster.node_count` must be a whole number",
        ),
        ("sbatch", "echo hello\n", ":1:1: this is not a batch script"),
        (
            "sbatch",
            "#!/bin/sh\n#SBATCH --nodes=abc\necho\n",
            ":2:9: `--nodes`: `abc` is not a number",
        ),
        (
            "sbatch",
            "#!/bin/sh\n#SBATCH -N 1 --time=soon\necho\n",
            ":2:14: `--time`: `soon` is not a time",
        ),
        (
            "sbatch",
            "#!/bin/sh\n#SBATCH --mem=lots\necho\n",
            ":2:9: `--mem`: `lots` is not a size",
        ),
        (
            "sbatch",
            "#!/bin/sh\n#SBATCH --array=9-1\necho\n",
            ":2:9: `--array`: `9-1` is not a list",
        ),
        (
            "sbatch",
            "#!/bin/sh\n#SBATCH --gres=gpu:a:b\necho\n",
            ":2:9: `--gres`: `a:b` is not a number of GPUs",
        ),
        (
            "sbatch",
            "#!/bin/sh\n#SBATCH nodes=2\necho\n",
            ":2:9: `nodes=2` is not an option",
        ),
        (
            "sbatch",
            "#!/bin/sh\n#SBATCH --comment=\"open\necho\n",
            ":2:8: a quote is not closed",
        ),
        (
            "sbatch",
            "#!/bin/sh\n#SBATCH --job-name\necho\n",
            ":2:9: `--job-name` has no value",
        ),
        (
            "sbatch",
            "#!/bin/sh\n#SBATCH -N 1\n# nothing\n",
            ":1:1: the script has no command",
        ),
    ];
    assert!(table.len() >= 30);
    let place = regex::Regex::new(r"bad:\d+:\d+: ").unwrap();
    for (tool, text, part) in table {
        home.write("bad", text);
        let output = home.tow(["import", tool, "bad"]);
        assert_eq!(output.code, 121, "{tool} {text:?}: {output:?}");
        assert!(
            place.is_match(&output.stderr) && output.stderr.contains(&format!("bad{part}")),
            "{tool} {text:?}: {output:?}"
        );
        let names: Vec<_> = std::fs::read_dir(home.project())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(names, ["bad"], "{tool} {text:?}");
    }
    let none = home.tow(["import", "act", "nowhere.yaml"]);
    assert_eq!(none.code, 121, "{none:?}");
    home.write("raw", "");
    std::fs::write(home.project().join("raw"), b"a: \xff\n").unwrap();
    assert_eq!(home.tow(["import", "act", "raw"]).code, 121);
}

#[test]
fn a_file_of_amlt_that_is_submitted_is_known_for_what_it_is() {
    let home = home();
    home.write(
        "amlt.yaml",
        "description: x\ntarget: {service: sing, name: vc}\njobs:\n- \
        {name: a, command: [python train.py]}\n",
    );
    let refused = home.tow(["submit", "-f", "amlt.yaml"]);
    assert!(
        refused.code == 121 && refused.stderr.contains("tow import amlt amlt.yaml"),
        "{refused:?}"
    );
}
