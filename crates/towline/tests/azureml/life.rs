//! A run's way through the service's states: none of its words is taken for an end that is none,
//! nodes are taken away and given back, and whoever wants it to end is heard.

use crate::lab::{FLAVOURS, Lab, lines};
use serde_json::json;
use std::fs;
use towline_testkit::Output;
use towline_testkit::aml::Image;

/// Waits for a file of the home, which is there on every node of this machine.
fn patient(lab: &Lab, name: &str) -> String {
    format!(
        "until [ -e '{}' ]; do sleep 0.05; done; echo through",
        lab.home.path(name).display()
    )
}

#[test]
fn none_of_the_services_words_is_an_end_but_three() {
    let lab = Lab::new();
    let id = lab.home.submit_file(
        &format!("script: |\n  {}\n", patient(&lab, "go")),
        &["-c", "itp"],
    );
    lab.until_state(&id, "running");
    let words = [
        "NotStarted",
        "Starting",
        "Provisioning",
        "Preparing",
        "Queued",
        "Running",
        "Finalizing",
        "Paused",
        "NotResponding",
        "Unknown",
        "SomethingNew",
    ];
    for word in words {
        lab.aml.show_status(&id, Some(word));
        lab.until_word(&id, word);
        assert_eq!(lab.home.state_of(&id), "running", "{word}");
    }
    // Kubernetes says more in its tags.
    lab.aml.show_status(&id, Some("Queued"));
    lab.aml.tag(&id, "amlk8s status", "running");
    lab.until_word(&id, "Queued");
    assert_eq!(lab.home.state_of(&id), "running");
    lab.aml.show_status(&id, None);
    fs::write(lab.home.path("go"), "").unwrap();
    let record = lab.ended(&id);
    assert_eq!(
        (record["state"].as_str(), record["exit_code"].as_i64()),
        (Some("succeeded"), Some(0)),
        "{record}"
    );
    assert_eq!(lab.log(&id, 1, 0), "through\n");
}

#[test]
fn a_run_that_waits_is_queued_in_every_early_state() {
    let lab = Lab::new();
    for (word, flavour) in ["Starting", "Provisioning", "Preparing", "Queued"]
        .iter()
        .zip(FLAVOURS.iter().cycle())
    {
        lab.aml
            .conditions(|conditions| conditions.hold_in = Some((*word).to_owned()));
        let id = lab
            .tow(["-c", flavour, "submit", "echo", "through"])
            .ok()
            .id();
        lab.until_word(&id, word);
        assert_eq!(lab.home.state_of(&id), "queued", "{word}");
        lab.aml.conditions(|conditions| conditions.hold_in = None);
        assert_eq!(lab.ended(&id)["state"], "succeeded", "{word}");
    }
}

#[test]
fn nodes_that_are_taken_away_give_another_attempt_and_all_logs_are_kept() {
    let lab = Lab::new();
    let script = "script: |\n  seq 1 2000 | sed \"s/^/$TOW_ATTEMPT $RANK /\"; [ $TOW_ATTEMPT = 2 ] \
        || exec sleep 600\n";
    for flavour in FLAVOURS {
        let id = lab
            .home
            .submit_file(script, &["-c", flavour, "--nodes", "2"]);
        let whole = |attempt: u32, rank: u32| lines(2000, &format!("{attempt} {rank} "));
        let is_whole = |attempt: u32, rank: u32| {
            lab.tow(["logs", &id, "--rank", &rank.to_string()]).stdout == whole(attempt, rank)
        };
        towline_testkit::until("both logs of the first attempt", || {
            (is_whole(1, 0) && is_whole(1, 1)).then_some(())
        });
        lab.aml.preempt(&id);
        let record = lab.ended(&id);
        assert_eq!(
            (record["state"].as_str(), record["attempt"].as_u64()),
            (Some("succeeded"), Some(2)),
            "{flavour}: {record}"
        );
        for (attempt, rank) in [(1, 0), (1, 1), (2, 0), (2, 1)] {
            assert_eq!(
                lab.log(&id, attempt, rank),
                whole(attempt, rank),
                "{flavour}: attempt {attempt}, rank {rank}"
            );
        }
        let causes: Vec<&str> = record["events"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|event| event["ending"]["cause"].as_str())
            .collect();
        assert_eq!(causes, ["preempted"], "{flavour}: {record:#}");
    }
}

