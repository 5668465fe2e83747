//! `scontrol show config` and `sinfo --version`: the settings of the site.

use super::unreadable;
use super::values;
use crate::owned;
use std::fmt;
use towline_core::Result;

pub fn argv() -> Vec<String> {
    owned(["scontrol", "show", "config"])
}

/// `22.05.8`: year, month, patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Version(pub u32, pub u32, pub u32);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:02}.{}", self.0, self.1, self.2)
    }
}

/// The version in `slurm 22.05.8`, `slurm-wlm 24.11.5`, `23.11.0-0rc1`.
pub fn version(text: &str) -> Result<Version> {
    let read = |word: &str| {
        let mut parts = word.split('.').map(|part| {
            let digits = part
                .find(|c: char| !c.is_ascii_digit())
                .unwrap_or(part.len());
            part[..digits].parse::<u32>().ok()
        });
        let (major, minor) = (parts.next()??, parts.next()??);
        Some(Version(major, minor, parts.next().flatten().unwrap_or(0)))
    };
    text.split_ascii_whitespace()
        .find_map(read)
        .ok_or_else(|| unreadable("sinfo --version", text.trim()))
}

/// The settings that Towline's behaviour depends on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Config {
    pub cluster: String,
    pub version: Version,
    /// The controller first, then its backups.
    pub controllers: Vec<String>,
    /// Seconds between `SIGTERM` and `SIGKILL`.
    pub kill_wait: u64,
    /// How many seconds the controller remembers an ended job.
    pub min_job_age: u64,
    /// One more than the highest task number.
    pub max_array_size: u32,
    /// Whether there is a database: only then `sacct`, QOS and accounts exist.
    pub has_accounting: bool,
    /// `NO`, `ANY`, `ALL`: whether a job that breaks a partition's limits is refused at once.
    pub enforce_part_limits: String,
    /// Whether jobs are requeued unless they say otherwise.
    pub job_requeue: bool,
    /// `OFF`, `REQUEUE`, `CANCEL`, `SUSPEND`, perhaps with `GANG`.
    pub preempt_mode: String,
    pub preempt_type: String,
    pub select_type: String,
    /// In seconds. A requeued job waits one second longer. Slurm's default is 120.
    pub cred_expire: u64,
    settings: Vec<(String, String)>,
}

impl Config {
    /// Any setting by its name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.settings
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .and_then(|(_, value)| values::present(value))
    }

    /// Whether Slurm signals all processes of a job, even those in other process groups or
    /// sessions.
    pub fn signals_reach_all(&self) -> bool {
        matches!(
            self.get("ProctrackType"),
            Some("proctrack/cgroup" | "proctrack/linuxproc")
        )
    }
}

/// Reads the answer to [`argv`].
pub fn read(text: &str) -> Result<Config> {
    let settings: Vec<(String, String)> = text
        .lines()
        .filter_map(|line| line.split_once('='))
        .map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()))
        .collect();
    let found = Config {
        settings,
        ..Config::default()
    };
    let value = |name: &str| found.get(name).unwrap_or_default().to_owned();
    if found.get("ClusterName").is_none() {
        return Err(unreadable("scontrol show config", text.trim()));
    }
    // `30 sec`
    let seconds = |name: &str, default: u64| {
        found
            .get(name)
            .and_then(|text| text.split(' ').next()?.parse().ok())
            .unwrap_or(default)
    };
    let auth = value("AuthInfo");
    let cred_expire = auth
        .split(',')
        .find_map(|part| part.trim().strip_prefix("cred_expire=")?.parse().ok());
    Ok(Config {
        cluster: value("ClusterName"),
        version: version(&value("SLURM_VERSION"))?,
        controllers: found
            .settings
            .iter()
            .filter(|(name, _)| name.starts_with("SlurmctldHost["))
            .filter_map(|(_, host)| values::words(host))
            .collect(),
        kill_wait: seconds("KillWait", 30),
        min_job_age: seconds("MinJobAge", 300),
        max_array_size: found
            .get("MaxArraySize")
            .and_then(values::count)
            .unwrap_or(1001),
        has_accounting: found
            .get("AccountingStorageType")
            .is_some_and(|kind| kind.contains("slurmdbd")),
        enforce_part_limits: value("EnforcePartLimits"),
        job_requeue: value("JobRequeue") == "1",
        preempt_mode: value("PreemptMode"),
        preempt_type: value("PreemptType"),
        select_type: value("SelectType"),
        cred_expire: cred_expire.unwrap_or(120),
        settings: found.settings.clone(),
    })
}
