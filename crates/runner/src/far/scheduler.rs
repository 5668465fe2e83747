//! Questions and orders of a job to the scheduler that started it. Each has a timeout, because a
//! scheduler that hangs must not keep a run from ending.

use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use towline_core::cluster::JobStart;
use towline_core::reason::{Cause, Ending};

const COMMAND_TIMEOUT: Duration = Duration::from_secs(8);

/// This start of this job, from the scheduler's variables.
pub(super) fn this_start() -> io::Result<JobStart> {
    let job = std::env::var("SLURM_JOB_ID")
        .map_err(|_| io::Error::other("this is not a job of Slurm: SLURM_JOB_ID is not set"))?;
    let restarts = std::env::var("SLURM_RESTART_COUNT")
        .ok()
        .and_then(|count| count.parse().ok())
        .unwrap_or(0);
    Ok(JobStart { job, restarts })
}

/// The number of this task in its array.
pub(super) fn this_task() -> Option<u32> {
    std::env::var("SLURM_ARRAY_TASK_ID").ok()?.parse().ok()
}

/// The hosts of this job, by node.
pub(super) fn hosts() -> io::Result<Vec<String>> {
    let own = || {
        rustix::system::uname()
            .nodename()
            .to_string_lossy()
            .into_owned()
    };
    let Ok(list) = std::env::var("SLURM_JOB_NODELIST") else {
        return Ok(vec![own()]);
    };
    // A single host name needs no expansion.
    if !list.contains(['[', ',']) {
        return Ok(vec![list]);
    }
    let text = ask("scontrol", &["show", "hostnames", &list])?;
    let hosts: Vec<String> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .map(str::to_owned)
        .collect();
    if hosts.is_empty() {
        Err(io::Error::other(format!(
            "the hosts of {list} are not known"
        )))
    } else {
        Ok(hosts)
    }
}

/// The command that starts `own` once on each of `nodes` nodes.
pub(super) fn on_each_node(nodes: u32, own: &[String]) -> Command {
    let mut command = Command::new("srun");
    command
        .arg(format!("--nodes={nodes}"))
        .arg(format!("--ntasks={nodes}"));
    command.args([
        "--ntasks-per-node=1",
        "--kill-on-bad-exit=0",
        "--wait=0",
        "--unbuffered",
        "--cpu-bind=none",
        "--mpi=none",
    ]);
    // The one runner of each node gets all of the job's GPUs, CPUs and memory there.
    if let Ok(cpus) = std::env::var("SLURM_CPUS_PER_TASK") {
        command.arg(format!("--cpus-per-task={cpus}"));
    }
    command.args(own).stdin(Stdio::null());
    command
}

/// Requeues this job: it is ended here and starts again, with all its time.
pub(super) fn requeue(job: &str) -> io::Result<()> {
    ask("scontrol", &["requeue", job]).map(|_| ())
}

/// Cancels this job if it has been requeued.
pub(super) fn withdraw(job: &str) {
    let _ = quiet(Command::new("scancel").arg(job)).spawn();
}

/// Why the scheduler ends this job. Its state is `COMPLETING` meanwhile, whatever the cause; other
/// fields of its answer tell the causes apart.
pub(super) fn why_ended(me: &JobStart, hosts: &[String]) -> Ending {
    let output = ask("scontrol", &["show", "job", "-o", &me.job]).unwrap_or_default();
    let down = || {
        ask(
            "sinfo",
            &["-h", "-N", "-n", &hosts.join(","), "-o", "%N %t"],
        )
        .unwrap_or_default()
    };
    ending_of(&output, me, down)
}

