//! What happens to nodes, and to what runs on them.

use crate::lab::Lab;
use serde_json::Value;
use std::fs;
use std::time::{Duration, Instant};
use towline_testkit::real::slurm::Options;
use towline_testkit::until;

/// The head, a runner, or what started them, of runs on two nodes: nothing of an attempt outlives
/// them to meet the next.
#[test]
fn what_is_killed_on_a_node_leaves_nothing_alive() {
    let lab = Lab::new(&Options::default());
    let ids: Vec<String> = (0..5)
        .map(|_| lab.submit(&["-f", "once.yaml", "--nodes", "2"]))
        .collect();
    let second = |id: &str| {
        lab.slurm
            .home("alice")
            .join(format!("ledger.{id}.1.lock"))
            .exists()
    };
    until("all ranks to start", || {
        ids.iter()
            .all(|id| lab.has_started(id) && second(id))
            .then_some(())
    });
    // On each node one process guards another, which carries the ranks; `srun` has a second that
    // does nothing.
    let shots = [
        ("__head", false, 0),
        ("__node", true, 0),
        ("__node", false, 0),
        ("__node", false, 3),
        ("__node", false, 1),
    ];
    for (id, (verb, is_srun, which)) in ids.iter().zip(shots) {
        let is_fit =
            |words: &str| words.contains(id.as_str()) && words.starts_with("srun") == is_srun;
        let mut all: Vec<(&str, String)> = Vec::new();
        for host in ["c1", "c2", "c3"] {
            all.extend(
                lab.over_there(host, verb)
                    .into_iter()
                    .filter(|(_, words)| is_fit(words))
                    .map(|(pid, _)| (host, pid)),
            );
        }
        let (host, pid) = &all[which];
        lab.shoot(host, pid);
    }
    lab.wait_for_all("heads and runners were shot");
    lab.nothing_was_doubled("heads and runners were shot");
    for id in &ids {
        lab.second_attempt_ends_well(id);
    }
    lab.nothing_is_left("heads and runners were shot");
}

#[test]
fn a_run_does_not_notice_that_slurmd_was_killed() {
    let lab = Lab::new(&Options::default());
    let id = lab.submit(&["sh", "job.sh", "some", "60"]);
    lab.until_started(&id);
    let host = lab.host_of(&id);
    lab.slurm.kill_service(&host, "slurmd");
    std::thread::sleep(Duration::from_secs(3));
    lab.slurm.start_service(&host, "slurmd");
    lab.wait_for_all("slurmd was killed");
    lab.ran_exactly_once(&id);
    lab.nothing_is_left("slurmd was killed");
}

/// The node is given up while its copy of the job lives on: it ends before the next begins.
#[test]
fn a_copy_on_a_node_without_a_link_ends_before_the_next_begins() {
    let lab = Lab::new(&Options::default());
    let id = lab.submit(&["-f", "once.yaml"]);
    lab.until_started(&id);
    let host = lab.host_of(&id);
    let begun = Instant::now();
    lab.slurm.cut(&host);
    until("Slurm to give the node up and put the job back", || {
        (!lab.queued().contains("RUNNING")).then_some(())
    });
    std::thread::sleep(Duration::from_secs(30).saturating_sub(begun.elapsed()));
    assert!(lab.attempts("end", &id).is_empty());
    lab.slurm.heal(&host);
    lab.second_attempt_ends_well(&id);
    lab.nothing_is_left("a link was cut");
}

#[test]
fn a_run_whose_node_lost_power_goes_on_elsewhere() {
    let lab = Lab::new(&Options::default());
    let id = lab.submit(&["-f", "once.yaml"]);
    lab.until_started(&id);
    let host = lab.host_of(&id);
    lab.slurm.kill_host(&host);
    lab.second_attempt_ends_well(&id);
    lab.slurm.start_host(&host);
    lab.nothing_is_left("a power cut");
}

/// The head lives on and notices that the other node is gone; the next attempt has two nodes again.
#[test]
fn a_run_that_lost_one_of_its_nodes_goes_on_with_others() {
    let lab = Lab::new(&Options::default());
    let id = lab.submit(&["-f", "once.yaml", "--nodes", "2"]);
    lab.until_started(&id);
    let claim = fs::read(
        lab.slurm
            .home("alice")
            .join(".towline/runs")
            .join(&id)
            .join("attempt-1.claim"),
    )
    .unwrap();
    let claim: Value = serde_json::from_slice(&claim).unwrap();
    let host = claim["hosts"][1].as_str().unwrap();
    lab.slurm.kill_host(host);
    lab.second_attempt_ends_well(&id);
    lab.slurm.start_host(host);
    lab.nothing_is_left("a power cut of one of two nodes");
}

impl Lab {
    /// Where the first attempt of a run started.
    fn host_of(&self, run: &str) -> String {
        let begin = format!("start {run} 1 ");
        self.ledger()
            .lines()
            .find_map(|line| line.strip_prefix(&begin).map(str::to_owned))
            .unwrap()
    }

    #[track_caller]
    fn second_attempt_ends_well(&self, run: &str) {
        self.wait_for_all("the second attempt");
        let shown = self.home.show(run);
        assert_eq!(
            (shown["state"].as_str(), shown["attempt"].as_u64()),
            (Some("succeeded"), Some(2)),
            "{shown}"
        );
        assert_eq!(
            (self.attempts("start", run), self.attempts("end", run)),
            (vec![1, 2], vec![2]),
            "{}",
            self.ledger()
        );
        self.nothing_was_doubled(run);
    }
}
