//! The thread of one far cluster: one line to it, one question for all runs and interval, and
//! whatever else is asked of it in between. It writes nothing into the history; it tells.

use super::super::Message;
use super::agenda::{Agenda, Submission};
use super::logs;
use super::orders::{Order, Word};
use super::status::Status;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Instant;
use tokio::sync::mpsc::UnboundedSender;
use towline_core::cluster::{Cluster, Depth, RunRef, RunReport};
use towline_core::state::Native;
use towline_core::{Error, ErrorKind, Result};
use towline_host::crash;
use towline_wire::daemon::Reply;
use towline_wire::layout::StateFolder;

pub(super) struct Worker {
    pub(super) cluster: String,
    pub(super) backend: Arc<dyn Cluster>,
    pub(super) state: StateFolder,
    pub(super) orders: Receiver<Order>,
    pub(super) inbox: UnboundedSender<Message>,
    pub(super) status: Status,
}

impl Worker {
    pub(super) fn serve(self) {
        let mut agenda = Agenda::new(self.backend.caps().watches);
        loop {
            match self.orders.recv_timeout(agenda.wait()) {
                Ok(Order::Leave) | Err(RecvTimeoutError::Disconnected) => return,
                Ok(order) => {
                    self.take(order, &mut agenda);
                    while let Ok(order) = self.orders.try_recv() {
                        self.take(order, &mut agenda);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            self.fetch(&mut agenda);
            if !agenda.is_paused() {
                self.work(&mut agenda);
            }
        }
    }

    fn tell(&self, word: Word) {
        let _ = self.inbox.send(Message::Far {
            cluster: self.cluster.clone(),
            word,
        });
    }

    fn take(&self, order: Order, agenda: &mut Agenda) {
        agenda.is_used();
        match order {
            Order::Submit {
                plan,
                secrets,
                again,
            } => {
                // Whoever submits is there and may have signed in by now.
                agenda.end_pause();
                agenda.submissions.push_back(Submission {
                    plan,
                    secrets,
                    again,
                    absent: None,
                });
            }
            Order::Watch { runs } => agenda
                .watched
                .extend(runs.into_iter().map(|far| (far.run.clone(), far))),
            Order::Unwatch { runs } => runs.iter().for_each(|run| agenda.forget(run)),
            Order::Cancel { runs } => {
                agenda.end_pause();
                self.withdraw(runs, agenda);
            }
            Order::Follow { run, on: true } => {
                agenda.end_pause();
                agenda.followed.insert(run.run.clone(), run);
            }
            Order::Follow { run, on: false } => {
                agenda.followed.remove(&run.run);
            }
            Order::Logs { run, replies } => agenda.fetches.push_back((run, replies)),
            Order::Look { replies } => {
                agenda.ask_in_any_case();
                self.status.waits();
                let mut heard = false;
                let looked = self.look(agenda, &mut heard);
                self.note_change(&looked, heard);
                match looked {
                    Ok(()) => self.tell(Word::Looked { replies }),
                    Err(error) => drop(
                        replies.send(Reply::Refused(towline_wire::daemon::Refusal::from(&error))),
                    ),
                }
            }
            Order::Explain { run, replies } => {
                self.status.waits();
                let answer = self.backend.explain(&run);
                self.note(answer.as_ref().err());
                let _ = replies.send(match answer {
                    Ok(explained) => Reply::FarExplained(explained),
                    Err(error) => Reply::Refused(towline_wire::daemon::Refusal::from(&error)),
                });
            }
            Order::Forget { runs } => {
                let _ = self.backend.forget(&runs);
            }
            Order::Changed => agenda.look_now(),
            Order::Leave => {}
        }
    }

    /// Some more of the logs that somebody waits for.
    fn fetch(&self, agenda: &mut Agenda) {
        let Some((run, replies)) = agenda.fetches.pop_front() else {
            return;
        };
        self.status.waits();
        let brought = logs::bring(self.backend.as_ref(), &self.state, &run);
        self.note(brought.as_ref().err());
        let reply = match brought {
            Ok(false) if replies.is_closed() => return,
            Ok(false) => return agenda.fetches.push_back((run, replies)),
            Ok(true) => Reply::LogsBrought,
            Err(error) => Reply::Refused(towline_wire::daemon::Refusal::from(&error)),
        };
        let _ = replies.send(reply);
    }

    /// What has not been carried over yet never will be; the rest is asked for over there.
    fn withdraw(&self, runs: Vec<RunRef>, agenda: &mut Agenda) {
        for far in runs {
            let held = agenda.submissions.iter().position(|held| {
                held.plan.id == far.submission
                    && held.plan.runs.len() == 1
                    && !agenda.watched.contains_key(&far.run)
            });
            match held {
                Some(place) => {
                    agenda.submissions.remove(place);
                    self.tell(Word::Withdrawn {
                        runs: vec![far.run],
                    });
                }
                None => agenda.cancels.push(far),
            }
        }
    }

    /// Everything that is due. What fails does not keep the others from being tried.
    fn work(&self, agenda: &mut Agenda) {
        self.status.waits();
        let mut heard = false;
        let submitted = self.submit_all(agenda, &mut heard);
        let cancelled = self.cancel_all(agenda, &mut heard);
        let looked = self.look(agenda, &mut heard);
        let done = submitted.and(cancelled).and(looked);
        self.note_change(&done, heard);
        agenda.pause_after(done.is_err());
        if agenda.is_idle() && self.backend.is_open() {
            self.backend.hang_up();
        }
    }

    fn note_change(&self, done: &Result<()>, heard: bool) {
        match done {
            Err(error) => self.status.trouble(&error.to_string(), error.hints()),
            Ok(()) if heard => self.status.seen(),
            // Nothing was due: no news is neither good nor bad.
            Ok(()) => self.status.waits_no_more(),
        }
    }

    /// An answer to another question is no news of the runs; none at all is trouble.
    fn note(&self, error: Option<&Error>) {
        match error {
            Some(error) if error.kind() == ErrorKind::Unreachable => {
                self.status.trouble(&error.to_string(), error.hints());
            }
            _ => self.status.waits_no_more(),
        }
    }

    /// Until one fails, which waits behind the others then: it may be the only one that cannot be.
    fn submit_all(&self, agenda: &mut Agenda, heard: &mut bool) -> Result<()> {
        while let Some(mut next) = agenda.submissions.pop_front() {
            let plan = next.plan.clone();
            // From here on it may be there, whatever becomes of us.
            let mut runs: Vec<RunRef> = plan
                .runs
                .iter()
                .map(|run| RunRef {
                    native: plan.native_of(&run.id),
                    ..RunRef::of(&run.id)
                })
                .collect();
            agenda
                .watched
                .extend(runs.iter().map(|far| (far.run.clone(), far.clone())));
            let result = self.submit(&mut next, &runs);
            crash::pass("daemon.far.answered");
            match result {
                Err(error) if error.kind() == ErrorKind::Unreachable => {
                    next.again = true;
                    agenda.submissions.push_back(next);
                    return Err(error);
                }
                result => {
                    let result = result.map(|natives| {
                        runs.iter_mut()
                            .zip(natives)
                            .for_each(|(far, native)| far.native = Some(native));
                        agenda
                            .watched
                            .extend(runs.iter().map(|far| (far.run.clone(), far.clone())));
                        runs
                    });
                    agenda.ask_soon();
                    *heard = true;
                    // Whoever hears of it may ask at once how fresh that is.
                    self.status.seen();
                    self.status.waits();
                    self.tell(Word::Submitted {
                        submission: plan.id.clone(),
                        result,
                    });
                }
            }
        }
        Ok(())
    }

    /// Carries one over. A no is final only where nothing of it is there.
    fn submit(&self, next: &mut Submission, runs: &[RunRef]) -> Result<Vec<String>> {
        let plan = &next.plan;
        let result = super::stage::stage(self.backend.as_ref(), &self.state, plan).and_then(|()| {
            self.tell(Word::Staged {
                submission: plan.id.clone(),
            });
            crash::pass("daemon.far.staged");
            self.backend.submit(plan, &next.secrets)
        });
        match result {
            Err(error) if error.kind() != ErrorKind::Unreachable => {
                if next.again
                    && let Some(natives) = self.taken_before(next, runs, &error)?
                {
                    return Ok(natives);
                }
                self.backend
                    .give_up(&next.plan)
                    .map_err(|failed| failed.as_unknown())
                    .and(Err(error))
            }
            other => other,
        }
    }

    /// What the cluster calls them, where an earlier try was taken and only its answer was lost;
    /// `None` where that is ruled out.
    fn taken_before(
        &self,
        next: &mut Submission,
        runs: &[RunRef],
        refused: &Error,
    ) -> Result<Option<Vec<String>>> {
        let observed = self
            .backend
            .observe(runs, Depth::Scheduler)
            .map_err(|_| refused.as_unknown())?;
        if observed.unasked.is_some() || observed.runs.len() < runs.len() {
            return Err(refused.as_unknown());
        }
        let found: Vec<String> = observed.runs.iter().filter_map(name_there).collect();
        if found.len() == runs.len() {
            return Ok(Some(found));
        }
        let since = *next.absent.get_or_insert_with(Instant::now);
        // Of a sweep that is refused those that were taken are ended again. Others that are there,
        // or may not be seen yet, leave it open.
        let is_alive = |report: &RunReport| name_there(report).is_some() && !report.cancelled;
        if observed.runs.iter().any(is_alive) || since.elapsed() < self.backend.listing_delay() {
            return Err(refused.as_unknown());
        }
        Ok(None)
    }

    /// A run may have come to its end before the scheduler was asked about it.
    fn add_page(&self, report: &mut RunReport, agenda: &Agenda) {
        let Some(name) = agenda
            .watched
            .get(&report.run)
            .and_then(|far| far.native.clone())
        else {
            return;
        };
        if let Some(page) = self.backend.web_page(&name) {
            let native = report.native.get_or_insert_with(|| Native {
                id: name,
                ..Native::default()
            });
            native.url.get_or_insert(page);
        }
    }

    fn cancel_all(&self, agenda: &mut Agenda, heard: &mut bool) -> Result<()> {
        if agenda.cancels.is_empty() {
            return Ok(());
        }
        let refused = self.backend.cancel(&agenda.cancels)?;
        crash::pass("daemon.far.cancelled");
        agenda.cancels.clear();
        if !refused.is_empty() {
            let told = |error: &Error| {
                error
                    .hints()
                    .iter()
                    .fold(error.to_string(), |text, hint| format!("{text}; {hint}"))
            };
            self.tell(Word::NotCancelled {
                runs: refused
                    .iter()
                    .map(|(run, error)| (run.clone(), told(error)))
                    .collect(),
            });
        }
        agenda.ask_soon();
        // Whoever cancelled waits for the answer.
        agenda.ask_now();
        *heard = true;
        Ok(())
    }

    /// The records, and at its time the scheduler.
    fn look(&self, agenda: &mut Agenda, heard: &mut bool) -> Result<()> {
        if agenda.watched.is_empty() || !agenda.is_due() {
            return Ok(());
        }
        let begun = Instant::now();
        let ask = agenda.ask_in().is_zero();
        let runs: Vec<RunRef> = agenda.watched.values().cloned().collect();
        let depth = if ask {
            Depth::Scheduler
        } else {
            Depth::Records
        };
        let observed = self.backend.observe(&runs, depth)?;
        agenda.has_looked(ask, &observed);
        // While the scheduler keeps silent, records alone are not all there is to know.
        *heard |= agenda.is_answered;
        let mut changed = Vec::new();
        for mut report in observed.runs {
            if !ask {
                report.native = placed(&report, agenda.last.get(&report.run));
                self.add_page(&mut report, agenda);
            }
            if agenda.last.get(&report.run) != Some(&report) {
                changed.push(report);
            }
        }
        if !changed.is_empty() {
            agenda.ask_soon();
        }
        // Whoever follows has all of the logs before hearing of the end. What was not told for want
        // of them is told at the next look.
        let mut behind = HashSet::new();
        for (id, run) in &agenda.followed {
            if !logs::bring(self.backend.as_ref(), &self.state, run)? {
                behind.insert(id.clone());
            }
        }
        changed.retain(|report| {
            !behind.contains(&report.run) || report.attempts.iter().all(|of| of.end.is_none())
        });
        agenda.took(begun.elapsed(), behind.is_empty());
        agenda.last.extend(
            changed
                .iter()
                .map(|report| (report.run.clone(), report.clone())),
        );
        if !changed.is_empty() {
            self.tell(Word::Observed { reports: changed });
        }
        match observed.unasked {
            Some(why) => Err(Error::unreachable(why)),
            None => Ok(()),
        }
    }
}

/// What the cluster calls a run, where there is a sign that it took it. That it was refused there,
/// too, may be on record.
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

/// The cluster's words of before, with the hosts that the records tell.
fn placed(report: &RunReport, last: Option<&RunReport>) -> Option<Native> {
    let claim = report
        .attempts
        .last()
        .filter(|of| of.end.is_none())
        .and_then(|of| of.claim.as_ref());
    let known = last.and_then(|last| last.native.clone());
    match (known, claim) {
        (Some(native), Some(claim)) => Some(Native {
            hosts: claim.hosts.clone(),
            ..native
        }),
        (None, Some(claim)) => Some(Native {
            id: claim.by.job.clone(),
            hosts: claim.hosts.clone(),
            ..Native::default()
        }),
        (known, None) => known,
    }
}
