//! Files that the service itself stores of a job: files of run history, read through signed URLs.
//! They are the results of jobs that another tool submitted, and the platform's logs of a job whose
//! program never began.

use super::client::CALL_BATCH;
use super::cluster::AzureCluster;
use super::logs::{log_refusal, ranged, which, whole_length};
use super::observe::job_name;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use std::time::{Duration, Instant};
use towline_core::cloud::{Audience, Call};
use towline_core::cluster::{FileEntry, RunRef};
use towline_core::why::last_lines;
use towline_core::{Error, Result};

/// How long a signed URL is used; the service signs it for hours.
const ADDRESS_LASTS: Duration = Duration::from_secs(600);
/// How many pages of a listing are read at most.
const MOST_PAGES: usize = 200;
/// How many of the platform's logs are read, each only at its end.
const MOST_SYSTEM_LOGS: usize = 12;
const SYSTEM_LOG_BYTES: u64 = 32 << 10;
const SYSTEM_LOG_LINES: usize = 8;

/// Escaped in the path of a file: all but what RFC 3986 calls unreserved, and the slash.
const IN_PATH: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'/');

/// Folders of run history that the platform writes for every job.
const OF_THE_PLATFORM: [&str; 4] = ["system_logs", "user_logs", "azureml-logs", "logs"];

/// Whether the platform wrote the file at this path, whichever tool submitted the job.
pub(super) fn is_of_the_platform(path: &str) -> bool {
    path.split('/')
        .next()
        .is_some_and(|first| OF_THE_PLATFORM.contains(&first))
}

impl AzureCluster {
    /// Files at or below a path.
    pub(super) fn artifacts(&self, far: &RunRef, path: &str) -> Result<Vec<FileEntry>> {
        let found = self.artifact_addresses(far, path)?;
        let mut listed = Vec::new();
        for some in found.chunks(CALL_BATCH) {
            let calls: Vec<Call> = some
                .iter()
                .map(|(_, address)| ranged(address, 0, 1))
                .collect();
            for ((name, address), reply) in some.iter().zip(self.cloud.call_all(&calls)) {
                let size = whole_length(&reply?)?;
                let inner = name
                    .strip_prefix(path)
                    .unwrap_or(name)
                    .trim_start_matches('/')
                    .to_owned();
                self.memory().addresses.insert(
                    (far.run.clone(), name.clone()),
                    (Instant::now(), address.clone()),
                );
                listed.push(FileEntry {
                    path: inner,
                    size,
                    mode: 0o644,
                    is_folder: false,
                    link: None,
                });
            }
        }
        Ok(listed)
    }

    pub(super) fn artifact_bytes(
        &self,
        far: &RunRef,
        path: &str,
        offset: u64,
        most: u64,
    ) -> Result<Vec<u8>> {
        let known = self
            .memory()
            .addresses
            .get(&(far.run.clone(), path.to_owned()))
            .filter(|(made, _)| made.elapsed() < ADDRESS_LASTS)
            .cloned();
        let address = if let Some((_, address)) = known {
            address
        } else {
            let found = self
                .artifact_addresses(far, path)?
                .into_iter()
                .find(|(name, _)| name == path);
            found
                .ok_or_else(|| Error::not_found(format!("the run has no {path}")))?
                .1
        };
        let reply = self.cloud.call(&ranged(&address, offset, most))?;
        match reply.status {
            206 => Ok(reply.body),
            200 => Ok(reply
                .body
                .into_iter()
                .skip(usize::try_from(offset).unwrap_or(usize::MAX))
                .collect()),
            404 | 416 => Ok(Vec::new()),
            _ => Err(log_refusal("a file of the run", &reply)),
        }
    }

