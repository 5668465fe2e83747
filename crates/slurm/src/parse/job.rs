//! `scontrol show job`: the full record of one job, as long as the controller remembers it.

use super::ids::{JobId, Part};
use super::pairs::{Free, get, pairs, records};
use super::tasks::TaskSet;
use super::unreadable;
use super::values::{self, Limit, Resources};
use crate::owned;
use crate::state::{self, ExitPair};
use towline_core::Result;
use towline_core::reason::Ending;
use towline_core::time::Moment;

/// Without `-d`, which splits the record over indented lines on some versions; nothing of it is
/// needed.
pub fn argv(job: &str) -> Vec<String> {
    owned(["scontrol", "show", "job", "-o", job])
}

/// Whether `scontrol`, `squeue` or `scancel` says that there is no such job. They also say it of a
/// job that ended longer than `MinJobAge` ago, which the database may still know. For a task of an
/// unknown array `scontrol` prints it on stdout and exits with 0.
pub fn is_unknown(said: &str) -> bool {
    said.contains("Invalid job id specified")
        || said
            .lines()
            .any(|line| line.starts_with("Job ") && line.trim_end().ends_with(" not found"))
}

/// Keys that can follow the free texts at the end of a record, in all versions.
const TAIL: &[&str] = &[
    "StdErr",
    "StdIn",
    "StdOut",
    "Power",
    "SegmentSize",
    "Switches",
    "BurstBuffer",
    "BurstBufferState",
    "GresAllowTaskSharing",
    "GresEnforceBind",
    "GresOneTaskPerSharing",
    "KillOInInvalidDependent",
    "KillOnInvalidDependent",
    "SpreadJob",
    "ExpeditedRequeue",
    "OOMKillStep",
    "CpusPerTres",
    "MemPerTres",
    "TresBind",
    "TresFreq",
    "TresPerJob",
    "TresPerNode",
    "TresPerSocket",
    "TresPerTask",
    "MailUser",
    "NtasksPerTRES",
    "Container",
    "SELinuxContext",
    "ResvPorts",
];

pub(crate) const FREE: &[Free] = &[
    ("JobName", &[&["UserId", "HetJobIdSet", "SLUID"]]),
    ("Reason", &[&["FailedNode", "Dependency"]]),
    ("Command", &[&["SubmitLine", "WorkDir"]]),
    ("SubmitLine", &[&["WorkDir"]]),
    (
        "WorkDir",
        &[&["AdminComment", "SystemComment", "Comment", "Extra"], TAIL],
    ),
    (
        "AdminComment",
        &[&["SystemComment", "Comment", "Extra"], TAIL],
    ),
    ("SystemComment", &[&["Comment", "Extra"], TAIL]),
    ("Comment", &[&["Extra"], TAIL]),
    ("Extra", &[TAIL]),
    ("StdErr", &[TAIL]),
    ("StdIn", &[TAIL]),
    ("StdOut", &[TAIL]),
];

/// One job, task, or the tasks of an array that have not started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobDetail {
    pub job: u32,
    pub id: JobId,
    pub name: String,
    pub user: String,
    pub account: Option<String>,
    pub qos: Option<String>,
    pub priority: u64,
    pub state: String,
    /// Blanks are underscores here, unlike in `squeue`.
    pub reason: Option<String>,
    pub dependency: Option<String>,
    /// Whether Slurm itself starts it again after a node failure or preemption.
    pub requeue: bool,
    pub restarts: u32,
    pub exit: ExitPair,
    pub derived_exit: Option<ExitPair>,
    pub time_limit: Option<Limit>,
    pub submitted: Option<Moment>,
    pub eligible: Option<Moment>,
    /// When it started, or is expected to.
    pub start: Option<Moment>,
    /// When it ended, or its time limit passes.
    pub end: Option<Moment>,
    /// Several, separated by commas, if it may run in any of them.
    pub partition: String,
    /// A host list.
    pub nodes: String,
    pub batch_host: Option<String>,
    pub node_count: u32,
    /// The resources it has, or asks for while it waits.
    pub resources: Resources,
    pub workdir: Option<String>,
    pub output: Option<String>,
    pub comment: Option<String>,
}

impl JobDetail {
    /// How it ended; none while it has not.
    pub fn ending(&self) -> Option<Ending> {
        state::ending(&self.state, self.exit, self.reason.as_deref())
    }
}

/// Reads every record of the answer: an array has one per started task.
pub fn read(text: &str) -> Result<Vec<JobDetail>> {
    let found = records(text, "JobId");
    if found.is_empty() && !text.contains("No jobs in the system") && !is_unknown(text) {
        return Err(unreadable("scontrol show job", text.trim()));
    }
    found.into_iter().map(detail).collect()
}

fn detail(record: &str) -> Result<JobDetail> {
    let pairs = pairs(record, FREE);
    let value = |key: &str| get(&pairs, key);
    let wrong = || unreadable("scontrol show job", record);
    let job: u32 = value("JobId").parse().map_err(|_| wrong())?;
    let id = match value("ArrayTaskId") {
        "" => JobId {
            job,
            part: Part::Whole,
            step: None,
        },
        task => {
            let part = match task.parse() {
                Ok(task) => Part::Task(task),
                Err(_) => Part::Tasks(TaskSet::read(task)?),
            };
            JobId {
                job: value("ArrayJobId").parse().map_err(|_| wrong())?,
                part,
                step: None,
            }
        }
    };
    let resources = ["AllocTRES", "TRES", "ReqTRES"]
        .into_iter()
        .find_map(|key| values::present(value(key)))
        .map(Resources::read);
    Ok(JobDetail {
        job,
        id,
        name: value("JobName").to_owned(),
        user: value("UserId")
            .split('(')
            .next()
            .unwrap_or_default()
            .to_owned(),
        account: values::words(value("Account")),
        qos: values::words(value("QOS")),
        priority: value("Priority").parse().unwrap_or(0),
        state: values::words(value("JobState")).ok_or_else(wrong)?,
        reason: values::words(value("Reason")),
        dependency: values::words(value("Dependency")),
        requeue: value("Requeue") == "1",
        restarts: values::count(value("Restarts")).unwrap_or(0),
        exit: ExitPair::read(value("ExitCode")).unwrap_or_default(),
        derived_exit: ExitPair::read(value("DerivedExitCode")),
        time_limit: values::time_limit(value("TimeLimit")),
        submitted: values::moment(value("SubmitTime")),
        eligible: values::moment(value("EligibleTime")),
        start: values::moment(value("StartTime")),
        end: values::moment(value("EndTime")),
        partition: value("Partition").to_owned(),
        nodes: values::words(value("NodeList")).unwrap_or_default(),
        batch_host: values::words(value("BatchHost")),
        node_count: values::count(value("NumNodes")).unwrap_or(0),
        resources: resources.unwrap_or_default(),
        workdir: values::words(value("WorkDir")),
        output: values::words(value("StdOut")),
        comment: values::words(value("Comment")),
    })
}
