//! Takes over runners that an earlier daemon started, and settles runners that died. The lock on a
//! journal says whether its runner is alive; the journal says what happened.

use super::effect::Orphans;
use super::{Daemon, Effect, Found, FoundRunner, Then};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use towline_core::RunId;
use towline_core::event::RunEvent;
use towline_core::reason::{Cause, Ending};
use towline_core::state::cancelled;
use towline_core::time::Moment;
use towline_engine::history::RunKey;
use towline_runner::journal;
use towline_wire::journal::JournalRecord;

/// How long to wait before reading a journal again after a failure.
const UNREAD_PAUSE: Duration = Duration::from_secs(1);

impl Daemon {
    /// Takes over what an earlier daemon left: its runs, its runners, its far clusters.
    pub(super) fn begin(&mut self, found: Found) {
        self.has_reserve = found.reserve;
        self.load(found.runs, found.secrets);
        self.adopt_all(found.runners);
        self.take_up_all_far();
        self.judge_dependents();
    }

    /// Starts what can be started, now that clients can connect.
    pub(super) fn ready(&mut self) {
        self.schedule();
        self.keep_one_waiting();
    }

    /// Takes over all runners. Connects to live ones; the journal of a dead one is final.
    fn adopt_all(&mut self, runners: Vec<FoundRunner>) {
        self.pass("daemon.adopt.begun");
        self.replay_claims(&runners);
        let mut seen = BTreeSet::new();
        for FoundRunner {
            name,
            is_alive,
            records,
        } in runners
        {
            if is_alive {
                self.effect(Effect::CallRunner { name: name.clone() });
            } else {
                // The lock was free before the journal was read, so nothing was appended since.
                self.settled(&name, &records);
            }
            seen.insert(name);
        }
        self.settle_runs_of_missing_runners(&seen);
        self.finish_cancelled();
        self.pass("daemon.adopt.done");
    }

    /// Restores start intents from claims, because a power cut may have lost intents that were not
    /// synced. The claims of a run are replayed in the order of its attempts, whichever journals they
    /// are in.
    fn replay_claims(&mut self, runners: &[FoundRunner]) {
        let mut claims = BTreeMap::new();
        for runner in runners {
            for record in &runner.records {
                if let JournalRecord::Claim {
                    run,
                    attempt,
                    at,
                    gpus,
                } = record
                    && let Some(key) = self.queue.key(run)
                {
                    claims.insert((key, *attempt), (runner, run, *at, gpus));
                }
            }
        }
        for ((key, attempt), (runner, run, at, gpus)) in &claims {
            self.bring_forward(*key, *attempt, &runner.name, *at);
            let intent = RunEvent::AttemptIntent {
                attempt: *attempt,
                runner: runner.name.clone(),
                gpus: (*gpus).clone(),
                durable: false,
            };
            let event = self.apply(*key, intent, *at);
            self.queue.refile(*key);
            self.record(event.into_iter().collect(), Then::Nothing);
            if journal::trace(&runner.records, run, *attempt).end.is_some() {
                self.settle_attempt(*key, run, *attempt, &runner.records);
            }
        }
    }

    /// Brings a run to where a claim can follow. The attempt before the claimed one was over, and the
    /// runner that the history names for the same attempt never had it: a power cut lost what
    /// happened in between.
    fn bring_forward(&mut self, key: RunKey, attempt: u32, runner: &str, at: Moment) {
        let Some(state) = self.run_of(key).map(|run| &run.state) else {
            return;
        };
        let before = state.attempt;
        let has_another = state.runner.as_ref().is_some_and(|other| other != runner);
        if before < attempt {
            self.attempt_over(key, before, node_failed(), at);
        } else if before == attempt && has_another {
            let event = self.apply(key, RunEvent::AttemptUnclaimed { attempt }, at);
            self.record(event.into_iter().collect(), Then::Nothing);
        }
    }

    fn settle_runs_of_missing_runners(&mut self, seen: &BTreeSet<String>) {
        let lost: Vec<String> = self
            .queue
            .held_runs()
            .filter_map(|run| run.state.runner.clone())
            .filter(|runner| !seen.contains(runner))
            .collect();
        for name in lost {
            self.settled(&name, &[]);
        }
    }

