//! What is shown and what is asked for, as a value: an event changes it, and it says what it wants to
//! know next. Nothing here waits, reads a clock or draws.

pub(crate) mod areas;
mod change;
pub(crate) mod choice;
pub(crate) mod details;
pub(crate) mod event;
pub(crate) mod gpus;
mod keys;
mod keys_of_layers;
pub(crate) mod layer;
pub(crate) mod lines;
pub(crate) mod list;
pub(crate) mod log;
mod mouse;
pub(crate) mod rows;
pub(crate) mod search;
#[cfg(test)]
pub(crate) mod tests;

use areas::Areas;
use event::{Answer, Ask, Event, Now};
use gpus::Clusters;
use layer::Layer;
use list::List;
use log::LogPane;
use ratatui::layout::Size;
use std::time::Duration;
use towline_core::time::Moment;
use towline_wire::api::stream::Item;

/// How long a message stays.
const MESSAGE_TIME: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Focus {
    List,
    Log,
}

#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) text: String,
    pub(crate) is_bad: bool,
    until: Duration,
}

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) size: Size,
    pub(crate) now: Now,
    pub(crate) list: List,
    pub(crate) log: LogPane,
    pub(crate) clusters: Clusters,
    pub(crate) layer: Option<Layer>,
    pub(crate) focus: Focus,
    /// The log has the whole screen.
    pub(crate) is_log_alone: bool,
    pub(crate) message: Option<Message>,
    /// Why nothing new is heard.
    pub(crate) trouble: Option<String>,
    /// Changes that are being made.
    pub(crate) changing: usize,
    /// Writes a moment in the user's time zone.
    pub(crate) local_time: fn(Moment) -> String,
    stream: Option<String>,
    asks: Vec<Ask>,
    is_changed: bool,
}

impl State {
    pub(crate) fn new(size: Size, now: Now, local_time: fn(Moment) -> String) -> Self {
        Self {
            size,
            now,
            local_time,
            list: List::default(),
            log: LogPane::default(),
            clusters: Clusters::default(),
            layer: None,
            focus: Focus::List,
            is_log_alone: false,
            message: None,
            trouble: None,
            changing: 0,
            stream: None,
            asks: Vec::new(),
            is_changed: true,
        }
    }

    /// Takes what happened, and returns what is wanted now.
    pub(crate) fn update(&mut self, event: Event, now: Now) -> Vec<Ask> {
        let second = self.now.wall.seconds();
        self.now = now;
        match event {
            Event::Key(key) => self.press(key),
            Event::Mouse(mouse) => self.take_mouse(mouse),
            Event::Paste(text) => self.paste(&text),
            Event::Resize { width, height } => {
                self.size = Size { width, height };
                self.is_changed = true;
            }
            Event::Item(item) => self.take_item(*item),
            Event::StreamEnded(why) => {
                self.stream = None;
                self.trouble = Some(why);
                self.is_changed = true;
            }
            Event::Answer(answer) => {
                self.take_answer(answer);
                self.is_changed = true;
            }
            Event::Tick => {}
        }
        let is_over = |message: &Message| message.until <= now.steady;
        if self.message.as_ref().is_some_and(is_over) {
            self.message = None;
            self.is_changed = true;
        }
        // Ages are told in seconds.
        self.is_changed |= second != now.wall.seconds() && self.shows_ages();
        self.settle()
    }

