//! Looks at the runs: reads their records and, when a query is due, asks the scheduler.

use super::{Call, CallAnswer, Doing, Worker};
use crate::daemon::Report;
use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Duration;
use towline_core::cluster::{Depth, Observed, RunRef, RunReport};
use towline_core::state::Native;
use towline_core::{Error, Result, RunId};

/// A look that is under way.
#[derive(Debug)]
pub(super) struct Look {
    begun: Duration,
    /// Whether the scheduler is asked too.
    asks: bool,
    /// The client that waits for it. None if it belongs to a round.
    connection: Option<u64>,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    Observing,
    /// Fetches the new log bytes of runs that clients follow.
    Following(Following),
}

#[derive(Debug)]
struct Following {
    has_heard: bool,
    changed: Vec<RunReport>,
    current: Option<RunId>,
    rest: VecDeque<RunRef>,
    /// Runs of which there are more bytes.
    behind: HashSet<RunId>,
    unasked: Option<String>,
}

impl Worker {
    pub(super) fn look_if_due(&mut self) {
        if !self.agenda.watched.is_empty() && self.agenda.is_due() {
            self.begin_look(None);
        }
    }

    /// Looks for a client that waits.
    pub(super) fn look_for(&mut self, connection: u64) {
        if self.agenda.watched.is_empty() {
            return self.look_done(Some(connection), Ok(()), false);
        }
        self.begin_look(Some(connection));
    }

    fn begin_look(&mut self, connection: Option<u64>) {
        let asks = self.agenda.ask_in().is_zero();
        let call = Call::Observe {
            runs: self.agenda.watched.values().cloned().collect(),
            depth: if asks {
                Depth::Scheduler
            } else {
                Depth::Records
            },
        };
        let look = Look {
            begun: self.agenda.now,
            asks,
            connection,
            stage: Stage::Observing,
        };
        self.call(call, Doing::Looking(Box::new(look)));
    }

    pub(super) fn look_answered(&mut self, look: Look, answer: CallAnswer) {
        match (look.stage, answer) {
            (Stage::Observing, CallAnswer::Observed { observed, pages }) => {
                let look = Look {
                    stage: Stage::Observing,
                    ..look
                };
                match observed {
                    Ok(observed) => self.observed(look, observed, &pages),
                    Err(error) => self.look_done(look.connection, Err(error), false),
                }
            }
            (Stage::Following(mut following), CallAnswer::BroughtLogs(brought)) => {
                let look = Look {
                    stage: Stage::Observing,
                    ..look
                };
                match brought {
                    Ok(is_all) => {
                        if !is_all {
                            following.behind.extend(following.current.take());
                        }
                        self.follow_next(look, following);
                    }
                    Err(error) => {
                        self.look_done(look.connection, Err(error), following.has_heard);
                    }
                }
            }
            _ => {}
        }
    }

    fn observed(&mut self, look: Look, observed: Observed, pages: &HashMap<String, String>) {
        self.agenda.has_looked(look.asks, &observed);
        let mut changed = Vec::new();
        for mut report in observed.runs {
            if !look.asks {
                report.native = placed(&report, self.agenda.last.get(&report.run));
                self.add_page(&mut report, pages);
            }
            if self.agenda.last.get(&report.run) != Some(&report) {
                changed.push(report);
            }
        }
        if !changed.is_empty() {
            self.agenda.ask_soon();
        }
        let following = Following {
            // Records alone do not count as an answer while the scheduler does not answer.
            has_heard: self.agenda.is_answered,
            changed,
            current: None,
            rest: self.agenda.followed.values().cloned().collect(),
            behind: HashSet::new(),
            unasked: observed.unasked,
        };
        self.follow_next(look, following);
    }

    /// A client that follows gets all log bytes before the end. A report of an end that comes too
    /// early is held back until the next look.
    fn follow_next(&mut self, mut look: Look, mut following: Following) {
        if let Some(run) = following.rest.pop_front() {
            following.current = Some(run.run.clone());
            look.stage = Stage::Following(following);
            return self.call(Call::BringLogs(run), Doing::Looking(Box::new(look)));
        }
        let Following {
            has_heard,
            mut changed,
            behind,
            unasked,
            ..
        } = following;
        changed.retain(|report| {
            !behind.contains(&report.run) || report.attempts.iter().all(|of| of.end.is_none())
        });
        let cost = self.agenda.now.saturating_sub(look.begun);
        self.agenda.took(cost, behind.is_empty());
        let last = changed
            .iter()
            .map(|report| (report.run.clone(), report.clone()));
        self.agenda.last.extend(last);
        if !changed.is_empty() {
            self.tell(Report::Observed { reports: changed });
        }
        let outcome = unasked.map_or(Ok(()), |why| Err(Error::unreachable(why)));
        self.look_done(look.connection, outcome, has_heard);
    }

    fn look_done(&mut self, connection: Option<u64>, outcome: Result<()>, has_heard: bool) {
        let Some(connection) = connection else {
            return self.part_done(outcome, has_heard);
        };
        self.note_change(outcome.as_ref().err(), has_heard);
        match outcome {
            Ok(()) => self.tell(Report::Looked { connection }),
            Err(error) => self.answer(connection, Err(error)),
        }
    }

    /// Adds the link to the cluster's web page, because a run may end before the first query to the
    /// scheduler.
    fn add_page(&self, report: &mut RunReport, pages: &HashMap<String, String>) {
        let watched = self.agenda.watched.get(&report.run);
        let Some(name) = watched.and_then(|far| far.native.clone()) else {
            return;
        };
        if let Some(page) = pages.get(&name) {
            let native = report.native.get_or_insert_with(|| Native {
                id: name,
                ..Native::default()
            });
            native.url.get_or_insert_with(|| page.clone());
        }
    }
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
