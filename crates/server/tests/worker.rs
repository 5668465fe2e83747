//! The worker of a far cluster, input by input: what it calls and what it reports, and nothing else.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use towline_core::cluster::{AttemptReport, Claim, JobStart, Observed, RunRef, RunReport};
use towline_core::plan::{PLAN_VERSION, Plan};
use towline_core::state::Native;
use towline_core::time::Moment;
use towline_core::{Error, RunId};
use towline_server::daemon::{Order, Report};
use towline_server::worker::{
    About, Call, CallAnswer, StatusNote, Worker, WorkerEffect, WorkerInput,
};

const SECOND: Duration = Duration::from_secs(1);

fn plan() -> Arc<Plan> {
    let id = "job-1700000000-00000001";
    let plan = serde_json::json!({
        "version": PLAN_VERSION,
        "id": id,
        "cluster": "lab",
        "kind": "slurm",
        "runs": [{"id": id, "name": "job"}],
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
    Arc::new(serde_json::from_value(plan).expect("a plan"))
}

fn run() -> RunId {
    plan().id.clone()
}

/// A worker, and what it last wanted.
struct Driven {
    worker: Worker,
    now: Duration,
}

impl Driven {
    fn new(listing_delay: Duration) -> Self {
        let about = About {
            watches: false,
            listing_delay,
        };
        Self {
            worker: Worker::new(about, Duration::ZERO),
            now: Duration::ZERO,
        }
    }

    /// The calls and reports that follow from an input, in words.
    fn step(&mut self, input: WorkerInput) -> Vec<String> {
        let effects = self.worker.step(input, self.now);
        effects.iter().filter_map(word).collect()
    }
    fn order(&mut self, order: Order) -> Vec<String> {
        self.step(WorkerInput::Order(order))
    }
    fn answer(&mut self, answer: CallAnswer) -> Vec<String> {
        self.step(WorkerInput::Answer(answer))
    }
    fn wake_after(&mut self, pause: Duration) -> Vec<String> {
        self.now += pause;
        self.step(WorkerInput::Wake)
    }
    fn submit(&mut self) -> Vec<String> {
        let order = Order::Submit {
            plan: plan(),
            again: false,
        };
        assert_eq!(self.order(order), [""; 0]);
        self.wake_after(Duration::ZERO)
    }
}

fn word(effect: &WorkerEffect) -> Option<String> {
    let word = match effect {
        WorkerEffect::Call(call) => match call {
            Call::Stage(_) => "stage",
            Call::Submit(_) => "submit",
            Call::GiveUp(_) => "give up",
            Call::Observe { .. } => "observe",
            Call::Cancel { .. } => "cancel",
            Call::BringLogs(_) => "logs",
            Call::Explain(_) => "explain",
            Call::Forget { .. } => "forget",
            Call::Change { .. } => "change",
        },
        WorkerEffect::Tell(report) => match report {
            Report::Staged { .. } => "tells: staged",
            Report::Submitted { result: Ok(_), .. } => "tells: submitted",
            Report::Submitted { .. } => "tells: refused",
            Report::NotCancelled { .. } => "tells: not cancelled",
            Report::Withdrawn { .. } => "tells: withdrawn",
            Report::Observed { .. } => "tells: observed",
            Report::Looked { .. } => "tells: looked",
            Report::Changed { .. } => "tells: changed",
            Report::Answered { .. } => "tells: answered",
        },
        WorkerEffect::Status(_) | WorkerEffect::HangUp | WorkerEffect::Pass(_) => return None,
    };
    Some(word.to_owned())
}

fn unreachable<T>() -> Result<T, Error> {
    Err(Error::unreachable("no network"))
}

fn observed(native: Option<&str>) -> CallAnswer {
    let report = RunReport {
        run: run(),
        is_unknown: native.is_none(),
        is_lost: false,
        cancelled: false,
        attempts: Vec::new(),
        native: native.map(|id| Native {
            id: id.to_owned(),
            ..Native::default()
        }),
        state: None,
    };
    CallAnswer::Observed {
        observed: Ok(Observed {
            at: Moment(0),
            runs: vec![report],
            unasked: None,
            settles_in: None,
        }),
        pages: HashMap::new(),
    }
}

#[test]
fn a_submission_is_staged_then_sent_then_told_then_looked_at() {
    let mut driven = Driven::new(Duration::ZERO);
    assert_eq!(driven.submit(), ["stage"]);
    let sent = driven.answer(CallAnswer::Staged(Ok(())));
    assert_eq!(sent, ["tells: staged", "submit"]);
    let told = driven.answer(CallAnswer::Submitted(Ok(vec!["7".to_owned()])));
    assert_eq!(told, ["tells: submitted", "observe"]);
    assert_eq!(driven.answer(observed(Some("7"))), ["tells: observed"]);
    assert_eq!(driven.wake_after(Duration::ZERO), [""; 0], "nothing is due");
}

/// Sends a submission whose answer is lost, and waits until it is sent again and refused.
fn refused_after_a_lost_answer(listing_delay: Duration) -> Driven {
    let mut driven = Driven::new(listing_delay);
    driven.submit();
    driven.answer(CallAnswer::Staged(Ok(())));
    // The cluster may have taken it, so it is looked at.
    assert_eq!(
        driven.answer(CallAnswer::Submitted(unreachable())),
        ["observe"]
    );
    let failed = CallAnswer::Observed {
        observed: unreachable(),
        pages: HashMap::new(),
    };
    assert_eq!(driven.answer(failed), [""; 0]);
    assert_eq!(driven.wake_after(Duration::ZERO), [""; 0], "it pauses");
    assert_eq!(driven.wake_after(SECOND), ["stage"]);
    driven.answer(CallAnswer::Staged(Ok(())));
    let refused = CallAnswer::Submitted(Err(Error::config("the partition is unknown")));
    assert_eq!(driven.answer(refused), ["observe"], "it is looked up first");
    driven
}

#[test]
fn a_refusal_after_a_lost_answer_is_no_refusal_if_the_cluster_has_the_run() {
    let mut driven = refused_after_a_lost_answer(Duration::ZERO);
    let told = driven.answer(observed(Some("7")));
    assert_eq!(told[0], "tells: submitted", "{told:?}");
}

#[test]
fn a_refusal_after_a_lost_answer_is_final_only_once_a_list_would_show_the_run() {
    let mut driven = refused_after_a_lost_answer(30 * SECOND);
    let told = driven.answer(observed(None));
    assert!(!told.iter().any(|word| word == "give up"), "{told:?}");
    let mut driven = refused_after_a_lost_answer(Duration::ZERO);
    assert_eq!(driven.answer(observed(None)), ["give up"]);
    let told = driven.answer(CallAnswer::GaveUp(Ok(())));
    assert_eq!(told[0], "tells: refused", "{told:?}");
}

#[test]
fn a_first_refusal_is_final_unless_what_it_left_cannot_be_removed() {
    let mut driven = Driven::new(Duration::ZERO);
    driven.submit();
    driven.answer(CallAnswer::Staged(Ok(())));
    let refused = || CallAnswer::Submitted(Err(Error::config("unknown")));
    assert_eq!(driven.answer(refused()), ["give up"]);
    let told = driven.answer(CallAnswer::GaveUp(unreachable()));
    assert!(
        !told.iter().any(|word| word == "tells: refused"),
        "{told:?}"
    );
}

#[test]
fn a_submission_that_was_never_sent_is_withdrawn_and_one_that_may_have_been_is_cancelled() {
    let cancel = || Order::Cancel {
        runs: vec![RunRef::of(&run())],
    };
    let mut driven = Driven::new(Duration::ZERO);
    let order = Order::Submit {
        plan: plan(),
        again: false,
    };
    driven.order(order);
    assert_eq!(driven.order(cancel()), ["tells: withdrawn"]);
    assert_eq!(
        driven.wake_after(Duration::ZERO),
        [""; 0],
        "nothing is sent"
    );

    let mut driven = Driven::new(Duration::ZERO);
    assert_eq!(driven.submit(), ["stage"]);
    assert_eq!(driven.order(cancel()), [""; 0]);
    driven.answer(CallAnswer::Staged(Ok(())));
    let told = driven.answer(CallAnswer::Submitted(Ok(vec!["7".to_owned()])));
    assert_eq!(told, ["tells: submitted", "cancel"]);
}

#[test]
fn a_cancel_that_does_not_arrive_is_sent_again() {
    let mut driven = Driven::new(Duration::ZERO);
    let watched = vec![RunRef::of(&run())];
    driven.order(Order::Watch {
        runs: watched.clone(),
    });
    driven.order(Order::Cancel { runs: watched });
    assert_eq!(driven.wake_after(Duration::ZERO), ["cancel"]);
    assert_eq!(
        driven.answer(CallAnswer::Cancelled(unreachable())),
        ["observe"]
    );
    driven.answer(observed(Some("7")));
    assert_eq!(driven.wake_after(SECOND), ["cancel"]);
    driven.answer(CallAnswer::Cancelled(Ok(Vec::new())));
    driven.answer(observed(Some("7")));
    assert!(!driven.wake_after(SECOND).contains(&"cancel".to_owned()));
}

#[test]
fn logs_are_fetched_in_turns_and_answered_when_they_are_complete() {
    let mut driven = Driven::new(Duration::ZERO);
    let logs = Order::Logs {
        run: RunRef::of(&run()),
        connection: 1,
    };
    driven.order(logs);
    assert_eq!(driven.wake_after(Duration::ZERO), ["logs"]);
    assert_eq!(driven.answer(CallAnswer::BroughtLogs(Ok(false))), [""; 0]);
    assert_eq!(driven.wake_after(Duration::ZERO), ["logs"]);
    let told = driven.answer(CallAnswer::BroughtLogs(Ok(true)));
    assert_eq!(told, ["tells: answered"]);
    assert_eq!(driven.wake_after(Duration::ZERO), [""; 0]);
}

#[test]
fn nobody_fetches_logs_for_a_client_that_has_hung_up() {
    let mut driven = Driven::new(Duration::ZERO);
    let logs = Order::Logs {
        run: RunRef::of(&run()),
        connection: 1,
    };
    driven.order(logs);
    driven.order(Order::Abandon { connection: 1 });
    assert_eq!(driven.wake_after(Duration::ZERO), [""; 0]);
}

fn watch() -> Order {
    Order::Watch {
        runs: vec![RunRef::of(&run())],
    }
}

#[test]
fn nothing_begins_while_a_call_is_under_way() {
    let mut driven = Driven::new(Duration::ZERO);
    assert_eq!(driven.submit(), ["stage"]);
    assert_eq!(driven.wake_after(SECOND), [""; 0]);
}

#[test]
fn a_look_that_took_long_is_not_repeated_at_once() {
    let mut driven = Driven::new(Duration::ZERO);
    driven.order(watch());
    assert_eq!(driven.wake_after(Duration::ZERO), ["observe"]);
    driven.answer(observed(Some("7")));
    assert_eq!(driven.worker.wait(), SECOND, "soon after a change");
    assert_eq!(driven.wake_after(SECOND), ["observe"]);
    driven.now += SECOND;
    driven.answer(observed(Some("8")));
    // Not after a second again: the next query to the scheduler comes first.
    assert_eq!(driven.worker.wait(), 2 * SECOND);
}

#[test]
fn a_followed_log_that_is_behind_is_fetched_on() {
    let follow = || Order::Follow {
        run: RunRef::of(&run()),
        on: true,
    };
    let wait = |is_all| {
        let mut driven = Driven::new(Duration::ZERO);
        driven.order(watch());
        driven.order(follow());
        assert_eq!(driven.wake_after(Duration::ZERO), ["observe"]);
        assert_eq!(driven.answer(observed(Some("7"))), ["logs"]);
        driven.answer(CallAnswer::BroughtLogs(Ok(is_all)));
        driven.worker.wait()
    };
    assert!(wait(false) < SECOND / 10);
    assert!(wait(true) > SECOND / 10);
}

#[test]
fn a_connection_that_nobody_uses_is_closed() {
    let hangs_up = |driven: &mut Driven, pause| {
        driven.now += pause;
        let effects = driven.worker.step(WorkerInput::Wake, driven.now);
        effects
            .iter()
            .any(|effect| matches!(effect, WorkerEffect::HangUp))
    };
    let mut driven = Driven::new(Duration::ZERO);
    assert!(!hangs_up(&mut driven, 59 * SECOND));
    assert!(hangs_up(&mut driven, 2 * SECOND));
    driven.order(Order::Abandon { connection: 1 });
    assert!(!hangs_up(&mut driven, SECOND), "it was used a second ago");
    driven.order(watch());
    assert!(!hangs_up(&mut driven, 90 * SECOND), "it watches a run");
}

#[test]
fn the_status_says_whether_the_cluster_answered() {
    let notes = |answer| {
        let mut driven = Driven::new(Duration::ZERO);
        driven.order(watch());
        driven.wake_after(Duration::ZERO);
        let effects = driven.worker.step(WorkerInput::Answer(answer), driven.now);
        let last = effects.into_iter().rev().find_map(|effect| match effect {
            WorkerEffect::Status(note) => Some(note),
            _ => None,
        });
        last.expect("a note")
    };
    assert!(matches!(notes(observed(Some("7"))), StatusNote::Seen));
    let failed = CallAnswer::Observed {
        observed: unreachable(),
        pages: HashMap::new(),
    };
    assert!(matches!(notes(failed), StatusNote::Trouble { .. }));
}

#[test]
fn logs_that_cannot_be_fetched_are_trouble_only_if_the_cluster_is_away() {
    let note = |error| {
        let mut driven = Driven::new(Duration::ZERO);
        driven.order(Order::Logs {
            run: RunRef::of(&run()),
            connection: 1,
        });
        driven.wake_after(Duration::ZERO);
        let answer = CallAnswer::BroughtLogs(Err(error));
        let effects = driven.worker.step(WorkerInput::Answer(answer), driven.now);
        let first = effects.into_iter().find_map(|effect| match effect {
            WorkerEffect::Status(note) => Some(note),
            _ => None,
        });
        first.expect("a note")
    };
    let away = note(Error::unreachable("no network"));
    assert!(matches!(away, StatusNote::Trouble { .. }));
    assert!(matches!(
        note(Error::refused("no")),
        StatusNote::WaitsNoMore
    ));
}

#[test]
fn records_name_the_job_and_its_hosts_before_the_scheduler_is_asked() {
    let mut driven = Driven::new(Duration::ZERO);
    driven.order(watch());
    driven.wake_after(Duration::ZERO);
    driven.answer(observed(None));
    assert_eq!(driven.wake_after(SECOND), ["observe"]);
    let CallAnswer::Observed {
        observed: Ok(mut seen),
        pages,
    } = observed(None)
    else {
        panic!("an observation");
    };
    seen.runs[0].attempts = vec![AttemptReport {
        attempt: 1,
        claim: Some(Claim {
            by: JobStart {
                job: "7".to_owned(),
                restarts: 0,
            },
            at: Moment(0),
            hosts: vec!["node1".to_owned()],
            port: 1,
        }),
        started: None,
        held: None,
        end: None,
    }];
    let answer = CallAnswer::Observed {
        observed: Ok(seen),
        pages,
    };
    let effects = driven.worker.step(WorkerInput::Answer(answer), driven.now);
    let native = effects.into_iter().find_map(|effect| match effect {
        WorkerEffect::Tell(Report::Observed { reports }) => reports[0].native.clone(),
        _ => None,
    });
    let native = native.expect("the job");
    assert_eq!(
        (native.id.as_str(), native.hosts),
        ("7", vec!["node1".to_owned()])
    );
}

#[test]
fn a_refusal_is_not_final_if_the_cluster_did_not_say_whether_it_has_the_run() {
    let mut driven = refused_after_a_lost_answer(Duration::ZERO);
    let nothing = CallAnswer::Observed {
        observed: Ok(Observed {
            at: Moment(0),
            runs: Vec::new(),
            unasked: None,
            settles_in: None,
        }),
        pages: HashMap::new(),
    };
    let told = driven.answer(nothing);
    assert!(!told.iter().any(|word| word == "give up"), "{told:?}");
}
