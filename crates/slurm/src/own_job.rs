//! What a job asks Slurm about itself, and what it orders for itself.

use crate::owned;
use crate::parse::pairs::{get, pairs, records};
use crate::parse::{job, values};
use crate::state::{Native, native};
use std::time::Duration;
use towline_core::cluster::JobStart;
use towline_core::reason::{Cause, Ending};

/// Ends the job here and queues it again, with all its time.
pub fn requeue_argv(job: &str) -> Vec<String> {
    owned(["scontrol", "requeue", job])
}

/// Ends the job, or takes it out of the queue.
pub fn withdraw_argv(job: &str) -> Vec<String> {
    owned(["scancel", job])
}

/// The question for the names in a host list that [`crate::parse::hosts::expand`] refuses.
pub fn hosts_argv(list: &str) -> Vec<String> {
    owned(["scontrol", "show", "hostnames", list])
}

/// Reads the answer to [`hosts_argv`].
pub fn read_hosts(text: &str) -> Vec<String> {
    text.lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .map(str::to_owned)
        .collect()
}

/// The question for the job's remaining time. Its limit may have been raised meanwhile.
pub fn time_left_argv(job: &str) -> Vec<String> {
    owned(["squeue", "-h", "-j", job, "-o", "%L"])
}

/// Reads the answer to [`time_left_argv`]. A job without a limit has none.
pub fn read_time_left(text: &str) -> Option<Duration> {
    values::clock(text, 1).map(Duration::from_secs)
}

/// The question for the states of the job's nodes.
pub fn node_states_argv(hosts: &[String]) -> Vec<String> {
    owned(["sinfo", "-h", "-N", "-n", &hosts.join(","), "-o", "%N %t"])
}

/// The first node that is down or does not answer.
fn first_down(node_states: &str) -> Option<&str> {
    node_states
        .lines()
        .filter_map(|line| line.split_once(' '))
        .find(|(_, state)| state.contains("down") || state.ends_with('*'))
        .map(|(node, _)| node)
}

/// Why Slurm ends this start of a job, while it ends. `shown` is the answer to [`job::argv`],
/// `node_states` gives the one to [`node_states_argv`].
///
/// The state of such a job is `COMPLETING`, whatever the cause. Other fields tell the causes apart.
pub fn why_ended(shown: &str, me: &JobStart, node_states: impl FnOnce() -> String) -> Ending {
    let fields = pairs(record_of(shown, &me.job), job::FREE);
    let value = |key: &str| get(&fields, key);
    let requeued = value("Restarts")
        .parse()
        .is_ok_and(|restarts: u32| restarts > me.restarts);
    let state = value("JobState");
    match native(state) {
        Native::Ended(Some(
            cause @ (Cause::TimeLimit | Cause::OutOfMemory | Cause::NodeFailed | Cause::Preempted),
        )) => Ending::cause(cause),
        _ if values::present(value("PreemptTime")).is_some() => Ending::cause(Cause::Preempted),
        // The same shows while the job is requeued because one of its nodes is gone.
        _ if requeued => match first_down(&node_states()) {
            Some(node) => Ending::cause(Cause::NodeFailed).detail(format!("node {node} is down")),
            None => {
                Ending::cause(Cause::Preempted).detail("the cluster put it back into the queue")
            }
        },
        _ if state.is_empty() => {
            Ending::cause(Cause::Preempted).detail("the cluster ended it and does not say why")
        }
        _ => Ending::cause(Cause::ByUser).detail("cancelled on the cluster"),
    }
}

