//! Submits: uploads what a job needs, then creates each job under its run's id. Every step may be
//! repeated, because content is written once and a name in use belongs to our own job.

use super::client::{CALL_BATCH, good, refusal, url};
use super::cluster::AzureCluster;
use super::data::{self, document, store_name};
use super::identity::JobIdentity;
use super::image;
use super::observe::job_name;
use super::payload::Payload;
use super::site::AzureSite;
use std::time::{Duration, Instant};
use towline_core::cloud::{Audience, Call};
use towline_core::cluster::Asked;
use towline_core::cluster::RunRef;
use towline_core::config::Credential;
use towline_core::plan::{Plan, PlannedRun};
use towline_core::redact::{Secret, SecretSet};
use towline_core::resolve::NamedStore;
use towline_core::secret_name::SecretName;
use towline_core::{Error, ErrorKind, Result};
use towline_host::crash;
use towline_wire::crew::{CREW_VERSION, CrewOrder, SecretPlace, SharedToken, keys};

/// The time between SIGTERM and SIGKILL for ranks.
const GRACE_MILLIS: u64 = 10_000;
/// Seconds between two uploads of output by our own program.
const COLLECT_EVERY: u64 = 60;
/// How long a signature for a datastore is valid: longer than the longest job.
const SIGNATURE_DAYS: u32 = 30;
/// A signature is renewed after this time.
const SIGNATURE_RENEWAL: Duration = Duration::from_secs(86_400);
/// A name that stays in conflict without a job for this long is refused.
pub(super) const CONFLICT_TIMEOUT: Duration = Duration::from_secs(60);

impl AzureCluster {
    pub(super) fn submit_all(&self, plan: &Plan, secrets: &SecretSet) -> Result<Vec<String>> {
        if plan.adopted.is_some() {
            return self.taken(plan);
        }
        let asked = Asked {
            id: &plan.id,
            runs: &plan.runs,
            job: &plan.job,
            resolved: &plan.resolved,
        };
        let site = self.site_for(&asked)?;
        let payload = self.payload(&asked, &site)?;
        let place = self.keep_secrets(plan, &payload, &site, secrets)?;
        crash::pass("azureml.secrets.kept");
        self.bring(plan, place)?;
        self.register_environment(&payload)?;
        self.register_stores(&payload, &site, secrets)?;
        crash::pass("azureml.put.before");
        let done = self.put_jobs(plan, &payload, &site);
        crash::pass("azureml.put.done");
        done
    }

    /// The jobs of an adopted submission, which is never created a second time.
    fn taken(&self, plan: &Plan) -> Result<Vec<String>> {
        let find = |run: &PlannedRun| {
            let far = RunRef {
                native: plan.native_of(&run.id),
                ..RunRef::of(&run.id)
            };
            let none = || {
                format!(
                    "workspace `{}` has no job `{}`",
                    self.config.workspace,
                    job_name(&far)
                )
            };
            match self.job(&far)? {
                Some(job) => Ok(job.name),
                // The other machine may have submitted it a moment ago.
                None if self.is_young(&run.id) => {
                    Err(Error::unreachable(format!("{} yet", none())))
                }
                None => Err(Error::not_found(none())),
            }
        };
        plan.runs.iter().map(find).collect()
    }

    /// Uploads the program, once for all runs, and the order of this submission.
    fn bring(&self, plan: &Plan, secrets: Option<SecretPlace>) -> Result<()> {
        let program = self.staged(&keys::program(&self.program.digest));
        let order = CrewOrder {
            version: CREW_VERSION,
            plan: plan.clone(),
            grace_millis: GRACE_MILLIS,
            collect_every: COLLECT_EVERY,
            shared_token: SharedToken::new(random_token()?),
            secrets,
        };
        let order = serde_json::to_vec(&order)
            .map_err(|error| Error::bug("an order cannot be written").source_error(error))?;
        self.with_stage(|stage| {
            if !self.memory().is_staged(&program)
                && stage
                    .sizes(std::slice::from_ref(&program))?
                    .first()
                    .copied()
                    .flatten()
                    .is_none()
            {
                let bytes = std::fs::read(&self.program.path).map_err(|error| {
                    Error::bug("this program cannot be read").source_error(error)
                })?;
                crash::pass("azureml.program.before");
                stage.put(&program, &bytes, true)?;
            }
            self.memory().staged.insert(program.clone(), Instant::now());
            crash::pass("azureml.program.brought");
            // Nodes may have read the first order, so it stays.
            stage.put(&self.staged(&keys::order(&plan.id)), &order, true)?;
            crash::pass("azureml.order.brought");
            Ok(())
        })
    }

