//! Shows lines of logs.

use super::Follower;
use crate::output;
use crate::runs::loglines::{End, Lines};
use std::borrow::Cow;
use std::io::Write;
use towline_core::Result;
use towline_core::cluster::LogSource;
use towline_wire::report::logs::LogLine;

impl Follower<'_> {
    /// Shows bytes: raw for one log without a filter, else line by line.
    pub(super) fn show(&mut self, source: LogSource, bytes: &[u8]) -> Result<()> {
        if self.view.sources.len() == 1 && self.view.grep.is_none() && !self.context.json {
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
        output::data(&shown)
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
        if self.view.sources.len() > 1 {
            let _ = match source {
                LogSource::Rank(rank) => write!(shown, "[{rank}] "),
                LogSource::SetUp(node) => write!(shown, "[set-up {node}] "),
            };
        }
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

    pub(super) fn flush_partial_lines(&mut self) -> Result<()> {
        for (source, lines) in std::mem::take(&mut self.partial) {
            let rest = lines.rest();
            if !rest.is_empty() {
                let mut shown = Vec::new();
                self.line(source, &rest, None, &mut shown);
                output::data(&shown)?;
            }
        }
        Ok(())
    }
}
