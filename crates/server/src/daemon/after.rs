//! Runs that begin only when others have ended (`--after`), and runs on hold. A run that waits for
//! nothing more is released: it joins the queue here, or is sent to its cluster.

use super::ledger::{Query, ReadThen};
use super::{Announced, Daemon, Then};
use towline_core::after::Verdict;
use towline_core::cluster::RunRef;
use towline_core::counts::PhaseCounts;
use towline_core::event::RunEvent;
use towline_core::reason::{Cause, Ending};
use towline_core::state::Phase;
use towline_core::{Result, RunId};
use towline_engine::history::RunKey;

impl Daemon {
    /// Notes that a run, or a whole submission, is no longer open.
    pub(super) fn no_longer_open(&mut self, id: &RunId) {
        if self.queue.has_dependents(id) {
            self.to_judge.insert(id.clone());
        }
    }

    /// Judges the runs that a new or loaded run waits for, if they are not open.
    pub(super) fn judge_before(&mut self, key: RunKey) {
        let Some(run) = self.run_of(key) else { return };
        let before: Vec<RunId> = run
            .state
            .after
            .iter()
            .map(|after| after.run.clone())
            .collect();
        for id in before {
            if self.queue.key(&id).is_none() && !self.queue.is_open(&id) {
                self.to_judge.insert(id);
            }
        }
    }

    /// Reads how the runs ended that others wait for. The read is queued behind the writes of
    /// their ends, and before a request that could remove them from the history.
    pub(super) fn judge_dependents(&mut self) {
        if self.to_judge.is_empty() {
            return;
        }
        let ended: Vec<RunId> = std::mem::take(&mut self.to_judge).into_iter().collect();
        self.ledger
            .read(Query::Phases(ended.clone()), ReadThen::Judge { ended });
    }

    pub(super) fn judged(&mut self, ended: Vec<RunId>, counts: Result<Vec<PhaseCounts>>) {
        let counts = match counts {
            Ok(counts) => counts,
            Err(error) => {
                self.log(format!("the end of a run cannot be read: {error}"));
                return self.judge_again.extend(ended);
            }
        };
        for (id, counts) in ended.into_iter().zip(counts) {
            for key in self.queue.dependents(&id) {
                self.judge_one(key, &id, &counts);
            }
        }
        self.judge_dependents();
    }

    fn judge_one(&mut self, key: RunKey, before: &RunId, counts: &PhaseCounts) {
        let Some(run) = self.run_of(key) else { return };
        let conditions = run.state.after.iter().filter(|after| after.run == *before);
        let verdicts: Vec<Verdict> = conditions.map(|after| after.when.judge(counts)).collect();
        if verdicts.contains(&Verdict::NotYet) {
            // Its end is not written yet, because the disk is full.
            self.queue.depends(key, before);
            self.judge_again.insert(before.clone());
        } else if verdicts.contains(&Verdict::Never) {
            self.end_unstarted(key, before, counts);
        } else if !verdicts.is_empty() {
            let before = before.clone();
            let event = self.apply_now(key, RunEvent::AfterMet { before });
            self.release(vec![key], event.into_iter().collect());
        }
    }

    /// Ends a run that can never begin.
    fn end_unstarted(&mut self, key: RunKey, before: &RunId, counts: &PhaseCounts) {
        let Some(attempt) = self.run_of(key).map(|run| run.state.attempt) else {
            return;
        };
        let short = before.short();
        let how = match counts.total() {
            0 => format!("{short} is no longer in the history"),
            1 => format!("{short} {}", outcome(counts)),
            _ => format!("{short}: {counts}"),
        };
        let ending = Ending::cause(Cause::Dependency).detail(how);
        if let Some(event) = self.apply_now(key, RunEvent::Ended { attempt, ending }) {
            self.queue.refile(key);
            self.record_end(key, event);
        }
    }

    /// Writes events, of which some let runs begin. It is on disk before any of them does: after a
    /// power cut the run before must not be found running again.
    pub(super) fn release(&mut self, keys: Vec<RunKey>, mut events: Vec<Announced>) {
        if events.is_empty() {
            return;
        }
        let mut unsent: Vec<RunId> = Vec::new();
        for key in keys {
            self.queue.refile(key);
            let Some(run) = self.run_of(key) else {
                continue;
            };
            if run.is_unsent() && !unsent.contains(&run.submission) {
                unsent.push(run.submission.clone());
            }
        }
        unsent.retain(|submission| self.is_free(submission));
        for submission in &unsent {
            for key in self.queue.keys_of(submission) {
                events.extend(self.apply_now(key, RunEvent::StageIntent));
            }
        }
        self.unsettled = true;
        self.write_events(
            events,
            Then::Send {
                submissions: unsent,
            },
        );
    }

    /// Whether no run of a submission is on hold or waits for another.
    fn is_free(&self, submission: &RunId) -> bool {
        let waits = |run: &super::queue::Run| {
            let state = &run.state;
            // One that was cancelled is sent with the others, or ends when that is written.
            !state.phase.is_ended() && !state.cancel_requested && state.is_blocked()
        };
        let runs = self.queue.keys_of(submission);
        !runs
            .into_iter()
            .any(|key| self.run_of(key).is_some_and(waits))
    }

    /// Sends submissions that were held back.
    pub(super) fn send_released(&mut self, submissions: Vec<RunId>) {
        for submission in submissions {
            let mut keys = self.queue.keys_of(&submission).into_iter();
            let cluster = keys.find_map(|key| self.run_of(key)?.far.clone());
            if let Some(cluster) = cluster {
                self.submit_far(&cluster, &submission, false);
                self.cancel_sent(cluster, &submission);
            }
        }
    }

    /// Cancels the runs of a submission on their cluster that were cancelled before it was sent.
    fn cancel_sent(&mut self, cluster: String, submission: &RunId) {
        let keys = self.queue.keys_of(submission).into_iter();
        let cancelled = keys.filter_map(|key| {
            let run = self.run_of(key)?;
            let far = RunRef::known(&run.id, &run.state);
            run.state.cancel_requested.then_some(far)
        });
        let runs: Vec<RunRef> = cancelled.collect();
        if !runs.is_empty() {
            // Behind the submission, whose plan may be read from the history first.
            self.ledger
                .read(Query::Nothing, ReadThen::CancelFar { cluster, runs });
        }
    }

    /// Why a run that is on hold, or waits for others, does not begin.
    pub(super) fn blocked_text(&self, run: &super::queue::Run) -> String {
        if run.state.on_hold {
            return format!(
                "it is on hold; `tow resume {}` lets it go on",
                run.id.short()
            );
        }
        let before = run.state.after.iter().map(|after| {
            let key = self.queue.key(&after.run);
            let phase = key
                .and_then(|key| self.run_of(key))
                .map(|run| run.state.phase);
            format!("{after} ({})", phase.map_or("open", Phase::word))
        });
        format!(
            "it begins after {}",
            before.collect::<Vec<_>>().join(" and ")
        )
    }
}

/// How the only run ended.
fn outcome(counts: &PhaseCounts) -> &'static str {
    match counts.worst() {
        Some(Phase::Ended(towline_core::reason::Outcome::Cancelled)) => "was cancelled",
        Some(Phase::Ended(towline_core::reason::Outcome::Lost)) => "is lost",
        Some(phase) => phase.word(),
        None => "is not known",
    }
}
