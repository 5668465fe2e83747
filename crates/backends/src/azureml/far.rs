//! Azure ML, as a far cluster.

use super::backend::AzureBackend;
use super::client::{refusal, url};
use super::memory::ObjectPlace;
use super::observe::job_name;
use super::report::JobView;
use super::state::NativeState;
use crate::far::{BlobBytes, FarCluster};
use serde_json::Value;
use std::time::{Duration, Instant};
use towline_core::cloud::Call;
use towline_core::cluster::LogSource;
use towline_core::cluster::{Explanation, FileEntry, KnownJob, LogLength, Observed, RunRef};
use towline_core::plan::Plan;
use towline_core::redact::SecretSet;
use towline_core::state::Native;
use towline_core::{Error, Result, RunId};
use towline_wire::crew::keys;

/// How long a job that has ended may be put away before it can be deleted.
const PUT_AWAY: Duration = Duration::from_secs(20);
const LOOK_EVERY: Duration = Duration::from_millis(250);

impl FarCluster for AzureBackend {
    fn connect(&self, may_ask: bool) -> Result<()> {
        self.cloud.sign_in(may_ask)
    }
    fn trouble(&self) -> Option<Error> {
        self.cloud.trouble()
    }
    /// There is no line: each question is a call of its own.
    fn is_open(&self) -> bool {
        false
    }
    fn hang_up(&self) {
        self.drop_stage();
    }

    fn missing(&self, blobs: Vec<String>) -> Result<Vec<String>> {
        let key = |blob: &String| self.staged(&keys::snapshot(blob));
        let unsure: Vec<String> = blobs
            .into_iter()
            .filter(|blob| !self.memory().is_staged(&key(blob)))
            .collect();
        let wanted: Vec<String> = unsure.iter().map(key).collect();
        let sizes = if wanted.is_empty() {
            Vec::new()
        } else {
            self.with_stage(|stage| stage.sizes(&wanted))?
        };
        let mut missing = Vec::new();
        for (blob, size) in unsure.into_iter().zip(sizes) {
            match size {
                Some(_) => drop(self.memory().staged.insert(key(&blob), Instant::now())),
                None => missing.push(blob),
            }
        }
        Ok(missing)
    }
    fn keep(&self, blobs: &mut BlobBytes<'_>) -> Result<()> {
        for blob in blobs {
            let (blob, bytes) = blob?;
            let key = self.staged(&keys::snapshot(&blob));
            self.with_stage(|stage| stage.put(&key, &bytes, true))?;
            self.memory().staged.insert(key, Instant::now());
        }
        Ok(())
    }

    fn submit_plan(&self, plan: &Plan, secrets: &SecretSet) -> Result<Vec<String>> {
        self.submit_all(plan, secrets)
    }
    fn observe_runs(&self, runs: &[RunRef], ask: bool) -> Result<Observed> {
        self.look_at(runs, ask)
    }

    fn cancel_runs(&self, runs: &[RunRef]) -> Result<Vec<(RunId, Error)>> {
        self.cancel_all(runs)
    }

    fn unseen(&self) -> Duration {
        super::submit::CONFLICT
    }

    fn give_up(&self, plan: &Plan) -> Result<()> {
        self.drop_kept(plan)
    }

    fn page(&self, native: &str) -> Option<String> {
        self.site().ok().map(|site| site.portal(native))
    }

    fn explain(&self, run: &RunRef) -> Result<Explanation> {
        let Some(job) = self.job(run)? else {
            return Ok(Explanation {
                native: None,
                text: "the service has no such job".to_owned(),
                next: None,
                forever: false,
            });
        };
        let site = self.look()?;
        let text = match job.state {
            NativeState::Waiting if job.word == "Paused" => {
                "the platform has paused it, and will go on with it when there is room".to_owned()
            }
            NativeState::Waiting => super::explain::waiting(&job, self.order(run)?.as_ref(), &site),
            NativeState::Unknown => format!(
                "the service calls it {}: nothing is known of it at the moment",
                job.word
            ),
            _ => format!("the service calls it {}", job.word),
        };
        let url = job.url.clone().unwrap_or_else(|| site.portal(&job.name));
        let native = Native {
            id: job.name,
            word: job.word,
            url: Some(url.clone()),
            ..Native::default()
        };
        Ok(Explanation {
            native: Some(native),
            text,
            next: Some(format!("its page: {url}")),
            forever: false,
        })
    }

    fn forget_runs(&self, runs: &[RunRef]) -> Result<()> {
        let site = self.site()?;
        for far in runs {
            let Some(stage) = self.stage_of_ours(far)? else {
                // A colleague's, or another tool's: it stays theirs.
                self.memory().forget(&far.run);
                continue;
            };
            self.delete_job(&url(
                self.cloud(),
                &format!("{}/jobs/{}", site.scope.id(), job_name(far)),
            ))?;
            let mut keys_to_delete = vec![format!("{stage}/{}", keys::status(&far.run))];
            keys_to_delete.extend(
                self.with_stage(|objects| {
                    objects.list(&format!("{stage}/{}/", keys::run(&far.run)))
                })?
                .into_iter()
                .map(|item| item.key),
            );
            self.with_stage(|objects| objects.delete(&keys_to_delete))?;
            // With the last run of a sweep goes what they share.
            let others = format!("{stage}/{}-", keys::run(&far.submission));
            if far.task.is_none() || self.with_stage(|objects| objects.list(&others))?.is_empty() {
                self.with_stage(|objects| {
                    objects.delete(&[format!("{stage}/{}", keys::order(&far.submission))])
                })?;
            }
            self.memory().forget(&far.run);
        }
        Ok(())
    }