#[test]
fn a_failure_that_is_to_be_retried_is_on_the_same_nodes() {
    let lab = Lab::new();
    let job = "retry: {when: [exit_code], max: 3}\nscript: |\n  echo try $TOW_ATTEMPT; [ \
        $TOW_ATTEMPT = 3 ]\n";
    for flavour in FLAVOURS {
        let id = lab.home.submit_file(job, &["-c", flavour]);
        let record = lab.ended(&id);
        assert_eq!(
            (record["state"].as_str(), record["attempt"].as_u64()),
            (Some("succeeded"), Some(3)),
            "{flavour}: {record}"
        );
        for attempt in 1..=3 {
            assert_eq!(lab.log(&id, attempt, 0), format!("try {attempt}\n"));
        }
        assert_eq!(
            lab.aml
                .states(&id)
                .iter()
                .filter(|word| *word == "Running")
                .count(),
            1,
            "one job had them all: {:?}",
            lab.aml.states(&id)
        );
    }
    let id = lab
        .home
        .submit_file("retry: {when: [exit_code], max: 2}\nscript: exit 7\n", &[]);
    let record = lab.ended(&id);
    assert_eq!(
        (
            record["state"].as_str(),
            record["attempt"].as_u64(),
            record["exit_code"].as_i64()
        ),
        (Some("failed"), Some(2), Some(7)),
        "{record}"
    );
}

#[test]
fn an_abort_is_heard_in_every_state() {
    let lab = Lab::new();
    lab.aml
        .conditions(|conditions| conditions.hold_in = Some("Queued".to_owned()));
    for flavour in FLAVOURS {
        let id = lab
            .tow(["-c", flavour, "submit", "echo", "never"])
            .ok()
            .id();
        lab.until_word(&id, "Queued");
        lab.tow(["abort", &id]).ok();
        assert_eq!(lab.ended(&id)["state"], "cancelled", "{flavour}");
        towline_testkit::until("the job to be over", || {
            (lab.aml.status(&id).as_deref() == Some("Canceled")).then_some(())
        });
        assert!(!lab.aml.states(&id).contains(&"Running".to_owned()));
    }
    lab.aml.conditions(|conditions| conditions.hold_in = None);
    for flavour in FLAVOURS {
        let id = lab.home.submit_file(
            "script: |\n  trap 'echo heard; exit 0' TERM\n  echo ready; \
            while :; do sleep 0.05; done\n",
            &["-c", flavour],
        );
        lab.until_logged(&id, "ready");
        lab.tow(["abort", &id]).ok();
        let record = lab.ended(&id);
        assert_eq!(
            (record["state"].as_str(), record["attempt"].as_u64()),
            (Some("cancelled"), Some(1)),
            "{flavour}: {record}"
        );
        let log = lab.log(&id, 1, 0);
        assert!(
            log.starts_with("ready\n") && log.ends_with("heard\n"),
            "{flavour}: its last words are kept: {log}"
        );
        lab.until_gone(&id);
    }
}

