//! Every field of the MSRA Intern's Toolkit, in its newer and its older form: what was filled in
//! there is imported, submitted, found in its place in the job that was put, and does there what it
//! says.

use crate::lab::Lab;
use serde_json::{Value, json};
use std::fs;
use towline_testkit::page::TOOLKIT_SCRIPT;

const PAT: &str = "github_pat_11ABCDEFG0123456789_abcdefghijklmnopqrstuvwxyz";

/// The page's script, with a token, and with more for the training to read. Only the folder
/// differs: four nodes share this machine's `/tmp`.
fn script() -> String {
    let changes = [
        ("github_pat_....", PAT),
        ("cd /tmp", "cd $(mktemp -d)"),
        ("train.sh\n", "train.sh ${{environment}} ${{results}}\n"),
    ];
    changes
        .iter()
        .fold(TOOLKIT_SCRIPT.to_owned(), |script, (from, to)| {
            assert!(script.contains(from), "{from}");
            script.replace(from, to)
        })
}

/// What `git` brings here: a training that reads its input and writes where it may.
const GIT: &str = r#"#!/bin/sh
case "$1" in
clone)
    mkdir -p HOI_moge/scripts/shell
    echo "cloned $2"
    cat > HOI_moge/scripts/shell/train.sh <<'END'
cat "$1/vocabulary.txt" blobmnt/pretrained.txt
echo "node $NODE_RANK of $NUM_MACHINES, $NUM_PROCESSES in all, $CONFIG, master $MASTER_ADDR:$MASTER_PORT"
echo "accumulation $GRADIENT_ACCUMULATION_STEPS, batch $BATCH_SIZE_FORWARD, $SCRIPT, checkpointing $GRADIENT_CHECKPOINTING"
mkdir -p $WORKSPACE
echo "$CHECKPOINT" > $WORKSPACE/node-$NODE_RANK
echo "result of $NODE_RANK" > "$2/node-$NODE_RANK"
END
    ;;
checkout) echo "at $2" ;;
esac
"#;

fn programs(lab: &Lab) -> String {
    let folder = lab.home.path("programs");
    fs::create_dir_all(&folder).unwrap();
    towline_testkit::program(&folder.join("git"), GIT);
    format!("{}:/usr/bin:/bin", folder.display())
}

/// Where the service of the test is; the rest of the cluster comes from the imported form.
fn reached(lab: &Lab, cluster: &str, more: &str) {
    let own = format!(
        "{{kind: azureml, endpoint: '{}', credential: managed_identity{more}}}",
        lab.aml.endpoint()
    );
    lab.home
        .configure(&format!("clusters:\n  {cluster}: {own}\n"));
}

fn of<'a>(put: &'a Value, path: &str) -> &'a Value {
    put.pointer(path).unwrap_or(&Value::Null)
}

#[track_caller]
fn assert_fields(put: &Value, wanted: &[(&str, Value)]) {
    for (path, value) in wanted {
        assert_eq!(of(put, path), value, "{path} of {put:#}");
    }
}

/// The newer form, filled in as its page says.
fn newer(lab: &Lab) -> Value {
    json!({
        "cluster": {
            "virtual_cluster": lab.aml.cluster(), "workspace": lab.aml.scope().workspace, "instance_type": "ND96amrs_A100_v4", "node_count": 4, "sla_tier": "Premium",
            "location": ["westus3"],
        },
        "io": [
            {"name": "blobmnt_fzy", "datastore": "workspaceblobstore", "path": "/fzy/", "mode": "rw_mount"},
            {"name": "environment", "datastore": "workspaceblobstore", "path": "sets", "mode": "ro_mount"},
            {"name": "results", "datastore": "workspaceblobstore", "path": "fzy/results", "mode": "upload"},
        ],
        "environment": {"image": "acpt-2.2.1-py3.10-cuda12.1"},
        "experiment": {"name": "hoi_experiment_v1", "job_name": "hoi_training_run1", "managed_id": "tow", "script": script().lines().collect::<Vec<_>>()},
    })
}

