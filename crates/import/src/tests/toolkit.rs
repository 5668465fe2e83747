//! Submissions of the MSRA Toolkit.

use super::*;

fn form(job: &str, cluster: &str, container: &str) -> String {
    serde_json::json!({
        "cluster": {"virtual_cluster": "vc", "workspace": cluster},
        "storage": {"datastore_name": "research", "account_name": "acct", "container_name": container, "account_key": "c2VjcmV0"},
        "io": [{"name": "out", "datastore": "research", "path": "o"}],
        "synchronization": {"target": "out"},
        "experiment": {"job_name": job, "copy_data": true, "data_dir": "d", "script": ["datastore=research"]}
    })
    .to_string()
}

/// Three files: the second and the third differ from the first under the same names.
fn conflicting() -> Imported {
    let (one, two, three) = (
        form("a", "w1", "box"),
        form("b", "w2", "box2"),
        form("c", "w2", "box2"),
    );
    imported(
        Kind::Toolkit,
        &[
            ("one.json", &one),
            ("two.json", &two),
            ("three.json", &three),
        ],
    )
}

#[test]
fn what_conflicts_gets_a_name_of_its_own_and_jobs_use_it() {
    let all = conflicting();
    let expected = [
        ("datastores/research/container", "box"),
        (
            "datastores/research/credential/account_key",
            "keyring:research",
        ),
        ("datastores/research-2/container", "box2"),
        (
            "datastores/research-2/credential/account_key",
            "keyring:research-2",
        ),
        ("datastores/research-3", "(none)"),
        ("clusters/vc/workspace", "w1"),
        ("clusters/vc-2/workspace", "w2"),
        ("clusters/vc-2/virtual_cluster", "vc"),
        ("clusters/vc-3", "(none)"),
        ("sync/datastore", "research"),
    ];
    assert_values(&all, "towline.yaml", &expected);
    for (file, store, cluster) in [
        ("a", "research", "vc"),
        ("b", "research-2", "vc-2"),
        ("c", "research-2", "vc-2"),
    ] {
        let file = format!("{file}.tow.yaml");
        assert_values(
            &all,
            &file,
            &[
                ("io/out/datastore", store),
                ("copy/datastore", store),
                ("cluster", cluster),
                ("script", "datastore=research\n"),
            ],
        );
    }
}

#[test]
fn the_report_uses_the_new_names_of_what_conflicts() {
    let all = conflicting();
    let report = &all.reports[1];
    assert!(
        warns(
            report,
            "`datastores.research` of this file is `datastores.research-2`: \
                `datastores.research.container` is `box` in one.json:1:"
        ),
        "{report:#?}"
    );
    assert!(
        warns(
            report,
            "`clusters.vc` of this file is `clusters.vc-2`: `clusters.vc.workspace` is `w1`"
        ),
        "{report:#?}"
    );
    assert!(warns(report, "`sync` is that of one.json"), "{report:#?}");
    assert_eq!(
        says(&report.mapped, "storage.container_name"),
        "datastores.research-2.container"
    );
    assert_eq!(
        says(&report.mapped, "cluster.virtual_cluster"),
        "cluster, clusters.vc-2.virtual_cluster"
    );
    assert!(
        report.commands[0]
            .starts_with("secret-tool store --label=research-2 towline research-2    # "),
        "{report:#?}"
    );
    assert!(
        all.reports[0]
            .warnings
            .iter()
            .all(|warning| !warning.contains("of this file is")),
        "{:#?}",
        all.reports[0]
    );
}

#[test]
fn a_key_and_a_sas_of_one_container_are_two_stores() {
    let one = form("a", "w", "box");
    let all = imported(
        Kind::Toolkit,
        &[
            ("one.json", &one),
            (
                "two.json",
                &form("b", "w", "box").replace("account_key", "sas_token"),
            ),
        ],
    );
    assert_values(
        &all,
        "towline.yaml",
        &[
            (
                "datastores/research/credential",
                "{account_key: \"keyring:research\"}",
            ),
            (
                "datastores/research-2/credential",
                "{sas: \"keyring:research-2\"}",
            ),
        ],
    );
}

#[test]
fn two_io_of_a_name_are_refused() {
    let text = "{\"experiment\": {\"script\": \
        [\"x\"]},\n\"io\": [{\"name\": \"a\", \"datastore\": \"b\"},\n {\"name\": \"a\", \"datastore\": \"c\"}]}";
    let wrong = refused(Kind::Toolkit, "x.json", text).to_string();
    assert!(
        wrong.starts_with("x.json:3:11: `a`: two of `io` have this name"),
        "{wrong}"
    );
}

