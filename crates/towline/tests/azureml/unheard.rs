//! A yes that nobody heard is followed by a no: what may be there is not given up.

use crate::lab::Lab;
use serde_json::json;
use towline_testkit::aml::{Trouble, When};
use towline_testkit::{until, until_within};

const NO: Trouble = Trouble::Status {
    status: 403,
    retry_after: None,
};
const ALWAYS: usize = 100_000;

/// What the service took of such a name.
fn taken(lab: &Lab, beginning: &str) -> Vec<String> {
    lab.aml
        .jobs()
        .into_iter()
        .map(|(name, _)| name)
        .filter(|name| name.starts_with(beginning))
        .collect()
}

#[test]
fn a_refusal_after_a_lost_answer_ends_nothing() {
    let lab = Lab::new();
    lab.aml
        .trouble(1, "PUT", "/jobs/mine-", Trouble::Cut, When::After);
    lab.aml
        .trouble(ALWAYS, "PUT", "/jobs/mine-", NO, When::Before);
    // Nor may it be looked at for a while.
    lab.aml.trouble(6, "GET", "/jobs/mine-", NO, When::Before);
    let id = lab
        .tow(["submit", "--name", "mine", "echo", "hello"])
        .ok()
        .id();
    let record = lab.ended(&id);
    assert_eq!(
        (record["state"].as_str(), lab.log(&id, 1, 0).as_str()),
        (Some("succeeded"), "hello\n"),
        "{record}"
    );
    assert_eq!(taken(&lab, "mine-"), [id]);
}

#[test]
fn a_daemon_that_comes_later_and_is_refused_finds_what_was_taken() {
    let lab = Lab::new();
    lab.aml
        .trouble(1, "PUT", "/jobs/mine-", Trouble::Cut, When::After);
    lab.aml
        .trouble(ALWAYS, "PUT", "/jobs/mine-", NO, When::Before);
    lab.aml
        .trouble(ALWAYS, "GET", "/jobs/mine-", NO, When::Before);
    let mut submitting = lab.home.spawn(["submit", "--name", "mine", "sleep", "300"]);
    let id = until("it to be taken", || taken(&lab, "mine-").into_iter().next());
    lab.home.kill_daemon();
    let _ = submitting.kill();
    let _ = submitting.wait();
    // Whoever is signed in may do nothing more: that says nothing of what was taken.
    lab.tow(["ps"]).ok();
    until_within(60, "the next daemon to be refused", || {
        lab.tow(["ps"]).ok();
        lab.aml
            .asked()
            .iter()
            .filter(|(method, target)| method == "PUT" && target.contains("/jobs/mine-"))
            .nth(3)
            .map(drop)
    });
    assert_eq!(
        lab.home.show(&id)["ended"],
        json!(null),
        "{}",
        lab.home.show(&id)
    );
    assert_eq!(taken(&lab, "mine-"), [id]);
}

#[test]
fn what_was_never_taken_is_refused_at_once() {
    let lab = Lab::new();
    lab.aml
        .trouble(ALWAYS, "PUT", "/jobs/mine-", NO, When::Before);
    let refused = lab.tow(["submit", "--name", "mine", "echo", "hello"]);
    assert!(
        refused.code == 123 && refused.stderr.contains("AzureML Data Scientist"),
        "{refused:?}"
    );
    assert_eq!(lab.home.state_of("@"), "failed");
}

