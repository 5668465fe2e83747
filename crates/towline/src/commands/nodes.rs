//! `tow nodes`: shows machines and GPUs, and who uses them.

use super::Report;
use crate::context::Context;
use crate::output::page;
use towline_core::Result;
use towline_wire::report::nodes::Nodes;

/// Show the nodes of a cluster: CPUs, memory, GPUs and who uses them.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tow nodes
  tow nodes lab
  tow nodes --json | jq '.nodes[0].gpus'")]
pub(crate) struct Args {
    /// The cluster [default: the configured one].
    #[arg(value_name = "CLUSTER")]
    name: Option<String>,
    /// The same, as other verbs take it.
    #[arg(short, long, value_name = "CLUSTER", conflicts_with = "name")]
    cluster: Option<String>,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<Report> {
    let name = match args.name.as_ref().or(args.cluster.as_ref()) {
        Some(name) => name.clone(),
        None => context.layers()?.default_cluster().to_owned(),
    };
    let cluster = context.cluster(&name)?;
    let mut facts = cluster.facts_now()?;
    let page = cluster.page(&mut facts);
    Ok(Report::of(&Nodes::from(facts), |_| page::render(&page)))
}
