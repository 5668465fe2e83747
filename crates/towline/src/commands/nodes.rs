//! `tow nodes`: shows machines and GPUs, and who uses them.

use super::Report;
use crate::context::Context;
use crate::output::page;
use towline_core::Result;
use towline_core::cluster::Facts;

/// Show the nodes of a cluster: CPUs, memory, GPUs and who uses them.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tow nodes
  tow nodes --json | jq '.nodes[0].gpus'")]
pub(crate) struct Args {
    /// The cluster [default: the configured one].
    #[arg(short, long)]
    cluster: Option<String>,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<Report> {
    let name = match &args.cluster {
        Some(name) => name.clone(),
        None => context.layers()?.default_cluster().to_owned(),
    };
    let cluster = context.cluster(&name)?;
    let mut facts = cluster.facts_now()?;
    let page = cluster.page(&mut facts);
    Ok(Report::new(page::render(&page), &flat(&facts)))
}

/// Nodes and notes, as for every cluster, with the facts of this kind beside them.
fn flat(facts: &Facts) -> serde_json::Value {
    let mut value = serde_json::to_value(facts).unwrap_or_default();
    if let Some(whole) = value.as_object_mut()
        && let Some(serde_json::Value::Object(own)) = whole.remove("own")
    {
        whole.extend(own);
    }
    value
}
