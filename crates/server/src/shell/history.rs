//! Writes the daemon's batches into the history, and answers its questions.

use super::Shell;
use crate::daemon::{Answer, Query, StoredRun, Submission, Write, Written};
use std::collections::HashMap;
use std::sync::Arc;
use towline_core::{Error, Result, RunId};
use towline_engine::history::{Batch, History};

impl Shell {
    /// Writes all or nothing. Secrets and clusters of submissions are on disk first.
    pub(super) fn commit(
        &mut self,
        writes: &[Arc<[Write]>],
        durable: bool,
        after_failure: bool,
    ) -> Result<Vec<Written>> {
        let all: Vec<&Write> = writes.iter().flat_map(|writes| writes.iter()).collect();
        for write in &all {
            if let Write::Submit(submission) = write {
                self.prepare(submission)?;
            }
        }
        if after_failure {
            self.history.shrink_log();
        }
        let written = apply(&self.history, &all, durable);
        // The write-ahead log itself may take the missing space.
        if written.is_err() && self.history.shrink_log() {
            return apply(&self.history, &all, durable);
        }
        written
    }

    fn prepare(&mut self, submission: &Submission) -> Result<()> {
        if let Some(cluster) = &submission.cluster {
            self.keep_cluster(cluster)?;
        }
        // A file that only this user can read. If the same submission comes again while the disk is
        // full, its first file stays complete.
        if !submission.secrets.is_empty() {
            let path = self.state.secret(&submission.plan.id);
            towline_host::once::replace(&path, &submission.secrets.to_private_bytes())
                .map_err(|error| Error::from_io("the secrets cannot be stored", error))?;
        }
        Ok(())
    }
}

fn apply(history: &History, writes: &[&Write], durable: bool) -> Result<Vec<Written>> {
    let batch = history.batch(durable)?;
    let written = writes
        .iter()
        .map(|write| one(&batch, write))
        .collect::<Result<Vec<_>>>()?;
    batch.commit()?;
    Ok(written)
}

fn one(batch: &Batch<'_>, write: &Write) -> Result<Written> {
    match write {
        Write::Submit(submission) => {
            let keys = batch.submit(&submission.plan, &submission.state, submission.at)?;
            if let (Some([key]), Some(intent)) = (keys.as_deref(), &submission.intent) {
                batch.event(*key, &intent.0, &intent.1, submission.at)?;
            }
            Ok(Written::Submitted(keys))
        }
        Write::Event(of) => batch
            .event(of.key, &of.event, &of.state, of.at)
            .map(Written::Event),
        Write::Forget { run } => batch.forget(run).map(Written::Forgotten),
        Write::ForgetUnused => batch
            .forget_unused_environments()
            .map(|()| Written::Nothing),
        Write::Tag {
            run,
            add,
            remove,
            at,
        } => batch.tag(run, add, remove, *at).map(Written::Tagged),
    }
}

pub(super) fn read(history: &History, query: Query) -> Answer {
    match query {
        Query::States(runs) => Answer::States(
            runs.iter()
                .map(|run| Ok(history.run(run)?.map(|record| record.state)))
                .collect(),
        ),
        Query::Plan(submission) => Answer::Plan(
            history
                .submission(&submission)
                .map(|found| found.map(|submission| Arc::new(submission.plan))),
        ),
        Query::Run(run) => Answer::Run(stored_run(history, run)),
        Query::FarRuns(runs) => Answer::FarRuns(far_runs(history, runs)),
        Query::Phases(ids) => Answer::Phases(ids.iter().map(|id| history.phases_of(id)).collect()),
        Query::Nothing => Answer::Nothing,
    }
}

fn stored_run(history: &History, run: RunId) -> Result<Option<StoredRun>> {
    let (Some(record), Some(submission)) = (history.run(&run)?, history.submission_of(&run)?)
    else {
        return Ok(None);
    };
    Ok(Some(StoredRun {
        run,
        far: (!submission.plan.is_here()).then_some(submission.plan.cluster),
        state: record.state,
    }))
}

/// The far runs among these. Adopted ones belong to another machine or another tool.
fn far_runs(history: &History, runs: Vec<RunId>) -> Vec<StoredRun> {
    // Asked once per submission, because a sweep may have many runs.
    let mut clusters: HashMap<RunId, Option<String>> = HashMap::new();
    let mut far_of = |run: &RunId| {
        let submission = history.submission_id_of(run).ok().flatten()?;
        let cluster = clusters.entry(submission).or_insert_with_key(|submission| {
            let plan = history.submission(submission).ok().flatten()?.plan;
            (!plan.is_here() && plan.adopted.is_none()).then_some(plan.cluster)
        });
        cluster.clone()
    };
    runs.into_iter()
        .filter_map(|run| {
            let far = Some(far_of(&run)?);
            let state = history.run(&run).ok().flatten()?.state;
            Some(StoredRun { run, far, state })
        })
        .collect()
}
