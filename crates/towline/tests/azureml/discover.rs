//! What the user may use, and what is wrong with what the configuration names.

use crate::lab::Lab;
use towline_testkit::Output;

#[test]
fn what_i_may_use_is_listed() {
    let lab = Lab::new();
    let found = lab.tow(["clusters", "--discover"]).ok();
    for part in [
        "cpu",
        "k8s",
        "AmlCompute",
        "Kubernetes",
        "vc",
        "NDAMv4",
        "premium",
        &lab.aml.scope().workspace,
    ] {
        assert!(found.stdout.contains(part), "{part}: {found:?}");
    }
    let json = lab.tow(["clusters", "--discover", "--json"]).ok().json();
    assert_eq!(
        json["workspaces"][0]["computes"].as_array().map(Vec::len),
        Some(2),
        "{json}"
    );
    let quota = &json["virtual_clusters"][0]["quotas"][0];
    assert_eq!(
        (quota["limit"].as_u64(), quota["used"].as_u64()),
        (Some(64), Some(48)),
        "{json}"
    );
    let nodes = lab.tow(["nodes", "-c", "sing"]).ok();
    for part in [
        "Singularity",
        "ND96amrs_A100_v4",
        "standard",
        "24",
        "identities: tow",
    ] {
        assert!(nodes.stdout.contains(part), "{part}: {nodes:?}");
    }
    let clusters = lab.tow(["clusters"]).ok();
    assert!(
        clusters
            .stdout
            .lines()
            .filter(|line| line.contains("azureml") && line.contains("ready"))
            .count()
            == 3,
        "{clusters:?}"
    );
    let doctor = lab.tow(["doctor"]);
    assert!(doctor.stdout.contains("Kubernetes (ITP)"), "{doctor:?}");
}

#[test]
fn a_workspace_is_made_beside_another_and_found_by_its_name() {
    let lab = Lab::new();
    lab.tow(["clusters", "--create-workspace", "lab2", "-c", "aml"])
        .ok();
    let again = lab.tow(["clusters", "--create-workspace", "lab2", "-c", "aml"]);
    assert_eq!(again.code, 123, "{again:?}");
    let odd = lab.tow(["clusters", "--create-workspace", "../x", "-c", "aml"]);
    assert_eq!(odd.code, 120, "{odd:?}");
    lab.home.configure(&format!(
        "default_cluster: new\nclusters:\n  new: {{kind: azureml, endpoint: '{}', credential: \
            managed_identity, workspace: lab2, compute: cpu}}\n",
        lab.aml.endpoint()
    ));
    let ran = lab.tow(["run", "echo", "in lab2"]).ok();
    assert_eq!(ran.stdout, "in lab2\n");
}

#[test]
fn what_is_not_there_is_named_with_what_is() {
    let lab = Lab::new();
    let scope = lab.aml.scope();
    let common = format!(
        "kind: azureml, endpoint: '{}', credential: managed_identity",
        lab.aml.endpoint()
    );
    let place = format!(
        "subscription: {}, resource_group: {}",
        scope.subscription, scope.group
    );
    for (keys, code, parts) in [
        (
            format!("{place}, workspace: {}, compute: gpuu", scope.workspace),
            122,
            vec!["gpuu", "it has: cpu, k8s"],
        ),
        (
            format!("{place}, workspace: nowhere, compute: cpu"),
            122,
            vec!["nowhere", "workspace"],
        ),
        (
            format!("{place}, workspace: {}x, compute: cpu", scope.workspace),
            122,
            vec!["did you mean", &scope.workspace],
        ),
        (
            format!(
                "subscription: {}, resource_group: other, workspace: {}, compute: cpu",
                scope.subscription, scope.workspace
            ),
            122,
            vec![&scope.group],
        ),
        (
            "workspace: nowhere, compute: cpu".to_owned(),
            122,
            vec!["nowhere", &scope.workspace],
        ),
        (
            format!(
                "{place}, workspace: {}, virtual_cluster: none",
                scope.workspace
            ),
            122,
            vec!["none", "there are: vc"],
        ),
        (
            format!(
                "{place}, workspace: {}, virtual_cluster: vcc",
                scope.workspace
            ),
            122,
            vec!["did you mean `vc`"],
        ),
        (
            format!("{place}, workspace: {}", scope.workspace),
            121,
            vec!["compute", "virtual_cluster"],
        ),
        (
            "config: none.json, compute: cpu".to_owned(),
            121,
            vec!["none.json"],
        ),
    ] {
        lab.home.configure(&format!(
            "default_cluster: x\nclusters:\n  x: {{{common}, {keys}}}\n"
        ));
        let refused = lab.tow(["submit", "true"]);
        assert_eq!(refused.code, code, "{keys}: {refused:?}");
        assert!(
            parts.iter().all(|part| refused.stderr.contains(part)),
            "{keys}: {refused:?}"
        );
    }
    assert_eq!(
        lab.tow(["ps", "--json"]).ok().json()["runs"]
            .as_array()
            .map(Vec::len),
        Some(0),
        "nothing was changed"
    );
}

