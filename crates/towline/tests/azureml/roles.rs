//! `tow roles`: eligible roles are listed, activated once, and deactivated.

use crate::lab::Lab;
use serde_json::Value;
use std::time::Duration;
use towline_host::clock;
use towline_testkit::aml::{ActiveRole, Trouble, When};

const REQUESTS: &str = "roleAssignmentScheduleRequests/";

/// A user who may be Contributor of the subscription, Owner of a group, and Reader of both.
fn lab() -> Lab {
    let lab = Lab::new();
    let scope = format!("/subscriptions/{}", lab.aml.scope().subscription);
    let group = format!("{scope}/resourceGroups/vision");
    lab.aml.directory(|directory| {
        directory.add("Contributor", &scope, "Lab");
        directory.add("Owner", &group, "vision");
        directory.add("Reader", &scope, "Lab");
        directory.add("Reader", &group, "vision");
    });
    lab
}

/// The requests that the service has accepted.
fn requests(lab: &Lab) -> Vec<Value> {
    lab.aml.directory(|directory| directory.requests())
}

fn role(lab: &Lab, name: &str) -> Value {
    let answer = lab.tow(["roles", "--json"]).ok().json();
    let all = answer["roles"].as_array().unwrap();
    all.iter()
        .find(|role| role["name"] == name)
        .unwrap()
        .clone()
}

fn make_active(lab: &Lab, at: usize, assignment: &str) {
    lab.aml.directory(|directory| {
        let start = clock::now();
        directory.active.push(ActiveRole {
            role: directory.eligible[at].clone(),
            start,
            end: (assignment == "Activated").then(|| start.plus_millis(3_600_000)),
            assignment: assignment.to_owned(),
        });
    });
}

#[test]
fn roles_are_listed_from_all_pages_with_their_state() {
    let lab = lab();
    lab.aml.directory(|directory| directory.page = 1);
    make_active(&lab, 0, "Activated");
    make_active(&lab, 1, "Assigned");
    let shown = lab.tow(["roles"]).ok().stdout;
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(lines.len(), 5, "{shown}");
    assert!(lines[0].starts_with("ROLE"), "{shown}");
    assert!(
        lines[1].contains("Contributor") && lines[1].contains(" active "),
        "{shown}"
    );
    assert!(
        lines[2].contains("Owner") && lines[2].contains(" assigned "),
        "{shown}"
    );
    assert!(
        lines[3].contains("Reader") && lines[3].contains(" inactive "),
        "{shown}"
    );
    let contributor = role(&lab, "Contributor");
    assert_eq!(contributor["active"], true);
    assert_eq!(contributor["assignment"], "activated");
    assert_eq!(contributor["scope_name"], "Lab");
    assert!(contributor["until"].as_str().unwrap().ends_with('Z'));
    assert!(
        contributor["role_id"]
            .as_str()
            .unwrap()
            .contains("/roleDefinitions/")
    );
    assert_eq!(role(&lab, "Owner")["until"], Value::Null);
    assert_eq!(role(&lab, "Reader")["active"], false);
    lab.aml.directory(|directory| directory.eligible.clear());
    let none = lab.tow(["roles"]).ok();
    assert!(
        none.stdout.is_empty() && none.stderr.contains("there is no role"),
        "{none:?}"
    );
}

#[test]
fn a_role_is_activated_once_and_for_as_long_as_its_policy_allows() {
    let lab = lab();
    lab.aml.directory(|directory| directory.polls = 3);
    let done = lab
        .tow(["roles", "activate", "contributor", "--reason", "a test"])
        .ok();
    assert!(
        done.stdout
            .starts_with("aml: Contributor at Lab is active until "),
        "{done:?}"
    );
    assert!(
        done.stderr
            .contains("waiting until role `Contributor` at `Lab` is active: Pending"),
        "{done:?}"
    );
    let sent = requests(&lab);
    assert_eq!(sent.len(), 1);
    assert_eq!(sent[0]["requestType"], "SelfActivate");
    assert_eq!(sent[0]["justification"], "a test");
    assert_eq!(sent[0]["scheduleInfo"]["expiration"]["duration"], "PT8H");
    assert_eq!(role(&lab, "Contributor")["active"], true);

    let again = lab
        .tow(["roles", "activate", "Contributor", "--json"])
        .ok()
        .json();
    assert_eq!(
        (&again["changed"], &again["role"]["active"]),
        (&false.into(), &true.into())
    );
    assert!(again["role"]["until"].is_string(), "{again}");
    let told = lab.tow(["roles", "activate", "Contributor"]).ok().stdout;
    assert!(
        told.contains("is already active until") && told.contains("nothing was changed"),
        "{told}"
    );
    assert_eq!(requests(&lab).len(), 1);
}