    /// Ends queued runs whose cancel was recorded, but not their end.
    fn finish_cancelled(&mut self) {
        let wanted: Vec<(RunKey, u32)> = self
            .queue
            .all()
            .filter(|run| {
                run.far.is_none() && run.state.cancel_requested && run.state.runner.is_none()
            })
            .map(|run| (run.key, run.state.attempt))
            .collect();
        for (key, attempt) in wanted {
            let ended = RunEvent::Ended {
                attempt,
                ending: cancelled(),
            };
            if let Some(event) = self.apply_now(key, ended) {
                self.record_end(key, event);
            }
        }
    }

    /// Handles the hello of a runner: a new one, or one that an earlier daemon started.
    pub(super) fn runner_hello(&mut self, name: &str, carrying: Option<(RunId, u32)>) {
        let Some((key, attempt)) = self.held_by_runner(name) else {
            return;
        };
        if self.is_carried(carrying.as_ref(), key, attempt) {
            self.runners.assign(name, key, attempt);
        } else if carrying.is_none() && self.runners.is_to_read(name, key, attempt) {
            // It said this before it read its assignment.
            return;
        }
        self.effect(Effect::ReadJournal {
            name: name.to_owned(),
            carrying,
            after: Duration::ZERO,
        });
    }

    /// The attempt that the history gives to a runner.
    fn held_by_runner(&self, name: &str) -> Option<(RunKey, u32)> {
        self.queue
            .held_runs()
            .find(|run| run.state.runner.as_deref() == Some(name))
            .map(|run| (run.key, run.state.attempt))
    }

    fn is_carried(&self, carrying: Option<&(RunId, u32)>, key: RunKey, attempt: u32) -> bool {
        carrying
            .is_some_and(|(run, carried)| self.queue.key(run) == Some(key) && *carried == attempt)
    }

    /// Goes on after a hello, with the journal of the runner.
    pub(super) fn journal_read(
        &mut self,
        name: &str,
        carrying: Option<(RunId, u32)>,
        records: Result<Vec<JournalRecord>, String>,
    ) {
        let Some((key, attempt)) = self.held_by_runner(name) else {
            return;
        };
        // Its assignment was sent while the journal was being read.
        if carrying.is_none() && self.runners.is_to_read(name, key, attempt) {
            return;
        }
        match records {
            Ok(records) if self.is_carried(carrying.as_ref(), key, attempt) => {
                self.take_up(&records, key, attempt);
            }
            Err(error) if self.is_carried(carrying.as_ref(), key, attempt) => {
                self.log(format!(
                    "the journal of runner {name} cannot be read: {error}"
                ));
                self.effect(Effect::ReadJournal {
                    name: name.to_owned(),
                    carrying,
                    after: UNREAD_PAUSE,
                });
            }
            // It never got its assignment and never will, because the old connection is gone. If
            // its journal cannot be read now, it is read after the runner has exited.
            records => {
                let id = self.run_of(key).map(|run| run.id.clone());
                if let (Some(id), Ok(records)) = (id, records) {
                    self.settle_attempt(key, &id, attempt, &records);
                }
                self.runner_finished(name);
            }
        }
    }

    /// Takes over an attempt that an earlier daemon started: records what has happened since.
    fn take_up(&mut self, records: &[JournalRecord], key: RunKey, attempt: u32) {
        let Some(id) = self.run_of(key).map(|run| run.id.clone()) else {
            return;
        };
        let trace = journal::trace(records, &id, attempt);
        if let Some(at) = trace.started {
            self.attempt_started(key, attempt, at);
        }
        if let Some((until, ending)) = trace.held {
            self.attempt_held(key, attempt, until, ending);
        }
        self.send_stop_if_wanted(key);
    }

    pub(super) fn runner_gone(&mut self, name: &str) {
        self.runners.gone(name);
        // Either the runner is dead, or only the connection to it is.
        self.effect(Effect::CallRunner {
            name: name.to_owned(),
        });
    }

