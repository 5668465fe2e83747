//! The machine that has a workspace, and how it is reached.

use super::node;
use crate::context::Context;
use crate::wiring::machines;
use std::io::{self, IsTerminal};
use towline_core::Result;
use towline_core::transport::Transport;
use towline_io::machine::SshTransport;

/// Signs in to it, asking the user if there is a terminal.
pub(super) fn connected(
    context: &Context,
    host: &str,
    ssh_config: Option<&str>,
) -> Result<SshTransport> {
    let transport = machine(context, host, ssh_config)?;
    transport.connect(io::stdin().is_terminal() && io::stderr().is_terminal())?;
    Ok(transport)
}

fn machine(context: &Context, host: &str, ssh_config: Option<&str>) -> Result<SshTransport> {
    if ssh_config.is_none() && host.starts_with("tow-") {
        return node::machine(context, host);
    }
    match of_cluster(context, host).filter(|_| ssh_config.is_none()) {
        Some((host, ssh_config)) => {
            machines::ssh_to(&host, ssh_config.as_deref(), context.state()?)
        }
        None => machines::ssh_to(host, ssh_config, context.state()?),
    }
}

/// A cluster's login host, by its name or the cluster's, is reached as the configuration says.
fn of_cluster(context: &Context, name: &str) -> Option<(String, Option<String>)> {
    let clusters = &context.layers().ok()?.config.clusters;
    let by_host = || {
        clusters
            .values()
            .find(|cluster| cluster.login_host().is_some_and(|(host, _)| host == name))
    };
    let cluster = by_host().or_else(|| clusters.get(name))?;
    let (host, ssh_config) = cluster.login_host()?;
    Some((host.clone(), ssh_config.clone()))
}
