//! Runs that somebody else submitted, or another tool: seen, taken over, read, ended.

use crate::lab::{Lab, lines};
use serde_json::json;
use towline_testkit::aml::{Trouble, When};
use towline_testkit::{Home, until_within};

/// What a workspace is said to have.
#[track_caller]
fn remote(home: &Home) -> Vec<(String, String, bool)> {
    let jobs = home.tow(["ps", "--remote", "--all", "--json"]).ok().json();
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    jobs["jobs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|job| {
            (
                text(&job["job"]),
                text(&job["word"]),
                job["ended"].as_bool().unwrap(),
            )
        })
        .collect()
}

#[track_caller]
fn until_state(home: &Home, run: &str, state: &str) {
    until_within(60, &format!("{run} to be {state}"), || {
        (home.state_of(run) == state).then_some(())
    });
}

#[test]
fn a_run_of_another_machine_is_mine_there_too() {
    let lab = Lab::new();
    lab.home
        .write("train.sh", "echo from the first machine; exec sleep 600\n");
    let id = lab.tow(["submit", "sh", "train.sh"]).ok().id();
    lab.until_logged(&id, "from the first machine");
    let other = lab.beside("alice");
    assert!(remote(&other).contains(&(id.clone(), "Running".to_owned(), false)));
    assert_eq!(other.tow(["adopt", &id]).ok().id(), id);
    until_state(&other, &id, "running");
    until_within(60, "its log", || {
        (other.tow(["logs", &id]).stdout == "from the first machine\n").then_some(())
    });
    other.tow(["abort", &id]).ok();
    assert_eq!(lab.ended(&id)["state"], "cancelled");
    until_state(&other, &id, "cancelled");
}

#[test]
fn a_colleagues_run_can_be_followed() {
    let lab = Lab::new();
    let bob = lab.beside("bob");
    bob.write(
        "train.sh",
        "echo of bob; mkdir outputs; echo good > outputs/x; exit 4\n",
    );
    let id = bob
        .tow(["-c", "sing", "submit", "sh", "train.sh"])
        .ok()
        .id();
    bob.tow(["wait", &id]);
    assert!(
        remote(&lab.home)
            .iter()
            .any(|(job, _, ended)| *job == id && *ended)
    );
    lab.tow(["adopt", &id, "-c", "sing"]).ok();
    let record = lab.ended(&id);
    assert_eq!(
        (record["state"].as_str(), record["exit_code"].as_i64()),
        (Some("failed"), Some(4)),
        "{record}"
    );
    assert_eq!(lab.log(&id, 1, 0), "of bob\n");
    lab.until_gone(&id);
    lab.tow(["get", &id, "outputs/x", "--to", "here"]).ok();
    assert_eq!(lab.home.read("here/outputs/x"), "good\n");
}

/// A job as ACT puts it: ranks by MPI, logs only where the service keeps them.
const NAME: &str = "jianfw_1563257309_60ce2fc7";
const RUN: &str = "jianfw-1563257309-60ce2fc7";

fn act_job(lab: &Lab, command: &str) {
    let more = json!({
        "computeId": format!("{}/computes/cpu", lab.aml.scope().id()), "experimentName": "jianfw", "resources": {"instanceCount": 2},
        "distribution": {"distributionType": "Mpi", "processCountPerInstance": 2},
    });
    lab.aml.put_job(NAME, command, &more);
}

