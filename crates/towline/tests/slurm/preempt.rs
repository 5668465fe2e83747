//! Runs that are evicted, or out of time, and go on.

use crate::lab::{Lab, together, until_within};
use std::fs;
use towline_testkit::real::slurm::Options;

/// Ends at its second start; says what it saw, each signal too. It speaks when it is older than a
/// second: a younger one may receive the signal twice, because it may have missed the first.
const BASIC: &str = "
name: low
script: |
  exec 2>/dev/null
  trap 'echo attempt $TOW_ATTEMPT leaves; left=1' TERM
  sleep 1.1
  echo attempt $TOW_ATTEMPT begins
  if [ $TOW_ATTEMPT = 1 ]; then
    while [ -z $left ]; do sleep 0.1; done
    for more in 1 2 3 4 5 6 7 8; do sleep 0.1; done
    exit 0
  fi
  echo attempt $TOW_ATTEMPT is done
";

fn premium_preempts_basic(lab: &Lab) {
    let low = lab
        .home
        .submit_file(BASIC, &["--tier", "basic", "--cpus", "4"]);
    Lab::until_text(&lab.far(&low).join("attempt-1.rank-0.log"));
    let high = lab
        .tow([
            "submit",
            "--tier",
            "premium",
            "--cpus",
            "4",
            "--name",
            "high",
            "sh",
            "-c",
            "until [ -e ~/goes ]; do sleep 0.1; done",
        ])
        .ok()
        .id();
    lab.until_state(&high, "running");
    until_within(60, "the end of attempt 1", || {
        lab.far(&low).join("attempt-1.end").exists().then_some(())
    });
    lab.until_state(&low, "queued");
    let shown = lab.home.show(&low);
    assert_eq!(shown["attempt"], 1, "{shown}");
    let why = lab.tow(["why", &low]).ok().stdout;
    assert!(
        why.contains("evicted") || why.contains("preempted") || why.contains("requeue"),
        "{why}"
    );
    fs::write(lab.slurm().home("alice").join("goes"), "").unwrap();
    assert_eq!(lab.ended(&high)["state"], "succeeded");
    let ended = lab.ended(&low);
    assert_eq!(
        (ended["state"].as_str(), ended["attempt"].as_u64()),
        (Some("succeeded"), Some(2)),
        "{ended}"
    );
    let attempt = |number: &str| lab.tow(["logs", &low, "--attempt", number]).ok().stdout;
    assert_eq!(attempt("1"), "attempt 1 begins\nattempt 1 leaves\n");
    assert_eq!(attempt("2"), "attempt 2 begins\nattempt 2 is done\n");
    assert_eq!(
        lab.tow(["logs", &low]).ok().stdout,
        format!("{}{}", attempt("1"), attempt("2"))
    );
    assert!(!lab.far(&low).join("attempt-3.claim").exists());
}

#[test]
fn evicted_runs_go_on_and_can_be_cancelled() {
    together(&[
        premium_preempts_basic_by_qos,
        premium_preempts_basic_by_partition,
        an_evicted_run_that_waits_is_cancelled_for_good,
    ]);
}

fn premium_preempts_basic_by_qos() {
    premium_preempts_basic(&Lab::own(&Options {
        nodes: 1,
        cpus: 4,
        ..Options::default()
    }));
}

fn premium_preempts_basic_by_partition() {
    let lab = Lab::own(&Options {
        nodes: 1,
        cpus: 4,
        accounting: false,
        ..Options::default()
    });
    lab.configure(", tiers: {premium: {partition: premium}, basic: {partition: basic}}");
    premium_preempts_basic(&lab);
}

#[test]
fn the_end_of_time_and_of_power() {
    together(&[
        a_job_longer_than_its_time_goes_on_if_it_may_and_ends_if_not,
        crate::logs::every_byte_is_there_that_was_written_before_a_power_cut,
    ]);
}

