//! The history by itself, in memory.

mod entries;

use super::{Filter, History, Target};
use towline_core::command::Program;
use towline_core::event::RunEvent;
use towline_core::job::Job;
use towline_core::plan::{PLAN_VERSION, Plan, Request, plan_runs};
use towline_core::reason::Ending;
use towline_core::resolve::{Resolved, Shape};
use towline_core::state::{Phase, RunState, Step, reduce};
use towline_core::time::Moment;
use towline_core::{ErrorKind, RunId};

fn plan(name: &str, random: u32, runs: u32) -> Plan {
    let id = RunId::new(name, 1_700_000_000, random);
    let combinations: Vec<_> = (1..=runs)
        .map(|number| {
            if runs > 1 {
                vec![("i".to_owned(), number.to_string())]
            } else {
                Vec::new()
            }
        })
        .collect();
    let shape = Shape {
        nodes: 1,
        ranks_per_node: 1,
        once: false,
        gpus_per_node: 0,
        cpus_per_node: None,
        memory: None,
    };
    Plan {
        version: PLAN_VERSION,
        runs: plan_runs(&id, name, &combinations).expect("plain names"),
        id,
        cluster: "local".into(),
        kind: "local".into(),
        job: Job::default(),
        resolved: Resolved {
            shape,
            tier: towline_core::job::Tier::Standard,
            time: None,
            program: Program::Argv(vec!["train".into(), "${{i}}".into()]),
            setup: Vec::new(),
            workdir: "/".into(),
            umask: 0o022,
            limits: None,
            env: [].into(),
            inherited: [("PATH".to_owned(), "/bin".to_owned())].into(),
            secrets: Vec::new(),
            retry: None,
            hold_on_failure: None,
            git: None,
            code: None,
            container: None,
            io: Vec::new(),
            copy: None,
        },
        request: Request {
            text: String::new(),
        },
        notes: Vec::new(),
        after: Vec::new(),
        resubmits: None,
        adopted: None,
        made: None,
        whole_node_gpus: None,
        agent: None,
    }
}

fn queued() -> RunState {
    RunState {
        phase: Phase::Queued,
        ..RunState::default()
    }
}

fn submit(history: &History, plan: &Plan) -> Option<Vec<i64>> {
    let batch = history.batch(true).expect("a batch begins");
    let keys = batch
        .submit(plan, &queued(), Moment(1))
        .expect("it is written");
    batch.commit().expect("it is committed");
    keys
}

fn end(history: &History, key: i64, at: i64) {
    let event = RunEvent::Ended {
        attempt: 0,
        ending: Ending::success(),
    };
    let Ok(Step::Changed(state)) = reduce(&queued(), &event) else {
        panic!("a queued run may end")
    };
    let batch = history.batch(false).expect("a batch begins");
    batch
        .event(key, &event, &state, Moment(at))
        .expect("it is written");
    batch.commit().expect("it is committed");
}

#[test]
fn submitting_twice_is_submitting_once_and_the_plan_comes_back_whole() {
    let history = History::in_memory();
    let plan = plan("train", 0xaaaa_0001, 3);
    assert_eq!(submit(&history, &plan).map(|keys| keys.len()), Some(3));
    assert_eq!(submit(&history, &plan), None);
    let stored = history
        .submission_of(&plan.runs[1].id)
        .expect("it reads")
        .expect("it is there");
    assert_eq!(stored.plan.resolved, plan.resolved);
    let runs = history.runs_of(&plan.id).expect("it reads");
    assert_eq!(
        runs.iter()
            .map(|run| run.command.as_str())
            .collect::<Vec<_>>(),
        ["train '1'", "train '2'", "train '3'"]
    );
}

#[test]
fn a_batch_that_is_dropped_never_was() {
    let history = History::in_memory();
    let batch = history.batch(true).expect("a batch begins");
    batch
        .submit(&plan("train", 1, 1), &queued(), Moment(1))
        .expect("it is written");
    drop(batch);
    assert_eq!(history.count(&Filter::default()).expect("it counts"), 0);
}

#[test]
fn references_are_found_by_suffix_then_by_part_and_never_guessed() {
    let history = History::in_memory();
    submit(&history, &plan("alpha", 0x1111_2fc7, 1));
    submit(&history, &plan("beta", 0x2222_2fc7, 1));
    let sweep = plan("gamma", 0x3333_4444, 2);
    submit(&history, &sweep);
    let ambiguous = history.find_to_read("2fc7").expect_err("two fit");
    assert_eq!(ambiguous.kind(), ErrorKind::Ambiguous);
    assert!(ambiguous.message().contains("alpha") && ambiguous.message().contains("beta"));
    assert!(matches!(history.find_to_read("22222fc7"), Ok(Target::Run(run)) if run.name == "beta"));
    assert!(matches!(history.find_to_read("alpha"), Ok(Target::Run(run)) if run.name == "alpha"));
    assert_eq!(
        history
            .find_to_change("alpha")
            .expect_err("a part is not enough")
            .kind(),
        ErrorKind::NotFound
    );
    assert_eq!(
        history.find_to_change("fc7").expect_err("too short").kind(),
        ErrorKind::Usage
    );
    assert!(
        matches!(history.find_to_change("33334444"), Ok(Target::Sweep(_, runs)) if runs.len() == 2)
    );
    assert!(
        matches!(history.find_to_change("33334444-2"), Ok(Target::Run(run)) if run.parameters[0].1 == "2")
    );
    assert!(matches!(history.find_to_read("@"), Ok(Target::Sweep(id, _)) if id == sweep.id));
}

#[test]
fn what_is_forgotten_takes_its_submission_along_and_what_runs_stays() {
    let history = History::in_memory();
    let plan = plan("train", 7, 2);
    let keys = submit(&history, &plan).expect("new");
    end(&history, keys[0], 50);
    assert_eq!(history.prunable(Moment(100), 0).expect("it reads").len(), 1);
    assert_eq!(
        history.prunable(Moment(100), 2).expect("it reads").len(),
        0,
        "the newest stay"
    );
    let forget = |run: &RunId| {
        let batch = history.batch(true).expect("a batch begins");
        let gone = batch.forget(run).expect("it is written");
        batch.forget_unused_environments().expect("it is written");
        batch.commit().expect("it is committed");
        gone
    };
    assert!(forget(&plan.runs[0].id));
    assert!(!forget(&plan.runs[1].id), "it has not ended");
    assert!(history.submission(&plan.id).expect("it reads").is_some());
    end(&history, keys[1], 60);
    assert!(forget(&plan.runs[1].id));
    assert!(history.submission(&plan.id).expect("it reads").is_none());
}
