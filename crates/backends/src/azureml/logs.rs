//! Logs: of our runs as parts in the stage, of other tools' jobs as files of run history.

use super::cluster::AzureCluster;
use super::memory::{Ends, ObjectPlace};
use super::observe::job_name;
use serde_json::Value;
use std::collections::BTreeMap;
use towline_core::cloud::{Audience, Call, Reply};
use towline_core::cluster::{Cursor, LogLength, LogSource, RunRef};
use towline_core::redact::Secret;
use towline_core::{Error, Result};
use towline_wire::crew::{LOG_PART_BYTES, keys};
use towline_wire::log_name::LogName;

/// How often to look for the end of a log that grows faster than it is read: the next look goes on.
const MOST_ENDS: usize = 64;

impl AzureCluster {
    pub(super) fn lengths(&self, far: &RunRef) -> Result<Vec<LogLength>> {
        match self.object_place(far)? {
            ObjectPlace::Stage(stage) => self.staged_lengths(&stage, far, ""),
            ObjectPlace::Foreign => self.foreign_lengths(far),
        }
    }

    pub(super) fn bytes(
        &self,
        far: &RunRef,
        from: &Cursor,
        most: u64,
    ) -> Result<(Vec<u8>, Option<u64>)> {
        match self.object_place(far)? {
            ObjectPlace::Stage(stage) => self.staged_bytes(&stage, far, from, most),
            ObjectPlace::Foreign => self.foreign_bytes(far, from, most),
        }
    }

    /// The lengths of logs in the stage. Every part but a log's last has the same size.
    fn staged_lengths(&self, stage: &str, far: &RunRef, below: &str) -> Result<Vec<LogLength>> {
        let folder = format!("{stage}/{}", keys::logs(&far.run));
        let mut lengths: BTreeMap<LogName, u64> = BTreeMap::new();
        for item in self.with_stage(|objects| objects.list(&format!("{folder}{below}")))? {
            let Some((log, index)) = item.key.strip_prefix(&folder).and_then(LogName::from_part)
            else {
                continue;
            };
            let length = lengths.entry(log).or_default();
            *length = (*length).max(
                index
                    .saturating_mul(LOG_PART_BYTES)
                    .saturating_add(item.size),
            );
        }
        Ok(lengths
            .into_iter()
            .map(|(log, length)| LogLength {
                attempt: log.attempt,
                source: log.source,
                length,
            })
            .collect())
    }

    fn staged_bytes(
        &self,
        stage: &str,
        far: &RunRef,
        from: &Cursor,
        most: u64,
    ) -> Result<(Vec<u8>, Option<u64>)> {
        let log = LogName::new(from.attempt, from.source);
        let folder = format!("{stage}/{}/{}", keys::run(&far.run), log.folder());
        let mut bytes = Vec::new();
        while (bytes.len() as u64) < most {
            let at = from.offset + bytes.len() as u64;
            let (index, within) = (at / LOG_PART_BYTES, at % LOG_PART_BYTES);
            let end = LOG_PART_BYTES.min(within + (most - bytes.len() as u64));
            let key = format!("{folder}/{}", keys::part(index));
            let Some(part) = self.with_stage(|objects| objects.range(&key, within..end))? else {
                break;
            };
            let is_whole = part.len() as u64 == end - within;
            bytes.extend(part);
            if !is_whole {
                break;
            }
        }
        if !bytes.is_empty() {
            return Ok((bytes, None));
        }
        let length = self
            .staged_lengths(stage, far, &format!("{log}/"))?
            .first()
            .map(|log| log.length);
        Ok((bytes, length))
    }

    /// URLs of the logs in run history, by what they are logs of.
    fn addresses(&self, far: &RunRef) -> Result<BTreeMap<(u32, LogSource), String>> {
        let site = self.site()?;
        let details = self
            .history(&site, job_name(far), "/details")?
            .unwrap_or(Value::Null);
        let files = details["logFiles"].as_object().into_iter().flatten();
        Ok(files
            .filter_map(|(name, address)| Some((which(name)?, address.as_str()?.to_owned())))
            .collect())
    }