/// Two at once: a minute is the shortest time there is.
fn a_job_longer_than_its_time_goes_on_if_it_may_and_ends_if_not() {
    let lab = Lab::own(&Options {
        nodes: 1,
        ..Options::default()
    });
    let script = "
name: long
resources: {time: 1m}
script: |
  exec 2>/dev/null
  done=$(cat ~/done-$WHICH || echo 0)
  echo from $done
  trap 'echo $done > ~/done-$WHICH; echo saved $done; exit 0' TERM
  while [ $done -lt 600 ]; do sleep 0.1; done=$((done + 1)); done
  echo finished
";
    let once = lab.home.submit_file(script, &["--env", "WHICH=once"]);
    let several = lab.home.submit_file(
        &format!("retry: {{when: [time_limit], max: 5}}{script}"),
        &["--env", "WHICH=several"],
    );
    let ended = lab.ended(&once);
    assert_eq!(
        (ended["state"].as_str(), ended["reason"].as_str()),
        (Some("failed"), Some("time_limit")),
        "{ended}"
    );
    let log = lab.tow(["logs", &once]).ok().stdout;
    assert!(
        log.starts_with("from 0\nsaved ") && log.lines().count() == 2,
        "{log}"
    );
    let why = lab.tow(["why", &once]).ok().stdout;
    assert!(
        why.contains("--time") && why.contains("time_limit"),
        "{why}"
    );
    let ended = lab.ended(&several);
    assert_eq!(
        ended["state"],
        "succeeded",
        "{ended} {}",
        lab.tow(["why", &several]).stdout
    );
    let attempts = ended["attempt"].as_u64().unwrap();
    assert!(attempts >= 2, "{ended}");
    let logs: Vec<String> = (1..=attempts)
        .map(|number| {
            lab.tow(["logs", &several, "--attempt", &number.to_string()])
                .ok()
                .stdout
        })
        .collect();
    let mut from = "from 0".to_owned();
    for log in &logs[..logs.len() - 1] {
        let lines: Vec<&str> = log.lines().collect();
        assert_eq!((lines.len(), lines[0]), (2, from.as_str()), "{logs:?}");
        from = lines[1].replace("saved", "from");
    }
    assert_eq!(logs.last().unwrap(), &format!("{from}\nfinished\n"));
    lab.assert_no_jobs();
}

/// Evicted and back in the queue: there a cancel ends it, whoever says so.
fn an_evicted_run_that_waits_is_cancelled_for_good() {
    let lab = Lab::own(&Options {
        nodes: 1,
        cpus: 4,
        ..Options::default()
    });
    let evicted = |name: &str| {
        let id = lab
            .home
            .submit_file(BASIC, &["--tier", "basic", "--cpus", "4", "--name", name]);
        Lab::until_text(&lab.far(&id).join("attempt-1.rank-0.log"));
        lab.slurm()
            .root("ctl", ["scontrol", "requeue", &lab.job_of(&id)])
            .ok();
        until_within(60, "the end of attempt 1", || {
            lab.far(&id).join("attempt-1.end").exists().then_some(())
        });
        id
    };
    let ours = evicted("ours");
    lab.tow(["abort", &ours]).ok();
    let ended = lab.ended(&ours);
    assert_eq!(
        (ended["state"].as_str(), ended["attempt"].as_u64()),
        (Some("cancelled"), Some(1)),
        "{ended}"
    );
    let theirs = evicted("theirs");
    lab.slurm()
        .exec("login", "alice", ["scancel", &lab.job_of(&theirs)])
        .ok();
    let ended = lab.ended(&theirs);
    assert_eq!(
        (ended["state"].as_str(), ended["attempt"].as_u64()),
        (Some("cancelled"), Some(1)),
        "{ended}"
    );
    assert_eq!(
        lab.jobs_of(&theirs).len(),
        1,
        "it is not submitted again: {:?}",
        lab.jobs_of(&theirs)
    );
    lab.assert_no_jobs();
    assert_eq!(
        lab.tow(["logs", &theirs]).ok().stdout,
        "attempt 1 begins\nattempt 1 leaves\n"
    );
}
