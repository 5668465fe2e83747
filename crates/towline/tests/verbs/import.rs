//! `tow import`: other tools' files become ours, nothing is lost in silence, and no secret is
//! copied.

use super::home;
use serde_json::Value;
use std::path::PathBuf;
use towline_testkit::Home;

pub(super) const CANARY: &str = "Q2FuYXJ5S2V5MDEyMzQ1Njc4OQ==";

/// The example of ACT's page, with its account files.
pub(super) const AML: &str = r"azure_blob_config_file: null
datastore_name: null
aml_config: aux_data/aml/config.json
config_param:
   code_path:
       azure_blob_config_file: ./aux_data/configs/vigeastblob_account.yaml
       path: path/to/code.zip
   data_folder:
       azure_blob_config_file: ./aux_data/configs/vigeastblob_account.yaml
       path: path/to/data
   output_folder:
       azure_blob_config_file: ./aux_data/configs/vigeastblob_account.yaml
       path: path/to/output
use_custom_docker: true
compute_target: NC24RSV3
aks_compute: false
docker:
    image: amsword/setup:py36pt16
experiment_name: experiment_name
use_cli_auth: True
multi_process: True
gpu_per_node: 4
env:
   NCCL_IB_DISABLE: '0'
zip_options:
    - '-x'
    - '\*src/py-faster-rcnn/\*'
    - '-x'
    - '\*src/CMC/\*'
";

pub(super) fn act_project(home: &Home) {
    home.write("aux_data/aml/aml.yaml", AML);
    home.write("aux_data/aml/config.json", "{\n\t\"subscription_id\": \"sub-1\",\n\t\"resource_group\": \"group\",\n\t\"workspace_name\": \"space\"\n}\n");
    account(home, "vigeastblob");
}

pub(super) fn account(home: &Home, name: &str) -> PathBuf {
    let text = format!(
        "account_name: {name}acct\naccount_key: {CANARY}\nsas_token: \
            ?sv=2020&sig={CANARY}\ncontainer_name: {name}box\n"
    );
    home.write(&format!("aux_data/configs/{name}_account.yaml"), &text)
}

/// Everything below the project and the state as one text.
pub(super) fn everything(home: &Home, but: &str) -> String {
    let mut all = String::new();
    let mut folders = vec![home.project(), home.path("state")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() && !path.ends_with(but) {
                folders.push(path);
            } else if let Ok(bytes) = std::fs::read(&path) {
                all += &String::from_utf8_lossy(&bytes);
            }
        }
    }
    all
}

fn values(home: &Home) -> std::collections::BTreeMap<String, String> {
    let json = home.tow(["config", "show", "--json"]).ok().json();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    json["values"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| (text(&entry["key"]), text(&entry["value"])))
        .collect()
}

#[track_caller]
pub(super) fn assert_values(home: &Home, expected: &[(&str, &str)]) {
    let values = values(home);
    for (key, value) in expected {
        assert_eq!(
            values.get(*key).map(String::as_str),
            Some(*value),
            "{key} of {values:#?}"
        );
    }
}

pub(super) fn keys(report: &Value, list: &str) -> Vec<String> {
    report[list]
        .as_array()
        .unwrap()
        .iter()
        .map(|line| line["key"].as_str().unwrap().to_owned())
        .collect()
}

/// A machine that has a keyring.
pub(super) fn home_with_keyring() -> Home {
    let mut home = home();
    let programs = home.path("programs");
    std::fs::create_dir_all(&programs).unwrap();
    towline_testkit::program(&programs.join("secret-tool"), "#!/bin/sh\nexit 1\n");
    home.set("PATH", &format!("{}:/usr/bin:/bin", programs.display()));
    home
}

#[test]
fn the_example_of_acts_page_is_found_at_its_place() {
    let home = home_with_keyring();
    act_project(&home);
    let output = home
        .tow(["import", "act", "aux_data/aml/aml.yaml", "--json"])
        .ok();
    assert!(
        !output.stdout.contains(CANARY) && !output.stderr.contains(CANARY),
        "{output:?}"
    );
    let report = &output.json()["reports"][0];
    assert!(keys(report, "not_mapped").is_empty(), "{report}");
    assert!(
        keys(report, "not_needed").contains(&"config_param.code_path".to_owned()),
        "{report}"
    );
    assert!(
        report["commands"][0]
            .as_str()
            .unwrap()
            .starts_with("secret-tool store --label=vigeastblob towline vigeastblob"),
        "{report}"
    );
    // What was written counts also without ACT's files.
    std::fs::remove_dir_all(home.project().join("aux_data")).unwrap();
    assert_values(
        &home,
        &[
            ("default_cluster", "aml"),
            ("clusters.aml.kind", "azureml"),
            ("clusters.aml.subscription", "sub-1"),
            ("clusters.aml.resource_group", "group"),
            ("clusters.aml.workspace", "space"),
            ("clusters.aml.compute", "NC24RSV3"),
            ("clusters.aml.gpus_per_node", "4"),
            ("clusters.aml.job.experiment", "experiment_name"),
            ("clusters.aml.job.launch", "per_gpu"),
            (
                "clusters.aml.job.environment.image",
                "amsword/setup:py36pt16",
            ),
            ("clusters.aml.job.environment.env.NCCL_IB_DISABLE", "0"),
            (
                "clusters.aml.job.code.ignore",
                "[**/*src/py-faster-rcnn/, **/*src/CMC/]",
            ),
            ("clusters.aml.folders.data.path", "path/to/data"),
            ("folders.output.path", "path/to/output"),
            ("folders.data.datastore", "vigeastblob"),
            ("datastores.vigeastblob.account", "vigeastblobacct"),
            ("datastores.vigeastblob.container", "vigeastblobbox"),
            (
                "datastores.vigeastblob.credential.sas",
                "keyring:vigeastblob",
            ),
        ],
    );
    let kept = everything(&home, "aux_data");
    assert!(kept.contains("keyring:vigeastblob") && !kept.contains(CANARY));
}

