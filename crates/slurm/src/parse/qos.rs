//! `sacctmgr show qos`: the QOS, their limits, and which one preempts which.

use super::unreadable;
use super::values::{self, Limit, Resources};
use crate::owned;
use towline_core::Result;

/// Needs a database; without one `sacctmgr` fails.
const FORMAT: &str = "format=Name,Priority,MaxTRESPU,MaxWall,MaxJobsPU,MaxSubmitPU,MaxTRES,GrpTRES,GrpJobs,Flags,Preempt,PreemptMode,GraceTime";

pub fn argv() -> Vec<String> {
    owned(["sacctmgr", "-n", "-P", "show", "qos", FORMAT])
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Qos {
    pub name: String,
    pub priority: u64,
    pub per_user: Resources,
    pub max_time: Option<Limit>,
    pub jobs_per_user: Option<u32>,
    /// Running and waiting jobs together.
    pub submitted_per_user: Option<u32>,
    pub per_job: Resources,
    /// For all its jobs together.
    pub group: Resources,
    pub group_jobs: Option<u32>,
    /// `DenyOnLimit` refuses a job at submission that would otherwise wait for ever.
    pub flags: Vec<String>,
    /// The QOS whose jobs it may preempt.
    pub preempts: Vec<String>,
    /// What happens to its own jobs when preempted; `cluster` means the cluster's default.
    pub preempt_mode: Option<String>,
    /// Seconds that a preempted job still has.
    pub grace: u64,
}

/// Reads the answer to [`argv`].
pub fn read(text: &str) -> Result<Vec<Qos>> {
    text.lines()
        .filter(|line| !line.trim().is_empty())
        .map(qos)
        .collect()
}

fn qos(line: &str) -> Result<Qos> {
    let fields: Vec<&str> = line.split('|').collect();
    let [
        name,
        priority,
        per_user,
        wall,
        jobs,
        submitted,
        per_job,
        group,
        group_jobs,
        flags,
        preempts,
        preempt_mode,
        grace,
    ] = fields.as_slice()
    else {
        return Err(unreadable("sacctmgr show qos", line));
    };
    Ok(Qos {
        name: values::words(name).ok_or_else(|| unreadable("sacctmgr show qos", line))?,
        priority: priority.parse().unwrap_or(0),
        per_user: Resources::read(per_user),
        max_time: values::time_limit(wall),
        jobs_per_user: values::count(jobs),
        submitted_per_user: values::count(submitted),
        per_job: Resources::read(per_job),
        group: Resources::read(group),
        group_jobs: values::count(group_jobs),
        flags: values::list(flags),
        preempts: values::list(preempts),
        preempt_mode: values::words(preempt_mode),
        grace: values::span(grace).unwrap_or(0),
    })
}