    /// Whether the screen has to be drawn again. Asking takes the answer away.
    pub(crate) fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.is_changed)
    }

    /// When the model wants to be told that time has passed.
    pub(crate) fn wake_at(&self) -> Option<Duration> {
        let into_second = self.now.wall.0.rem_euclid(1000).unsigned_abs();
        let next_second = self.now.steady + Duration::from_millis(1000 - into_second);
        let times = [
            self.shows_ages().then_some(next_second),
            self.message.as_ref().map(|message| message.until),
            self.list.due().filter(|_| self.stream.is_some()),
            self.log.due(),
            self.clusters.due(),
        ];
        times.into_iter().flatten().min()
    }

    fn shows_ages(&self) -> bool {
        areas::is_enough(self.size)
            && !self.is_log_alone
            && self
                .list
                .visible()
                .any(|number| self.list.row(number).is_some())
    }

    pub(crate) fn areas(&self) -> Areas {
        if self.is_log_alone {
            Areas::of_log(self.size)
        } else {
            Areas::of_list(self.size, self.list.window.total)
        }
    }

    /// Makes the parts fit one another, and collects what they want to know.
    fn settle(&mut self) -> Vec<Ask> {
        let areas = self.areas();
        if !self.is_log_alone {
            self.list.set_height(areas.rows.height);
        }
        self.log.set_height(areas.log.height);
        let now = self.now;
        let selected = self.list.selected_row().map(rows::Row::run);
        // While the list is read again after a jump, the log stays.
        if selected.is_some() || self.list.window.total == 0 {
            self.log.show(selected, now);
        }
        let mut asks = std::mem::take(&mut self.asks);
        // What changes before the stream begins would be missed.
        if self.stream.is_some() {
            asks.extend(self.list.ask_if_due(now).map(Ask::Rows));
        }
        if self.clusters.ask_if_due(now) {
            asks.push(Ask::Clusters);
        }
        asks.extend(self.log.asks(self.stream.as_deref(), now));
        asks
    }

    fn take_item(&mut self, item: Item) {
        let now = self.now;
        match item {
            Item::Begun { stream, .. } => {
                self.stream = Some(stream);
                self.trouble = None;
                self.list.ask_at_once();
                self.log.stream_begins(now);
            }
            Item::Reset { .. } => self.list.ask_at_once(),
            Item::Runs(changes) => self.list.take_changes(&changes),
            Item::Log(part) => {
                if self.log.log.as_ref() != Some(&part.log) {
                    return;
                }
                self.log.take_part(&part, now);
            }
            Item::LogCut { log, .. } => self.log.take_cut(&log, now),
            Item::Clusters { clusters } => {
                self.clusters.take_told(&clusters);
                self.list.ask_soon();
            }
            // None of them is on this screen.
            Item::Tunnels { .. }
            | Item::Workspaces { .. }
            | Item::Transfers { .. }
            | Item::Alive { .. } => return,
        }
        self.is_changed = true;
    }

    fn take_answer(&mut self, answer: Answer) {
        let now = self.now;
        match answer {
            Answer::Rows(ask, Ok(window)) => {
                if self.list.take(&ask, window, now) {
                    self.refresh_details();
                }
            }
            Answer::Rows(_, Err(refusal)) => {
                self.list.answered(now);
                self.list.ask_soon();
                self.say(refusal.text(), true);
            }
            Answer::Clusters(answer) => self.clusters.take(answer.ok(), now),
            Answer::Logs(run, answer) => self.log.take_files(&run, answer, now),
            Answer::Lines(ask, answer) => self.log.take_lines(&ask, answer, now),
            Answer::Search(ask, answer) => {
                let first = self.log.first_visible();
                if let Some(line) = self.log.search.take(&ask, answer, first) {
                    self.log.show_match(line, now);
                }
            }
            Answer::Why(run, answer) => {
                if let Some(Layer::Details(details)) = &mut self.layer
                    && *details.row.id() == run
                {
                    details.why = Some(answer);
                }
            }
            Answer::Change(ask, answer) => {
                self.changing = self.changing.saturating_sub(1);
                match answer {
                    Ok(text) => self.say(text, false),
                    Err(refusal) => {
                        let text = format!("{}: {}", ask.verb.word(), refusal.text());
                        self.say(text, true);
                    }
                }
            }
        }
    }

    /// The details of a run change with the run.
    fn refresh_details(&mut self) {
        if let Some(Layer::Details(details)) = &mut self.layer {
            let mut rows = self.list.window.rows.iter();
            if let Some(row) = rows.find(|row| row.id() == details.row.id()) {
                details.row = row.clone();
            }
        }
    }

    fn say(&mut self, text: impl Into<String>, is_bad: bool) {
        self.message = Some(Message {
            text: text.into(),
            is_bad,
            until: self.now.steady + MESSAGE_TIME,
        });
        self.is_changed = true;
    }
}
