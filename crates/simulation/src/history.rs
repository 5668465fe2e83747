//! The history on the simulated disk: what is committed, and what of it is synced.

use std::collections::BTreeMap;
use std::sync::Arc;
use towline_core::counts::PhaseCounts;
use towline_core::event::RunEvent;
use towline_core::plan::Plan;
use towline_core::state::{RunState, Step, reduce};
use towline_core::sweep::Parameters;
use towline_core::time::Moment;
use towline_core::{Error, Result, RunId};
use towline_engine::history::{ActiveRun, RunKey};
use towline_server::daemon::{Answer, FoundRun, Query, StoredRun, Write, Written};

/// A run in the history.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) id: RunId,
    pub(crate) submission: RunId,
    pub(crate) parameters: Parameters,
    pub(crate) state: RunState,
    pub(crate) created: Moment,
    pub(crate) started: Option<Moment>,
    /// With their numbers in the stream.
    pub(crate) events: Vec<(i64, RunEvent)>,
}

#[derive(Debug, Clone, Default)]
struct Tables {
    plans: BTreeMap<RunId, Arc<Plan>>,
    rows: BTreeMap<RunKey, Row>,
    keys: BTreeMap<RunId, RunKey>,
    last_row: RunKey,
    last_event: i64,
}

#[derive(Debug, Default)]
pub(crate) struct History {
    live: Tables,
    synced: Tables,
    /// Commits that are not synced, oldest first.
    unsynced: Vec<Vec<Arc<[Write]>>>,
    /// What no history may hold.
    pub(crate) defects: Vec<String>,
}

impl History {
    /// Writes all or nothing.
    pub(crate) fn commit(&mut self, writes: &[Arc<[Write]>], durable: bool) -> Vec<Written> {
        let defects = &mut self.defects;
        let written = self.live.apply(writes, &mut |defect| defects.push(defect));
        self.unsynced.push(writes.to_vec());
        if durable {
            for commit in std::mem::take(&mut self.unsynced) {
                self.synced.apply(&commit, &mut |_| {});
            }
        }
        written
    }

    /// Loses commits that are not synced: the newest ones.
    pub(crate) fn power_cut(&mut self, kept_of_eight: usize) {
        let kept = self.unsynced.len() * kept_of_eight.min(8) / 8;
        for commit in std::mem::take(&mut self.unsynced).into_iter().take(kept) {
            self.synced.apply(&commit, &mut |_| {});
        }
        self.live = self.synced.clone();
    }

    pub(crate) fn row(&self, run: &RunId) -> Option<&Row> {
        self.live.rows.get(self.live.keys.get(run)?)
    }

    pub(crate) fn id_of(&self, key: RunKey) -> Option<&RunId> {
        self.live.rows.get(&key).map(|row| &row.id)
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = &Row> {
        self.live.rows.values()
    }

    pub(crate) fn plan(&self, submission: &RunId) -> Option<&Arc<Plan>> {
        self.live.plans.get(submission)
    }

    /// The runs that have not ended.
    pub(crate) fn active(&self) -> Vec<FoundRun> {
        let open = self.live.rows.iter();
        open.filter(|(_, row)| !row.state.phase.is_ended())
            .filter_map(|(key, row)| {
                let plan = self.live.plans.get(&row.submission)?;
                Some(FoundRun {
                    run: ActiveRun {
                        key: *key,
                        id: row.id.clone(),
                        submission: row.submission.clone(),
                        parameters: row.parameters.clone(),
                        state: row.state.clone(),
                        created: row.created,
                        started: row.started,
                    },
                    resolved: Arc::new(plan.resolved.clone()),
                    far: far_of(plan),
                })
            })
            .collect()
    }

    pub(crate) fn read(&self, query: Query) -> Answer {
        let state = |run: &RunId| self.row(run).map(|row| row.state.clone());
        match query {
            Query::States(runs) => Answer::States(Ok(runs.iter().map(state).collect())),
            // The history stores the runs of a plan apart.
            Query::Plan(submission) => {
                Answer::Plan(Ok(self.plan(&submission).map(|plan| Arc::new(plan.lean()))))
            }
            Query::Run(run) => Answer::Run(Ok(self.stored(&run))),
            Query::FarRuns(runs) => {
                let found = runs.iter().filter_map(|run| self.stored(run));
                Answer::FarRuns(found.filter(|stored| stored.far.is_some()).collect())
            }
            Query::Phases(ids) => {
                Answer::Phases(Ok(ids.iter().map(|id| self.phases_of(id)).collect()))
            }
            Query::Nothing => Answer::Nothing,
        }
    }

    /// The phases of a run, or of the runs of a submission.
    pub(crate) fn phases_of(&self, id: &RunId) -> PhaseCounts {
        let rows = self
            .rows()
            .filter(|row| row.id == *id || row.submission == *id);
        rows.map(|row| row.state.phase).collect()
    }

    fn stored(&self, run: &RunId) -> Option<StoredRun> {
        let row = self.row(run)?;
        Some(StoredRun {
            run: run.clone(),
            far: far_of(self.plan(&row.submission)?),
            state: row.state.clone(),
        })
    }
}

fn far_of(plan: &Plan) -> Option<String> {
    (!plan.is_here()).then(|| plan.cluster.clone())
}

/// The error of a full disk.
pub(crate) fn no_room<T>() -> Result<T> {
    Err(Error::refused("the disk is full; nothing was changed"))
}

impl Tables {
    fn apply(&mut self, writes: &[Arc<[Write]>], defect: &mut dyn FnMut(String)) -> Vec<Written> {
        let all = writes.iter().flat_map(|writes| writes.iter());
        all.map(|write| self.one(write, defect)).collect()
    }