#[test]
fn a_virtual_cluster_is_found_by_its_name_wherever_it_is() {
    let lab = Lab::new();
    let (scope, endpoint) = (lab.aml.scope(), lab.aml.endpoint());
    lab.home.configure(&format!(
        "default_cluster: x\nclusters:\n  x: {{kind: azureml, endpoint: '{endpoint}', credential: \
            managed_identity, workspace: {}, virtual_cluster: VC}}\n",
        scope.workspace
    ));
    lab.home.write(
        "job.yaml",
        "resources: {instance_type: ND12am_A100_v4}\ncommand: 'true'\n",
    );
    let planned = lab.tow(["submit", "--dry-run", "-f", "job.yaml"]).ok();
    assert!(planned.stdout.contains(&lab.aml.cluster()), "{planned:?}");
}

/// Libraries on the nodes know an identity by its client id, which its own id does not tell.
#[test]
fn an_identity_of_another_group_is_asked_for_its_client_id() {
    let lab = Lab::new();
    let id = format!(
        "/subscriptions/{}/resourceGroups/elsewhere/providers/Microsoft.ManagedIdentity/userAssignedIdentities/lender",
        lab.aml.scope().subscription
    );
    lab.home.write(
        "job.yaml",
        &format!("identity: 'managed:{id}'\ncommand: 'true'\n"),
    );
    let planned = lab.tow(["submit", "--dry-run", "-f", "job.yaml"]).ok();
    assert!(
        planned.stdout.contains("\"AZURE_CLIENT_ID\"") && planned.stdout.contains("\"clientId\""),
        "{planned:?}"
    );
    lab.home.write(
        "job.yaml",
        &format!(
            "identity: 'managed:{id}'\nresources: {{instance_type: \
        ND12am_A100_v4}}\ncommand: 'true'\n"
        ),
    );
    let planned = lab
        .tow(["submit", "--dry-run", "-f", "job.yaml", "-c", "sing"])
        .ok();
    assert!(
        planned.stdout.contains("\"AZURE_CLIENT_ID\"")
            && planned.stdout.contains("_AZUREML_SINGULARITY_JOB_UAI"),
        "{planned:?}"
    );
}

/// As the toolkit's list had them: by name, wherever they are.
#[test]
fn an_identity_of_another_group_is_found_by_its_name() {
    let lab = Lab::new();
    lab.home
        .write("job.yaml", "identity: managed:lender\ncommand: 'true'\n");
    let planned = lab.tow(["submit", "--dry-run", "-f", "job.yaml"]).ok();
    assert!(
        planned.stdout.contains("\"AZURE_CLIENT_ID\"") && planned.stdout.contains("\"clientId\""),
        "{planned:?}"
    );
    for name in ["twin", "nobody"] {
        lab.home.write(
            "job.yaml",
            &format!("identity: managed:{name}\ncommand: 'true'\n"),
        );
        let refused = lab.tow(["submit", "--dry-run", "-f", "job.yaml"]);
        assert_eq!(refused.code, 123, "{refused:?}");
        assert!(
            refused
                .stderr
                .contains(&format!("has no identity `{name}`"))
                && refused.stderr.contains("give the whole id"),
            "{refused:?}"
        );
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
        (
            "sing",
            "resources: {instance_type: ND96_H100_v5, tier: basic}\ncommand: x\n",
            "no quota of NDH100v5 in the tier basic",
        ),
        (
            "sing",
            "resources: {instance_type: ND12am_A100_v4}\nhold_on_failure: 1h\ncommand: x\n",
            "cannot be entered",
        ),
        ("aml", "hold_on_failure: 1h\ncommand: x\n", "ssh_public_key"),
        (
            "aml",
            "resources: {location: [westus2]}\ncommand: x\n",
            "has no use for `resources.location`",
        ),
        (
            "aml",
            "io: {d: {datastore: workspaceblobstore, path: x, mode: mount, options: \
                [--attr-timeout=240]}}\ncommand: x\n",
            "`--attr-timeout=240` has no effect",
        ),
    ] {
        lab.home.write("job.yaml", text);
        let planned = lab
            .tow(["submit", "--dry-run", "-f", "job.yaml", "-c", cluster])
            .ok();
        assert!(planned.stdout.contains(part), "{text}: {planned:?}");
    }
}

