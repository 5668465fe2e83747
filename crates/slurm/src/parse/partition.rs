//! `scontrol show partition`: the partitions and their limits.

use super::pairs::{get, pairs, records};
use super::unreadable;
use super::values::{self, Limit};
use crate::owned;
use towline_core::Result;

pub fn argv() -> Vec<String> {
    owned(["scontrol", "show", "partition", "-a", "-o"])
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Partition {
    pub name: String,
    /// `UP`, `DOWN`, `DRAIN`, `INACTIVE`.
    pub state: String,
    /// Whether it gets the jobs that name no partition.
    pub is_default: bool,
    pub is_hidden: bool,
    pub max_time: Option<Limit>,
    pub default_time: Option<Limit>,
    pub max_nodes: Option<Limit>,
    pub min_nodes: u32,
    pub total_nodes: u32,
    pub total_cpus: u32,
    /// A host list.
    pub nodes: String,
    /// Empty means all.
    pub allowed_qos: Vec<String>,
    pub denied_qos: Vec<String>,
    /// Empty means all.
    pub allowed_accounts: Vec<String>,
    pub denied_accounts: Vec<String>,
    /// Empty means all.
    pub allowed_groups: Vec<String>,
    /// Its own QOS, whose limits apply to every job in it.
    pub qos: Option<String>,
    /// `OFF`, `REQUEUE`, `CANCEL`, `SUSPEND`.
    pub preempt_mode: String,
    pub priority_tier: u32,
}

impl Partition {
    pub fn is_up(&self) -> bool {
        self.state == "UP"
    }
    pub fn allows_qos(&self, qos: &str) -> bool {
        allows(&self.allowed_qos, &self.denied_qos, qos)
    }
    pub fn allows_account(&self, account: &str) -> bool {
        allows(&self.allowed_accounts, &self.denied_accounts, account)
    }
}

fn allows(allowed: &[String], denied: &[String], name: &str) -> bool {
    let names = |list: &[String]| list.iter().any(|known| known.eq_ignore_ascii_case(name));
    (allowed.is_empty() || names(allowed)) && !names(denied)
}

/// Reads the answer to [`argv`].
pub fn read(text: &str) -> Result<Vec<Partition>> {
    let found = records(text, "PartitionName");
    if found.is_empty() {
        return Err(unreadable("scontrol show partition", text.trim()));
    }
    found.into_iter().map(partition).collect()
}

fn partition(record: &str) -> Result<Partition> {
    let pairs = pairs(record, &[]);
    let value = |key: &str| get(&pairs, key);
    let name = values::words(value("PartitionName"))
        .ok_or_else(|| unreadable("scontrol show partition", record))?;
    Ok(Partition {
        name,
        state: value("State").to_owned(),
        is_default: value("Default") == "YES",
        is_hidden: value("Hidden") == "YES",
        max_time: values::time_limit(value("MaxTime")),
        default_time: values::time_limit(value("DefaultTime")),
        max_nodes: values::count_limit(value("MaxNodes")),
        min_nodes: values::count(value("MinNodes")).unwrap_or(0),
        total_nodes: values::count(value("TotalNodes")).unwrap_or(0),
        total_cpus: values::count(value("TotalCPUs")).unwrap_or(0),
        nodes: values::words(value("Nodes")).unwrap_or_default(),
        allowed_qos: values::list(value("AllowQos")),
        denied_qos: values::list(value("DenyQos")),
        allowed_accounts: values::list(value("AllowAccounts")),
        denied_accounts: values::list(value("DenyAccounts")),
        allowed_groups: values::list(value("AllowGroups")),
        qos: values::words(value("QoS")),
        preempt_mode: value("PreemptMode").to_owned(),
        priority_tier: values::count(value("PriorityTier")).unwrap_or(1),
    })
}
