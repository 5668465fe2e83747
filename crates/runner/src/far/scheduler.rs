//! Runs the questions and orders of a job to the scheduler that started it. Each has a timeout,
//! because a scheduler that hangs must not keep a run from ending. What is asked and how answers are
//! read is in `towline-slurm`.

use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use towline_core::cluster::JobStart;
use towline_core::reason::Ending;
use towline_host::backoff::Backoff;
use towline_slurm::job_variables::Job;
use towline_slurm::parse::{hosts::expand, job};
use towline_slurm::{own_job, step, task_layout};

const COMMAND_TIMEOUT: Duration = Duration::from_secs(8);

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// What the scheduler's variables say of this job.
fn this_job() -> Job {
    Job::from(variable)
}

/// This start of this job, from the scheduler's variables.
pub(super) fn this_start() -> io::Result<JobStart> {
    this_job().start().map_err(io::Error::other)
}

/// The number of this task in its array.
pub(super) fn this_task() -> Option<u32> {
    this_job().task
}

/// The number of this node in its step; 0 where the job has only one.
pub(super) fn this_node() -> u32 {
    this_job().node.unwrap_or(0)
}

/// The numbers of the job's GPUs on this node.
pub(super) fn this_node_gpus() -> Vec<u32> {
    this_job().gpus
}

/// The hosts of this job, by node.
pub(super) fn hosts() -> io::Result<Vec<String>> {
    let own = || {
        rustix::system::uname()
            .nodename()
            .to_string_lossy()
            .into_owned()
    };
    let Some(list) = this_job().hosts else {
        return Ok(vec![own()]);
    };
    // A single host name needs no expansion.
    if !list.contains(['[', ',']) {
        return Ok(vec![list]);
    }
    let hosts = match expand(&list) {
        Ok(hosts) => hosts,
        // Slurm may know a form of lists that this program does not.
        Err(_) => own_job::read_hosts(&ask(&own_job::hosts_argv(&list))?),
    };
    if hosts.is_empty() {
        Err(io::Error::other(format!(
            "the hosts of {list} are not known"
        )))
    } else {
        Ok(hosts)
    }
}

/// The command that starts `own` once on each of `nodes` nodes. It leaves room for `srun` in the
/// job's own script.
pub(super) fn on_each_node(nodes: u32, own: &[String]) -> Command {
    let mut command = command(&step::on_each_node(
        nodes,
        this_job().cpus_per_node.as_deref(),
    ));
    command
        .args(own)
        .envs(task_layout::for_step(variable))
        .stdin(Stdio::null());
    command
}

/// Gives a process of our step the environment of the batch job.
pub(super) fn leave_step(command: &mut Command) {
    for (name, value) in task_layout::for_ranks(variable) {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
}

/// Requeues this job: it is ended here and starts again, with all its time.
pub(super) fn requeue(job: &str) -> io::Result<()> {
    ask(&own_job::requeue_argv(job)).map(|_| ())
}

/// Cancels this job if it has been requeued.
pub(super) fn withdraw(job: &str) {
    let _ = quiet(&mut command(&own_job::withdraw_argv(job))).spawn();
}

/// Why the scheduler ends this job.
pub(super) fn why_ended(me: &JobStart, hosts: &[String]) -> Ending {
    let shown = ask(&job::argv(&me.job)).unwrap_or_default();
    let node_states = || ask(&own_job::node_states_argv(hosts)).unwrap_or_default();
    own_job::why_ended(&shown, me, node_states)
}

/// The job's remaining time, as the scheduler has it now. The limit may have been raised.
pub(super) fn time_left(job: &str) -> Option<Duration> {
    ask(&own_job::time_left_argv(job))
        .ok()
        .and_then(|text| own_job::read_time_left(&text))
}

fn command(argv: &[String]) -> Command {
    let mut command = Command::new(argv.first().map_or("", String::as_str));
    command.args(argv.iter().skip(1));
    command
}

fn quiet(command: &mut Command) -> &mut Command {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
}

/// The output of a command, if it comes in time.
fn ask(argv: &[String]) -> io::Result<String> {
    let program = argv.first().map_or("", String::as_str);
    let mut command = command(argv);
    command
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
    let mut backoff = Backoff::new(Duration::from_millis(1), Duration::from_millis(50));
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status.code().unwrap_or(128)));
        }
        if begun.elapsed() > limit {
            let _ = child.kill();
            let _ = child.wait();
            return Ok(None);
        }
        std::thread::sleep(backoff.pause());
    }
}
