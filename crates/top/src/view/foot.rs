//! The last line: what the keys do now, a message, or what the user writes.

use super::look::{Look, Paint};
use super::pen::Pen;
use crate::model::layer::{Layer, Written};
use crate::model::rows::Row;
use crate::model::{Focus, State};
use crate::text::{one_line, width};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};

pub(super) fn draw(state: &State, look: Look, area: Rect, buffer: &mut Buffer) -> Option<Position> {
    let mut pen = Pen::new(buffer, look, area, 0)?;
    if let Some(Layer::Write { what, text, .. }) = &state.layer {
        let label = match what {
            Written::Filter => "filter: ",
            Written::Search => "search: ",
        };
        pen.put(label, Paint::Bold);
        // The end is where the user writes.
        let shown = one_line(text);
        let room = pen.left().saturating_sub(1);
        let mut seen = shown.as_ref();
        while width(seen) > room {
            let first = seen.chars().next().map_or(0, char::len_utf8);
            seen = &seen[first..];
        }
        pen.put(seen, Paint::Plain);
        let (x, y) = pen.place();
        return Some(Position::new(x.min(area.right().saturating_sub(1)), y));
    }
    if let Some(message) = &state.message {
        let paint = if message.is_bad {
            Paint::Bad
        } else {
            Paint::Good
        };
        pen.put(&message.text, paint);
        return None;
    }
    for (key, does) in keys(state) {
        if pen.left() < width(key) + width(does) + 2 {
            break;
        }
        pen.put(key, Paint::Key)
            .put(" ", Paint::Plain)
            .put(does, Paint::Quiet)
            .put("  ", Paint::Plain);
    }
    None
}

/// The most useful keys, the first of them first: a narrow screen has room for a few.
fn keys(state: &State) -> Vec<(&'static str, &'static str)> {
    if state.is_log_alone || state.focus == Focus::Log {
        let back = if state.is_log_alone {
            ("q", "back")
        } else {
            ("Tab", "runs")
        };
        return vec![
            back,
            ("?", "help"),
            ("/", "search"),
            ("n N", "matches"),
            ("End", "follow"),
            ("[ ]", "rank"),
            ("{ }", "attempt"),
            ("c", "choose log"),
            ("← →", "sideways"),
        ];
    }
    let row = state.list.selected_row();
    let mut keys = vec![("q", "quit"), ("?", "help"), ("Enter", "details")];
    if matches!(row, Some(Row::Sweep(_))) {
        keys.push(("Space", "runs"));
    }
    if state.list.question.sweep.is_some() {
        keys.push(("Esc", "back"));
    }
    let hold = if row.is_some_and(|row| row.run().on_hold) {
        ("h", "resume")
    } else {
        ("h", "hold")
    };
    keys.extend([
        ("l", "log"),
        ("f", "filter"),
        ("s", "state"),
        ("a", "abort"),
        ("r", "resubmit"),
        hold,
        ("o", "order"),
        ("Tab", "focus"),
    ]);
    keys
}
