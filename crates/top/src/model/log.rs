//! The log of the selected run: which one, the lines on the screen, and whether it is followed.

use super::event::{Answered, Ask, FoundLines, LinesAsk, LinesFrom, Now};
use super::lines::{LogLines, Taken};
use super::rows::Run;
use super::search::Search;
use serde::Deserialize;
use std::time::Duration;
use towline_core::RunId;
use towline_core::cluster::LogSource;
use towline_wire::api::log::LogRef;
use towline_wire::api::stream::{LogFrom, LogPart};

/// How long a run is selected before its log is read: a key that is held down passes over many.
const SHOW_AFTER: Duration = Duration::from_millis(120);
/// How often to look for the logs of a run that has written none.
const LIST_EVERY: Duration = Duration::from_secs(5);
/// A log that cannot be read, or that misses bytes, is read again after this.
const AGAIN_AFTER: Duration = Duration::from_millis(500);
const END_LINES: u32 = 500;
/// An answer has a largest size. If the last lines are too long for it, so many times fewer are
/// asked for.
const FEWER_LINES: u32 = 8;
/// The lines that are read around a place in the middle of a log.
const AROUND_LINES: u32 = 2000;
/// Bytes that come while lines are read wait, so many items at most.
const MAX_WAITING: usize = 64;
/// A far cluster may take long to answer, and the user goes on to other runs meanwhile.
const MAX_LISTS: u8 = 3;

/// A log that a run has.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct LogFile {
    pub(crate) attempt: u32,
    pub(crate) source: LogSource,
    pub(crate) bytes: u64,
}

#[derive(Debug, Default)]
pub(crate) struct LogPane {
    pub(super) run: Option<RunId>,
    pub(super) is_active: bool,
    pub(super) latest_attempt: u32,
    /// The log that is shown.
    pub(crate) log: Option<LogRef>,
    /// The user chose it, so no other takes its place.
    pub(super) is_chosen: bool,
    pub(crate) files: Vec<LogFile>,
    pub(crate) lines: LogLines,
    pub(crate) is_loaded: bool,
    pub(crate) trouble: Option<String>,
    /// The number of the first line on the screen; `None` follows the end.
    pub(crate) top: Option<u64>,
    /// So many columns are left of the screen.
    pub(crate) shift: u16,
    pub(super) height: u64,
    pub(crate) search: Search,
    serial: u64,
    is_reading: bool,
    waiting: Vec<LogPart>,
    show_at: Option<Duration>,
    read_at: Option<Duration>,
    list_at: Option<Duration>,
    lists_asked: u8,
    followed: Option<LogRef>,
    /// So many lines of the end are too many for one answer.
    too_many_lines: Option<u32>,
    /// The lines for this first line could not be had: they are not asked for again.
    unreachable_top: Option<u64>,
}

impl LogPane {
    pub(crate) fn set_height(&mut self, rows: u16) {
        self.height = rows.into();
    }

    /// Shows the log of a run from now on, or of none.
    pub(crate) fn show(&mut self, run: Option<&Run>, now: Now) {
        let id = run.map(|run| &run.id);
        if id != self.run.as_ref() {
            self.clear();
            self.files.clear();
            (self.log, self.is_chosen) = (None, false);
            self.run = id.cloned();
            self.show_at = id.map(|_| now.steady + SHOW_AFTER);
            self.list_at = None;
            self.search = Search::default();
        }
        if let Some(run) = run {
            let has_begun = run.attempt > self.latest_attempt;
            let has_ended = self.is_active && run.state.is_ended();
            if self.log.is_some() && (has_begun || has_ended) {
                self.list_at = Some(now.steady);
            }
            self.is_active = !run.state.is_ended();
            self.latest_attempt = run.attempt;
        }
    }

    fn clear(&mut self) {
        self.lines = LogLines::default();
        self.is_loaded = false;
        self.trouble = None;
        (self.top, self.shift, self.unreachable_top) = (None, 0, None);
        self.too_many_lines = None;
        self.waiting.clear();
        self.is_reading = false;
        self.read_at = None;
        // Answers to what was asked before are of no use.
        self.serial += 1;
    }