#[test]
fn every_field_of_the_newer_form_has_its_place_and_its_effect() {
    let mut lab = Lab::new();
    let container = lab.aml.container();
    lab.aml
        .put_blob(&container, "fzy/pretrained.txt", "weights\n");
    lab.aml
        .put_blob(&container, "sets/vocabulary.txt", "words\n");
    lab.home.write("submit_jobs.json", &newer(&lab).to_string());
    lab.tow(["import", "toolkit", "submit_jobs.json"]).ok();
    reached(
        &lab,
        "vc",
        &format!(
            ", job: {{environment: {{env: {{PATH: '{}'}}}}}}",
            programs(&lab)
        ),
    );
    lab.home.set("PAT", PAT);
    let id = lab
        .tow(["submit", "-f", "hoi_training_run1.tow.yaml"])
        .ok()
        .id();
    let record = lab.ended(&id);
    let logs = |rank: u32| lab.tow(["logs", &id, "--rank", &rank.to_string()]).stdout;
    assert_eq!(record["state"], "succeeded", "{record:#} {}", logs(0));
    let put = lab.put(&id);
    assert_fields(
        &put,
        &[
            ("/computeId", json!(lab.aml.cluster())),
            ("/displayName", json!("hoi_training_run1")),
            ("/experimentName", json!("hoi_experiment_v1")),
            ("/resources/instanceCount", json!(4)),
            (
                "/resources/properties/AISuperComputer/instanceType",
                json!("Singularity.ND96amrs_A100_v4"),
            ),
            (
                "/resources/properties/AISuperComputer/instanceCount",
                json!(4),
            ),
            (
                "/resources/properties/AISuperComputer/slaTier",
                json!("Premium"),
            ),
            (
                "/resources/properties/AISuperComputer/locations",
                json!(["westus3"]),
            ),
            (
                "/resources/properties/AISuperComputer/virtualClusterArmId",
                json!(lab.aml.cluster()),
            ),
            (
                "/resources/properties/AISuperComputer/imageVersion",
                json!("acpt-2.2.1-py3.10-cuda12.1"),
            ),
            ("/inputs/environment/mode", json!("ReadOnlyMount")),
            (
                "/inputs/environment/uri",
                json!("azureml://datastores/workspaceblobstore/paths/sets/"),
            ),
            ("/outputs/blobmnt_fzy/mode", json!("ReadWriteMount")),
            (
                "/outputs/blobmnt_fzy/uri",
                json!("azureml://datastores/workspaceblobstore/paths/fzy/"),
            ),
            ("/outputs/results/mode", json!("Upload")),
            (
                "/outputs/results/uri",
                json!("azureml://datastores/workspaceblobstore/paths/fzy/results/"),
            ),
            ("/identity", Value::Null),
        ],
    );
    let uai = of(&put, "/environmentVariables/_AZUREML_SINGULARITY_JOB_UAI")
        .as_str()
        .unwrap_or_default();
    assert!(uai.ends_with("/userAssignedIdentities/tow"), "{put:#}");
    let mut masters = std::collections::BTreeSet::new();
    for node in 0..4 {
        let log = logs(node);
        let cloned = format!(
            "cloned https://{PAT}@github.com/AaronFengZY/HOI_moge.git\nat \
                hoimoge\nwords\nweights\nnode {node} of 4, 32 in all, \
                    configs/revision/fzy_ft/vitl_contitrain.json, "
        );
        assert!(log.starts_with(&cloned), "{node}: {log}");
        assert!(
            log.ends_with(
                "\naccumulation 1, batch 2, scripts/train/train.py, checkpointing True\n"
            ),
            "{node}: {log}"
        );
        masters.insert(
            log.split("master ")
                .nth(1)
                .unwrap_or_default()
                .lines()
                .next()
                .unwrap_or_default()
                .to_owned(),
        );
        assert_eq!(
            lab.aml
                .blob(
                    &container,
                    &format!("fzy/workspace/fzy_ft/vitl_contitrain/node-{node}")
                )
                .as_deref(),
            Some("latest\n")
        );
        assert_eq!(
            lab.aml
                .blob(&container, &format!("fzy/results/node-{node}")),
            Some(format!("result of {node}\n"))
        );
    }
    assert_eq!(masters.len(), 1, "{masters:?}");
    assert_secret_is_gone(&lab, PAT);
}

