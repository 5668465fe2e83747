//! The supervisor as a value: chosen stories, and random ones that must keep its promises.

use super::*;
use proptest::prelude::*;
use towline_core::reason::Cause;

fn rules(nodes: u32) -> Rules {
    Rules {
        nodes,
        hold_on_failure: None,
        stop_timeout: Duration::from_secs(13),
        leave_timeout: Duration::from_secs(5),
        can_requeue: true,
    }
}

fn second(number: u64) -> Duration {
    Duration::from_secs(number)
}

/// A supervisor whose first attempt runs.
fn running(rules: Rules) -> Gang {
    let mut gang = Gang::new(rules);
    let now = Duration::ZERO;
    assert_eq!(gang.step(Event::Due(Due::Begin(1)), now), [Order::Gather]);
    let gathered = Event::Gathered {
        missing: Vec::new(),
    };
    assert_eq!(gang.step(gathered, now), [Order::Claim(1)]);
    assert_eq!(gang.step(Event::Claimed(true), now), [Order::Begin(1)]);
    gang
}

/// The ending of an attempt on so many nodes after these events.
pub(crate) fn ending_after(nodes: u32, events: Vec<Event>) -> Ending {
    let mut gang = running(rules(nodes));
    let orders: Vec<Order> = events
        .into_iter()
        .flat_map(|event| gang.step(event, Duration::ZERO))
        .collect();
    let ends: Vec<&Ending> = orders
        .iter()
        .filter_map(|order| match order {
            Order::End { ending, .. } => Some(ending),
            _ => None,
        })
        .collect();
    assert_eq!(ends.len(), 1, "one end: {orders:?}");
    ends[0].clone()
}

fn ended(node: u32, cause: Option<Cause>) -> Event {
    Event::NodeEnded {
        node,
        ending: cause.map_or_else(Ending::success, Ending::cause),
    }
}

fn stop(cause: Cause, by_scheduler: bool, is_leaving: bool) -> Order {
    Order::Stop(StopNodes {
        attempt: 1,
        ending: Ending::cause(cause),
        by_scheduler,
        is_leaving,
    })
}

#[test]
fn the_first_node_that_fails_ends_the_others_and_says_why() {
    let mut gang = running(rules(3));
    assert_eq!(gang.step(ended(0, None), second(1)), []);
    assert_eq!(
        gang.step(ended(2, Some(Cause::ExitCode)), second(2)),
        [stop(Cause::ExitCode, false, false)]
    );
    assert_eq!(
        gang.step(ended(1, Some(Cause::Signal)), second(3)),
        [
            Order::End {
                attempt: 1,
                ending: Ending::cause(Cause::ExitCode)
            },
            Order::Decide
        ]
    );
}

#[test]
fn the_scheduler_is_asked_why_it_ends_the_job_and_nothing_begins_after() {
    let mut gang = running(rules(1));
    assert_eq!(gang.step(Event::Signalled, second(1)), [Order::AskWhy]);
    let why = Event::EndedByScheduler(Ending::cause(Cause::Preempted));
    assert_eq!(
        gang.step(why, second(1)),
        [stop(Cause::Preempted, true, true)]
    );
    assert_eq!(gang.step(Event::Signalled, second(2)), [Order::Hurry]);
    let last = gang.step(ended(0, Some(Cause::ByUser)), second(3));
    assert_eq!(
        last[0],
        Order::End {
            attempt: 1,
            ending: Ending::cause(Cause::Preempted)
        }
    );
    let left = gang.step(Event::Due(Due::Begin(2)), second(3));
    assert!(
        matches!(&left[..], [Order::Exit(leave)] if leave.exit == Exit::Leaving),
        "{left:?}"
    );
}

#[test]
fn a_signal_after_the_last_rank_ended_changes_nothing_of_the_ending() {
    let mut gang = running(rules(2));
    gang.step(ended(1, None), second(1));
    gang.step(Event::OnlyUploads { node: 0 }, second(1));
    assert_eq!(gang.step(Event::Signalled, second(2)), [Order::Hurry]);
    assert_eq!(
        gang.step(ended(0, None), second(3))[0],
        Order::End {
            attempt: 1,
            ending: Ending::success()
        }
    );
}

#[test]
fn nodes_that_do_not_end_in_time_are_given_up() {
    let mut gang = running(rules(2));
    gang.step(ended(1, Some(Cause::ExitCode)), second(10));
    assert_eq!(gang.step(Event::Tick, second(23)), []);
    assert_eq!(gang.step(Event::Tick, second(24)), [Order::GiveUp(vec![0])]);
    // The scheduler leaves less time.
    let mut gang = running(rules(2));
    gang.step(ended(1, Some(Cause::ExitCode)), second(10));
    gang.step(Event::Signalled, second(11));
    assert_eq!(gang.step(Event::Tick, second(16)), [Order::GiveUp(vec![0])]);
}