    /// Names and URLs of the files at or below a path.
    fn artifact_addresses(&self, far: &RunRef, path: &str) -> Result<Vec<(String, String)>> {
        let (site, job) = (self.site()?, job_name(far));
        let Some(run) = self.history(&site, job, "")? else {
            return Ok(Vec::new());
        };
        let experiment = run["experimentId"].as_str().unwrap_or_default();
        let encoded = utf8_percent_encode(path, IN_PATH);
        let base = format!(
            "{}/history/v1.0{}/experimentids/{experiment}/runs/{job}/artifacts/prefix/contentinfo?path={encoded}",
            site.api,
            site.scope.id()
        );
        let (mut found, mut next) = (Vec::new(), Some(base.clone()));
        for _ in 0..MOST_PAGES {
            let Some(address) = next.take() else { break };
            let reply = self
                .cloud
                .call(&Call::get(address).audience(Audience::Workspace))?;
            let Some(page) = super::client::found("the run's files", &reply)? else {
                break;
            };
            let entry = |entry: &Value| {
                Some((
                    entry["path"].as_str()?.to_owned(),
                    entry["contentUri"].as_str()?.to_owned(),
                ))
            };
            found.extend(
                page["value"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter_map(entry),
            );
            next = page["continuationToken"]
                .as_str()
                .filter(|token| !token.is_empty())
                .map(|token| format!("{base}&continuationToken={token}"));
        }
        // A name may contain anything. A path that leads out of the folder is skipped.
        let is_inner = |name: &str| {
            std::path::Path::new(name)
                .components()
                .all(|part| matches!(part, std::path::Component::Normal(_)))
        };
        let is_below = |name: &str| {
            name == path
                || name
                    .strip_prefix(path)
                    .is_some_and(|rest| rest.starts_with('/'))
        };
        found.retain(|(name, _)| is_inner(name) && is_below(name));
        Ok(found)
    }

    /// The ends of the platform's own logs, the one that mentions an error first. Empty if there
    /// are none.
    pub(super) fn platform_words(&self, far: &RunRef) -> Result<Vec<String>> {
        let site = self.site()?;
        let details = self
            .history(&site, job_name(far), "/details")?
            .unwrap_or(Value::Null);
        let files = details["logFiles"].as_object().into_iter().flatten();
        let mut logs: Vec<(&str, &str)> = files
            .filter(|(name, _)| which(name).is_none())
            .filter_map(|(name, address)| Some((name.as_str(), address.as_str()?)))
            .collect();
        logs.sort_by_key(|(name, _)| {
            (
                !name.contains("image_build"),
                !name.contains("lifecycler"),
                *name,
            )
        });
        logs.truncate(MOST_SYSTEM_LOGS);
        let sizes = self.cloud.call_all(
            &logs
                .iter()
                .map(|(_, address)| ranged(address, 0, 1))
                .collect::<Vec<_>>(),
        );
        let mut quiet = Vec::new();
        for ((name, address), size) in logs.iter().zip(sizes) {
            let Some(size) = size
                .ok()
                .and_then(|reply| whole_length(&reply).ok())
                .filter(|size| *size > 0)
            else {
                continue;
            };
            let Ok(reply) = self.cloud.call(&ranged(
                address,
                size.saturating_sub(SYSTEM_LOG_BYTES),
                SYSTEM_LOG_BYTES,
            )) else {
                continue;
            };
            if !reply.is_good() {
                continue;
            }
            let words: Vec<String> = [format!("{name}:")]
                .into_iter()
                .chain(last_lines(&reply.body, SYSTEM_LOG_LINES))
                .collect();
            if words[1..].iter().any(|line| tells_of_error(line)) {
                return Ok(words);
            }
            if quiet.is_empty() && words.len() > 1 {
                quiet = words;
            }
        }
        Ok(quiet)
    }
}

fn tells_of_error(line: &str) -> bool {
    let line = line.to_ascii_lowercase();
    [
        "error",
        "fail",
        "denied",
        "unauthorized",
        "not found",
        "exception",
        "no space",
        "timed out",
    ]
    .iter()
    .any(|word| line.contains(word))
}
