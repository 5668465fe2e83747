//! All about one run, and why it is as it is.

use super::State;
use super::areas::middle;
use super::event::Answered;
use super::rows::{Row, Run};
use crate::text::{one_line, wrapped};
use ratatui::layout::{Rect, Size};
use serde::Deserialize;
use towline_core::RunId;
use towline_core::time::human_millis;

/// The part of one text that the details show.
const MAX_TEXT_CHARACTERS: usize = 4000;

/// What `tow why` answers, of a run or a sweep.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Why {
    pub(crate) summary: String,
    pub(crate) cause: Option<String>,
    pub(crate) evidence: Option<String>,
    pub(crate) last_lines: Vec<String>,
    pub(crate) transient: Option<bool>,
    pub(crate) next_step: Option<String>,
    pub(crate) failures: Vec<Failures>,
}

/// Runs of a sweep that failed in the same way.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Failures {
    pub(crate) detail: String,
    pub(crate) runs: Vec<String>,
}

#[derive(Debug)]
pub(crate) struct Details {
    /// As it was last seen: the list may scroll away from it.
    pub(crate) row: Row,
    pub(crate) why: Option<Answered<Why>>,
    /// The first line on the screen.
    pub(crate) top: u16,
}

/// How a line of the details is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    Fact,
    Bad,
    Quiet,
}

/// A line of the details: what it tells, and the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DetailLine {
    pub(crate) label: &'static str,
    pub(crate) text: String,
    pub(crate) tone: Tone,
}

pub(crate) const LABEL_COLUMNS: usize = 12;

impl State {
    /// The last line that may be the first on the screen.
    pub(super) fn last_top(&self, details: &Details) -> u16 {
        let area = details_area(self.size);
        let lines = self.detail_lines(details, area.width.into()).len();
        let lines = u16::try_from(lines).unwrap_or(u16::MAX);
        lines.saturating_sub(area.height)
    }

    /// All about a run, in lines of so many columns.
    pub(crate) fn detail_lines(&self, details: &Details, columns: usize) -> Vec<DetailLine> {
        let mut lines = Lines {
            lines: Vec::new(),
            columns: columns.saturating_sub(LABEL_COLUMNS).max(1),
        };
        let run = details.row.run();
        lines.add("id", details.row.id().as_str());
        lines.add("name", &run.name);
        self.add_state(&mut lines, &details.row);
        self.add_times(&mut lines, &details.row);
        add_place(&mut lines, run);
        lines.add_some("experiment", run.experiment.as_deref());
        lines.add("tags", &run.tags.join(", "));
        if let Row::Run(run) = &details.row {
            let values: Vec<String> = run
                .parameters
                .iter()
                .map(|(name, value)| format!("{name}={}", value.as_str().unwrap_or_default()))
                .collect();
            lines.add("parameters", &values.join(" "));
        }
        lines.add("command", &run.command);
        lines.add_some("repeats", run.resubmits.as_ref().map(RunId::as_str));
        lines.add_some("portal", run.url.as_deref());
        add_why(&mut lines, details.why.as_ref());
        lines.lines
    }

    fn add_state(&self, lines: &mut Lines, row: &Row) {
        let run = row.run();
        if let Row::Sweep(sweep) = row {
            let counts = format!("{} runs: {}", sweep.states.total(), sweep.states);
            lines.add("state", &counts);
            return;
        }
        let native = run.native_state.as_deref();
        let native = native.map_or_else(String::new, |word| format!(" ({word} on the cluster)"));
        lines.add("state", &format!("{}{native}", run.condition().word()));
        let tone = if row.has_failed() {
            Tone::Bad
        } else {
            Tone::Fact
        };
        lines.add_in("reason", run.detail.as_deref().unwrap_or_default(), tone);
        lines.add_some("waits", run.native_reason.as_deref());
        let stale = run.stale.as_deref().unwrap_or_default();
        lines.add_in("out of date", stale, Tone::Bad);
        let refused = run.cancel_refused.as_deref().unwrap_or_default();
        lines.add_in("not ended", refused, Tone::Bad);
        if let Some(until) = run.held_until {
            lines.add("held until", &(self.local_time)(until));
        }
    }

