//! What the user may use, and what is wrong with what the configuration names.

use crate::lab::Lab;
use towline_testkit::Output;

#[test]
fn what_i_may_use_is_listed() {
    let lab = Lab::new();
    let found = lab.tow(["clusters", "--discover"]).ok();
    for part in ["cpu", "k8s", "AmlCompute", "Kubernetes", "vc", "NDAMv4", "premium", &lab.aml.scope().workspace] {
        assert!(found.stdout.contains(part), "{part}: {found:?}");
    }
    let json = lab.tow(["clusters", "--discover", "--json"]).ok().json();
    assert_eq!(json["workspaces"][0]["computes"].as_array().map(Vec::len), Some(2), "{json}");
    let quota = &json["virtual_clusters"][0]["quotas"][0];
    assert_eq!((quota["limit"].as_u64(), quota["used"].as_u64()), (Some(64), Some(48)), "{json}");
    let nodes = lab.tow(["nodes", "-c", "sing"]).ok();
    for part in ["Singularity", "ND96amrs_A100_v4", "standard", "24", "identities: tow"] {
        assert!(nodes.stdout.contains(part), "{part}: {nodes:?}");
    }
    let clusters = lab.tow(["clusters"]).ok();
    assert!(clusters.stdout.lines().filter(|line| line.contains("azureml") && line.contains("ready")).count() == 3, "{clusters:?}");
    let doctor = lab.tow(["doctor"]);
    assert!(doctor.stdout.contains("Kubernetes (ITP)"), "{doctor:?}");
}

#[test]
fn a_workspace_is_made_beside_another_and_found_by_its_name() {
    let lab = Lab::new();
    lab.tow(["clusters", "--create-workspace", "lab2", "-c", "aml"]).ok();
    let again = lab.tow(["clusters", "--create-workspace", "lab2", "-c", "aml"]);
    assert_eq!(again.code, 123, "{again:?}");
    let odd = lab.tow(["clusters", "--create-workspace", "../x", "-c", "aml"]);
    assert_eq!(odd.code, 120, "{odd:?}");
    lab.home.configure(&format!(
        "default_cluster: new\nclusters:\n  new: {{kind: azureml, endpoint: '{}', credential: managed_identity, workspace: lab2, compute: cpu}}\n",
        lab.aml.endpoint()
    ));
    let ran = lab.tow(["run", "echo", "in lab2"]).ok();
    assert_eq!(ran.stdout, "in lab2\n");
}

#[test]
fn what_is_not_there_is_named_with_what_is() {
    let lab = Lab::new();
    let scope = lab.aml.scope();
    let common = format!("kind: azureml, endpoint: '{}', credential: managed_identity", lab.aml.endpoint());
    let place = format!("subscription: {}, resource_group: {}", scope.subscription, scope.group);
    for (keys, code, parts) in [
        (format!("{place}, workspace: {}, compute: gpuu", scope.workspace), 122, vec!["gpuu", "it has: cpu, k8s"]),
        (format!("{place}, workspace: nowhere, compute: cpu"), 122, vec!["nowhere", "workspace"]),
        (format!("{place}, workspace: {}x, compute: cpu", scope.workspace), 122, vec!["did you mean", &scope.workspace]),
        (format!("subscription: {}, resource_group: other, workspace: {}, compute: cpu", scope.subscription, scope.workspace), 122, vec![&scope.group]),
        ("workspace: nowhere, compute: cpu".to_owned(), 122, vec!["nowhere", &scope.workspace]),
        (format!("{place}, workspace: {}, virtual_cluster: none", scope.workspace), 122, vec!["none", "there are: vc"]),
        (format!("{place}, workspace: {}, virtual_cluster: vcc", scope.workspace), 122, vec!["did you mean `vc`"]),
        (format!("{place}, workspace: {}", scope.workspace), 121, vec!["compute", "virtual_cluster"]),
        ("config: none.json, compute: cpu".to_owned(), 121, vec!["none.json"]),
    ] {
        lab.home.configure(&format!("default_cluster: x\nclusters:\n  x: {{{common}, {keys}}}\n"));
        let refused = lab.tow(["submit", "true"]);
        assert_eq!(refused.code, code, "{keys}: {refused:?}");
        assert!(parts.iter().all(|part| refused.stderr.contains(part)), "{keys}: {refused:?}");
    }
    assert_eq!(lab.tow(["ps", "--json"]).ok().json()["runs"].as_array().map(Vec::len), Some(0), "nothing was changed");
}

#[test]
fn a_virtual_cluster_is_found_by_its_name_wherever_it_is() {
    let lab = Lab::new();
    let (scope, endpoint) = (lab.aml.scope(), lab.aml.endpoint());
    lab.home.configure(&format!(
        "default_cluster: x\nclusters:\n  x: {{kind: azureml, endpoint: '{endpoint}', credential: managed_identity, workspace: {}, virtual_cluster: VC}}\n",
        scope.workspace
    ));
    lab.home.write("job.yaml", "resources: {instance_type: ND12am_A100_v4}\ncommand: 'true'\n");
    let planned = lab.tow(["submit", "--dry-run", "-f", "job.yaml"]).ok();
    assert!(planned.stdout.contains(&lab.aml.cluster()), "{planned:?}");
}

