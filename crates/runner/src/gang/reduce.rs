//! The decisions of the supervisor: one event in, orders out. No clock and no I/O: `now` is the
//! time since the supervisor began.

use super::supervise::{Exit, Leave, StopNodes};
use super::{Due, Event, Gang, Order, Phase, Running};
use std::collections::BTreeSet;
use std::time::Duration;
use towline_core::reason::{Cause, Ending};
use towline_core::retry::hold_after;

/// How long to wait for the scheduler to end a job that it has requeued.
const REQUEUE_TIMEOUT: Duration = Duration::from_secs(60);

impl Gang {
    pub(crate) fn step(&mut self, event: Event, now: Duration) -> Vec<Order> {
        match event {
            Event::Due(due) => self.due(due, now),
            Event::OpenEnded(true) => vec![Order::Decide],
            Event::OpenEnded(false) => self.exit(Exit::NotOurs),
            Event::Gathered { missing } => self.gathered(missing),
            Event::Claimed(is_ours) => self.claimed(is_ours),
            Event::Started => self.started(),
            Event::NodeEnded { node, ending } => self.node_ended(node, ending, now),
            Event::NodeFailed(ending) => self.stop(ending, false, now),
            Event::OnlyUploads { node } => {
                if let Phase::Running(running) = &mut self.phase {
                    running.uploading.insert(node);
                }
                Vec::new()
            }
            Event::NodeLost { node, why, is_gone } => self.node_lost(node, why, is_gone, now),
            Event::Uncollected(why) => {
                if let Phase::Running(running) = &mut self.phase {
                    running.uncollected.get_or_insert(why);
                }
                Vec::new()
            }
            Event::StopOrdered(ending) => self.stop_ordered(ending, now),
            Event::Cancelled => self.cancelled(now),
            Event::Signalled => self.signalled(),
            Event::EndedByScheduler(ending) => self.stop(ending, true, now),
            Event::TimeIsNear => self.time_is_near(now),
            Event::CutOff(ending) => self.cut_off(ending),
            Event::Tick => self.tick(now),
        }
    }

    fn exit(&mut self, exit: Exit) -> Vec<Order> {
        self.phase = Phase::Over;
        vec![Order::Exit(Leave {
            exit,
            is_leaving: self.is_leaving,
            is_complete: !self.is_leaving && !self.has_lost_node && !self.is_cut_off,
        })]
    }

    fn due(&mut self, due: Due, now: Duration) -> Vec<Order> {
        self.phase = Phase::Deciding;
        match due {
            Due::Nothing(ending) => self.exit(Exit::Ended(ending)),
            Due::Open(attempt) => vec![Order::EndOpen(attempt)],
            Due::Begin(_) if self.is_cut_off => self.exit(Exit::CutOff),
            Due::Begin(_) if self.is_leaving => self.exit(Exit::Leaving),
            Due::Begin(_) if self.is_used_up() && self.rules.can_requeue => {
                self.is_leaving = true;
                self.phase = Phase::Requeued {
                    until: now + REQUEUE_TIMEOUT,
                };
                vec![Order::Requeue]
            }
            Due::Begin(_) if self.is_used_up() => self.exit(Exit::NodesLost(self.last_code)),
            Due::Begin(attempt) => {
                self.phase = Phase::Gathering(attempt);
                vec![Order::Gather]
            }
        }
    }

    /// Whether no further attempt can begin on these nodes, or in the time that is left.
    const fn is_used_up(&self) -> bool {
        self.has_lost_node || self.is_out_of_time
    }

    fn gathered(&mut self, missing: Vec<String>) -> Vec<Order> {
        let Phase::Gathering(attempt) = self.phase else {
            return Vec::new();
        };
        if self.is_leaving || self.is_cut_off {
            return vec![Order::Decide];
        }
        self.phase = Phase::Claiming { attempt, missing };
        vec![Order::Claim(attempt)]
    }

    fn claimed(&mut self, is_ours: bool) -> Vec<Order> {
        let Phase::Claiming { attempt, missing } = &self.phase else {
            return Vec::new();
        };
        let attempt = *attempt;
        if !is_ours {
            return vec![Order::Decide];
        }
        if !missing.is_empty() {
            let ending = Ending::cause(Cause::NodeFailed).detail(missing.join("; "));
            self.has_lost_node = true;
            return self.end(attempt, ending);
        }
        self.phase = Phase::Running(Running {
            attempt,
            open: (0..self.rules.nodes).collect(),
            has_started: false,
            uploading: BTreeSet::new(),
            stopping: None,
            uncollected: None,
        });
        vec![Order::Begin(attempt)]
    }

    fn started(&mut self) -> Vec<Order> {
        match &mut self.phase {
            Phase::Running(running) if !running.has_started => {
                running.has_started = true;
                vec![Order::RecordStarted(running.attempt)]
            }
            _ => Vec::new(),
        }
    }

    /// The first node that failed ends the others.
    fn node_ended(&mut self, node: u32, ending: Ending, now: Duration) -> Vec<Order> {
        if !self.close(node) {
            return Vec::new();
        }
        let Phase::Running(running) = &mut self.phase else {
            return Vec::new();
        };
        if running.uncollected.is_none() {
            running.uncollected.clone_from(&ending.uncollected);
        }
        let mut orders = if ending.cause.is_some() {
            self.stop(ending, false, now)
        } else {
            Vec::new()
        };
        orders.extend(self.finish_if_over(now));
        orders
    }