    fn one(&mut self, write: &Write, defect: &mut dyn FnMut(String)) -> Written {
        match write {
            Write::Submit(submission) => {
                let plan = &submission.plan;
                if self.plans.contains_key(&plan.id) {
                    return Written::Submitted(None);
                }
                self.plans.insert(plan.id.clone(), plan.clone());
                let mut keys = Vec::new();
                for run in &plan.runs {
                    self.last_row += 1;
                    let row = Row {
                        id: run.id.clone(),
                        submission: plan.id.clone(),
                        parameters: run.parameters.clone(),
                        state: submission.state.clone(),
                        created: submission.at,
                        started: None,
                        events: Vec::new(),
                    };
                    self.keys.insert(run.id.clone(), self.last_row);
                    self.rows.insert(self.last_row, row);
                    keys.push(self.last_row);
                }
                if let (Some(intent), [key]) = (&submission.intent, keys.as_slice()) {
                    self.event(*key, &intent.0, &intent.1, submission.at, defect);
                }
                Written::Submitted(Some(keys))
            }
            Write::Event(of) => {
                Written::Event(self.event(of.key, &of.event, &of.state, of.at, defect))
            }
            Write::Forget { run } => Written::Forgotten(self.forget(run)),
            Write::ForgetUnused => Written::Nothing,
            Write::Tag { .. } => Written::Tagged(None),
        }
    }

    fn forget(&mut self, run: &RunId) -> bool {
        let ended = |key: &RunKey| {
            let row = self.rows.get(key);
            row.is_some_and(|row| row.state.phase.is_ended())
        };
        match self.keys.get(run).copied().filter(ended) {
            Some(key) => {
                self.keys.remove(run);
                self.rows.remove(&key);
                true
            }
            None => false,
        }
    }

    fn event(
        &mut self,
        key: RunKey,
        event: &RunEvent,
        state: &RunState,
        at: Moment,
        defect: &mut dyn FnMut(String),
    ) -> i64 {
        self.last_event += 1;
        let Some(row) = self.rows.get_mut(&key) else {
            defect(format!("{} of a run that is not there", event.word()));
            return self.last_event;
        };
        match reduce(&row.state, event) {
            Ok(Step::Changed(next)) if *next == *state => {}
            other => defect(format!(
                "{}: `{}` is written behind `{}` with a state that does not follow: {other:?}",
                row.id,
                event.word(),
                row.state.phase.word()
            )),
        }
        row.state = state.clone();
        if matches!(event, RunEvent::AttemptStarted { .. }) {
            row.started = Some(at);
        }
        row.events.push((self.last_event, event.clone()));
        self.last_event
    }
}
