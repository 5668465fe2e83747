//! Runs that wait: hold, resume and edit by the real scheduler, and runs after other runs.

use crate::lab::{Lab, until_within};
use towline_testkit::real::slurm::Options;

impl Lab {
    /// A field of the job's record: `TimeLimit`, `QOS`.
    fn field(&self, run: &str, name: &str) -> String {
        self.field_of(&self.job_of(run), name)
    }

    fn field_of(&self, job: &str, name: &str) -> String {
        let record = self
            .slurm()
            .root("login", ["scontrol", "show", "job", "-o", job]);
        let record = record.ok().stdout;
        let key = format!("{name}=");
        let mut words = record.split_whitespace();
        let found = words
            .find_map(|word| word.strip_prefix(&key))
            .unwrap_or_default();
        found.to_owned()
    }
}

#[test]
fn a_job_is_held_resumed_and_edited() {
    let lab = Lab::own(&Options {
        nodes: 1,
        cpus: 2,
        ..Options::default()
    });
    let busy = lab.occupant("bob", &["--exclusive", "-t", "60"]);
    let run = lab
        .tow(["submit", "--time", "10m", "echo", "ran"])
        .ok()
        .id();
    lab.until_state(&run, "queued");
    lab.tow(["hold", &run]).ok();
    assert_eq!(lab.field(&run, "Reason"), "JobHeldUser");
    lab.cancel(&busy);
    // There is room, and what came later goes before it.
    let other = lab.tow(["submit", "true"]).ok().id();
    assert_eq!(lab.ended(&other)["state"], "succeeded");
    assert_eq!(lab.home.state_of(&run), "queued");
    let why = until_within(20, "the reason", || {
        let why = lab.tow(["why", &run]).ok().stdout;
        why.contains("JobHeldUser").then_some(why)
    });
    assert!(why.contains("tow resume"), "{why}");
    lab.tow(["edit", &run, "--time", "5m", "--tier", "premium"])
        .ok();
    assert_eq!(lab.field(&run, "TimeLimit"), "00:05:00");
    assert_eq!(lab.field(&run, "QOS"), "premium");
    assert_eq!(lab.home.show(&run)["tier"], "premium");
    let size = lab.tow(["edit", &run, "--nodes", "2"]);
    assert_eq!(size.code, 123, "{size:?}");
    assert!(size.stderr.contains("tow resubmit"), "{}", size.stderr);
    lab.tow(["resume", &run]).ok();
    assert_eq!(lab.ended(&run)["state"], "succeeded");
    assert_eq!(lab.tow(["logs", &run]).ok().stdout, "ran\n");
    let late = lab.tow(["hold", &run]);
    assert_eq!(late.code, 123, "{late:?}");
}

#[test]
fn of_a_sweep_some_tasks_or_all_that_wait_are_held() {
    let lab = Lab::own(&Options {
        nodes: 1,
        cpus: 1,
        ..Options::default()
    });
    let words = [
        "submit",
        "--sweep",
        "a=1-4",
        "sh",
        "-c",
        "test ${{a}} != 1 || sleep 600",
    ];
    let sweep = lab.tow(words).ok().id();
    let run = |number: u32| format!("{sweep}-{number}");
    lab.until_state(&run(1), "running");
    let held = lab.tow(["hold", &run(3), "--json"]).ok().json();
    assert_eq!(held["changed"].as_array().unwrap().len(), 1, "{held}");
    let all = lab.tow(["hold", &sweep, "--json"]).ok().json();
    assert_eq!(all["changed"].as_array().unwrap().len(), 3, "{all}");
    assert_eq!(all["unchanged"][0]["id"], run(1).as_str(), "{all}");
    // The task that runs is in the same array, and feels nothing of it.
    let of_task = |number: u32, name: &str| {
        let job = lab.job_of(&sweep);
        let array = job.split('_').next().unwrap_or_default();
        let task = format!("{array}_{number}");
        lab.field_of(&task, name)
    };
    assert_eq!(of_task(2, "Reason"), "JobHeldUser");
    assert_ne!(of_task(1, "Reason"), "JobHeldUser");
    let limit = of_task(1, "TimeLimit");
    lab.tow(["edit", &sweep, "--time", "7m"]).ok();
    assert_eq!(of_task(2, "TimeLimit"), "00:07:00");
    assert_eq!(of_task(1, "TimeLimit"), limit);
    let said = lab.tow(["hold", &sweep]).ok().stdout;
    let runs_already = format!("{} unchanged: it runs already", run(1));
    assert!(said.contains(&runs_already), "{said}");
    lab.tow(["abort", &run(1), "--wait"]).ok();
    lab.tow(["resume", &run(3)]).ok();
    assert_eq!(lab.ended(&run(3))["state"], "succeeded");
    for number in [2, 4] {
        assert_eq!(lab.home.state_of(&run(number)), "queued");
    }
    lab.tow(["resume", &sweep]).ok();
    for number in [2, 4] {
        assert_eq!(lab.ended(&run(number))["state"], "succeeded");
    }
}

#[test]
fn a_run_on_the_cluster_follows_one_of_this_machine_and_the_reverse() {
    let lab = Lab::shared();
    let gate = "until [ -e go ]; do sleep 0.05; done";
    let first = lab
        .tow(["submit", "-c", "local", "--in-place", "sh", "-c", gate])
        .ok()
        .id();
    let second = lab
        .tow(["submit", "--after", &first, "echo", "second"])
        .ok()
        .id();
    let third = lab
        .tow(["submit", "-c", "local", "--after", &second, "true"])
        .ok()
        .id();
    let never = lab
        .tow(["submit", "--after", &format!("{second}:failed"), "true"])
        .ok()
        .id();
    assert_eq!(lab.home.show(&second)["after"][0]["run"], first.as_str());
    assert_eq!(lab.home.state_of(&second), "drafted");
    assert!(lab.jobs_of(&second).is_empty(), "nothing was sent");
    let why = lab.tow(["why", &second]).ok().stdout;
    assert!(why.contains("it begins after"), "{why}");
    // It is not lost with its daemon, nor sent too early by the next.
    assert!(lab.home.kill_daemon());
    lab.tow(["ps", "--state", "active"]).ok();
    assert!(lab.jobs_of(&second).is_empty());
    lab.home.write("go", "");
    assert_eq!(lab.ended(&second)["state"], "succeeded");
    assert_eq!(lab.tow(["logs", &second]).ok().stdout, "second\n");
    assert_eq!(lab.ended(&third)["state"], "succeeded");
    let given_up = lab.ended(&never);
    assert_eq!(
        (&given_up["state"], &given_up["reason"]),
        (&"cancelled".into(), &"dependency".into())
    );
    assert!(lab.jobs_of(&never).is_empty());
}