/// It went through the vault alone, and is not there any more.
fn assert_secret_is_gone(lab: &Lab, secret: &str) {
    let container = lab.aml.container();
    let recorded = lab.aml.recorded();
    assert!(
        !recorded.is_empty()
            && !recorded
                .iter()
                .any(|pair| pair.json.to_string().contains(secret))
    );
    let orders = lab.aml.blobs(&container, "towline/alice/submissions/");
    assert!(!orders.is_empty(), "no order of a run lies there");
    for name in orders {
        assert!(
            !lab.aml.blob(&container, &name).unwrap().contains(secret),
            "{name}"
        );
    }
    let cleared = || {
        lab.aml
            .recorded()
            .iter()
            .any(|pair| pair.method == "DELETE" && pair.target.starts_with("/secrets/tow-"))
    };
    towline_testkit::until("the secret to be gone from the vault", || {
        cleared().then_some(())
    });
}

#[test]
fn the_image_is_that_of_the_machines_gpus() {
    let lab = Lab::new();
    let job = |machine: &str| {
        format!(
            "cluster: sing\nresources: {{instance_type: {machine}}}\nenvironment: {{image: \
                {{nvidia: 'lab/cuda:12', amd: 'lab/rocm:6'}}}}\nscript: 'true'\n"
        )
    };
    for (machine, image) in [
        ("ND96amrs_A100_v4", "lab/cuda:12"),
        ("ND96isr_MI300X_v5", "lab/rocm:6"),
    ] {
        let id = lab.home.submit_file(&job(machine), &[]);
        let environment = lab.put(&id)["environmentId"].as_str().unwrap().to_owned();
        let (status, said) = lab.aml.ask(
            "GET",
            environment.split("/workspaces/towline/").nth(1).unwrap(),
            None,
        );
        assert_eq!(
            (status, said["properties"]["image"].as_str()),
            (200, Some(image)),
            "{machine}: {said}"
        );
        assert_eq!(lab.ended(&id)["state"], "succeeded");
    }
}

/// The page has AMD's environment for machines without a GPU too.
#[test]
fn a_machine_without_a_gpu_takes_the_only_image_that_is_named() {
    let lab = Lab::new();
    lab.aml.put_compute("plain", "STANDARD_D3_V2", 2);
    let scope = lab.aml.scope();
    let place = format!(
        "subscription: {}, resource_group: {}, workspace: {}",
        scope.subscription, scope.group, scope.workspace
    );
    lab.configure(&format!(
        "  plain: {{kind: azureml, endpoint: '{}', credential: \
        managed_identity, {place}, compute: plain}}\n",
        lab.aml.endpoint()
    ));
    let job = |image: &str| {
        format!("cluster: plain\nenvironment: {{image: {{{image}}}}}\nscript: 'true'\n")
    };
    for (images, image) in [
        ("amd: 'lab/rocm:6'", "lab/rocm:6"),
        ("nvidia: 'lab/cuda:12', amd: 'lab/rocm:6'", "lab/cuda:12"),
    ] {
        let id = lab.home.submit_file(&job(images), &[]);
        let environment = lab.put(&id)["environmentId"].as_str().unwrap().to_owned();
        let (status, said) = lab.aml.ask(
            "GET",
            environment.split("/workspaces/towline/").nth(1).unwrap(),
            None,
        );
        assert_eq!(
            (status, said["properties"]["image"].as_str()),
            (200, Some(image)),
            "{images}: {said}"
        );
    }
    lab.home.write(
        "job.yaml",
        "cluster: sing\nresources: \
        {instance_type: ND96amrs_A100_v4}\nenvironment: {image: {amd: 'lab/rocm:6'}}\nscript: \
            'true'\n",
    );
    let refused = lab.tow(["submit", "-f", "job.yaml"]);
    assert!(
        refused.code == 123 && refused.stderr.contains("names none for nvidia GPUs"),
        "{refused:?}"
    );
}