    /// The key of one of our objects, below the stage.
    pub(super) fn staged(&self, key: &str) -> String {
        format!("{}/{key}", self.own_stage())
    }

    fn register_environment(&self, payload: &Payload<'_>) -> Result<()> {
        let environment = &payload.environment;
        let Some(image) = environment
            .register
            .as_deref()
            .filter(|_| !self.memory().registered.contains(&environment.id))
        else {
            return Ok(());
        };
        let at = url(self.cloud(), &environment.id);
        let what = format!("the image {image}");
        if self.cloud.call(&Call::get(at.clone()))?.status == 404 {
            let reply = self
                .cloud
                .call(&Call::put(at.clone(), image::document(image)))?;
            // Another process registered it first. A version never changes, so it is the same
            // environment.
            if !reply.is_good() && !matches!(reply.status, 409 | 412) {
                return Err(refusal(&what, &reply));
            }
        }
        self.memory().registered.insert(environment.id.clone());
        Ok(())
    }

    /// Registers the job's datastores that the workspace does not know yet. The credential is a
    /// signature for the one container, never the account's key. There is none if the job has an
    /// identity.
    fn register_stores(
        &self,
        payload: &Payload<'_>,
        site: &AzureSite,
        secrets: &SecretSet,
    ) -> Result<()> {
        let stage = self.own_stage();
        for store in payload.stores() {
            let name = data::name_in(site, store, &stage);
            // Somebody else registered this one.
            if name != store_name(store, &stage) {
                continue;
            }
            let signature = if payload.identity == JobIdentity::None {
                self.signature(store, secrets)?
            } else {
                None
            };
            if signature.is_none()
                && (site.store_names.contains(&name) || self.memory().registered.contains(&name))
            {
                continue;
            }
            // The same credential gives the same rights, so a recent registration stays.
            let marked = signature
                .as_ref()
                .map(|_| format!("{name} {}", credential_mark(store, secrets)));
            if marked.as_ref().is_some_and(|marked| {
                self.memory()
                    .signed
                    .get(marked)
                    .is_some_and(|put| put.elapsed() < SIGNATURE_RENEWAL)
            }) {
                continue;
            }
            let at = url(
                self.cloud(),
                &format!("{}/datastores/{name}?skipValidation=true", site.scope.id()),
            );
            good(
                &format!("datastore `{}`", store.name),
                &self.cloud.call(&Call::put(
                    at,
                    document(store, &site.store, signature.as_ref()),
                ))?,
            )?;
            self.memory().registered.insert(name);
            self.memory()
                .signed
                .extend(marked.map(|marked| (marked, Instant::now())));
        }
        Ok(())
    }

    fn signature(&self, store: &NamedStore, secrets: &SecretSet) -> Result<Option<Secret>> {
        let Some(Credential::Map(map)) = &store.datastore.credential else {
            return Ok(None);
        };
        let value = |key: &str| {
            map.get(key)
                .and_then(|reference| secrets.0.get(&SecretName::Datastore(reference.clone())))
        };
        if let Some(sas) = value("sas") {
            return self.cloud.plain_sas(sas).map(Some);
        }
        let Some(key) = value("account_key") else {
            return Ok(None);
        };
        let (account, container) = data::place(store);
        self.cloud
            .container_sas(account, container, key, SIGNATURE_DAYS)
            .map(Some)
    }

    /// Whether its name has been in conflict for a short time only.
    fn is_young(&self, run: &towline_core::RunId) -> bool {
        self.memory()
            .conflicts
            .entry(run.clone())
            .or_insert_with(Instant::now)
            .elapsed()
            < CONFLICT_TIMEOUT
    }

    /// Creates each job under its run's id. A job that exists already is our own, and cannot be
    /// changed.
    fn put_jobs(
        &self,
        plan: &Plan,
        payload: &Payload<'_>,
        site: &AzureSite,
    ) -> Result<Vec<String>> {
        let token = matches!(payload.identity, JobIdentity::User)
            .then(|| self.cloud.token(Audience::Workspace))
            .transpose()?;
        let call = |run: &PlannedRun| {
            let call = Call::put(
                url(
                    self.cloud(),
                    &format!("{}/jobs/{}", site.scope.id(), run.id),
                ),
                payload.body(run),
            );
            match &token {
                Some(token) => call.header("x-azureml-token", token.clone()),
                None => call,
            }
        };
        let mut natives = Vec::new();
        let mut failure: Option<Error> = None;
        for runs in plan.runs.chunks(CALL_BATCH) {
            let calls: Vec<Call> = runs.iter().map(call).collect();
            for (run, reply) in runs.iter().zip(self.cloud.call_all(&calls)) {
                let taken = reply.and_then(|reply| self.accepted(run, &reply));
                match taken {
                    Ok(()) => natives.push(run.id.to_string()),
                    // A temporary failure wins: the whole submission is tried again, and finds the
                    // jobs that exist.
                    Err(error) if error.kind() == ErrorKind::Unreachable => return Err(error),
                    Err(error) => failure = failure.or(Some(error)),
                }
            }
            if failure.is_some() {
                break;
            }
        }
        match failure {
            None => Ok(natives),
            // A sweep is created whole or not at all: jobs that exist, from this try or an earlier
            // one, are cancelled.
            Some(error) if plan.runs.len() > 1 => self.withdraw(plan, site).and(Err(error)),
            Some(error) => Err(error),
        }
    }

