//! The end of an attempt that is still running: SIGTERM, a grace, SIGKILL.

use super::{Attempt, CONTAINER_EXIT_TIMEOUT, STRAGGLER_GRACE, Step, below_us};
use std::time::{Duration, Instant};
use towline_core::reason::{Cause, Ending};
use towline_host::process::{terminate, terminate_group};
use towline_wire::runner::Stop;

impl Attempt {
    /// Ends the attempt from outside: SIGTERM now, SIGKILL after the grace.
    pub(crate) fn stop(&mut self, why: Stop) {
        self.end(why, false);
    }

    /// The same, where the scheduler has sent SIGTERM to every process already.
    pub(crate) fn stop_signalled(&mut self, why: Stop) {
        // A process that started meanwhile may have missed the signal: better twice than never.
        let is_young = self
            .began
            .is_some_and(|moment| moment.elapsed() < Duration::from_secs(1));
        self.end(why, !is_young && self.assignment.container.is_none());
    }

    fn end(&mut self, why: Stop, is_signalled: bool) {
        if self.step == Step::Held {
            // The failure remains the ending; only the nodes are no longer held.
            self.held_until = Some(Instant::now());
            return;
        }
        let cause = match why {
            Stop::ByUser => Cause::ByUser,
            Stop::Preempted => Cause::Preempted,
        };
        // A cancel by the user replaces a preemption that is under way.
        let replace = matches!(
            self.ending.as_ref().and_then(|ending| ending.cause),
            None | Some(Cause::Preempted)
        );
        if replace && cause != Cause::Preempted || self.ending.is_none() {
            self.ending = Some(Ending::cause(cause));
        }
        self.terminate(is_signalled);
    }

    /// Sends SIGTERM to every rank's process group once, unless they have received it.
    pub(super) fn terminate(&mut self, is_signalled: bool) {
        if self.kill_at.is_some() {
            return;
        }
        // A container runtime needs time to forward the signal and to remove the container.
        let slack = if self.step == Step::Inside {
            CONTAINER_EXIT_TIMEOUT
        } else {
            Duration::ZERO
        };
        self.kill_at =
            Some(Instant::now() + Duration::from_millis(self.assignment.grace_millis) + slack);
        let groups: Vec<i32> = self
            .processes
            .iter()
            .filter(|process| process.status.is_none())
            .map(|process| process.pid)
            .collect();
        self.signalled = below_us()
            .filter(|(_, facts)| is_signalled || groups.contains(&facts.group))
            .map(|(pid, facts)| (pid, facts.started))
            .collect();
        if !is_signalled {
            groups.into_iter().for_each(terminate_group);
        }
    }

    pub(super) fn end_stragglers(&mut self) {
        self.step = Step::CleanUp;
        // A program outlives the shell that started it, and received SIGTERM with the shell.
        for (pid, _) in
            below_us().filter(|(pid, facts)| !self.signalled.contains(&(*pid, facts.started)))
        {
            terminate(pid);
        }
        self.kill_at.get_or_insert(Instant::now() + STRAGGLER_GRACE);
    }
}