/// Each tier of the page, a machine of one GPU by the name that the page has, and no location: the
/// default one.
#[test]
fn tiers_and_parts_of_machines_arrive_as_they_were_chosen() {
    let lab = Lab::new();
    for tier in ["Premium", "Standard", "Basic"] {
        let mut form = newer(&lab);
        form["cluster"] = json!({"virtual_cluster": lab.aml.cluster(), "workspace": lab.aml.scope().workspace, "instance_type": "ND40_v2g1", "node_count": 1, "sla_tier": tier});
        form["io"] = json!([]);
        form["experiment"] = json!({"name": "hoi_experiment_v1", "job_name": "one", "script": ["echo $RANK of $WORLD_SIZE"]});
        lab.home.write("submit_jobs.json", &form.to_string());
        lab.tow(["import", "toolkit", "submit_jobs.json", "--force"])
            .ok();
        reached(&lab, "vc", "");
        let id = lab.tow(["submit", "-f", "one.tow.yaml"]).ok().id();
        assert_eq!(lab.ended(&id)["state"], "succeeded", "{tier}");
        let wanted = [
            ("instanceType", json!("Singularity.ND40_v2g1")),
            ("slaTier", json!(tier)),
            ("locations", Value::Null),
        ];
        let wanted: Vec<(String, Value)> = wanted
            .into_iter()
            .map(|(key, value)| {
                (
                    format!("/resources/properties/AISuperComputer/{key}"),
                    value,
                )
            })
            .collect();
        assert_fields(
            &lab.put(&id),
            &wanted
                .iter()
                .map(|(key, value)| (key.as_str(), value.clone()))
                .collect::<Vec<_>>(),
        );
        assert_eq!(lab.tow(["logs", &id]).ok().stdout, "0 of 1\n", "{tier}");
    }
}

/// The older form, for a cluster.
fn older(lab: &Lab, cluster: &str, instance: &str) -> Value {
    let account = lab.aml.azurite().first();
    json!({
        "cluster": {"virtual_cluster": cluster, "workspace": lab.aml.scope().workspace, "instance_type": instance, "node_count": "2", "sla_tier": "Basic"},
        "storage": {"datastore_name": "research", "container_name": "box", "account_name": account.name, "account_key": account.key, "sas_token": "?in-the-keyring"},
        "environment": {"docker_image": "AzureML-pytorch-1.7-ubuntu18.04-py37-cuda11-gpu", "setup_script": "cat requirements.txt > installed-$NODE_RANK"},
        "experiment": {
            "name": "exp", "job_name": "job one", "workdir": "alice/code", "copy_data": true, "sync_code": true, "data_dir": "alice/data",
            "data_subdir": "voc20;coco", "ignore_dir": "secret;logs",
            "script": [
                "echo \"node $NODE_RANK at \
                    $MASTER_ADDR:$MASTER_PORT\"", "cat installed-$NODE_RANK $TOW_COPY_DIR/voc20/a \
                        $TOW_COPY_DIR/coco/b ${{workdir}}/there",
                "ls secret logs $TOW_COPY_DIR/other 2>/dev/null || echo left \
                    out", "echo done > ${{workdir}}/from-$NODE_RANK",
            ],
        },
    })
}

/// The machines, in the words of the flavour.
fn assert_machines(put: &Value, cluster: &str) {
    let own: &[(&str, Value)] = if cluster == "vc" {
        &[
            (
                "/resources/properties/AISuperComputer/instanceType",
                json!("Singularity.ND12am_A100_v4"),
            ),
            (
                "/resources/properties/AISuperComputer/slaTier",
                json!("Basic"),
            ),
        ]
    } else {
        &[(
            "/resources/properties/itp/resource_configuration/gpu_count",
            json!(8),
        )]
    };
    assert_fields(put, own);
}