    pub(super) fn set_log(&mut self, attempt: u32, source: LogSource, now: Now) {
        let Some(run) = &self.run else { return };
        let log = LogRef::new(run, attempt, source);
        if self.log.as_ref() != Some(&log) {
            self.clear();
            self.log = Some(log);
            self.read_at = Some(now.steady);
            self.search = Search::default();
        }
    }

    pub(crate) fn due(&self) -> Option<Duration> {
        let list_at = self.list_at.filter(|_| self.lists_asked < MAX_LISTS);
        let read_at = self.read_at.filter(|_| !self.is_reading);
        [self.show_at, read_at, list_at].into_iter().flatten().min()
    }

    /// What is to be asked now.
    pub(crate) fn asks(&mut self, stream: Option<&str>, now: Now) -> Vec<Ask> {
        let is_due = |due: Option<Duration>| due.is_some_and(|due| due <= now.steady);
        let mut asks = Vec::new();
        if is_due(self.show_at) {
            self.show_at = None;
            self.list_at = Some(now.steady);
            // The likely log is read at once. Which ones there are may take a far cluster long.
            self.set_log(self.latest_attempt.max(1), LogSource::Rank(0), now);
        }
        if is_due(self.list_at) && self.lists_asked < MAX_LISTS {
            self.list_at = None;
            self.lists_asked += u8::from(self.run.is_some());
            asks.extend(self.run.clone().map(Ask::Logs));
        }
        if is_due(self.read_at) && !self.is_reading {
            self.read_at = None;
            asks.extend(self.read(self.wanted()));
        }
        if let (Some(stream), Some(log), true) = (stream, &self.log, self.is_loaded)
            && self.followed.as_ref() != Some(log)
        {
            self.followed = Some(log.clone());
            asks.push(Ask::Follow {
                stream: stream.to_owned(),
                logs: vec![from(log, self.lines.end())],
            });
        }
        asks.extend(self.search.ask(self.log.as_ref()));
        asks
    }

    fn read(&mut self, from: LinesFrom) -> Option<Ask> {
        let log = self.log.clone()?;
        self.serial += 1;
        self.is_reading = true;
        self.waiting.clear();
        Some(Ask::Lines(LinesAsk {
            serial: self.serial,
            log,
            from,
        }))
    }

    fn wanted(&self) -> LinesFrom {
        match self.top {
            None => {
                let too_many = self.too_many_lines.map(|lines| lines / FEWER_LINES);
                LinesFrom::End(too_many.map_or(END_LINES, |lines| lines.max(1)))
            }
            Some(top) => LinesFrom::Line {
                first: top.saturating_sub(u64::from(AROUND_LINES) / 2),
                count: AROUND_LINES,
            },
        }
    }

    pub(crate) fn take_lines(&mut self, ask: &LinesAsk, answer: Answered<FoundLines>, now: Now) {
        if ask.serial != self.serial {
            return;
        }
        self.is_reading = false;
        match answer {
            Ok(found) => {
                self.trouble = None;
                self.lines.set(found, self.top);
                self.is_loaded = true;
                let waiting = std::mem::take(&mut self.waiting);
                for part in &waiting {
                    self.take_part(part, now);
                }
                self.stay_within();
                if self.misses_lines() {
                    self.read_otherwise(ask.from, now);
                }
            }
            Err(refusal) => {
                self.trouble = Some(refusal.text());
                self.read_at = Some(now.steady + LIST_EVERY);
            }
        }
    }

    /// The answer does not have the lines of the screen, because others before them are too long.
    fn read_otherwise(&mut self, from: LinesFrom, now: Now) {
        self.unreachable_top = self.top;
        if let (LinesFrom::End(lines @ 2..), None) = (from, self.top) {
            self.too_many_lines = Some(lines);
            self.read_at = Some(now.steady);
        }
    }

