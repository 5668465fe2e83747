//! What lies above the list or the log: help, details, questions and choices, each in a frame.

use super::look::{Look, Paint};
use super::pen::Pen;
use crate::model::State;
use crate::model::areas::middle;
use crate::model::choice::source_text;
use crate::model::details::{Details, LABEL_COLUMNS, Tone, details_area};
use crate::model::layer::{Choice, Layer, STATES};
use crate::text::{count, one_line, width, wrapped};
use ratatui::buffer::Buffer;
use ratatui::layout::{Margin, Rect};

const QUESTION_COLUMNS: u16 = 56;
const CHOICE_COLUMNS: u16 = 44;

/// The keys and what they do.
const HELP: [(&str, &str); 19] = [
    ("↑ ↓ j k", "move, or scroll the log"),
    ("PgUp PgDn g G", "by pages, to the begin, to the end"),
    ("Enter", "all about the run, and why it is as it is"),
    ("Space →", "the runs of a sweep; ← or Esc goes back"),
    ("l", "the log on the whole screen, and back"),
    ("Tab", "go to the log, and back to the runs"),
    ("[ ]", "the log of another rank"),
    ("{ }", "the log of another attempt"),
    ("c", "choose one of the logs"),
    ("/", "search in the log; n and N go from match to match"),
    ("End F", "follow the end of the log"),
    ("f", "only runs with these words"),
    ("s", "only runs in this state"),
    ("o", "newest first, or active runs first"),
    ("a", "abort the run or sweep, after a question"),
    ("r", "resubmit it, after a question"),
    ("h", "hold what waits, or let it start again"),
    ("Ctrl-L Ctrl-Z", "draw anew, suspend"),
    ("q Ctrl-C", "quit; a click selects, the wheel scrolls"),
];

pub(super) fn draw(state: &State, look: Look, buffer: &mut Buffer) {
    match &state.layer {
        None | Some(Layer::Write { .. }) => {}
        Some(Layer::Help) => help(look, buffer),
        Some(Layer::Details(details)) => draw_details(state, details, look, buffer),
        Some(Layer::Confirm { question, .. }) => confirm(question, look, buffer),
        Some(Layer::Choose { what, place }) => choose(state, *what, *place, look, buffer),
    }
}

/// An empty frame in the middle of the screen, and what is within it.
fn frame(title: &str, width: u16, height: u16, look: Look, buffer: &mut Buffer) -> Rect {
    let outer = middle(buffer.area.as_size(), width, height);
    for position in outer.positions() {
        buffer[position].reset();
    }
    // top left, top right, bottom left, bottom right, across, down
    let signs = if look.has_unicode {
        ['┌', '┐', '└', '┘', '─', '│']
    } else {
        ['+', '+', '+', '+', '-', '|']
    };
    let [top_left, top_right, bottom_left, bottom_right, across, down] = signs;
    let between = usize::from(outer.width.saturating_sub(2));
    let line = String::from(across).repeat(between);
    for y in 0..outer.height {
        let text = match y {
            0 => format!("{top_left}{line}{top_right}"),
            y if y + 1 == outer.height => format!("{bottom_left}{line}{bottom_right}"),
            _ => format!("{down}{}{down}", " ".repeat(between)),
        };
        buffer.set_stringn(
            outer.x,
            outer.y + y,
            text,
            outer.width.into(),
            look.style(Paint::Plain),
        );
    }
    let on_line = outer.inner(Margin::new(2, 0));
    if let Some(mut pen) = Pen::new(buffer, look, on_line, 0) {
        pen.put(&format!(" {title} "), Paint::Bold);
    }
    outer.inner(Margin::new(2, 1))
}

fn help(look: Look, buffer: &mut Buffer) {
    let rows = u16::try_from(HELP.len()).unwrap_or(u16::MAX);
    let inner = frame("keys", 72, rows + 2, look, buffer);
    // A low screen has the keys in two columns, the texts cut.
    let (across, per_column) = if inner.height >= rows {
        (1, rows)
    } else {
        (2, rows.div_ceil(2))
    };
    let columns = inner.width / across;
    for (number, (keys, does)) in (0..).zip(HELP) {
        let area = Rect {
            x: inner.x + columns * (number / per_column),
            width: columns,
            ..inner
        };
        if let Some(mut pen) = Pen::new(buffer, look, area, number % per_column) {
            pen.cell(keys, 13, Paint::Key).put(does, Paint::Plain);
        }
    }
}

