//! Facts about a workspace and the target of its jobs: fetched once, cached for a while.

use super::config::Scope;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use towline_core::cloud::Who;
use towline_core::cluster::Facts;

/// The three kinds of targets. Each describes resources in its own way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Flavour {
    /// Nodes of Azure ML itself.
    Aml,
    /// Kubernetes that is attached to the workspace.
    Itp,
    /// A virtual cluster.
    Singularity,
}

impl Flavour {
    pub const fn word(self) -> &'static str {
        match self {
            Self::Aml => "AML compute",
            Self::Itp => "Kubernetes (ITP)",
            Self::Singularity => "Singularity",
        }
    }
}

/// A user-assigned identity of the workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdentityFacts {
    pub id: String,
    pub client_id: String,
}

/// The quota and usage of a tier for a series in a region.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuotaFacts {
    pub region: String,
    pub series: String,
    pub tier: String,
    pub limit: u64,
    pub used: u64,
}

impl QuotaFacts {
    pub const fn free(&self) -> u64 {
        self.limit.saturating_sub(self.used)
    }
}

/// A kind of machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstanceFacts {
    pub name: String,
    pub series: String,
    pub gpus: u32,
    pub cpus: u32,
    /// In bytes.
    pub memory: u64,
    /// It has AMD GPUs.
    #[serde(default)]
    pub amd: bool,
}

/// The workspace's default blob container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreFacts {
    /// `workspaceblobstore`
    pub name: String,
    pub account: String,
    pub container: String,
    /// `https://ACCOUNT.blob.core.windows.net`
    pub endpoint: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AzureSite {
    pub scope: Scope,
    pub flavour: Flavour,
    /// The value of a job's `computeId`.
    pub compute_id: String,
    pub location: String,
    pub tenant: String,
    /// The URL of run history.
    pub api: String,
    /// The URL of the cloud's Azure ML pages.
    #[serde(default)]
    pub studio: String,
    pub store: StoreFacts,
    /// Names of the workspace's datastores of every kind.
    #[serde(default)]
    pub store_names: BTreeSet<String>,
    /// Datastores of the workspace, by `ACCOUNT/CONTAINER`.
    #[serde(default)]
    pub stores: BTreeMap<String, String>,
    /// The id of the workspace's vault.
    pub vault: Option<String>,
    pub identities: BTreeMap<String, IdentityFacts>,
    /// The kind of machine of a compute.
    pub vm_size: Option<String>,
    pub instances: Vec<InstanceFacts>,
    #[serde(default)]
    pub quotas: Vec<QuotaFacts>,
    /// The largest number of nodes of a compute.
    pub most_nodes: Option<u32>,
    /// The kind of pod that Kubernetes uses if none is named.
    #[serde(default)]
    pub usual_pod: Option<String>,
    /// Names of the virtual cluster's own images.
    #[serde(default)]
    pub images: BTreeSet<String>,
    /// The signed-in user.
    #[serde(default)]
    pub who: Option<Who>,
    #[serde(default)]
    pub facts: Facts,
}

impl AzureSite {
    /// A kind of machine by any spelling of its name: `Singularity.ND96_H100_v5`, `Standard_NC6`.
    pub fn instance(&self, name: &str) -> Option<&InstanceFacts> {
        self.instances
            .iter()
            .find(|instance| short(&instance.name).eq_ignore_ascii_case(short(name)))
    }

    /// Whether machines of that kind have AMD GPUs.
    pub fn has_amd(&self, name: &str) -> bool {
        self.instance(name)
            .map_or_else(|| is_amd(name), |instance| instance.amd)
    }

    /// The portal's page of a job.
    pub fn portal(&self, job: &str) -> String {
        format!(
            "{}/runs/{job}?wsid={}&tid={}",
            self.studio,
            self.scope.id(),
            self.tenant
        )
    }
}

/// The name of a kind of machine without its prefix.
pub fn short(name: &str) -> &str {
    let lower = name.to_ascii_lowercase();
    let cut = ["singularity.", "aisupercomputer.", "standard_"]
        .into_iter()
        .find(|prefix| lower.starts_with(prefix))
        .map_or(0, str::len);
    &name[cut..]
}

/// Whether a kind of machine has AMD GPUs.
pub fn is_amd(name: &str) -> bool {
    short(name).split(['_', '-']).any(|part| {
        part.len() > 2
            && part.to_ascii_uppercase().starts_with("MI")
            && part[2..].starts_with(|c: char| c.is_ascii_digit())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_machines_are_known_by_their_names() {
        assert_eq!(short("Singularity.ND96amrs_A100_v4"), "ND96amrs_A100_v4");
        assert_eq!(short("STANDARD_NC24RS_V3"), "NC24RS_V3");
        assert!(
            is_amd("Singularity.ND96isr_MI300X_v5")
                && is_amd("ND96_MI200_v4")
                && !is_amd("ND96amrs_A100_v4")
                && !is_amd("Standard_D3")
        );
    }
}
