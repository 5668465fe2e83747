//! Runs on the nodes of a service that starts the same command on each of them. The nodes share no
//! folder and have no scheduler: node 0 leads, and the others connect to it over the network.
//! Records and logs go into folders that the service uploads.
//!
//! Each node has two processes. The one that the service starts is only a guard: if the other is
//! killed, it ends all processes below it, and on node 0 records that the attempt is over.

mod carrier;
mod connection;
mod follower;
mod given;
mod guard;
mod leader;
mod local_part;
mod outputs;
mod peers;
mod periodic;
mod place;
mod status_file;
mod tee;
#[cfg(test)]
mod tests;
mod upload_logs;

use crate::end_signal::EndSignal;
pub use crate::far::local_disk;
use carrier::Carrier;
use place::Station;
use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;
use towline_core::redact::SecretSet;
use towline_core::{Result, RunId};
use towline_wire::crew::{CREW_VERSION, CrewOrder, SecretPlace};

/// The arguments of the command line.
#[derive(Debug, Clone)]
pub struct CrewTask {
    /// The file that holds the order.
    pub order: PathBuf,
    pub run: RunId,
    /// Becomes the run's folder in the stage. The service uploads a file when it is closed, and a
    /// file can only be written whole.
    pub folder: PathBuf,
    /// The folder of the status documents of all runs.
    pub status: PathBuf,
    /// The snapshots; only read.
    pub store: Option<PathBuf>,
    /// The places of data that the service provides, by name in the plan.
    pub at: Vec<(String, String)>,
    /// A folder on this node's own disk.
    pub local: PathBuf,
    pub pace: Pace,
}

/// Intervals and timeouts.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// Between two heartbeats.
    pub alive_every: Duration,
    /// A peer that was silent for this long is lost.
    pub silence: Duration,
    /// How long the nodes may take to arrive: some wait for their image.
    pub meeting: Duration,
    /// Between two attempts to connect to a leader that does not answer yet.
    pub call_every: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            alive_every: Duration::from_secs(5),
            silence: Duration::from_secs(30),
            meeting: Duration::from_secs(600),
            call_every: Duration::from_millis(500),
        }
    }
}

/// How often to check for timeouts.
const TIMEOUT_CHECK_INTERVAL: Duration = Duration::from_millis(500);
/// The longest grace when the service ends the job, because the service waits no longer.
const MAX_GRACE: Duration = Duration::from_secs(10);
/// The time that a node has beyond the grace when the job is ended from outside.
const NODE_END_SLACK: Duration = Duration::from_secs(3);
/// The exit code of a shell that SIGTERM ended.
const SIGTERM_EXIT_CODE: i32 = 143;

/// Fetches the secrets of a run.
pub type FindSecrets<'a> = &'a dyn Fn(&SecretPlace) -> Result<SecretSet>;

/// Runs on one node. The exit code is that of the run, on every node.
pub fn crew_main(task: &CrewTask, secrets: FindSecrets<'_>) -> io::Result<i32> {
    towline_host::process::become_subreaper()?;
    let station = Station::of(&|name| std::env::var(name).ok());
    match guard::guarded_by() {
        None => guard::guard(task, &station),
        Some(parent) => {
            let _ = rustix::process::set_parent_process_death_signal(Some(
                rustix::process::Signal::TERM,
            ));
            let end_signal = EndSignal::new()?;
            let order = order(task)?;
            let nodes = order.plan.resolved.shape.nodes;
            if station.node >= nodes {
                return Err(io::Error::other(format!(
                    "this is node {} of a job that has {nodes}",
                    station.node
                )));
            }
            let carrier = Carrier::new(task, station.node, order, secrets)?;
            let crew = Crew {
                task,
                station,
                nodes,
                parent,
                carrier,
                end_signal,
            };
            let code = if crew.station.node == 0 {
                leader::lead(crew)
            } else {
                follower::follow(crew)
            };
            local_part::send_the_rest();
            code
        }
    }
}

fn order(task: &CrewTask) -> io::Result<CrewOrder> {
    let place = |error: io::Error| {
        io::Error::new(error.kind(), format!("{}: {error}", task.order.display()))
    };
    let bytes = fs::read(&task.order).map_err(place)?;
    let mut order: CrewOrder =
        serde_json::from_slice(&bytes).map_err(|error| place(error.into()))?;
    if order.version > CREW_VERSION {
        return Err(io::Error::other(format!(
            "the order is of version {}, and this program knows {CREW_VERSION}",
            order.version
        )));
    }
    // The service has started us inside the image.
    order.plan.resolved.container = None;
    Ok(order)
}

/// This node, with its order.
struct Crew<'a> {
    task: &'a CrewTask,
    station: Station,
    nodes: u32,
    /// The process id of our guard.
    parent: u32,
    carrier: Carrier<'a>,
    end_signal: EndSignal,
}

impl Crew<'_> {
    /// Whether our guard is gone. Nothing may outlive its guard.
    fn is_orphan(&self) -> bool {
        std::os::unix::process::parent_id() != self.parent
    }

    /// The grace when the job is ended from outside.
    fn short_grace(&self) -> Duration {
        Duration::from_millis(self.carrier.order.grace_millis).min(MAX_GRACE)
    }
}

/// Prints a problem of ours to stderr, because stdout is the job's.
fn complain(text: &str) {
    let _ = writeln!(io::stderr(), "tow: {text}");
}
