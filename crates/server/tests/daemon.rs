//! The daemon, input by input: what it wants done, in its order.

use std::time::Duration;
use towline_core::Error;
use towline_core::plan::PLAN_VERSION;
use towline_core::reason::Ending;
use towline_core::time::Moment;
use towline_server::daemon::{Daemon, Effect, Hardware, Input, Now, Settings, Write, Written};
use towline_wire::daemon::{Hello, Limits, PrivateSecrets, Reply, Request, Submit};
use towline_wire::runner::FromRunner;

const RUN: &str = "job-1700000000-00000001";

struct Driven {
    daemon: Daemon,
    now: Duration,
    runner: String,
}

fn time(steady: Duration) -> Now {
    let millis = i64::try_from(steady.as_millis()).expect("a short test");
    Now {
        wall: Moment(1_700_000_000_000 + millis),
        steady,
    }
}

impl Driven {
    /// A daemon with one runner that waits.
    fn new() -> Self {
        let settings = Settings {
            boot: "boot".to_owned(),
            pid: 1,
            host: "here".to_owned(),
            begun: Moment(0),
            grace_millis: 10_000,
            idle_time: Duration::from_secs(300),
        };
        let hardware = Hardware {
            cpus: 2,
            memory: 1 << 30,
            gpus: 0,
        };
        let daemon = Daemon::new(settings, hardware, Limits::default(), time(Duration::ZERO));
        let mut driven = Self {
            daemon,
            now: Duration::ZERO,
            runner: String::new(),
        };
        driven.step(Input::Begin(Box::default()));
        let started = driven.step(Input::Ready);
        let [Effect::StartRunner { name }] = started.as_slice() else {
            panic!("one runner is started: {started:?}");
        };
        driven.runner.clone_from(name);
        let name = driven.runner.clone();
        driven.step(Input::RunnerStarted { name });
        driven
    }

    fn step(&mut self, input: Input) -> Vec<Effect> {
        let effects = self.daemon.step(input, time(self.now));
        let is_seen = |effect: &Effect| !matches!(effect, Effect::Pass(_) | Effect::Log(_));
        effects.into_iter().filter(is_seen).collect()
    }

    fn ask(&mut self, connection: u64, request: Request) -> Vec<Effect> {
        self.step(Input::Asked {
            connection,
            hello: Box::new(Hello::new(request)),
            limits_are_possible: true,
        })
    }

    fn submit(&mut self) -> Vec<Effect> {
        self.ask(1, Request::Submit(Box::new(submit())))
    }

    /// A run that is with its runner.
    fn started() -> Self {
        let mut driven = Self::new();
        driven.submit();
        driven.step(Input::Flush);
        let keys = Written::Submitted(Some(vec![1]));
        driven.step(Input::Committed(Ok(vec![keys])));
        driven
    }

    fn ended(&mut self) -> Vec<Effect> {
        self.step(Input::Runner {
            name: self.runner.clone(),
            message: FromRunner::Ended {
                run: RUN.to_owned().try_into().expect("an id"),
                attempt: 1,
                at: Moment(0),
                ending: Ending::success(),
            },
        })
    }
}

fn submit() -> Submit {
    let plan = serde_json::json!({
        "version": PLAN_VERSION,
        "id": RUN,
        "cluster": "local",
        "kind": "local",
        "runs": [{"id": RUN, "name": "job"}],
        "job": {"command": ["train"]},
        "resolved": {
            "shape": {"nodes": 1, "ranks_per_node": 1, "gpus_per_node": 0},
            "tier": "standard",
            "program": {"words": ["train"]},
            "workdir": "/",
            "umask": 18
        },
        "request": {"text": ""}
    });
    Submit {
        plan: serde_json::from_value(plan).expect("a plan"),
        secrets: PrivateSecrets::default(),
        limits: Limits::default(),
        cluster: None,
    }
}

fn full<T>() -> towline_core::Result<T> {
    Err(Error::no_room("the disk is full"))
}

#[test]
fn a_submission_is_on_disk_before_it_is_answered_and_before_it_starts() {
    let mut driven = Driven::new();
    assert!(
        driven.submit().is_empty(),
        "nothing happens before the write"
    );
    let effects = driven.step(Input::Flush);
    let [
        Effect::Commit {
            writes,
            durable: true,
            ..
        },
    ] = effects.as_slice()
    else {
        panic!("one synced write: {effects:?}");
    };
    let [Write::Submit(submission)] = &*writes[0] else {
        panic!("{writes:?}");
    };
    assert!(
        submission.intent.is_some(),
        "its start is in the same write"
    );
    let keys = Written::Submitted(Some(vec![1]));
    let effects = driven.step(Input::Committed(Ok(vec![keys])));
    let [Effect::Assign(assign), Effect::Reply { reply, is_last, .. }] = effects.as_slice() else {
        panic!("then it starts, then it is answered: {effects:?}");
    };
    assert_eq!(assign.chosen.runner, driven.runner);
    assert!(*is_last && matches!(**reply, Reply::Submitted { .. }));
}

