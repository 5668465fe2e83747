//! Which calls are sent again, and which are not.

use crate::stage::{Stage, shown};
use std::time::{Duration, Instant};
use towline_core::cloud::{Audience, Call, Method};
use towline_core::redact::Secret;
use towline_core::{ErrorKind, Retry};

use towline_testkit::aml::{Trouble, When};

const LIST_KEYS_PATH: &str = "/listStorageAccountKeys";

const fn status(status: u16, retry_after: Option<u32>) -> Trouble {
    Trouble::Status {
        status,
        retry_after,
    }
}

#[test]
fn throttling_is_waited_out_for_every_method() {
    let stage = Stage::start();
    let cloud = stage.default_cloud();
    stage.works(&cloud);
    for (method, word, below) in [
        (Method::Get, "GET", ""),
        (Method::Post, "POST", LIST_KEYS_PATH),
    ] {
        for trouble in [status(429, Some(1)), status(503, Some(1))] {
            stage.aml.trouble(1, word, below, trouble, When::Before);
            let begun = Instant::now();
            let answer = stage
                .wait(cloud.call(&stage.question(method, below)))
                .unwrap();
            assert_eq!((answer.status.as_u16(), answer.tries), (200, 2));
            assert!(begun.elapsed() >= Duration::from_secs(1));
        }
    }
    // Nobody waits for an hour.
    stage.aml.trouble(
        1,
        "GET",
        "/workspaces/",
        status(429, Some(3600)),
        When::Before,
    );
    let error = stage.get(&cloud).unwrap_err();
    assert_eq!(
        (error.kind(), error.retry_advice()),
        (ErrorKind::Unreachable, Retry::Exhausted)
    );
}

#[test]
fn a_call_that_may_have_taken_effect_is_not_repeated() {
    let stage = Stage::start();
    let cloud = stage.default_cloud();
    stage.works(&cloud);
    for when in [When::Before, When::After] {
        let before = stage.asked(LIST_KEYS_PATH);
        stage
            .aml
            .trouble(1, "POST", LIST_KEYS_PATH, Trouble::Cut, when);
        let error = stage
            .wait(cloud.call(&stage.question(Method::Post, LIST_KEYS_PATH)))
            .unwrap_err();
        assert_eq!(
            (error.kind(), stage.asked(LIST_KEYS_PATH) - before),
            (ErrorKind::Unreachable, 1)
        );
        assert!(!shown(&error).contains("api-version"));
    }
    for number in [500, 502, 503, 504] {
        stage
            .aml
            .trouble(1, "POST", LIST_KEYS_PATH, status(number, None), When::After);
        let answer = stage
            .wait(cloud.call(&stage.question(Method::Post, LIST_KEYS_PATH)))
            .unwrap();
        assert_eq!((answer.status.as_u16(), answer.tries), (number, 1));
    }
}

#[test]
fn a_repeatable_call_is_repeated() {
    let stage = Stage::start();
    let cloud = stage.default_cloud();
    stage.works(&cloud);
    for trouble in [
        Trouble::Cut,
        status(500, None),
        status(502, None),
        status(503, None),
        status(504, None),
    ] {
        stage
            .aml
            .trouble(2, "GET", "/workspaces/", trouble, When::After);
        let answer = stage.get(&cloud).unwrap();
        assert_eq!((answer.status.as_u16(), answer.tries), (200, 3));
        // A POST is repeated too if the caller allows it.
        stage
            .aml
            .trouble(1, "POST", LIST_KEYS_PATH, trouble, When::After);
        let question = Call {
            repeatable: true,
            ..stage.question(Method::Post, LIST_KEYS_PATH)
        };
        assert_eq!(stage.wait(cloud.call(&question)).unwrap().tries, 2);
    }
}

#[test]
fn other_statuses_are_answers() {
    let stage = Stage::start();
    let cloud = stage.default_cloud();
    for number in [307, 400, 403, 404, 409, 412, 501] {
        stage.aml.trouble(
            1,
            "GET",
            "/workspaces/",
            status(number, Some(1)),
            When::Before,
        );
        let answer = stage.get(&cloud).unwrap();
        assert_eq!((answer.status.as_u16(), answer.tries), (number, 1));
    }
    let body = serde_json::json!({"properties": {"jobType": "Command", "command": "true", "environmentId": "azureml:e:1"}});
    let question = Call {
        body: Some(body),
        headers: vec![("x-azureml-token".to_owned(), Secret::new("canary"))],
        ..stage.question(Method::Put, "/jobs/one")
    };
    assert_eq!(stage.wait(cloud.call(&question)).unwrap().status, 201);
    assert_eq!(
        stage
            .wait(cloud.call(&stage.question(Method::Get, "/jobs/one")))
            .unwrap()
            .status,
        200
    );
}

#[test]
fn many_are_answered_in_their_order() {
    let stage = Stage::start();
    let cloud = stage.default_cloud();
    let questions: Vec<Call> = (0..30)
        .map(|number| stage.question(Method::Get, if number % 3 == 0 { "" } else { "/jobs/none" }))
        .collect();
    let answers: Vec<u16> = stage
        .wait(cloud.call_all(&questions))
        .into_iter()
        .map(|answer| answer.unwrap().status.as_u16())
        .collect();
    let wanted: Vec<u16> = (0..30)
        .map(|number| if number % 3 == 0 { 200 } else { 404 })
        .collect();
    assert_eq!((answers, cloud.sent()), (wanted, 30));
}

#[test]
fn errors_hold_neither_query_nor_token() {
    let stage = Stage::start();
    let cloud = stage.default_cloud();
    let nowhere = |url: &str, audience| Call {
        url: url.to_owned(),
        audience,
        ..stage.question(Method::Get, "")
    };
    // A port of loopback where nobody listens.
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let token = stage.wait(cloud.token(Audience::Management)).unwrap();
    // A service that has never answered is not tried for long.
    for audience in [Audience::Management, Audience::Nobody] {
        let question = nowhere(&format!("https://127.0.0.1:{port}/a?sig=canary"), audience);
        let cloud = stage.default_cloud();
        let error = stage.wait(cloud.call(&question)).unwrap_err();
        let seen = format!("{} {question:?} {cloud:?}", shown(&error));
        assert_eq!(error.kind(), ErrorKind::Unreachable);
        assert!(
            !seen.contains("canary") && !seen.contains(token.expose()),
            "{seen}"
        );
    }
    let plain = nowhere(
        &format!("http://127.0.0.1:{port}/a?sig=canary"),
        Audience::Management,
    );
    let error = stage.wait(cloud.call(&plain)).unwrap_err();
    assert!(error.kind() == ErrorKind::Refused && !shown(&error).contains("canary"));
}

#[test]
fn a_stranger_is_not_trusted_and_there_is_a_next_step() {
    let stage = Stage::start();
    let cloud = stage
        .default_cloud()
        .with_web(towline_io::web::Web::new().unwrap());
    let error = stage.get(&cloud).unwrap_err();
    assert!(
        error.kind() == ErrorKind::Unreachable && shown(&error).contains("SSL_CERT_FILE"),
        "{}",
        shown(&error)
    );
    assert!(stage.aml.recorded().is_empty());
}