/// The record of a job. One task of an array has the array's own number, and Slurm shows all tasks
/// for that number.
fn record_of<'a>(shown: &'a str, job: &str) -> &'a str {
    let all = records(shown, "JobId");
    let is_own = |record: &&&str| get(&pairs(record, job::FREE), "JobId") == job;
    all.iter()
        .find(is_own)
        .or(all.first())
        .map_or(shown, |record| *record)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn me() -> JobStart {
        JobStart {
            job: "35".into(),
            restarts: 0,
        }
    }

    fn cause(shown: &str, nodes: &str) -> Option<Cause> {
        why_ended(shown, &me(), || nodes.to_owned()).cause
    }

    #[test]
    fn spans_are_read_as_squeue_writes_them() {
        for (text, seconds) in [
            ("5", Some(5)),
            ("4:05", Some(245)),
            ("1:00:00", Some(3600)),
            ("7-00:00:01", Some(604_801)),
            ("UNLIMITED", None),
            ("", None),
            ("INVALID", None),
            (" 0:07\n", Some(7)),
        ] {
            assert_eq!(
                read_time_left(text).map(|span| span.as_secs()),
                seconds,
                "{text}"
            );
        }
    }

    #[test]
    fn what_ends_a_job_is_told_apart_while_it_ends() {
        // The output of Slurm 22.05 in the second after SIGTERM.
        let preempted = "JobId=35 JobState=COMPLETING Reason=None Dependency=(null) Restarts=1 \
            ExitCode=0:0 EndTime=Unknown NodeList=c[1-3]";
        let cancelled = "JobId=37 JobState=COMPLETING Reason=None Restarts=0 ExitCode=0:0 \
            EndTime=2026-11-15T13:58:28 PreemptTime=None NodeList=c1";
        assert_eq!(
            cause(preempted, "c1 comp\nc2 comp\n"),
            Some(Cause::Preempted)
        );
        assert_eq!(
            cause(preempted, "c1 comp\nc2 down*\n"),
            Some(Cause::NodeFailed)
        );
        assert_eq!(cause(cancelled, ""), Some(Cause::ByUser));
        assert_eq!(
            cause("JobState=TIMEOUT Restarts=0", ""),
            Some(Cause::TimeLimit)
        );
        assert_eq!(
            cause("", ""),
            Some(Cause::Preempted),
            "it goes on when nobody said that it should not"
        );
    }

    #[test]
    fn states_that_name_a_cause_are_believed() {
        for (state, expected) in [
            ("DEADLINE", Cause::TimeLimit),
            ("OUT_OF_MEMORY", Cause::OutOfMemory),
            ("NODE_FAIL", Cause::NodeFailed),
            ("BOOT_FAIL", Cause::NodeFailed),
            ("PREEMPTED", Cause::Preempted),
            ("CANCELLED", Cause::ByUser),
            ("FAILED", Cause::ByUser),
        ] {
            let shown = format!("JobId=35 JobState={state} Restarts=0");
            assert_eq!(cause(&shown, ""), Some(expected), "{state}");
        }
        let preempted = "JobId=35 JobState=CANCELLED Restarts=0 PreemptTime=1794700000";
        assert_eq!(cause(preempted, ""), Some(Cause::Preempted));
    }

    #[test]
    fn a_task_with_the_number_of_its_array_reads_its_own_record() {
        let array = "JobId=36 ArrayJobId=35 ArrayTaskId=1 JobName=x UserId=a(1) \
            JobState=TIMEOUT Restarts=0\n\
            JobId=35 ArrayJobId=35 ArrayTaskId=2 JobName=JobState=PREEMPTED UserId=a(1) \
            JobState=COMPLETING Restarts=0\n";
        assert_eq!(cause(array, ""), Some(Cause::ByUser));
    }

    #[test]
    fn the_commands_of_a_job_name_it() {
        assert_eq!(requeue_argv("7"), ["scontrol", "requeue", "7"]);
        assert_eq!(withdraw_argv("7"), ["scancel", "7"]);
        assert_eq!(time_left_argv("7"), ["squeue", "-h", "-j", "7", "-o", "%L"]);
        let hosts = ["c1".to_owned(), "c2".to_owned()];
        assert_eq!(node_states_argv(&hosts)[4], "c1,c2");
        assert_eq!(hosts_argv("c[1-2]")[3], "c[1-2]");
        assert_eq!(read_hosts("c1\n c2 \n\n"), hosts);
    }
}
