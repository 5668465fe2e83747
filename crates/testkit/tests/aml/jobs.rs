//! The life of jobs.

use crate::ask::Asker;
use serde_json::{Value, json};
use std::path::Path;
use towline_testkit::aml::judge;
use towline_testkit::until;

/// Whether any process of a group is alive.
fn lives(group: i32) -> bool {
    let stat = |entry: std::fs::DirEntry| std::fs::read_to_string(entry.path().join("stat")).ok();
    let fields = |text: String| -> Vec<String> {
        text.rsplit_once(") ")
            .map(|(_, rest)| rest.split(' ').map(ToOwned::to_owned).collect())
            .unwrap_or_default()
    };
    let of_group = |fields: &Vec<String>| {
        fields
            .get(2)
            .is_some_and(|found| *found == group.to_string())
            && fields.first().is_some_and(|state| state != "Z")
    };
    Path::new("/proc")
        .read_dir()
        .unwrap()
        .flatten()
        .filter_map(stat)
        .map(fields)
        .any(|fields| of_group(&fields))
}

#[test]
fn a_job_goes_through_its_states() {
    let asker = Asker::start();
    asker.made_job("walks", "echo out; echo err >&2", &json!({}));
    asker.await_status("walks", "Completed");
    let states = [
        "NotStarted",
        "Starting",
        "Provisioning",
        "Preparing",
        "Queued",
        "Running",
        "Finalizing",
        "Completed",
    ];
    assert_eq!(asker.aml.states("walks"), states);
    assert_eq!(asker.log("walks", "user_logs/std_log.txt"), "out\nerr\n");
    assert!(
        asker
            .log("walks", "system_logs/lifecycler/lifecycler.log")
            .ends_with("Completed\n")
    );
    let details = asker.get(&asker.of_history("runs/walks/details")).json;
    let times = ["createdTimeUtc", "startTimeUtc", "endTimeUtc"]
        .map(|name| details[name].as_str().unwrap().to_owned());
    assert!(times.is_sorted(), "{times:?}");
    let run = asker.get(&asker.of_history("runs/walks")).json;
    assert_eq!(
        (&run["status"], &run["error"]),
        (&json!("Completed"), &Value::Null)
    );
    for path in [
        "experimentids/e/runs/walks/artifacts/prefix/contentinfo?path=user_logs",
        "runs/walks/artifacts",
    ] {
        let found = asker.get(&asker.of_history(path)).json;
        assert_eq!(found["value"][0]["container"], "dcid.walks", "{found}");
    }
    let one = asker
        .get(&asker.of_history(
            "experimentids/e/runs/walks/artifacts/contentinfo?path=user_logs/std_log.txt",
        ))
        .json;
    let read = asker
        .send("GET", one["contentUri"].as_str().unwrap(), &[], None)
        .unwrap();
    assert_eq!(read.bytes, b"out\nerr\n");
    let artifacts = format!("/artifact/v2.0{}/artifacts", asker.aml.scope().id());
    for path in [
        "content/ExperimentRun/dcid.walks/user_logs/std_log.txt",
        "ExperimentRun/dcid.walks/content?path=user_logs/std_log.txt",
    ] {
        assert_eq!(
            asker.get(&format!("{artifacts}/{path}")).bytes,
            b"out\nerr\n"
        );
    }
    for path in [
        "",
        "/metadata?path=user_logs/std_log.txt",
        "/contentinfo?path=user_logs/std_log.txt",
        "/prefix/contentinfo?path=user_logs",
    ] {
        assert_eq!(
            asker
                .get(&format!("{artifacts}/ExperimentRun/dcid.walks{path}"))
                .status,
            200,
            "{path}"
        );
    }
    assert_eq!(
        asker
            .get(&format!(
                "{artifacts}/ExperimentRun/dcid.walks/contentinfo?path=none"
            ))
            .status,
        404
    );
    if let Some(spec) = judge::published() {
        let summary = judge::judge(&asker.aml, &spec);
        assert!(
            summary["operations"].as_object().unwrap().len() >= 10,
            "{summary}"
        );
    }
}

#[test]
fn logs_grow_while_a_job_runs() {
    let asker = Asker::start();
    asker.made_job(
        "talks",
        "echo first; read < /dev/zero || sleep 600",
        &json!({}),
    );
    asker.await_status("talks", "Running");
    until("the first line", || {
        let details = asker.get(&asker.of_history("runs/talks/details")).json;
        let address = details["logFiles"]["user_logs/std_log.txt"]
            .as_str()?
            .to_owned();
        let tail = asker.send("GET", &address, &[("Range", "bytes=2-")], None)?;
        (tail.status == 206 && tail.bytes == b"rst\n").then_some(())
    });
}

