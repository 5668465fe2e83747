//! Completes a job for Azure ML: its public key, its identity, its kind of machine.

use super::cluster::AzureCluster;
use super::site::AzureSite;
use crate::own_facts::OwnFacts;
use std::path::Path;
use towline_core::cluster::{Draft, Fit};
use towline_core::job::Job;
use towline_core::{Error, Result};

/// File names of public keys, the preferred one first.
const PUBLIC_KEYS: [&str; 3] = ["id_ed25519.pub", "id_ecdsa.pub", "id_rsa.pub"];
/// The native option with the public key.
const PUBLIC_KEY: &str = "ssh_public_key=";

impl AzureCluster {
    pub(super) fn fit_draft(&self, draft: Draft<'_>) -> Result<Fit> {
        let mut site = AzureSite::from_facts(&draft.facts)?;
        let elsewhere = self.identity_elsewhere(draft.job.identity.as_deref(), &site);
        site.identities.extend(elsewhere);
        let wanted = draft.job.resources.instance_type.as_deref();
        let machine = wanted.and_then(|wanted| site.instance(wanted));
        Ok(Fit {
            gpus_per_node: machine.map(|machine| machine.gpus),
            facts: site.into_facts(),
            job: with_public_key(draft.job, draft.home)?,
            ..Fit::default()
        })
    }
}

/// Adds the user's public key to a job that only holds its nodes, because the user enters it by
/// ssh.
fn with_public_key(mut job: Job, home: Option<&Path>) -> Result<Job> {
    let native = &job.resources.native;
    let has_key = native.iter().any(|option| option.starts_with(PUBLIC_KEY));
    if has_key || !job.holds_for_ssh() {
        return Ok(job);
    }
    let folder = home.map(|home| home.join(".ssh")).unwrap_or_default();
    let key = PUBLIC_KEYS
        .iter()
        .find_map(|name| std::fs::read_to_string(folder.join(name)).ok())
        .ok_or_else(|| {
            Error::refused(format!(
                "you could not enter the job: there is no public key in {}",
                folder.display()
            ))
            .hint("make one with ssh-keygen, or give it: `resources.native: [ssh_public_key=…]`")
        })?;
    let native = &mut job.resources.native;
    native.push(format!("{PUBLIC_KEY}{}", key.trim()));
    native.push("interactive=true".to_owned());
    Ok(job)
}
