//! The threads of far clusters: each talks to one cluster.

mod logs;
mod stage;
mod status;
mod thread;

pub use stage::bring_code;

use super::{Message, Shell, log};
use crate::daemon::{Input, Order, Report};
use std::collections::HashMap;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, PoisonError};
use towline_core::cluster::Cluster;
use towline_core::redact::SecretSet;
use towline_core::{Error, Result};
use towline_wire::cluster::NamedCluster;
use towline_wire::daemon::{Refusal, Reply};

/// Opens a cluster from its configuration. The binary provides it, because only the binary sees all
/// crates.
pub type Opener = Arc<dyn Fn(&NamedCluster) -> Result<Arc<dyn Cluster>> + Send + Sync>;

/// A message to a cluster's thread.
enum ToThread {
    Order {
        order: Order,
        /// Of the submission that the order sends.
        secrets: SecretSet,
    },
    /// The cluster has reported a change by itself.
    Changed,
    Leave,
}

/// The threads of the clusters that have runs.
pub(super) struct FarClusters {
    opener: Opener,
    /// The clusters as clients last described them, with what signing in needs.
    known: HashMap<String, NamedCluster>,
    threads: HashMap<String, Sender<ToThread>>,
}

impl FarClusters {
    pub(super) fn new(opener: Opener) -> Self {
        Self {
            opener,
            known: HashMap::new(),
            threads: HashMap::new(),
        }
    }
}

impl Shell {
    /// Stores the configuration of a cluster, for this daemon and the next.
    pub(super) fn keep_cluster(&mut self, named: &NamedCluster) -> Result<()> {
        let path = self.state.cluster(&named.name, "definition");
        if self.far.known.get(&named.name) == Some(named) {
            return Ok(());
        }
        let bytes = serde_json::to_vec(&named.lasting())
            .map_err(|error| Error::bug("a cluster cannot be written").source_error(error))?;
        let failed =
            |error| Error::from_io("the configuration of the cluster cannot be stored", error);
        if std::fs::read(&path).map_or(true, |known| known != bytes) {
            towline_host::filesystem::private_folder(&self.state.clusters()).map_err(failed)?;
            towline_host::once::replace(&path, &bytes).map_err(failed)?;
        }
        self.far.known.insert(named.name.clone(), named.clone());
        // A thread that uses the old definition has to exit.
        if let Some(thread) = self.far.threads.remove(&named.name) {
            let _ = thread.send(ToThread::Leave);
            self.restarted(&named.name);
        }
        Ok(())
    }

    /// Makes the daemon order everything again from the cluster's next thread.
    fn restarted(&self, cluster: &str) {
        let cluster = cluster.to_owned();
        let input = Input::ClusterRestarted { cluster };
        let _ = self.inbox.send(Message::input(input));
    }

    /// Sends an order to a cluster's thread, and starts the thread if there is none.
    pub(super) fn order(&mut self, cluster: &str, order: Order) {
        let secrets = match &order {
            Order::Submit { plan, .. } => match self.secrets(&plan.id) {
                Ok(secrets) => secrets,
                Err(error) => return log(&format!("{}: {error}", plan.id)),
            },
            _ => SecretSet::default(),
        };
        let mut message = ToThread::Order { order, secrets };
        let mut has_died = false;
        for _ in 0..2 {
            if let Some(thread) = self.far.threads.get(cluster) {
                match thread.send(message) {
                    // A new thread does not know the orders that the dead one had.
                    Ok(()) if has_died => return self.restarted(cluster),
                    Ok(()) => return,
                    Err(error) => (message, has_died) = (error.0, true),
                }
            }
            match self.start_thread(cluster) {
                Ok(thread) => {
                    self.far.threads.insert(cluster.to_owned(), thread);
                }
                Err(error) => {
                    log(&format!("cluster {cluster}: {error}"));
                    return self.refuse_order(&message, &error);
                }
            }
        }
    }

    fn refuse_order(&mut self, message: &ToThread, error: &Error) {
        if let ToThread::Order { order, .. } = message
            && let Some(connection) = order.connection()
        {
            self.reply(connection, Reply::Refused(Refusal::from(error)), true);
        }
    }

    fn start_thread(&self, name: &str) -> Result<Sender<ToThread>> {
        let backend = (self.far.opener)(&self.named_cluster(name)?)?;
        let asked = backend.clone();
        let (orders, received) = channel();
        if backend.caps().watches {
            let changed = std::sync::Mutex::new(orders.clone());
            backend.on_change(Arc::new(move || {
                let orders = changed.lock().unwrap_or_else(PoisonError::into_inner);
                let _ = orders.send(ToThread::Changed);
            }));
        }
        let thread = thread::Thread {
            cluster: name.to_owned(),
            backend,
            state: self.state.clone(),
            orders: received,
            inbox: self.inbox.clone(),
            status: status::Status::new(self.state.cluster(name, "status"), move || {
                asked.trouble()
            }),
            began: std::time::Instant::now(),
            secrets: HashMap::new(),
        };
        let started = std::thread::Builder::new()
            .name(format!("cluster {name}"))
            .spawn(move || thread.serve());
        started.map_err(|error| Error::bug("no thread").source_error(error))?;
        Ok(orders)
    }

    /// The cluster as a client last described it, or as it is stored.
    fn named_cluster(&self, name: &str) -> Result<NamedCluster> {
        if let Some(named) = self.far.known.get(name) {
            return Ok(named.clone());
        }
        let unread = |error| {
            Error::from_io(
                format!("the stored configuration of cluster `{name}` cannot be read"),
                error,
            )
        };
        NamedCluster::read(&self.state.cluster(name, "definition"))
            .map_err(unread)?
            .ok_or_else(|| {
                Error::not_found(format!(
                    "the daemon has no configuration of cluster `{name}` any more"
                ))
                .hint("add it to the configuration again")
            })
    }
}

/// A report to the daemon.
fn report(cluster: &str, report: Report) -> Message {
    Message::input(Input::Far {
        cluster: cluster.to_owned(),
        report,
    })
}