fn draw_details(state: &State, details: &Details, look: Look, buffer: &mut Buffer) {
    let area = details_area(state.size);
    let title = details.row.run().name.clone();
    let inner = frame(&title, area.width + 4, area.height + 2, look, buffer);
    let lines = state.detail_lines(details, inner.width.into());
    let last_top = lines.len().saturating_sub(inner.height.into());
    let top = usize::from(details.top).min(last_top);
    let is_cut = top < last_top;
    for (number, line) in (0..inner.height).zip(lines.iter().skip(top)) {
        let Some(mut pen) = Pen::new(buffer, look, inner, number) else {
            break;
        };
        let paint = match line.tone {
            Tone::Fact => Paint::Plain,
            Tone::Bad => Paint::Bad,
            Tone::Quiet => Paint::Quiet,
        };
        pen.cell(line.label, LABEL_COLUMNS - 1, Paint::Quiet)
            .put(&line.text, paint);
    }
    let below = Rect {
        y: inner.bottom(),
        height: 1,
        ..inner
    };
    if let Some(mut pen) = Pen::new(buffer, look, below, 0) {
        let keys = if is_cut {
            " ↓ more · Esc back "
        } else {
            " Esc back "
        };
        pen.put_right(keys, Paint::Quiet);
    }
}

fn confirm(question: &str, look: Look, buffer: &mut Buffer) {
    let columns = QUESTION_COLUMNS.min(buffer.area.width.saturating_sub(4));
    let room = usize::from(columns.saturating_sub(4));
    let mut lines = wrapped(&one_line(question), room);
    // A name is as long as it likes; the answer is always on the screen.
    lines.truncate(usize::from(buffer.area.height.saturating_sub(5)));
    let height = u16::try_from(lines.len()).unwrap_or(u16::MAX);
    let inner = frame("sure?", columns, height.saturating_add(4), look, buffer);
    for (number, line) in (0..inner.height).zip(&lines) {
        if let Some(mut pen) = Pen::new(buffer, look, inner, number) {
            pen.put(line, Paint::Plain);
        }
    }
    let last = inner.height.saturating_sub(1);
    if let Some(mut pen) = Pen::new(buffer, look, inner, last) {
        pen.put("y", Paint::Key)
            .put(" yes   ", Paint::Plain)
            .put("n", Paint::Key)
            .put(" no", Paint::Plain);
    }
}

fn choose(state: &State, what: Choice, place: usize, look: Look, buffer: &mut Buffer) {
    let (title, texts): (_, Vec<String>) = match what {
        Choice::State => (
            "only runs in this state",
            STATES
                .iter()
                .map(|state| state.unwrap_or("all states").to_owned())
                .collect(),
        ),
        Choice::Log => (
            "log",
            state
                .log
                .files
                .iter()
                .map(|file| {
                    let source = source_text(file.source);
                    let bytes = count(file.bytes);
                    format!("attempt {}, {source}: {bytes} bytes", file.attempt)
                })
                .collect(),
        ),
    };
    let longest = texts.iter().map(|text| width(text)).max().unwrap_or(0);
    let columns = u16::try_from(longest + 6)
        .unwrap_or(u16::MAX)
        .max(CHOICE_COLUMNS);
    let rows = u16::try_from(texts.len()).unwrap_or(u16::MAX);
    let room = buffer.area.height.saturating_sub(2);
    let inner = frame(
        title,
        columns,
        rows.saturating_add(2).min(room),
        look,
        buffer,
    );
    // The chosen one is always on the screen.
    let top = (place + 1).saturating_sub(inner.height.into());
    for (number, (one, text)) in (0..inner.height).zip(texts.iter().enumerate().skip(top)) {
        let Some(mut pen) = Pen::new(buffer, look, inner, number) else {
            break;
        };
        let is_chosen = one == place;
        pen.cell(if is_chosen { ">" } else { "" }, 1, Paint::Bold);
        pen.put(
            text,
            if is_chosen {
                Paint::Selected
            } else {
                Paint::Plain
            },
        );
    }
}