#[test]
fn what_has_come_to_its_end_is_not_cancelled_any_more() {
    let lab = Lab::new();
    lab.aml
        .conditions(|conditions| conditions.hold_in = Some("Finalizing".to_owned()));
    // What it writes is there only when the service has put it away.
    let job = "io: {out: {datastore: workspaceblobstore, path: results, mode: write}}\nscript: \
        echo good > ${{out}}/x; echo written\n";
    let id = lab.home.submit_file(job, &[]);
    lab.until_word(&id, "Finalizing");
    lab.until_logged(&id, "written");
    assert_eq!(
        lab.home.state_of(&id),
        "running",
        "its results are not there yet"
    );
    let aborted = lab.home.spawn(["abort", &id]);
    towline_testkit::until("the service to be told", || {
        lab.aml
            .states(&id)
            .contains(&"CancelRequested".to_owned())
            .then_some(())
    });
    lab.aml.conditions(|conditions| conditions.hold_in = None);
    let record = lab.ended(&id);
    aborted.wait_with_output().unwrap();
    assert_eq!(
        (lab.aml.status(&id).as_deref(), record["state"].as_str()),
        (Some("Completed"), Some("succeeded")),
        "{record}"
    );
    assert_eq!(
        lab.aml.blob(&lab.aml.container(), "results/x").as_deref(),
        Some("good\n")
    );
}

#[test]
fn a_sweep_is_a_job_for_each_of_its_runs() {
    let lab = Lab::new();
    let sweep = lab.home.submit_file(
        "sweep: {i: 1-5}\nscript: |\n  echo value ${{i}}; [ ${{i}} != 4 ]\n",
        &["-c", "sing"],
    );
    for number in 1..=5 {
        let run = format!("{sweep}-{number}");
        let record = lab.ended(&run);
        assert_eq!(
            record["state"],
            if number == 4 { "failed" } else { "succeeded" },
            "{record}"
        );
        assert_eq!(lab.log(&run, 1, 0), format!("value {number}\n"));
        assert_eq!(
            lab.put(&run)["properties"]["tow.submission"],
            sweep.as_str()
        );
    }
    // Only what failed is done again.
    let again = lab.tow(["resubmit", &sweep]).ok().id();
    let record = lab.ended(&again);
    assert_eq!(record["state"], "failed", "{record}");
    assert!(lab.tow(["logs", &again]).stdout.contains("value 4"));
}

#[test]
fn the_same_run_goes_to_another_cluster() {
    let lab = Lab::new();
    lab.home.write("train.sh", "echo on $TOW_RUN_ID\n");
    let first = lab.tow(["submit", "sh", "train.sh"]).ok().id();
    assert_eq!(lab.ended(&first)["state"], "succeeded");
    lab.home.write("train.sh", "echo something else\n");
    for flavour in ["sing", "itp"] {
        let again = lab.tow(["resubmit", &first, "--to", flavour]).ok().id();
        let record = lab.ended(&again);
        assert_eq!(
            (record["state"].as_str(), record["cluster"].as_str()),
            (Some("succeeded"), Some(flavour)),
            "{record}"
        );
        assert_eq!(
            lab.log(&again, 1, 0),
            format!("on {again}\n"),
            "with the code it had"
        );
    }
    // The machines of a virtual cluster are no word of the job's own.
    let there = lab.tow(["resubmit", &first, "--to", "sing"]).ok().id();
    let home = lab.tow(["resubmit", &there, "--to", "aml"]).ok().id();
    assert_eq!(lab.ended(&home)["state"], "succeeded");
    // A kind of machine that the job itself named is the old cluster's, too.
    let named = lab.home.submit_file(
        "cluster: sing\nresources: {instance_type: ND96_H100_v5}\nscript: echo moved\n",
        &[],
    );
    let moved = lab.tow(["resubmit", &named, "--to", "aml"]).ok();
    assert!(
        moved.stderr.contains("`instance_type: ND96_H100_v5`") && moved.stderr.contains("left out"),
        "{moved:?}"
    );
    assert_eq!(lab.ended(&moved.id())["state"], "succeeded");
    let back = lab.tow(["resubmit", &home, "--to", "local"]).ok().id();
    assert_eq!(lab.ended(&back)["state"], "succeeded");
    let better = lab.tow(["resubmit", &there, "--tier", "premium"]).ok().id();
    assert_eq!(lab.ended(&better)["tier"], "premium");
    assert_eq!(
        lab.put(&better)["resources"]["properties"]["AISuperComputer"]["slaTier"],
        "Premium"
    );
}

