//! The page of `tow nodes` for a workspace: kinds of machines, quotas of each tier, and who holds
//! nodes.

use super::cluster::AzureCluster;
use super::known::Holder;
use super::site::{AzureSite, QuotaFacts};
use crate::own_facts::OwnFacts;
use towline_core::cluster::{Cell, Facts, NodeFacts, Page, Tone};
use towline_core::quantity::Memory;

/// How many jobs of one holder are named.
const NAMED_JOBS: usize = 3;

impl AzureCluster {
    pub(super) fn nodes_page(&self, facts: &mut Facts) -> Page {
        let Ok(site) = AzureSite::from_facts(facts) else {
            return Page::default();
        };
        let page = machines(&site);
        // A user who may see the cluster may be forbidden to see its jobs.
        let (holders, note) = match self.holders() {
            Ok(holders) => (holders, None),
            Err(error) => (
                Vec::new(),
                Some(format!("the holders of its nodes are unknown: {error}\n")),
            ),
        };
        facts.own["holders"] = serde_json::to_value(&holders).unwrap_or_default();
        let page = if holders.is_empty() {
            page
        } else {
            let rows = holders.iter().map(holder_row).collect();
            page.table(&["HELD BY", "NODES", "JOBS"], rows)
        };
        page.text(note.unwrap_or_default())
    }
}

/// One line for `tow doctor`.
pub(super) fn summary(site: &AzureSite, stage: &str) -> String {
    let who = site.who.as_ref();
    format!(
        "{} in workspace {} ({}), {} kind(s) of machines; stage {stage}; signed in as {}",
        site.flavour.word(),
        site.scope.workspace,
        site.location,
        site.instances.len(),
        who.map_or("a user whose name is not in the token", |who| &who.name)
    )
}

fn machines(site: &AzureSite) -> Page {
    let columns = ["MACHINE", "SERIES", "GPUS", "CPUS", "MEMORY", "STATE"];
    let nodes = site.facts.nodes.iter();
    let page = Page::default()
        .text(format!(
            "{} in workspace {} ({})\n",
            site.flavour.word(),
            site.scope.workspace,
            site.location
        ))
        .table(&columns, nodes.map(|node| node_row(site, node)).collect());
    let page = if site.quotas.is_empty() {
        page
    } else {
        let columns = ["REGION", "SERIES", "TIER", "GPUS FREE", "LIMIT"];
        page.table(&columns, site.quotas.iter().map(quota_row).collect())
    };
    let page = if site.identities.is_empty() {
        page
    } else {
        let names: Vec<&str> = site.identities.keys().map(String::as_str).collect();
        page.text(format!("identities: {}\n", names.join(", ")))
    };
    page.lines(&site.facts.notes)
}

fn node_row(site: &AzureSite, node: &NodeFacts) -> Vec<Cell> {
    let kind = site
        .instance(&node.name)
        .or_else(|| site.vm_size.as_deref().and_then(|size| site.instance(size)));
    let tone = if node.state == "running" {
        Tone::Busy
    } else {
        Tone::Good
    };
    vec![
        Cell::new(node.name.clone(), Tone::Strong),
        Cell::plain(kind.map(|kind| kind.series.clone()).unwrap_or_default()),
        Cell::plain(node.gpus.len().to_string()),
        Cell::plain(node.cpus.to_string()),
        Cell::plain(Memory(node.memory).to_string()),
        Cell::new(node.state.clone(), tone),
    ]
}

pub(super) fn quota_row(quota: &QuotaFacts) -> Vec<Cell> {
    let free = quota.free();
    let tone = if free > 0 { Tone::Good } else { Tone::Busy };
    vec![
        Cell::plain(quota.region.clone()),
        Cell::plain(quota.series.clone()),
        Cell::plain(quota.tier.to_lowercase()),
        Cell::new(free.to_string(), tone),
        Cell::plain(quota.limit.to_string()),
    ]
}

fn holder_row(holder: &Holder) -> Vec<Cell> {
    let more = match holder.jobs.len().saturating_sub(NAMED_JOBS) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let named: Vec<&str> = holder
        .jobs
        .iter()
        .take(NAMED_JOBS)
        .map(String::as_str)
        .collect();
    vec![
        Cell::new(holder.user.clone(), Tone::Strong),
        Cell::plain(holder.nodes.to_string()),
        Cell::new(named.join(", ") + &more, Tone::Quiet),
    ]
}
