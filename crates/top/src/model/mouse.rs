//! The mouse: a click selects, the wheel scrolls what is under it.

use super::layer::Layer;
use super::{Focus, State, areas};
use ratatui::crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::Position;

const WHEEL_LINES: i64 = 3;

impl State {
    pub(super) fn take_mouse(&mut self, mouse: MouseEvent) {
        if !areas::is_enough(self.size) {
            return;
        }
        let lines = match mouse.kind {
            MouseEventKind::ScrollUp => -WHEEL_LINES,
            MouseEventKind::ScrollDown => WHEEL_LINES,
            MouseEventKind::Down(MouseButton::Left) => 0,
            _ => return,
        };
        self.is_changed = true;
        if let Some(layer) = self.layer.take() {
            self.layer = Some(self.scroll_layer(layer, lines));
            return;
        }
        let place = Position::new(mouse.column, mouse.row);
        let areas = self.areas();
        let is_in_log = areas.log.contains(place) || areas.log_title.contains(place);
        if lines != 0 {
            if is_in_log {
                self.log.scroll(lines, self.now);
            } else {
                self.list.step(lines);
            }
            return;
        }
        if areas.rows.contains(place) {
            let number = self.list.top + u64::from(mouse.row - areas.rows.y);
            if number < self.list.window.total {
                self.list.select(number);
            }
            self.focus = Focus::List;
        } else if is_in_log {
            self.focus = Focus::Log;
        }
    }

    fn scroll_layer(&self, layer: Layer, lines: i64) -> Layer {
        let Layer::Details(mut details) = layer else {
            return layer;
        };
        let step = i16::try_from(lines).unwrap_or(0);
        let last_top = self.last_top(&details);
        details.top = details.top.saturating_add_signed(step).min(last_top);
        Layer::Details(details)
    }
}