    /// Cancels the jobs of a refused sweep. If one cannot be cancelled now, the whole submission is
    /// tried again.
    fn withdraw(&self, plan: &Plan, site: &AzureSite) -> Result<()> {
        for runs in plan.runs.chunks(CALL_BATCH) {
            let place = |run: &PlannedRun| format!("{}/jobs/{}", site.scope.id(), run.id);
            let look = |run: &PlannedRun| Call::get(url(self.cloud(), &place(run)));
            let cancel = |run: &&PlannedRun| {
                Call::post(
                    url(self.cloud(), &format!("{}/cancel", place(run))),
                    serde_json::Value::Null,
                )
                .repeatable()
            };
            let mut there = Vec::new();
            for (run, reply) in runs.iter().zip(
                self.cloud
                    .call_all(&runs.iter().map(look).collect::<Vec<_>>()),
            ) {
                let reply = reply?;
                match reply.status {
                    404 => {}
                    _ if reply.is_good() => there.push(run),
                    _ => {
                        return Err(
                            refusal("a job of a refused sweep may exist", &reply).as_unknown()
                        );
                    }
                }
            }
            for reply in self
                .cloud
                .call_all(&there.iter().map(cancel).collect::<Vec<_>>())
            {
                let reply = reply?;
                if matches!(reply.status, 404 | 408 | 409 | 429 | 500..=599) {
                    return Err(refusal(
                        "a job of a refused sweep cannot be cancelled yet",
                        &reply,
                    )
                    .as_unknown());
                }
            }
        }
        Ok(())
    }

    fn accepted(&self, run: &PlannedRun, reply: &towline_core::cloud::Reply) -> Result<()> {
        if reply.is_good() {
            return Ok(());
        }
        let refused = refusal(
            &format!("workspace `{}` refuses the job", self.config.workspace),
            reply,
        );
        // An earlier request of this call may have been accepted. Not with a 400, because the same
        // document was refused each time.
        let sent_before = reply.tries > 1 && reply.status != 400;
        // The name is in use: an earlier request of ours was accepted, and its answer was lost.
        if matches!(reply.status, 400 | 409 | 412) || sent_before {
            let there = self.job(&RunRef::of(&run.id));
            match there {
                Err(_) if sent_before => return Err(refused.as_unknown()),
                Err(error) => return Err(error),
                Ok(Some(job)) if job.run.as_deref() == Some(run.id.as_str()) => return Ok(()),
                // A new job may not be listed yet. A conflict says that a job exists, or that
                // something blocked it.
                Ok(None) if !matches!(reply.status, 400 | 409 | 412) && self.is_young(&run.id) => {
                    return Err(refused.as_unknown());
                }
                Ok(None) if reply.status != 400 && self.is_young(&run.id) => {
                    return Err(Error::unreachable(format!(
                        "workspace `{}` reports a conflict and shows no job {} yet",
                        self.config.workspace, run.id
                    )));
                }
                Ok(_) => {}
            }
        }
        Err(refused)
    }
}

/// Identifies a credential without revealing it.
fn credential_mark(store: &NamedStore, secrets: &SecretSet) -> String {
    let Some(Credential::Map(map)) = &store.datastore.credential else {
        return String::new();
    };
    let values = map
        .values()
        .filter_map(|reference| secrets.0.get(&SecretName::Datastore(reference.clone())));
    let all: Vec<&str> = values.map(Secret::expose).collect();
    blake3::hash(all.join("\n").as_bytes()).to_string()
}

/// The shared token by which the nodes of a run recognise each other.
fn random_token() -> Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|_| Error::bug("the system gives no random numbers"))?;
    Ok(format!("{:032x}", u128::from_be_bytes(bytes)))
}
