//! The beginning of an attempt: its code, then its data, then set-up, then the ranks.

use super::{Attempt, Change, Step, is_inside};
use crate::code::{Layout, not_laid_out};
use crate::launch::{LaunchError, Process};
use std::time::Instant;
use towline_core::obstacle::Obstacle;
use towline_core::reason::Ending;

impl Attempt {
    /// Lays the code out, if there is any; then set-up, then the ranks.
    pub(crate) fn begin(&mut self) -> Change {
        rustix::process::umask(rustix::fs::Mode::from_raw_mode(
            self.assignment.umask & 0o777,
        ));
        let Some(order) = self.assignment.code.clone() else {
            return self.bring_data();
        };
        match Layout::begin(order, self.assignment.attempt) {
            Ok(layout) => {
                self.layout = Some(layout);
                Change::Nothing
            }
            Err(error) => self.not_started(not_laid_out(&error, Obstacle::of_io(&error))),
        }
    }

    /// Starts set-up, or the ranks if there is none.
    pub(super) fn set_up(&mut self) -> Change {
        if is_inside(&self.assignment) {
            self.step = Step::Inside;
            let started = self.launch().inside();
            return self.started(started.map(|process| vec![process]), Change::RanksStarted);
        }
        self.step = Step::SetUp;
        if self.assignment.setup.is_empty() {
            return self.start_ranks();
        }
        let started = self.launch().set_up();
        self.started(started, Change::SetUpStarted)
    }

    pub(super) fn not_started(&mut self, ending: Ending) -> Change {
        self.ending.get_or_insert(ending);
        self.step = Step::CleanUp;
        self.wake()
    }

    /// Goes on once the code is laid out. `None` when no code is being laid out.
    pub(super) fn wake_layout(&mut self) -> Option<Change> {
        let layout = self.layout.as_ref()?;
        if self.ending.is_some() {
            layout.stop();
        }
        if !layout.is_over() {
            return Some(Change::Nothing);
        }
        let outcome = self.layout.take()?.finish();
        Some(match outcome {
            _ if self.ending.is_some() => self.finish(),
            Ok(()) => self.bring_data(),
            Err(error) => self.not_started(not_laid_out(&error, Obstacle::of(&error))),
        })
    }

    pub(super) fn start_ranks(&mut self) -> Change {
        self.step = Step::Ranks;
        let started = self.launch().ranks();
        self.started(started, Change::RanksStarted)
    }

    fn started(&mut self, started: Result<Vec<Process>, LaunchError>, change: Change) -> Change {
        match started {
            Ok(processes) => {
                self.processes = processes;
                self.began = Some(Instant::now());
                change
            }
            Err(problem) => {
                let obstacle = problem.io_error().and_then(Obstacle::of_io);
                let mut ending = Ending::not_started(problem.to_string(), obstacle);
                ending.exit_code = Some(problem.exit_code());
                self.ending.get_or_insert(ending);
                self.step = Step::CleanUp;
                // The data process waits for the order to finish.
                if self.data.is_some() {
                    self.finish()
                } else {
                    self.wake()
                }
            }
        }
    }
}
