//! Sends submissions to the cluster, one after the other.

use super::agenda::Submission;
use super::{Call, CallAnswer, Doing, StatusNote, Worker};
use crate::daemon::Report;
use towline_core::cluster::{Depth, Observed, RunRef, RunReport};
use towline_core::{Error, ErrorKind, Result};

/// A submission that is being sent, and how far it is.
#[derive(Debug)]
pub(super) struct Sending {
    submission: Submission,
    runs: Vec<RunRef>,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    Staging,
    Submitting,
    /// The cluster refused it. An earlier try may have been accepted all the same.
    LookingUp(Error),
    GivingUp(Error),
}

impl Worker {
    /// Sends the next submission. One that fails goes to the back of the queue, so that it does not
    /// block the rest.
    pub(super) fn submit_next(&mut self) {
        let Some(submission) = self.agenda.submissions.pop_front() else {
            return;
        };
        let plan = submission.plan.clone();
        // Watched from now on, because the cluster may have the runs even if we never get its
        // answer.
        let runs: Vec<RunRef> = plan
            .runs
            .iter()
            .map(|run| RunRef {
                native: plan.native_of(&run.id),
                ..RunRef::of(&run.id)
            })
            .collect();
        self.watch(&runs);
        let sending = Sending {
            submission,
            runs,
            stage: Stage::Staging,
        };
        self.call(Call::Stage(plan), Doing::Submitting(Box::new(sending)));
    }

    fn watch(&mut self, runs: &[RunRef]) {
        let watched = runs.iter().map(|far| (far.run.clone(), far.clone()));
        self.agenda.watched.extend(watched);
    }

    pub(super) fn sending_answered(&mut self, mut sending: Sending, answer: CallAnswer) {
        let plan = sending.submission.plan.clone();
        match (sending.stage, answer) {
            (Stage::Staging, CallAnswer::Staged(Ok(()))) => {
                self.tell(Report::Staged {
                    submission: plan.id.clone(),
                });
                self.pass("daemon.far.staged");
                sending.stage = Stage::Submitting;
                self.call(Call::Submit(plan), Doing::Submitting(Box::new(sending)));
            }
            (Stage::Submitting, CallAnswer::Submitted(Ok(natives))) => {
                self.sent(sending.submission, sending.runs, Ok(natives));
            }
            (Stage::Staging, CallAnswer::Staged(Err(error)))
            | (Stage::Submitting, CallAnswer::Submitted(Err(error))) => {
                sending.stage = Stage::Staging;
                self.refused(sending, error);
            }
            (Stage::LookingUp(refused), CallAnswer::Observed { observed, .. }) => {
                sending.stage = Stage::Staging;
                self.looked_up(sending, observed, refused);
            }
            (Stage::GivingUp(refused), CallAnswer::GaveUp(given_up)) => {
                let error = given_up.map_or_else(|failed| failed.as_unknown(), |()| refused);
                self.sent(sending.submission, sending.runs, Err(error));
            }
            _ => {}
        }
    }

    /// Acts on a failure. A refusal is final only if the cluster has none of its runs.
    fn refused(&mut self, mut sending: Sending, error: Error) {
        if error.kind() == ErrorKind::Unreachable {
            self.sent(sending.submission, sending.runs, Err(error));
        } else if sending.submission.again {
            sending.stage = Stage::LookingUp(error);
            let call = Call::Observe {
                runs: sending.runs.clone(),
                depth: Depth::Scheduler,
            };
            self.call(call, Doing::Submitting(Box::new(sending)));
        } else {
            self.give_up(sending, error);
        }
    }

    fn give_up(&mut self, mut sending: Sending, error: Error) {
        sending.stage = Stage::GivingUp(error);
        let call = Call::GiveUp(sending.submission.plan.clone());
        self.call(call, Doing::Submitting(Box::new(sending)));
    }

    /// Decides whether the cluster accepted an earlier try whose answer was lost.
    fn looked_up(&mut self, mut sending: Sending, observed: Result<Observed>, refused: Error) {
        let unknown = |sending: Sending, worker: &mut Self| {
            worker.sent(sending.submission, sending.runs, Err(refused.as_unknown()));
        };
        let Ok(observed) = observed else {
            return unknown(sending, self);
        };
        if observed.unasked.is_some() || observed.runs.len() < sending.runs.len() {
            return unknown(sending, self);
        }
        let found: Vec<String> = observed.runs.iter().filter_map(name_there).collect();
        if found.len() == sending.runs.len() {
            return self.sent(sending.submission, sending.runs, Ok(found));
        }
        let now = self.agenda.now;
        let since = *sending.submission.absent.get_or_insert(now);
        // A backend that refuses a sweep cancels the runs that it had already created. If any other
        // run is alive, or may not be listed yet, the outcome is unknown.
        let is_alive = |report: &RunReport| name_there(report).is_some() && !report.cancelled;
        let may_be_unlisted = now.saturating_sub(since) < self.about.listing_delay;
        if observed.runs.iter().any(is_alive) || may_be_unlisted {
            return unknown(sending, self);
        }
        self.give_up(sending, refused);
    }

    /// Ends the sending of one submission. If nobody knows its outcome, it is sent again later.
    fn sent(
        &mut self,
        mut submission: Submission,
        mut runs: Vec<RunRef>,
        result: Result<Vec<String>>,
    ) {
        self.pass("daemon.far.answered");
        let result = match result {
            Err(error) if error.kind() == ErrorKind::Unreachable => {
                submission.again = true;
                self.agenda.submissions.push_back(submission);
                return self.part_done(Err(error), false);
            }
            Err(error) => Err(error),
            Ok(natives) => {
                let names = runs.iter_mut().zip(natives);
                names.for_each(|(far, native)| far.native = Some(native));
                self.watch(&runs);
                Ok(runs)
            }
        };
        self.agenda.ask_soon();
        self.part_done(Ok(()), true);
        // The status is fresh before the daemon gets the report, because a client may read it at
        // once.
        self.status(StatusNote::Seen);
        self.status(StatusNote::Waits);
        self.tell(Report::Submitted {
            submission: submission.plan.id.clone(),
            result,
        });
        self.submit_next();
    }
}

/// The name of a run on the cluster, if there is proof that the cluster took it. A report can also
/// say that the cluster does not know the run.
fn name_there(report: &RunReport) -> Option<String> {
    let claimed = report
        .attempts
        .iter()
        .rev()
        .find_map(|of| of.claim.as_ref().map(|claim| claim.by.job.clone()));
    report
        .native
        .as_ref()
        .map(|native| native.id.clone())
        .or(claimed)
        .filter(|_| !report.is_unknown)
}
