//! The daemon's answers and orders, with a history that works.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use towline_core::cluster::{GpuFacts, RunRef};
use towline_core::event::RunEvent;
use towline_core::plan::{PLAN_VERSION, Plan};
use towline_core::reason::{Cause, Ending};
use towline_core::state::{Phase, RunState};
use towline_core::time::Moment;
use towline_core::{Error, RunId};
use towline_engine::history::{ActiveRun, RunKey};
use towline_server::daemon::{
    Answer, Assign, Daemon, Effect, Found, FoundRun, Hardware, Input, Now, Order, Query, Report,
    Settings, StoredRun, Write, Written,
};
use towline_wire::daemon::{
    Explanation, Hello, Limits, Observation, PrivateSecrets, Reply, Request, Status, Submit,
};
use towline_wire::runner::FromRunner;

fn id(number: u32) -> RunId {
    RunId::new("job", 1_700_000_000, number)
}

/// A plan of one run.
fn plan(number: u32, shape: &serde_json::Value, cluster: &str, kind: &str) -> Plan {
    let plan = serde_json::json!({
        "version": PLAN_VERSION,
        "id": id(number),
        "cluster": cluster,
        "kind": kind,
        "runs": [{"id": id(number), "name": "job"}],
        "job": {"command": ["train"]},
        "resolved": {
            "shape": shape,
            "tier": "standard",
            "program": {"words": ["train"]},
            "workdir": "/",
            "umask": 18
        },
        "request": {"text": ""}
    });
    serde_json::from_value(plan).expect("a plan")
}

fn gpus(nodes: u32, gpus: u32) -> serde_json::Value {
    serde_json::json!({"nodes": nodes, "ranks_per_node": 1, "gpus_per_node": gpus})
}

/// A daemon, and a history that holds what it writes.
struct Driven {
    daemon: Daemon,
    now: Duration,
    states: BTreeMap<RunKey, (RunId, RunState)>,
    plans: BTreeMap<RunId, Arc<Plan>>,
    events: Vec<RunEvent>,
    reads: Vec<Query>,
    disk_is_full: bool,
}

impl Driven {
    /// On a machine with four CPUs and two GPUs, which are known.
    fn new(found: Found) -> (Self, Vec<Effect>) {
        let settings = Settings {
            boot: "boot".to_owned(),
            pid: 1,
            host: "here".to_owned(),
            begun: Moment(0),
            grace_millis: 10_000,
            idle_time: Duration::from_secs(300),
        };
        let hardware = Hardware {
            cpus: 4,
            memory: 8 << 30,
            gpus: 2,
        };
        let now = Now {
            wall: Moment(1_700_000_000_000),
            steady: Duration::ZERO,
        };
        let mut driven = Self {
            daemon: Daemon::new(settings, hardware, Limits::default(), now),
            now: Duration::ZERO,
            states: BTreeMap::new(),
            plans: BTreeMap::new(),
            events: Vec::new(),
            reads: Vec::new(),
            disk_is_full: false,
        };
        let mut effects = driven.act(Input::Begin(Box::new(found)));
        effects.extend(driven.act(Input::Ready));
        driven.see_gpus();
        (driven, effects)
    }

    fn see_gpus(&mut self) -> Vec<Effect> {
        let gpu = |index| GpuFacts {
            index,
            ..GpuFacts::default()
        };
        self.act(Input::GpusSeen(vec![gpu(0), gpu(1)]))
    }

    /// Takes an input and flushes, and answers all calls. Returns the other effects.
    fn act(&mut self, input: Input) -> Vec<Effect> {
        let mut seen = Vec::new();
        for input in [input, Input::Flush] {
            let mut next = vec![input];
            while !next.is_empty() {
                for input in std::mem::take(&mut next) {
                    let millis = i64::try_from(self.now.as_millis()).expect("a short test");
                    let now = Now {
                        wall: Moment(1_700_000_000_000 + millis),
                        steady: self.now,
                    };
                    for effect in self.daemon.step(input, now) {
                        match self.answer(&effect) {
                            Some(answer) => next.push(answer),
                            None => seen.push(effect),
                        }
                    }
                }
            }
        }
        seen
    }

    fn answer(&mut self, effect: &Effect) -> Option<Input> {
        match effect {
            Effect::Commit { .. } if self.disk_is_full => {
                Some(Input::Committed(Err(Error::no_room("the disk is full"))))
            }
            Effect::Commit { writes, .. } => {
                let writes = writes.iter().flat_map(|writes| writes.iter());
                let written = writes.map(|write| self.write(write)).collect();
                Some(Input::Committed(Ok(written)))
            }
            Effect::Read(query) => {
                self.reads.push(query.clone());
                Some(Input::Answered(self.read(query)))
            }
            Effect::StartRunner { name } => Some(Input::RunnerStarted { name: name.clone() }),
            _ => None,
        }
    }

