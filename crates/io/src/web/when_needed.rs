//! A client that is made when it is first needed.

use super::Web;
use crate::network::Network;
use std::sync::OnceLock;
use towline_core::{Error, Result};

/// A client that is made when it is first needed, because reading the certificates takes time and
/// many commands send no request.
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

    /// Why a service that is being asked again gives no answer.
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
