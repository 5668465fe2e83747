//! Lists what a service lets the user use, and what to write into the configuration for it.

use crate::commands::Report;
use crate::context::Context;
use crate::output::page;
use crate::wiring::means::OwnMeans;
use towline_backends::registry::{self, Answer};
use towline_core::Result;

fn report<T: serde::Serialize>(answer: Answer<T>) -> Report {
    Report::of(&answer.value, |_| page::render(&answer.page)).hint(answer.hint)
}

/// Signs in as a cluster says: the named one, else the default one, else the first that can list.
pub(crate) fn discover(context: &Context, cluster: Option<&str>) -> Result<Report> {
    let layers = context.layers()?;
    let can_be_asked = |name: &&str| {
        let cluster = layers.config.clusters.get(*name);
        cluster.is_some_and(registry::is_discoverable)
    };
    let first = [layers.default_cluster()]
        .into_iter()
        .chain(layers.cluster_names())
        .find(can_be_asked);
    let chosen = match cluster.or(first) {
        Some(name) => Some((name, layers.cluster(name)?)),
        None => None,
    };
    let means = OwnMeans::new(context.state()?);
    context
        .with_caller(|caller| registry::discover(chosen, caller, &means))
        .map(report)
}

pub(crate) fn create_workspace(
    context: &Context,
    cluster: Option<&str>,
    name: &str,
    location: Option<&str>,
) -> Result<Report> {
    let beside = match cluster {
        Some(cluster) => cluster,
        None => context.layers()?.default_cluster(),
    };
    let named = context.definition(beside)?;
    let means = OwnMeans::new(context.state()?);
    registry::create_workspace(&named, &means, name, location).map(report)
}
