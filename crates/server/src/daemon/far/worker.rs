//! The thread of one far cluster. It holds one connection, and sends one query per interval for all
//! runs. It never writes the history; it sends messages to the daemon.

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
                // A user who submits is present and may have signed in by now, so the pause ends.
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

    /// Fetches some more of the logs for which a client waits.
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

    /// Drops submissions that have not been sent yet; orders a cancel of the others from the
    /// cluster.
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

    /// Does everything that is due. A failure of one part does not stop the others.
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
            // Nothing was due, so nothing is known about the cluster's health.
            Ok(()) => self.status.waits_no_more(),
        }
    }

    /// Notes the outcome of a log fetch: a cluster that cannot be reached is trouble. Any other
    /// answer says nothing about the runs.
    fn note(&self, error: Option<&Error>) {
        match error {
            Some(error) if error.kind() == ErrorKind::Unreachable => {
                self.status.trouble(&error.to_string(), error.hints());
            }
            _ => self.status.waits_no_more(),
        }
    }

    /// Submits in order. A submission that fails goes to the back of the queue, so that it does not
    /// block the rest.
    fn submit_all(&self, agenda: &mut Agenda, heard: &mut bool) -> Result<()> {
        while let Some(mut next) = agenda.submissions.pop_front() {
            let plan = next.plan.clone();
            // Watched from now on, because the cluster may have the runs even if we never get its
            // answer.
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
                    // The status is fresh before the daemon gets the message, because a client may
                    // read it at once.
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

    /// Sends one submission. A refusal is final only if the cluster has none of its runs.
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

    /// The names of the runs on the cluster, if it accepted an earlier try whose answer was lost.
    /// `None` if it certainly did not.
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
        // A backend that refuses a sweep cancels the runs that it had already created. If any other
        // run is alive, or may not be listed yet, the outcome is unknown.
        let is_alive = |report: &RunReport| name_there(report).is_some() && !report.cancelled;
        if observed.runs.iter().any(is_alive) || since.elapsed() < self.backend.listing_delay() {
            return Err(refused.as_unknown());
        }
        Ok(None)
    }

    /// Adds the link to the cluster's web page, because a run may end before the first query to the
    /// scheduler.
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
        // The user who cancelled waits for the answer.
        agenda.ask_now();
        *heard = true;
        Ok(())
    }

    /// Reads the records and, when a query is due, asks the scheduler.
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
        // Records alone do not count as an answer while the scheduler does not answer.
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
        // A client that follows gets all log bytes before the end. A report of an end that comes
        // too early is held back until the next look.
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

/// The scheduler's last answer about a run, with the hosts that its records name.
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