/// Libraries on the nodes know an identity by its client id, which its own id does not tell.
#[test]
fn an_identity_of_another_group_is_asked_for_its_client_id() {
    let lab = Lab::new();
    let id =
        format!("/subscriptions/{}/resourceGroups/elsewhere/providers/Microsoft.ManagedIdentity/userAssignedIdentities/lender", lab.aml.scope().subscription);
    lab.home.write("job.yaml", &format!("identity: 'managed:{id}'\ncommand: 'true'\n"));
    let planned = lab.tow(["submit", "--dry-run", "-f", "job.yaml"]).ok();
    assert!(planned.stdout.contains("\"AZURE_CLIENT_ID\"") && planned.stdout.contains("\"clientId\""), "{planned:?}");
    lab.home.write("job.yaml", &format!("identity: 'managed:{id}'\nresources: {{instance_type: ND12am_A100_v4}}\ncommand: 'true'\n"));
    let planned = lab.tow(["submit", "--dry-run", "-f", "job.yaml", "-c", "sing"]).ok();
    assert!(planned.stdout.contains("\"AZURE_CLIENT_ID\"") && planned.stdout.contains("_AZUREML_SINGULARITY_JOB_UAI"), "{planned:?}");
}

/// As the toolkit's list had them: by name, wherever they are.
#[test]
fn an_identity_of_another_group_is_found_by_its_name() {
    let lab = Lab::new();
    lab.home.write("job.yaml", "identity: managed:lender\ncommand: 'true'\n");
    let planned = lab.tow(["submit", "--dry-run", "-f", "job.yaml"]).ok();
    assert!(planned.stdout.contains("\"AZURE_CLIENT_ID\"") && planned.stdout.contains("\"clientId\""), "{planned:?}");
    for name in ["twin", "nobody"] {
        lab.home.write("job.yaml", &format!("identity: managed:{name}\ncommand: 'true'\n"));
        let refused = lab.tow(["submit", "--dry-run", "-f", "job.yaml"]);
        assert_eq!(refused.code, 123, "{refused:?}");
        assert!(refused.stderr.contains(&format!("has no identity `{name}`")) && refused.stderr.contains("give the whole id"), "{refused:?}");
    }
}

#[test]
fn what_it_would_wait_for_and_what_has_no_effect_is_said_before() {
    let lab = Lab::new();
    for (cluster, text, part) in [
        (
            "sing",
            "resources: {nodes: 9, instance_type: ND96amrs_A100_v4, tier: premium}\ncommand: x\n",
            "it needs 72 GPUs of NDAMv4, and the tier premium has 64 in all",
        ),
        ("sing", "resources: {instance_type: ND96_H100_v5, tier: basic}\ncommand: x\n", "no quota of NDH100v5 in the tier basic"),
        ("sing", "resources: {instance_type: ND12am_A100_v4}\nhold_on_failure: 1h\ncommand: x\n", "cannot be entered"),
        ("aml", "hold_on_failure: 1h\ncommand: x\n", "ssh_public_key"),
        ("aml", "resources: {location: [westus2]}\ncommand: x\n", "has no use for `resources.location`"),
        (
            "aml",
            "io: {d: {datastore: workspaceblobstore, path: x, mode: mount, options: [--attr-timeout=240]}}\ncommand: x\n",
            "`--attr-timeout=240` has no effect",
        ),
    ] {
        lab.home.write("job.yaml", text);
        let planned = lab.tow(["submit", "--dry-run", "-f", "job.yaml", "-c", cluster]).ok();
        assert!(planned.stdout.contains(part), "{text}: {planned:?}");
    }
}

#[test]
fn a_job_that_can_never_run_is_refused() {
    let lab = Lab::new();
    for (cluster, text, parts) in [
        ("sing", "resources: {gpus_per_node: 16}\ncommand: [x]\n", vec!["16 GPUs", "8"]),
        ("aml", "resources: {nodes: 9}\ncommand: [x]\n", vec!["9 nodes", "8"]),
        ("aml", "resources: {instance_type: Standard_D3_v2}\ncommand: [x]\n", vec!["Standard_D3_v2"]),
        ("aml", "environment: {secrets: [PAT]}\ncommand: [x]\n", vec!["PAT", "Key Vault", "managed:tow"]),
        ("aml", "identity: managed:two\ncommand: [x]\n", vec!["two", "did you mean `tow`"]),
        ("aml", "resources: {native: [shm=1g]}\ncommand: [x]\n", vec!["shm", "shm_size"]),
        ("aml", "environment: {env: {HF_TOKEN: abc}}\ncommand: [x]\n", vec!["HF_TOKEN", "environment.secrets"]),
    ] {
        lab.home.write("job.yaml", text);
        let refused = Output::from(lab.home.command(["-c", cluster, "submit", "-f", "job.yaml"]).env("PAT", "x").output().unwrap());
        assert!(matches!(refused.code, 121 | 123), "{text}: {refused:?}");
        assert!(parts.iter().all(|part| refused.stderr.contains(part)), "{text}: {refused:?}");
    }
}