#[test]
fn an_abort_that_is_refused_is_said_and_makes_nothing_stale() {
    let lab = Lab::new();
    lab.aml
        .trouble(ALWAYS, "POST", "/jobs/theirs-", NO, When::Before);
    let theirs = lab
        .tow(["submit", "--name", "theirs", "sleep", "300"])
        .ok()
        .id();
    lab.until_word(&theirs, "Running");
    let told = lab.tow(["abort", &theirs, "--wait"]);
    assert!(
        told.code == 123
            && told.stderr.contains("goes on")
            && told.stderr.contains("cannot be cancelled"),
        "{told:?}"
    );
    let why = lab.tow(["why", &theirs]).ok();
    assert!(
        why.stdout.contains("its cancel was refused")
            && why.stdout.contains("AzureML Data Scientist"),
        "{why:?}"
    );
    let record = lab.home.show(&theirs);
    assert_eq!(
        (
            record["state"].as_str(),
            &record["stale_since"],
            &record["cancel_requested"]
        ),
        (Some("running"), &json!(null), &json!(false)),
        "{record}"
    );
    // It is not asked for again and again, and what is submitted again does not wait for it for
    // ever.
    let asked = || {
        lab.aml
            .asked()
            .iter()
            .filter(|(method, target)| method == "POST" && target.contains(&theirs))
            .count()
    };
    let before = asked();
    let again = lab.tow(["resubmit", &theirs]);
    assert!(
        again.code == 123 && again.stderr.contains("cannot be cancelled"),
        "{again:?}"
    );
    assert_eq!(asked(), before + 1);
}

/// Kubernetes calls it killed, whoever asked for that.
#[test]
fn what_we_end_ourselves_on_kubernetes_is_cancelled() {
    let lab = Lab::new();
    let id = lab.tow(["submit", "-c", "itp", "sleep", "300"]).ok().id();
    lab.until_word(&id, "Running");
    lab.aml.tag(&id, "amlk8s status", "killing");
    lab.tow(["abort", &id, "--wait"]).ok();
    assert_eq!(lab.home.state_of(&id), "cancelled");
    let queued = {
        lab.aml
            .conditions(|conditions| conditions.hold_in = Some("Queued".to_owned()));
        lab.tow(["submit", "-c", "itp", "sleep", "300"]).ok().id()
    };
    lab.until_word(&queued, "Queued");
    lab.aml.tag(&queued, "amlk8s status", "killing");
    lab.tow(["abort", &queued, "--wait"]).ok();
    assert_eq!(lab.home.state_of(&queued), "cancelled");
}

/// No end is told while secrets of it lie in the vault.
#[test]
fn a_vault_that_is_away_is_cleared_when_it_is_back() {
    let lab = Lab::new();
    let mut submit = lab
        .home
        .command(["submit", "--secret", "PAT", "-f", "job.yaml"]);
    lab.home.write(
        "job.yaml",
        "identity: managed:tow\nscript: test -n \"$PAT\" && echo has it\n",
    );
    lab.aml.trouble(
        16,
        "DELETE",
        "/secrets/",
        Trouble::Status {
            status: 503,
            retry_after: None,
        },
        When::Before,
    );
    let id = towline_testkit::Output::from(submit.env("PAT", "canary").output().unwrap())
        .ok()
        .id();
    until("the vault to be asked", || {
        (lab.aml.troubles_left() < 8).then_some(())
    });
    assert_eq!(lab.home.show(&id)["ended"], json!(null));
    let record = lab.ended(&id);
    assert_eq!(
        (record["state"].as_str(), lab.aml.kept_secrets()),
        (Some("succeeded"), Vec::new()),
        "{record}"
    );
}

/// Of a signature people copy whole addresses.
#[test]
fn a_signature_is_registered_as_the_service_takes_it() {
    let lab = Lab::new();
    lab.aml.put_blob("box", "alice/a", "picture\n");
    let account = lab.aml.azurite().first().clone();
    let given = format!(
        "{}/box?{}",
        account.endpoint,
        account.container_sas("box", "rl", 3_600)
    );
    lab.configure(&format!(
        "datastores:\n  research: {{kind: azure_blob, account: {}, container: box, endpoint: '{}', \
            credential: {{sas: 'env:BOX_SAS'}}}}\n",
        account.name, account.endpoint
    ));
    lab.home.write(
        "job.yaml",
        "io: {data: {datastore: research, path: alice, mode: read}}\nscript: cat $TOW_IO_DATA/a\n",
    );
    let ran = towline_testkit::Output::from(
        lab.home
            .command(["run", "-f", "job.yaml"])
            .env("BOX_SAS", given)
            .output()
            .unwrap(),
    );
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "picture\n"), "{ran:?}");
}