    /// Handles the death of a runner. If it died before it took its run, starts pause for a moment,
    /// because the next runner might die for the same reason.
    pub(super) fn runner_settled(&mut self, name: &str, records: &[JournalRecord]) {
        let waiting = self.queue.waiting_count();
        self.settled(name, records);
        if self.queue.waiting_count() > waiting && records.is_empty() {
            self.pause_starts("a runner died before it took its run".to_owned());
        }
    }

    /// Settles the runs of a runner whose journal is unlocked: at most its ranks are still alive.
    pub(super) fn settled(&mut self, name: &str, records: &[JournalRecord]) {
        let mine: Vec<(RunKey, RunId, u32)> = self
            .queue
            .held_runs()
            .filter(|run| run.state.runner.as_deref() == Some(name))
            .map(|run| (run.key, run.id.clone(), run.state.attempt))
            .collect();
        for (key, id, attempt) in mine {
            self.settle_attempt(key, &id, attempt, records);
        }
        // Whoever kills the processes in a cgroup that is not empty removes it.
        self.effect(Effect::RemoveGroup {
            runner: name.to_owned(),
        });
        // While orphans are being killed, the journal is the only proof that their attempt began.
        if self.held_by_runner(name).is_none() {
            self.runners.forgotten_journals.insert(name.to_owned());
        }
    }

    fn settle_attempt(&mut self, key: RunKey, id: &RunId, attempt: u32, records: &[JournalRecord]) {
        let trace = journal::trace(records, id, attempt);
        match (trace.claimed, trace.end) {
            (_, Some((at, ending))) => {
                if let Some(started) = trace.started {
                    self.attempt_started(key, attempt, started);
                }
                self.attempt_over(key, attempt, ending, at);
            }
            // A power cut lost the claim, or there was none: nobody knows whether the attempt had
            // begun.
            (None, None) if self.may_have_begun(key) => self.orphans_ended(key, attempt),
            (None, None) => self.attempt_unclaimed(key, attempt),
            // Guard and runner were killed together: kill the ranks that they left before anything
            // else.
            (Some(_), None) => {
                let runner = self.run_of(key).and_then(|run| run.state.runner.clone());
                let orphans = Orphans {
                    key,
                    attempt,
                    run: id.clone(),
                    is_of_this_boot: self.runner_is_of_this_boot(key),
                    runner,
                    processes: trace.processes,
                };
                self.effect(Effect::EndOrphans(Box::new(orphans)));
            }
        }
    }

    /// Returns a run to its place in the queue, because no runner took the attempt.
    pub(super) fn attempt_unclaimed(&mut self, key: RunKey, attempt: u32) {
        let event = self.apply_now(key, RunEvent::AttemptUnclaimed { attempt });
        self.queue.refile(key);
        self.record(event.into_iter().collect(), Then::Nothing);
        self.unsettled = true;
        if self
            .run_of(key)
            .is_some_and(|run| run.state.cancel_requested)
        {
            self.finish_cancelled();
        }
    }

    fn may_have_begun(&self, key: RunKey) -> bool {
        self.run_of(key)
            .is_some_and(|run| run.state.claim_may_be_lost)
            && !self.runner_is_of_this_boot(key)
    }

    fn runner_is_of_this_boot(&self, key: RunKey) -> bool {
        let runner = self.run_of(key).and_then(|run| run.state.runner.as_deref());
        runner.is_some_and(|runner| runner.starts_with(&self.settings.boot))
    }

    pub(super) fn orphans_ended(&mut self, key: RunKey, attempt: u32) {
        let Some(run) = self.run_of(key) else { return };
        let (id, runner) = (run.id.clone(), run.state.runner.clone());
        // The processes behind its mounts were killed too.
        self.effect(Effect::ReleaseMounts { run: id });
        self.attempt_over(key, attempt, node_failed(), self.now.wall);
        self.runners.forgotten_journals.extend(runner);
    }
}

fn node_failed() -> Ending {
    Ending::cause(Cause::NodeFailed)
        .detail("the runner and its guard were killed, or the machine went down")
}
