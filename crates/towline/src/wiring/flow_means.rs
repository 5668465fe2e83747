//! What the flow takes from this program: clusters and datastores that are opened, the user's
//! terminal, and aliases.

use crate::context::{Context, terminal};
use crate::output;
use crate::output::progress::Bar;
use crate::reach::aliases;
use crate::wiring::means::OwnMeans;
use towline_backends::registry;
use towline_core::Result;
use towline_core::config::Datastore;
use towline_core::redact::Secret;
use towline_engine::flow::outside::ClusterOpener;
use towline_engine::flow::{OpenCluster, Outside, Terminal};
use towline_engine::layers::Layers;
use towline_host::surroundings::{self, Environment};
use towline_io::credential::Lookup;
use towline_snapshot::progress::Progress;
use towline_wire::cluster::NamedCluster;
use towline_wire::layout::StateFolder;

impl Outside for Context {
    fn layers(&self) -> Result<&Layers> {
        Self::layers(self)
    }

    fn state(&self) -> Result<&StateFolder> {
        Self::state(self)
    }

    fn variables(&self) -> &Environment {
        Self::variables(self)
    }

    fn terminal(&self) -> Terminal {
        terminal()
    }

    fn cluster(&self, name: &str) -> Result<OpenCluster> {
        Self::cluster(self, name)
    }

    fn opener(&self, named: &NamedCluster) -> Result<ClusterOpener> {
        let (named, means) = (named.clone(), OwnMeans::new(self.state()?));
        Ok(Box::new(move || registry::open(&named, &means)))
    }

    fn check_datastore(&self, name: &str, datastore: &Datastore) -> Result<()> {
        self.with_lookup(|lookup| towline_io::open::open(name, datastore, lookup).map(drop))
    }

    fn secret(&self, at: &str, key: &str, reference: &str) -> Result<Secret> {
        self.with_lookup(|lookup| lookup.secret(at, key, reference))
    }

    fn limits_memory(&self) -> bool {
        towline_runner::memory_is_enforced()
    }

    fn watch(&self, what: &'static str, progress: &Progress, work: &mut dyn FnMut()) {
        Bar::new(what).watch(|| progress.read(), work);
    }

    fn write_aliases(&self) {
        // That it cannot be written is no reason to fail what was submitted.
        let _ = aliases::write(self);
    }
}

impl Context {
    /// Does something with what datastores are opened with: the variables and the keyring of the
    /// user, and the routes to machines.
    pub(crate) fn with_lookup<T>(&self, act: impl FnOnce(&Lookup<'_>) -> T) -> T {
        let variables = self.variables();
        let home = surroundings::home();
        act(&Lookup {
            variable: &|name| variables.get(name).map(str::to_owned),
            keyring: &|name| surroundings::keyring(&[name.to_owned()], &[]).remove(name),
            home: home.as_deref(),
            reach: &crate::wiring::machines::route,
            notice: &output::warn_once,
        })
    }
}