fn ending_of(output: &str, me: &JobStart, nodes: impl Fn() -> String) -> Ending {
    let value = |key: &str| {
        output
            .split_whitespace()
            .find_map(|word| word.strip_prefix(key))
            .unwrap_or_default()
    };
    let is_set = |text: &str| !matches!(text, "" | "None" | "Unknown" | "N/A");
    let requeued = value("Restarts=")
        .parse()
        .is_ok_and(|restarts: u32| restarts > me.restarts);
    match value("JobState=") {
        "TIMEOUT" | "DEADLINE" => Ending::cause(Cause::TimeLimit),
        "OUT_OF_MEMORY" => Ending::cause(Cause::OutOfMemory),
        "NODE_FAIL" => Ending::cause(Cause::NodeFailed),
        "PREEMPTED" => Ending::cause(Cause::Preempted),
        _ if is_set(value("PreemptTime=")) => Ending::cause(Cause::Preempted),
        // The same shows while the job is requeued because one of its nodes is gone.
        _ if requeued => match nodes()
            .lines()
            .filter_map(|line| line.split_once(' '))
            .find(|(_, state)| state.contains("down") || state.ends_with('*'))
        {
            Some((node, _)) => {
                Ending::cause(Cause::NodeFailed).detail(format!("node {node} is down"))
            }
            None => {
                Ending::cause(Cause::Preempted).detail("the cluster put it back into the queue")
            }
        },
        "" => Ending::cause(Cause::Preempted).detail("the cluster ended it and does not say why"),
        _ => Ending::cause(Cause::ByUser).detail("cancelled on the cluster"),
    }
}

/// The job's remaining time, as the scheduler has it now. The limit may have been raised.
pub(super) fn time_left(job: &str) -> Option<Duration> {
    ask("squeue", &["-h", "-j", job, "-o", "%L"])
        .ok()
        .and_then(|text| span(text.trim()))
}

/// `5`, `4:05`, `3:04:05`, `2-03:04:05`; anything else is no limit.
fn span(text: &str) -> Option<Duration> {
    let (days, clock) = text.split_once('-').unwrap_or(("0", text));
    let mut seconds = 0u64;
    for part in clock.split(':') {
        seconds = seconds.checked_mul(60)?.checked_add(part.parse().ok()?)?;
    }
    Some(Duration::from_secs(
        days.parse::<u64>()
            .ok()?
            .checked_mul(86_400)?
            .checked_add(seconds)?,
    ))
}

fn quiet(command: &mut Command) -> &mut Command {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
}

/// The output of a command, if it comes in time.
fn ask(program: &str, words: &[&str]) -> io::Result<String> {
    let mut command = Command::new(program);
    command
        .args(words)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0);
    let mut child = command.spawn()?;
    let mut out = child
        .stdout
        .take()
        .ok_or_else(|| io::Error::other("no pipe"))?;
    let reader = std::thread::Builder::new().spawn(move || {
        let mut text = String::new();
        out.read_to_string(&mut text).map(|_| text)
    })?;
    match wait_for(&mut child, COMMAND_TIMEOUT)? {
        Some(0) => reader
            .join()
            .map_err(|_| io::Error::other("its answer was lost"))?,
        Some(code) => Err(io::Error::other(format!("{program} left with {code}"))),
        None => Err(io::Error::new(
            io::ErrorKind::TimedOut,
            format!("{program} does not answer"),
        )),
    }
}

fn wait_for(child: &mut Child, limit: Duration) -> io::Result<Option<i32>> {
    let begun = Instant::now();
    let mut pause = Duration::from_millis(1);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status.code().unwrap_or(128)));
        }
        if begun.elapsed() > limit {
            let _ = child.kill();
            let _ = child.wait();
            return Ok(None);
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(50));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        ] {
            assert_eq!(span(text).map(|span| span.as_secs()), seconds, "{text}");
        }
    }

    #[test]
    fn what_ends_a_job_is_told_apart_while_it_ends() {
        let me = JobStart {
            job: "35".into(),
            restarts: 0,
        };
        let cause = |output: &str, nodes: &str| ending_of(output, &me, || nodes.to_owned()).cause;
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
}
