//! A cluster of any kind, opened by its name, and its facts.

use super::waiting::told;
use std::ops::Deref;
use std::sync::Arc;
use towline_core::Result;
use towline_core::cluster::{Cluster, Facts};
use towline_wire::cluster::NamedCluster;

#[derive(Debug, Clone)]
pub struct OpenCluster {
    pub cluster: Arc<dyn Cluster>,
    /// Its definition, for the daemon that sends runs there.
    pub named: NamedCluster,
    pub terminal: Terminal,
}

/// The user's terminal.
#[derive(Debug, Clone, Copy)]
pub struct Terminal {
    /// Whether somebody is there to answer questions.
    pub can_ask: bool,
    /// Writes one line for people.
    pub tell: fn(&str),
}

impl Deref for OpenCluster {
    type Target = dyn Cluster;

    fn deref(&self) -> &Self::Target {
        self.cluster.as_ref()
    }
}

impl OpenCluster {
    /// Whether it is this machine.
    pub fn is_here(&self) -> bool {
        self.caps().is_here
    }

    /// Signs in if necessary, asking the user if there is a terminal.
    pub fn sign_in(&self) -> Result<()> {
        // Print nothing while ssh may be asking the user on the terminal.
        if self.terminal.can_ask {
            return self.connect(true);
        }
        self.waited_for(|| self.connect(false))
    }

    /// The facts that a plan needs. The cluster is asked only if none are remembered.
    pub fn known_facts(&self) -> Result<Facts> {
        match self.remembered_facts() {
            Some(facts) => Ok(facts),
            None => self.facts_now(),
        }
    }

    /// The facts as they are now.
    pub fn facts_now(&self) -> Result<Facts> {
        if self.is_here() {
            return self.facts();
        }
        self.sign_in()?;
        self.waited_for(|| self.facts())
    }

    /// Asks a cluster directly. After a moment the user is told what blocks the answer.
    fn waited_for<T>(&self, ask: impl FnOnce() -> T) -> T {
        let line = || match self.trouble() {
            Some(error) => format!("waiting for `{}`: {error}", self.name()),
            None => format!("waiting for `{}`", self.name()),
        };
        told(self.terminal.tell, line, ask)
    }
}
