//! What stops an agent.

use super::agent::Agent;
use super::{allowing, home};
use serde_json::{Value, json};
use std::fs;

fn job(time: &str, gpus: u32) -> Value {
    json!({"command": ["sleep", "1000"], "cluster": "local", "time": time, "gpus": gpus})
}

#[test]
fn nothing_is_allowed_until_the_users_own_file_says_so() {
    let mut home = home();
    // A project's file, even a trusted one, and a variable are not the user's own file.
    home.write(
        "towline.yaml",
        "agents: {clusters: [local], gpu_hours: 100}\n",
    );
    home.trust();
    home.set("TOW_AGENTS__GPU_HOURS", "100");
    home.set("TOW_AGENTS__CLUSTERS", "local");
    for told in [
        "",
        "agents: {clusters: [local]}\n",
        "agents: {gpu_hours: 100}\n",
        "agents: {clusters: [], gpu_hours: 100}\n",
    ] {
        home.configure(told);
        let mut agent = Agent::start(&home, "eager");
        let one = json!({"run": "@"});
        for (tool, args) in [
            ("budget", &json!({})),
            ("clusters", &json!({})),
            ("list", &json!({})),
            ("show", &one),
            ("why", &one),
            ("logs", &one),
            ("wait", &one),
            ("abort", &one),
            ("plan", &job("1m", 0)),
            ("submit", &job("1m", 0)),
        ] {
            let refused = agent.refused(tool, args);
            assert!(
                refused.contains("agents may do nothing here"),
                "{told:?} {tool}: {refused}"
            );
            assert!(refused.contains("only the user can allow it"), "{refused}");
        }
    }
    assert_eq!(home.tow(["ps", "--json"]).json()["runs"], json!([]));
}

#[test]
fn the_budget_stops_it_and_it_cannot_raise_it() {
    let home = allowing();
    let mut agent = Agent::start(&home, "greedy");
    let refused = agent.refused("submit", &job("31m", 4));
    assert!(
        refused.contains("2.07 GPU-hours, and 2 GPU-hours"),
        "{refused}"
    );
    agent.ask("submit", &job("15m", 4));
    agent.ask("submit", &job("59m", 1));
    assert!(
        agent
            .refused("submit", &job("2m", 1))
            .contains("0.02 GPU-hours of the 2")
    );
    // No tool takes what would raise it.
    for args in [
        json!({"command": ["true"], "cluster": "local", "time": "1m", "native": ["--gres=gpu:8"]}),
        json!({"command": ["true"], "cluster": "local", "time": "1m", "file": "/tmp/job.yaml"}),
        json!({"command": ["true"], "cluster": "local", "time": "1m", "secret": ["TOKEN"]}),
        json!({"command": ["true"], "cluster": "local", "gpus": 1}),
    ] {
        assert!(
            agent
                .refused("submit", &args)
                .contains("the arguments cannot be read"),
            "{args}"
        );
    }
    // The project's files may give a job retries: each start is reserved.
    home.write(
        "towline.yaml",
        "clusters: {local: {job: {retry: {max: 50}}}}\n",
    );
    let refused = agent.refused("submit", &job("1m", 1));
    assert!(
        refused.contains("it could take 0.84 GPU-hours"),
        "{refused}"
    );
    home.write(
        "towline.yaml",
        "clusters: {local: {job: {retry: {when: [time_limit]}}}}\n",
    );
    let refused = agent.refused("submit", &job("1m", 1));
    assert!(refused.contains("start again without limit"), "{refused}");
    fs::remove_file(home.project().join("towline.yaml")).unwrap();
    // What the user raises counts at once.
    home.configure("clusters: {local: {gpus: 4}}\nagents: {clusters: [local], gpu_hours: 3}\n");
    agent.ask("submit", &job("2m", 1));
}

#[test]
fn two_agents_at_once_do_not_get_the_same_rest() {
    let home = allowing();
    let results: Vec<bool> = std::thread::scope(|scope| {
        let agents: Vec<_> = (0..4)
            .map(|number| {
                let home = &home;
                scope.spawn(move || {
                    let mut agent = Agent::start(home, &format!("agent-{number}"));
                    (0..3)
                        .map(|_| !agent.call("submit", &job("30m", 1)).refused)
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        agents
            .into_iter()
            .flat_map(|agent| agent.join().unwrap())
            .collect()
    });
    assert_eq!(
        results.iter().filter(|was_let_in| **was_let_in).count(),
        4,
        "{results:?}"
    );
    home.tow(["abort", "@"]);
}

#[test]
fn it_sees_and_ends_only_what_it_may() {
    let home = allowing();
    let mine = home
        .tow(["submit", "--name", "mine", "sleep", "1000"])
        .ok()
        .id();
    let mut first = Agent::start(&home, "first");
    let theirs = first.ask("submit", &job("1m", 0)).value["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let mut other = Agent::start(&home, "second");
    for run in [&mine, &theirs] {
        let refused = other.refused("abort", &json!({"run": run}));
        assert!(refused.contains("only its own runs"), "{refused}");
    }
    assert!(
        other
            .refused(
                "plan",
                &json!({"command": ["true"], "cluster": "lab", "time": "1m"})
            )
            .contains("lab")
    );
    // The user takes this machine back: its runs are not seen either.
    home.configure("clusters: {lab: {kind: slurm}}\nagents: {clusters: [lab], gpu_hours: 2}\n");
    for (tool, args) in [
        ("show", json!({"run": mine})),
        ("logs", json!({"run": mine})),
        ("why", json!({"run": mine})),
        ("abort", json!({"run": theirs})),
        ("submit", job("1m", 0)),
    ] {
        let refused = first.refused(tool, &args);
        assert!(
            refused.contains("agents may not use cluster `local`"),
            "{tool}: {refused}"
        );
    }
    let listed = first.ask("list", &json!({}));
    assert_eq!(listed.value["rows"], json!([]));
    assert_eq!(home.state_of(&theirs), "running");
}

#[test]
fn the_variable_alone_limits_every_verb() {
    let mut home = allowing();
    let mine = home.tow(["submit", "sleep", "1000"]).ok().id();
    home.set("TOW_AGENT", "shell-agent");
    for words in [
        vec!["config", "show"],
        vec!["trust", "--yes"],
        vec!["rm", "x"],
        vec!["prune"],
        vec!["resubmit", "@"],
        vec!["edit", "@", "--time", "9h"],
        vec!["tag", "@", "x"],
        vec!["up", "x"],
        vec!["daemon", "stop"],
        vec!["ui"],
        vec!["api", "--stdio"],
        vec!["alloc"],
        vec!["login", "x"],
    ] {
        let refused = home.tow(&words);
        assert_eq!(refused.code, 123, "{words:?}: {refused:?}");
        assert!(
            refused.stderr.contains("may not use this verb"),
            "{refused:?}"
        );
    }
    assert_eq!(home.tow(["abort", &mine]).code, 123);
    assert_eq!(home.tow(["submit", "true"]).code, 123, "no limit");
    assert_eq!(
        home.tow(["submit", "--time", "1m", "--native=--x", "true"])
            .code,
        123
    );
    assert_eq!(
        home.tow(["submit", "--time", "1m", "--hold-on-failure", "1h", "false"])
            .code,
        123
    );
    home.set("TOKEN", "x");
    assert_eq!(
        home.tow(["submit", "--time", "1m", "--secret", "TOKEN", "true"])
            .code,
        123
    );
    assert_eq!(home.tow(["run", "--time", "1m", "true"]).code, 0);
    home.unset("TOW_AGENT");
    home.tow(["abort", &mine]).ok();
}