#[test]
fn what_the_workspace_knows_is_not_asked_for() {
    let text = "{\"cluster\": {\"virtual_cluster\": \"vc\", \"workspace\": \"w\"}, \"io\": [{\"name\": \"a\", \"datastore\": \"known\"}], \"experiment\": {\"script\": [\"x\"]}}";
    let report = &imported(Kind::Toolkit, &[("x.json", text)]).reports[0];
    assert!(
        !everything(report).contains("subscription")
            && !everything(report).contains("only the workspace"),
        "{}",
        everything(report)
    );
    let report = &imported(
        Kind::Toolkit,
        &[(
            "x.json",
            &text.replace("\"workspace\": \"w\"", "\"node_count\": 1"),
        )],
    )
    .reports[0];
    assert!(
        warns(
            report,
            "the file does not say the workspace: write `workspace` under `clusters.vc`"
        ),
        "{report:#?}"
    );
}

#[test]
fn every_field_has_its_line() {
    let text = "{\"experiment\": {\"script\": [\"x\"], \"arg_sweep\": \
        [], \"managed_ids\": \"m\", \"ignore_dir\": null}, \"storage\": null}";
    let report = &imported(Kind::Toolkit, &[("x.json", text)]).reports[0];
    assert_eq!(
        says(&report.not_needed, "experiment.arg_sweep"),
        "it changes nothing here"
    );
    assert_eq!(
        says(&report.not_needed, "experiment.ignore_dir"),
        "it has no value"
    );
    assert_eq!(says(&report.not_needed, "storage"), "it has no value");
    assert!(
        says(&report.not_mapped, "experiment.managed_ids").ends_with("did you mean `managed_id`?"),
        "{report:#?}"
    );
}

#[test]
fn a_sweep_may_have_its_values_on_lines_of_their_own() {
    let sweep = |entries: serde_json::Value| {
        let form = serde_json::json!({"experiment": {"job_name": "a", "script": ["x ${{lr_G}} \
            ${{lr_D}} ${{seed}}"], "arg_sweep": entries}});
        imported(Kind::Toolkit, &[("a.json", &form.to_string())])
    };
    let expected = [
        ("sweep/(lr_G, lr_D)", "[[1e-4, 1e-4], [2e-4, 1e-4]]"),
        ("sweep/seed", "[1, 2, 3]"),
    ];
    for entries in [
        serde_json::json!([
            "(lr_G, lr_D):",
            "(1e-4, 1e-4)",
            "(2e-4, 1e-4)",
            "seed:",
            "1",
            "2",
            "3"
        ]),
        serde_json::json!(["(lr_G, lr_D):\n(1e-4, 1e-4)\n(2e-4, 1e-4)", "seed: 1-2, 3"]),
        serde_json::json!("(lr_G, lr_D):\n(1e-4, 1e-4),\n(2e-4, 1e-4)\n\nseed: 1,\n2\n3"),
        serde_json::json!(["(lr_G, lr_D): (1e-4, 1e-4), (2e-4, 1e-4)", "seed: 1-3"]),
    ] {
        assert_values(&sweep(entries.clone()), "a.tow.yaml", &expected);
    }
    let form = serde_json::json!({"experiment": {"job_name": "a", "script": ["x"], "arg_sweep": ["lr:", "seed: 1"]}}).to_string();
    assert!(
        refused(Kind::Toolkit, "a.json", &form)
            .to_string()
            .contains("`lr:` has no value")
    );
}

#[test]
fn an_identity_that_is_not_used_is_none() {
    for (word, made) in [
        (serde_json::json!(false), "(none)"),
        ("Not used".into(), "(none)"),
        ("my-uami".into(), "managed:my-uami"),
    ] {
        let form = serde_json::json!({"experiment": {"job_name": "a", "script": ["x"], "managed_id": word}}).to_string();
        assert_eq!(
            value(
                &imported(Kind::Toolkit, &[("a.json", &form)]),
                "a.tow.yaml",
                "identity"
            ),
            made,
            "{word}"
        );
    }
}

#[test]
fn without_a_keyring_credentials_are_variables() {
    let text =
        form("a", "w", "box").replace("datastore=research", "export HF_TOKEN=hf_0123456789abcdef");
    let read = |_: &Path| Ok(text.clone());
    let all = import(
        Kind::Toolkit,
        &["a.json".into()],
        &read,
        &Destination::default(),
    )
    .expect("converts");
    assert_eq!(
        value(&all, "towline.yaml", "datastores/research/credential"),
        "{account_key: \"env:RESEARCH_ACCOUNT_KEY\"}"
    );
    let report = &all.reports[0];
    assert_eq!(
        report.commands[0],
        "export RESEARCH_ACCOUNT_KEY=…    # paste the value of `storage.account_key`",
        "{report:#?}"
    );
    assert!(
        report.commands[1].starts_with("export HF_TOKEN=…    # paste the value from line 1"),
        "{report:#?}"
    );
    assert!(
        warns(report, "`secret-tool` is not installed")
            && !everything(report).contains("secret-tool store"),
        "{report:#?}"
    );
}
