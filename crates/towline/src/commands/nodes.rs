//! `tow nodes`: machines and GPUs, and who has them.

use super::Report;
use crate::context::{AnyCluster, Context};
use crate::output::Paint;
use crate::table::Table;
use serde::Serialize;
use towline_backends::azureml::known::Holder;
use towline_backends::azureml::site::AzureSite;
use towline_core::Result;
use towline_core::cluster::Facts;
use towline_core::quantity::{Memory, Span};
use towline_wire::site::SiteFacts;

/// Show the nodes of a cluster: CPUs, memory, GPUs and who has them.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tow nodes
  tow nodes --json | jq '.nodes[0].gpus'")]
pub(crate) struct Args {
    /// Of this cluster [default: the configured one].
    #[arg(short, long)]
    cluster: Option<String>,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<Report> {
    let name = match &args.cluster {
        Some(name) => name.clone(),
        None => context.layers()?.default_cluster().to_owned(),
    };
    match context.cluster(&name)? {
        AnyCluster::Slurm(cluster) => {
            let site = crate::machines::facts(context, &cluster.backend, true)?;
            Ok(Report::new(far_page(&site), &nodes_first(&site)))
        }
        AnyCluster::Azure(cluster) => {
            let site = crate::azure::site(context, &cluster.backend, true)?;
            // Who may see the cluster need not be allowed to see its jobs.
            let (holders, note) = match cluster.backend.holders() {
                Ok(holders) => (holders, None),
                Err(error) => (
                    Vec::new(),
                    Some(format!("who holds its nodes is not known: {error}\n")),
                ),
            };
            let mut value = nodes_first(&site);
            value["holders"] = serde_json::to_value(&holders).unwrap_or_default();
            Ok(Report::new(
                azure_page(&site) + &held_by(&holders) + &note.unwrap_or_default(),
                &value,
            ))
        }
        local @ AnyCluster::Local(_) => {
            let facts = local.facts(context)?;
            Ok(Report::new(page(&facts), &facts))
        }
    }
}

/// Nodes and notes as of every cluster, with what else is known beside them.
fn nodes_first(site: &impl Serialize) -> serde_json::Value {
    let mut value = serde_json::to_value(site).unwrap_or_default();
    if let Some(whole) = value.as_object_mut()
        && let Some(serde_json::Value::Object(facts)) = whole.remove("facts")
    {
        whole.extend(facts);
    }
    value
}

/// One line a node: a cluster has many.
fn far_page(site: &SiteFacts) -> String {
    let mut table = Table::new(&[
        "NODE",
        "STATE",
        "GPUS FREE",
        "GPU",
        "CPUS FREE",
        "MEMORY FREE",
        "USED BY",
    ]);
    for node in &site.facts.nodes {
        let free = node
            .gpus
            .iter()
            .filter(|gpu| gpu.run.is_none() && gpu.busy_with.is_none())
            .count();
        let paint = if free > 0 || (node.gpus.is_empty() && node.cpus_used < node.cpus) {
            Paint::Good
        } else {
            Paint::Busy
        };
        let kind = node
            .gpus
            .first()
            .map(|gpu| gpu.name.clone())
            .unwrap_or_default();
        let plain = |text: String| (text, Paint::Plain);
        table.row(vec![
            (node.name.clone(), Paint::Bold),
            plain(node.state.clone()),
            (
                if node.gpus.is_empty() {
                    String::new()
                } else {
                    format!("{free}/{}", node.gpus.len())
                },
                paint,
            ),
            plain(kind),
            plain(format!(
                "{}/{}",
                node.cpus.saturating_sub(node.cpus_used),
                node.cpus
            )),
            plain(format!(
                "{} of {}",
                Memory(node.memory.saturating_sub(node.memory_used)),
                Memory(node.memory)
            )),
            (node.users.join(", "), Paint::Quiet),
        ]);
    }
    let mut text = table.render();
    for partition in &site.partitions {
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
        text += &format!(
            "partition {}: {} node(s), {limit}{usual}{down}\n",
            partition.name, partition.nodes
        );
    }
    if !site.tiers.is_empty() {
        text += &format!("QOS: {}\n", site.tiers.join(", "));
    }
    site.fair_share
        .iter()
        .for_each(|share| text += &format!("{share}\n"));
    site.maintenance
        .iter()
        .for_each(|window| text += &format!("maintenance {window}\n"));
    site.facts
        .notes
        .iter()
        .for_each(|note| text += &format!("{note}\n"));
    text
}

/// Kinds of machines and what each tier may have of them; of a compute, its nodes.
fn azure_page(site: &AzureSite) -> String {
    let plain = |text: String| (text, Paint::Plain);
    let mut table = Table::new(&["MACHINE", "SERIES", "GPUS", "CPUS", "MEMORY", "STATE"]);
    for node in &site.facts.nodes {
        let kind = site
            .instance(&node.name)
            .or_else(|| site.vm_size.as_deref().and_then(|size| site.instance(size)));
        let paint = if node.state == "running" {
            Paint::Busy
        } else {
            Paint::Good
        };
        table.row(vec![
            (node.name.clone(), Paint::Bold),
            plain(kind.map(|kind| kind.series.clone()).unwrap_or_default()),
            plain(node.gpus.len().to_string()),
            plain(node.cpus.to_string()),
            plain(Memory(node.memory).to_string()),
            (node.state.clone(), paint),
        ]);
    }
    let mut text = format!(
        "{} in workspace {} ({})\n",
        site.flavour.word(),
        site.scope.workspace,
        site.location
    ) + &table.render();
    if !site.quotas.is_empty() {
        let mut table = Table::new(&["REGION", "SERIES", "TIER", "GPUS FREE", "LIMIT"]);
        for quota in &site.quotas {
            let free = quota.limit.saturating_sub(quota.used);
            let paint = if free > 0 { Paint::Good } else { Paint::Busy };
            table.row(vec![
                plain(quota.region.clone()),
                plain(quota.series.clone()),
                plain(quota.tier.to_lowercase()),
                (free.to_string(), paint),
                plain(quota.limit.to_string()),
            ]);
        }
        text += &table.render();
    }
    if !site.identities.is_empty() {
        text += &format!(
            "identities: {}\n",
            site.identities
                .keys()
                .cloned()
                .collect::<Vec<_>>()
                .join(", ")
        );
    }
    site.facts
        .notes
        .iter()
        .for_each(|note| text += &format!("{note}\n"));
    text
}

/// Whose jobs run there now.
fn held_by(holders: &[Holder]) -> String {
    if holders.is_empty() {
        return String::new();
    }
    let mut table = Table::new(&["HELD BY", "NODES", "JOBS"]);
    for holder in holders {
        let more = holder.jobs.len().saturating_sub(3);
        let more = if more == 0 {
            String::new()
        } else {
            format!(" and {more} more")
        };
        let jobs = holder
            .jobs
            .iter()
            .take(3)
            .cloned()
            .collect::<Vec<_>>()
            .join(", ")
            + &more;
        table.row(vec![
            (holder.user.clone(), Paint::Bold),
            (holder.nodes.to_string(), Paint::Plain),
            (jobs, Paint::Quiet),
        ]);
    }
    table.render()
}

fn page(facts: &Facts) -> String {
    let mut text = String::new();
    for node in &facts.nodes {
        let memory = format!(
            "{} of {} memory",
            Memory(node.memory_used),
            Memory(node.memory)
        );
        text += &format!(
            "{}: {} of {} CPUs, {memory}, {} GPU(s)\n",
            node.name,
            node.cpus_used,
            node.cpus,
            node.gpus.len()
        );
        if node.gpus.is_empty() {
            continue;
        }
        let mut table = Table::new(&["GPU", "NAME", "MEMORY", "USED BY"]);
        for gpu in &node.gpus {
            let (who, paint) = match (&gpu.run, &gpu.busy_with) {
                (Some(run), _) => (run.to_string(), Paint::Busy),
                (None, Some(other)) => (format!("others: {other}"), Paint::Bad),
                (None, None) => ("free".to_owned(), Paint::Good),
            };
            let memory = if gpu.memory > 0 {
                format!("{} of {}", Memory(gpu.memory_used), Memory(gpu.memory))
            } else {
                String::new()
            };
            table.row(vec![
                (gpu.index.to_string(), Paint::Bold),
                (gpu.name.clone(), Paint::Plain),
                (memory, Paint::Plain),
                (who, paint),
            ]);
        }
        text += &table.render();
    }
    text
}
