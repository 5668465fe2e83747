//! What goes wrong with one run is no other run's trouble.

use crate::lab::Lab;
use towline_testkit::aml::{Trouble, When};
use towline_testkit::{Output, until, until_within};

const NO: Trouble = Trouble::Status {
    status: 403,
    retry_after: None,
};
const ILL: Trouble = Trouble::Status {
    status: 500,
    retry_after: None,
};
/// More often than anybody asks here.
const ALWAYS: usize = 100_000;

#[test]
fn a_job_that_nobody_may_see_does_not_hide_the_others() {
    let lab = Lab::new();
    lab.aml
        .trouble(ALWAYS, "GET", "/jobs/hidden-", NO, When::Before);
    lab.aml
        .trouble(ALWAYS, "GET", "/history/", NO, When::Before);
    let hidden = lab
        .tow(["submit", "--name", "hidden", "sleep", "300"])
        .ok()
        .id();
    let failed = lab.tow(["submit", "sh", "-c", "exit 3"]).ok().id();
    let record = lab.ended(&failed);
    assert_eq!(
        (record["state"].as_str(), record["exit_code"].as_i64()),
        (Some("failed"), Some(3)),
        "{record}"
    );
    // Nor is it an end of the one.
    assert_eq!(lab.home.show(&hidden)["ended"], serde_json::Value::Null);
    let status = lab.tow(["show", &hidden, "--json"]).ok().json();
    assert!(status["stale_since"].is_string(), "{status}");
}

#[test]
fn a_submission_that_does_not_get_through_holds_up_no_other_and_no_abort() {
    let lab = Lab::new();
    let long = lab.tow(["submit", "sleep", "300"]).ok().id();
    lab.until_word(&long, "Running");
    lab.aml
        .trouble(ALWAYS, "PUT", "/jobs/stuck-", ILL, When::Before);
    let mut stuck = lab.home.spawn(["submit", "--name", "stuck", "true"]);
    until("it to be tried", || {
        lab.aml
            .asked()
            .iter()
            .any(|(method, target)| method == "PUT" && target.contains("/jobs/stuck-"))
            .then_some(())
    });
    let mut other = lab.home.spawn(["run", "--name", "fine", "echo", "hello"]);
    lab.tow(["abort", &long]).ok();
    until_within(180, "the abort", || {
        (lab.home.state_of(&long) == "cancelled").then_some(())
    });
    until_within(180, "the other run", || {
        other
            .try_wait()
            .unwrap()
            .filter(std::process::ExitStatus::success)
            .map(drop)
    });
    // Whoever submitted it is not kept waiting for ever.
    until_within(120, "the one who submitted it", || {
        stuck.try_wait().unwrap().map(drop)
    });
    let told = Output::from(stuck.wait_with_output().unwrap());
    assert!(
        told.code == 0
            && told.stdout.starts_with("stuck-")
            && told.stderr.contains("will be sent when it does"),
        "{told:?}"
    );
    assert!(
        lab.home.show(&told.id())["state"]
            .as_str()
            .is_some_and(|state| state.starts_with("submitting")),
        "{told:?}"
    );
}

#[test]
fn a_job_that_may_not_be_cancelled_holds_up_nobody() {
    let lab = Lab::new();
    lab.aml
        .trouble(ALWAYS, "POST", "/jobs/theirs-", NO, When::Before);
    let theirs = lab
        .tow(["submit", "--name", "theirs", "sleep", "300"])
        .ok()
        .id();
    let mine = lab.tow(["submit", "sleep", "300"]).ok().id();
    lab.until_word(&theirs, "Running");
    lab.until_word(&mine, "Running");
    lab.tow(["abort", &theirs, &mine]).ok();
    until_within(60, "the other to be cancelled", || {
        (lab.home.state_of(&mine) == "cancelled").then_some(())
    });
    let later = lab.tow(["submit", "true"]).ok().id();
    assert_eq!(lab.ended(&later)["state"], "succeeded");
    let told = lab
        .aml
        .asked()
        .iter()
        .filter(|(method, target)| {
            method == "POST" && target.contains(&format!("/jobs/{mine}/cancel"))
        })
        .count();
    assert_eq!(told, 1, "what is done is not done again");
}

/// The run did its work; what it wrote is the service's to upload.
#[test]
fn results_that_do_not_arrive_are_no_success() {
    let lab = Lab::new();
    let job = "io: {out: {datastore: workspaceblobstore, path: results, mode: write}}\nscript: \
        echo model > \"$TOW_IO_OUT/model\"\n";
    lab.aml
        .conditions(|conditions| conditions.hold_in = Some("Queued".to_owned()));
    let id = lab.home.submit_file(job, &[]);
    lab.until_word(&id, "Queued");
    lab.aml.show_status(&id, Some("Finalizing"));
    lab.aml.conditions(|conditions| conditions.hold_in = None);
    until("its work to be done", || {
        (lab.aml.status(&id)? == "Completed").then_some(())
    });
    assert_eq!(
        lab.home.show(&id)["ended"],
        serde_json::Value::Null,
        "only the service can say whether it is over"
    );
    lab.aml.show_status(&id, Some("Failed"));
    let record = lab.ended(&id);
    assert_eq!(
        (record["state"].as_str(), record["reason"].as_str()),
        (Some("failed"), Some("data")),
        "{record}"
    );
    assert!(
        record["detail"]
            .as_str()
            .is_some_and(|detail| detail.contains("may not be uploaded")),
        "{record}"
    );
}
