//! Imports into a folder that has a `towline.yaml`.

use super::*;

const EXISTING_CONFIGURATION: &str = "# mine\ndefault_cluster: lab\nclusters:  # all\n  lab: \
    {kind: slurm, host: login}   # the lab\nfolders:\n  data: \
        {datastore: nas, path: x}\ndatastores:\n  # the shelf\n  nas: {kind: folder, path: /mnt}\n";
const ACT_CLUSTER_FILE: &str = "aml_config: {workspace_name: w}\ncompute_target: NC24\nconfig_param: \
    {data_folder: {azure_blob_config_file: blob.yaml, path: \
        p}, out_folder: {azure_blob_config_file: blob.yaml, path: q}}\n";
const ACT_BLOB_FILE: &str = "account_name: acct\ncontainer_name: box\naccount_key: a2V5\n";

fn onto(existing: &str, force: bool) -> Result<Imported> {
    import_texts(
        Kind::Act,
        &[("aml.yaml", ACT_CLUSTER_FILE), ("blob.yaml", ACT_BLOB_FILE)],
        &["aml.yaml"],
        Some(existing),
        force,
    )
}

#[test]
fn what_is_missing_is_added_and_the_rest_stays() {
    let all = onto(EXISTING_CONFIGURATION, false).expect("adds");
    let made = &all.files[0];
    assert_eq!(
        (made.name.as_str(), made.placement),
        ("towline.yaml", Placement::Added)
    );
    for line in EXISTING_CONFIGURATION.lines() {
        assert!(
            made.text.lines().any(|made| made == line),
            "{line} is gone from {}",
            made.text
        );
    }
    let expected = [
        ("default_cluster", "lab"),
        ("clusters/lab/host", "login"),
        ("clusters/aml/compute", "NC24"),
        ("datastores/blob/container", "box"),
        ("datastores/nas/path", "/mnt"),
        ("folders/data/datastore", "nas"),
        ("folders/out/datastore", "blob"),
    ];
    assert_values(&all, "towline.yaml", &expected);
    assert!(
        warns(
            &all.reports[0],
            "`folders.data` stays as it is in towline.yaml:6:9"
        ),
        "{:#?}",
        all.reports
    );
    // Once more there is nothing to add.
    let again = onto(&made.text, false).expect("adds nothing");
    assert!(again.files.is_empty(), "{:#?}", again.files);
    assert_eq!(
        again.notes,
        ["towline.yaml has all of it already and stays as it is"]
    );
}

#[test]
fn the_first_cluster_of_a_file_becomes_its_default() {
    let all = onto("# nothing yet\nfolders: {}\n", false).expect("adds");
    assert_values(
        &all,
        "towline.yaml",
        &[("default_cluster", "aml"), ("folders/data/path", "p")],
    );
    assert!(
        all.files[0]
            .text
            .starts_with("# nothing yet\nfolders: {data: "),
        "{}",
        all.files[0].text
    );
    let all = onto("default_cluster: local\n", false).expect("adds");
    assert_values(&all, "towline.yaml", &[("default_cluster", "local")]);
    assert!(
        warns(
            &all.reports[0],
            "`default_cluster` stays as it is in towline.yaml:1:18: `local`; here it would be `aml`"
        ),
        "{:#?}",
        all.reports
    );
}

#[test]
fn what_contradicts_the_file_is_refused_and_force_takes_it() {
    let there = "# mine\nclusters:\n  aml:\n    kind: azureml\n    compute: ND40\n    host: x\n";
    let error = onto(there, false).expect_err("refused");
    assert!(
        error.to_string().starts_with(
            "towline.yaml:5:14: `clusters.aml.compute` is `ND40` there, \
            and `NC24` in aml.yaml:2:17; nothing was written"
        ),
        "{error}"
    );
    assert!(
        error.hints()[0].contains("--force") && error.hints()[1].contains("in one command"),
        "{error:?}"
    );
    let all = onto(there, true).expect("writes");
    assert_eq!(all.files[0].placement, Placement::Replaced);
    assert_values(
        &all,
        "towline.yaml",
        &[
            ("clusters/aml/compute", "NC24"),
            ("clusters/aml/host", "x"),
            ("default_cluster", "aml"),
        ],
    );
    assert!(
        all.files[0]
            .text
            .starts_with("# Written by `tow import act aml.yaml`"),
        "{}",
        all.files[0].text
    );
}

#[test]
fn what_cannot_be_added_to_is_refused_with_a_hint() {
    for there in [
        "clusters: ~\n",
        "base: &b {x: {kind: local}}\nclusters: *b\n",
        "---\nclusters:\n  a: {kind: local}\n...\n",
    ] {
        let error = onto(there, false).expect_err("refused");
        assert!(
            error.to_string().contains("cannot add keys to")
                && error.hints()[0].contains("--force"),
            "{there:?}: {error:?}"
        );
        assert_eq!(
            onto(there, true).expect("writes").files[0].placement,
            Placement::Replaced
        );
    }
    assert!(
        onto("clusters: [", false)
            .expect_err("refused")
            .to_string()
            .starts_with("towline.yaml:")
    );
}
