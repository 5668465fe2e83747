//! Logs by line, whatever their size; searches; what hostile logs do: nothing.

use super::client::Client;
use super::home;
use serde_json::json;

#[test]
fn lines_searches_and_the_first_error() {
    let home = home();
    let script = "for i in $(seq 1 3000); do echo \"step $i\"; done; \
        echo 'Traceback (most recent call last):'; echo 'ValueError: no'; exit 3";
    let id = home.tow(["submit", "sh", "-c", script]).ok().id();
    home.wait_for_state(&id, "failed");
    let mut client = Client::new(&home);
    let log = |more: serde_json::Value| {
        let mut args = json!({ "run": id, "attempt": 1, "source": { "rank": 0 } });
        args.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        args
    };
    let logs = client.call("logs.list", &json!({ "run": id }));
    assert_eq!(logs["logs"][0]["source"], json!({ "rank": 0 }));
    let read = client.call(
        "logs.read",
        &log(json!({ "from": { "line": 2500 }, "lines": 2 })),
    );
    assert_eq!(read["lines"], json!(["step 2501", "step 2502"]));
    assert_eq!(
        (&read["total"], &read["is_open"]),
        (&json!(3002), &json!(false))
    );
    let read = client.call("logs.read", &log(json!({ "from": { "end": 1 } })));
    assert_eq!(read["lines"], json!(["ValueError: no"]));
    let found = client.call(
        "logs.search",
        &log(json!({ "pattern": "STEP 29", "limit": 3 })),
    );
    assert_eq!(found["count"], 111);
    assert_eq!(found["lines"], json!([28, 289, 290]));
    let found = client.call("logs.error", &log(json!({})));
    assert_eq!(found["line"], 3000);
    let failure = client.refused(
        "logs.search",
        &log(json!({ "pattern": "(", "regex": true })),
    );
    assert_eq!(failure["error"], "usage");
    let failure = client.refused("logs.list", &json!({ "run": "x-1-00000000" }));
    assert_eq!(failure["error"], "not_found");
}

#[test]
fn a_job_that_puts_a_link_in_place_of_its_log_shows_nothing_else() {
    let home = home();
    std::fs::write(home.path("secret"), "the secret").unwrap();
    let script = format!(
        "ln -sf {} \"$TOW_RUN_DIR/../attempt-1.rank-1.log\" 2>/dev/null; true",
        home.path("secret").display()
    );
    let id = home.tow(["submit", "sh", "-c", &script]).ok().id();
    home.wait_for_state(&id, "succeeded");
    let run = towline_core::RunId::try_from(id.clone()).unwrap();
    let link = home
        .state()
        .log(&run, 1, towline_core::cluster::LogSource::Rank(7));
    std::os::unix::fs::symlink(home.path("secret"), link).unwrap();
    let mut client = Client::new(&home);
    let args = json!({
        "run": id, "attempt": 1, "source": { "rank": 7 }, "from": { "line": 0 },
    });
    let failure = client.refused("logs.read", &args);
    assert!(!failure["message"].as_str().unwrap().contains("the secret"));
}
