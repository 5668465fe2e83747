//! The data of an attempt: brought before anything starts, collected when nothing of it is alive.

use super::{Attempt, Change, Stage};
use crate::data::DataProcess;
use rustix::process::Signal;
use std::time::Instant;
use towline_core::reason::{Cause, Ending};
use towline_wire::runner::DataOrder;

impl Attempt {
    /// Starts what carries the data, if there is any; set-up waits for it.
    pub(super) fn bring_data(&mut self) -> Change {
        let Some(order) = self.assignment.data.clone() else { return self.set_up() };
        self.stage = Stage::Staging;
        match DataProcess::begin(&order, &self.assignment, &self.folder) {
            Ok(data) => {
                self.data = Some(data);
                Change::SetUpStarted
            }
            Err(error) => self.not_started(&format!("its data cannot be brought: {error}")),
        }
    }

    pub(super) fn wake_staging(&mut self) -> Change {
        let Some(data) = &mut self.data else { return self.finish() };
        data.hear();
        match data.outcome() {
            None if self.ending.is_some() => {
                let late = self.kill_at.is_some_and(|moment| Instant::now() >= moment);
                data.kill(if late { Signal::KILL } else { Signal::TERM });
                Change::Nothing
            }
            None if data.is_ready() => self.set_up(),
            None => Change::Nothing,
            Some(outcome) => {
                self.data = None;
                let why = outcome.err().unwrap_or_else(|| "it ended before anything began".to_owned());
                self.ending.get_or_insert(Ending::cause(Cause::Data).detail(why));
                self.finish()
            }
        }
    }

    /// Everything that ran is gone. What carries the data ends last; if it was lost on the way,
    /// another one collects.
    pub(super) fn collect(&mut self) -> Option<Change> {
        let order = self.assignment.data.clone()?;
        if self.stage == Stage::Collecting || self.stage == Stage::Staging || self.stage == Stage::Layout {
            return None;
        }
        self.stage = Stage::Collecting;
        self.kill_at = None;
        match &mut self.data {
            Some(data) if data.outcome().is_none() => data.finish(),
            _ => {
                let again = DataOrder { only_collect: true, ..order };
                match DataProcess::begin(&again, &self.assignment, &self.folder) {
                    Ok(mut data) => {
                        data.finish();
                        self.data = Some(data);
                    }
                    Err(error) => {
                        self.data = None;
                        self.ending.get_or_insert(Ending::cause(Cause::Data).detail(error.to_string()));
                        return None;
                    }
                }
            }
        }
        Some(Change::Nothing)
    }

    pub(super) fn wake_collecting(&mut self) -> Change {
        if let Some(data) = &mut self.data {
            data.hear();
            if self.kill_at.is_some_and(|moment| Instant::now() >= moment) {
                data.kill(Signal::KILL);
            }
            match data.outcome() {
                None => return Change::Nothing,
                Some(Ok(())) => {}
                // The first cause stays, but that something is missing is not kept quiet.
                Some(Err(why)) => match &mut self.ending {
                    None => self.ending = Some(Ending::cause(Cause::Data).detail(why)),
                    Some(ending) => {
                        let first = ending.detail.take().map(|detail| format!("{detail}; ")).unwrap_or_default();
                        ending.detail = Some(format!("{first}its data was not collected: {why}"));
                    }
                },
            }
            self.data = None;
        }
        self.finish()
    }
}
