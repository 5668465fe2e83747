//! The page for users of the PyTorch AWS helper: every command on it, in order, on a real cluster.

use crate::{home, patiently, status};
use towline_testkit::page;
use towline_testkit::real::Slurm;
use towline_testkit::real::slurm::Options;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/from-pytorch-aws-helper.md");

#[test]
fn every_command_of_the_page_runs_in_order() {
    let slurm = Slurm::start(&Options::default());
    let home = home().freezing();
    home.configure(&format!("default_cluster: aws\nclusters:\n  aws: {{kind: slurm, host: login, ssh_config: {}}}\n", slurm.ssh_config().display()));
    for node in ["c1", "c2", "c3"] {
        slurm.root(node, ["mkdir", "-p", "-m", "1777", "/scratch"]).ok();
    }
    let commands = page::commands(PAGE);
    assert!(commands.len() >= 12, "{commands:?}");
    let on = |node: &str, script: &str| slurm.exec(node, "alice", ["sh", "-c", script]);
    let (mut releases, mut restores) = (0, 0);
    let mut kept = String::new();
    for line in &commands {
        let ran = page::run(&home, &home.state().ssh().join("config"), line);
        assert_eq!(ran.code, 0, "{line}: {ran:?}");
        if line.starts_with("tow scratch auto") && !line.contains("--off") {
            // It goes on without a terminal, and the work of that moment is safe.
            assert_eq!(status(&home, "work")["auto"], "30m", "{line}");
        }
        if line.starts_with("tow release") {
            releases += 1;
            patiently(60, "the nodes to be free", || (slurm.exec("login", "alice", ["squeue", "-h", "-u", "alice"]).ok().stdout.is_empty()).then_some(()));
            if releases == 1 {
                kept = on("c2", "cd /scratch/alice/work && find . -type f -exec sha256sum {} + | sort").ok().stdout;
                assert!(kept.contains("opinfo.py"), "{kept}");
            }
        }
        if line.starts_with("tow scratch restore") {
            let back = on("c3", "cd /scratch/alice/work && find . -type f -exec sha256sum {} + | sort").ok().stdout;
            assert_eq!(back, kept, "{line}");
            restores += 1;
        }
    }
    assert_eq!((releases, restores), (2, 1), "{commands:?}");
}
