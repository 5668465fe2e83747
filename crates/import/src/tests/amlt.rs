//! Files of amlt.

use super::*;

const AMLT_FILE: &str = "description: pretraining
target: {service: sing, name: msrresrchvc, workspace_name: space, workspace_subscription_id: sub, workspace_resource_group: group, subscription_id: other}
environment:
  image: pytorch:2.1
  registry: lab.azurecr.io
  setup: [pip install -r requirements.txt]
  env: {HF_TOKEN: hf_0123456789abcdef, MODE: full}
code: {local_dir: $CONFIG_DIR, ignore: [data]}
storage:
  data: {storage_account_name: acct, container_name: box, mount_dir: /mnt/data}
  data2: {datastore_name: workspaceblobstore}
  output: {storage_account_name: acct, container_name: out}
env_defaults: {SEED: 1}
jobs:
- name: train
  sku: 2x80G8-A100@westus3
  process_count_per_node: -1
  sla_tier: Premium
  priority: High
  identity: user
  tags: ['team:vision']
  submit_args: {max_attempts: 3, max_run_duration_seconds: 7200, env: {A: \
      b}, container_args: {shm_size: 64g}}
  command:
  - python train.py --data /mnt/data/voc --more /mnt/data2 --out $$AMLT_OUTPUT_DIR --seed $SEED
- name: eval
  sku: C4
  preemptible: true
  command: [python eval.py]
";

#[test]
fn each_job_is_a_job_file_and_the_target_a_cluster() {
    let all = imported(Kind::Amlt, &[("a.yaml", AMLT_FILE)]);
    assert_values(
        &all,
        "towline.yaml",
        &[
            ("clusters/msrresrchvc/kind", "azureml"),
            ("clusters/msrresrchvc/virtual_cluster", "msrresrchvc"),
            ("clusters/msrresrchvc/workspace", "space"),
            ("clusters/msrresrchvc/subscription", "sub"),
            ("clusters/msrresrchvc/resource_group", "group"),
            ("datastores/data/account", "acct"),
            ("datastores/data/credential", "azure_cli"),
            ("datastores/data2", "(none)"),
        ],
    );
    assert_values(
        &all,
        "train.tow.yaml",
        &[
            ("cluster", "msrresrchvc"),
            ("resources/nodes", "2"),
            ("resources/gpus_per_node", "8"),
            ("resources/tier", "premium"),
            ("resources/location", "[westus3]"),
            ("resources/time", "2h"),
            ("resources/native", "[\"priority=High\", \"shm_size=64g\"]"),
            ("launch", "per_gpu"),
            ("identity", "user"),
            ("retry/max", "3"),
            ("environment/image", "lab.azurecr.io/pytorch:2.1"),
            ("environment/secrets", "[HF_TOKEN]"),
            ("environment/env/MODE", "full"),
            ("environment/env/AMLT_OUTPUT_DIR", "${{output}}"),
            ("io/data2/datastore", "workspaceblobstore"),
            (
                "script",
                "python train.py --data ${{data}}/voc --more ${{data2}} --out $AMLT_OUTPUT_DIR \
                    --seed $SEED\n",
            ),
        ],
    );
    assert_values(
        &all,
        "eval.tow.yaml",
        &[
            ("resources/cpus_per_node", "4"),
            ("resources/tier", "basic"),
            ("launch", "once"),
            ("script", "python eval.py\n"),
        ],
    );
    let report = &all.reports[0];
    assert!(
        warns(report, "write its name as `resources.instance_type`")
            && warns(report, "filled in at submission"),
        "{report:#?}"
    );
    assert!(
        says(&report.not_mapped, "environment.env.HF_TOKEN").contains("a secret")
            && !all.files.iter().any(|made| made.text.contains("hf_0123")),
        "{all:#?}"
    );
}

#[test]
fn a_search_over_listed_values_is_a_sweep() {
    let text = "target: {service: aml, name: nc24, workspace_name: w, subscription_id: s, resource_group: g}\nsearch:\n  max_trials: 4\n  job_template: {name: 's_{lr}', sku: G1, command: ['python x.py --lr {lr} --w {wd}']}\n  params:\n  - {name: lr, spec: discrete, values: [0.1, 0.01]}\n  - {name: wd, spec: uniform, low: 0, high: 1}\n";
    let all = imported(Kind::Amlt, &[("a.yaml", text)]);
    assert_values(
        &all,
        "towline.yaml",
        &[
            ("clusters/nc24/compute", "nc24"),
            ("clusters/nc24/subscription", "s"),
        ],
    );
    assert_values(
        &all,
        "s_lr.tow.yaml",
        &[
            ("sweep/lr", "[0.1, 0.01]"),
            ("script", "python x.py --lr ${{lr}} --w {wd}\n"),
        ],
    );
    let report = &all.reports[0];
    assert!(
        says(&report.not_mapped, "search.params[1].spec").contains("`uniform` draws values"),
        "{report:#?}"
    );
    assert!(
        says(&report.not_mapped, "search.max_trials").contains("all its combinations"),
        "{report:#?}"
    );
}

#[test]
fn what_is_no_file_of_amlt_is_refused() {
    assert!(
        refused(Kind::Amlt, "a.yaml", "target: {service: aml}\n")
            .to_string()
            .contains("neither `jobs` nor `search`")
    );
    assert!(
        refused(
            Kind::Amlt,
            "a.yaml",
            "jobs: [{name: a, sku: many, command: [x]}]\n"
        )
        .to_string()
        .contains("`sku: many` cannot be read")
    );
    assert!(
        refused(Kind::Amlt, "a.yaml", "jobs: [{name: a}]\n")
            .to_string()
            .contains("`jobs[0].command` is missing")
    );
}
