//! The clusters that a user signs in to, and their sign-ins.

use crate::context::Context;
use towline_core::config::{Cluster, KindConfig};
use towline_core::{Error, ErrorKind, Result};
use towline_io::azure::seam::AzureCloud;

/// Whether a cluster has a sign-in of its own.
const fn has_sign_in(cluster: &Cluster) -> bool {
    matches!(cluster.kind, KindConfig::Azureml(_))
}

/// The names of the clusters that have a sign-in.
pub(crate) fn clusters(context: &Context) -> Result<Vec<String>> {
    let layers = context.layers()?;
    let mut found = Vec::new();
    for name in layers.cluster_names() {
        if has_sign_in(&layers.cluster(name)?) {
            found.push(name.to_owned());
        }
    }
    Ok(found)
}

/// The cluster that is meant: the named one, else the default one, else the only one that has a
/// sign-in.
pub(crate) fn choose(context: &Context, named: Option<&str>) -> Result<String> {
    if let Some(name) = named {
        return Ok(name.to_owned());
    }
    let layers = context.layers()?;
    let default = layers.default_cluster();
    if has_sign_in(&layers.cluster(default)?) {
        return Ok(default.to_owned());
    }
    match clusters(context)?.as_slice() {
        [one] => Ok(one.clone()),
        [] => Ok(default.to_owned()),
        several => Err(Error::new(
            ErrorKind::Ambiguous,
            format!("several clusters have a sign-in: {}", several.join(", ")),
        )
        .hint("name one of them")),
    }
}

/// The services of a cluster, with its sign-in. A cluster without one is an error that names what
/// is used there.
pub(crate) fn open(context: &Context, name: &str) -> Result<AzureCloud> {
    let named = context.definition(name)?;
    match &named.cluster.kind {
        KindConfig::Azureml(config) => {
            let variables = named.variables.0.clone().into_iter().collect();
            super::cloud::open(&named.name, config, context.state()?, variables)
        }
        _ => Err(no_sign_in(name, &named.cluster)),
    }
}

fn no_sign_in(name: &str, cluster: &Cluster) -> Error {
    if cluster.is_here() {
        return Error::unsupported(format!(
            "cluster `{name}` is this machine: nobody signs in to it"
        ));
    }
    match cluster.login_host() {
        Some((host, _)) => Error::unsupported(format!(
            "cluster `{name}` has no sign-in of its own: ssh signs in to `{host}`, with your keys \
                and ~/.ssh/config"
        ))
        .hint(format!("see that it works: ssh {host} true")),
        None => Error::unsupported(format!(
            "cluster `{name}` has no sign-in of its own: this machine has its commands"
        )),
    }
}

/// Other clusters that use the same stored sign-in.
pub(crate) fn sharing(context: &Context, name: &str, cloud: &AzureCloud) -> Vec<String> {
    let Some(place) = cloud.stored_under() else {
        return Vec::new();
    };
    let shares = |other: &String| {
        other != name
            && open(context, other).is_ok_and(|cloud| cloud.stored_under().as_ref() == Some(&place))
    };
    let all = clusters(context).unwrap_or_default();
    all.into_iter().filter(shares).collect()
}
