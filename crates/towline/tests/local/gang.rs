//! Several nodes and ranks on one machine.

use super::home;
use std::collections::BTreeMap;
use towline_testkit::{Home, until};

fn environment(home: &Home, id: &str, rank: u32) -> BTreeMap<String, String> {
    let log = home
        .tow(["logs", id, "--rank", &rank.to_string()])
        .ok()
        .stdout;
    log.lines()
        .filter_map(|line| line.split_once('='))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

#[test]
fn three_nodes_of_two_ranks_have_the_right_environment() {
    let home = home();
    home.write(
        "job.yaml",
        "command: [env]\nresources: {nodes: 3}\nlaunch: 2\nenvironment: \
        {env: {MINE: 'a b', N: 7}}\n",
    );
    let id = home.tow(["submit", "-f", "job.yaml"]).ok().id();
    home.tow(["wait", &id]).ok();
    let mut ports = Vec::new();
    for rank in 0..6u32 {
        let variables = environment(&home, &id, rank);
        let expected = [
            ("NODE_RANK", (rank / 2).to_string()),
            ("GROUP_RANK", (rank / 2).to_string()),
            ("RANK", rank.to_string()),
            ("LOCAL_RANK", (rank % 2).to_string()),
            ("WORLD_SIZE", "6".to_owned()),
            ("LOCAL_WORLD_SIZE", "2".to_owned()),
            ("OMPI_COMM_WORLD_RANK", rank.to_string()),
            ("OMPI_COMM_WORLD_SIZE", "6".to_owned()),
            ("OMPI_COMM_WORLD_LOCAL_RANK", (rank % 2).to_string()),
            ("OMPI_COMM_WORLD_LOCAL_SIZE", "2".to_owned()),
            ("MASTER_ADDR", "127.0.0.1".to_owned()),
            (
                "AZ_BATCH_HOST_LIST",
                "127.0.0.1,127.0.0.1,127.0.0.1".to_owned(),
            ),
            ("AZ_BATCHAI_JOB_MASTER_NODE_IP", "127.0.0.1".to_owned()),
            ("TOW_RUN_ID", id.clone()),
            ("TOW_ATTEMPT", "1".to_owned()),
            ("MINE", "a b".to_owned()),
            ("N", "7".to_owned()),
        ];
        for (name, value) in expected {
            assert_eq!(variables.get(name), Some(&value), "rank {rank}, {name}");
        }
        ports.push(variables["MASTER_PORT"].clone());
        assert!(
            !variables.contains_key("TOW_GRACE_MILLIS"),
            "our own variables stay ours"
        );
        assert_eq!(
            variables.get("HOME").map(String::as_str),
            home.path("home").to_str(),
            "the submitter's environment is inherited"
        );
    }
    ports.dedup();
    assert_eq!(ports.len(), 1, "one port for all ranks");
    let port: u16 = ports[0].parse().unwrap();
    assert!(
        std::net::TcpListener::bind(("127.0.0.1", port)).is_ok(),
        "the port is free"
    );
}

#[test]
fn launch_once_starts_one_rank_in_all() {
    let home = home();
    let id = home
        .tow([
            "submit",
            "--nodes",
            "3",
            "--launch",
            "once",
            "sh",
            "-c",
            "echo $WORLD_SIZE",
        ])
        .ok()
        .id();
    home.tow(["wait", &id]).ok();
    assert_eq!(home.tow(["logs", &id]).stdout, "1\n");
    assert_eq!(home.show(&id)["logs"].as_array().unwrap().len(), 1);
}

#[test]
fn when_a_rank_fails_the_others_are_ended_and_the_first_is_on_record() {
    let home = home();
    let script = "if [ $RANK = 2 ]; then while [ ! -e ready-3 ]; do sleep 0.01; done; exit 9; fi; \
        trap 'echo bye; exit 0' TERM; touch ready-$RANK; sleep 1000 & wait";
    let id = home.tow(["submit", "--launch", "4", script]).ok().id();
    let waited = home.tow(["wait", &id]);
    assert_eq!(waited.code, 9, "{waited:?}");
    let why = home.tow(["why", &id, "--json"]).ok().json();
    assert_eq!(
        (why["first_failing_rank"].as_i64(), why["reason"].as_str()),
        (Some(2), Some("exit_code"))
    );
    assert_eq!(
        home.tow(["logs", &id, "--rank", "3"]).stdout,
        "bye\n",
        "the others were asked to leave first"
    );
}

#[test]
fn set_up_runs_once_per_node_and_its_failure_is_its_own_reason() {
    let home = home();
    home.write(
        "job.yaml",
        "command: 'cat prepared-$NODE_RANK'\nresources: {nodes: 2}\nlaunch: \
        2\nenvironment: {setup: ['echo node $NODE_RANK >> prepared-$NODE_RANK', 'echo done']}\n",
    );
    let id = home.tow(["submit", "-f", "job.yaml"]).ok().id();
    home.tow(["wait", &id]).ok();
    assert_eq!(home.read("prepared-0"), "node 0\n");
    assert_eq!(home.tow(["logs", &id, "--rank", "3"]).stdout, "node 1\n");
    assert_eq!(home.tow(["logs", &id, "--setup", "1"]).stdout, "done\n");

    home.write(
        "bad.yaml",
        "command: 'echo must not run > ran'\nenvironment: \
        {setup: ['echo preparing', 'false', 'echo not reached']}\n",
    );
    let id = home.tow(["submit", "-f", "bad.yaml"]).ok().id();
    assert_eq!(home.tow(["wait", &id]).code, 1);
    let run = home.show(&id);
    assert_eq!(
        (run["state"].as_str(), run["reason"].as_str()),
        (Some("failed"), Some("set_up"))
    );
    assert_eq!(home.read("ran"), "");
    assert_eq!(home.tow(["logs", &id, "--setup"]).stdout, "preparing\n");
    // Nobody has seen these lines: they are shown without being asked for.
    let why = home.tow(["why", &id]).ok();
    assert!(why.stdout.contains("\n  | preparing\n"), "{why:?}");
    let shown = home.tow(["run", "-f", "bad.yaml"]);
    assert!(
        shown.code == 1 && shown.stdout.is_empty() && shown.stderr.contains("| preparing\n"),
        "{shown:?}"
    );
}

#[test]
fn a_program_that_is_not_there_is_told_so() {
    let home = home();
    let output = home.tow(["run", "no-such-program", "x"]);
    assert_eq!(output.code, 127);
    assert!(
        output.stderr.contains("command not found: no-such-program"),
        "{}",
        output.stderr
    );
    let run = home.show("@");
    assert_eq!(run["reason"], "not_started");
}

#[test]
fn ranks_see_the_submitters_folder_umask_and_closed_stdin() {
    let home = home();
    std::fs::create_dir(home.project().join("sub dir")).unwrap();
    let mut command = home.command([
        "run",
        "sh",
        "-c",
        "pwd; umask; cat; touch made; stat -c %a made",
    ]);
    command.current_dir(home.project().join("sub dir"));
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], home.project().join("sub dir").to_str().unwrap());
    assert_eq!(lines.len(), 3, "{lines:?}");
    until("the file", || {
        home.project().join("sub dir/made").exists().then_some(())
    });
}
