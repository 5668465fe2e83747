//! `tow nodes`: machines and GPUs, and who has them.

use super::Report;
use crate::context::Context;
use crate::output::Paint;
use crate::table::Table;
use towline_core::Result;
use towline_core::quantity::Memory;

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
    let facts = context.cluster(&name)?.facts(context)?;
    let mut text = String::new();
    for node in &facts.nodes {
        let memory = format!("{} of {} memory", Memory(node.memory_used), Memory(node.memory));
        text += &format!("{}: {} of {} CPUs, {memory}, {} GPU(s)\n", node.name, node.cpus_used, node.cpus, node.gpus.len());
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
            let memory = if gpu.memory > 0 { format!("{} of {}", Memory(gpu.memory_used), Memory(gpu.memory)) } else { String::new() };
            table.row(vec![(gpu.index.to_string(), Paint::Bold), (gpu.name.clone(), Paint::Plain), (memory, Paint::Plain), (who, paint)]);
        }
        text += &table.render();
    }
    Ok(Report::new(text, &facts))
}
