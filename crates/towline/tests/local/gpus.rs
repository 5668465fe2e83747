//! GPUs: declared here; found through `nvidia-smi`, which a script plays on machines without one.

use super::home;
use towline_testkit::{Home, until};

#[test]
fn whole_gpus_are_handed_out_exclusively() {
    let home = home();
    home.configure("clusters:\n  local: {kind: local, gpus: 3, cpus: 8}\n");
    let script = "echo got $CUDA_VISIBLE_DEVICES; touch up-$TOW_RUN_ID; while [ ! -e go ]; do \
        sleep 0.01; done";
    let two = home.tow(["submit", "-n", "2", script]).ok().id();
    let one = home.tow(["submit", "-n", "1", script]).ok().id();
    for id in [&two, &one] {
        until("both to run", || {
            home.project()
                .join(format!("up-{id}"))
                .exists()
                .then_some(())
        });
    }
    let third = home
        .tow([
            "submit",
            "-n",
            "1",
            "sh",
            "-c",
            "echo got $CUDA_VISIBLE_DEVICES",
        ])
        .ok()
        .id();
    assert_eq!(home.tow(["logs", &two]).stdout, "got 0,1\n");
    assert_eq!(home.tow(["logs", &one]).stdout, "got 2\n");
    let why = home.tow(["why", &third]).ok().stdout;
    assert!(why.contains("1 GPU (0 free)"), "{why}");
    let nodes = home.tow(["nodes", "--json"]).ok().json();
    assert_eq!(nodes["nodes"][0]["gpus"][2]["run"], one.as_str());
    home.write("go", "");
    home.tow(["wait", &third]).ok();
    let none = home
        .tow(["run", "sh", "-c", "echo \"[$CUDA_VISIBLE_DEVICES]\""])
        .ok();
    assert_eq!(none.stdout, "[]\n", "who asks for none gets none");
    assert!(
        none.stderr.contains("-n 1"),
        "and is told how to ask: {}",
        none.stderr
    );
}

#[test]
fn several_nodes_share_the_gpus_and_each_rank_sees_its_nodes() {
    let home = home();
    home.configure("clusters:\n  local: {kind: local, gpus: 4, cpus: 8}\n");
    home.write(
        "job.yaml",
        "command: [sh, -c, 'echo $CUDA_VISIBLE_DEVICES \
        $LOCAL_RANK']\nresources: {nodes: 2, gpus_per_node: 2}\nlaunch: per_gpu\n",
    );
    let id = home.tow(["submit", "-f", "job.yaml"]).ok().id();
    home.tow(["wait", &id]).ok();
    let logs: Vec<String> = (0..4)
        .map(|rank| home.tow(["logs", &id, "--rank", &rank.to_string()]).stdout)
        .collect();
    assert_eq!(logs, ["0,1 0\n", "0,1 1\n", "2,3 0\n", "2,3 1\n"]);
    let odd = home.tow(["submit", "-n", "5", "true"]);
    assert_eq!(odd.code, 123);
}

/// A machine with two GPUs, of which somebody else keeps the first busy.
fn with_nvidia_smi(home: Home) -> Home {
    let bin = home.path("bin");
    std::fs::create_dir(&bin).unwrap();
    let script = "#!/bin/sh\ncase \"$1\" in\n  --query-gpu=*) echo '0, GPU-aa, NVIDIA H200, \
        143771, 90000'; echo '1, GPU-bb, NVIDIA H200, 143771, 0' ;;\n  --query-compute-apps=*) \
            echo 'GPU-aa, 1' ;;\nesac\n";
    let file = bin.join("nvidia-smi");
    towline_testkit::program(&file, script);
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    home.with("PATH", &path)
}

#[test]
fn gpus_that_others_keep_busy_are_shown_and_passed_over() {
    let home = with_nvidia_smi(home());
    home.configure("clusters:\n  local: {kind: local, gpus: 2, cpus: 4}\n");
    let nodes = home.tow(["nodes"]).ok().stdout;
    assert!(
        nodes.contains("NVIDIA H200") && nodes.contains("others:"),
        "{nodes}"
    );
    let id = home
        .tow([
            "submit",
            "-n",
            "1",
            "sh",
            "-c",
            "echo $CUDA_VISIBLE_DEVICES $CUDA_DEVICE_ORDER",
        ])
        .ok()
        .id();
    home.tow(["wait", &id]).ok();
    assert_eq!(home.tow(["logs", &id]).stdout, "1 PCI_BUS_ID\n");
    let both = home.tow(["submit", "-n", "2", "true"]).ok().id();
    let why = until("the explanation", || {
        let text = home.tow(["why", &both]).ok().stdout;
        text.contains("busy by others").then_some(text)
    });
    assert!(why.contains("2 GPUs"), "{why}");
    home.tow(["abort", &both, "--wait"]).ok();
}

#[test]
fn a_restarted_daemon_knows_which_gpus_are_taken_and_how_many_there_are() {
    let home = home();
    home.configure("clusters:\n  local: {kind: local, gpus: 2, cpus: 4}\n");
    let script = "echo got $CUDA_VISIBLE_DEVICES; touch up-$TOW_RUN_ID; while [ ! -e go ]; do \
        sleep 0.01; done";
    let first = home.tow(["submit", "-n", "1", script]).ok().id();
    let queued = home
        .tow([
            "submit",
            "-n",
            "2",
            "sh",
            "-c",
            "echo both $CUDA_VISIBLE_DEVICES",
        ])
        .ok()
        .id();
    until("the first to run", || {
        home.project()
            .join(format!("up-{first}"))
            .exists()
            .then_some(())
    });
    assert!(home.kill_daemon());
    // A verb that says nothing about the configuration brings the next daemon up.
    home.wait_for_state(&first, "running");
    let premium = home
        .tow(["submit", "-n", "1", "--tier", "premium", script])
        .ok()
        .id();
    until("the premium one to run", || {
        home.project()
            .join(format!("up-{premium}"))
            .exists()
            .then_some(())
    });
    assert_eq!(
        (
            home.tow(["logs", &first]).stdout,
            home.tow(["logs", &premium]).stdout
        ),
        ("got 0\n".into(), "got 1\n".into())
    );
    home.write("go", "");
    home.tow(["wait", &queued]).ok();
    assert_eq!(home.tow(["logs", &queued]).stdout, "both 0,1\n");
}

/// Every declared GPU is a place in memory; the daemon remembers what it was told.
#[test]
fn a_number_of_gpus_that_cannot_be_is_refused_and_does_no_lasting_harm() {
    let home = home();
    home.tow(["run", "true"]).ok();
    home.configure("clusters:\n  local: {kind: local, gpus: 4294967295}\n");
    for words in [&["nodes"][..], &["submit", "true"], &["clusters"]] {
        let refused = home.tow(words);
        assert_eq!(refused.code, 121, "{words:?}: {refused:?}");
        assert!(
            refused.stderr.contains("config.yaml:2:") && refused.stderr.contains("4294967295"),
            "{}",
            refused.stderr
        );
    }
    home.configure("");
    home.tow(["run", "true"]).ok();
    for bad in [
        r#"{"gpus":4294967295,"cpus":null,"memory":null}"#,
        "{",
        "\0\0\0",
    ] {
        assert!(home.kill_daemon());
        std::fs::write(home.state().limits(), bad).unwrap();
        home.tow(["run", "true"]).ok();
        let log = std::fs::read_to_string(home.state().daemon_log()).unwrap();
        assert!(log.contains("limits.json"), "{log}");
    }
}
