//! Secrets of runs in the workspace's vault: from before a job is created until the service has
//! ended the last run of its submission. No end is reported while secrets are in the vault.

use super::client::{good, refusal};
use super::cluster::AzureCluster;
use super::data;
use super::image;
use super::memory::Remains;
use super::payload::Payload;
use super::site::AzureSite;
use towline_core::cloud::{Audience, Call};
use towline_core::cluster::RunRef;
use towline_core::config::Credential;
use towline_core::job::IoMode;
use towline_core::plan::Plan;
use towline_core::redact::{Secret, SecretSet};
use towline_core::secret_name::SecretName;
use towline_core::{Error, Result, RunId};
use towline_wire::crew::{CrewOrder, SecretPlace, keys};

impl AzureCluster {
    /// Writes the secrets into the workspace's vault, under names of this submission. They stay
    /// until none of its runs can start again.
    pub(super) fn keep_secrets(
        &self,
        plan: &Plan,
        payload: &Payload<'_>,
        site: &AzureSite,
        secrets: &SecretSet,
    ) -> Result<Option<SecretPlace>> {
        let carried = |name: &SecretName| match name {
            // The node gets no credential of a store that the service mounts.
            SecretName::Datastore(reference) => has_reference(plan, reference),
            SecretName::Variable(_) | SecretName::Token(_) => true,
        };
        let wanted: Vec<(&SecretName, &Secret)> =
            secrets.0.iter().filter(|(name, _)| carried(name)).collect();
        if wanted.is_empty() {
            return Ok(None);
        }
        let names = wanted
            .iter()
            .map(|(name, _)| {
                (
                    (*name).clone(),
                    format!(
                        "tow-{}-{:08x}",
                        plan.id,
                        image::hash(&name.to_string()) >> 32
                    ),
                )
            })
            .collect();
        let place = SecretPlace {
            vault: self.vault(site)?,
            names,
            client_id: payload.identity.client_id(),
        };
        self.memory().kept.insert(plan.id.clone(), place.clone());
        wanted
            .into_iter()
            .try_for_each(|(name, value)| self.keep_one(plan, &place, name, value))?;
        Ok(Some(place))
    }

    /// Deletes the secrets of a submission of which no run will start.
    pub(super) fn drop_kept(&self, plan: &Plan) -> Result<()> {
        let known = self.memory().kept.get(&plan.id).cloned();
        let place = match known {
            Some(place) => Some(place),
            // Another process may have written the secrets; then the order names them. A plan
            // without secrets has none.
            None if plan.resolved.secrets.is_empty() => None,
            None => self
                .with_stage(|stage| stage.json::<CrewOrder>(&self.staged(&keys::order(&plan.id))))?
                .and_then(|order| order.secrets),
        };
        if let Some(place) = place {
            self.drop_secrets(&place)?;
        }
        self.memory().kept.remove(&plan.id);
        Ok(())
    }

    fn keep_one(
        &self,
        plan: &Plan,
        place: &SecretPlace,
        name: &SecretName,
        value: &Secret,
    ) -> Result<()> {
        let body = serde_json::json!({"value": value.expose(), "tags": {"tow": plan.id}, "contentType": "a secret of a run of tow"});
        let call = Call::put(
            format!(
                "{}/secrets/{}?api-version=7.4",
                place.vault, place.names[name]
            ),
            body,
        )
        .audience(Audience::Vault);
        good(
            &format!(
                "the workspace's Key Vault (`{}`)",
                name.reference()
                    .map_or_else(|| name.to_string(), str::to_owned)
            ),
            &self.cloud.call(&call)?,
        )
        .map(drop)
    }

    /// The URL of the workspace's vault.
    fn vault(&self, site: &AzureSite) -> Result<String> {
        if let Some(known) = self.memory().vault.clone() {
            return Ok(known);
        }
        let id = site.vault.as_deref().ok_or_else(|| {
            Error::unsupported(format!(
                "workspace `{}` has no Key Vault",
                site.scope.workspace
            ))
        })?;
        let answer = good(
            "the workspace's Key Vault",
            &self.cloud.call(&Call::get(super::client::versioned(
                self.cloud(),
                id,
                "2023-07-01",
            )))?,
        )?;
        let vault = answer["properties"]["vaultUri"].as_str().ok_or_else(|| {
            Error::unreachable("Azure does not give the URL of the workspace's Key Vault")
        })?;
        let vault = vault.trim_end_matches('/').to_owned();
        self.memory().vault = Some(vault.clone());
        Ok(vault)
    }