#[test]
fn what_is_there_is_added_to_and_never_written_over_unasked() {
    let home = home();
    act_project(&home);
    let mine = "# mine\nclusters:\n  # the lab\n  lab: {kind: slurm, host: login}\n";
    home.write("towline.yaml", mine);
    let shown = home
        .tow(["import", "act", "aux_data/aml/aml.yaml", "--dry-run"])
        .ok();
    assert!(
        shown.stdout.contains("--- towline.yaml\n# mine\n"),
        "{shown:?}"
    );
    assert_eq!(home.read("towline.yaml"), mine);
    let added = home.tow(["import", "act", "aux_data/aml/aml.yaml"]).ok();
    assert!(
        added.stdout.contains("added to towline.yaml\n"),
        "{added:?}"
    );
    let text = home.read("towline.yaml");
    assert!(
        text.contains("# mine\n")
            && text.contains("  # the lab\n  lab: {kind: slurm, host: login}\n")
            && text.contains("azureml"),
        "{text}"
    );
    let again = home.tow(["import", "act", "aux_data/aml/aml.yaml"]).ok();
    assert!(
        again.stdout.contains("towline.yaml has all of it already"),
        "{again:?}"
    );
    assert_eq!(home.read("towline.yaml"), text);
    // What contradicts it is refused, and nothing changes.
    home.write("aux_data/aml/aml.yaml", &AML.replace("NC24RSV3", "ND40"));
    let refused = home.tow(["import", "act", "aux_data/aml/aml.yaml"]);
    assert_eq!(refused.code, 123, "{refused:?}");
    assert!(
        refused.stderr.contains(
            "`clusters.aml.compute` is `NC24RSV3` there, and `ND40` in aux_data/aml/aml.yaml:"
        ),
        "{refused:?}"
    );
    assert_eq!(home.read("towline.yaml"), text);
    home.tow(["import", "act", "aux_data/aml/aml.yaml", "--force"])
        .ok();
    assert!(
        home.read("towline.yaml").contains("ND40") && home.read("towline.yaml").contains("login")
    );
    assert_eq!(home.read("towline.yaml.old"), text);
}

#[test]
fn a_job_file_that_is_there_is_written_over_only_by_force() {
    let home = home();
    home.write("small.sh", "#!/bin/sh\n#SBATCH -J small\necho\n");
    home.write("small.tow.yaml", "command: mine\n");
    let refused = home.tow(["import", "sbatch", "small.sh"]);
    assert_eq!(refused.code, 123, "{refused:?}");
    assert_eq!(home.read("small.tow.yaml"), "command: mine\n");
    home.tow(["import", "sbatch", "small.sh", "--force"]).ok();
    assert!(home.read("small.tow.yaml").contains("script:"));
}

#[test]
fn a_device_is_not_read() {
    let home = home();
    let refused = home.tow(["import", "act", "/dev/zero"]);
    assert_eq!(refused.code, 121, "{refused:?}");
    assert!(
        refused.stderr.contains("/dev/zero is not a plain file"),
        "{refused:?}"
    );
}

