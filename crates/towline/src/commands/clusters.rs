//! `tow clusters`: lists the clusters.

use super::Report;
use crate::context::Context;
use crate::output::Paint;
use crate::output::table::Table;
use towline_core::Result;
use towline_core::cluster::{Facts, NodeFacts};
use towline_wire::report::clusters::{Cluster, Clusters};

/// List the clusters that I can use and what is free there.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tow clusters
  tow clusters --discover                      what Azure ML has for me
  tow clusters --create-workspace lab2 -c aml  a workspace beside that of cluster aml
  tow clusters --json")]
pub(crate) struct Args {
    /// Ask Azure what I may use: workspaces, computes, virtual clusters and quotas, images,
    /// identities.
    #[arg(long)]
    discover: bool,
    /// Only this one; with --discover, sign in as it says [default: the configured one, else the
    /// Azure CLI's login].
    #[arg(short, long)]
    cluster: Option<String>,
    /// Create a workspace of this name beside that of the cluster, with the same storage and vault.
    #[arg(long, value_name = "NAME")]
    create_workspace: Option<String>,
    /// Region of the new workspace [default: that of the other one].
    #[arg(long, requires = "create_workspace")]
    location: Option<String>,
}

/// What a cluster has, and what of it is free.
fn count(cluster: &mut Cluster, facts: &Facts) {
    let nodes = &facts.nodes;
    cluster.cpus = Some(nodes.iter().map(|node| node.cpus).sum());
    cluster.cpus_free = Some(nodes.iter().map(NodeFacts::free_cpus).sum());
    cluster.gpus = Some(nodes.iter().map(|node| node.gpus.len() as u64).sum());
    cluster.gpus_free = Some(nodes.iter().map(NodeFacts::free_gpus).sum());
    cluster.signed_in_as.clone_from(&facts.signed_in_as);
    // Where quotas count, which machines they would take is another matter.
    if let Some(quota) = facts.gpu_quota {
        (cluster.cpus, cluster.cpus_free) = (None, None);
        (cluster.gpus, cluster.gpus_free) = (Some(quota.limit), Some(quota.free));
    }
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<Report> {
    if let Some(name) = &args.create_workspace {
        return crate::wiring::discover::create_workspace(
            context,
            args.cluster.as_deref(),
            name,
            args.location.as_deref(),
        );
    }
    if args.discover {
        return crate::wiring::discover::discover(context, args.cluster.as_deref());
    }
    let layers = context.layers()?;
    if let Some(name) = &args.cluster {
        layers.cluster(name)?;
    }
    let mut clusters = Vec::new();
    for name in layers
        .cluster_names()
        .into_iter()
        .filter(|name| args.cluster.as_deref().is_none_or(|only| only == *name))
    {
        let kind = layers.cluster(name)?.kind.word();
        let mut cluster = Cluster {
            name: name.to_owned(),
            kind,
            default: name == layers.default_cluster(),
            state: "ready".into(),
            cpus: None,
            cpus_free: None,
            gpus: None,
            gpus_free: None,
            signed_in_as: None,
        };
        if let Err(error) = look(context, &mut cluster) {
            cluster.state = error.to_string();
        }
        clusters.push(cluster);
    }
    Ok(Report::of(&Clusters { clusters }, text))
}

fn text(answer: &Clusters) -> String {
    let clusters = &answer.clusters;
    let is_signed_in = clusters
        .iter()
        .any(|cluster| cluster.signed_in_as.is_some());
    let columns = [
        "NAME",
        "KIND",
        "DEFAULT",
        "GPUS FREE",
        "CPUS FREE",
        "STATE",
        "SIGNED IN AS",
    ];
    let mut table = Table::new(if is_signed_in {
        &columns
    } else {
        &columns[..6]
    });
    for cluster in clusters {
        table.row(row(cluster, is_signed_in));
    }
    table.render()
}

fn row(cluster: &Cluster, is_signed_in: bool) -> Vec<(String, Paint)> {
    let plain = |text: String| (text, Paint::Plain);
    let mut row = vec![
        (cluster.name.clone(), Paint::Bold),
        plain(cluster.kind.to_owned()),
        plain(if cluster.default {
            "yes".into()
        } else {
            String::new()
        }),
        plain(share(cluster.gpus_free, cluster.gpus)),
        plain(share(
            cluster.cpus_free.map(u64::from),
            cluster.cpus.map(u64::from),
        )),
        (
            cluster.state.clone(),
            if cluster.state == "ready" {
                Paint::Good
            } else {
                Paint::Bad
            },
        ),
    ];
    if is_signed_in {
        row.push(plain(
            cluster
                .signed_in_as
                .as_ref()
                .map(|who| who.name.clone())
                .unwrap_or_default(),
        ));
    }
    row
}

fn look(context: &Context, cluster: &mut Cluster) -> Result<()> {
    let facts = context.cluster(&cluster.name)?.facts_now()?;
    count(cluster, &facts);
    Ok(())
}

fn share(free: Option<u64>, all: Option<u64>) -> String {
    free.zip(all)
        .map_or_else(|| "-".to_owned(), |(free, all)| format!("{free}/{all}"))
}
