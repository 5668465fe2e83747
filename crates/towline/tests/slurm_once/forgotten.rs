//! A controller that is killed forgets what it has not written down yet: jobs that it took, and
//! that they run.

use crate::lab::Lab;
use serde_json::Value;
use std::fs;
use std::time::Duration;
use towline_testkit::real::slurm::Options;
use towline_testkit::until;

/// A controller that is killed 1.5 s after it took a job has not written it down: it forgets it,
/// and gives its id to another.
#[test]
fn a_forgotten_job_is_submitted_again_once() {
    let lab = Lab::new(&Options::default());
    let id = lab.forgotten("later.yaml");
    let strangers = lab.submit_beside(2);
    assert!(
        strangers.contains(&lab.job_of(&id)),
        "the id of {id} is given to another: {strangers:?}"
    );
    lab.wait_for_all("a forgotten job");
    lab.ran_exactly_once(&id);
    let jobs = fs::read_to_string(
        lab.slurm
            .home("alice")
            .join(".towline/submissions")
            .join(&id)
            .join("jobs"),
    )
    .unwrap();
    assert_eq!(jobs.matches("accepted").count(), 2, "{jobs}");
}

/// A controller that has forgotten a job which runs kills it. The run goes on with its next
/// attempt, and none starts twice.
#[test]
fn a_running_job_that_is_forgotten_is_not_doubled() {
    let lab = Lab::new(&Options::default());
    std::thread::sleep(Duration::from_secs(6));
    lab.slurm
        .exec(
            "login",
            "alice",
            ["sbatch", "--output=/dev/null", "--wrap", "true"],
        )
        .ok();
    let ids: Vec<String> = (0..3).map(|_| lab.submit(&["-f", "some.yaml"])).collect();
    until("one of them to start", || {
        ids.iter().any(|id| lab.has_started(id)).then_some(())
    });
    lab.slurm.kill_service("ctl", "slurmctld");
    lab.slurm.start_service("ctl", "slurmctld");
    lab.wait_for_all("running jobs that were forgotten");
    lab.nothing_was_doubled("running jobs that were forgotten");
    for id in &ids {
        assert_eq!(lab.home.state_of(id), "succeeded", "{}", lab.home.show(id));
        assert_eq!(lab.attempts("end", id).len(), 1, "{}", lab.ledger());
    }
    lab.nothing_is_left("running jobs that were forgotten");
}

/// A controller that has forgotten that a job runs has it killed, or starts it once more.
#[test]
fn a_job_whose_start_is_forgotten_runs_once() {
    let lab = Lab::new(&Options::default());
    std::thread::sleep(Duration::from_secs(6));
    let id = lab.submit(&["-f", "some.yaml"]);
    lab.until_started(&id);
    lab.slurm.kill_service("ctl", "slurmctld");
    lab.slurm.start_service("ctl", "slurmctld");
    lab.wait_for_all("a job whose start was forgotten");
    lab.nothing_was_doubled("a job whose start was forgotten");
    assert_eq!(
        lab.home.state_of(&id),
        "succeeded",
        "{}",
        lab.home.show(&id)
    );
    assert_eq!(lab.attempts("end", &id).len(), 1, "{}", lab.ledger());
    lab.nothing_is_left("a job whose start was forgotten");
}

/// The wish to end a run whose job was forgotten does not reach the job that has its id now.
#[test]
fn the_end_of_a_forgotten_job_is_not_the_end_of_another() {
    let lab = Lab::new(&Options::default());
    let id = lab.forgotten("later.yaml");
    let strangers = lab.submit_beside(2);
    assert!(
        strangers.contains(&lab.job_of(&id)),
        "the id of {id} is given to another: {strangers:?}"
    );
    lab.home.tow(["abort", &id]).ok();
    lab.wait_for_all("a forgotten job that is not wanted any more");
    assert_eq!(lab.home.state_of(&id), "cancelled");
    assert!(!lab.has_started(&id));
    assert_eq!(lab.queued().lines().count(), 2, "{}", lab.queued());
}

impl Lab {
    /// A run whose job was taken and then forgotten by the controller.
    fn forgotten(&self, file: &str) -> String {
        for _ in 0..5 {
            // It writes at once after a quiet time, and then not for five seconds.
            std::thread::sleep(Duration::from_secs(6));
            self.slurm
                .exec(
                    "login",
                    "alice",
                    ["sbatch", "--output=/dev/null", "--wrap", "true"],
                )
                .ok();
            let id = self.submit(&["-f", file]);
            std::thread::sleep(Duration::from_millis(1500));
            self.slurm.kill_service("ctl", "slurmctld");
            self.slurm.start_service("ctl", "slurmctld");
            if !self.queued().contains(&id) {
                return id;
            }
            self.wait_for_all("a job that was not forgotten");
        }
        panic!("the controller forgets nothing");
    }

    /// Jobs that are none of ours, of the same user.
    fn submit_beside(&self, count: usize) -> Vec<String> {
        let words = [
            "sbatch",
            "--parsable",
            "--output=/dev/null",
            "--wrap",
            "sleep 300",
        ];
        (0..count)
            .map(|_| {
                self.slurm
                    .exec("login", "alice", words)
                    .ok()
                    .stdout
                    .trim()
                    .to_owned()
            })
            .collect()
    }

    /// The id that the cluster gave first.
    fn job_of(&self, run: &str) -> String {
        let jobs = fs::read_to_string(
            self.slurm
                .home("alice")
                .join(".towline/submissions")
                .join(run)
                .join("jobs"),
        )
        .unwrap();
        let accepted = |line: &str| {
            serde_json::from_str::<Value>(line).ok()?["accepted"]["job"]
                .as_str()
                .map(str::to_owned)
        };
        jobs.lines().find_map(accepted).unwrap()
    }
}
