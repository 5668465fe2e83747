//! Keys in the list and in the log.

use super::event::{Ask, Verb};
use super::layer::{Choice, Layer, STATES, Written};
use super::{Focus, State, areas};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// How far the log moves to the side.
const SHIFT_COLUMNS: u16 = 20;
/// Further to the right there is nothing: a line is cut before.
const MAX_SHIFT_COLUMNS: u16 = 16_000;

impl State {
    pub(super) fn press(&mut self, key: KeyEvent) {
        if key.kind == KeyEventKind::Release {
            return;
        }
        self.is_changed = true;
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            match key.code {
                KeyCode::Char('c') => return self.asks.push(Ask::Quit),
                KeyCode::Char('z') => return self.asks.push(Ask::Suspend),
                KeyCode::Char('l') => return self.asks.push(Ask::Repaint),
                _ => {}
            }
        }
        if !areas::is_enough(self.size) {
            // What the user cannot see must not be changed.
            if key.code == KeyCode::Char('q') {
                self.asks.push(Ask::Quit);
            }
            return;
        }
        if self.layer.is_some() {
            return self.press_in_layer(key);
        }
        if key
            .modifiers
            .intersects(KeyModifiers::CONTROL | KeyModifiers::ALT)
        {
            return;
        }
        if self.is_log_alone || self.focus == Focus::Log {
            self.press_in_log(key.code);
        } else {
            self.press_in_list(key.code);
        }
    }

    fn press_in_list(&mut self, key: KeyCode) {
        match key {
            KeyCode::Up | KeyCode::Char('k') => self.list.step(-1),
            KeyCode::Down | KeyCode::Char('j') => self.list.step(1),
            KeyCode::PageUp => self.list.page(-1),
            KeyCode::PageDown => self.list.page(1),
            KeyCode::Home | KeyCode::Char('g') => self.list.select(0),
            KeyCode::End | KeyCode::Char('G') => self.list.last(),
            KeyCode::Right | KeyCode::Char(' ') => {
                self.list.open_sweep();
            }
            KeyCode::Left | KeyCode::Backspace => {
                self.list.close_sweep();
            }
            KeyCode::Esc => self.step_back(),
            KeyCode::Char('o') => self
                .list
                .set_question(|question| question.active_first ^= true),
            KeyCode::Char('/') => self.begin_to_write(Written::Filter),
            key => self.press_anywhere(key),
        }
    }

    /// Takes back the latest limit of the list.
    fn step_back(&mut self) {
        if self.list.close_sweep() {
            return;
        }
        self.list.set_question(|question| {
            if question.text.is_empty() {
                question.state = None;
            }
            question.text.clear();
        });
    }

    fn press_in_log(&mut self, key: KeyCode) {
        let now = self.now;
        let log = &mut self.log;
        match key {
            KeyCode::Up | KeyCode::Char('k') => log.scroll(-1, now),
            KeyCode::Down | KeyCode::Char('j') => log.scroll(1, now),
            KeyCode::PageUp => log.page(-1, now),
            KeyCode::PageDown | KeyCode::Char(' ') => log.page(1, now),
            KeyCode::Home | KeyCode::Char('g') => log.go_to(0, now),
            KeyCode::End | KeyCode::Char('G' | 'F') => log.follow(now),
            KeyCode::Left => log.shift = log.shift.saturating_sub(SHIFT_COLUMNS),
            KeyCode::Right => log.shift = (log.shift + SHIFT_COLUMNS).min(MAX_SHIFT_COLUMNS),
            KeyCode::Char('n' | 'N') => {
                if let Some(line) = log.search.next(key == KeyCode::Char('n')) {
                    log.show_match(line, now);
                }
            }
            KeyCode::Char('/') => {
                self.is_log_alone = true;
                self.begin_to_write(Written::Search);
            }
            KeyCode::Esc if !log.search.pattern.is_empty() => log.search.begin(String::new()),
            KeyCode::Esc | KeyCode::Char('q') if self.is_log_alone => self.is_log_alone = false,
            KeyCode::Esc => self.focus = Focus::List,
            key => self.press_anywhere(key),
        }
    }

    fn press_anywhere(&mut self, key: KeyCode) {
        let now = self.now;
        match key {
            KeyCode::Char('q') => self.asks.push(Ask::Quit),
            KeyCode::Char('?') => self.layer = Some(Layer::Help),
            KeyCode::Enter => self.open_details(),
            KeyCode::Tab | KeyCode::BackTab if !self.is_log_alone => {
                self.focus = match self.focus {
                    Focus::List => Focus::Log,
                    Focus::Log => Focus::List,
                };
            }
            KeyCode::Char('l') => self.is_log_alone ^= true,
            KeyCode::Char('[') => self.log.next_source(false, now),
            KeyCode::Char(']') => self.log.next_source(true, now),
            KeyCode::Char('{') => self.log.next_attempt(false, now),
            KeyCode::Char('}') => self.log.next_attempt(true, now),
            KeyCode::Char('c') => self.choose_log(),
            KeyCode::Char('f') if !self.is_log_alone => self.begin_to_write(Written::Filter),
            KeyCode::Char('s') if !self.is_log_alone => self.choose_state(),
            KeyCode::Char('a') => self.ask_to_change(Verb::Abort),
            KeyCode::Char('r') => self.ask_to_change(Verb::Resubmit),
            KeyCode::Char('h') => self.ask_to_change(Verb::Hold),
            _ => {}
        }
    }

    fn begin_to_write(&mut self, what: Written) {
        let before = match what {
            Written::Filter => self.list.question.text.clone(),
            Written::Search => self.log.search.pattern.clone(),
        };
        // A search begins anew; a filter is changed.
        let text = match what {
            Written::Filter => before.clone(),
            Written::Search => String::new(),
        };
        self.layer = Some(Layer::Write { what, text, before });
    }

    fn choose_state(&mut self) {
        let mut states = STATES.iter();
        let place = states.position(|state| *state == self.list.question.state);
        self.layer = Some(Layer::Choose {
            what: Choice::State,
            place: place.unwrap_or(0),
        });
    }

    fn choose_log(&mut self) {
        if self.log.files.is_empty() {
            self.say("this run has no log yet", false);
            return;
        }
        let shown = self.log.log.as_ref();
        let shown = shown.map(|log| (log.attempt, log.source));
        let mut files = self.log.files.iter();
        let place = files.position(|file| Some((file.attempt, file.source)) == shown);
        self.layer = Some(Layer::Choose {
            what: Choice::Log,
            place: place.unwrap_or(0),
        });
    }
}
