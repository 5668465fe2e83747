//! The interface between the flow and the program around it. The program opens clusters and
//! datastores and has the user's terminal. The flow knows no kind of cluster and no kind of
//! datastore.

use super::open_cluster::{OpenCluster, Terminal};
use crate::layers::Layers;
use std::sync::Arc;
use towline_core::Result;
use towline_core::cluster::Cluster;
use towline_core::config::Datastore;
use towline_core::redact::Secret;
use towline_host::surroundings::Environment;
use towline_snapshot::progress::Progress;
use towline_wire::cluster::NamedCluster;
use towline_wire::layout::StateFolder;

/// Opens a cluster on the thread that needs it.
pub type ClusterOpener = Box<dyn FnOnce() -> Result<Arc<dyn Cluster>> + Send>;

/// The program around the flow.
pub trait Outside {
    /// The configuration, read when it is first asked for.
    fn layers(&self) -> Result<&Layers>;

    /// The state folder of this user on this machine.
    fn state(&self) -> Result<&StateFolder>;

    /// The variables of the shell that asked.
    fn variables(&self) -> &Environment;

    fn terminal(&self) -> Terminal;

    /// A cluster by its name. Nothing is asked of it yet.
    fn cluster(&self, name: &str) -> Result<OpenCluster>;

    /// Opens the same cluster once more, for a thread with a connection of its own.
    fn opener(&self, named: &NamedCluster) -> Result<ClusterOpener>;

    /// Finds every mistake in a datastore's definition that can be found without asking the store.
    fn check_datastore(&self, name: &str, datastore: &Datastore) -> Result<()>;

    /// The value that a reference such as `env:NAME` under `key` of a credential leads to. `at`
    /// says in errors whose credential it is.
    fn secret(&self, at: &str, key: &str, reference: &str) -> Result<Secret>;

    /// Whether runs on this machine are held to the memory they ask for.
    fn limits_memory(&self) -> bool;

    /// Does `work`, and meanwhile shows how far it is. `what` says what is going on.
    fn watch(&self, what: &'static str, progress: &Progress, work: &mut dyn FnMut());

    /// A run went to a cluster that ssh reaches: writes its alias, if that is possible.
    fn write_aliases(&self);
}

/// [`Outside::watch`] for work that returns a value.
pub(super) fn watched<T>(
    outside: &dyn Outside,
    what: &'static str,
    progress: &Progress,
    work: impl FnOnce() -> T,
) -> T {
    let (mut work, mut given) = (Some(work), None);
    outside.watch(what, progress, &mut || {
        given = work.take().map(|work| work());
    });
    given.expect("the work is done once")
}