    /// Deletes secrets from the vault. A temporary failure is an error; without the right to
    /// delete, they stay.
    pub(super) fn drop_secrets(&self, place: &SecretPlace) -> Result<()> {
        let gone = |name: &String| {
            Call::delete(format!("{}/secrets/{name}?api-version=7.4", place.vault))
                .audience(Audience::Vault)
        };
        for reply in self
            .cloud
            .call_all(&place.names.values().map(gone).collect::<Vec<_>>())
        {
            let reply = reply?;
            if matches!(reply.status, 408 | 429 | 500..=599) {
                return Err(refusal(
                    "the secrets of an ended run are still in the workspace's Key Vault",
                    &reply,
                ));
            }
        }
        Ok(())
    }

    /// Deletes the secrets of submissions that are over. Returns the submissions for which that
    /// failed, and why.
    pub(super) fn clear_secrets(&self, runs: &[RunRef]) -> Vec<(RunId, Error)> {
        let over: Vec<RunRef> = {
            let memory = self.memory();
            runs.iter()
                .filter(|far| {
                    memory.finals.contains_key(&far.run)
                        && !memory.cleared.contains(&far.submission)
                })
                .cloned()
                .collect()
        };
        let mut failed: Vec<(RunId, Error)> = Vec::new();
        for far in over {
            let is_known = failed
                .iter()
                .any(|(submission, _)| *submission == far.submission)
                || self.memory().cleared.contains(&far.submission);
            if is_known {
                continue;
            }
            match self.clear_of(&far, runs) {
                Ok(true) => drop(self.memory().cleared.insert(far.submission)),
                Ok(false) => {}
                Err(error) => failed.push((far.submission, error)),
            }
        }
        failed
    }

    /// Whether the vault holds no secrets of a run's submission any more.
    fn clear_of(&self, far: &RunRef, runs: &[RunRef]) -> Result<bool> {
        // A colleague deletes their own.
        if self.stage_of_ours(far)?.is_none() {
            return Ok(true);
        }
        let Some(order) = self.order(far)? else {
            return Ok(false);
        };
        let Some(place) = order.secrets else {
            return Ok(true);
        };
        let is_open = |run: &RunId| {
            runs.iter().any(|far| far.run == *run) && !self.memory().finals.contains_key(run)
        };
        let ids: Vec<&RunId> = order.plan.runs.iter().map(|run| &run.id).collect();
        if ids.iter().any(|run| is_open(run)) || self.any_runs(&ids)? {
            return Ok(false);
        }
        self.drop_secrets(&place).map(|()| true)
    }

    /// Whether one of these may still run. The service is asked about those that were not seen to
    /// end.
    fn any_runs(&self, runs: &[&RunId]) -> Result<bool> {
        for run in runs {
            if !self.memory().finals.contains_key(*run)
                && self
                    .job(&RunRef::of(run))?
                    .is_some_and(|job| !job.state.is_final())
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// What can be cleaned up only after the service reports the job as finished.
    pub(super) fn remains(&self, far: &RunRef) -> Result<Remains> {
        if let Some(known) = self.memory().remains.get(&far.submission) {
            return Ok(*known);
        }
        let Some(order) = self.order(far)? else {
            return Ok(Remains::default());
        };
        let uploads = order
            .plan
            .resolved
            .io
            .iter()
            .any(|io| io.mode == IoMode::Write && data::is_native(&io.store));
        let remains = Remains {
            uploads,
            secrets: order.secrets.is_some() && self.stage_of_ours(far)?.is_some(),
        };
        self.memory()
            .remains
            .insert(far.submission.clone(), remains);
        Ok(remains)
    }
}

/// Whether a store that our own program transfers uses this credential reference.
fn has_reference(plan: &Plan, reference: &str) -> bool {
    let resolved = &plan.resolved;
    let stores = resolved
        .io
        .iter()
        .map(|io| &io.store)
        .chain(resolved.copy.iter().map(|copy| &copy.store));
    stores
        .filter(|store| !data::is_native(store))
        .any(|store| match &store.datastore.credential {
            Some(Credential::Map(map)) => map.values().any(|value| value == reference),
            _ => false,
        })
}
