//! The two lines on top: how many runs are in which state, and what is free on the clusters.

use super::look::{Look, Paint};
use super::pen::Pen;
use crate::model::State;
use crate::model::rows::Condition;
use crate::text::{count, cut};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use towline_core::time::human_millis;

/// The part of a trouble that is told; `tow clusters` has all of it.
const TROUBLE_COLUMNS: usize = 48;

pub(super) fn counts(state: &State, look: Look, area: Rect, buffer: &mut Buffer) {
    let Some(mut pen) = Pen::new(buffer, look, area, 0) else {
        return;
    };
    pen.put("tow top  ", Paint::Bold);
    let list = &state.list;
    let mut gap = "";
    for (phase, runs) in list.window.states.present() {
        let condition = Condition::Phase(phase);
        let sign = look.sign(condition);
        let text = format!("{sign} {} {}", count(runs), phase.word());
        pen.put(gap, Paint::Plain)
            .put(&text, Look::paint(condition));
        gap = "  ";
    }
    if list.has_answer && gap.is_empty() {
        pen.put("no runs", Paint::Quiet);
    }
    if state.changing > 0 {
        pen.put("  changing …", Paint::Busy);
    }
    let question = &list.question;
    let mut limits = Vec::new();
    if let Some(sweep) = &question.sweep {
        limits.push(format!("sweep {}", sweep.short()));
    }
    limits.extend(question.state.map(|state| format!("only {state}")));
    if !question.text.is_empty() {
        limits.push(format!("with \"{}\"", cut(&question.text, 20)));
    }
    if question.active_first {
        limits.push("active first".to_owned());
    }
    if !limits.is_empty() {
        pen.put_right(&limits.join(" · "), Paint::Bold);
    }
}

pub(super) fn gpus(state: &State, look: Look, area: Rect, buffer: &mut Buffer) {
    let Some(mut pen) = Pen::new(buffer, look, area, 0) else {
        return;
    };
    if let Some(why) = &state.trouble {
        let text = format!("not live: {why}");
        pen.put(&cut(&text, TROUBLE_COLUMNS), Paint::Bad);
        pen.put("  ", Paint::Plain);
    }
    for (name, trouble) in state.clusters.troubles() {
        let since = trouble.seen.map_or_else(String::new, |seen| {
            let age = human_millis(state.now.wall.since(seen));
            format!(" (silent for {age})")
        });
        let text = format!("! {name}{since}: {}", trouble.why);
        pen.put(&cut(&text, TROUBLE_COLUMNS), Paint::Bad);
        pen.put("  ", Paint::Plain);
    }
    let known = state.clusters.gpus.iter();
    let with_gpus = known.filter_map(|cluster| {
        let total = cluster.gpus.filter(|gpus| *gpus > 0)?;
        Some((cluster, total))
    });
    let mut label = "GPUs free: ";
    for (cluster, total) in with_gpus {
        let free = cluster.gpus_free.map_or_else(|| "?".to_owned(), count);
        let paint = match cluster.gpus_free {
            Some(0) => Paint::Waiting,
            Some(_) => Paint::Good,
            None => Paint::Quiet,
        };
        pen.put(label, Paint::Quiet)
            .put(&cluster.name, Paint::Plain)
            .put(&format!(" {free}/{}", count(total)), paint);
        label = "  ";
    }
}