#[test]
fn a_job_that_can_never_run_is_refused() {
    let lab = Lab::new();
    for (cluster, text, parts) in [
        (
            "sing",
            "resources: {gpus_per_node: 16}\ncommand: [x]\n",
            vec!["16 GPUs", "8"],
        ),
        (
            "aml",
            "resources: {nodes: 9}\ncommand: [x]\n",
            vec!["9 nodes", "8"],
        ),
        (
            "aml",
            "resources: {instance_type: Standard_D3_v2}\ncommand: [x]\n",
            vec!["Standard_D3_v2"],
        ),
        (
            "aml",
            "environment: {secrets: [PAT]}\ncommand: [x]\n",
            vec!["PAT", "Key Vault", "managed:tow"],
        ),
        (
            "aml",
            "identity: managed:two\ncommand: [x]\n",
            vec!["two", "did you mean `tow`"],
        ),
        (
            "aml",
            "resources: {native: [shm=1g]}\ncommand: [x]\n",
            vec!["shm", "shm_size"],
        ),
        (
            "aml",
            "environment: {env: {HF_TOKEN: abcdef123}}\ncommand: [x]\n",
            vec!["looks like a token", "Key Vault", "managed:tow"],
        ),
    ] {
        lab.home.write("job.yaml", text);
        let refused = Output::from(
            lab.home
                .command(["-c", cluster, "submit", "-f", "job.yaml"])
                .env("PAT", "x")
                .output()
                .unwrap(),
        );
        assert!(matches!(refused.code, 121 | 123), "{text}: {refused:?}");
        assert!(
            parts.iter().all(|part| refused.stderr.contains(part)),
            "{text}: {refused:?}"
        );
    }
}

/// Every image that is listed can be written as it is listed.
#[test]
fn images_that_are_listed_are_used_by_their_names() {
    let lab = Lab::new();
    let listed = lab.tow(["clusters", "--discover", "--json"]).ok().json();
    let images: Vec<String> = listed["images"]
        .as_array()
        .unwrap()
        .iter()
        .map(|name| name.as_str().unwrap().to_owned())
        .collect();
    assert!(
        images.len() > 1 && images.iter().all(|name| name.contains('/')),
        "{images:?}"
    );
    for image in &images {
        let run = lab.home.submit_file(
            &format!("cluster: sing\nenvironment: {{image: '{image}'}}\ncommand: 'true'\n"),
            &[],
        );
        let put = lab.put(&run);
        assert_eq!(
            put["resources"]["properties"]["AISuperComputer"]["imageVersion"],
            image.as_str(),
            "{put:#}"
        );
        assert_eq!(
            lab.ended(&run)["state"],
            "succeeded",
            "{}",
            lab.aml.last_words(&run)
        );
    }
    // A registry's image stays one, whatever it is called, and a compute has no images of its own.
    for (cluster, image) in [
        ("sing", "amsword/setup:py36pt16"),
        ("sing", "lab.azurecr.io/amlt-sing/x:1"),
        ("aml", "amsword/setup:py36pt16"),
    ] {
        lab.home.write(
            "job.yaml",
            &format!("cluster: {cluster}\nenvironment: {{image: '{image}'}}\ncommand: 'true'\n"),
        );
        let planned = lab.tow(["submit", "-f", "job.yaml", "--dry-run"]).ok();
        assert!(
            !planned.stdout.contains("imageVersion"),
            "{image}: {planned:?}"
        );
    }
}

/// Two names of one machine are in use; the list has one of them. What is nearly a name is still a
/// slip.
#[test]
fn a_machine_by_another_of_its_names_is_a_note_and_a_slip_is_refused() {
    let lab = Lab::new();
    for machine in ["AISupercomputer.ND96amr_A100_v4", "ND96amr_A100_v4"] {
        lab.home.write(
            "job.yaml",
            &format!("cluster: sing\nresources: {{instance_type: {machine}}}\ncommand: 'true'\n"),
        );
        let planned = lab.tow(["submit", "-f", "job.yaml", "--dry-run"]).ok();
        assert!(
            planned.stdout.contains("\"Singularity.ND96amr_A100_v4\"")
                && planned.stdout.contains("lists no machines of the kind"),
            "{planned:?}"
        );
    }
    lab.home.write(
        "job.yaml",
        "cluster: sing\nresources: {instance_type: ND96arms_A100_v4}\ncommand: 'true'\n",
    );
    assert_eq!(lab.tow(["submit", "-f", "job.yaml", "--dry-run"]).code, 121);
}

