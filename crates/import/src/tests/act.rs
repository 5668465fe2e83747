//! Files of ACT and qd.

use super::*;

const ACT_ACCOUNT_FILE: &str =
    "account_name: acct\ncontainer_name: box\naccount_key: a2V5\nsas_token: '?sv=1'\nnote: null\n";

#[test]
fn two_files_of_a_name_stay_two_clusters() {
    let one = "aml_config: {workspace_name: w}\ncompute_target: NC24\n";
    let texts = [
        ("one/aml.yaml", one),
        (
            "two/aml.yaml",
            "aml_config: {workspace_name: w}\ncompute_target: ND40\nenv: \
                {HF_TOKEN: hf_0123456789abcdef}\n",
        ),
    ];
    let both = imported(Kind::Act, &texts);
    assert_values(
        &both,
        "towline.yaml",
        &[
            ("clusters/aml/compute", "NC24"),
            ("clusters/aml-2/compute", "ND40"),
            ("clusters/aml-2/workspace", "w"),
            ("default_cluster", "aml"),
        ],
    );
    let report = &both.reports[1];
    assert!(
        warns(
            report,
            "`clusters.aml` of this file is `clusters.aml-2`: `clusters.aml.compute` is `NC24` in \
                one/aml.yaml:2:17, and `ND40` here"
        ),
        "{report:#?}"
    );
    assert_eq!(
        says(&report.mapped, "compute_target"),
        "clusters.aml-2.compute"
    );
    assert!(
        says(&report.not_mapped, "env.HF_TOKEN").contains("clusters.aml-2.job"),
        "{report:#?}"
    );
    // The same again is the same cluster.
    let same = imported(Kind::Act, &[("one/aml.yaml", one), ("two/aml.yaml", one)]);
    assert_eq!(value(&same, "towline.yaml", "clusters/aml-2"), "(none)");
    assert!(same.reports[1].warnings.is_empty(), "{:#?}", same.reports);
}

#[test]
fn accounts_of_a_name_say_why_one_has_another() {
    let cluster = |account: &str| {
        format!(
            "aml_config: {{workspace_name: w}}\nconfig_param: {{data_folder: \
                {{azure_blob_config_file: {account}, path: p}}}}\n"
        )
    };
    let (one, two) = (cluster("one/blob.yaml"), cluster("two/blob.yaml"));
    let texts = [
        ("a.yaml", one.as_str()),
        ("b.yaml", two.as_str()),
        ("one/blob.yaml", ACT_ACCOUNT_FILE),
        ("two/blob.yaml", ACT_ACCOUNT_FILE),
    ];
    let both =
        import_texts(Kind::Act, &texts, &["a.yaml", "b.yaml"], None, false).expect("converts");
    assert_values(
        &both,
        "towline.yaml",
        &[
            ("clusters/b/folders/data/datastore", "blob-2"),
            ("datastores/blob-2/credential/sas", "keyring:blob-2"),
        ],
    );
    assert!(warns(
        &both.reports[1],
        "the datastore of two/blob.yaml is `datastores.blob-2`: `blob` is that of one/blob.yaml"
    ));
}

#[test]
fn a_file_that_is_no_cluster_is_told_what_it_is() {
    for (name, text, part) in [
        (
            "config.json",
            "{\"subscription_id\": \"s\",\n \"workspace_name\": \"w\"}",
            "config.json:1:2: this is the file that names a workspace",
        ),
        (
            "x_account.yaml",
            "# mine\naccount_name: a\npassword: x\n",
            "x_account.yaml:2:1: this is a storage account",
        ),
        (
            "x.yaml",
            "colour: red\n",
            "x.yaml:1:1: no key here is one of ACT's",
        ),
    ] {
        let error = refused(Kind::Act, name, text);
        assert!(error.to_string().starts_with(part), "{error}");
        assert_eq!(error.kind(), towline_core::ErrorKind::Config);
        assert!(
            error.hints()[0].contains("aux_data/aml/NAME.yaml"),
            "{error:?}"
        );
    }
}

#[test]
fn a_workspace_that_nobody_names_is_a_warning() {
    for text in [
        "compute_target: x\n",
        "compute_target: x\naml_config: {subscription_id: s}\n",
    ] {
        let report = &imported(Kind::Act, &[("a.yaml", text)]).reports[0];
        assert!(
            warns(report, "write `workspace` under `clusters.a`"),
            "{report:#?}"
        );
    }
}

#[test]
fn slips_of_the_finger_are_named() {
    let report = &imported(
        Kind::Act,
        &[(
            "a.yaml",
            "gpu_per_nodes: 8\ncompute_target: x\ndocker: {imag: y}\n",
        )],
    )
    .reports[0];
    assert!(
        says(&report.not_mapped, "gpu_per_nodes").ends_with("did you mean `gpu_per_node`?"),
        "{report:#?}"
    );
    assert!(
        says(&report.not_mapped, "docker.imag").ends_with("did you mean `image`?"),
        "{report:#?}"
    );
    let told: Vec<String> = report
        .warnings_in_place
        .iter()
        .map(|warning| format!("{}: {}", warning.at, warning.message))
        .collect();
    assert!(
        told.contains(
            &"a.yaml:1:1: unknown key `gpu_per_nodes`: did you mean `gpu_per_node`?".to_owned()
        ),
        "{told:?}"
    );
}