#[test]
fn a_job_of_another_tool_is_queried_by_the_end_of_its_id_and_aborted() {
    let lab = Lab::new();
    act_job(
        &lab,
        "echo rank $OMPI_COMM_WORLD_RANK of $OMPI_COMM_WORLD_SIZE; seq 1 150; exec sleep 600",
    );
    towline_testkit::until("it to run", || {
        (lab.aml.status(NAME).as_deref() == Some("Running")).then_some(())
    });
    assert!(lab.tow(["ps", "--remote"]).ok().stdout.contains(NAME));
    for (words, is_shown) in [
        (["--state", "running"], true),
        (["--state", "queued,Failed"], false),
        (["--state", "ended"], false),
        (["--user", "nobody"], false),
        (["--limit", "0"], false),
    ] {
        let shown = lab
            .tow(["ps", "--remote", words[0], words[1], "--json"])
            .ok()
            .json();
        assert_eq!(
            shown["jobs"]
                .as_array()
                .is_some_and(|jobs| jobs.iter().any(|job| job["job"] == NAME)),
            is_shown,
            "{words:?}: {shown}"
        );
    }
    let wrong = lab.tow(["ps", "--remote", "--state", "runing"]);
    assert!(
        wrong.code == 120 && wrong.stderr.contains("did you mean `running`"),
        "{wrong:?}"
    );
    assert_eq!(lab.tow(["adopt", NAME]).ok().id(), RUN);
    let made = lab.aml.ask("GET", &format!("jobs/{NAME}"), None).1["systemData"]["createdAt"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(
        lab.home.show(RUN)["created"],
        made.as_str(),
        "it is as old as the service says, whatever its name"
    );
    assert_eq!(lab.home.show("@")["id"], RUN, "and the latest here");
    lab.until_state(RUN, "running");
    for rank in 0..4 {
        let whole = format!("rank {rank} of 4\n{}", lines(150, ""));
        until_within(60, &format!("the log of rank {rank}"), || {
            (lab.log(RUN, 1, rank) == whole).then_some(())
        });
    }
    let asked = lab.tow(["q", "e2fc7"]).ok();
    assert!(
        asked.stdout.starts_with("51\n52\n")
            && asked.stdout.contains("\n150\n")
            && asked.stdout.contains("appID-s      e2fc7"),
        "{asked:?}"
    );
    let named = lab.tow(["q", NAME]).ok();
    assert!(named.stdout.contains(RUN), "{named:?}");
    lab.tow(["abort", NAME]).ok();
    assert_eq!(lab.ended(RUN)["state"], "cancelled");
    assert_eq!(lab.aml.status(NAME).as_deref(), Some("Canceled"));
    let why = lab.tow(["why", RUN]).ok();
    assert!(
        !why.stdout.contains("tow resubmit") && why.stdout.contains("tow submit"),
        "what would be refused is not advised: {why:?}"
    );
    // It stays its owner's when it is forgotten here.
    let again = lab.tow(["resubmit", RUN]);
    assert!(
        again.code != 0 && again.stderr.contains("another tool"),
        "{again:?}"
    );
}

#[test]
fn what_the_service_says_of_a_foreign_end_is_believed() {
    let lab = Lab::new();
    lab.aml.put_job(
        "gifted_bear_1",
        "echo hello; exit 7",
        &json!({"computeId": format!("{}/computes/k8s", lab.aml.scope().id())}),
    );
    towline_testkit::until("it to fail", || {
        (lab.aml.status("gifted_bear_1").as_deref() == Some("Failed")).then_some(())
    });
    let unknown = lab.tow(["q", "gifted_bear_1"]);
    assert!(
        unknown.code == 122
            && unknown.stderr.contains("tow ps --remote")
            && unknown.stderr.contains("tow adopt"),
        "{unknown:?}"
    );
    let id = lab.tow(["adopt", "gifted_bear_1"]).ok().id();
    assert_eq!(
        lab.home.state_of(&id),
        "failed",
        "adopting it has looked at it"
    );
    let record = lab.ended(&id);
    assert_eq!(
        (record["state"].as_str(), record["exit_code"].as_i64()),
        (Some("failed"), Some(7)),
        "{record}"
    );
    assert_eq!(lab.log(&id, 1, 0), "hello\n");
    // What Kubernetes killed is called cancelled by the service.
    lab.aml.put_job("keen_ox_2", "exec sleep 600", &json!({}));
    towline_testkit::until("it to run", || {
        (lab.aml.status("keen_ox_2").as_deref() == Some("Running")).then_some(())
    });
    let id = lab.tow(["adopt", "keen_ox_2"]).ok().id();
    lab.until_state(&id, "running");
    assert_eq!(
        lab.home.state_of("keen_ox_2"),
        "running",
        "by the service's own name"
    );
    lab.aml.tag("keen_ox_2", "amlk8s status", "killing");
    lab.aml.show_status("keen_ox_2", Some("Canceled"));
    assert_eq!(lab.ended(&id)["state"], "failed");
    let nothing = lab.tow(["adopt", "no_such_job"]);
    assert!(
        nothing.code != 0 && nothing.stderr.contains("no_such_job"),
        "{nothing:?}"
    );
}

#[test]
fn expired_and_halved_answers_lose_no_byte_of_a_log() {
    let lab = Lab::new();
    let go = lab.home.path("go");
    act_job(
        &lab,
        &format!(
            "seq 1 20000; until [ -e '{}' ]; do sleep 0.05; done; seq 20001 40000",
            go.display()
        ),
    );
    lab.aml
        .conditions(|conditions| conditions.expired_logs = true);
    lab.tow(["adopt", NAME]).ok();
    lab.until_state(RUN, "running");
    // Nobody can read it now; that is no end of it, and no bytes are made up.
    let closed = lab.tow(["logs", RUN]);
    assert!(!closed.stdout.contains("<?xml"), "{closed:?}");
    assert!(
        closed.stderr.contains("the storage refuses the URL") && !closed.stderr.contains("role"),
        "{closed:?}"
    );
    lab.aml
        .conditions(|conditions| (conditions.expired_logs, conditions.halved_logs) = (false, true));
    std::fs::write(&go, "").unwrap();
    let record = lab.ended(RUN);
    assert_eq!(record["state"], "succeeded", "{record}");
    let whole = lines(40_000, "");
    for rank in 0..4 {
        until_within(60, &format!("all of rank {rank}"), || {
            (lab.log(RUN, 1, rank) == whole).then_some(())
        });
    }
}

#[test]
fn what_was_adopted_stays_when_it_is_pruned_here_and_goes_with_its_own() {
    let lab = Lab::new();
    let sweep = lab
        .home
        .submit_file("name: pair\nsweep: {i: [1, 2]}\nscript: echo ${{i}}\n", &[]);
    lab.tow(["wait", &sweep]).ok();
    let other = lab.beside("alice");
    assert_eq!(other.tow(["adopt", &sweep]).ok().id(), sweep);
    other.tow(["wait", &sweep]).ok();
    let prune = |home: &Home| {
        let is_all =
            |planned: &towline_testkit::Output| planned.stdout.starts_with("would remove 2 run(s)");
        until_within(60, "both to be old enough", || {
            Some(home.tow(["prune", "--older-than", "1s"])).filter(is_all)
        });
        home.tow(["prune", "--older-than", "1s", "--yes"]).ok()
    };
    let pruned = prune(&other);
    assert!(
        pruned.stdout.starts_with("removed 2 run(s)") && !pruned.stdout.contains("jobs, logs"),
        "{pruned:?}"
    );
    // It is the first machine's all the same.
    assert_eq!(remote(&lab.home).len(), 2);
    assert_eq!(lab.log(&format!("{sweep}-2"), 1, 0), "2\n");
    let pruned = prune(&lab.home);
    assert!(
        pruned.stdout.contains("with what `aml` keeps of them"),
        "{pruned:?}"
    );
    until_within(60, "the jobs to be gone", || {
        remote(&lab.home).is_empty().then_some(())
    });
    let gone = until_within(60, "nothing to be left of them", || {
        Some(other.tow(["adopt", &sweep])).filter(|gone| gone.code == 122)
    });
    assert!(gone.stderr.contains("knows no run"), "{gone:?}");
}

/// Verbs that change something take the service's whole name too, and no part of it.
#[test]
fn an_adopted_job_is_ended_by_the_name_that_the_service_has_for_it() {
    let lab = Lab::new();
    const THEIRS: &str = "salmon_nutmeg_6hdphszp6d_with_a_name_that_is_longer_than_ours";
    lab.aml.put_job(THEIRS, "exec sleep 600", &json!({}));
    towline_testkit::until("it to run", || {
        (lab.aml.status(THEIRS).as_deref() == Some("Running")).then_some(())
    });
    let id = lab.tow(["adopt", THEIRS]).ok().id();
    assert_eq!(lab.home.state_of(&id), "running");
    for part in ["salmon_nutmeg", "salmon_nutmeg_6hdphszp6d"] {
        assert_eq!(lab.tow(["abort", part]).code, 122, "{part}");
    }
    let refused = lab.tow(["resubmit", THEIRS]);
    assert!(
        refused.code == 123 && refused.stderr.contains("another tool"),
        "{refused:?}"
    );
    lab.tow(["abort", "--wait", THEIRS]).ok();
    assert_eq!(lab.home.state_of(&id), "cancelled");
}

/// Run history keeps what another tool's job left, and what the platform wrote.
#[test]
fn results_and_sizes_of_an_adopted_job_are_those_of_the_service() {
    let lab = Lab::new();
    lab.aml.put_compute("gpus", "Standard_NC24rs_v3", 2);
    let (scope, configuration) = (
        lab.aml.scope(),
        lab.aml
            .configuration()
            .replace("compute: cpu", "compute: gpus"),
    );
    lab.home.configure(&configuration);
    let more = json!({
        "computeId": format!("{}/computes/gpus", scope.id()), "resources": {"instanceCount": 2},
        "distribution": {"distributionType": "Mpi", "processCountPerInstance": 4},
    });
    let command = "mkdir -p 'outputs/a b'; [ $OMPI_COMM_WORLD_RANK != 0 ] || \
        { seq 1 3000000 > outputs/model.txt; echo good > 'outputs/a b/ü'; : > outputs/empty; }";
    lab.aml.put_job(NAME, command, &more);
    towline_testkit::until("it to end", || {
        (lab.aml.status(NAME).as_deref() == Some("Completed")).then_some(())
    });
    lab.tow(["adopt", NAME]).ok();
    assert_eq!(lab.home.state_of(RUN), "succeeded");
    let asked = lab.tow(["q", RUN]).ok();
    assert!(
        asked
            .stdout
            .lines()
            .any(|line| line.split_whitespace().eq(["num_gpu", "8"])),
        "{asked:?}"
    );
    lab.tow(["get", RUN, "outputs/model.txt", "--to", "one"])
        .ok();
    assert_eq!(lab.home.read("one/outputs/model.txt"), lines(3_000_000, ""));
    lab.tow(["get", RUN, "outputs", "--to", "all"]).ok();
    assert_eq!(
        (
            lab.home.read("all/outputs/a b/ü").as_str(),
            lab.home.read("all/outputs/model.txt").len()
        ),
        ("good\n", 22_888_896)
    );
    assert!(lab.home.project().join("all/outputs/empty").exists());
    lab.tow(["get", RUN, "system_logs", "--to", "all"]).ok();
    assert!(
        lab.home
            .read("all/system_logs/lifecycler/lifecycler.log")
            .contains("Completed")
    );
    let missing = lab.tow(["get", RUN, "outputs/none"]);
    assert!(
        missing.code == 122 && missing.stderr.contains("outputs/none"),
        "{missing:?}"
    );
}

/// A job that dies before its program begins has no log of ranks: what the platform wrote is shown.
#[test]
fn what_the_platform_wrote_is_shown_where_no_rank_spoke() {
    let lab = Lab::new();
    const WORDS: &str = "Failed to pull image: manifest unknown";
    lab.aml
        .conditions(|conditions| conditions.broken_start = Some(WORDS.to_owned()));
    let mine = lab.tow(["submit", "true"]).ok().id();
    lab.aml.put_job("early_end_1", "true", &json!({}));
    assert_eq!(lab.ended(&mine)["state"], "failed");
    let theirs = lab.tow(["adopt", "early_end_1"]).ok().id();
    assert_eq!(lab.ended(&theirs)["state"], "failed");
    for run in [&mine, &theirs] {
        let why = lab.tow(["why", run]).ok();
        assert!(
            why.stdout
                .contains("  | system_logs/lifecycler/lifecycler.log:")
                && why.stdout.contains(&format!("ERROR {WORDS}")),
            "{why:?}"
        );
        let logs = lab.tow(["logs", run]).ok();
        assert!(
            logs.stdout.is_empty() && logs.stderr.contains(WORDS),
            "{logs:?}"
        );
        lab.tow(["get", run, "system_logs", "--to", run]).ok();
        assert!(
            lab.home
                .read(&format!("{run}/system_logs/lifecycler/lifecycler.log"))
                .contains(WORDS)
        );
    }
    // One whose ranks spoke has its own log.
    lab.aml
        .conditions(|conditions| conditions.broken_start = None);
    let spoke = lab
        .tow(["submit", "sh", "-c", "echo mine; exit 3"])
        .ok()
        .id();
    lab.ended(&spoke);
    assert!(!lab.tow(["why", &spoke]).stdout.contains("system_logs"));
}

/// Who may not delete jobs keeps the runs: forgotten here, nobody would own them there.
#[test]
fn what_the_service_does_not_delete_is_not_forgotten() {
    let lab = Lab::new();
    let run = lab.tow(["submit", "true"]).ok().id();
    lab.ended(&run);
    let is_old = || {
        lab.tow(["prune", "--older-than", "1s"])
            .stdout
            .starts_with("would remove 1 run(s)")
            .then_some(())
    };
    until_within(60, "it to be old enough", is_old);
    lab.aml.trouble(
        1,
        "DELETE",
        "/jobs/",
        Trouble::Status {
            status: 403,
            retry_after: None,
        },
        When::Before,
    );
    let kept = lab.tow(["prune", "--older-than", "1s", "--yes"]).ok();
    assert!(
        kept.stderr
            .contains("`aml` cannot be told to drop 1 run(s)")
            && kept.stderr.contains("--abandon"),
        "{kept:?}"
    );
    assert_eq!(
        (
            lab.aml.troubles_left(),
            lab.home.state_of(&run),
            lab.aml.jobs().len()
        ),
        (0, "succeeded".to_owned(), 1)
    );
    let gone = lab.tow(["prune", "--older-than", "1s", "--yes"]).ok();
    assert!(gone.stdout.starts_with("removed 1 run(s)"), "{gone:?}");
    assert!(
        lab.aml.jobs().is_empty(),
        "it is gone there before it is forgotten here"
    );
}

/// Whatever a colleague calls a job, it is only shown.
#[test]
fn a_name_of_a_stranger_commands_no_terminal() {
    let lab = Lab::new();
    lab.aml.put_job(
        "sly_fox_1",
        "true",
        &json!({"displayName": "\u{1b}]0;taken\u{7}\u{202e}name", "experimentName": "plain"}),
    );
    let shown = until_within(60, "the job to be listed", || {
        Some(lab.tow(["ps", "--remote", "--all"]).ok())
            .filter(|shown| shown.stdout.contains("taken"))
    });
    assert!(
        !shown.stdout.contains(['\u{1b}', '\u{7}', '\u{202e}']),
        "{shown:?}"
    );
    lab.tow(["adopt", "sly_fox_1"]).ok();
    for words in [["ps", "--all"], ["show", "@"]] {
        let shown = lab.tow(words).ok();
        assert!(
            shown.stdout.contains("taken")
                && !shown.stdout.contains(['\u{1b}', '\u{7}', '\u{202e}']),
            "{shown:?}"
        );
    }
}