    fn node_lost(&mut self, node: u32, why: String, is_gone: bool, now: Duration) -> Vec<Order> {
        self.has_lost_node |= is_gone;
        if !self.close(node) {
            return Vec::new();
        }
        let ending = Ending::cause(Cause::NodeFailed).detail(why);
        let mut orders = self.stop(ending, false, now);
        orders.extend(self.finish_if_over(now));
        orders
    }

    /// Marks the attempt as ended on a node. Returns whether it was open there.
    fn close(&mut self, node: u32) -> bool {
        match &mut self.phase {
            Phase::Running(running) => running.open.remove(&node),
            _ => false,
        }
    }

    fn stop_ordered(&mut self, ending: Ending, now: Duration) -> Vec<Order> {
        match &self.phase {
            Phase::Running(running) if running.stopping.is_none() => {
                self.is_leaving = true;
                self.stop(ending, false, now)
            }
            _ => Vec::new(),
        }
    }

    fn cancelled(&mut self, now: Duration) -> Vec<Order> {
        match &self.phase {
            Phase::Held { .. } => self.end_hold(),
            _ => self.stop(Ending::cause(Cause::ByUser), false, now),
        }
    }

    fn time_is_near(&mut self, now: Duration) -> Vec<Order> {
        match &self.phase {
            Phase::Held { .. } => self.end_hold(),
            Phase::Running(running) if running.stopping.is_none() => {
                self.is_out_of_time = true;
                self.stop(Ending::cause(Cause::TimeLimit), false, now)
            }
            _ => Vec::new(),
        }
    }

    fn signalled(&mut self) -> Vec<Order> {
        self.is_leaving = true;
        match &self.phase {
            // An attempt that had ended before keeps its own ending.
            Phase::Running(running)
                if running.stopping.is_some() || running.open.is_subset(&running.uploading) =>
            {
                vec![Order::Hurry]
            }
            Phase::Running(_) => vec![Order::AskWhy],
            Phase::Held { .. } => self.end_hold(),
            Phase::Gathering(_) | Phase::Requeued { .. } => vec![Order::Decide],
            Phase::Deciding | Phase::Claiming { .. } | Phase::Over => Vec::new(),
        }
    }

    fn cut_off(&mut self, ending: Option<Ending>) -> Vec<Order> {
        if std::mem::replace(&mut self.is_cut_off, true) {
            return Vec::new();
        }
        match &self.phase {
            Phase::Running(running) => {
                let attempt = running.attempt;
                let mut orders = vec![Order::Kill];
                if let Some(ending) = ending {
                    orders.extend(self.end(attempt, ending));
                } else {
                    self.phase = Phase::Deciding;
                    orders.push(Order::Decide);
                }
                orders
            }
            Phase::Held { .. } => self.end_hold(),
            Phase::Gathering(_) | Phase::Requeued { .. } => vec![Order::Decide],
            Phase::Deciding | Phase::Claiming { .. } | Phase::Over => Vec::new(),
        }
    }

    fn tick(&mut self, now: Duration) -> Vec<Order> {
        let limit = if self.is_leaving {
            self.rules.leave_timeout
        } else {
            self.rules.stop_timeout
        };
        match &self.phase {
            Phase::Running(running) => match &running.stopping {
                Some((_, since)) if now.saturating_sub(*since) > limit => {
                    vec![Order::GiveUp(running.open.iter().copied().collect())]
                }
                _ => Vec::new(),
            },
            Phase::Held { until, .. } if now >= *until => self.end_hold(),
            Phase::Requeued { until } if now >= *until => vec![Order::Decide],
            _ => Vec::new(),
        }
    }

    /// Ends the attempt on all nodes. The first cause counts.
    fn stop(&mut self, ending: Ending, by_scheduler: bool, now: Duration) -> Vec<Order> {
        let Phase::Running(running) = &mut self.phase else {
            return Vec::new();
        };
        if running.stopping.is_some() {
            return Vec::new();
        }
        running.stopping = Some((ending.clone(), now));
        if running.open.is_empty() {
            return self.finish_if_over(now);
        }
        vec![Order::Stop(StopNodes {
            attempt: running.attempt,
            ending,
            by_scheduler,
            is_leaving: self.is_leaving,
        })]
    }

    fn finish_if_over(&mut self, now: Duration) -> Vec<Order> {
        let Phase::Running(running) = &mut self.phase else {
            return Vec::new();
        };
        if !running.open.is_empty() {
            return Vec::new();
        }
        let attempt = running.attempt;
        let ending = running
            .stopping
            .take()
            .map_or_else(Ending::success, |(ending, _)| ending)
            .with_uncollected(running.uncollected.as_deref());
        let is_staying = !self.is_leaving && !self.is_cut_off;
        match hold_after(&ending, self.rules.hold_on_failure).filter(|_| is_staying) {
            None => self.end(attempt, ending),
            Some(span) => {
                self.phase = Phase::Held {
                    attempt,
                    ending: ending.clone(),
                    until: now + span,
                };
                vec![Order::Hold {
                    attempt,
                    span,
                    ending,
                }]
            }
        }
    }

    fn end_hold(&mut self) -> Vec<Order> {
        match std::mem::replace(&mut self.phase, Phase::Deciding) {
            Phase::Held {
                attempt, ending, ..
            } => self.end(attempt, ending),
            other => {
                self.phase = other;
                Vec::new()
            }
        }
    }

    fn end(&mut self, attempt: u32, ending: Ending) -> Vec<Order> {
        self.phase = Phase::Deciding;
        self.last_code = ending.passed_code();
        vec![Order::End { attempt, ending }, Order::Decide]
    }
}