#[test]
fn every_key_has_its_line_and_defaults_are_told_apart() {
    let text = "aml_config: {workspace_name: w}\nazure_blob_config_file: acct.yaml\nplatform: \
        singularity\ncompute_target: vc\ndatastore_name: null\nnum_gpu: 8\nuse_custom_docker: \
            true\n\
                docker: {image: i, tag: t}\nsleep_if_fail: false\nconfig_param: \
                    {data_folder: p, other_folder: null}\n";
    let all = import_texts(
        Kind::Act,
        &[("a.yaml", text), ("acct.yaml", ACT_ACCOUNT_FILE)],
        &["a.yaml"],
        None,
        false,
    )
    .expect("converts");
    let report = &all.reports[0];
    for (key, part) in [
        (
            "platform",
            "a virtual cluster of Singularity: clusters.a.virtual_cluster",
        ),
        (
            "num_gpu",
            "clusters.a.job.resources.nodes: 2, clusters.a.job.resources.gpus_per_node: 4",
        ),
        ("azure_blob_config_file", "datastores.acct"),
        ("account_name", "datastores.acct.account"),
        ("container_name", "datastores.acct.container"),
        ("docker.tag", "clusters.a.job.environment.image"),
    ] {
        assert!(
            says(&report.mapped, key).contains(part),
            "{key}: {report:#?}"
        );
    }
    for (key, word) in [
        ("datastore_name", "it has no value"),
        ("config_param.other_folder", "it has no value"),
        ("note", "it has no value"),
        ("account_key", "the SAS is used; the key was not copied"),
        ("use_custom_docker", "an image is always your own"),
        ("sleep_if_fail", "it changes nothing here"),
    ] {
        assert_eq!(says(&report.not_needed, key), word, "{key}: {report:#?}");
    }
    let assumed: Vec<&str> = report
        .assumed
        .iter()
        .map(|line| line.key.as_str())
        .collect();
    assert_eq!(
        assumed,
        [
            "gpu_per_node",
            "multi_process",
            "singularity_sla_tier",
            "singularity_instance_type"
        ]
    );
    assert!(
        says(&report.assumed, "gpu_per_node")
            .starts_with("clusters.a.gpus_per_node: 4; not in the file"),
        "{report:#?}"
    );
}

#[test]
fn zip_options_may_be_one_line() {
    let text = "compute_target: x\nzip_options: \"-x foo/* -x 'my data/*' -9\"\n";
    let all = imported(Kind::Act, &[("a.yaml", text)]);
    assert_eq!(
        value(&all, "towline.yaml", "clusters/a/job/code/ignore"),
        "[/foo/, \"/my data/\"]"
    );
    assert!(says(&all.reports[0].not_mapped, "zip_options: -9").contains("nothing is zipped"));
    let open = refused(
        Kind::Act,
        "a.yaml",
        "compute_target: x\nzip_options: \"-x 'foo\"\n",
    )
    .to_string();
    assert!(
        open.starts_with("a.yaml:2:14: `zip_options`: a quote is not closed"),
        "{open}"
    );
}

#[test]
fn names_of_variables_are_names() {
    let wrong = refused(
        Kind::Act,
        "a.yaml",
        "compute_target: x\nenv: {\"bad name\": 1}\n",
    )
    .to_string();
    assert!(
        wrong.starts_with("a.yaml:2:7: `env`: `bad name` is not the name of a variable"),
        "{wrong}"
    );
}

#[test]
fn a_list_of_clusters_has_what_the_other_file_says() {
    let philly = "vc: input\ncluster: wu1\nblob_mount_point: /blob\nazure_blob_config_file: \
        acct.yaml\ndocker: {image: i, tag: t}\nmulti_process: false\nconfig_param: \
            {data_folder: /blob/d, x_folder: null}\n";
    let texts = [
        ("philly_vc.yaml", philly),
        ("multi_philly_vc.yaml", "clusters: [wu1, sc2]\n"),
        ("acct.yaml", ACT_ACCOUNT_FILE),
    ];
    for given in [
        ["philly_vc.yaml", "multi_philly_vc.yaml"],
        ["multi_philly_vc.yaml", "philly_vc.yaml"],
    ] {
        let all = import_texts(Kind::Qd, &texts, &given, None, false).expect("converts");
        for cluster in ["wu1", "sc2"] {
            let at =
                |path: &str| value(&all, "towline.yaml", &format!("clusters/{cluster}/{path}"));
            assert_eq!(
                [at("kind"), at("virtual_cluster"), at("job/launch")],
                ["philly", "input", "per_node"]
            );
            assert_eq!(
                [
                    at("job/environment/image"),
                    at("folders/data/datastore"),
                    at("folders/data/path")
                ],
                ["i:t", "acct", "d"]
            );
        }
        let report = all
            .reports
            .iter()
            .find(|report| report.source == "philly_vc.yaml")
            .expect("a report");
        assert_eq!(
            says(&report.mapped, "blob_mount_point"),
            "paths below /blob are paths in the container"
        );
        assert_eq!(
            says(&report.mapped, "azure_blob_config_file"),
            "datastores.acct"
        );
        assert_eq!(
            says(&report.mapped, "docker.tag"),
            "clusters.wu1.job.environment.image"
        );
    }
}
