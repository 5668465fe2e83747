//! The connections that any kind of cluster may need: ssh, the services of a cloud, this program
//! itself.

use crate::wiring::machines;
use std::sync::Arc;
use towline_backends::registry::Means;
use towline_core::Result;
use towline_core::cloud::Cloud;
use towline_core::config::AzuremlConfig;
use towline_core::transport::Transport;
use towline_wire::cluster::NamedCluster;
use towline_wire::layout::StateFolder;
use towline_wire::program::OwnProgram;

#[derive(Debug, Clone)]
pub(crate) struct OwnMeans {
    state: StateFolder,
}

impl OwnMeans {
    pub(crate) fn new(state: &StateFolder) -> Self {
        Self {
            state: state.clone(),
        }
    }
}

impl Means for OwnMeans {
    fn state(&self) -> &StateFolder {
        &self.state
    }
    fn program(&self) -> Result<OwnProgram> {
        machines::own_program(&self.state)
    }
    fn machine(&self, host: Option<&str>, ssh_config: Option<&str>) -> Result<Arc<dyn Transport>> {
        match host {
            Some(host) => Ok(Arc::new(machines::ssh_to(host, ssh_config, &self.state)?)),
            None => machines::here(),
        }
    }
    fn cloud(&self, named: &NamedCluster, config: &AzuremlConfig) -> Result<Arc<dyn Cloud>> {
        let variables = named.variables.0.clone().into_iter().collect();
        let cloud = crate::wiring::cloud::open(&named.name, config, &self.state, variables)?;
        Ok(Arc::new(cloud))
    }
    fn user(&self) -> String {
        towline_host::surroundings::user()
    }
}