    fn add_times(&self, lines: &mut Lines, row: &Row) {
        let run = row.run();
        let (started, ended) = match row {
            Row::Run(run) => (run.started, run.ended),
            Row::Sweep(sweep) => (sweep.started, sweep.ended),
        };
        let times = [
            ("submitted", run.created),
            ("started", started),
            ("ended", ended),
        ];
        for (label, moment) in times {
            if let Some(moment) = moment {
                let age = human_millis(self.now.wall.since(moment));
                lines.add(label, &format!("{}, {age} ago", (self.local_time)(moment)));
            }
        }
        if let Some(took) = row.took(self.now.wall) {
            lines.add("took", &human_millis(took));
        }
        if run.attempt > 1 && matches!(row, Row::Run(_)) {
            lines.add("attempt", &run.attempt.to_string());
        }
    }
}

/// Where the details are drawn, within their frame.
pub(crate) fn details_area(size: Size) -> Rect {
    let framed = middle(size, 110, size.height.saturating_sub(2));
    Rect {
        x: framed.x.saturating_add(2),
        y: framed.y.saturating_add(1),
        width: framed.width.saturating_sub(4),
        height: framed.height.saturating_sub(2),
    }
}

fn add_place(lines: &mut Lines, run: &Run) {
    lines.add("cluster", &format!("{}, {} tier", run.cluster, run.tier));
    let (nodes, ranks, gpus) = (run.nodes, run.ranks, run.gpus);
    lines.add(
        "size",
        &format!("nodes {nodes}, ranks {ranks}, GPUs {gpus}"),
    );
    lines.add("hosts", &run.hosts.join(", "));
}

fn add_why(lines: &mut Lines, why: Option<&Answered<Why>>) {
    lines.lines.push(DetailLine {
        label: "",
        text: String::new(),
        tone: Tone::Quiet,
    });
    let why = match why {
        None => return lines.add_in("why", "asking …", Tone::Quiet),
        Some(Err(refusal)) => return lines.add_in("why", &refusal.text(), Tone::Bad),
        Some(Ok(why)) => why,
    };
    lines.add("why", &why.summary);
    lines.add_some("cause", why.cause.as_deref());
    let evidence = why.evidence.as_deref().unwrap_or_default();
    lines.add_in("the log says", evidence, Tone::Bad);
    for line in &why.last_lines {
        lines.add_in("log", line, Tone::Quiet);
    }
    for group in &why.failures {
        let text = format!("{} failed: {}", group.runs.len(), group.detail);
        lines.add_in("", &text, Tone::Bad);
    }
    let again = why.transient.map(|transient| {
        if transient {
            "trying again unchanged can help"
        } else {
            "trying again unchanged does not help"
        }
    });
    lines.add_some("again", again);
    lines.add_some("next", why.next_step.as_deref());
}

struct Lines {
    lines: Vec<DetailLine>,
    columns: usize,
}

impl Lines {
    fn add(&mut self, label: &'static str, text: &str) {
        self.add_in(label, text, Tone::Fact);
    }

    fn add_some(&mut self, label: &'static str, text: Option<&str>) {
        self.add(label, text.unwrap_or_default());
    }

    /// Adds a text that is not empty, in as many lines as it takes.
    fn add_in(&mut self, label: &'static str, text: &str, tone: Tone) {
        // A text of a stranger may be of any length; nobody reads more of it here.
        let shortened: String = text.chars().take(MAX_TEXT_CHARACTERS).collect();
        let mut label = label;
        for line in shortened.lines().filter(|line| !line.trim().is_empty()) {
            for text in wrapped(&one_line(line), self.columns) {
                self.lines.push(DetailLine { label, text, tone });
                label = "";
            }
        }
    }
}