#[test]
fn every_key_of_act_is_mapped_or_answered() {
    let home = home();
    act_project(&home);
    home.write(
        "aux_data/aml/sing.yaml",
        &format!(
            "_base_: aml.yaml\naml_config: {{subscription_id: s2, resource_group: g2, \
                workspace_name: w2}}\nplatform: singularity\ncompute_target: \
                    msrresrchvc\nmulti_process: no\ngpu_per_node: 8\nnum_gpu: 16\n\
             singularity_sla_tier: Basic\nsingularity_instance_type: \
                 Singularity.ND40rs_v2\nprocess_count_per_node: 2\nsleep_if_fail: \
                     true\nsleep_if_succeed: true\ncompile_args: x\nelastic_num_gpu: [8]\n\
             interpreter_path: python\nentry_script: aml_server.py\nwith_log: \
                 true\nsource_directory: null\nis_ssh_scheduler: true\nmystery: 1\ndocker: \
                     {{image: me/x, address: reg.azurecr.io, username: u, password: '{CANARY}'}}\n\
             env: {{WANDB_API_KEY: '{CANARY}', A: 1}}\nconfig_param:\n  share_folder: \
                 {{storage_type: file, file_share: f}}\n  models_folder: {{azure_blob_config_file: \
                     ./aux_data/configs/vigeastblob_account.yaml, path: /m/, submit_with_url: \
                         true}}\n"
        ),
    );
    let output = home
        .tow([
            "import",
            "act",
            "aux_data/aml/aml.yaml",
            "aux_data/aml/sing.yaml",
            "--json",
        ])
        .ok();
    assert!(!output.stdout.contains(CANARY), "{output:?}");
    let report = &output.json()["reports"][1];
    let lost = keys(report, "not_mapped");
    for key in [
        "docker.username",
        "docker.password",
        "sleep_if_succeed",
        "compile_args",
        "elastic_num_gpu",
        "is_ssh_scheduler",
        "mystery",
        "env.WANDB_API_KEY",
        "config_param.share_folder.storage_type",
    ] {
        assert!(lost.contains(&key.to_owned()), "{key} is not in {lost:?}");
    }
    std::fs::remove_dir_all(home.project().join("aux_data")).unwrap();
    assert_values(
        &home,
        &[
            ("clusters.aml.compute", "NC24RSV3"),
            ("clusters.sing.virtual_cluster", "msrresrchvc"),
            ("clusters.sing.workspace", "w2"),
            ("clusters.sing.gpus_per_node", "8"),
            ("clusters.sing.job.resources.nodes", "2"),
            ("clusters.sing.job.resources.tier", "basic"),
            (
                "clusters.sing.job.resources.instance_type",
                "Singularity.ND40rs_v2",
            ),
            ("clusters.sing.job.launch", "per_node"),
            ("clusters.sing.job.hold_on_failure", "14d"),
            ("clusters.sing.job.environment.image", "reg.azurecr.io/me/x"),
            ("clusters.sing.job.environment.secrets", "[WANDB_API_KEY]"),
            ("clusters.sing.job.environment.env.A", "1"),
            ("clusters.sing.folders.models.path", "m"),
            ("clusters.sing.folders.data.path", "path/to/data"),
        ],
    );
}

#[test]
fn qds_files_for_philly_become_what_they_can() {
    let home = home();
    account(&home, "vigeastblob");
    account(&home, "vigblob");
    home.write(
        "aux_data/configs/multi_philly_vc.yaml",
        " clusters:\n     - wu1\n     - sc2\n",
    );
    home.write(
        "aux_data/configs/philly_vc.yaml",
        "vc: input\ncluster: wu1\nuser_name: jianfw\npassword: null\nblob_mount_info:\n    - \
            blob_mount_point: /blob\n      azure_blob_config_file: \
                ./aux_data/configs/vigeastblob_account.yaml\n      blob_fuse_options: ['-o', \
                    'attr_timeout=240']\n    - blob_mount_point: \
                        /data_blob\n      azure_blob_config_file: \
                            ./aux_data/configs/vigblob_account.yaml\nmulti_process: \
                                true\nconfig_param:\n    code_path: /blob/jianfw/code/quickdetection.zip\n    data_folder: /data_blob/jianfw/data/qd_data\n    model_folder: /blob/jianfw/work/qd_models\n    old_folder: /hdfs/input/x\ndocker:\n    image: philly/jobs/test/vig-qd-env\n    tag: py36ptnight\n",
    );
    let output = home
        .tow([
            "import",
            "qd",
            "aux_data/configs/multi_philly_vc.yaml",
            "aux_data/configs/philly_vc.yaml",
            "--json",
        ])
        .ok();
    let report = &output.json()["reports"][1];
    assert!(
        report["warnings"][0]
            .as_str()
            .unwrap()
            .contains("tow cannot use it yet"),
        "{report}"
    );
    assert_eq!(
        keys(report, "not_mapped"),
        [
            "blob_mount_info.blob_fuse_options",
            "config_param.old_folder",
            "user_name"
        ]
    );
    assert_values(
        &home,
        &[
            ("clusters.sc2.kind", "philly"),
            ("clusters.wu1.kind", "philly"),
            ("clusters.wu1.virtual_cluster", "input"),
            ("clusters.wu1.job.launch", "per_gpu"),
            (
                "clusters.wu1.job.environment.image",
                "philly/jobs/test/vig-qd-env:py36ptnight",
            ),
            ("clusters.wu1.folders.data.datastore", "vigblob"),
            ("clusters.wu1.folders.data.path", "jianfw/data/qd_data"),
            ("clusters.wu1.folders.model.path", "jianfw/work/qd_models"),
        ],
    );
}

#[test]
fn defaults_of_the_other_tool_have_a_title_of_their_own() {
    let home = home();
    act_project(&home);
    home.write(
        "aux_data/aml/aml.yaml",
        &AML.replace("gpu_per_node: 4\n", ""),
    );
    let shown = home
        .tow(["import", "act", "aux_data/aml/aml.yaml", "--dry-run"])
        .ok();
    assert!(
        shown.stdout.contains("  assumed\n    gpu_per_node"),
        "{shown:?}"
    );
}
