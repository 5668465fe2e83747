//! The list of runs: a window of it, the selected row, and when the window is asked for again.

use super::event::{Now, Question, RowsAsk};
use super::rows::{Row, Run, Window};
use std::time::Duration;
use towline_core::RunId;
use towline_wire::api::stream::Changes;

/// The rows of a window, at least; a tall screen asks for three times its own.
const MIN_WINDOW_ROWS: u32 = 60;
const MAX_WINDOW_ROWS: u32 = 600;
/// A list that changes all the time is asked for this often at most.
const MIN_PAUSE: Duration = Duration::from_millis(500);
const MAX_PAUSE: Duration = Duration::from_secs(10);
/// The pause is so many times what the last answer took, so that asking costs two percent of a core
/// at most, however long the history is.
const PAUSES_PER_ANSWER: u32 = 50;

#[derive(Debug, Default)]
pub(crate) struct List {
    pub(crate) question: Question,
    pub(crate) window: Window,
    /// The number of the selected row in the whole list.
    pub(crate) selected: u64,
    /// The selected run or sweep: it stays selected when rows come before it.
    selected_id: Option<RunId>,
    /// The number of the first row on the screen.
    pub(crate) top: u64,
    /// The rows that fit on the screen.
    height: u64,
    pub(crate) has_answer: bool,
    /// Where the list was before the runs of a sweep were opened.
    before_sweep: Option<RunId>,
    asked: Option<(RowsAsk, Duration)>,
    is_stale: bool,
    not_before: Duration,
}

impl List {
    pub(crate) fn set_height(&mut self, rows: u16) {
        if self.height != u64::from(rows) {
            self.height = rows.into();
            self.show_selected();
        }
    }

    pub(crate) fn row(&self, number: u64) -> Option<&Row> {
        let place = number.checked_sub(self.window.offset)?;
        self.window.rows.get(usize::try_from(place).ok()?)
    }

    pub(crate) fn selected_row(&self) -> Option<&Row> {
        self.row(self.selected)
    }

    /// The numbers of the rows on the screen.
    pub(crate) fn visible(&self) -> std::ops::Range<u64> {
        self.top..(self.top + self.height).min(self.window.total)
    }

    pub(crate) fn select(&mut self, number: u64) {
        let last = self.window.total.saturating_sub(1);
        self.selected = number.min(last);
        self.selected_id = self.selected_row().map(|row| row.id().clone());
        self.show_selected();
    }

    fn show_selected(&mut self) {
        let bottom = (self.selected + 1).saturating_sub(self.height);
        self.top = self.top.clamp(bottom, self.selected.max(bottom));
        let last_top = self.window.total.saturating_sub(self.height);
        self.top = self.top.min(last_top);
        if !self.covers_screen() {
            self.ask_at_once();
        }
    }

    pub(crate) fn step(&mut self, rows: i64) {
        self.select(self.selected.saturating_add_signed(rows));
    }

    pub(crate) fn page(&mut self, pages: i64) {
        let rows = i64::try_from(self.height.saturating_sub(1).max(1)).unwrap_or(1);
        self.step(rows * pages);
    }

    pub(crate) fn last(&mut self) {
        self.select(u64::MAX);
    }

    /// Asks for other runs.
    pub(crate) fn set_question(&mut self, change: impl FnOnce(&mut Question)) {
        let before = self.question.clone();
        change(&mut self.question);
        if self.question != before {
            self.ask_at_once();
        }
    }

    /// Lists the runs of the selected sweep one by one.
    pub(crate) fn open_sweep(&mut self) -> bool {
        let Some(Row::Sweep(sweep)) = self.selected_row() else {
            return false;
        };
        let id = sweep.id.clone();
        self.before_sweep = Some(id.clone());
        self.set_question(|question| question.sweep = Some(id));
        self.go_to_begin();
        true
    }

