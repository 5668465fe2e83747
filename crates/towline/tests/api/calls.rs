//! Calls and their answers.

use super::client::Client;
use super::home;
use serde_json::json;
use towline_testkit::until;

#[test]
fn a_verb_answers_what_its_json_prints() {
    let home = home();
    let id = home.tow(["submit", "--name", "first", "true"]).ok().id();
    home.wait_for_state(&id, "succeeded");
    let mut client = Client::new(&home);
    assert_eq!(
        client.call("ps", &json!({})),
        home.tow(["ps", "--json"]).json()
    );
    assert_eq!(client.call("show", &json!({ "run": id })), home.show(&id));
    let submitted = client.call(
        "submit",
        &json!({ "name": "second", "command": ["sh", "-c", "echo $0 $1", "--json", "-f"] }),
    );
    let second = submitted["id"].as_str().unwrap();
    home.wait_for_state(second, "succeeded");
    assert_eq!(home.tow(["logs", second]).ok().stdout, "--json -f\n");
    assert_eq!(client.close(), 0);
}

#[test]
fn a_job_file_comes_with_the_call() {
    let home = home();
    let mut client = Client::new(&home);
    let input = "name: from-a-form\ntags: [form]\nscript: |\n  echo 'a: b'\n";
    let submitted = client.call("submit", &json!({ "file": "-", "input": input }));
    let id = submitted["id"].as_str().unwrap();
    home.wait_for_state(id, "succeeded");
    assert_eq!(home.tow(["logs", id]).ok().stdout, "a: b\n");
}

#[test]
fn runs_come_a_window_at_a_time_in_any_order() {
    let home = home();
    for name in ["b", "a", "c"] {
        let id = home.tow(["submit", "--name", name, "true"]).ok().id();
        home.wait_for_state(&id, "succeeded");
    }
    let sweep = home
        .tow([
            "submit",
            "--sweep",
            "x=1-4",
            "sh",
            "-c",
            "exit $((${{x}} % 2))",
        ])
        .id();
    home.tow(["wait", &sweep]);
    let mut client = Client::new(&home);
    let page = client.call("runs.page", &json!({ "fold": true, "limit": 2 }));
    assert_eq!(page["total"], 4);
    assert_eq!(page["states"], json!({ "failed": 2, "succeeded": 5 }));
    assert_eq!(page["rows"][0]["sweep"]["id"], json!(sweep));
    assert_eq!(
        page["rows"][0]["sweep"]["states"],
        json!({ "failed": 2, "succeeded": 2 })
    );
    assert_eq!(page["rows"][1]["run"]["name"], "c");
    let page = client.call(
        "runs.page",
        &json!({
            "filter": { "states": ["succeeded"], "text": "true" },
            "sort": { "by": "name", "ascending": true }, "offset": 1,
        }),
    );
    let names: Vec<&str> = page["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["run"]["name"].as_str().unwrap())
        .collect();
    assert_eq!((page["total"].as_u64(), names), (Some(3), vec!["b", "c"]));
    let failure = client.refused("runs.page", &json!({ "filter": { "states": ["broken"] } }));
    assert_eq!(failure["error"], "usage");
    let failure = client.refused("runs.page", &json!({ "fliter": {} }));
    assert!(failure["message"].as_str().unwrap().contains("fliter"));
}

#[test]
fn what_is_no_call_is_refused_and_the_next_line_is_answered() {
    let home = home();
    let mut client = Client::new(&home);
    for line in ["", "{", "[]", r#"{"id": 9}"#, r#"{"id": 9, "call": 1}"#] {
        client.write(line);
    }
    let failure = client.next(9).unwrap();
    assert_eq!(failure["error"]["error"], "usage");
    for (call, args) in [
        ("ssh", json!({ "run": "@" })),
        ("daemon.run", json!({})),
        ("api", json!({})),
        ("../ps", json!({})),
        ("", json!({})),
    ] {
        assert_eq!(client.refused(call, &args)["error"], "not_found", "{call}");
    }
    let failure = client.refused("why", &json!({ "run": "nothing-like-this" }));
    assert_eq!(
        (&failure["error"], &failure["exit_code"]),
        (&json!("not_found"), &json!(122))
    );
    assert_eq!(client.call("runs.page", &json!({}))["total"], 0);
}

#[test]
fn a_call_that_is_cancelled_ends_and_so_does_its_process() {
    let home = home();
    let id = home.tow(["submit", "sleep", "600"]).ok().id();
    let mut client = Client::new(&home);
    let call = client.begin("wait", &json!({ "runs": [id] }));
    let pid = client.pid();
    let children = || {
        let text = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
        let threads = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
        let all = threads
            .flatten()
            .filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
        text.unwrap_or_default() + &all.collect::<String>()
    };
    until("the verb to run", || {
        (!children().trim().is_empty()).then_some(())
    });
    client.cancel(call);
    let reply = client.next(call).unwrap();
    assert_eq!(reply["error"]["error"], "timeout", "{reply}");
    until("the verb to end", || {
        children().trim().is_empty().then_some(())
    });
    home.tow(["abort", &id]).ok();
}

#[test]
fn it_ends_when_its_input_does_whatever_is_under_way() {
    let home = home();
    let mut client = Client::new(&home);
    let stream = client.begin("events", &json!({}));
    assert_eq!(client.next(stream).unwrap()["item"]["item"], "begun");
    client.begin("wait", &json!({}));
    assert_eq!(client.close(), 0);
}

#[test]
fn about_names_the_program_and_the_clusters() {
    let home = home();
    home.configure("clusters: {lab: {kind: slurm, host: login}}\ndefault_cluster: lab\n");
    let mut client = Client::new(&home);
    let about = client.call("about", &json!({}));
    assert_eq!(
        (&about["api"], &about["default_cluster"]),
        (&json!(1), &json!("lab"))
    );
    assert_eq!(
        about["clusters"],
        json!([{ "name": "local", "kind": "local" }, { "name": "lab", "kind": "slurm" }])
    );
}