#[test]
fn a_time_beyond_the_policy_is_refused_with_the_maximum() {
    let lab = lab();
    lab.aml
        .directory(|directory| directory.maximum = "PT4H".to_owned());
    let long = lab.tow(["roles", "activate", "Owner", "--for", "12h"]);
    assert!(
        long.code == 123
            && long.stderr.contains("at most 4h, not 12h")
            && long.stderr.contains("--for 4h"),
        "{long:?}"
    );
    // A user who may not read the policy is told by the service.
    lab.aml
        .directory(|directory| directory.secret_policies = true);
    let refused = lab.tow(["roles", "activate", "Owner"]);
    assert!(
        refused.code == 123
            && refused.stderr.contains("ExpirationRule")
            && refused
                .stderr
                .contains("RoleAssignmentRequestPolicyValidationFailed")
            && refused.stderr.contains("--for"),
        "{refused:?}"
    );
    assert!(requests(&lab).is_empty());
    lab.tow(["roles", "activate", "Owner", "--for", "90m"]).ok();
    assert_eq!(
        requests(&lab)[0]["scheduleInfo"]["expiration"]["duration"],
        "PT1H30M"
    );
}

#[test]
fn a_policy_that_wants_a_reason_is_told_before_anything_is_sent() {
    let lab = lab();
    lab.aml.directory(|directory| directory.needs_reason = true);
    let refused = lab.tow(["roles", "activate", "Owner"]);
    assert!(
        refused.code == 123 && refused.stderr.contains("--reason TEXT"),
        "{refused:?}"
    );
    assert!(!lab.aml.asked().iter().any(|(method, _)| method == "PUT"));
    lab.tow(["roles", "activate", "Owner", "--reason", "why not"])
        .ok();
}

#[test]
fn a_denied_request_is_refused_in_the_words_of_the_service() {
    let lab = lab();
    for status in ["Denied", "Failed", "Canceled"] {
        lab.aml.directory(|directory| {
            directory.polls = 1;
            directory.last_status = status.to_owned();
        });
        let refused = lab.tow(["roles", "activate", "Owner"]);
        assert!(
            refused.code == 123
                && refused
                    .stderr
                    .contains(&format!("the service says `{status}`")),
            "{refused:?}"
        );
    }
    assert_eq!(role(&lab, "Owner")["active"], false);
}

#[test]
fn a_request_that_waits_for_approval_names_who_must_approve() {
    let lab = lab();
    lab.aml
        .directory(|directory| directory.approvers = vec!["Bob".to_owned(), "Eve".to_owned()]);
    for _ in 0..2 {
        let waits = lab.tow(["roles", "activate", "Owner"]).ok();
        assert!(
            waits.stdout.contains("Owner at vision waits for approval"),
            "{waits:?}"
        );
        assert!(
            waits.stderr.contains("Bob, Eve must approve it"),
            "{waits:?}"
        );
    }
    let json = lab
        .tow(["roles", "activate", "Owner", "--json"])
        .ok()
        .json();
    assert_eq!(json["status"], "PendingApproval");
    assert_eq!(json["role"]["active"], false);
    assert_eq!(json["approvers"], serde_json::json!(["Bob", "Eve"]));
    assert_eq!(requests(&lab).len(), 1, "one request is enough");
}

#[test]
fn a_lost_answer_makes_no_second_request() {
    let lab = lab();
    lab.aml
        .trouble(1, "PUT", REQUESTS, Trouble::Cut, When::After);
    let done = lab.tow(["roles", "activate", "Owner"]).ok();
    assert!(done.stdout.contains("is active until"), "{done:?}");
    assert_eq!(lab.aml.troubles_left(), 0);
    assert_eq!(requests(&lab).len(), 1);
    lab.tow(["roles", "activate", "Owner"]).ok();
    assert_eq!(requests(&lab).len(), 1);
}

