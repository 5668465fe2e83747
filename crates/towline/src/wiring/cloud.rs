//! The cloud of an Azure ML cluster, signed in as its configuration says.

use std::sync::Arc;
use towline_core::Result;
use towline_core::config::AzuremlConfig;
use towline_host::surroundings;
use towline_io::azure::cloud::Cloud;
use towline_io::azure::identity::{SignIn, Surroundings};
use towline_io::azure::seam::AzureCloud;
use towline_io::network::Network;
use towline_wire::layout::StateFolder;

/// `variables` resolve references such as `env:NAME`, and hold the platform's identity variables.
pub(crate) fn open(
    name: &str,
    cluster: &AzuremlConfig,
    state: &StateFolder,
    variables: Vec<(String, String)>,
) -> Result<AzureCloud> {
    let network = Network::new(variables.iter().map(|(name, value)| (name, value)));
    let surroundings = Surroundings {
        network,
        variable: Arc::new(move |name| {
            variables
                .iter()
                .find(|(known, _)| known == name)
                .map(|(_, value)| value.clone())
        }),
        keyring: Arc::new(|name| surroundings::keyring(&[name.to_owned()], &[]).remove(name)),
        home: surroundings::home(),
        tell: Arc::new(crate::output::status),
        command: format!("tow login {name}"),
    };
    let at = format!("cluster `{name}`");
    let sign_in = SignIn::new(
        &at,
        cluster.credential.as_ref(),
        cluster.profile.as_deref(),
        surroundings,
        &state.azure(),
    )?;
    Ok(AzureCloud::new(
        name,
        Cloud::new(&at, cluster.endpoint.as_deref(), sign_in, &state.azure())?,
        crate::data::stores::runtime,
    ))
}