    fn log_lengths(&self, run: &RunRef) -> Result<Vec<LogLength>> {
        self.lengths(run)
    }
    fn log_bytes(
        &self,
        run: &RunRef,
        attempt: u32,
        source: LogSource,
        offset: u64,
        most: u64,
    ) -> Result<(Vec<u8>, Option<u64>)> {
        self.bytes(run, attempt, source, offset, most)
    }

    /// What a run left below `outputs`, and what the service keeps of it; nothing else: its nodes
    /// are gone.
    fn list_files(&self, run: &RunRef, path: &str) -> Result<Vec<FileEntry>> {
        if let Some(path) = self.kept_by_service(run, path)? {
            return self.artifacts(run, &path);
        }
        let Some(root) = self.files_of(run, path)? else {
            return Ok(Vec::new());
        };
        let items = self.with_stage(|objects| objects.list(&root))?;
        let below = |key: &str| match key.strip_prefix(&root)? {
            "" => Some(String::new()),
            rest => rest.strip_prefix('/').map(ToOwned::to_owned),
        };
        // A key may hold anything: one that leads elsewhere is nobody's result.
        let is_inner = |path: &str| {
            std::path::Path::new(path)
                .components()
                .all(|part| matches!(part, std::path::Component::Normal(_)))
        };
        let listed = items
            .into_iter()
            .filter_map(|item| Some((below(&item.key).filter(|path| is_inner(path))?, item)));
        Ok(listed
            .map(|(path, item)| FileEntry {
                path,
                size: item.size,
                mode: 0o644,
                is_folder: false,
                link: None,
            })
            .collect())
    }
    fn file_bytes(&self, run: &RunRef, path: &str, offset: u64, most: u64) -> Result<Vec<u8>> {
        if let Some(path) = self.kept_by_service(run, path)? {
            return self.artifact_bytes(run, &path, offset, most);
        }
        let Some(key) = self.files_of(run, path)? else {
            return Ok(Vec::new());
        };
        Ok(self
            .with_stage(|objects| objects.range(&key, offset..offset.saturating_add(most)))?
            .unwrap_or_default())
    }

    fn last_words(&self, run: &RunRef) -> Result<Vec<String>> {
        self.platform_words(run)
    }

    fn known_jobs(&self) -> Result<Vec<KnownJob>> {
        self.known()
    }
    fn plan_of(&self, submission: &RunId, native: Option<&str>) -> Result<Option<Plan>> {
        self.plan_for(submission, native)
    }
}

impl AzureBackend {
    /// The path of a file that run history keeps: any of another tool's job, and the platform's own
    /// logs of each.
    fn kept_by_service(&self, far: &RunRef, path: &str) -> Result<Option<String>> {
        let parts: Vec<&str> = path
            .split('/')
            .filter(|part| !part.is_empty() && *part != ".")
            .collect();
        let path = parts.join("/");
        if path.is_empty() || parts.contains(&"..") {
            return Ok(None);
        }
        Ok((super::artifacts::is_of_the_platform(&path)
            || self.object_place(far)? == ObjectPlace::Foreign)
            .then_some(path))
    }

    /// Where a path of a run's folder lies in the stage.
    fn files_of(&self, far: &RunRef, path: &str) -> Result<Option<String>> {
        let path = path.trim_matches('/').trim_start_matches("code/");
        let parts: Vec<&str> = path
            .split('/')
            .filter(|part| !part.is_empty() && *part != ".")
            .collect();
        if parts.first() != Some(&keys::OUTPUTS) || parts.contains(&"..") {
            return Ok(None);
        }
        Ok(match self.object_place(far)? {
            ObjectPlace::Stage(stage) => Some(format!(
                "{stage}/{}/{}",
                keys::run(&far.run),
                parts.join("/")
            )),
            ObjectPlace::Foreign => None,
        })
    }

    /// Only what has ended for the service too can be deleted, which may take a moment.
    fn delete_job(&self, at: &str) -> Result<()> {
        let begun = Instant::now();
        loop {
            let reply = self.cloud.call(&Call::delete(at))?;
            match reply.status {
                200..=299 | 404 => return Ok(()),
                409 if begun.elapsed() < PUT_AWAY => std::thread::sleep(LOOK_EVERY),
                _ => return Err(refusal("the job cannot be deleted", &reply)),
            }
        }
    }

    /// Where a job lets somebody in: `user`, host and port.
    pub fn ssh_endpoint(&self, run: &RunRef, node: u32) -> Result<String> {
        let job: JobView = self
            .job(run)?
            .ok_or_else(|| Error::not_found(format!("the service has no job of {}", run.run)))?;
        if let Some(address) = job.ssh {
            return Ok(address);
        }
        let site = self.site()?;
        let services = self
            .history(&site, &job.name, &format!("/serviceinstances/{node}"))?
            .unwrap_or(Value::Null);
        let instances = services["instances"].as_object().into_iter().flatten();
        let endpoint = instances
            .filter(|(_, service)| {
                service["type"]
                    .as_str()
                    .is_some_and(|kind| kind.eq_ignore_ascii_case("ssh"))
            })
            .find_map(|(_, service)| {
                service["endpoint"]
                    .as_str()
                    .or_else(|| service["properties"]["ProxyEndpoint"].as_str())
                    .filter(|text| !text.is_empty())
                    .map(ToOwned::to_owned)
            });
        endpoint.ok_or_else(|| {
            if job.is_interactive {
                let error = Error::refused(format!(
                    "{} has no address yet; the service calls it {}",
                    run.run, job.word
                ));
                return error.hint(
                    "it has one soon after its nodes are there: try again, or see `tow why`",
                );
            }
            Error::refused(format!(
                "{} has no way in: only interactive jobs have",
                run.run
            ))
            .hint(
                "submit one with `tow submit ssh`, or with `resources.native: [ssh_public_key=…]`",
            )
        })
    }
}
