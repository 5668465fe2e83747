//! `sacct`: the database's rows, one for every start and every step of a job.
//!
//! A job whose last row has ended may still be alive: a preempted job that waits again keeps its
//! `PREEMPTED` row and gets a new one only when it may start. A job without a row may exist too:
//! held jobs, jobs that depend on others, and tasks that have not started have none. So the
//! controller is asked first.

use super::config::Version;
use super::ids::JobId;
use super::values::{self, Limit};
use super::{FIELD, unreadable};
use crate::state::{self, ExitPair};
use towline_core::Result;
use towline_core::reason::Ending;
use towline_core::time::Moment;

/// Columns that every version since 20.11 has, those with free text last.
const COLUMNS: &str = "JobID,JobIDRaw,State,ExitCode,DerivedExitCode,Submit,Eligible,Start,End,ElapsedRaw,TimelimitRaw,NNodes,NodeList,\
                       Partition,QOS,Account,User,Reason";
/// Since 24.11; an older `sacct` refuses the whole query.
const NEWER: &str = "Restarts";
const FREE: &str = "Comment,JobName";

/// `-D` shows every start of a requeued job and not just the last; `-X` would leave out the steps.
/// The heading stays, because rows are read by its names.
///
/// Without jobs `sacct` answers for the current day only, unless `since` (epoch seconds) says more.
pub fn argv(
    version: Version,
    user: Option<&str>,
    jobs: &[String],
    since: Option<i64>,
) -> Vec<String> {
    let newer = if version >= Version(24, 11, 0) {
        format!("{NEWER},")
    } else {
        String::new()
    };
    let mut argv = vec![
        "sacct".to_owned(),
        "-P".into(),
        "-D".into(),
        format!("--delimiter={FIELD}"),
        "-o".into(),
        format!("{COLUMNS},{newer}{FREE}"),
    ];
    if let Some(user) = user {
        argv.extend(["-u".to_owned(), user.to_owned()]);
    }
    if !jobs.is_empty() {
        argv.extend(["-j".to_owned(), jobs.join(",")]);
    }
    if let Some(since) = since {
        argv.extend(["-S".to_owned(), format!("uts{since}")]);
    }
    argv
}

/// One start of a job, or one step of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountingRow {
    pub id: JobId,
    /// The number of a task or component of its own.
    pub job: u32,
    /// Slurm's state, unchanged: `CANCELLED by 1001`.
    pub state: String,
    pub exit: ExitPair,
    /// The highest exit code of its steps; absent on steps.
    pub derived_exit: Option<ExitPair>,
    pub submitted: Option<Moment>,
    pub eligible: Option<Moment>,
    pub start: Option<Moment>,
    pub end: Option<Moment>,
    pub elapsed: u64,
    pub time_limit: Option<Limit>,
    pub node_count: u32,
    /// A host list; empty before it has nodes.
    pub nodes: String,
    pub partition: Option<String>,
    pub qos: Option<String>,
    pub account: Option<String>,
    pub user: Option<String>,
    /// The last reason why it waited, also after it started.
    pub reason: Option<String>,
    /// Since 24.11. Counting the rows of one id is no replacement, because 20.11 drops some.
    pub restarts: Option<u32>,
    /// Only if the site stores comments (`AccountingStoreFlags=job_comment`), and only once the
    /// start has ended.
    pub comment: Option<String>,
    pub name: String,
}

impl AccountingRow {
    /// How this start ended; none while it runs, or while the job waits to be started again.
    pub fn ending(&self) -> Option<Ending> {
        // A refused submission: it never started, and the database does not know the reason.
        let refused = self.start.is_none() && self.state == "FAILED";
        state::ending(
            &self.state,
            self.exit,
            if refused {
                Some("BadConstraints")
            } else {
                None
            },
        )
    }
}

/// Reads the answer to [`argv`]. Lines before the heading are ignored.
pub fn read(text: &str) -> Result<Vec<AccountingRow>> {
    let mut lines = text.split('\n');
    let Some(heading) = lines.find(|line| line.split(FIELD).next() == Some("JobID")) else {
        return Err(unreadable(
            "sacct",
            if text.trim().is_empty() {
                "nothing at all"
            } else {
                text.trim()
            },
        ));
    };
    let columns: Vec<&str> = heading.split(FIELD).collect();
    let mut records: Vec<String> = Vec::new();
    for line in lines {
        let begins = line
            .split_once(FIELD)
            .is_some_and(|(id, _)| JobId::read(id).is_some());
        match records.last_mut() {
            // A line break in a comment or name: the record goes on.
            Some(record) if !begins => {
                record.push('\n');
                record.push_str(line);
            }
            None if !begins && line.trim().is_empty() => {}
            _ => records.push(line.to_owned()),
        }
    }
    records
        .iter()
        .map(|record| row(&columns, record.trim_end_matches('\n')))
        .collect()
}

fn row(columns: &[&str], record: &str) -> Result<AccountingRow> {
    let fields: Vec<&str> = record.splitn(columns.len(), FIELD).collect();
    let wrong = || unreadable("sacct", record);
    if fields.len() != columns.len() {
        return Err(wrong());
    }
    let get = |name: &str| {
        columns
            .iter()
            .position(|column| column.eq_ignore_ascii_case(name))
            .map_or("", |at| fields[at])
    };
    let id = JobId::read(get("JobID")).ok_or_else(wrong)?;
    let state = values::words(get("State")).ok_or_else(wrong)?;
    let raw = get("JobIDRaw");
    let job = raw
        .split_once('.')
        .map_or(raw, |(job, _)| job)
        .parse()
        .unwrap_or(id.job);
    Ok(AccountingRow {
        job,
        state,
        exit: ExitPair::read(get("ExitCode")).unwrap_or_default(),
        derived_exit: ExitPair::read(get("DerivedExitCode")),
        submitted: values::moment(get("Submit")),
        eligible: values::moment(get("Eligible")),
        start: values::moment(get("Start")),
        end: values::moment(get("End")),
        elapsed: get("ElapsedRaw").trim().parse().unwrap_or(0),
        time_limit: values::time_limit(get("TimelimitRaw")),
        node_count: values::count(get("NNodes")).unwrap_or(0),
        nodes: values::words(get("NodeList")).unwrap_or_default(),
        partition: values::words(get("Partition")),
        qos: values::words(get("QOS")),
        account: values::words(get("Account")),
        user: values::words(get("User")),
        reason: values::words(get("Reason")),
        restarts: values::count(get("Restarts")),
        comment: values::words(get("Comment")),
        name: get("JobName").to_owned(),
        id,
    })
}
