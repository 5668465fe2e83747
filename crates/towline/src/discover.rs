//! What Azure lets the user use, and what to write into the configuration for it.

use crate::commands::Report;
use crate::context::{AnyCluster, Context};
use crate::output::Paint;
use crate::table::Table;
use towline_backends::azureml::config::Scope;
use towline_backends::azureml::discover::{
    Discovered, create_workspace as create, discover as ask,
};
use towline_core::cloud::Cloud;
use towline_core::config::{Cluster, ClusterKind};
use towline_core::{Error, Result};

pub(crate) fn discover(context: &Context, cluster: Option<&str>) -> Result<Report> {
    let cloud = cloud(context, cluster)?;
    let found = ask(cloud.as_ref())?;
    let report = Report::new(page(&found), &found);
    Ok(report.hint(
        "name one as a cluster: {kind: azureml, workspace: …, compute: …} or \
        {…, virtual_cluster: …}",
    ))
}

/// Signed in as a cluster says; without one, as the Azure CLI is.
fn cloud(context: &Context, cluster: Option<&str>) -> Result<Box<dyn Cloud>> {
    let layers = context.layers()?;
    let of_kind = |name: &&str| {
        layers
            .config
            .clusters
            .get(*name)
            .is_some_and(|cluster| cluster.kind == ClusterKind::Azureml)
    };
    let usual = [layers.default_cluster()]
        .into_iter()
        .chain(layers.cluster_names())
        .find(of_kind);
    let (name, definition) = match cluster.or(usual) {
        Some(name) => (name, layers.cluster(name)?),
        None => (
            "azure",
            Cluster {
                kind: ClusterKind::Azureml,
                ..Cluster::local()
            },
        ),
    };
    if definition.kind != ClusterKind::Azureml {
        return Err(Error::refused(format!(
            "cluster `{name}` is of kind `{}`: only Azure ML is asked",
            definition.kind.word()
        )));
    }
    let named = crate::azure::settled(name, definition, context.folder()?, context.environment())?;
    let cloud = crate::azure::cloud(&named, context.state()?)?;
    cloud.sign_in(true)?;
    Ok(Box::new(cloud))
}

fn page(found: &Discovered) -> String {
    let plain = |text: &str| (text.to_owned(), Paint::Plain);
    let mut table = Table::new(&[
        "WORKSPACE",
        "COMPUTE",
        "KIND",
        "MACHINES",
        "NODES",
        "RESOURCE GROUP",
        "SUBSCRIPTION",
    ]);
    for workspace in &found.workspaces {
        let scope = &workspace.scope;
        let place = [plain(&scope.resource_group), plain(&scope.subscription)];
        if workspace.computes.is_empty() {
            table.row(
                [
                    vec![
                        (scope.workspace.clone(), Paint::Bold),
                        plain(""),
                        plain(""),
                        plain(""),
                        plain(""),
                    ],
                    place.to_vec(),
                ]
                .concat(),
            );
        }
        for compute in &workspace.computes {
            let most = compute
                .most_nodes
                .map(|most| most.to_string())
                .unwrap_or_default();
            let own = vec![
                (scope.workspace.clone(), Paint::Bold),
                plain(&compute.name),
                plain(&compute.kind),
                plain(compute.vm_size.as_deref().unwrap_or_default()),
                plain(&most),
            ];
            table.row([own, place.to_vec()].concat());
        }
    }
    let mut text = table.render();
    if !found.virtual_clusters.is_empty() {
        let mut table = Table::new(&[
            "VIRTUAL CLUSTER",
            "REGION",
            "SERIES",
            "TIER",
            "GPUS FREE",
            "LIMIT",
        ]);
        for cluster in &found.virtual_clusters {
            for quota in &cluster.quotas {
                let free = quota.limit.saturating_sub(quota.used);
                table.row(vec![
                    (cluster.name.clone(), Paint::Bold),
                    plain(&quota.region),
                    plain(&quota.series),
                    plain(&quota.tier.to_lowercase()),
                    (
                        free.to_string(),
                        if free > 0 { Paint::Good } else { Paint::Busy },
                    ),
                    plain(&quota.limit.to_string()),
                ]);
            }
        }
        text += &table.render();
        found
            .virtual_clusters
            .iter()
            .for_each(|cluster| text += &format!("{}: {}\n", cluster.name, cluster.id));
    }
    for (what, names) in [("images", &found.images), ("identities", &found.identities)] {
        if !names.is_empty() {
            text += &format!("{what}: {}\n", names.join(", "));
        }
    }
    found
        .notes
        .iter()
        .for_each(|note| text += &format!("{note}\n"));
    text
}

pub(crate) fn create_workspace(
    context: &Context,
    cluster: Option<&str>,
    name: &str,
    location: Option<&str>,
) -> Result<Report> {
    let like = cluster.map_or_else(
        || {
            context
                .layers()
                .map(|layers| layers.default_cluster().to_owned())
        },
        |name| Ok(name.to_owned()),
    )?;
    let AnyCluster::Azure(known) = context.cluster(&like)? else {
        return Err(Error::refused(format!("cluster `{like}` has no workspace"))
            .hint("name one of kind azureml with `-c`"));
    };
    if name.len() < 3
        || name.len() > 33
        || !name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
    {
        return Err(
            Error::usage(format!("`{name}` cannot be the name of a workspace"))
                .hint("3 to 33 letters, digits, `-` and `_`"),
        );
    }
    let site = crate::azure::site(context, &known.backend, false)?;
    let scope: Scope = create(known.backend.cloud(), &site.scope, name, location)?;
    let report = Report::new(format!("{}\n", scope.id()), &scope);
    Ok(report.hint(format!(
        "use it: {{kind: azureml, subscription: {}, resource_group: {}, workspace: {name}, \
            compute: …}}",
        scope.subscription, scope.resource_group
    )))
}
