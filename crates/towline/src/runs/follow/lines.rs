//! Shows lines of logs.

use super::{Follower, Label};
use crate::output::{self, Paint};
use crate::runs::loglines::{End, Lines};
use std::borrow::Cow;
use std::io::Write;
use towline_core::Result;
use towline_core::cluster::LogSource;
use towline_wire::report::logs::LogLine;

impl Follower<'_> {
    /// Shows bytes: raw for one log without a filter, else line by line.
    pub(super) fn show(&mut self, source: LogSource, bytes: &[u8]) -> Result<()> {
        let is_only_log = self.view.sources.len() == 1 && matches!(self.view.label, Label::None);
        if is_only_log && self.view.grep.is_none() && !self.context.json {
            return output::data(bytes);
        }
        let mut lines = self
            .partial
            .remove(&source)
            .unwrap_or_else(|| Lines::new(self.draws_over));
        let mut shown = Vec::with_capacity(bytes.len());
        lines.feed(bytes, |body, end| {
            self.line(source, body, Some(end), &mut shown);
        });
        self.partial.insert(source, lines);
        self.show_lines(&shown)
    }

    /// Shows the line above the run's lines, once.
    pub(super) fn show_heading(&mut self) -> Result<()> {
        if self.has_heading || self.context.json {
            return Ok(());
        }
        self.has_heading = true;
        match &self.view.label {
            Label::Heading(heading) => {
                let colour = output::stdout_has_colour();
                output::text(&(output::paint(Paint::Bold, heading, colour) + "\n"))
            }
            Label::None | Label::Prefix(_) => Ok(()),
        }
    }

    fn show_lines(&mut self, lines: &[u8]) -> Result<()> {
        if lines.is_empty() {
            return Ok(());
        }
        self.show_heading()?;
        output::data(lines)
    }

    pub(super) fn line(
        &self,
        source: LogSource,
        body: &[u8],
        end: Option<End>,
        shown: &mut Vec<u8>,
    ) {
        if self
            .view
            .grep
            .as_ref()
            .is_some_and(|pattern| !pattern.is_match(body))
        {
            return;
        }
        if self.context.json {
            let (rank, set_up_node) = match source {
                LogSource::Rank(rank) => (Some(rank), None),
                LogSource::SetUp(node) => (None, Some(node)),
            };
            let continues = end == Some(End::Cut);
            let value = LogLine {
                run: Cow::Borrowed(&self.view.run),
                attempt: self.attempt,
                rank,
                set_up_node,
                line: String::from_utf8_lossy(body),
                continues,
            };
            let _ = serde_json::to_writer(&mut *shown, &value);
            shown.push(b'\n');
            return;
        }
        self.prefix(source, shown);
        shown.extend_from_slice(body);
        if self.draws_over {
            // Erases the rest of a longer progress bar.
            shown.extend_from_slice(b"\x1b[K");
        }
        shown.push(if end == Some(End::Return) {
            b'\r'
        } else {
            b'\n'
        });
    }

    /// `[b1aee-3] `, `[0] `, or both as `[b1aee-3 0] `.
    fn prefix(&self, source: LogSource, shown: &mut Vec<u8>) {
        let run = match &self.view.label {
            Label::Prefix(run) => run.as_str(),
            Label::None | Label::Heading(_) => "",
        };
        let log = match source {
            _ if self.view.sources.len() == 1 => String::new(),
            LogSource::Rank(rank) => rank.to_string(),
            LogSource::SetUp(node) => format!("set-up {node}"),
        };
        let gap = if run.is_empty() || log.is_empty() {
            ""
        } else {
            " "
        };
        if !run.is_empty() || !log.is_empty() {
            let _ = write!(shown, "[{run}{gap}{log}] ");
        }
    }

    pub(super) fn flush_partial_lines(&mut self) -> Result<()> {
        for (source, lines) in std::mem::take(&mut self.partial) {
            let rest = lines.rest();
            if !rest.is_empty() {
                let mut shown = Vec::new();
                self.line(source, &rest, None, &mut shown);
                self.show_lines(&shown)?;
            }
        }
        Ok(())
    }
}
