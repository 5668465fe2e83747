//! Faults that tests ask for.

use crate::ask::Asker;
use serde_json::json;
use std::time::Duration;
use towline_testkit::aml::{Trouble, When};

#[test]
fn answers_fail_before_and_after_taking_effect() {
    let asker = Asker::start();
    let busy = Trouble::Status {
        status: 429,
        retry_after: Some(7),
    };
    asker.aml.trouble(1, "PUT", "/jobs/", busy, When::Before);
    let said = asker.put_job("one", "true", &json!({}));
    assert_eq!(
        (said.status, said.headers["retry-after"].as_str()),
        (429, "7")
    );
    assert_eq!(asker.aml.status("one"), None);
    for (status, name) in [(500, "two"), (409, "three"), (412, "four")] {
        asker.aml.trouble(
            1,
            "PUT",
            "/jobs/",
            Trouble::Status {
                status,
                retry_after: None,
            },
            When::After,
        );
        assert_eq!(asker.put_job(name, "true", &json!({})).status, status);
        assert_eq!(
            asker.put_job(name, "true", &json!({})).status,
            200,
            "it had taken effect"
        );
    }
    assert_eq!(asker.aml.troubles_left(), 0);
}

#[test]
fn connections_are_cut() {
    let asker = Asker::start();
    // A client may retry by itself if a kept connection breaks; all its tries are cut.
    let path = asker.of_workspace("jobs/cut");
    let body = crate::ask::job("true", &json!({}));
    asker
        .aml
        .trouble(9, "PUT", "/jobs/cut", Trouble::Cut, When::Before);
    assert!(asker.try_ask("PUT", &path, Some(&body)).is_none());
    assert_eq!(asker.aml.status("cut"), None);
    let asker = Asker::start();
    let path = asker.of_workspace("jobs/cut");
    asker
        .aml
        .trouble(9, "PUT", "/jobs/cut", Trouble::Cut, When::After);
    assert!(asker.try_ask("PUT", &path, Some(&body)).is_none());
    assert!(asker.aml.status("cut").is_some());
}

#[test]
fn what_was_put_is_not_seen_at_once() {
    let asker = Asker::start();
    asker
        .aml
        .conditions(|conditions| conditions.unseen = Duration::from_secs(3600));
    asker.made_job("late", "true", &json!({}));
    let environment = asker.of_workspace("environments/e/versions/1");
    assert_eq!(
        asker
            .ask(
                "PUT",
                &environment,
                Some(&json!({"properties": {"image": "i"}}))
            )
            .status,
        201
    );
    let job = asker.of_workspace("jobs/late");
    assert_eq!(
        (asker.get(&job).status, asker.get(&environment).status),
        (404, 404)
    );
    assert_eq!(
        asker.get(&asker.of_workspace("jobs")).json["value"],
        json!([])
    );
    assert_eq!(
        asker.get(&asker.of_history("runs/late/details")).status,
        404
    );
    // It exists all the same.
    assert_eq!(asker.put_job("late", "true", &json!({})).status, 200);
    asker
        .aml
        .conditions(|conditions| conditions.unseen = Duration::ZERO);
    assert_eq!(
        (asker.get(&job).status, asker.get(&environment).status),
        (200, 200)
    );
}

#[test]
fn logs_cannot_be_read_or_only_half() {
    let asker = Asker::start();
    asker.made_job("says", "printf 0123456789", &json!({}));
    asker.await_status("says", "Completed");
    let address = || {
        let details = asker.get(&asker.of_history("runs/says/details")).json;
        details["logFiles"]["user_logs/std_log.txt"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let read = |range: &str| {
        let headers = [("Range", range)];
        asker
            .send(
                "GET",
                &address(),
                if range.is_empty() { &[] } else { &headers },
                None,
            )
            .unwrap()
    };
    assert_eq!(
        (
            read("").bytes,
            read("bytes=8-").bytes,
            read("bytes=11-").status
        ),
        (b"0123456789".to_vec(), b"89".to_vec(), 416)
    );
    // Azurite returns nothing at the very end, where the real service answers 416.
    assert_eq!(
        (read("bytes=10-").status, read("bytes=10-").bytes.len()),
        (206, 0)
    );
    asker
        .aml
        .conditions(|conditions| conditions.expired_logs = true);
    assert_eq!(read("").status, 403);
    asker.aml.conditions(|conditions| {
        conditions.expired_logs = false;
        conditions.halved_logs = true;
    });
    assert_eq!(
        (
            read("").bytes,
            read("bytes=4-").bytes,
            read("bytes=10-").status
        ),
        (b"01234".to_vec(), b"456".to_vec(), 416)
    );
}

#[test]
fn states_and_tags_are_shown_as_a_platform_might() {
    let asker = Asker::start();
    asker
        .aml
        .conditions(|conditions| conditions.hold_in = Some("Queued".to_owned()));
    asker.made_job("odd", "true", &json!({}));
    let shown = || asker.get(&asker.of_workspace("jobs/odd")).json["properties"].clone();
    for status in ["NotResponding", "Paused", "Wondering"] {
        asker.aml.show_status("odd", Some(status));
        assert_eq!(shown()["status"], status);
        assert_eq!(
            asker.get(&asker.of_history("runs/odd/details")).json["status"],
            status
        );
    }
    asker.aml.show_status("odd", None);
    asker.await_status("odd", "Queued");
    asker.aml.tag("odd", "amlk8s status", "running");
    assert_eq!(
        (&shown()["status"], &shown()["tags"]["amlk8s status"]),
        (&json!("Queued"), &json!("running"))
    );
    asker.aml.conditions(|conditions| conditions.hold_in = None);
    asker.await_status("odd", "Completed");
}