    fn write(&mut self, write: &Write) -> Written {
        match write {
            Write::Submit(submission) => {
                let plan = &submission.plan;
                self.plans.insert(plan.id.clone(), plan.clone());
                let state = match &submission.intent {
                    Some(intent) => intent.1.clone(),
                    None => submission.state.clone(),
                };
                let key = i64::try_from(self.states.len()).expect("few") + 1;
                self.states.insert(key, (plan.id.clone(), state));
                Written::Submitted(Some(vec![key]))
            }
            Write::Event(of) => {
                if let Some((_, state)) = self.states.get_mut(&of.key) {
                    *state = of.state.clone();
                }
                self.events.push(of.event.clone());
                Written::Event(i64::try_from(self.events.len()).expect("few"))
            }
            Write::Forget { .. } => Written::Forgotten(true),
            Write::ForgetUnused => Written::Nothing,
            Write::Tag { .. } => Written::Tagged(None),
        }
    }

    fn state(&self, run: &RunId) -> Option<RunState> {
        let mut of = self.states.values().filter(|(other, _)| other == run);
        of.next().map(|(_, state)| state.clone())
    }

    fn read(&self, query: &Query) -> Answer {
        match query {
            Query::States(runs) => {
                Answer::States(Ok(runs.iter().map(|run| self.state(run)).collect()))
            }
            Query::Phases(ids) => {
                let phases = |id| {
                    self.state(id)
                        .map(|state| state.phase)
                        .into_iter()
                        .collect()
                };
                Answer::Phases(Ok(ids.iter().map(phases).collect()))
            }
            Query::Plan(of) => Answer::Plan(Ok(self.plans.get(of).cloned())),
            Query::Run(run) => {
                let plan = self.plans.get(run);
                let far = plan.filter(|plan| !plan.is_here());
                Answer::Run(Ok(self.state(run).map(|state| StoredRun {
                    run: run.clone(),
                    far: far.map(|plan| plan.cluster.clone()),
                    state,
                })))
            }
            Query::FarRuns(_) => Answer::FarRuns(Vec::new()),
            Query::Nothing => Answer::Nothing,
        }
    }

    fn ask(&mut self, connection: u64, request: Request) -> Vec<Effect> {
        self.act(Input::Asked {
            connection,
            hello: Box::new(Hello::new(request)),
            limits_are_possible: true,
        })
    }

    fn submit(&mut self, number: u32, shape: &serde_json::Value) -> Vec<Effect> {
        self.ask(
            100,
            Request::Submit(Box::new(Submit {
                plan: plan(number, shape, "local", "local"),
                secrets: PrivateSecrets::default(),
                limits: Limits::default(),
                cluster: None,
            })),
        )
    }

    fn submit_far(&mut self, number: u32) -> Vec<Effect> {
        let cluster = serde_json::json!({
            "name": "lab",
            "cluster": {"kind": "slurm", "host": "login"}
        });
        self.ask(
            100,
            Request::Submit(Box::new(Submit {
                plan: plan(number, &gpus(1, 0), "lab", "slurm"),
                secrets: PrivateSecrets::default(),
                limits: Limits::default(),
                cluster: Some(serde_json::from_value(cluster).expect("a cluster")),
            })),
        )
    }

    fn started(&mut self, assign: &Assign) {
        self.act(Input::Runner {
            name: assign.chosen.runner.clone(),
            message: FromRunner::Started {
                run: assign.run.clone(),
                attempt: assign.chosen.attempt,
                at: Moment(1),
            },
        });
    }

    fn explain(&mut self, number: u32) -> Explanation {
        match reply(&self.ask(9, Request::Explain { run: id(number) }), 9) {
            Some(Reply::Explained(explanation)) => explanation.clone(),
            other => panic!("{other:?}"),
        }
    }

    fn status(&mut self) -> Status {
        match reply(&self.ask(9, Request::Status), 9) {
            Some(Reply::Status(status)) => status.clone(),
            other => panic!("{other:?}"),
        }
    }
}

fn reply(effects: &[Effect], to: u64) -> Option<&Reply> {
    effects.iter().rev().find_map(|effect| match effect {
        Effect::Reply {
            connection, reply, ..
        } if *connection == to => Some(&**reply),
        _ => None,
    })
}

fn assigned(effects: &[Effect]) -> Option<&Assign> {
    effects.iter().find_map(|effect| match effect {
        Effect::Assign(assign) => Some(&**assign),
        _ => None,
    })
}

fn orders(effects: &[Effect]) -> Vec<&Order> {
    let of = effects.iter().filter_map(|effect| match effect {
        Effect::Order { order, .. } => Some(order),
        _ => None,
    });
    of.collect()
}