/// The service refuses such names; it is told what it takes, and the user what that is.
#[test]
fn experiments_descriptions_and_tags_are_as_the_service_takes_them() {
    let lab = Lab::new();
    let long = "x".repeat(12_000);
    let run = lab.home.submit_file(
        &format!(
            "name: texts\nexperiment: 'my exp/1 ü'\ntags: ['of=a b/c ü']\nscript: 'echo {long}'\n"
        ),
        &[],
    );
    let put = lab.put(&run);
    assert_eq!(put["experimentName"], "my-exp-1--");
    assert!(put["description"].as_str().unwrap().chars().count() <= 5_000);
    assert_eq!(lab.ended(&run)["state"], "succeeded");
    assert_eq!(
        lab.home.show(&run)["experiment"],
        "my exp/1 ü",
        "here it is called as it was"
    );
    let planned = lab
        .tow(["submit", "--experiment", "my exp/1 ü", "--dry-run", "true"])
        .ok();
    assert!(
        planned
            .stdout
            .contains("is called `my-exp-1--` in the workspace"),
        "{planned:?}"
    );
    let refused = lab.tow([
        "submit",
        "--tag",
        &format!("k={}", "v".repeat(1_001)),
        "true",
    ]);
    assert!(
        refused.code == 123 && refused.stderr.contains("1000 characters"),
        "{refused:?}"
    );
}

#[test]
fn who_is_signed_in_and_who_holds_nodes_is_told() {
    let lab = Lab::new();
    lab.home.write("train.sh", "echo begun; exec sleep 600\n");
    let run = lab
        .tow(["submit", "--nodes", "2", "sh", "train.sh"])
        .ok()
        .id();
    lab.until_logged(&run, "begun");
    let clusters = lab.tow(["clusters"]).ok();
    let mine = clusters
        .stdout
        .lines()
        .find(|line| line.starts_with("aml "))
        .unwrap();
    assert!(
        clusters.stdout.contains("SIGNED IN AS") && mine.trim_end().ends_with(" tow"),
        "{clusters:?}"
    );
    let json = lab.tow(["clusters", "--json", "-c", "aml"]).ok().json();
    assert_eq!(json["clusters"][0]["signed_in_as"]["name"], "tow", "{json}");
    let doctor = lab.tow(["doctor"]);
    assert!(doctor.stdout.contains("signed in as tow"), "{doctor:?}");
    for verb in ["nodes", "blame"] {
        let nodes = lab.tow([verb]).ok();
        let held: Vec<&str> = nodes
            .stdout
            .lines()
            .skip_while(|line| !line.starts_with("HELD BY"))
            .collect();
        assert!(
            held.len() == 2
                && held[1].starts_with("Towline Tester")
                && held[1].contains(" 2 ")
                && held[1].contains(&run),
            "{nodes:?}"
        );
    }
    let other = lab.tow(["nodes", "-c", "itp", "--json"]).ok().json();
    assert_eq!(
        other["holders"].as_array().map(Vec::len),
        Some(0),
        "jobs of another compute: {other}"
    );
    lab.tow(["abort", "--wait", &run]).ok();
}

/// Containers and rented machines have one user for everybody.
#[test]
fn people_who_are_root_do_not_share_a_stage() {
    let lab = Lab::new();
    let (first, mut second) = (lab.beside("root"), lab.beside("root"));
    let principal = lab.aml.principal();
    second.set("SP_SECRET", &principal.secret);
    let own = format!(
        "credential: {{tenant_id: {}, client_id: {}, client_secret: 'env:SP_SECRET'}}",
        principal.tenant, principal.client
    );
    second.configure(
        &lab.aml
            .configuration()
            .replace("credential: managed_identity", &own),
    );
    let stage = |home: &towline_testkit::Home| {
        let run = home.tow(["submit", "echo", "hello"]).ok().id();
        home.tow(["wait", &run]).ok();
        let stage = lab.put(&run)["properties"]["tow.stage"]
            .as_str()
            .unwrap()
            .to_owned();
        assert!(
            home.show(&run)["folder"]
                .as_str()
                .is_some_and(|folder| folder.contains(&format!("/{stage}/runs/"))),
            "{}",
            home.show(&run)
        );
        assert!(
            lab.aml
                .blobs(&lab.aml.container(), &format!("{stage}/submissions/"))
                .iter()
                .any(|name| name.contains(&run)),
            "{stage}"
        );
        stage
    };
    let (mine, theirs) = (stage(&first), stage(&second));
    assert_eq!(
        (mine.as_str(), theirs),
        ("towline/tow", format!("towline/{}", principal.client))
    );
    assert!(
        lab.aml
            .blobs(&lab.aml.container(), "towline/root/")
            .is_empty()
    );
}