#[test]
fn cancelling_ends_every_process() {
    let asker = Asker::start();
    asker
        .aml
        .conditions(|conditions| conditions.grace = std::time::Duration::from_millis(200));
    asker.made_job(
        "stubborn",
        "trap '' TERM; sleep 600 & sleep 600 & wait",
        &json!({"resources": {"instanceCount": 2}}),
    );
    asker.await_status("stubborn", "Running");
    let groups = until("processes", || {
        Some(asker.aml.process_groups("stubborn")).filter(|groups| groups.len() == 2)
    });
    assert!(groups.iter().all(|group| lives(*group)));
    let path = asker.of_workspace("jobs/stubborn/cancel");
    let said = asker.ask("POST", &path, None);
    assert_eq!(
        (said.status, said.headers["retry-after"].as_str()),
        (202, "10")
    );
    assert_eq!(
        asker.get(&asker.of_workspace("jobs/stubborn")).json["properties"]["status"],
        "CancelRequested"
    );
    until("the cancellation", || {
        (asker.get(&said.headers["location"]).status == 200).then_some(())
    });
    assert_eq!(asker.aml.status("stubborn").unwrap(), "Canceled");
    assert!(!groups.iter().any(|group| lives(*group)));
    assert_eq!(asker.ask("POST", &path, None).status, 200);
    // Before it runs, too.
    asker
        .aml
        .conditions(|conditions| conditions.hold_in = Some("Queued".to_owned()));
    asker.made_job("waits", "true", &json!({}));
    asker.await_status("waits", "Queued");
    asker.ask("POST", &asker.of_workspace("jobs/waits/cancel"), None);
    asker.await_status("waits", "Canceled");
    assert!(!asker.aml.states("waits").contains(&"Running".to_owned()));
}

#[test]
fn processes_end_with_the_emulator() {
    let asker = Asker::start();
    asker.made_job("stays", "sleep 600", &json!({}));
    let groups = until("processes", || {
        Some(asker.aml.process_groups("stays")).filter(|groups| !groups.is_empty())
    });
    drop(asker);
    assert!(!groups.iter().any(|group| lives(*group)));
}

#[test]
fn a_time_limit_ends_a_job() {
    let asker = Asker::start();
    asker.made_job(
        "long",
        "sleep 600",
        &json!({"limits": {"jobLimitsType": "Command", "timeout": "PT0.3S"}}),
    );
    asker.await_status("long", "Canceled");
    let error = asker.get(&asker.of_history("runs/long")).json["error"]["error"]["message"].clone();
    assert!(error.as_str().unwrap().contains("time limit"), "{error}");
}

#[test]
fn a_job_that_lost_its_nodes_starts_again_with_what_it_kept() {
    let asker = Asker::start();
    let command = "cat ${{outputs.kept}}/step 2>/dev/null; ls; echo $MASTER_ADDR > \
        ${{outputs.kept}}/address-$(test -f ${{outputs.kept}}/step; echo $?); touch local; if test \
            -f ${{outputs.kept}}/step; then exit 0; fi; echo 1 > ${{outputs.kept}}/step; sleep 600";
    let more = json!({
        "computeId": asker.aml.cluster(),
        "resources": {"properties": {"AISuperComputer": {"instanceType": "Singularity.ND96amrs_A100_v4", "slaTier": "Basic"}}},
        "outputs": {"kept": {"jobOutputType": "uri_folder", "uri": "azureml://datastores/workspaceblobstore/paths/kept", "mode": "ReadWriteMount"}},
    });
    asker.made_job("evicted", command, &more);
    asker.await_status("evicted", "Running");
    let container = asker
        .get(&asker.of_workspace("datastores/workspaceblobstore"))
        .json["properties"]["containerName"]
        .as_str()
        .unwrap()
        .to_owned();
    let azurite = asker.aml.azurite();
    until("an upload while it runs", || {
        azurite
            .client()
            .list(&container, "kept/step")
            .first()
            .cloned()
    });
    asker.aml.preempt("evicted");
    asker.await_status("evicted", "Completed");
    let states = asker.aml.states("evicted");
    assert_eq!(
        states[4..],
        [
            "Queued",
            "Running",
            "Queued",
            "Running",
            "Finalizing",
            "Completed"
        ]
    );
    assert_eq!(asker.log("evicted", "user_logs/std_log.txt"), "");
    assert_eq!(
        asker.log("evicted", "user_logs/retry_001/std_log.txt"),
        "1\n"
    );
    let address = |go: &str| {
        azurite
            .client()
            .sha256(&container, &format!("kept/address-{go}"))
    };
    assert_ne!(address("1"), address("0"), "other nodes");
}