    /// Back from the runs of a sweep to all runs.
    pub(crate) fn close_sweep(&mut self) -> bool {
        if self.question.sweep.is_none() {
            return false;
        }
        self.set_question(|question| question.sweep = None);
        self.go_to_begin();
        self.selected_id = self.before_sweep.take();
        true
    }

    fn go_to_begin(&mut self) {
        (self.selected, self.top, self.selected_id) = (0, 0, None);
    }

    fn covers_screen(&self) -> bool {
        let end = self.window.offset + self.window.rows.len() as u64;
        let wanted = self.visible();
        wanted.is_empty() || (self.window.offset <= wanted.start && wanted.end <= end)
    }

    /// Something happened to the runs of the list. What is on the screen changes at once; the order
    /// and the counts follow with the next answer.
    pub(crate) fn take_changes(&mut self, changes: &Changes) {
        self.is_stale = true;
        for told in &changes.runs {
            let mut rows = self.window.rows.iter_mut();
            let Some(row) = rows.find(|row| row.run().id == told.id) else {
                continue;
            };
            if let Some(new) = Run::of_stream(told) {
                match row {
                    Row::Run(run) => **run = new,
                    Row::Sweep(sweep) => sweep.first = new,
                }
            }
        }
    }

    pub(crate) fn ask_soon(&mut self) {
        self.is_stale = true;
    }

    pub(crate) fn ask_at_once(&mut self) {
        self.is_stale = true;
        self.not_before = Duration::ZERO;
    }

    /// When the list is to be asked for again; `None` if it need not be, or is being asked for.
    pub(crate) fn due(&self) -> Option<Duration> {
        (self.is_stale && self.asked.is_none()).then_some(self.not_before)
    }

    pub(crate) fn ask_if_due(&mut self, now: Now) -> Option<RowsAsk> {
        self.due().filter(|due| *due <= now.steady)?;
        let limit = u32::try_from(self.height.saturating_mul(3)).unwrap_or(MAX_WINDOW_ROWS);
        let limit = limit.clamp(MIN_WINDOW_ROWS, MAX_WINDOW_ROWS);
        let ask = RowsAsk {
            question: self.question.clone(),
            offset: self.top.saturating_sub(u64::from(limit) / 3),
            limit,
        };
        self.is_stale = false;
        self.asked = Some((ask.clone(), now.steady));
        Some(ask)
    }

    /// Takes the answer. `false` if nobody asks this any more.
    pub(crate) fn take(&mut self, ask: &RowsAsk, window: Window, now: Now) -> bool {
        self.answered(now);
        if ask.question != self.question {
            self.ask_at_once();
            return false;
        }
        self.window = window;
        self.has_answer = true;
        self.find_selected();
        self.show_selected();
        true
    }

    /// An answer came, or there is none: the next one may not be asked for before a pause.
    pub(crate) fn answered(&mut self, now: Now) {
        if let Some((_, asked)) = self.asked.take() {
            let took = now.steady.saturating_sub(asked);
            let pause = (took * PAUSES_PER_ANSWER).clamp(MIN_PAUSE, MAX_PAUSE);
            self.not_before = now.steady + pause;
        }
    }

    /// Finds the selected row among the new ones. A sweep may be there twice, with its active and
    /// with its ended runs: then the nearest is meant.
    fn find_selected(&mut self) {
        let numbers = self.window.offset..;
        let same = numbers
            .zip(&self.window.rows)
            .filter(|(_, row)| Some(row.id()) == self.selected_id.as_ref())
            .map(|(number, _)| number);
        if let Some(number) = same.min_by_key(|number| number.abs_diff(self.selected)) {
            let from_top = self.selected.saturating_sub(self.top);
            self.selected = number;
            self.top = number.saturating_sub(from_top);
        } else {
            self.selected = self.selected.min(self.window.total.saturating_sub(1));
            self.selected_id = self.selected_row().map(|row| row.id().clone());
        }
    }
}
