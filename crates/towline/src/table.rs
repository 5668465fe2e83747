//! Tables for people: aligned columns, the last one cut to the terminal.

use crate::output::{Paint, paint, stdout_has_colour, width};

#[derive(Debug, Default)]
pub(crate) struct Table {
    head: Vec<&'static str>,
    rows: Vec<Vec<(String, Paint)>>,
}

impl Table {
    pub(crate) fn new(head: &[&'static str]) -> Self {
        Self { head: head.to_vec(), rows: Vec::new() }
    }

    pub(crate) fn row(&mut self, cells: Vec<(String, Paint)>) {
        self.rows.push(cells);
    }

    /// Leaves out columns that are empty in every row.
    pub(crate) fn render(&self) -> String {
        let colour = stdout_has_colour();
        let used: Vec<usize> =
            (0..self.head.len()).filter(|column| self.rows.iter().any(|row| row.get(*column).is_some_and(|(text, _)| !text.is_empty()))).collect();
        let widths: Vec<usize> =
            used.iter().map(|column| self.rows.iter().map(|row| display_width(&row[*column].0)).max().unwrap_or(0).max(self.head[*column].len())).collect();
        let room = width();
        let mut text = String::new();
        let heads: Vec<(String, Paint)> = self.head.iter().map(|head| ((*head).to_owned(), Paint::Quiet)).collect();
        for row in std::iter::once(&heads).chain(&self.rows) {
            let mut at = 0;
            let mut line = String::new();
            for (index, column) in used.iter().enumerate() {
                let (cell, style) = &row[*column];
                let last = index + 1 == used.len();
                let cell = cell.replace(['\n', '\r', '\t'], " ");
                let shown = match room {
                    Some(room) if last => cut(&cell, room.saturating_sub(at).max(8)),
                    _ => cell,
                };
                let pad = if last { 0 } else { widths[index].saturating_sub(display_width(&shown)) + 2 };
                at += display_width(&shown) + pad;
                line += &paint(*style, &shown, colour);
                line += &" ".repeat(pad);
            }
            text += line.trim_end();
            text.push('\n');
        }
        text
    }
}

fn display_width(text: &str) -> usize {
    text.chars().count()
}

fn cut(text: &str, room: usize) -> String {
    if display_width(text) <= room {
        return text.to_owned();
    }
    let mut shown: String = text.chars().take(room.saturating_sub(1)).collect();
    shown.push('…');
    shown
}
