//! Writes text into one line of the screen, from the left to the right, and never beyond its end.

use super::look::{Look, Paint};
use crate::text::{cut, one_line, width};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

pub(crate) struct Pen<'b> {
    buffer: &'b mut Buffer,
    look: Look,
    x: u16,
    y: u16,
    end: u16,
}

impl<'b> Pen<'b> {
    /// A pen at the begin of a line of the area. `None` if there is no such line.
    pub(crate) fn new(buffer: &'b mut Buffer, look: Look, area: Rect, line: u16) -> Option<Self> {
        let area = area.intersection(buffer.area);
        (line < area.height && area.width > 0).then_some(Self {
            buffer,
            look,
            x: area.x,
            y: area.y + line,
            end: area.right(),
        })
    }

    /// The columns that are left.
    pub(crate) fn left(&self) -> usize {
        usize::from(self.end - self.x)
    }

    /// Writes a text, cut at the end of the line.
    pub(crate) fn put(&mut self, text: &str, paint: Paint) -> &mut Self {
        self.put_styled(text, self.look.style(paint))
    }

    pub(crate) fn put_styled(&mut self, text: &str, style: Style) -> &mut Self {
        let columns = self.left();
        self.put_within(text, columns, style);
        self
    }

    /// Writes a text in a column of a table, and a blank behind it.
    pub(crate) fn cell(&mut self, text: &str, columns: usize, paint: Paint) -> &mut Self {
        let begin = self.x;
        let style = self.look.style(paint);
        self.put_within(text, columns.min(self.left()), style);
        self.go_to(begin, columns + 1)
    }

    /// The same, at the right end of the column.
    pub(crate) fn number(&mut self, text: &str, columns: usize, paint: Paint) -> &mut Self {
        let begin = self.x;
        let blanks = columns.saturating_sub(width(text));
        self.go_to(begin, blanks);
        let style = self.look.style(paint);
        self.put_within(text, columns.min(self.left()), style);
        self.go_to(begin, columns + 1)
    }

    fn go_to(&mut self, begin: u16, columns: usize) -> &mut Self {
        let columns = u16::try_from(columns).unwrap_or(u16::MAX);
        self.x = begin.saturating_add(columns).min(self.end);
        self
    }

    /// Writes at the right end of what is left of the line, if there is room.
    pub(crate) fn put_right(&mut self, text: &str, paint: Paint) {
        let columns = width(text);
        if columns < self.left() {
            let blanks = self.left() - columns;
            self.go_to(self.x, blanks).put(text, paint);
        }
    }

    fn put_within(&mut self, text: &str, columns: usize, style: Style) {
        let line = one_line(text);
        let shown = self.look.plain(cut(&line, columns).as_ref()).into_owned();
        let (x, _) = self
            .buffer
            .set_stringn(self.x, self.y, shown, columns, style);
        self.x = x.min(self.end);
    }

    /// The column and the line of the next character.
    pub(crate) const fn place(&self) -> (u16, u16) {
        (self.x, self.y)
    }
}
