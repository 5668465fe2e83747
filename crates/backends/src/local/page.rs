//! The page of `tow nodes` for this machine.

use towline_core::cluster::{Cell, Facts, GpuFacts, Page, Tone};
use towline_core::quantity::Memory;

pub(super) fn page(facts: &Facts) -> Page {
    let mut page = Page::default();
    for node in &facts.nodes {
        page = page.text(format!(
            "{}: {} of {} CPUs, {} of {} memory, {} GPU(s)\n",
            node.name,
            node.cpus_used,
            node.cpus,
            Memory(node.memory_used),
            Memory(node.memory),
            node.gpus.len()
        ));
        if !node.gpus.is_empty() {
            let rows = node.gpus.iter().map(row).collect();
            page = page.table(&["GPU", "NAME", "MEMORY", "USED BY"], rows);
        }
    }
    page
}

fn row(gpu: &GpuFacts) -> Vec<Cell> {
    let (who, tone) = match (&gpu.run, &gpu.busy_with) {
        (Some(run), _) => (run.to_string(), Tone::Busy),
        (None, Some(other)) => (format!("others: {other}"), Tone::Bad),
        (None, None) => ("free".to_owned(), Tone::Good),
    };
    let memory = if gpu.memory > 0 {
        format!("{} of {}", Memory(gpu.memory_used), Memory(gpu.memory))
    } else {
        String::new()
    };
    vec![
        Cell::new(gpu.index.to_string(), Tone::Strong),
        Cell::plain(gpu.name.clone()),
        Cell::plain(memory),
        Cell::new(who, tone),
    ]
}