fn with_memory() -> serde_json::Value {
    serde_json::json!({
        "nodes": 1, "ranks_per_node": 1, "gpus_per_node": 0, "cpus_per_node": 1, "memory": "1G"
    })
}

#[test]
fn a_run_that_waits_for_gpus_is_told_which_runs_have_them_and_its_place() {
    let (mut driven, _) = Driven::new(Found::default());
    driven.submit(1, &with_memory());
    driven.submit(2, &gpus(1, 2));
    driven.submit(3, &gpus(1, 1));
    driven.submit(4, &gpus(1, 1));
    let next = driven.explain(3);
    assert_eq!(next.waits_for, ["1 GPU (0 free)"]);
    assert_eq!((next.ahead, next.held_by), (0, vec![id(2)]));
    assert_eq!(next.text, "it waits for 1 GPU (0 free), next in line");
    let later = driven.explain(4);
    assert_eq!(later.ahead, 1);
    assert_eq!(
        later.text,
        "it waits for 1 GPU (0 free), behind 1 other run(s)"
    );
}

#[test]
fn the_facts_say_what_runs_hold() {
    let (mut driven, _) = Driven::new(Found::default());
    driven.submit(1, &with_memory());
    let asked = driven.ask(
        5,
        Request::Facts {
            limits: Limits::default(),
        },
    );
    assert!(
        matches!(asked.last(), Some(Effect::LookAtGpus(_))),
        "{asked:?}"
    );
    let seen = driven.see_gpus();
    let Some(Reply::Facts(facts)) = reply(&seen, 5) else {
        panic!("{seen:?}");
    };
    let node = &facts.nodes[0];
    assert_eq!((node.cpus, node.cpus_used), (4, 1));
    assert_eq!((node.memory, node.memory_used), (8 << 30, 1 << 30));
}

#[test]
fn gpus_are_divided_among_the_nodes_of_a_run() {
    let (mut driven, _) = Driven::new(Found::default());
    let effects = driven.submit(1, &gpus(2, 1));
    let assign = assigned(&effects).expect("it starts at once");
    assert_eq!(assign.gpus, [[0], [1]]);
    assert!(
        driven.reads.is_empty(),
        "its plan is still in memory: {:?}",
        driven.reads
    );
}

#[test]
fn every_order_that_a_client_waits_for_names_it() {
    let run = RunRef::of(&id(1));
    let connection = 7;
    let waited_for = [
        Order::Look { connection },
        Order::Logs {
            run: run.clone(),
            connection,
        },
        Order::Explain {
            run: run.clone(),
            connection,
        },
    ];
    assert!(waited_for.iter().all(|order| order.connection() == Some(7)));
    assert_eq!(Order::Watch { runs: vec![run] }.connection(), None);
}

#[test]
fn a_disk_that_is_full_is_logged_once_and_told_to_those_who_ask() {
    let (mut driven, _) = Driven::new(Found::default());
    let effects = driven.submit(1, &gpus(1, 0));
    assert!(
        effects
            .iter()
            .any(|effect| matches!(effect, Effect::Pass("daemon.submit.received")))
    );
    let assign = assigned(&effects).expect("it starts at once");
    driven.started(assign);
    let status = driven.status();
    assert_eq!(
        (status.running, status.runners, status.trouble),
        (1, 2, None)
    );
    driven.disk_is_full = true;
    let ended = driven.act(Input::Runner {
        name: assign.chosen.runner.clone(),
        message: FromRunner::Ended {
            run: id(1),
            attempt: 1,
            at: Moment(2),
            ending: Ending::success(),
        },
    });
    let logs = |effects: &[Effect]| {
        let is_log = |effect: &&Effect| matches!(effect, Effect::Log(_));
        effects.iter().filter(is_log).count()
    };
    assert_eq!(logs(&ended), 1, "{ended:?}");
    assert_eq!(logs(&driven.act(Input::Tick { is_needed: true })), 0);
    assert!(
        driven
            .status()
            .trouble
            .is_some_and(|why| why.contains("full"))
    );
    driven.disk_is_full = false;
    assert_eq!(logs(&driven.act(Input::Tick { is_needed: true })), 1);
    assert_eq!(driven.status().trouble, None);
}

#[test]
fn the_death_of_a_runner_without_a_run_is_no_trouble() {
    let (mut driven, _) = Driven::new(Found::default());
    let effects = driven.submit(1, &gpus(1, 0));
    let runner = assigned(&effects).expect("it starts").chosen.runner.clone();
    driven.act(Input::Settled {
        name: "boot-other".to_owned(),
        records: Vec::new(),
    });
    for number in 2..9 {
        driven.submit(number, &gpus(1, 0));
    }
    assert!(driven.status().queued > 0);
    assert_eq!(driven.status().trouble, None);
    // One that dies before it took its run makes the others wait.
    driven.act(Input::RunnerGone {
        name: runner.clone(),
    });
    driven.act(Input::Settled {
        name: runner,
        records: Vec::new(),
    });
    assert!(driven.status().trouble.is_some());
}

