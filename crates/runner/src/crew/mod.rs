//! What `tow` does on the nodes of a service that starts the same command on each of them. There is
//! no folder that they share and no scheduler beside them: node 0 leads, the others call it over
//! the network, and what is to be known outside goes into folders that the service carries away.
//!
//! Two processes per node. The one that the service starts only guards: should the other be
//! killed, it ends all below it, and on node 0 writes down that the attempt is over.

mod carrier;
mod follower;
mod given;
mod guard;
mod leader;
mod line;
mod local_part;
mod outputs;
mod peers;
mod periodic;
mod place;
mod progress;
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

/// What is told on the command line.
#[derive(Debug, Clone)]
pub struct CrewTask {
    /// The file that holds the order.
    pub order: PathBuf,
    pub run: RunId,
    /// Becomes the run's folder in the stage. A file is carried away when it is closed, and can
    /// only be written whole.
    pub folder: PathBuf,
    /// Where the news of all runs lie.
    pub status: PathBuf,
    /// The snapshots; only read.
    pub store: Option<PathBuf>,
    /// Where the service has put what, by the plan's name of it.
    pub at: Vec<(String, String)>,
    /// A folder on this node's own disk.
    pub local: PathBuf,
    pub pace: Pace,
}

/// How long what may take.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// Between two signs of life.
    pub alive_every: Duration,
    /// Who was silent for this long is lost.
    pub silence: Duration,
    /// How long nodes may come after one another: some wait for their image.
    pub meeting: Duration,
    /// Between two calls to a leader that is not there yet.
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

/// How often is looked whether something took too long.
const TIMEOUT_CHECK_INTERVAL: Duration = Duration::from_millis(500);
/// Who ends the job may not wait longer, whatever grace the user has set.
const MAX_GRACE: Duration = Duration::from_secs(10);
/// What a node may take beyond the grace when the job is ended from outside.
const NODE_END_SLACK: Duration = Duration::from_secs(3);
/// What a shell would leave with that was ended by SIGTERM.
const SIGTERM_EXIT_CODE: i32 = 143;

/// Gets the secrets of a run from where they are kept.
pub type FindSecrets<'a> = &'a dyn Fn(&SecretPlace) -> Result<SecretSet>;

/// The exit code is that of the run, on every node.
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
    // The service has put us into the image.
    order.plan.resolved.container = None;
    Ok(order)
}

/// This node, and what it was given to do.
struct Crew<'a> {
    task: &'a CrewTask,
    station: Station,
    nodes: u32,
    /// Who guards us.
    parent: u32,
    carrier: Carrier<'a>,
    end_signal: EndSignal,
}

impl Crew<'_> {
    /// Nothing outlives its guard.
    fn is_orphan(&self) -> bool {
        std::os::unix::process::parent_id() != self.parent
    }

    /// The grace when the job is ended from outside.
    fn short_grace(&self) -> Duration {
        Duration::from_millis(self.carrier.order.grace_millis).min(MAX_GRACE)
    }
}

/// A problem of ours, where the service shows it. stdout is the job's.
fn complain(text: &str) {
    let _ = writeln!(io::stderr(), "tow: {text}");
}