/// What ran in its folder itself has nothing that could travel, unless it is taken now.
#[test]
fn a_run_without_frozen_code_goes_nowhere_without_it() {
    let lab = Lab::new();
    lab.home.write("train.sh", "echo trained\n");
    let here = lab
        .tow(["-c", "local", "submit", "--in-place", "sh", "train.sh"])
        .ok()
        .id();
    lab.ended(&here);
    let refused = lab.tow(["resubmit", &here, "--to", "aml"]);
    assert!(
        refused.code == 123 && refused.stderr.contains("--latest-code"),
        "{refused:?}"
    );
    let there = lab
        .tow(["resubmit", &here, "--to", "aml", "--latest-code"])
        .ok()
        .id();
    assert_eq!(lab.ended(&there)["state"], "succeeded");
    assert_eq!(lab.log(&there, 1, 0), "trained\n");
}

/// Where no code travels a run starts in an empty folder: nothing of ours is there for it to
/// remove.
#[test]
fn a_run_without_code_has_a_folder_of_its_own() {
    let lab = Lab::new();
    let mut command = lab
        .home
        .command(["run", "pwd; ls -A; echo a; touch x.log; rm -rf ./*; echo c"]);
    command.current_dir(lab.home.path("home"));
    let said = Output::from(command.output().unwrap());
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(
        said.stdout.lines().skip(1).collect::<Vec<_>>(),
        ["a", "c"],
        "{said:?}"
    );
}

/// What was asked for is what ranks see, and each has its page, however short it was.
#[test]
fn ranks_see_their_gpus_and_every_record_has_its_page() {
    let lab = Lab::new();
    let id = lab
        .tow([
            "-c",
            "sing",
            "submit",
            "-n",
            "8",
            "sh",
            "-c",
            "echo $CUDA_VISIBLE_DEVICES",
        ])
        .ok()
        .id();
    let record = lab.ended(&id);
    assert_eq!(lab.log(&id, 1, 0), "0,1,2,3,4,5,6,7\n");
    assert!(
        record["url"].as_str().is_some_and(|url| url.contains(&id)),
        "{record}"
    );
    for _ in 0..3 {
        let quick = lab.tow(["run", "true"]).ok();
        let latest = lab.tow(["show", "@", "--json"]).ok().json();
        assert!(
            latest["url"]
                .as_str()
                .is_some_and(|url| url.contains("/runs/")),
            "{latest} {quick:?}"
        );
    }
}

/// What a mount is on real nodes: each has its own, remembers what it saw, and carries away what
/// was closed.
#[test]
fn nodes_whose_mounts_see_nothing_of_each_other_tell_all() {
    let lab = Lab::new();
    lab.aml
        .conditions(|conditions| conditions.mount_cache = std::time::Duration::from_secs(3600));
    lab.home.write(
        "train.sh",
        "echo node $NODE_RANK of $WORLD_SIZE; mkdir -p outputs; echo $NODE_RANK > \
            outputs/of-$NODE_RANK; ls ${1:-.} | sort > /dev/null; seq 1 2000\n",
    );
    for flavour in FLAVOURS {
        let run = lab
            .tow(["-c", flavour, "submit", "--nodes", "3", "sh", "train.sh"])
            .ok()
            .id();
        assert_eq!(
            lab.ended(&run)["state"],
            "succeeded",
            "{flavour}: {}",
            lab.aml.last_words(&run)
        );
        for node in 0..3 {
            assert_eq!(
                lab.log(&run, 1, node),
                format!("node {node} of 3\n{}", lines(2000, "")),
                "{flavour}"
            );
        }
        lab.until_gone(&run);
        lab.tow(["get", &run, "outputs", "--to", flavour]).ok();
        assert_eq!(lab.home.read(&format!("{flavour}/outputs/of-0")), "0\n");
    }
}

