//! Changes of runs that wait on the cluster, as a client asks for them.

use super::{Call, Doing, StatusNote, Worker};
use crate::daemon::Report;
use towline_core::change::Change;
use towline_core::cluster::RunRef;
use towline_core::{Error, Result, RunId};
use towline_wire::daemon::{Refusal, Reply};

/// A change that is to be made, or is being made.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) runs: Vec<RunRef>,
    pub(super) change: Change,
    pub(super) refused: Vec<(RunId, Refusal)>,
    pub(super) connection: u64,
}

impl Worker {
    pub(super) fn change(&mut self, asked: Asked) {
        self.status(StatusNote::Waits);
        let call = Call::Change {
            runs: asked.runs.clone(),
            change: asked.change.clone(),
        };
        self.call(call, Doing::Changing(Box::new(asked)));
    }

    pub(super) fn changed(&mut self, asked: Asked, answer: Result<Vec<(RunId, Error)>>) {
        self.note(answer.as_ref().err());
        let there = match answer {
            Ok(there) => there,
            Err(error) => return self.answer(asked.connection, Err::<Reply, _>(error)),
        };
        let is_refused = |run: &RunId| there.iter().any(|(refused, _)| refused == run);
        let runs = asked.runs.into_iter().map(|far| far.run);
        let done = runs.filter(|run| !is_refused(run)).collect();
        let mut refused = asked.refused;
        refused.extend(
            there
                .iter()
                .map(|(run, error)| (run.clone(), Refusal::from(error))),
        );
        self.tell(Report::Changed {
            done,
            refused,
            change: asked.change,
            connection: asked.connection,
        });
        // The user looks at the result next.
        self.agenda.ask_soon();
        self.agenda.ask_now();
    }
}