    pub(crate) fn take_files(&mut self, run: &RunId, answer: Answered<Vec<LogFile>>, now: Now) {
        self.lists_asked = self.lists_asked.saturating_sub(1);
        if self.run.as_ref() != Some(run) {
            return;
        }
        match answer {
            Ok(files) => self.files = files,
            Err(refusal) => self.trouble = Some(refusal.text()),
        }
        if !self.is_chosen
            && let Some((attempt, source)) = self.likely()
        {
            self.set_log(attempt, source, now);
        }
        let source = self.log.as_ref().map(|log| log.source);
        let shows_rank = matches!(source, Some(LogSource::Rank(_))) && !self.files.is_empty();
        if self.is_active && !shows_rank {
            self.list_at = Some(now.steady + LIST_EVERY);
        }
    }

    /// Bytes came. Those of other logs are of a log that was followed before.
    pub(crate) fn take_part(&mut self, part: &LogPart, now: Now) {
        if self.log.as_ref() != Some(&part.log) {
            return;
        }
        if self.is_reading || !self.is_loaded {
            if self.waiting.len() < MAX_WAITING {
                self.waiting.push(part.clone());
            } else {
                self.read_at = Some(now.steady + AGAIN_AFTER);
            }
            return;
        }
        if self.lines.take(part, self.top) == Taken::Gap && self.read_at.is_none() {
            self.read_at = Some(now.steady + AGAIN_AFTER);
        }
    }

    /// The job has cut its log.
    pub(crate) fn take_cut(&mut self, log: &LogRef, now: Now) {
        if self.log.as_ref() == Some(log) {
            self.read_at = Some(now.steady);
        }
    }

    /// Another stream begins: it follows nothing, and bytes may have been missed.
    pub(crate) fn stream_begins(&mut self, now: Now) {
        self.followed = None;
        if self.log.is_some() {
            self.read_at = Some(now.steady);
        }
    }

    /// The lines on the screen are not all here.
    fn misses_lines(&self) -> bool {
        let Some(top) = self.top else {
            return !self.lines.reaches_end;
        };
        let end = (top + self.height).min(self.lines.total);
        top < self.lines.first || end > self.lines.behind()
    }

    fn stay_within(&mut self) {
        let last_top = self.lines.total.saturating_sub(self.height);
        self.top = self.top.map(|top| top.min(last_top));
    }

    /// The number of the first line on the screen.
    pub(crate) fn first_visible(&self) -> u64 {
        let follows = self.lines.behind().saturating_sub(self.height);
        self.top.unwrap_or(follows)
    }

    /// Goes to a line. The end of the log is followed once it is on the screen.
    pub(crate) fn go_to(&mut self, line: u64, now: Now) {
        let last_top = self.lines.total.saturating_sub(self.height);
        self.top = (line < last_top).then_some(line);
        if self.is_loaded && self.misses_lines() && self.unreachable_top != self.top {
            self.unreachable_top = None;
            self.read_at = Some(now.steady);
        }
    }

    pub(crate) fn scroll(&mut self, lines: i64, now: Now) {
        self.go_to(self.first_visible().saturating_add_signed(lines), now);
    }

    pub(crate) fn page(&mut self, pages: i64, now: Now) {
        let lines = i64::try_from(self.height.saturating_sub(1).max(1)).unwrap_or(1);
        self.scroll(lines * pages, now);
    }

    pub(crate) fn follow(&mut self, now: Now) {
        self.go_to(u64::MAX, now);
    }

    /// Shows the line of a match in the upper half of the screen.
    pub(crate) fn show_match(&mut self, line: u64, now: Now) {
        self.go_to(line.saturating_sub(self.height / 3), now);
    }
}

fn from(log: &LogRef, offset: u64) -> LogFrom {
    LogFrom {
        run: log.run.clone(),
        attempt: log.attempt,
        source: log.source,
        offset,
    }
}