#[test]
fn an_output_is_where_it_is_wanted() {
    let asker = Asker::start();
    let folder = tempfile::tempdir().unwrap();
    let wanted = folder.path().join("mnt/out");
    let more = json!({
        "properties": {"AZURE_ML_OUTPUT_PathOnCompute_o": wanted},
        "outputs": {"o": {"jobOutputType": "uri_folder", "uri": "azureml://datastores/workspaceblobstore/paths/o"}},
        "environmentVariables": {"W": wanted},
        "inputs": {"say": {"jobInputType": "literal", "value": "it's \"odd\""}, "from": {"jobInputType": "uri_folder", "uri": "azureml://x", "mode": "Direct"}},
    });
    asker.made_job(
        "there",
        "printf %s \"$AZURE_ML_INPUT_say\" > $W/file; echo ${{inputs.from}} $AZURE_ML_OUTPUT_o",
        &more,
    );
    asker.await_status("there", "Completed");
    assert_eq!(
        asker.log("there", "user_logs/std_log.txt"),
        format!("azureml://x {}\n", wanted.display())
    );
    let container = asker
        .get(&asker.of_workspace("datastores/workspaceblobstore"))
        .json["properties"]["containerName"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(
        asker.aml.azurite().client().list(&container, "o/"),
        [("o/file".to_owned(), 10)]
    );
}

#[test]
fn an_interactive_job_has_nodes_and_runs_nothing() {
    let asker = Asker::start();
    let more = json!({"resources": {"properties": {"AISuperComputer": {"Interactive": true, "instanceType": "Singularity.ND12_H100_v5"}}}});
    asker.made_job("shell", "echo never", &more);
    until("processes", || {
        (!asker.aml.process_groups("shell").is_empty()).then_some(())
    });
    asker.ask("POST", &asker.of_workspace("jobs/shell/cancel"), None);
    asker.await_status("shell", "Canceled");
    assert_eq!(asker.log("shell", "user_logs/std_log.txt"), "");
}

#[test]
fn a_job_put_again_is_the_same_job() {
    let asker = Asker::start();
    let more =
        json!({"tags": {"a": "1"}, "properties": {"p": "1"}, "environmentVariables": {"A": "1"}});
    asker.made_job("once", "true", &more);
    assert_eq!(asker.put_job("once", "true", &more).status, 200);
    let mut changed = more.clone();
    changed["tags"] = json!({"b": "2"});
    changed["displayName"] = json!("shown");
    changed["properties"] = json!({"q": "2"});
    let said = asker.put_job("once", "true", &changed).json["properties"].clone();
    assert_eq!(
        (
            &said["tags"],
            &said["displayName"],
            &said["properties"]["p"],
            &said["properties"]["q"]
        ),
        (
            &json!({"b": "2"}),
            &json!("shown"),
            &json!("1"),
            &json!("2")
        )
    );
    for other in [
        json!({"environmentVariables": {"A": "2"}}),
        json!({"computeId": "cpu"}),
        json!({"properties": {"p": "2"}}),
        json!({"resources": {"instanceCount": 2}}),
    ] {
        let said = asker.put_job("once", "true", &other);
        assert_eq!(
            (said.status, said.json["error"]["code"].as_str()),
            (400, Some("UserError")),
            "{other}"
        );
        assert_eq!(
            said.json["error"]["additionalInfo"][1]["info"]["value"]["innerError"]["code"],
            "JobPropertyImmutable"
        );
    }
    asker.await_status("once", "Completed");
    assert_eq!(
        asker
            .aml
            .states("once")
            .iter()
            .filter(|state| *state == "Running")
            .count(),
        1
    );
    // A job as it is shown can be put back.
    let shown = asker.get(&asker.of_workspace("jobs/once")).json;
    assert_eq!(
        asker
            .ask(
                "PUT",
                &asker.of_workspace("jobs/once"),
                Some(&json!({"properties": shown["properties"]}))
            )
            .status,
        200
    );
}

#[test]
fn lists_are_filtered_and_come_in_pages() {
    let asker = Asker::start();
    asker.aml.conditions(|conditions| conditions.page = 2);
    for number in 0..5 {
        asker.made_job(
            &format!("j{number}"),
            "true",
            &json!({"tags": {"even": (number % 2 == 0).to_string()}, "isArchived": number == 4}),
        );
    }
    let names = |query: &str| {
        let (mut found, mut pages, mut next) = (
            Vec::new(),
            0,
            Some(asker.of_workspace(&format!("jobs?{query}"))),
        );
        while let Some(path) = next {
            let said = asker.get(&path).json;
            found.extend(
                said["value"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|job| job["name"].as_str().unwrap().to_owned()),
            );
            next = said["nextLink"].as_str().map(ToOwned::to_owned);
            pages += 1;
        }
        (found.join(" "), pages)
    };
    assert_eq!(names("listViewType=All"), ("j4 j3 j2 j1 j0".to_owned(), 3));
    assert_eq!(names("jobType=Command"), ("j3 j2 j1 j0".to_owned(), 2));
    assert_eq!(names("listViewType=ArchivedOnly"), ("j4".to_owned(), 1));
    assert_eq!(names("tag=even%3Dtrue"), ("j2 j0".to_owned(), 1));
    assert_eq!(names("jobType=Sweep"), (String::new(), 1));
    assert_eq!(names("listViewType=All&$top=1").1, 5);
    asker
        .aml
        .conditions(|conditions| conditions.empty_pages = 1);
    assert_eq!(names("listViewType=All"), ("j4 j3 j2 j1 j0".to_owned(), 4));
}

#[test]
fn what_cannot_run_is_refused_or_fails() {
    let asker = Asker::start();
    let refused = |command: &str, more: &Value| asker.put_job("bad", command, more).status;
    assert_eq!(refused("", &json!({})), 400);
    for more in [
        json!({"jobType": "Other"}),
        json!({"environmentId": ""}),
        json!({"resources": {"instanceCount": 0}}),
        json!({"resources": {"shmSize": "2x"}}),
        json!({"limits": {"jobLimitsType": "Command", "timeout": "1h"}}),
        json!({"codeId": format!("{}/codes/c/versions/1", asker.aml.scope().id())}),
        json!({"computeId": format!("{}/computes/none", asker.aml.scope().id())}),
        json!({"computeId": asker.aml.cluster(), "identity": {"identityType": "Managed"}}),
        json!({"experimentName": "my exp/1"}),
        json!({"experimentName": "über"}),
        json!({"experimentName": "_x"}),
        json!({"description": "x".repeat(5_001)}),
        json!({"displayName": "x".repeat(257)}),
        json!({"tags": {"k": "x".repeat(1_001)}}),
        json!({"tags": {"k".repeat(101): "x"}}),
        json!({"tags": (0..51).map(|number| (number.to_string(), "x")).collect::<std::collections::BTreeMap<_, _>>()}),
    ] {
        assert_eq!(refused("true", &more), 400, "{more}");
    }
    assert_eq!(asker.get(&asker.of_workspace("jobs/bad")).status, 404);
    assert_eq!(
        asker
            .ask("DELETE", &asker.of_workspace("jobs/bad"), None)
            .status,
        204
    );
    asker.made_job(
        "nowhere",
        "true",
        &json!({"inputs": {"d": {"jobInputType": "uri_folder", "uri": "azureml:none:1"}}}),
    );
    asker.await_status("nowhere", "Failed");
    let error =
        asker.get(&asker.of_history("runs/nowhere/details")).json["error"]["error"]["message"]
            .clone();
    assert!(error.as_str().unwrap().contains("input 'd'"), "{error}");
    // One process of many that fails ends the others.
    let distribution =
        json!({"distribution": {"distributionType": "PyTorch", "processCountPerInstance": 2}});
    asker.made_job("half", "test $RANK = 1 && exit 7; sleep 600", &distribution);
    asker.await_status("half", "Failed");
    let error = asker.get(&asker.of_history("runs/half")).json["error"]["error"]["message"].clone();
    assert!(
        error.as_str().unwrap().contains("status code 7")
            && error.as_str().unwrap().contains("std_log_process_1.txt"),
        "{error}"
    );
}