#[test]
fn a_wait_that_is_given_up_is_continued_with_the_same_request() {
    let lab = lab();
    lab.aml.directory(|directory| directory.polls = 6);
    let late = lab.tow(["roles", "activate", "Owner", "--timeout", "1s"]);
    assert!(
        late.code == 124
            && late
                .stderr
                .contains("is not active after 1s: the service says `PendingProvisioning`")
            && late.stderr.contains("requests nothing new"),
        "{late:?}"
    );
    let done = lab.tow(["roles", "activate", "Owner"]).ok();
    assert!(done.stdout.contains("is active until"), "{done:?}");
    let puts = lab
        .aml
        .asked()
        .into_iter()
        .filter(|(method, _)| method == "PUT")
        .count();
    assert_eq!((puts, requests(&lab).len()), (1, 1));
}

#[test]
fn a_role_is_deactivated_but_not_in_its_first_minutes() {
    let lab = lab();
    let idle = lab.tow(["roles", "deactivate", "Owner"]).ok();
    assert!(
        idle.stdout.contains("is not active; nothing was changed"),
        "{idle:?}"
    );
    make_active(&lab, 1, "Activated");
    let early = lab.tow(["roles", "deactivate", "owner"]);
    assert!(
        early.code == 123
            && early.stderr.contains("ActiveDurationTooShort")
            && early.stderr.contains("try again in 4m"),
        "{early:?}"
    );
    assert!(requests(&lab).is_empty());
    lab.aml
        .directory(|directory| directory.least_active = Duration::ZERO);
    let done = lab.tow(["roles", "deactivate", "Owner"]).ok();
    assert_eq!(done.stdout, "aml: Owner at vision is no longer active\n");
    assert_eq!(requests(&lab)[0]["requestType"], "SelfDeactivate");
    assert_eq!(role(&lab, "Owner")["active"], false);
    make_active(&lab, 1, "Assigned");
    let assigned = lab.tow(["roles", "deactivate", "Owner"]);
    assert!(
        assigned.code == 123 && assigned.stderr.contains("assigned to you"),
        "{assigned:?}"
    );
}

#[test]
fn a_role_at_two_scopes_must_be_chosen() {
    let lab = lab();
    let both = lab.tow(["roles", "activate", "Reader"]);
    let scope = format!("/subscriptions/{}", lab.aml.scope().subscription);
    assert!(
        both.code == 122
            && both.stderr.contains(&format!("--scope {scope} (Lab)"))
            && both
                .stderr
                .contains(&format!("--scope {scope}/resourceGroups/vision (vision)")),
        "{both:?}"
    );
    let nowhere = lab.tow(["roles", "activate", "Reader", "--scope", "speech"]);
    assert!(
        nowhere.code == 122 && nowhere.stderr.contains("(vision)"),
        "{nowhere:?}"
    );
    assert!(requests(&lab).is_empty());
    let done = lab
        .tow(["roles", "activate", "Reader", "--scope", "VISION"])
        .ok();
    assert!(
        done.stdout.contains("Reader at vision is active"),
        "{done:?}"
    );
    let id = role(&lab, "Reader")["role_id"].as_str().unwrap().to_owned();
    let id = id.rsplit('/').next().unwrap();
    let done = lab.tow(["roles", "activate", id, "--scope", &scope]).ok();
    assert!(done.stdout.contains("Reader at Lab is active"), "{done:?}");
    assert_eq!(requests(&lab).len(), 2);
}

#[test]
fn an_unknown_role_gets_a_suggestion_and_a_part_is_no_name() {
    let lab = lab();
    for (name, near) in [
        ("Contributer", "did you mean `Contributor`?"),
        ("Own", "`tow roles` lists"),
    ] {
        let unknown = lab.tow(["roles", "activate", name]);
        assert!(
            unknown.code == 122 && unknown.stderr.contains(near),
            "{unknown:?}"
        );
    }
    assert!(requests(&lab).is_empty());
}

#[test]
fn a_cluster_without_azure_has_no_roles() {
    let lab = lab();
    lab.configure("  far: {kind: slurm, host: login.example}\n");
    let wrong = lab.tow(["roles", "-c", "far"]);
    assert!(
        wrong.code == 123 && wrong.stderr.contains("cluster `far` is of kind `slurm`"),
        "{wrong:?}"
    );
    assert_eq!(
        lab.tow(["roles", "activate", "Owner", "-c", "local"]).code,
        123
    );
    let several = lab
        .aml
        .configuration()
        .replace("default_cluster: aml\n", "");
    lab.home.configure(&several);
    let several = lab.tow(["roles"]);
    assert!(
        several.code == 122 && several.stderr.contains("aml, itp"),
        "{several:?}"
    );
    assert_eq!(lab.tow(["roles", "-c", "itp"]).code, 0);
}
