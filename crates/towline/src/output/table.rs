//! Tables for people: aligned columns. On a narrow terminal all columns but the first are cut.

use crate::output::columns::{columns, cut};
use crate::output::{Paint, paint, stdout_has_colour, width};
use towline_core::visible::visible;

/// Blanks between two columns.
const COLUMN_GAP: usize = 2;
/// No column is cut below this width.
const MIN_COLUMN_WIDTH: usize = 6;
/// Columns that are never cut, because a part of them says nothing. The first column names the row
/// and is not cut either.
const WHOLE_COLUMNS: [&str; 8] = [
    "STATE", "AGE", "TOOK", "NODES", "GPUS", "HERE", "TRY", "SIZE",
];

#[derive(Debug, Default)]
pub(crate) struct Table {
    head: Vec<&'static str>,
    rows: Vec<Vec<(String, Paint)>>,
}

impl Table {
    pub(crate) fn new(head: &[&'static str]) -> Self {
        Self {
            head: head.to_vec(),
            rows: Vec::new(),
        }
    }

    /// Adds a row. Cells are escaped here, so that columns stay aligned.
    pub(crate) fn row(&mut self, mut cells: Vec<(String, Paint)>) {
        debug_assert_eq!(cells.len(), self.head.len(), "a cell for each heading");
        cells.resize(self.head.len(), (String::new(), Paint::Plain));
        let shown = |text: String| visible(&text.replace(['\n', '\r', '\t'], " ")).into_owned();
        self.rows.push(
            cells
                .into_iter()
                .map(|(text, paint)| (shown(text), paint))
                .collect(),
        );
    }

    /// Leaves out columns that are empty in every row.
    pub(crate) fn render(&self) -> String {
        let colour = stdout_has_colour();
        let used: Vec<usize> = (0..self.head.len())
            .filter(|column| {
                self.rows
                    .iter()
                    .any(|row| row.get(*column).is_some_and(|(text, _)| !text.is_empty()))
            })
            .collect();
        let mut widths: Vec<usize> = used
            .iter()
            .map(|column| {
                self.rows
                    .iter()
                    .map(|row| columns(&row[*column].0))
                    .max()
                    .unwrap_or(0)
                    .max(self.head[*column].len())
            })
            .collect();
        if let Some(room) = width() {
            let kept: Vec<bool> = used
                .iter()
                .map(|column| *column == 0 || WHOLE_COLUMNS.contains(&self.head[*column]))
                .collect();
            fit(&mut widths, &kept, room);
        }
        let mut text = String::new();
        let heads: Vec<(String, Paint)> = self
            .head
            .iter()
            .map(|head| ((*head).to_owned(), Paint::Quiet))
            .collect();
        for row in std::iter::once(&heads).chain(&self.rows) {
            let mut line = String::new();
            for (index, column) in used.iter().enumerate() {
                let (cell, style) = &row[*column];
                let last = index + 1 == used.len();
                let shown = cut(cell, widths[index]);
                let pad = if last {
                    0
                } else {
                    widths[index].saturating_sub(columns(&shown)) + COLUMN_GAP
                };
                line += &paint(*style, &shown, colour);
                line += &" ".repeat(pad);
            }
            text += line.trim_end();
            text.push('\n');
        }
        text
    }
}

/// Makes columns narrower until they fit: the last one first, then the widest. Columns in `kept`
/// are not cut.
fn fit(widths: &mut [usize], kept: &[bool], room: usize) {
    let mut over = (widths.iter().sum::<usize>() + COLUMN_GAP * widths.len().saturating_sub(1))
        .saturating_sub(room);
    if let (Some(last), Some(false)) = (widths.last_mut(), kept.last()) {
        let less = over.min(last.saturating_sub(MIN_COLUMN_WIDTH));
        *last -= less;
        over -= less;
    }
    while over > 0 {
        let free = widths
            .iter_mut()
            .zip(kept)
            .filter(|(_, kept)| !**kept)
            .map(|(width, _)| width);
        let Some(widest) = free.max().filter(|widest| **widest > MIN_COLUMN_WIDTH) else {
            return;
        };
        *widest -= 1;
        over -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_cut_until_they_fit_and_the_first_is_not() {
        let fitted = |mut widths: Vec<usize>, room| {
            let kept: Vec<bool> = (0..widths.len())
                .map(|column| column == 0 || widths[column] == 9)
                .collect();
            fit(&mut widths, &kept, room);
            widths
        };
        assert_eq!(fitted(vec![10, 10, 30], 80), [10, 10, 30]);
        assert_eq!(
            fitted(vec![10, 10, 90], 80),
            [10, 10, 56],
            "a command's end"
        );
        assert_eq!(
            fitted(vec![36, 40, 12, 5], 80),
            [36, 21, 12, 5],
            "the widest"
        );
        assert_eq!(
            fitted(vec![36, 20, 9, 14], 72),
            [36, 15, 9, 6],
            "a state says nothing when it is cut"
        );
        assert_eq!(fitted(vec![50, 20, 5], 60), [50, 6, 5], "there is no less");
        assert_eq!(fitted(vec![100], 60), [100]);
    }
}
