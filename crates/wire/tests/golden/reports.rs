//! Records that `--json` prints: what they were made of, and what was printed. They are only
//! written, so nothing decodes them here.

use serde_json::{Value, json};
use towline_core::record::{AttemptRecord, RunRecord};
use towline_wire::report;

/// Everything that was printed before is printed now.
#[track_caller]
fn contains(then: &Value, now: &Value) {
    assert_eq!(towline_samples::lost(then, now), None);
}

fn kept() -> Value {
    let text = std::fs::read_to_string(super::samples("report.json")).expect("samples");
    serde_json::from_str(&text).expect("JSON")
}

#[test]
fn runs_and_attempts_are_printed_as_before() {
    let kept = kept();
    for sample in kept["run"].as_array().expect("samples") {
        let record: RunRecord = serde_json::from_value(sample["record"].clone()).expect("a record");
        let run = report::Run::from(&record);
        contains(
            &sample["printed"],
            &serde_json::to_value(&run).expect("it encodes"),
        );
        let runs = report::Runs { runs: vec![run] };
        let runs = serde_json::to_value(&runs).expect("it encodes");
        contains(&sample["printed"], &runs["runs"][0]);
    }
    for sample in kept["attempt"].as_array().expect("samples") {
        let record = serde_json::from_value(sample["record"].clone());
        let record: AttemptRecord = record.expect("a record");
        let attempt = serde_json::to_value(report::Attempt::from(&record)).expect("it encodes");
        contains(&sample["printed"], &attempt);
    }
}

#[test]
fn an_error_is_printed_as_before() {
    let failure = report::Failure {
        error: "not_found",
        message: "no run is called x".to_owned(),
        hints: vec!["`tow ps` lists runs".to_owned()],
        exit_code: 3,
        refusal: None,
        key: None,
        line: None,
        column: None,
    };
    let printed = json!({
        "error": "not_found",
        "message": "no run is called x",
        "hints": ["`tow ps` lists runs"],
        "exit_code": 3,
    });
    let now = serde_json::to_value(&failure).expect("it encodes");
    contains(&printed, &now);
    for absent in ["refusal", "key", "line", "column"] {
        assert_eq!(now.get(absent), None);
    }
    let refused = report::Failure {
        refusal: Some("denied"),
        ..failure
    };
    let now = serde_json::to_value(refused).expect("it encodes");
    assert_eq!(now["refusal"], "denied");
}

/// Makes `report.json` once.
#[test]
#[ignore = "writes report.json from the records of core, if it is missing"]
fn write_reports() {
    let path = super::samples("report.json");
    assert!(!path.exists(), "samples are never made again");
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../core/tests/golden");
    let text = std::fs::read_to_string(folder.join("record.json")).expect("samples");
    let records: Value = serde_json::from_str(&text).expect("JSON");
    let run = |sample: &Value| {
        let record: RunRecord = serde_json::from_value(sample.clone()).expect("a record");
        json!({ "record": sample, "printed": report::Run::from(&record) })
    };
    let attempt = |sample: &Value| {
        let record: AttemptRecord = serde_json::from_value(sample.clone()).expect("a record");
        json!({ "record": sample, "printed": report::Attempt::from(&record) })
    };
    let runs: Vec<Value> = records["run"]
        .as_array()
        .expect("runs")
        .iter()
        .map(run)
        .collect();
    let attempts = records["attempt"].as_array().expect("attempts").iter();
    let attempts: Vec<Value> = attempts.map(attempt).collect();
    let kept = json!({ "run": runs, "attempt": attempts });
    let text = serde_json::to_string_pretty(&kept).expect("it encodes");
    std::fs::write(path, text + "\n").expect("written");
}