/// Storage that lets in only its own network: said at once, with the host and what to do; later it
/// goes on.
#[test]
fn a_storage_behind_a_firewall_is_named_and_the_run_goes_once_it_is_let_in() {
    let lab = Lab::new();
    lab.aml
        .conditions(|conditions| conditions.firewalled = true);
    let submitted = lab.tow(["submit", "echo", "let in"]).ok();
    let run = submitted.id();
    assert!(
        submitted.stderr.contains("firewall") && submitted.stderr.contains("VPN"),
        "{submitted:?}"
    );
    for words in [&["why", &run][..], &["doctor"]] {
        let told = lab.tow(words);
        assert!(
            format!("{}{}", told.stdout, told.stderr).contains("its firewall"),
            "{words:?}: {told:?}"
        );
    }
    assert_eq!(
        lab.home.show(&run)["state"],
        "staging",
        "it is not refused for good"
    );
    lab.aml
        .conditions(|conditions| conditions.firewalled = false);
    assert_eq!(lab.ended(&run)["state"], "succeeded");
    assert_eq!(lab.log(&run, 1, 0), "let in\n");
}

/// The service gives out a key that the account does not take: whoever is signed in may be let in.
#[test]
fn a_key_that_is_not_allowed_gives_way_to_the_token() {
    let lab = Lab::new();
    lab.aml
        .conditions(|conditions| conditions.forbidden_keys = true);
    let ran = lab.tow(["run", "echo", "by my token"]).ok();
    assert_eq!(ran.stdout, "by my token\n");
}

/// Without an identity there is no place for secrets: what holds the token is named.
#[test]
fn a_token_in_a_variable_is_refused_by_the_variables_name() {
    let lab = Lab::new();
    let token = ["hf", "0123456789abcdefgh"].join("_");
    let jobs = [
        (
            format!("command: 'true'\nenvironment: {{env: {{HUB: '{token}'}}}}\n"),
            "the variable `HUB`",
        ),
        (format!("script: echo {token}\n"), "a token in its command"),
    ];
    for (job, named) in jobs {
        lab.home.write("job.yaml", &job);
        let refused = lab.tow(["submit", "-f", "job.yaml"]);
        assert!(
            refused.code == 123
                && refused.stderr.contains(named)
                && refused.stderr.contains("identity"),
            "{refused:?}"
        );
        assert!(!refused.stderr.contains(&token), "{refused:?}");
    }
    assert!(
        lab.tow(["ps", "--all", "--json"]).json()["runs"]
            .as_array()
            .unwrap()
            .is_empty()
    );
}

/// With an identity it travels through the vault: no reader of the workspace sees it, and the job
/// has it.
#[test]
fn a_token_in_a_script_reaches_the_node_and_no_reader_of_the_workspace() {
    let lab = Lab::new();
    let token = ["hf", "0123456789abcdefgh"].join("_");
    // Not in the project's folder: the user's own file would travel as code.
    let file = lab.home.path("job.yaml");
    std::fs::write(
        &file,
        format!("identity: managed:tow\nscript: printf %s {token} | sha256sum\n"),
    )
    .unwrap();
    let expected = towline_testkit::Output::from(
        std::process::Command::new("sh")
            .args(["-c", &format!("printf %s {token} | sha256sum")])
            .output()
            .unwrap(),
    );
    for flavour in crate::lab::FLAVOURS {
        let run = lab
            .tow(["-c", flavour, "submit", "-f", file.to_str().unwrap()])
            .ok()
            .id();
        assert_eq!(
            lab.ended(&run)["state"],
            "succeeded",
            "{flavour}: {}",
            lab.aml.last_words(&run)
        );
        assert_eq!(lab.log(&run, 1, 0), expected.stdout, "{flavour}");
        let description = lab.put(&run)["description"].as_str().unwrap().to_owned();
        assert!(
            description.contains("printf %s ***"),
            "{flavour}: {description}"
        );
    }
    let shown = |call: &&towline_testkit::aml::Traffic| {
        format!("{}{}{}", call.target, call.sent, call.got).contains(&token)
    };
    let traffic = lab.aml.traffic();
    let by: Vec<&str> = traffic
        .iter()
        .filter(shown)
        .map(|call| call.target.as_str())
        .collect();
    assert!(
        !by.is_empty() && by.iter().all(|target| target.starts_with("/secrets/")),
        "only the vault has it: {by:?}"
    );
    assert_eq!(
        lab.aml.blobs_holding(token.as_bytes()),
        Vec::<String>::new()
    );
}