/// A mount shows others' files late, and only those that were closed; what is removed goes from the
/// store.
#[test]
fn a_mount_is_a_nodes_own_and_carries_what_was_closed() {
    let lab = Lab::new();
    lab.aml
        .conditions(|conditions| conditions.mount_cache = std::time::Duration::from_millis(500));
    let (go, container) = (lab.home.path("go"), lab.aml.container());
    lab.aml.put_blob(&container, "shared/before", "there\n");
    let script = format!(
        "cd ${{{{m}}}}
if [ $NODE_RANK = 0 ]; then
    cat before; exec 3> open; echo half >&3; echo whole > closed; mv before renamed
    until [ -e '{0}' ]; do sleep 0.05; done; exec 3>&-
else
    [ -e before ] || exit 3
    until [ -e closed ]; do sleep 0.05; done; [ ! -e open ] || exit 4
    cat closed; touch '{0}'
    until [ -e open ] && [ -e renamed ] && [ ! -e before ]; do sleep 0.05; done; cat open
fi",
        go.display()
    );
    let job = json!({"resources": {"nodes": 2}, "io": {"m": {"datastore": "workspaceblobstore", "path": "shared", "mode": "mount"}}, "script": script});
    let run = lab.home.submit_file(&job.to_string(), &[]);
    assert_eq!(
        lab.ended(&run)["state"],
        "succeeded",
        "{}",
        lab.aml.last_words(&run)
    );
    assert_eq!(
        (lab.log(&run, 1, 0), lab.log(&run, 1, 1)),
        ("there\n".to_owned(), "whole\nhalf\n".to_owned())
    );
    assert_eq!(
        lab.aml.blobs(&container, "shared/"),
        ["shared/closed", "shared/open", "shared/renamed"]
    );
}

/// No bash, few programs, nobody for a user, a work folder that is not to be written to.
#[test]
fn a_poor_image_is_enough() {
    is_enough(Image::Poor);
}

/// By podman: a root that cannot be written to, with neither users nor certificates.
#[test]
fn a_container_with_nothing_but_busybox_is_enough() {
    is_enough(Image::Container);
}

#[track_caller]
fn is_enough(image: Image) {
    let lab = Lab::new();
    lab.aml.conditions(|conditions| conditions.image = image);
    lab.home.write(
        "train.sh",
        "id -u; echo node $NODE_RANK; mkdir -p outputs; echo kept > outputs/kept\n",
    );
    let expected = if rustix::process::geteuid().is_root() {
        "65534".to_owned()
    } else {
        rustix::process::geteuid().as_raw().to_string()
    };
    for flavour in FLAVOURS {
        let run = lab
            .tow(["-c", flavour, "submit", "--nodes", "2", "sh", "train.sh"])
            .ok()
            .id();
        assert_eq!(
            lab.ended(&run)["state"],
            "succeeded",
            "{flavour}: {}",
            lab.aml.last_words(&run)
        );
        assert_eq!(
            lab.log(&run, 1, 1),
            format!("{expected}\nnode 1\n"),
            "{flavour}"
        );
        lab.until_gone(&run);
        lab.tow(["get", &run, "outputs/kept", "--to", flavour]).ok();
        assert_eq!(lab.home.read(&format!("{flavour}/outputs/kept")), "kept\n");
        let script = lab.home.submit_file(
            &format!(
                "cluster: {flavour}\nenvironment: {{setup: \
            ['echo ready > ready']}}\nscript: cat ready\n"
            ),
            &[],
        );
        assert_eq!(
            lab.ended(&script)["state"],
            "succeeded",
            "{flavour}: {}",
            lab.aml.last_words(&script)
        );
        assert_eq!(lab.log(&script, 1, 0), "ready\n");
    }
}
