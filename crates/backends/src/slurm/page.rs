//! The page of `tow nodes` for a Slurm cluster: one line per node, because it has many.

use towline_core::cluster::{Cell, NodeFacts, Page, Tone};
use towline_core::quantity::{Memory, Span};
use towline_wire::site::{PartitionFacts, SiteFacts};

const COLUMNS: [&str; 7] = [
    "NODE",
    "STATE",
    "GPUS FREE",
    "GPU",
    "CPUS FREE",
    "MEMORY FREE",
    "USED BY",
];

pub(super) fn page(site: &SiteFacts) -> Page {
    let page = Page::default()
        .table(&COLUMNS, site.facts.nodes.iter().map(row).collect())
        .lines(site.partitions.iter().map(partition));
    let page = if site.tiers.is_empty() {
        page
    } else {
        page.text(format!("QOS: {}\n", site.tiers.join(", ")))
    };
    page.lines(&site.fair_share)
        .lines(
            site.maintenance
                .iter()
                .map(|window| format!("maintenance {window}")),
        )
        .lines(&site.facts.notes)
}

fn row(node: &NodeFacts) -> Vec<Cell> {
    let free = node.free_gpus();
    let tone = if free > 0 || (node.gpus.is_empty() && node.cpus_used < node.cpus) {
        Tone::Good
    } else {
        Tone::Busy
    };
    let gpus = if node.gpus.is_empty() {
        String::new()
    } else {
        format!("{free}/{}", node.gpus.len())
    };
    let kind = node.gpus.first().map(|gpu| gpu.name.clone());
    let memory = format!(
        "{} of {}",
        Memory(node.memory.saturating_sub(node.memory_used)),
        Memory(node.memory)
    );
    vec![
        Cell::new(node.name.clone(), Tone::Strong),
        Cell::plain(node.state.clone()),
        Cell::new(gpus, tone),
        Cell::plain(kind.unwrap_or_default()),
        Cell::plain(format!("{}/{}", node.free_cpus(), node.cpus)),
        Cell::plain(memory),
        Cell::new(node.users.join(", "), Tone::Quiet),
    ]
}

fn partition(partition: &PartitionFacts) -> String {
    let limit = partition.longest.map_or_else(
        || "no time limit".to_owned(),
        |longest| format!("at most {}", Span(longest)),
    );
    let usual = if partition.is_default {
        ", the default"
    } else {
        ""
    };
    let down = if partition.is_up { "" } else { ", down" };
    format!(
        "partition {}: {} node(s), {limit}{usual}{down}",
        partition.name, partition.nodes
    )
}
