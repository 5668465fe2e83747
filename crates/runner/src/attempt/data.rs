//! The data of an attempt: downloaded before anything starts, collected when no process of it is
//! alive.

use super::{Attempt, Change, Step};
use crate::data::DataProcess;
use rustix::process::Signal;
use std::time::{Duration, Instant};
use towline_core::obstacle::Obstacle;
use towline_core::reason::{Cause, Ending};
use towline_wire::runner::DataOrder;

impl Attempt {
    /// Starts the data process, if there is data; set-up waits for it.
    pub(super) fn bring_data(&mut self) -> Change {
        let Some(order) = self.assignment.data.clone() else {
            return self.set_up();
        };
        self.step = Step::Download;
        match DataProcess::begin(&order, &self.assignment, &self.folder) {
            Ok(data) => {
                self.data = Some(data);
                Change::SetUpStarted
            }
            Err(error) => {
                let why = format!("its data cannot be brought: {error}");
                self.not_started(Ending::not_started(why, Obstacle::of_io(&error)))
            }
        }
    }

    pub(super) fn wake_download(&mut self) -> Change {
        let Some(data) = &mut self.data else {
            return self.finish();
        };
        data.read_output();
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
                let why = outcome
                    .err()
                    .unwrap_or_else(|| "it ended before anything began".to_owned());
                self.ending
                    .get_or_insert(Ending::cause(Cause::Data).detail(why));
                self.finish()
            }
        }
    }

    /// Other nodes write to the same folders: the final collection waits until they have ended too.
    pub(crate) const fn wait_for_other_nodes(&mut self) {
        self.other_nodes_write = true;
    }

    /// No other node is left. A collection that is late gets the whole grace from now on.
    pub(crate) fn other_nodes_have_ended(&mut self) {
        if !std::mem::replace(&mut self.other_nodes_write, false) || self.step != Step::Collecting {
            return;
        }
        if self.kill_at.is_some() {
            self.kill_at =
                Some(Instant::now() + Duration::from_millis(self.assignment.grace_millis));
        }
        self.finish_data();
    }

    /// All processes here have ended. The data process ends last.
    pub(super) fn collect(&mut self) -> Option<Change> {
        self.assignment.data.as_ref()?;
        if self.step == Step::Collecting || self.step == Step::Download || self.step == Step::Layout
        {
            return None;
        }
        self.step = Step::Collecting;
        self.kill_at = None;
        if !self.other_nodes_write {
            self.finish_data();
        }
        Some(Change::Nothing)
    }

    /// Has the output collected. If the data process was lost meanwhile, another one does it.
    fn finish_data(&mut self) {
        if let Some(data) = self.data.as_mut().filter(|data| data.outcome().is_none()) {
            return data.finish();
        }
        let Some(order) = self.assignment.data.clone() else {
            return;
        };
        let again = DataOrder {
            only_collect: true,
            ..order
        };
        match DataProcess::begin(&again, &self.assignment, &self.folder) {
            Ok(mut data) => {
                data.finish();
                self.data = Some(data);
            }
            Err(error) => {
                self.data = None;
                self.not_collected(&error.to_string());
            }
        }
    }

    fn not_collected(&mut self, why: &str) {
        self.uncollected = Some(why.to_owned());
    }

    /// Why some of the output has not reached its datastore.
    pub(crate) fn uncollected(&self) -> Option<&str> {
        self.uncollected.as_deref()
    }

    /// Whether nothing runs any more and the output is being collected.
    pub(crate) fn is_collecting(&self) -> bool {
        self.step == Step::Collecting
    }

    pub(super) fn wake_collecting(&mut self) -> Change {
        if let Some(data) = &mut self.data {
            data.read_output();
            if self.other_nodes_write {
                return Change::Nothing;
            }
            if self.kill_at.is_some_and(|moment| Instant::now() >= moment) {
                data.kill(Signal::KILL);
            }
            match data.outcome() {
                None => return Change::Nothing,
                Some(Ok(())) => {}
                Some(Err(why)) => self.not_collected(&why),
            }
            self.data = None;
        }
        if self.other_nodes_write {
            Change::Nothing
        } else {
            self.finish()
        }
    }
}
