//! Changes of runs that wait: hold, resume, edit. And tags, which any run can get.

use super::ledger::{Write, WriteThen, Written};
use super::queue::Run;
use super::{Announced, Daemon, Order, write_of};
use std::collections::BTreeMap;
use towline_backends::local::render;
use towline_core::change::{Change, Edit};
use towline_core::cluster::RunRef;
use towline_core::event::{Recorded, RunEvent};
use towline_core::state::Phase;
use towline_core::{Error, Result, RunId};
use towline_engine::history::RunKey;
use towline_wire::daemon::{Refusal, Reply};

/// The answer to a change: which runs have it, and why others do not.
#[derive(Debug, Default)]
pub(super) struct Changes {
    done: Vec<RunId>,
    refused: Vec<(RunId, Refusal)>,
}

impl Changes {
    fn refuse(&mut self, run: RunId, error: &Error) {
        self.refused.push((run, Refusal::from(error)));
    }

    fn reply(self) -> Reply {
        Reply::Changed {
            runs: self.done,
            refused: self.refused,
        }
    }
}

impl Daemon {
    /// Changes runs that wait here, and orders their clusters to change the others.
    pub(super) fn change(&mut self, runs: &[RunId], change: &Change, connection: u64) {
        let mut changes = Changes::default();
        let mut here = Vec::new();
        let mut far: BTreeMap<String, Vec<RunRef>> = BTreeMap::new();
        for id in runs {
            match self.place_of_change(id, change, runs) {
                Ok((_, Some((cluster, run)))) => far.entry(cluster).or_default().push(run),
                Ok((key, None)) => here.push((key, id.clone())),
                Err(error) => changes.refuse(id.clone(), &error),
            }
        }
        let mut clusters = far.into_iter();
        let first = clusters.next();
        if first.is_some() && (!here.is_empty() || clusters.next().is_some()) {
            let error = Error::usage("the runs are on several clusters; name those of one");
            return self.refuse_with(connection, &error);
        }
        match first {
            Some((cluster, runs)) => {
                let order = Order::Change {
                    runs,
                    change: change.clone(),
                    refused: changes.refused,
                    connection,
                };
                self.order(cluster, order);
            }
            None => self.change_here(here, change, changes, connection),
        }
    }

    /// The place that can change a run: its cluster, or this daemon. An error if none can.
    fn place_of_change(
        &self,
        id: &RunId,
        change: &Change,
        asked: &[RunId],
    ) -> Result<(RunKey, Option<(String, RunRef)>)> {
        let run = self.queue.key(id).and_then(|key| self.run_of(key));
        let run = run.ok_or_else(|| Error::conflict(format!("{id} has ended")))?;
        if run.state.cancel_requested {
            return Err(Error::conflict(format!("{id} is being cancelled")));
        }
        match run.state.phase {
            Phase::Running => return Err(runs_already(run)),
            Phase::Staging | Phase::Submitting => {
                return Err(
                    Error::conflict(format!("{id} is being sent to its cluster"))
                        .hint("try again when its cluster has it"),
                );
            }
            _ if run.state.runner.is_some() => return Err(runs_already(run)),
            _ => {}
        }
        match &run.far {
            Some(_) if run.is_unsent() => {
                self.check_unsent(run, change, asked)?;
                Ok((run.key, None))
            }
            Some(cluster) => {
                let known = RunRef::known(&run.id, &run.state);
                Ok((run.key, Some((cluster.clone(), known))))
            }
            None => Ok((run.key, None)),
        }
    }

    /// A submission that its cluster does not have yet is sent as one, and as it was made.
    fn check_unsent(&self, run: &Run, change: &Change, asked: &[RunId]) -> Result<()> {
        if matches!(change, Change::Edit(_)) {
            let text = format!("{} waits here and is not on its cluster yet", run.id);
            return Err(Error::conflict(text).hint("abort it and submit it again as you want it"));
        }
        let mut all = self.queue.keys_of(&run.submission).into_iter();
        let is_asked = |key| {
            let run = self.run_of(key);
            run.is_none_or(|run| asked.contains(&run.id) || run.state.cancel_requested)
        };
        if all.all(is_asked) {
            return Ok(());
        }
        let text = format!(
            "{} is part of a sweep that is not on its cluster yet",
            run.id
        );
        let hint = format!("name the whole sweep: {}", run.submission.short());
        Err(Error::conflict(text).hint(hint))
    }