#[test]
fn nodes_are_held_after_a_failure_of_the_job_s_own_alone() {
    let held = || {
        running(Rules {
            hold_on_failure: Some(second(60)),
            ..rules(1)
        })
    };
    let mut gang = held();
    let failed = Ending::cause(Cause::ExitCode);
    let hold = Order::Hold {
        attempt: 1,
        span: second(60),
        ending: failed.clone(),
    };
    let end = Order::End {
        attempt: 1,
        ending: failed,
    };
    assert_eq!(
        gang.step(ended(0, Some(Cause::ExitCode)), second(5)),
        [hold]
    );
    assert_eq!(gang.step(Event::Tick, second(64)), []);
    assert_eq!(
        gang.step(Event::Tick, second(65)),
        [end.clone(), Order::Decide]
    );
    for event in [Event::Cancelled, Event::Signalled, Event::TimeIsNear] {
        let mut gang = held();
        gang.step(ended(0, Some(Cause::ExitCode)), second(5));
        assert_eq!(
            gang.step(event.clone(), second(6)),
            [end.clone(), Order::Decide],
            "{event:?} ends it"
        );
    }
    for cause in [Cause::NodeFailed, Cause::Preempted, Cause::ByUser] {
        let orders = held().step(ended(0, Some(cause)), second(5));
        assert!(
            matches!(orders[0], Order::End { .. }),
            "{cause:?}: {orders:?}"
        );
    }
}

#[test]
fn a_job_without_time_or_nodes_goes_back_to_the_queue_if_it_can() {
    for can_requeue in [true, false] {
        let mut gang = running(Rules {
            can_requeue,
            ..rules(2)
        });
        let lost = Event::NodeLost {
            node: 1,
            why: "gone".to_owned(),
            is_gone: true,
        };
        gang.step(lost, second(1));
        gang.step(ended(0, Some(Cause::ByUser)), second(2));
        let next = gang.step(Event::Due(Due::Begin(2)), second(2));
        if can_requeue {
            assert_eq!(next, [Order::Requeue]);
            assert_eq!(gang.step(Event::Tick, second(61)), []);
            assert_eq!(gang.step(Event::Signalled, second(61)), [Order::Decide]);
        } else {
            assert!(
                matches!(&next[..], [Order::Exit(leave)]
                    if leave.exit == Exit::NodesLost(1) && !leave.is_complete),
                "{next:?}"
            );
        }
    }
    let mut gang = running(rules(1));
    assert_eq!(
        gang.step(Event::TimeIsNear, second(1)),
        [stop(Cause::TimeLimit, false, false)]
    );
    gang.step(ended(0, Some(Cause::ByUser)), second(2));
    assert_eq!(
        gang.step(Event::Due(Due::Begin(2)), second(2)),
        [Order::Requeue]
    );
}

#[test]
fn nodes_that_never_came_fail_the_attempt_that_was_claimed_for_them() {
    let mut gang = Gang::new(Rules {
        can_requeue: false,
        ..rules(2)
    });
    gang.step(Event::Due(Due::Begin(1)), second(0));
    let missing = vec!["node 1 did not come".to_owned()];
    assert_eq!(
        gang.step(Event::Gathered { missing }, second(1)),
        [Order::Claim(1)]
    );
    let orders = gang.step(Event::Claimed(true), second(1));
    assert!(
        matches!(&orders[..], [Order::End { ending, .. }, Order::Decide]
            if ending.cause == Some(Cause::NodeFailed)),
        "{orders:?}"
    );
}

/// A world that answers every order and has random things happen in between.
struct World {
    gang: Gang,
    nodes: u32,
    now: u64,
    /// Attempts by whether they have an end.
    attempts: Vec<bool>,
    /// Nodes with processes of the attempt that runs.
    alive: BTreeSet<u32>,
    is_leaving: bool,
    stops: u32,
    exit: Option<Leave>,
}

impl World {
    fn new(rules: Rules) -> Self {
        let mut world = Self {
            nodes: rules.nodes,
            gang: Gang::new(rules),
            now: 0,
            attempts: Vec::new(),
            alive: BTreeSet::new(),
            is_leaving: false,
            stops: 0,
            exit: None,
        };
        world.obey(vec![Order::Decide]);
        world
    }

    fn happen(&mut self, event: Event) {
        if self.exit.is_some() {
            return;
        }
        match &event {
            Event::NodeEnded { node, .. } | Event::NodeLost { node, .. }
                if !self.alive.remove(node) =>
            {
                return;
            }
            Event::Signalled => self.is_leaving = true,
            _ => {}
        }
        let orders = self.gang.step(event, second(self.now));
        self.obey(orders);
    }

