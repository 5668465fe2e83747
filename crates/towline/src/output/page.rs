//! The page of a cluster as text.

use crate::output::Paint;
use crate::output::table::Table;
use towline_core::cluster::{Page, Section, Tone};

pub(crate) fn render(page: &Page) -> String {
    page.sections.iter().map(section).collect()
}

fn section(section: &Section) -> String {
    let (columns, rows) = match section {
        Section::Text(text) => return text.clone(),
        Section::Table { columns, rows } => (columns, rows),
    };
    let mut table = Table::new(columns);
    for row in rows {
        let cells = row.iter().map(|cell| (cell.text.clone(), paint(cell.tone)));
        table.row(cells.collect());
    }
    table.render()
}

const fn paint(tone: Tone) -> Paint {
    match tone {
        Tone::Plain => Paint::Plain,
        Tone::Strong => Paint::Bold,
        Tone::Good => Paint::Good,
        Tone::Busy => Paint::Busy,
        Tone::Bad => Paint::Bad,
        Tone::Quiet => Paint::Quiet,
    }
}