    fn change_here(
        &mut self,
        runs: Vec<(RunKey, RunId)>,
        change: &Change,
        mut changes: Changes,
        connection: u64,
    ) {
        let mut events = Vec::new();
        let mut keys = Vec::new();
        for (key, id) in runs {
            match self.change_one(key, change) {
                Ok(event) => {
                    events.extend(event);
                    keys.push(key);
                    changes.done.push(id);
                }
                Err(error) => changes.refuse(id, &error),
            }
        }
        // On disk before it is answered: what the user held stays on hold.
        self.release(keys, events);
        self.answer_change(changes, connection);
    }

    /// Answers once everything ordered so far is on disk.
    fn answer_change(&mut self, changes: Changes, connection: u64) {
        let then = WriteThen::Changed {
            changes,
            connection,
        };
        self.ledger.write(Vec::new(), true, then);
    }

    fn change_one(&mut self, key: RunKey, change: &Change) -> Result<Option<Announced>> {
        let event = match change {
            Change::Hold => RunEvent::PutOnHold,
            Change::Resume => RunEvent::Resumed,
            Change::Edit(edit) => {
                let edit = self.edit_of(key, edit)?;
                self.queue.edit(key, &edit, self.machine.cpus);
                RunEvent::Edited {
                    edit: Box::new(edit),
                }
            }
        };
        Ok(self.apply_now(key, event))
    }

    /// The edit with what was edited before, if the machine can ever start it.
    fn edit_of(&self, key: RunKey, edit: &Edit) -> Result<Edit> {
        let before = self.run_of(key).and_then(|run| run.state.edited.as_deref());
        let edit = edit.over(before);
        if let Some(shape) = &edit.shape {
            let need = render::need(shape, self.machine.cpus);
            render::check_fits(&need, &self.machine.whole())?;
        }
        Ok(edit)
    }

    pub(super) fn changed(
        &mut self,
        changes: Changes,
        connection: u64,
        result: Result<Vec<Written>>,
    ) {
        match result {
            Ok(_) => self.reply(connection, changes.reply()),
            Err(error) => self.refuse_with(connection, &error),
        }
    }

    /// Takes note of what a cluster has changed.
    pub(super) fn far_changed(
        &mut self,
        done: Vec<RunId>,
        refused: Vec<(RunId, Refusal)>,
        change: &Change,
        connection: u64,
    ) {
        let mut events = Vec::new();
        if let Change::Edit(edit) = change {
            for key in done
                .iter()
                .filter_map(|run| self.queue.key(run))
                .collect::<Vec<_>>()
            {
                let before = self.run_of(key).and_then(|run| run.state.edited.as_deref());
                let edit = Box::new(edit.over(before));
                events.extend(self.apply_now(key, RunEvent::Edited { edit }));
            }
        }
        let writes: Vec<Write> = events.iter().map(write_of).collect();
        if !writes.is_empty() {
            let then = WriteThen::Recorded {
                events,
                then: super::Then::Nothing,
            };
            self.ledger.write(writes, true, then);
        }
        let changes = Changes { done, refused };
        self.answer_change(changes, connection);
    }

    /// Adds tags to runs and removes others.
    pub(super) fn tag(
        &mut self,
        runs: Vec<RunId>,
        add: &[String],
        remove: &[String],
        connection: u64,
    ) {
        let at = self.now.wall;
        let write = |run: &RunId| Write::Tag {
            run: run.clone(),
            add: add.to_vec(),
            remove: remove.to_vec(),
            at,
        };
        let writes = runs.iter().map(write).collect();
        self.ledger.write(
            writes,
            true,
            WriteThen::Tagged {
                runs,
                at,
                connection,
            },
        );
    }

    pub(super) fn tagged(
        &mut self,
        runs: Vec<RunId>,
        at: towline_core::time::Moment,
        connection: u64,
        result: Result<Vec<Written>>,
    ) {
        let written = match result {
            Ok(written) => written,
            Err(error) => return self.refuse_with(connection, &error),
        };
        let mut tagged = Vec::new();
        for (run, written) in runs.into_iter().zip(written) {
            let Written::Tagged(Some((sequence, tags))) = written else {
                continue;
            };
            if let Some((key, state)) = self.queue.key(&run).and_then(|key| {
                let state = self.run_of(key)?.state.clone();
                Some((key, state))
            }) {
                let recorded = Recorded {
                    sequence,
                    run: run.clone(),
                    at,
                    event: RunEvent::Tagged { tags: tags.clone() },
                };
                self.tell_watchers(key, &recorded, &state);
            }
            tagged.push((run, tags));
        }
        self.reply(connection, Reply::Tagged { runs: tagged });
    }
}

fn runs_already(run: &Run) -> Error {
    let short = run.id.short();
    Error::conflict(format!("{} runs already", run.id)).hint(format!(
        "`tow abort {short}` ends it; `tow resubmit {short}` begins it anew"
    ))
}
