//! `tow clusters`: where runs can go.

use super::Report;
use crate::context::Context;
use crate::output::Paint;
use crate::table::Table;
use serde::Serialize;
use towline_core::Result;

/// List the clusters I can use and what is free there.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tow clusters
  tow clusters --discover                      what Azure ML has for me
  tow clusters --create-workspace lab2 -c aml  a workspace beside that of cluster aml
  tow clusters --json")]
pub(crate) struct Args {
    /// Ask Azure what I may use: workspaces, computes, virtual clusters and quotas, images, identities.
    #[arg(long)]
    discover: bool,
    /// Signed in as this cluster says [default: the configured one, else the Azure CLI's login].
    #[arg(short, long)]
    cluster: Option<String>,
    /// Make a workspace of this name beside that of the cluster, with its storage and vault.
    #[arg(long, value_name = "NAME")]
    create_workspace: Option<String>,
    /// Where the new workspace is to be [default: where the other is].
    #[arg(long, requires = "create_workspace")]
    location: Option<String>,
}

#[derive(Serialize)]
struct Cluster {
    name: String,
    kind: &'static str,
    default: bool,
    /// `ready`, or why not.
    state: String,
    cpus: u32,
    cpus_free: u32,
    gpus: usize,
    gpus_free: usize,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<Report> {
    if let Some(name) = &args.create_workspace {
        return crate::discover::create_workspace(context, args.cluster.as_deref(), name, args.location.as_deref());
    }
    if args.discover {
        return crate::discover::discover(context, args.cluster.as_deref());
    }
    let layers = context.layers()?;
    let mut clusters = Vec::new();
    for name in layers.cluster_names() {
        let kind = layers.cluster(name)?.kind.word();
        let mut cluster = Cluster {
            name: name.to_owned(),
            kind,
            default: name == layers.default_cluster(),
            state: "ready".into(),
            cpus: 0,
            cpus_free: 0,
            gpus: 0,
            gpus_free: 0,
        };
        match context.cluster(name).and_then(|cluster| cluster.facts(context)) {
            Ok(facts) => {
                for node in &facts.nodes {
                    cluster.cpus += node.cpus;
                    cluster.cpus_free += node.cpus.saturating_sub(node.cpus_used);
                    cluster.gpus += node.gpus.len();
                    cluster.gpus_free += node.gpus.iter().filter(|gpu| gpu.run.is_none() && gpu.busy_with.is_none()).count();
                }
            }
            Err(error) => cluster.state = error.to_string(),
        }
        clusters.push(cluster);
    }
    let mut table = Table::new(&["NAME", "KIND", "DEFAULT", "GPUS FREE", "CPUS FREE", "STATE"]);
    for cluster in &clusters {
        let plain = |text: String| (text, Paint::Plain);
        table.row(vec![
            (cluster.name.clone(), Paint::Bold),
            plain(cluster.kind.to_owned()),
            plain(if cluster.default { "yes".into() } else { String::new() }),
            plain(format!("{}/{}", cluster.gpus_free, cluster.gpus)),
            plain(format!("{}/{}", cluster.cpus_free, cluster.cpus)),
            (cluster.state.clone(), if cluster.state == "ready" { Paint::Good } else { Paint::Bad }),
        ]);
    }
    Ok(Report::new(table.render(), &serde_json::json!({ "clusters": clusters })))
}
