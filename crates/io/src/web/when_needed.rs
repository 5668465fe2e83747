//! A client that is made when it is first needed.

use super::Web;
use crate::network::Network;
use std::sync::OnceLock;
use towline_core::{Error, Result};

/// A client that is made when it is first needed: whom to trust is read then, which many a call can
/// do without.
#[derive(Debug, Default)]
pub struct WebWhenNeeded {
    web: OnceLock<Web>,
    network: Network,
}

impl WebWhenNeeded {
    pub fn over(network: Network) -> Self {
        Self {
            web: OnceLock::new(),
            network,
        }
    }

    pub fn get(&self) -> Result<&Web> {
        if self.web.get().is_none() {
            let _ = self.web.set(Web::over(&self.network, &[])?);
        }
        Ok(self.web.get().expect("set above"))
    }

    /// What keeps a service from answering that is being asked again and again.
    pub fn trouble(&self) -> Option<Error> {
        self.web.get().and_then(Web::trouble)
    }
}

impl From<Web> for WebWhenNeeded {
    fn from(web: Web) -> Self {
        Self {
            web: web.into(),
            network: Network::default(),
        }
    }
}
