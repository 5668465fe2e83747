//! Somebody on the way is not there for a while: what is shown is true, or says since when it is
//! not.

use crate::lab::Lab;
use std::time::{Duration, Instant};
use towline_testkit::real::slurm::Options;
use towline_testkit::{Output, until};

#[test]
fn a_controller_that_is_away_is_told_with_its_moment() {
    let lab = Lab::new(&Options::default());
    let id = lab.submit(&["-f", "long.yaml"]);
    lab.until_started(&id);
    lab.home.wait_for_state(&id, "running");
    lab.until_fresh(&id);
    let before = now();
    // What it has not written down yet it would forget.
    std::thread::sleep(Duration::from_secs(8));
    lab.slurm.kill_service("ctl", "slurmctld");
    let since = lab.until_stale(&id);
    assert!(
        since.as_str() >= before.as_str() && since < now(),
        "{since} lies between {before} and now"
    );
    // It stays so, however often records alone can be read.
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(15) {
        assert_eq!(lab.stale_since(&id), Some(since.clone()));
        std::thread::sleep(Duration::from_millis(300));
    }
    assert_eq!(lab.home.state_of(&id), "running");
    let why = lab.home.tow(["ps"]).ok();
    // People read local times; no time zone is set here.
    let told = format!("{} {} +0000", &since[..10], &since[11..19]);
    assert!(
        why.stdout.contains("running?")
            && why.stderr.contains(&told)
            && why.stderr.contains("Slurm on login does not answer"),
        "{why:?}"
    );
    lab.slurm.start_service("ctl", "slurmctld");
    lab.until_fresh(&id);
    lab.home.tow(["abort", "--wait", &id]).ok();
    assert_eq!(
        (lab.home.state_of(&id).as_str(), lab.attempts("start", &id)),
        ("cancelled", vec![1])
    );
    lab.nothing_is_left("a controller was away");
}

/// `sbatch` hangs for most of a minute when munge is away.
#[test]
fn a_submission_waits_for_munge_and_is_not_doubled() {
    let lab = Lab::new(&Options::default());
    lab.submit(&["-f", "quick.yaml"]);
    lab.wait_for_all("before");
    lab.slurm.kill_service("login", "munged");
    let waiting = lab.home.spawn(["submit", "-f", "quick.yaml"]);
    until("the submission to be known", || {
        lab.runs()
            .iter()
            .any(|run| run["ended"].is_null())
            .then_some(())
    });
    std::thread::sleep(Duration::from_secs(15));
    let open = lab.runs()[0].clone();
    assert!(
        open["ended"].is_null() && open["stale_since"].is_string(),
        "{open}"
    );
    lab.slurm.start_service("login", "munged");
    let output = Output::from(waiting.wait_with_output().unwrap()).ok();
    lab.wait_for_all("munge was away");
    lab.ran_exactly_once(&output.id());
    lab.nothing_is_left("munge was away");
}

#[test]
fn logs_are_whole_after_the_bastion_was_away() {
    let lab = Lab::new(&Options::default());
    let id = lab.submit(&["sh", "job.sh", "some", "300"]);
    lab.until_started(&id);
    let following = lab.home.spawn(["logs", "-f", &id]);
    lab.until_fresh(&id);
    lab.slurm.kill_service("bastion", "sshd");
    lab.until_stale(&id);
    lab.slurm.start_service("bastion", "sshd");
    lab.until_fresh(&id);
    lab.wait_for_all("the bastion was away");
    lab.ran_exactly_once(&id);
    let lines: Vec<String> = (0..300).map(|line| format!("line {line}\n")).collect();
    let lines = lines.concat();
    assert_eq!(lab.home.tow(["logs", &id]).ok().stdout, lines);
    assert_eq!(
        Output::from(following.wait_with_output().unwrap()).stdout,
        lines
    );
}

/// A line that is cut hangs before it breaks; that is said meanwhile.
#[test]
fn a_line_that_hangs_is_told_before_it_breaks() {
    let lab = Lab::new(&Options::default());
    let id = lab.submit(&["sh", "job.sh", "some", "300"]);
    lab.until_started(&id);
    lab.until_fresh(&id);
    lab.slurm.cut("login");
    let begun = Instant::now();
    lab.until_stale(&id);
    assert!(
        begun.elapsed() < Duration::from_secs(20),
        "told after {:?}",
        begun.elapsed()
    );
    std::thread::sleep(Duration::from_secs(30).saturating_sub(begun.elapsed()));
    lab.slurm.heal("login");
    lab.until_fresh(&id);
    lab.wait_for_all("a line was cut");
    lab.ran_exactly_once(&id);
    lab.nothing_is_left("a line was cut");
}

/// A site that stands still is given up and another is asked, by the same daemon.
#[test]
fn a_site_that_stands_still_is_replaced() {
    let lab = Lab::new(&Options::default());
    let id = lab.submit(&["-f", "long.yaml"]);
    lab.until_started(&id);
    lab.home.wait_for_state(&id, "running");
    lab.until_fresh(&id);
    let daemon = lab.home.daemon();
    let sites = || {
        lab.over_there("login", "__site")
            .into_iter()
            .filter(|(_, words)| !words.starts_with("/bin/sh"))
            .map(|(pid, _)| pid)
    };
    let frozen = sites().next().unwrap();
    lab.slurm.root("login", ["kill", "-STOP", &frozen]);
    let begun = Instant::now();
    lab.until_stale(&id);
    assert!(
        begun.elapsed() < Duration::from_secs(30),
        "told after {:?}",
        begun.elapsed()
    );
    lab.until_fresh(&id);
    assert!(
        begun.elapsed() < Duration::from_secs(60),
        "another is asked after {:?}",
        begun.elapsed()
    );
    assert_eq!(lab.home.daemon(), daemon, "the daemon is the same");
    assert!(sites().any(|pid| pid != frozen), "another site");
    lab.home.tow(["abort", "--wait", &id]).ok();
    assert_eq!(
        (lab.home.state_of(&id).as_str(), lab.attempts("start", &id)),
        ("cancelled", vec![1])
    );
    lab.slurm.root("login", ["kill", "-CONT", &frozen]);
    until("the old one to leave", || {
        sites().all(|pid| pid != frozen).then_some(())
    });
    lab.nothing_is_left("a site stood still");
}

fn now() -> String {
    towline_host::clock::now().to_string()
}

impl Lab {
    fn stale_since(&self, run: &str) -> Option<String> {
        let runs = self.runs();
        let found = runs.iter().find(|known| known["id"] == run).unwrap();
        found["stale_since"].as_str().map(str::to_owned)
    }

    #[track_caller]
    fn until_stale(&self, run: &str) -> String {
        until(&format!("{run} to be stale"), || self.stale_since(run))
    }

    #[track_caller]
    fn until_fresh(&self, run: &str) {
        until(&format!("{run} to be fresh"), || {
            self.stale_since(run).is_none().then_some(())
        });
    }
}
