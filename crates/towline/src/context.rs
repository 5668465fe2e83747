//! The context of every verb: folders, configuration layers and history, each opened when first
//! needed.

use crate::output;
use crate::wiring::means::OwnMeans;
use std::cell::OnceCell;
use std::path::PathBuf;
use towline_backends::registry::{self, Caller};
use towline_core::config::Cluster;
use towline_core::{Error, Result};
use towline_engine::flow::{OpenCluster, Terminal};
use towline_engine::history::{Filter, History};
use towline_engine::layers::{self, Layers, Sources};
use towline_engine::project;
use towline_host::surroundings::{self, Environment};
use towline_wire::cluster::NamedCluster;
use towline_wire::layout::StateFolder;

/// The terminal that this process has.
pub(crate) fn terminal() -> Terminal {
    Terminal {
        can_ask: output::can_ask(),
        tell: output::status,
    }
}

pub(crate) struct Context {
    pub(crate) json: bool,
    /// The verb only reads: untrusted configuration is left out with a note, and is no reason to
    /// refuse.
    reads_only: bool,
    folder: OnceCell<PathBuf>,
    environment: OnceCell<Environment>,
    layers: OnceCell<Layers>,
    state: OnceCell<StateFolder>,
}

impl Context {
    pub(crate) const fn new(json: bool, reads_only: bool) -> Self {
        Self {
            json,
            reads_only,
            folder: OnceCell::new(),
            environment: OnceCell::new(),
            layers: OnceCell::new(),
            state: OnceCell::new(),
        }
    }

    /// The context for a process that `ssh` starts: with this state folder, whatever the
    /// environment says.
    pub(crate) fn of(state: &str) -> Self {
        let context = Self::new(false, true);
        let _ = context.state.set(StateFolder::new(state));
        context
    }

    /// The current folder.
    pub(crate) fn folder(&self) -> Result<&PathBuf> {
        if self.folder.get().is_none() {
            let folder = std::env::current_dir()
                .map_err(|error| Error::from_io("the current folder cannot be read", error))?;
            let _ = self.folder.set(folder);
        }
        Ok(self.folder.get().expect("set above"))
    }

    /// The variables of this process.
    pub(crate) fn variables(&self) -> &Environment {
        self.environment.get_or_init(surroundings::environment)
    }

    pub(crate) fn environment(&self) -> &[(String, String)] {
        &self.variables().variables
    }

    pub(crate) fn layers(&self) -> Result<&Layers> {
        if self.layers.get().is_none() {
            let loaded = self.load_layers()?;
            for warning in &loaded.warnings {
                output::status(&format!("warning: {}: {}", warning.at, warning.message));
            }
            let _ = self.layers.set(loaded);
        }
        Ok(self.layers.get().expect("set above"))
    }

    /// Reads the layers. Configuration that the user has not trusted is left out; a verb that acts
    /// asks about it, or is refused.
    fn load_layers(&self) -> Result<Layers> {
        let sources = Sources::find(self.folder()?, self.environment());
        if !self.reads_only {
            let untrusted = layers::untrusted(&sources)?;
            if !untrusted.is_empty() {
                crate::wiring::trusting::ask(&sources, &untrusted)?;
            }
            return layers::load(&sources);
        }
        let loaded = layers::load(&sources)?;
        for untrusted in &loaded.untrusted {
            output::status(&format!(
                "warning: {}",
                crate::wiring::trusting::summary(untrusted)
            ));
        }
        Ok(loaded)
    }

    /// The state folder. A folder of another user is neither read nor written.
    pub(crate) fn state(&self) -> Result<&StateFolder> {
        if self.state.get().is_none() {
            let folder = surroundings::state_folder()?;
            towline_host::filesystem::check_own(&folder).map_err(|error| {
                Error::from_io(
                    format!("the state folder {} cannot be used", folder.display()),
                    error,
                )
                .hint("check who owns that folder, or set XDG_STATE_HOME to a folder of yours")
            })?;
            let _ = self.state.set(StateFolder::new(folder));
        }
        Ok(self.state.get().expect("set above"))
    }

    /// The history, for reading; an error with a next step if there is none.
    pub(crate) fn history(&self) -> Result<History> {
        if let Some(history) = self.maybe_history()? {
            return Ok(history);
        }
        let error = Error::not_found("there is no run yet").hint("begin with `tow run echo hello`");
        // With a far cluster, the user may look for runs that another machine or tool submitted
        // there.
        let has_far = self.layers().is_ok_and(|layers| {
            layers
                .config
                .clusters
                .values()
                .any(|cluster| !cluster.is_here())
        });
        let elsewhere = has_far.then(|| {
            "`tow ps --remote` lists what a cluster itself knows; `tow adopt ID` takes a run into \
                the history here"
                .to_owned()
        });
        Err(error.maybe_hint(elsewhere))
    }

    pub(crate) fn maybe_history(&self) -> Result<Option<History>> {
        let history = History::open_reader(&self.state()?.history())?
            .map(|history| history.with_notice(output::warn_once));
        if let Some(history) = &history
            && history.is_newer()?
        {
            output::status("warning: a newer tow wrote this history; it is only read");
        }
        Ok(history)
    }

    /// A cluster by its name. Makes no call to it yet.
    pub(crate) fn cluster(&self, name: &str) -> Result<OpenCluster> {
        let named = self.definition(name)?;
        let cluster = registry::open(&named, &OwnMeans::new(self.state()?))?;
        Ok(OpenCluster {
            cluster,
            named,
            terminal: terminal(),
        })
    }

    /// The configuration of a cluster.
    pub(crate) fn definition(&self, name: &str) -> Result<NamedCluster> {
        let definition = match self.layers()?.cluster(name) {
            Ok(cluster) => cluster,
            // A run's cluster is known even in a folder whose configuration does not name it.
            Err(error) => self.known_cluster(name)?.ok_or(error)?,
        };
        // The settings of this machine apply to every name of the local cluster.
        let definition = if definition.is_here() {
            self.layers()?.this_machine()
        } else {
            definition
        };
        self.with_caller(|caller| registry::define(name, definition, caller))
    }

    /// Calls `act` with the user's folder, home and environment.
    pub(crate) fn with_caller<T>(&self, act: impl FnOnce(&Caller<'_>) -> Result<T>) -> Result<T> {
        let folder = self.folder()?;
        act(&Caller {
            folder,
            code_root: &project::code_root(folder),
            home: surroundings::home().as_deref(),
            environment: self.environment(),
        })
    }
}

impl Context {
    /// Refuses an unknown cluster: it is not in the configuration, and no run was ever there.
    pub(crate) fn check_cluster(&self, name: &str) -> Result<()> {
        let layers = self.layers()?;
        if layers.has_cluster(name) || self.known_cluster(name)?.is_some() {
            return Ok(());
        }
        let filter = Filter {
            cluster: Some(name.to_owned()),
            limit: Some(1),
            ..Filter::default()
        };
        let has_runs = self
            .maybe_history()?
            .is_some_and(|history| history.list(&filter).is_ok_and(|runs| !runs.is_empty()));
        if has_runs {
            Ok(())
        } else {
            layers.cluster(name).map(drop)
        }
    }

    /// A far cluster as it was at the last submission to it.
    fn known_cluster(&self, name: &str) -> Result<Option<Cluster>> {
        let known = NamedCluster::read(&self.state()?.cluster(name, "definition"));
        let known = known.map_err(|error| {
            Error::from_io(
                format!("the stored configuration of cluster `{name}` cannot be read"),
                error,
            )
        })?;
        Ok(known.map(|named| named.cluster))
    }
}
