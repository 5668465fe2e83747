//! Tokens that end, or are refused.

use crate::stage::Stage;
use std::os::unix::fs::MetadataExt;
use towline_core::cloud::{Audience, Method};
use towline_testkit::aml::{Trouble, When};
use towline_testkit::until;

const TOKEN_REFUSED: Trouble = Trouble::Status {
    status: 401,
    retry_after: None,
};

#[test]
fn a_token_is_requested_once_and_kept() {
    let stage = Stage::start();
    let cloud = stage.default_cloud();
    let questions = vec![stage.question(Method::Get, ""); 20];
    let answers = stage.wait(cloud.call_all(&questions));
    assert!(
        answers
            .iter()
            .all(|answer| answer.as_ref().is_ok_and(|answer| answer.status == 200))
    );
    assert_eq!(
        (
            stage.asked("/msi/token"),
            stage.asked("/metadata/endpoints"),
            cloud.sent()
        ),
        (1, 1, 20)
    );
    stage.works(&stage.default_cloud());
    assert_eq!(
        (
            stage.asked("/msi/token"),
            stage.asked("/metadata/endpoints")
        ),
        (1, 1),
        "the next process has it from a file"
    );
    for entry in std::fs::read_dir(stage.cache()).unwrap() {
        let entry = entry.unwrap();
        assert_eq!(entry.metadata().unwrap().mode() & 0o777, 0o600, "{entry:?}");
    }
    assert_eq!(
        std::fs::metadata(stage.cache()).unwrap().mode() & 0o777,
        0o700
    );
}

#[test]
fn it_is_replaced_before_it_ends() {
    let stage = Stage::start();
    stage
        .aml
        .conditions(|conditions| conditions.token_lifetime = 4);
    let cloud = stage.default_cloud();
    let first = stage.wait(cloud.token(Audience::Management)).unwrap();
    until("another token", || {
        (stage.wait(cloud.token(Audience::Management)).unwrap() != first).then_some(())
    });
    // A token from a file is judged in the same way.
    let second = stage.wait(cloud.token(Audience::Management)).unwrap();
    let other = stage.default_cloud();
    until("a token of its own", || {
        (stage.wait(other.token(Audience::Management)).unwrap() != second).then_some(())
    });
    stage.works(&other);
}

#[test]
fn a_token_that_ended_early_is_replaced_once() {
    let stage = Stage::start();
    let cloud = stage.default_cloud();
    stage.works(&cloud);
    stage
        .aml
        .trouble(1, "GET", "/workspaces/", TOKEN_REFUSED, When::Before);
    let answer = stage.get(&cloud).unwrap();
    // The refused try has changed nothing and does not count.
    assert_eq!(
        (
            answer.status.as_u16(),
            answer.tries,
            stage.asked("/msi/token")
        ),
        (200, 1, 2)
    );
    // Also for a call that may not be repeated, because a refusal did nothing.
    stage.aml.trouble(
        1,
        "POST",
        "/listStorageAccountKeys",
        TOKEN_REFUSED,
        When::Before,
    );
    let answer = stage
        .wait(cloud.call(&stage.question(Method::Post, "/listStorageAccountKeys")))
        .unwrap();
    assert_eq!(
        (
            answer.status.as_u16(),
            answer.tries,
            stage.asked("/msi/token")
        ),
        (200, 1, 3)
    );
    stage
        .aml
        .trouble(9, "GET", "/workspaces/", TOKEN_REFUSED, When::Before);
    let answer = stage.get(&cloud).unwrap();
    assert_eq!(
        (
            answer.status.as_u16(),
            answer.tries,
            stage.aml.troubles_left()
        ),
        (401, 1, 7),
        "a no that stays is an answer"
    );
}

/// Damages the tokens in files.
fn spoil(stage: &Stage) {
    for entry in std::fs::read_dir(stage.cache()).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, text.replace("\"token\":\"", "\"token\":\"x")).unwrap();
    }
}

#[test]
fn of_many_refused_calls_one_asks_for_a_token() {
    let stage = Stage::start();
    stage.works(&stage.default_cloud());
    spoil(&stage);
    let answers = stage.wait(
        stage
            .default_cloud()
            .call_all(&vec![stage.question(Method::Get, ""); 8]),
    );
    let seen: Vec<(u16, u32)> = answers
        .into_iter()
        .map(|answer| answer.unwrap())
        .map(|answer| (answer.status.as_u16(), answer.tries))
        .collect();
    assert!(seen.iter().all(|seen| *seen == (200, 1)), "{seen:?}");
    assert_eq!(stage.asked("/msi/token"), 2);
}

#[test]
fn damaged_files_count_as_missing() {
    let stage = Stage::start();
    stage.works(&stage.default_cloud());
    for entry in std::fs::read_dir(stage.cache()).unwrap() {
        std::fs::write(entry.unwrap().path(), "{\"version\":1,\"tok").unwrap();
    }
    stage.works(&stage.default_cloud());
    assert_eq!(stage.asked("/msi/token"), 2);
    // An invalid token is refused and replaced.
    spoil(&stage);
    stage.works(&stage.default_cloud());
    assert_eq!(stage.asked("/msi/token"), 3);
}