#[test]
fn every_field_of_the_older_form_has_its_place_and_its_effect() {
    let mut lab = Lab::new();
    lab.aml.put_kubernetes("itplabrr1cl1");
    for (name, text) in [
        ("data/voc20/a", "picture\n"),
        ("data/coco/b", "caption\n"),
        ("data/other/c", "no\n"),
        ("code/there", "in the store\n"),
    ] {
        lab.aml.put_blob("box", &format!("alice/{name}"), text);
    }
    for (name, text) in [
        ("requirements.txt", "torch\n"),
        ("secret/x", ""),
        ("logs/x", ""),
    ] {
        lab.home.write(name, text);
    }
    let account = lab.aml.azurite().first().clone();
    lab.home.set(
        "RESEARCH_SAS",
        &account.container_sas("box", "rwdlac", 3_600),
    );
    lab.home.set(
        "TOW_DATASTORES__RESEARCH__CREDENTIAL__SAS",
        "env:RESEARCH_SAS",
    );
    lab.home.set("TOW_AZURE_BLOB_ENDPOINT", &account.endpoint);
    for (cluster, target, instance) in [
        ("itplabrr1cl1", "itplabrr1cl1".to_owned(), "8"),
        ("vc", lab.aml.cluster(), "ND12am_A100_v4"),
    ] {
        lab.home
            .write("old.json", &older(&lab, &target, instance).to_string());
        lab.tow(["import", "toolkit", "old.json", "--force"]).ok();
        let scope = lab.aml.scope();
        reached(
            &lab,
            cluster,
            &format!(
                ", subscription: {}, resource_group: {}",
                scope.subscription, scope.group
            ),
        );
        let id = lab.tow(["submit", "-f", "job-one.tow.yaml"]).ok().id();
        let record = lab.ended(&id);
        assert_eq!(
            record["state"],
            "succeeded",
            "{cluster}: {record:#} {:?}",
            lab.tow(["logs", &id])
        );
        let put = lab.put(&id);
        assert_fields(
            &put,
            &[
                ("/displayName", json!("job one")),
                ("/experimentName", json!("exp")),
                ("/resources/instanceCount", json!(2)),
                (
                    "/environmentId",
                    json!(
                        "azureml://registries/azureml/environments/AzureML-pytorch-1.7-ubuntu18.04-py37-cuda11-gpu/labels/latest"
                    ),
                ),
                ("/inputs/tow_copy_0/mode", json!("Download")),
                ("/outputs/workdir/mode", json!("ReadWriteMount")),
            ],
        );
        assert_machines(&put, cluster);
        let mut masters = std::collections::BTreeSet::new();
        for node in 0..2 {
            let log = lab
                .tow(["logs", &id, "--rank", &node.to_string()])
                .ok()
                .stdout;
            let (first, rest) = log.split_once('\n').unwrap();
            assert_eq!(
                rest, "torch\npicture\ncaption\nin the store\nleft out\n",
                "{cluster}"
            );
            masters.insert(
                first
                    .strip_prefix(&format!("node {node} at "))
                    .unwrap_or_else(|| panic!("{first}"))
                    .to_owned(),
            );
            assert_eq!(
                lab.aml
                    .blob("box", &format!("alice/code/from-{node}"))
                    .as_deref(),
                Some("done\n")
            );
        }
        assert_eq!(masters.len(), 1, "{masters:?}");
    }
    // Synchronize: the code goes to the work folder of the store, and no job is submitted.
    let jobs = lab.aml.jobs().len();
    lab.home.write("model.py", "layers = 12\n");
    lab.tow(["sync"]).ok();
    assert_eq!(
        lab.aml.blob("box", "alice/code/model.py").as_deref(),
        Some("layers = 12\n")
    );
    assert_eq!(
        lab.aml
            .blob("box", "alice/code/requirements.txt")
            .as_deref(),
        Some("torch\n")
    );
    assert_eq!(
        (
            lab.aml.blob("box", "alice/code/secret/x"),
            lab.aml.blob("box", "alice/code/logs/x")
        ),
        (None, None),
        "Ignore Dir"
    );
    assert_eq!(lab.aml.jobs().len(), jobs);
    // The store is known to the workspace by a signature for its one container, not by the
    // account's key.
    let said = lab
        .aml
        .recorded()
        .into_iter()
        .find(|pair| pair.method == "PUT" && pair.target.contains("/datastores/tow_research_"))
        .unwrap()
        .json;
    let store = &said["liveRequest"]["body"]["properties"];
    assert_eq!(
        (&store["accountName"], &store["containerName"]),
        (&json!(account.name), &json!("box")),
        "{store:#}"
    );
    assert_eq!(store["credentials"]["credentialsType"], "Sas", "{store:#}");
}
