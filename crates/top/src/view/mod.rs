//! Draws the state into a buffer. The same state gives the same buffer.

mod foot;
mod head;
mod layers;
mod log;
pub(crate) mod look;
mod pen;
mod runs;

use crate::model::State;
use crate::model::areas::{MIN_SIZE, is_enough};
use look::{Look, Paint};
use pen::Pen;
use ratatui::buffer::Buffer;
use ratatui::layout::Position;

/// Draws everything, and returns where the cursor stands while the user writes.
pub(crate) fn draw(state: &State, look: Look, buffer: &mut Buffer) -> Option<Position> {
    if !is_enough(state.size) {
        too_small(look, buffer);
        return None;
    }
    let areas = state.areas();
    if !state.is_log_alone {
        head::counts(state, look, areas.counts, buffer);
        head::gpus(state, look, areas.gpus, buffer);
        runs::draw(state, look, areas.head, areas.rows, buffer);
    }
    log::title(state, look, areas.log_title, buffer);
    log::lines(state, look, areas.log, buffer);
    let cursor = foot::draw(state, look, areas.foot, buffer);
    layers::draw(state, look, buffer);
    cursor
}

fn too_small(look: Look, buffer: &mut Buffer) {
    let area = buffer.area;
    let text = format!(
        "tow top needs {} columns and {} lines; this terminal has {} and {}. q quits.",
        MIN_SIZE.width, MIN_SIZE.height, area.width, area.height
    );
    let lines = crate::text::wrapped(&text, area.width.into());
    for (number, line) in (0..area.height).zip(lines) {
        if let Some(mut pen) = Pen::new(buffer, look, area, number) {
            pen.put(line.trim_end(), Paint::Plain);
        }
    }
}