    /// The lengths of logs in run history. The search starts where the last one ended, so a log
    /// that has not grown costs one call. A length in an answer may belong to a copy that ended
    /// early, so a log ends only where nothing follows.
    fn foreign_lengths(&self, far: &RunRef) -> Result<Vec<LogLength>> {
        let known = self
            .memory()
            .ends
            .get(&far.run)
            .cloned()
            .unwrap_or_default();
        let addresses = self.addresses(far)?;
        let mut ends: Ends = addresses
            .keys()
            .map(|log| (*log, known.get(log).copied().unwrap_or(0)))
            .collect();
        let mut open: Vec<(u32, LogSource)> = addresses.keys().copied().collect();
        for _ in 0..MOST_ENDS {
            let calls: Vec<Call> = open
                .iter()
                .map(|log| ranged(&addresses[log], ends[log], 1))
                .collect();
            let replies = self.cloud.call_all(&calls);
            let mut grown = Vec::new();
            for (log, reply) in std::mem::take(&mut open).into_iter().zip(replies) {
                let (reply, before) = (reply?, ends[&log]);
                let end = end(&reply, before)?;
                if reply.status == 206 && end > before {
                    grown.push(log);
                }
                ends.insert(log, end);
            }
            open = grown;
            if open.is_empty() {
                break;
            }
        }
        self.memory().ends.insert(far.run.clone(), ends.clone());
        Ok(ends
            .into_iter()
            .map(|((attempt, source), length)| LogLength {
                attempt,
                source,
                length,
            })
            .collect())
    }

    fn foreign_bytes(
        &self,
        far: &RunRef,
        from: &Cursor,
        most: u64,
    ) -> Result<(Vec<u8>, Option<u64>)> {
        let addresses = self.addresses(far)?;
        let Some(address) = addresses.get(&(from.attempt, from.source)) else {
            return Ok((Vec::new(), None));
        };
        let reply = self.cloud.call(&ranged(address, from.offset, most))?;
        match reply.status {
            206 => Ok((reply.body.clone(), whole_length(&reply).ok())),
            // A server without range support sends the whole file.
            200 => {
                let start = usize::try_from(from.offset)
                    .unwrap_or(usize::MAX)
                    .min(reply.body.len());
                let end = start
                    .saturating_add(usize::try_from(most).unwrap_or(usize::MAX))
                    .min(reply.body.len());
                Ok((
                    reply.body[start..end].to_vec(),
                    Some(reply.body.len() as u64),
                ))
            }
            416 | 404 => Ok((Vec::new(), whole_length(&reply).ok())),
            _ => Err(log_refusal("a log", &reply)),
        }
    }
}

pub(super) fn ranged(address: &str, offset: u64, most: u64) -> Call {
    let range = format!(
        "bytes={offset}-{}",
        offset.saturating_add(most).saturating_sub(1)
    );
    Call::get(address)
        .audience(Audience::Nobody)
        .header("range", Secret::new(range))
}

/// The storage's refusal of a URL that run history has just returned.
pub(super) fn log_refusal(what: &str, reply: &Reply) -> Error {
    if reply.status != 403 {
        return super::client::refusal(what, reply);
    }
    let code = reply
        .header("x-ms-error-code")
        .map(|code| format!(" ({code})"))
        .unwrap_or_default();
    Error::denied(format!(
        "{what}: the storage refuses the URL that run history gave for it{code}"
    ))
    .hint(
        "its signature may have expired: ask again in a moment, and check the clock of this \
            machine",
    )
    .hint(
        "storage behind a firewall or a private endpoint answers only from its network: is \
            the VPN on?",
    )
    .blame_network(true)
}

/// The end of a log, as far as the answer to a request at `from` says.
fn end(reply: &Reply, from: u64) -> Result<u64> {
    match (reply.status, whole_length(reply)) {
        (206, told) => Ok(told?.max(from + reply.body.len() as u64)),
        // Nothing follows. The answer does not always say whether the log was truncated.
        (416, Ok(told)) if told > 0 => Ok(told.min(from)),
        (416, _) => Ok(from),
        (_, told) => told,
    }
}