#[test]
fn the_states_of_runs_are_told_as_the_history_has_them() {
    let (mut driven, _) = Driven::new(Found::default());
    driven.submit(1, &gpus(1, 0));
    let runs = vec![id(1), id(2)];
    let effects = driven.ask(5, Request::Observe { runs });
    let Some(Reply::Observed { observations }) = reply(&effects, 5) else {
        panic!("{effects:?}");
    };
    assert!(matches!(
        observations.as_slice(),
        [Observation::Known { .. }, Observation::Gone]
    ));
}

#[test]
fn a_cancel_wins_over_a_preemption_and_a_stopped_runner_is_continued() {
    let (mut driven, _) = Driven::new(Found::default());
    let effects = driven.submit(1, &gpus(1, 0));
    let assign = assigned(&effects).expect("it starts at once");
    driven.started(assign);
    driven.ask(
        5,
        Request::Cancel {
            runs: vec![id(1)],
            by: None,
        },
    );
    let tick = driven.act(Input::Tick { is_needed: true });
    let continues = |effect: &Effect| matches!(effect, Effect::ContinueStopped { runners } if runners.contains(&assign.chosen.runner));
    assert!(tick.iter().any(continues), "{tick:?}");
    driven.act(Input::Runner {
        name: assign.chosen.runner.clone(),
        message: FromRunner::Ended {
            run: id(1),
            attempt: 1,
            at: Moment(2),
            ending: Ending::cause(Cause::Preempted),
        },
    });
    let Some(RunEvent::Ended { ending, .. }) = driven.events.last() else {
        panic!("{:?}", driven.events);
    };
    assert_eq!(ending.cause, Some(Cause::ByUser));
}

#[test]
fn the_logs_of_a_far_run_are_followed_while_a_client_watches() {
    let (mut driven, _) = Driven::new(Found::default());
    driven.submit_far(1);
    let watch = || Request::Watch {
        runs: vec![id(1)],
        logs: true,
    };
    let follows = |effects: &[Effect]| -> Vec<bool> {
        let of = orders(effects).into_iter().filter_map(|order| match order {
            Order::Follow { on, .. } => Some(*on),
            _ => None,
        });
        of.collect()
    };
    assert_eq!(follows(&driven.ask(5, watch())), [true]);
    assert_eq!(follows(&driven.ask(6, watch())), [true]);
    let hang_up = |connection| Input::HungUp { connection };
    assert_eq!(
        follows(&driven.act(hang_up(5))),
        [false; 0],
        "6 still follows"
    );
    assert_eq!(follows(&driven.act(hang_up(6))), [false]);
    assert_eq!(follows(&driven.ask(7, watch())), [true]);
    let ended = driven.act(Input::Far {
        cluster: "lab".to_owned(),
        report: Report::Withdrawn { runs: vec![id(1)] },
    });
    assert!(
        matches!(reply(&ended, 7), Some(Reply::WatchEnded)),
        "{ended:?}"
    );
    assert!(reply(&ended, 0).is_none() && reply(&ended, 6).is_none());
    // The history knows the cluster of a run that has ended.
    let asked = driven.ask(8, Request::BringLogs { run: id(1) });
    assert!(matches!(
        orders(&asked).as_slice(),
        [Order::Logs { connection: 8, .. }]
    ));
}

#[test]
fn the_next_daemon_sends_what_a_cluster_may_not_have_and_cancels_what_is_to_end() {
    let found = |number: u32, phase, cancel_requested| {
        let plan = plan(number, &gpus(1, 0), "lab", "slurm");
        FoundRun {
            run: ActiveRun {
                key: i64::from(number),
                id: id(number),
                submission: id(number),
                parameters: towline_core::sweep::Parameters::default(),
                state: RunState {
                    phase,
                    cancel_requested,
                    ..RunState::default()
                },
                created: Moment(0),
                started: None,
            },
            resolved: Arc::new(plan.resolved),
            far: Some("lab".to_owned()),
        }
    };
    let words = |runs: Vec<FoundRun>| -> Vec<String> {
        let (_, effects) = Driven::new(Found {
            runs,
            ..Found::default()
        });
        let word = |order: &&Order| {
            format!("{order:?}")
                .split_whitespace()
                .next()
                .map(str::to_owned)
        };
        orders(&effects).iter().filter_map(word).collect()
    };
    assert_eq!(words(vec![found(1, Phase::Queued, false)]), ["Watch"]);
    assert_eq!(
        words(vec![found(1, Phase::Running, true)]),
        ["Watch", "Cancel"]
    );
}
