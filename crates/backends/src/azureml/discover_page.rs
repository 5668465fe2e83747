//! The page of `tow clusters --discover`: what the user may use on Azure.

use super::cluster::AzureCluster;
use super::config::Scope;
use super::discover::{ComputeFacts, Discovered, WorkspaceFacts, create_workspace, discover};
use super::page::quota_row;
use super::site::QuotaFacts;
use crate::registry::Answer;
use towline_core::cloud::Cloud;
use towline_core::cluster::{Cell, Page, Tone};
use towline_core::{Error, Result};
use towline_wire::report::clusters as report;

const WORKSPACES: [&str; 7] = [
    "WORKSPACE",
    "COMPUTE",
    "KIND",
    "MACHINES",
    "NODES",
    "RESOURCE GROUP",
    "SUBSCRIPTION",
];
const VIRTUAL_CLUSTERS: [&str; 6] = [
    "VIRTUAL CLUSTER",
    "REGION",
    "SERIES",
    "TIER",
    "GPUS FREE",
    "LIMIT",
];

/// What the user may use, and what to write into the configuration for it.
pub(crate) fn discovered(cloud: &dyn Cloud) -> Result<Answer<report::Discovered>> {
    let found = discover(cloud)?;
    Ok(Answer {
        page: page(&found),
        value: answer(found),
        hint: "name one as a cluster: {kind: azureml, workspace: …, compute: …} or {…, \
            virtual_cluster: …}"
            .to_owned(),
    })
}

impl AzureCluster {
    /// Makes a workspace in the resource group of this one.
    pub(crate) fn create_workspace(
        &self,
        name: &str,
        location: Option<&str>,
    ) -> Result<Answer<report::Workspace>> {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if !(3..=33).contains(&name.len()) || !name.chars().all(is_name) {
            return Err(
                Error::usage(format!("`{name}` cannot be the name of a workspace"))
                    .hint("3 to 33 letters, digits, `-` and `_`"),
            );
        }
        let scope = create_workspace(self.cloud(), &self.site()?.scope, name, location)?;
        Ok(Answer {
            page: Page::default().text(format!("{}\n", scope.id())),
            hint: format!(
                "use it: {{kind: azureml, subscription: {}, resource_group: {}, workspace: \
                    {name}, compute: …}}",
                scope.subscription, scope.resource_group
            ),
            value: workspace(scope),
        })
    }
}

fn workspace(scope: Scope) -> report::Workspace {
    report::Workspace {
        subscription: scope.subscription,
        resource_group: scope.resource_group,
        workspace: scope.workspace,
    }
}

/// The same for programs.
fn answer(found: Discovered) -> report::Discovered {
    let compute = |compute: ComputeFacts| report::Compute {
        name: compute.name,
        kind: compute.kind,
        vm_size: compute.vm_size,
        most_nodes: compute.most_nodes,
    };
    let workspaces = found.workspaces.into_iter();
    let quota = |quota: QuotaFacts| report::Quota {
        region: quota.region,
        series: quota.series,
        tier: quota.tier,
        limit: quota.limit,
        used: quota.used,
    };
    let virtual_clusters = found.virtual_clusters.into_iter();
    report::Discovered {
        workspaces: workspaces
            .map(|facts| report::DiscoveredWorkspace {
                workspace: workspace(facts.scope),
                computes: facts.computes.into_iter().map(compute).collect(),
            })
            .collect(),
        virtual_clusters: virtual_clusters
            .map(|cluster| report::VirtualCluster {
                id: cluster.id,
                name: cluster.name,
                location: cluster.location,
                quotas: cluster.quotas.into_iter().map(quota).collect(),
            })
            .collect(),
        images: found.images,
        identities: found.identities,
        notes: found.notes,
    }
}

fn page(found: &Discovered) -> Page {
    let rows = found.workspaces.iter().flat_map(workspace_rows).collect();
    let page = Page::default().table(&WORKSPACES, rows);
    let page = if found.virtual_clusters.is_empty() {
        page
    } else {
        let rows = found.virtual_clusters.iter().flat_map(|cluster| {
            let name = Cell::new(cluster.name.clone(), Tone::Strong);
            let row = move |quota| [vec![name.clone()], quota_row(quota)].concat();
            cluster.quotas.iter().map(row)
        });
        let ids = found.virtual_clusters.iter();
        page.table(&VIRTUAL_CLUSTERS, rows.collect())
            .lines(ids.map(|cluster| format!("{}: {}", cluster.name, cluster.id)))
    };
    let named = [("images", &found.images), ("identities", &found.identities)];
    let named = named.iter().filter(|(_, names)| !names.is_empty());
    page.lines(named.map(|(what, names)| format!("{what}: {}", names.join(", "))))
        .lines(&found.notes)
}

/// One row for each compute; one for a workspace that has none.
fn workspace_rows(workspace: &WorkspaceFacts) -> Vec<Vec<Cell>> {
    let scope = &workspace.scope;
    let row = |name: &str, kind: &str, machines: &str, nodes: &str| {
        vec![
            Cell::new(scope.workspace.clone(), Tone::Strong),
            Cell::plain(name),
            Cell::plain(kind),
            Cell::plain(machines),
            Cell::plain(nodes),
            Cell::plain(scope.resource_group.clone()),
            Cell::plain(scope.subscription.clone()),
        ]
    };
    if workspace.computes.is_empty() {
        return vec![row("", "", "", "")];
    }
    let computes = workspace.computes.iter().map(|compute| {
        let most = compute.most_nodes.map(|most| most.to_string());
        row(
            &compute.name,
            &compute.kind,
            compute.vm_size.as_deref().unwrap_or_default(),
            &most.unwrap_or_default(),
        )
    });
    computes.collect()
}