#[test]
fn a_submission_that_cannot_be_written_is_refused_and_its_runner_waits_again() {
    let mut driven = Driven::new();
    driven.submit();
    driven.step(Input::Flush);
    let effects = driven.step(Input::Committed(full()));
    let [Effect::Reply { reply, .. }] = effects.as_slice() else {
        panic!("a refusal and nothing else: {effects:?}");
    };
    assert!(matches!(**reply, Reply::Refused(_)));
    // The same runner takes the next one.
    driven.submit();
    driven.step(Input::Flush);
    let keys = Written::Submitted(Some(vec![1]));
    let effects = driven.step(Input::Committed(Ok(vec![keys])));
    assert!(
        matches!(effects.first(), Some(Effect::Assign(assign)) if assign.chosen.runner == driven.runner),
        "{effects:?}"
    );
}

#[test]
fn an_end_that_cannot_be_written_is_tried_again_and_nothing_passes_it() {
    let mut driven = Driven::started();
    driven.ended();
    let first = driven.step(Input::Flush);
    assert!(matches!(first.as_slice(), [Effect::Commit { .. }]));
    driven.step(Input::Committed(full()));
    // A submission behind it is refused with the same words, and nothing is written.
    let mut other = submit();
    other.plan.id = "job-1700000000-00000002"
        .to_owned()
        .try_into()
        .expect("an id");
    other.plan.runs[0].id = other.plan.id.clone();
    driven.ask(2, Request::Submit(Box::new(other)));
    assert!(
        driven.step(Input::Flush).is_empty(),
        "it waits for the disk"
    );
    driven.step(Input::Tick { is_needed: false });
    let again = driven.step(Input::Flush);
    let [Effect::Commit { writes, .. }] = again.as_slice() else {
        panic!("all at once: {again:?}");
    };
    let is_end = |writes: &[Write]| matches!(writes, [Write::Event(_)]);
    assert!(is_end(&writes[0]), "the end first: {writes:?}");
    let alone = driven.step(Input::Committed(full()));
    let [Effect::Commit { writes, .. }] = alone.as_slice() else {
        panic!("then one by one: {alone:?}");
    };
    assert!(writes.len() == 1 && is_end(&writes[0]));
    let effects = driven.step(Input::Committed(full()));
    let refused = |effect: &Effect| matches!(effect, Effect::Reply { connection: 2, reply, .. } if matches!(**reply, Reply::Refused(_)));
    assert!(effects.iter().any(refused), "{effects:?}");
    assert!(
        !effects
            .iter()
            .any(|effect| matches!(effect, Effect::Commit { .. })),
        "nothing behind a failed write is written: {effects:?}"
    );
}

#[test]
fn a_cancel_is_on_disk_before_the_runner_is_told() {
    let mut driven = Driven::started();
    let run = RUN.to_owned().try_into().expect("an id");
    assert!(
        driven
            .ask(
                2,
                Request::Cancel {
                    runs: vec![run],
                    by: None,
                }
            )
            .is_empty()
    );
    let effects = driven.step(Input::Flush);
    assert!(
        matches!(effects.as_slice(), [Effect::Commit { durable: true, .. }]),
        "{effects:?}"
    );
    let effects = driven.step(Input::Committed(Ok(vec![Written::Event(1)])));
    let [
        Effect::Reply { reply, .. },
        Effect::StopAttempt { runner, .. },
    ] = effects.as_slice()
    else {
        panic!("answered, then told: {effects:?}");
    };
    assert!(matches!(**reply, Reply::Cancelling { .. }));
    assert_eq!(*runner, driven.runner);
}

#[test]
fn an_idle_daemon_leaves_and_one_that_is_needed_stays() {
    let mut driven = Driven::new();
    let leaves = |effects: &[Effect]| effects.iter().any(|effect| matches!(effect, Effect::Leave));
    driven.now = Duration::from_secs(299);
    assert!(!leaves(&driven.step(Input::Tick { is_needed: false })));
    driven.now = Duration::from_secs(301);
    assert!(!leaves(&driven.step(Input::Tick { is_needed: true })));
    driven.now = Duration::from_secs(602);
    assert!(leaves(&driven.step(Input::Tick { is_needed: false })));
}