/// `bytes 0-0/1234`, or `bytes */0` if the file is empty.
pub(super) fn whole_length(reply: &Reply) -> Result<u64> {
    let told = reply
        .header("content-range")
        .and_then(|text| text.rsplit('/').next()?.parse().ok());
    match (reply.status, told) {
        (206 | 416, Some(length)) => Ok(length),
        (200, _) => Ok(reply.body.len() as u64),
        (404 | 416, None) => Ok(0),
        (206, None) => Err(Error::unreachable(
            "the storage did not say how long a log is",
        )),
        _ => Err(log_refusal("a log", reply)),
    }
}

/// Which log a file of run history is; a system log belongs to no rank.
pub(super) fn which(name: &str) -> Option<(u32, LogSource)> {
    let (folder, file) = name.rsplit_once('/')?;
    let attempt = match folder {
        "user_logs" | "azureml-logs" | "logs/azureml" => 1,
        _ => folder
            .strip_prefix("user_logs/retry_")?
            .parse::<u32>()
            .ok()?
            .checked_add(1)?,
    };
    let stem = file
        .strip_suffix(".txt")
        .or_else(|| file.strip_suffix(".log"))?;
    let number = |text: &str| {
        text.rsplit(['_', '-'])
            .next()
            .and_then(|digits| digits.parse().ok())
    };
    let rank = if let Some(rest) = stem.strip_prefix("std_log") {
        if rest.is_empty() { 0 } else { number(rest)? }
    } else if let Some(rest) = stem.strip_prefix("70_driver_log") {
        if rest.is_empty() { 0 } else { number(rest)? }
    } else if stem == "00_stdout" || stem == "ps-0_stdout" {
        0
    } else {
        return None;
    };
    Some((attempt, LogSource::Rank(rank)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_run_history_are_logs_of_ranks() {
        for (name, attempt, rank) in [
            ("user_logs/std_log.txt", 1, 0),
            ("user_logs/std_log_process_07.txt", 1, 7),
            ("user_logs/retry_001/std_log_process_0.txt", 2, 0),
            ("azureml-logs/70_driver_log_3.txt", 1, 3),
            ("azureml-logs/70_driver_log_rank_2.txt", 1, 2),
            ("azureml-logs/70_driver_log.txt", 1, 0),
            ("azureml-logs/00_stdout.txt", 1, 0),
        ] {
            assert_eq!(
                which(name),
                Some((attempt, LogSource::Rank(rank))),
                "{name}"
            );
        }
        for name in [
            "system_logs/lifecycler/lifecycler.log",
            "azureml-logs/55_batchai_execution.txt",
            "x",
            "user_logs/../std_log.txt",
            "user_logs/std_log_process_x.txt",
        ] {
            assert_eq!(which(name), None, "{name}");
        }
    }

    #[test]
    fn only_where_nothing_follows_is_the_end() {
        let reply = |status, range: Option<&str>, body: &str| Reply {
            status,
            headers: range
                .map(|range| ("content-range".to_owned(), range.to_owned()))
                .into_iter()
                .collect(),
            body: body.as_bytes().to_vec(),
            ..Reply::default()
        };
        for (status, range, body, from, wanted) in [
            (206, Some("bytes 10-10/50"), "x", 10, 50),
            (206, Some("bytes 10-29/30"), "twenty bytes of a log", 10, 31),
            (416, None, "", 50, 50),
            (416, Some("bytes */20"), "", 50, 20),
            (416, Some("bytes */0"), "", 0, 0),
            (200, None, "all of it", 3, 9),
            (404, None, "", 7, 0),
        ] {
            assert_eq!(
                end(&reply(status, range, body), from).ok(),
                Some(wanted),
                "{status} {range:?}"
            );
        }
        assert!(end(&reply(403, None, "expired"), 5).is_err());
    }
}
