//! A cluster of any kind, opened by its name, and what was learnt of it.

use crate::machines::{connect, waited_for};
use std::ops::Deref;
use std::sync::Arc;
use towline_core::Result;
use towline_core::cluster::{Cluster, Facts};
use towline_wire::cluster::NamedCluster;

#[derive(Debug, Clone)]
pub(crate) struct OpenCluster {
    pub(crate) cluster: Arc<dyn Cluster>,
    /// Its definition, for whoever carries runs there.
    pub(crate) named: NamedCluster,
}

impl Deref for OpenCluster {
    type Target = dyn Cluster;

    fn deref(&self) -> &Self::Target {
        self.cluster.as_ref()
    }
}

impl OpenCluster {
    /// Whether it is this machine.
    pub(crate) fn is_here(&self) -> bool {
        self.caps().is_here
    }

    /// Signs in where that is needed, asking the user if there is a terminal.
    pub(crate) fn sign_in(&self) -> Result<()> {
        connect(self.cluster.as_ref())
    }

    /// What it has, as far as a plan needs to know: without asking, where that is known.
    pub(crate) fn known_facts(&self) -> Result<Facts> {
        match self.remembered_facts() {
            Some(facts) => Ok(facts),
            None => self.facts_now(),
        }
    }

    /// What it has now.
    pub(crate) fn facts_now(&self) -> Result<Facts> {
        if self.is_here() {
            return self.facts();
        }
        self.sign_in()?;
        waited_for(self.cluster.as_ref(), || self.facts())
    }
}