    fn obey(&mut self, orders: Vec<Order>) {
        for order in orders {
            assert!(self.exit.is_none(), "{order:?} after the exit");
            match order {
                Order::Decide => {
                    let due = match self.attempts.last() {
                        Some(false) => Due::Open(self.number()),
                        _ if self.attempts.len() >= 5 => Due::Nothing(Ending::success()),
                        _ => Due::Begin(self.number() + 1),
                    };
                    self.happen(Event::Due(due));
                }
                Order::EndOpen(_) => self.happen(Event::OpenEnded(false)),
                Order::Gather => {}
                Order::Claim(attempt) => {
                    assert!(!self.is_leaving, "a claim by a job that is ended");
                    assert_eq!(attempt, self.number() + 1, "one after the other");
                    self.attempts.push(false);
                    self.stops = 0;
                    self.happen(Event::Claimed(true));
                }
                Order::Begin(attempt) => {
                    assert_eq!(attempt, self.number());
                    assert!(self.alive.is_empty(), "two attempts at once");
                    self.alive = (0..self.nodes).collect();
                }
                Order::Stop(stop) => {
                    self.stops += 1;
                    assert_eq!((stop.attempt, self.stops), (self.number(), 1), "told once");
                }
                Order::GiveUp(nodes) => {
                    for node in nodes {
                        self.happen(Event::NodeLost {
                            node,
                            why: "late".to_owned(),
                            is_gone: false,
                        });
                    }
                }
                Order::Kill => self.alive.clear(),
                Order::AskWhy => {
                    self.happen(Event::EndedByScheduler(Ending::cause(Cause::Preempted)));
                }
                Order::Hold { ending, .. } => {
                    assert!(self.alive.is_empty() && !self.is_leaving, "held for nobody");
                    assert!(ending.cause.is_some_and(Cause::is_own_failure));
                }
                Order::End { attempt, .. } => {
                    assert!(self.alive.is_empty(), "an end while processes are alive");
                    assert_eq!(attempt, self.number());
                    let open = self.attempts.last_mut().expect("it was claimed");
                    assert!(!std::mem::replace(open, true), "two ends");
                }
                Order::Requeue => self.is_leaving = true,
                Order::Exit(leave) => self.exit = Some(leave),
                Order::RecordStarted(_) | Order::Hurry => {}
            }
        }
    }

    fn number(&self) -> u32 {
        u32::try_from(self.attempts.len()).expect("few")
    }
}

fn event() -> impl Strategy<Value = Event> {
    let ending = prop_oneof![
        3 => Just(Ending::success()),
        3 => Just(Ending::cause(Cause::ExitCode)),
        1 => Just(Ending::cause(Cause::Preempted)),
        1 => Just(Ending::cause(Cause::Data)),
    ];
    prop_oneof![
        4 => Just(Event::Gathered { missing: Vec::new() }),
        1 => Just(Event::Gathered { missing: vec!["node 1".to_owned()] }),
        2 => Just(Event::Started),
        8 => (0u32..3, ending.clone()).prop_map(|(node, ending)| Event::NodeEnded { node, ending }),
        2 => (0u32..3, any::<bool>()).prop_map(|(node, is_gone)| Event::NodeLost {
            node,
            why: "silent".to_owned(),
            is_gone
        }),
        1 => ending.clone().prop_map(Event::NodeFailed),
        1 => (0u32..3).prop_map(|node| Event::OnlyUploads { node }),
        1 => Just(Event::Uncollected("left".to_owned())),
        1 => ending.prop_map(Event::StopOrdered),
        1 => Just(Event::Cancelled),
        1 => Just(Event::Signalled),
        1 => Just(Event::TimeIsNear),
        1 => prop_oneof![Just(None), Just(Some(Ending::cause(Cause::NodeFailed)))]
            .prop_map(Event::CutOff),
        6 => Just(Event::Tick),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]
    #[test]
    fn whatever_happens_its_promises_are_kept(
        nodes in 1u32..4,
        hold in any::<bool>(),
        can_requeue in any::<bool>(),
        events in prop::collection::vec((event(), 0u64..8), 0..120),
    ) {
        let mut world = World::new(Rules {
            hold_on_failure: hold.then_some(second(10)),
            can_requeue,
            ..rules(nodes)
        });
        for (event, pause) in events {
            world.now += pause;
            world.happen(event);
        }
        // From here on all goes well: the run ends.
        for _ in 0..100 {
            world.now += 100;
            world.happen(Event::Gathered { missing: Vec::new() });
            for node in 0..nodes {
                world.happen(ended(node, None));
            }
            world.happen(Event::Tick);
        }
        prop_assert!(world.exit.is_some(), "it never leaves: {:?}", world.gang);
    }
}

#[test]
fn a_start_is_recorded_once() {
    let mut gang = running(rules(1));
    let started = || Event::Started;
    assert_eq!(gang.step(started(), second(1)), [Order::RecordStarted(1)]);
    assert_eq!(gang.step(started(), second(2)), []);
}

#[test]
fn nodes_that_are_cut_off_are_killed_and_nothing_is_claimed_after() {
    let mut gang = running(rules(1));
    let cut = || Event::CutOff(Some(Ending::cause(Cause::NodeFailed)));
    let orders = gang.step(cut(), second(1));
    assert_eq!(orders[0], Order::Kill);
    assert!(
        matches!(&orders[1], Order::End { attempt: 1, .. }),
        "{orders:?}"
    );
    assert_eq!(gang.step(cut(), second(2)), []);

    let gathered = || Event::Gathered {
        missing: Vec::new(),
    };
    for event in [cut(), Event::Signalled] {
        let mut gang = Gang::new(rules(1));
        gang.step(Event::Due(Due::Begin(1)), Duration::ZERO);
        gang.step(event, second(1));
        assert_eq!(gang.step(gathered(), second(2)), [Order::Decide]);
    }
}
