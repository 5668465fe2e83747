//! The list of runs.

use super::look::{Look, Paint};
use super::pen::Pen;
use crate::model::rows::{Condition, Row};
use crate::model::{Focus, State};
use crate::text::count;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use towline_core::time::human_millis;

const STATE_COLUMNS: usize = 14;
const ID_COLUMNS: usize = 9;
const CLUSTER_COLUMNS: usize = 10;
const GPUS_COLUMNS: usize = 4;
const TIME_COLUMNS: usize = 6;
/// From this width on there is room for the cluster.
const WITH_CLUSTER: u16 = 72;
/// From this width on there is room for why a run is in its state.
const WITH_BECAUSE: u16 = 110;

/// The columns of each cell; 0 leaves it out.
struct Widths {
    name: usize,
    cluster: usize,
    because: usize,
}

impl Widths {
    fn of(width: u16) -> Self {
        let cluster = if width >= WITH_CLUSTER {
            CLUSTER_COLUMNS
        } else {
            0
        };
        let cells = [
            STATE_COLUMNS,
            ID_COLUMNS,
            GPUS_COLUMNS,
            TIME_COLUMNS,
            TIME_COLUMNS,
            cluster,
        ];
        let taken: usize = cells.iter().map(|cell| cell + usize::from(*cell > 0)).sum();
        let left = usize::from(width).saturating_sub(taken + 3);
        let because = if width >= WITH_BECAUSE { left / 2 } else { 0 };
        Self {
            name: left - because,
            cluster,
            because,
        }
    }
}

pub(super) fn draw(state: &State, look: Look, head: Rect, rows: Rect, buffer: &mut Buffer) {
    let widths = Widths::of(rows.width);
    title(state, look, &widths, head, buffer);
    let list = &state.list;
    if list.has_answer && list.window.total == 0 {
        nothing(state, look, rows, buffer);
        return;
    }
    if !list.has_answer {
        if let Some(mut pen) = Pen::new(buffer, look, rows, 0) {
            pen.put("  reading the history …", Paint::Quiet);
        }
        return;
    }
    for (line, number) in (0..rows.height).zip(list.visible()) {
        let Some(row) = list.row(number) else {
            if let Some(mut pen) = Pen::new(buffer, look, rows, line) {
                pen.put("  …", Paint::Quiet);
            }
            continue;
        };
        let is_selected = number == list.selected;
        if let Some(pen) = Pen::new(buffer, look, rows, line) {
            draw_row(state, look, row, is_selected, &widths, pen);
        }
        if is_selected {
            let whole = Rect {
                y: rows.y + line,
                height: 1,
                ..rows
            };
            buffer.set_style(whole, look.style(Paint::Selected));
        }
    }
}

fn title(state: &State, look: Look, widths: &Widths, head: Rect, buffer: &mut Buffer) {
    let list = &state.list;
    let paint = Paint::Title;
    if let Some(mut pen) = Pen::new(buffer, look, head, 0) {
        let focus = if state.focus == Focus::List {
            "▸"
        } else {
            " "
        };
        pen.cell(focus, 1, Paint::Bold)
            .cell("STATE", STATE_COLUMNS, paint);
        let name = format!(
            "NAME ({} of {})",
            place(list.selected, list.window.total),
            count(list.window.total)
        );
        pen.cell(&name, widths.name, paint)
            .cell("ID", ID_COLUMNS, paint);
        if widths.cluster > 0 {
            pen.cell("CLUSTER", widths.cluster, paint);
        }
        pen.number("GPUS", GPUS_COLUMNS, paint)
            .number("AGE", TIME_COLUMNS, paint)
            .number("TOOK", TIME_COLUMNS, paint);
        if widths.because > 0 {
            pen.put("WHY", paint);
        }
    }
}

fn place(selected: u64, total: u64) -> String {
    count((selected + 1).min(total))
}

fn nothing(state: &State, look: Look, area: Rect, buffer: &mut Buffer) {
    let question = &state.list.question;
    let is_limited = question.state.is_some() || !question.text.is_empty();
    let text = if is_limited {
        "  no run fits; Esc shows the others"
    } else {
        "  no run yet; begin with: tow run echo hello"
    };
    if let Some(mut pen) = Pen::new(buffer, look, area, 0) {
        pen.put(text, Paint::Quiet);
    }
}

fn draw_row(
    state: &State,
    look: Look,
    row: &Row,
    is_selected: bool,
    widths: &Widths,
    mut pen: Pen<'_>,
) {
    let run = row.run();
    let condition = row.condition();
    let is_stale = matches!(row, Row::Run(run) if run.stale.is_some());
    let paint = if is_stale {
        Paint::Quiet
    } else {
        Look::paint(condition)
    };
    pen.cell(if is_selected { ">" } else { "" }, 1, Paint::Bold);
    pen.cell(
        &state_text(look, row, condition, is_stale),
        STATE_COLUMNS,
        paint,
    );
    match row {
        Row::Run(run) => {
            pen.cell(&run.name, widths.name, Paint::Plain);
        }
        Row::Sweep(sweep) => {
            let text = format!("▸ {} runs of {}", count(sweep.states.total()), run.name);
            pen.cell(&text, widths.name, Paint::Bold);
        }
    }
    pen.cell(row.id().short(), ID_COLUMNS, Paint::Quiet);
    if widths.cluster > 0 {
        pen.cell(&run.cluster, widths.cluster, Paint::Plain);
    }
    let gpus = if run.gpus == 0 {
        String::new()
    } else {
        run.gpus.to_string()
    };
    let time = |millis: Option<u64>| millis.map_or_else(String::new, human_millis);
    let now = state.now.wall;
    let age = run.created.map(|created| now.since(created));
    pen.number(&gpus, GPUS_COLUMNS, Paint::Plain)
        .number(&time(age), TIME_COLUMNS, Paint::Quiet)
        .number(&time(row.took(now)), TIME_COLUMNS, Paint::Plain);
    if widths.because > 0 {
        match row {
            Row::Run(run) => pen.put(run.because().unwrap_or_default(), Paint::Quiet),
            Row::Sweep(sweep) => pen.put(&sweep.states.to_string(), Paint::Quiet),
        };
    }
}

/// `● running`; of a sweep, how many of its runs are in its worst state.
fn state_text(look: Look, row: &Row, condition: Condition, is_stale: bool) -> String {
    let sign = look.sign(condition);
    let doubt = if is_stale { "?" } else { "" };
    match (row, condition) {
        (Row::Sweep(sweep), Condition::Phase(phase)) => {
            let runs = sweep.states.of(phase);
            format!("{sign} {} {}", count(runs), phase.word())
        }
        _ => format!("{sign} {}{doubt}", condition.word()),
    }
}
