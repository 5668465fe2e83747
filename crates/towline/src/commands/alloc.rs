//! `tow alloc`: holds nodes for interactive work.

use super::Report;
use super::submit::{self, JobArgs};
use crate::context::Context;
use crate::output;
use crate::reach::aliases;
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};
use towline_client::{self as client, Heard};
use towline_core::quantity::{Memory, Span};
use towline_core::state::{Phase, RunState};
use towline_core::{Error, Result, RunId};
use towline_wire::daemon::{Reply, Request};
use towline_wire::report::alloc::Allocated;

/// How often to check for Ctrl-C.
const INTERRUPT_CHECK_INTERVAL: Duration = Duration::from_millis(200);

/// Hold nodes, and return when they are yours.
///
/// Nothing here needs to stay open: the cluster holds the nodes until `tow release` or until the
/// time is up.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tow alloc -n 4 --time 8h      four GPUs for a day's work
  tow alloc -n 1 --instance-type h200    a GPU of that kind
  tow alloc --node c2           that very node
  tow alloc --native=--exclusive    an option of the scheduler's own
  ssh tow-node                  once ~/.ssh/config includes what the hint names; editors have it too
  tow release                   let it go")]
pub(crate) struct Args {
    /// On this cluster [default: the configured one].
    #[arg(short, long)]
    cluster: Option<String>,
    /// GPUs in all.
    #[arg(short = 'n', long, value_name = "GPUS", value_parser = super::count, allow_negative_numbers = true)]
    gpus: Option<u32>,
    /// Number of nodes.
    #[arg(long, value_name = "N")]
    nodes: Option<u32>,
    /// Kind of machine, in the cluster's own word.
    #[arg(long, value_name = "TYPE")]
    instance_type: Option<String>,
    /// The node of this name.
    #[arg(long, value_name = "NAME")]
    node: Option<String>,
    /// CPUs on each node.
    #[arg(long, value_name = "N")]
    cpus: Option<u32>,
    /// Memory on each node.
    #[arg(long, value_name = "SIZE")]
    memory: Option<Memory>,
    /// For how long.
    #[arg(long, value_name = "TIME")]
    time: Option<Span>,
    /// A native option of the scheduler; may be given several times.
    #[arg(long, value_name = "OPTION", allow_hyphen_values = true)]
    native: Vec<String>,
}

pub(crate) fn run(context: &Context, args: Args) -> Result<Report> {
    let asked: Vec<String> = args
        .native
        .iter()
        .cloned()
        .chain(args.node.iter().map(|node| format!("--nodelist={node}")))
        .collect();
    // What is asked for stands beside what the configuration has for every job, not in its place.
    let native = if asked.is_empty() {
        asked
    } else {
        [usual_options(context, args.cluster.as_deref())?, asked].concat()
    };
    let mut job = JobArgs::holding(args.cluster, args.gpus);
    job.nodes = args.nodes;
    job.instance_type = args.instance_type;
    job.cpus = args.cpus;
    job.memory = args.memory;
    job.time = args.time;
    let mut prepared = submit::prepare_with(context, job, |job| {
        job.tags.push(aliases::ALLOCATION.to_owned());
        job.resources.native.extend(native);
    })?;
    // From before it is asked for: whoever interrupts hears what becomes of it.
    let interrupts = crate::runs::follow::interrupts()?;
    towline_engine::flow::send(context, &mut prepared)?;
    let id = prepared.plan.runs[0].id.clone();
    let Some(granted) = wait_until_granted(context, &id, interrupts)? else {
        return interrupted(context, &id);
    };
    let hosts = granted
        .native
        .as_ref()
        .map(|native| native.hosts.clone())
        .unwrap_or_default();
    aliases::write(context)?;
    let alias = aliases::NODE;
    let answer = Allocated {
        id: id.clone(),
        cluster: prepared.plan.cluster.clone(),
        hosts,
        alias,
    };
    let report = Report::of(&answer, text).done(format!("{id} holds its nodes all the same"));
    let report = if prepared.cluster.is_here() {
        report
    } else {
        report.hint(format!(
            "ssh {alias}, once ~/.ssh/config has: {}",
            aliases::include(context)?
        ))
    };
    Ok(report.hint(format!(
        "a shell: tow ssh {0}    a port: tow port {0} 8888    let it go: tow release {0}",
        id.short()
    )))
}

fn text(answer: &Allocated) -> String {
    if answer.hosts.is_empty() {
        format!("{}\n", answer.id)
    } else {
        format!("{} on {}\n", answer.id, answer.hosts.join(", "))
    }
}

/// The options that jobs of the cluster have unless they name their own, as one with `--node` does.
fn usual_options(context: &Context, cluster: Option<&str>) -> Result<Vec<String>> {
    let config = &context.layers()?.config;
    let there = cluster
        .or(config.default_cluster.as_deref())
        .and_then(|name| config.clusters.get(name));
    Ok(there
        .and_then(|there| there.job.as_ref())
        .map(|job| job.resources.native.clone())
        .unwrap_or_default())
}

/// Handles Ctrl-C during the wait: asks the user whether the nodes are still wanted.
fn interrupted(context: &Context, id: &RunId) -> Result<Report> {
    let id = id.clone();
    if output::can_ask() && output::ask(&format!("{id} still waits for its nodes; cancel it?")) {
        super::abort::cancel_and_wait(context, std::slice::from_ref(&id))?;
        aliases::write(context)?;
        return Ok(Report {
            last_words: Some(format!("released {id}")),
            ..Report::default().code(130)
        });
    }
    let words = format!(
        "{id} stays queued and holds its nodes once they are granted; to cancel it: tow release {}",
        id.short()
    );
    Ok(Report {
        last_words: Some(words),
        ..Report::default().code(130)
    })
}

/// Waits until the nodes are granted. `None` if the user interrupts.
fn wait_until_granted(
    context: &Context,
    id: &RunId,
    mut interrupts: UnixStream,
) -> Result<Option<RunState>> {
    let mut told = false;
    interrupts
        .set_nonblocking(true)
        .map_err(|error| Error::bug("signals cannot be watched").source_error(error))?;
    loop {
        let (first, mut conversation) = client::ask(context.state()?, &|| Request::Watch {
            runs: vec![id.clone()],
            logs: true,
        })?;
        let mut next = Some(first);
        while let Some(reply) = next {
            if let Reply::State { state, .. } | Reply::Event { state, .. } = reply {
                let is_placed = state
                    .native
                    .as_ref()
                    .is_none_or(|native| !native.hosts.is_empty());
                match state.phase {
                    Phase::Running if is_placed => return Ok(Some(state)),
                    Phase::Ended(_) => {
                        let why = state
                            .ending
                            .map(|ending| ending.to_string())
                            .unwrap_or_default();
                        return Err(Error::refused(format!("the nodes were not granted: {why}")));
                    }
                    Phase::Queued if !told => {
                        told = true;
                        output::hint(&format!(
                            "{id} waits for its nodes; why: tow why {0}    cancel it: tow release \
                                {0}",
                            id.short()
                        ));
                    }
                    _ => {}
                }
            }
            next = loop {
                match conversation.hear(Some(Instant::now() + INTERRUPT_CHECK_INTERVAL))? {
                    Heard::Reply(reply) => break Some(*reply),
                    // A daemon that leaves is followed by the next.
                    Heard::HungUp => break None,
                    Heard::NotYet if interrupts.read(&mut [0]).is_ok_and(|count| count > 0) => {
                        return Ok(None);
                    }
                    Heard::NotYet => {}
                }
            };
        }
    }
}
