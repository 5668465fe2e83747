//! Keys in what lies above the list or the log.

use super::State;
use super::layer::{Choice, Layer, MAX_WRITTEN_CHARACTERS, STATES, Written};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

const PAGE_LINES: u16 = 10;

impl State {
    pub(super) fn press_in_layer(&mut self, key: KeyEvent) {
        let is_text_key = !key
            .modifiers
            .intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
        match self.layer.take() {
            Some(Layer::Write { what, text, before }) => {
                self.write(what, text, before, key);
            }
            Some(layer) if !is_text_key => self.layer = Some(layer),
            Some(Layer::Confirm { ask, question }) => match key.code {
                KeyCode::Char('y' | 'Y') => self.change(ask),
                KeyCode::Char('n' | 'N' | 'q') | KeyCode::Esc => {}
                // Another key says neither yes nor no.
                _ => self.layer = Some(Layer::Confirm { ask, question }),
            },
            Some(Layer::Details(mut details)) => {
                let top = details.top;
                details.top = match key.code {
                    KeyCode::Esc | KeyCode::Enter | KeyCode::Char('q') => return,
                    KeyCode::Up | KeyCode::Char('k') => top.saturating_sub(1),
                    KeyCode::Down | KeyCode::Char('j') => top + 1,
                    KeyCode::PageUp => top.saturating_sub(PAGE_LINES),
                    KeyCode::PageDown | KeyCode::Char(' ') => top + PAGE_LINES,
                    KeyCode::Home | KeyCode::Char('g') => 0,
                    _ => top,
                }
                .min(self.last_top(&details));
                self.layer = Some(Layer::Details(details));
            }
            Some(Layer::Choose { what, place }) => self.choose(what, place, key.code),
            Some(Layer::Help) | None => {}
        }
    }

    fn choose(&mut self, what: Choice, place: usize, key: KeyCode) {
        let count = match what {
            Choice::State => STATES.len(),
            Choice::Log => self.log.files.len(),
        };
        let last = count.saturating_sub(1);
        let place = place.min(last);
        let place = match key {
            KeyCode::Esc | KeyCode::Char('q') => return,
            KeyCode::Enter | KeyCode::Char(' ') => return self.chosen(what, place),
            KeyCode::Up | KeyCode::Char('k') => place.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => (place + 1).min(last),
            KeyCode::PageUp => place.saturating_sub(PAGE_LINES.into()),
            KeyCode::PageDown => (place + usize::from(PAGE_LINES)).min(last),
            KeyCode::Home | KeyCode::Char('g') => 0,
            KeyCode::End | KeyCode::Char('G') => last,
            KeyCode::Char('s') if what == Choice::State => (place + 1) % count,
            _ => place,
        };
        self.layer = Some(Layer::Choose { what, place });
    }

    pub(super) fn chosen(&mut self, what: Choice, place: usize) {
        match what {
            Choice::State => {
                let state = STATES.get(place).copied().flatten();
                self.list.set_question(|question| question.state = state);
            }
            Choice::Log => {
                if let Some(file) = self.log.files.get(place) {
                    let (attempt, source) = (file.attempt, file.source);
                    self.log.choose(attempt, source, self.now);
                }
            }
        }
    }

    fn write(&mut self, what: Written, mut text: String, before: String, key: KeyEvent) {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        let is_alt = key.modifiers.contains(KeyModifiers::ALT);
        match key.code {
            KeyCode::Enter => {
                if what == Written::Search {
                    self.log.search.begin(text);
                }
                return;
            }
            KeyCode::Esc => {
                if what == Written::Filter {
                    self.list.set_question(|question| question.text = before);
                }
                return;
            }
            KeyCode::Char('u') if is_control => text.clear(),
            KeyCode::Char('w') if is_control => {
                let begin = text.trim_end().rfind(' ').map_or(0, |blank| blank + 1);
                text.truncate(begin);
            }
            KeyCode::Backspace => {
                text.pop();
            }
            KeyCode::Char(c)
                if !is_control
                    && !is_alt
                    && !c.is_control()
                    && text.chars().count() < MAX_WRITTEN_CHARACTERS =>
            {
                text.push(c);
            }
            _ => {}
        }
        self.written(what, text, before);
    }

    /// The list follows while a filter is written.
    fn written(&mut self, what: Written, text: String, before: String) {
        if what == Written::Filter {
            let filter = text.clone();
            self.list.set_question(|question| question.text = filter);
        }
        self.layer = Some(Layer::Write { what, text, before });
    }

    /// Pasted text is text: outside of a field its letters are not keys.
    pub(super) fn paste(&mut self, pasted: &str) {
        let Some(Layer::Write { what, text, before }) = &mut self.layer else {
            return;
        };
        let (what, mut text, before) = (*what, std::mem::take(text), std::mem::take(before));
        let room = MAX_WRITTEN_CHARACTERS.saturating_sub(text.chars().count());
        let line = pasted.lines().next().unwrap_or_default();
        text.extend(line.chars().filter(|c| !c.is_control()).take(room));
        self.written(what, text, before);
        self.is_changed = true;
    }
}
