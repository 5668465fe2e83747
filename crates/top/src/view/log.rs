//! The lines of a log.

use super::look::{Look, Paint};
use super::pen::Pen;
use crate::ansi::{Ink, parts};
use crate::model::choice::source_text;
use crate::model::log::LogPane;
use crate::model::{Focus, State};
use crate::text::{count, width};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// The part of a match's text that is looked for in the lines of the screen.
const MAX_PATTERN_BYTES: usize = 200;

pub(super) fn title(state: &State, look: Look, area: Rect, buffer: &mut Buffer) {
    let Some(mut pen) = Pen::new(buffer, look, area, 0) else {
        return;
    };
    let has_focus = state.is_log_alone || state.focus == Focus::Log;
    pen.cell(if has_focus { "▸" } else { " " }, 1, Paint::Bold);
    let pane = &state.log;
    let (Some(log), Some(row)) = (&pane.log, state.list.selected_row()) else {
        pen.put("log", Paint::Title);
        return;
    };
    let attempt = if log.attempt > 1 || state.log.files.iter().any(|file| file.attempt > 1) {
        format!(", attempt {}", log.attempt)
    } else {
        String::new()
    };
    let text = format!(
        "log of {} {}: {}{attempt}",
        row.run().name,
        log.run.short(),
        source_text(log.source)
    );
    pen.put(&text, Paint::Title);
    let sources = pane.files.iter().filter(|file| file.attempt == log.attempt);
    let others = sources.count();
    if others > 1 {
        pen.put(&format!(" of {others} logs"), Paint::Quiet);
    }
    pen.put_right(&place_text(pane), Paint::Quiet);
}

/// Where the screen is in the log, and what was searched for.
fn place_text(pane: &LogPane) -> String {
    let lines = &pane.lines;
    let search = &pane.search;
    let searched = match (&search.found, &search.trouble) {
        _ if search.pattern.is_empty() => String::new(),
        (_, Some(trouble)) => format!("{trouble} · "),
        (None, None) => "searching … · ".to_owned(),
        (Some(found), _) if found.lines.is_empty() => "not found · ".to_owned(),
        (Some(found), _) => {
            let place = count(search.place as u64 + 1);
            format!("match {place} of {} · ", count(found.count))
        }
    };
    let place = match pane.top {
        _ if !pane.is_loaded => "reading …".to_owned(),
        None => format!("{} lines, following", count(lines.total)),
        Some(top) => format!("line {} of {}", count(top + 1), count(lines.total)),
    };
    format!("{searched}{place}")
}

pub(super) fn lines(state: &State, look: Look, area: Rect, buffer: &mut Buffer) {
    let pane = &state.log;
    let said = said(state);
    if let Some(text) = said {
        if let Some(mut pen) = Pen::new(buffer, look, area, 0) {
            pen.put("  ", Paint::Plain).put(&text, Paint::Quiet);
        }
        return;
    }
    let mut pattern = pane.search.pattern.to_lowercase();
    if pattern.len() > MAX_PATTERN_BYTES {
        pattern.clear();
    }
    let first = pane.first_visible();
    for (line, number) in (0..area.height).zip(first..) {
        if number >= pane.lines.total {
            break;
        }
        let Some(mut pen) = Pen::new(buffer, look, area, line) else {
            break;
        };
        let Some(text) = pane.lines.line(number) else {
            pen.put("…", Paint::Quiet);
            continue;
        };
        draw_line(text, pane.shift.into(), &pattern, look, &mut pen);
    }
}

/// What is said in place of lines, if there are none.
fn said(state: &State) -> Option<String> {
    let pane = &state.log;
    if pane.is_loaded && pane.lines.len() > 0 {
        return None;
    }
    if let Some(trouble) = &pane.trouble {
        return Some(format!("the log cannot be read: {trouble}"));
    }
    let row = state.list.selected_row()?;
    let run = row.run();
    Some(if !pane.is_loaded {
        "reading the log …".to_owned()
    } else if run.attempt == 0 && !run.state.is_ended() {
        let waits = run.native_reason.as_deref();
        let waits = waits.map_or_else(String::new, |why| format!(" ({why})"));
        format!("{}{waits}; no log yet", run.condition().word())
    } else {
        "the log is empty".to_owned()
    })
}

fn draw_line(text: &str, shift: usize, pattern: &str, look: Look, pen: &mut Pen<'_>) {
    let mut column = 0;
    for (text, ink) in parts(text) {
        if pen.left() == 0 {
            break;
        }
        let seen = behind(&text, shift.saturating_sub(column));
        column += width(&text);
        draw_part(seen, ink, pattern, look, pen);
    }
}

/// The text behind so many columns.
fn behind(text: &str, mut columns: usize) -> &str {
    let mut letters = text.char_indices();
    loop {
        let Some((place, c)) = letters.next() else {
            return "";
        };
        if columns == 0 {
            return &text[place..];
        }
        columns = columns.saturating_sub(width(c.encode_utf8(&mut [0; 4])));
    }
}

/// A part in its ink, with what was searched for marked in it.
fn draw_part(text: &str, ink: Ink, pattern: &str, look: Look, pen: &mut Pen<'_>) {
    let style = look.ink(ink);
    let mut rest = text;
    // Letters beyond ASCII keep their length only if they are left as they are.
    let mut lower = text.to_ascii_lowercase();
    while !pattern.is_empty() && pen.left() > 0 {
        let Some(place) = lower.find(pattern) else {
            break;
        };
        let end = place + pattern.len();
        pen.put_styled(&rest[..place], style)
            .put(&rest[place..end], Paint::Match);
        rest = &rest[end..];
        lower.drain(..end);
    }
    pen.put_styled(rest, style);
}
